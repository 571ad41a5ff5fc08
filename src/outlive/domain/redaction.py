"""Secrets, masked before they are shown; the only place that decides what one is.

A mask keeps what a person recognises the secret by: `ghp_[redacted]`, `DB_PASSWORD=[redacted]`,
`https://bob:[redacted]@host`. What matches a format of `secret_patterns` is one; what is assigned to a
name (`..._TOKEN`, `password`) may be: `$TOKEN`, `<token>`, `/run/secrets/x`, `str` and `next(tokens)`
are no secrets.

Redact what `plain` has cleaned, or a colour may stand in the middle of a token; and redact before
cutting to a width, because half a secret is recognised less often than a whole one.
"""

from __future__ import annotations

from outlive.domain import secret_patterns as patterns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from re import Match

MASK = "[redacted]"
# One finds them all, one sees that; seldom a mask falls on what an earlier pattern took for a name. No text
# that a command writes may keep us longer.
_PASSES = 4
_QUOTED = frozenset(("double", "single", "escaped"))


def redact(text: str) -> str:
    """The text with its secrets masked; the same text if there are none. Masking twice is masking once."""
    for _ in range(_PASSES):
        before, text = text, _pass_over(text)
        if text == before:
            break
    return text


def _pass_over(text: str) -> str:
    if "PRIVATE KEY-----" in text or "PRIVATE KEY BLOCK-----" in text:
        text = "".join(_without_keys(text))
    unbroken = _unbroken(text)
    if any(sign in unbroken for sign in patterns.KEY_SIGNS):
        text = _sub(patterns.BASE64_LINES, _mask_key_body, text)
    seen = f"{text}\n{text.lower()}"
    for signs, pattern, replace in _RULES:
        if any(sign in seen for sign in signs):
            text = _sub(pattern, replace, text)
    return text


def may_begin_secret(text: str) -> bool:
    """Whether what follows might make a secret of the end of this text: a token, a key or an entry that has begun."""
    last = text[max(text.rfind(c) for c in " \t\n\r") + 1 :]
    if any(sign in last for sign in (*patterns.TOKEN_SIGNS, "sig=", "ignature=")) or _ends_in_netrc(text[-400:]):
        return True
    begun = text.rfind("PRIVATE KEY-----")
    return begun >= 0 and "-----BEGIN" in text[max(0, begun - 60) : begun]


def _ends_in_netrc(text: str) -> bool:
    """Whether the password of an entry is on a line that is still to come."""
    if "machine" not in text and "default" not in text:
        return False
    from re import search  # noqa: PLC0415 - see `_sub`

    return search(patterns.NETRC_BEGUN, text) is not None


def redact_words(words: Sequence[str]) -> list[str]:
    """The words of a command, masked as within the whole: only the option before it tells a password."""
    shown = []
    program = [(at, each) for at, each in enumerate(words) if not each.startswith("-")][:4]
    for at, word in enumerate(words):
        lead = dict.fromkeys((*(each for place, each in program if place < at), *words[max(at - 1, 0) : at]))
        opening = " ".join(filter(_is_name, lead)) + " '"
        quoted = redact(f"{opening}{word}'")
        is_whole = quoted.startswith(opening) and quoted.endswith("'")
        shown.append(quoted[len(opening) : -1] if is_whole else redact(word))
    return shown


def _is_name(word: str) -> bool:
    """Whether it can stand in a command without quotes: a program, a verb, an option, a key."""
    return word.isascii() and word.replace("-", "").replace("_", "").replace(".", "").isalnum()


def _sub(pattern: str, replace: Callable[[Match[str]], str], text: str) -> str:
    """`re.sub`, which keeps what it has compiled; late, because a launch shows nothing and could not afford it."""
    from re import sub  # noqa: PLC0415 - see above

    return sub(pattern, replace, text)


def _without_keys(text: str) -> Iterator[str]:
    """The text without the insides of private keys, also of one that began before it or ends after it."""
    from re import finditer, match, search, split  # noqa: PLC0415 - see `_sub`

    pieces = ["", *split(patterns.MARKER, text), ""]
    for before, piece, after in zip(pieces[::2], pieces[1::2], pieces[2::2], strict=False):
        is_begun, is_ended = before.startswith("-----BEGIN"), after.startswith("-----END")
        start, end = 0, 0
        if is_begun and is_ended:
            end = len(piece) if search(r"[A-Za-z0-9+/]{32}", piece) else 0
        elif is_begun:
            found = match(patterns.KEY_BEGUN, piece)
            end = found.end() if found else 0
        elif is_ended:
            for found in finditer(patterns.KEY_ENDED, piece):
                start, end = found.span()
            end = end if end == len(piece) else start
        yield from (piece[:start], MASK if start < end else "", piece[end:], after)


def _mask_token(match: Match[str]) -> str:
    return f"{match[match.lastindex or 0]}{MASK}"


def _mask_key_body(match: Match[str]) -> str:
    """Lines of base64 in which something is that only a private key has, wherever it is broken into lines.

    Without such a sign they may be a certificate or an image: those stay, and so does the middle of a key.
    """
    from re import search  # noqa: PLC0415 - see `_sub`

    body = _unbroken(match[0])
    return MASK if len(body) >= 40 and search(patterns.KEY_SIGN, body) else match[0]


def _unbroken(text: str) -> str:
    """The text without the ends of its lines, escaped or not: a sign may stand on two of them."""
    return "".join(text.replace("\\r", "").replace("\\n", "").split())


def _mask_value(match: Match[str]) -> str:
    kind = match.lastgroup or "word"
    return match[0] if _is_reference(match[kind]) else _masked(match, kind, match[kind])


def _masking(option: str) -> Callable[[Match[str]], str]:
    """Mask what follows the option in a command."""
    return lambda command: _sub(option + patterns.VALUE, _mask_value, command[0])


def _mask_header(match: Match[str]) -> str:
    value = match["word"]
    is_known = not match["auth"] or match["scheme"]
    if (
        _is_reference(value)
        or value.lower() in patterns.PROSE
        or not (is_known or (_is_random(value) and not _is_code(value)))
    ):
        return match[0]
    return _masked(match, "word", value)


def _mask_signature(match: Match[str]) -> str:
    value = match["word"].partition("%26")[0]
    return _masked(match, "word", value) if _is_random(value) and not _is_reference(value) else match[0]


def _mask_netrc(match: Match[str]) -> str:
    """`machine h login u password value`; of less than that, only what looks like a secret on its own line."""
    kind = match.lastgroup or "word"
    value = match[kind].rstrip(",;)") if kind == "word" else match[kind]
    is_entry = match["entry"] and match["login"]
    is_part = (match["entry"] or match["login"]) and _begins_line(match) and _is_random(value)
    is_nothing = _is_reference(value) or _is_placeholder(value)
    return _masked(match, kind, value) if (is_entry or is_part) and not is_nothing else match[0]


def _mask_argument(match: Match[str]) -> str:
    """`--password value`; of what stands after an option in prose and in help texts, nothing."""
    kind = match.lastgroup or "word"
    value = match[kind].rstrip(",.)]}") if kind == "word" else match[kind]
    name, key = match["name"].lstrip("-").lower(), match["key"].lower()
    is_named = name not in patterns.VAGUE and not key.startswith("private")
    if (
        _is_nothing(match, value)
        or value.startswith("-")
        or (kind == "word" and _is_placeholder(value))
        or not ((is_named and len(match["sign"]) == 1) or (_is_random(value) and "=" not in value))
    ):
        return match[0]
    return _masked(match, kind, value)


def _mask_assigned(match: Match[str]) -> str:
    """`NAME=value`, `name = "value"`, `name: value`, `"name": "value"`."""
    kind = match.lastgroup or "word"
    value = match[kind]
    if kind == "word" and match["sign"].startswith("%"):
        value = value.partition("%26")[0]
    if kind == "word":
        value = value.rstrip(",)]}") if match["key"].isupper() else _until(value, ",)]}")
    return _masked(match, kind, value) if _is_secret(match, kind, value) else match[0]


def _masked(match: Match[str], kind: str, value: str) -> str:
    """The match with a mask in place of the value at the beginning of a group."""
    start = match.start(kind)
    return match.string[match.start() : start] + MASK + match.string[start + len(value) : match.end()]


def _is_secret(match: Match[str], kind: str, value: str) -> bool:
    """Whether what is assigned is a secret.

    A loud name (`DB_PASSWORD`) is hardly ever used for anything else. To a quiet one, code assigns
    expressions, and prose whatever it likes: there the value must look like a secret too.
    """
    name, key, is_tight = match["name"].rpartition(".")[2], match["key"], _is_tight(match)
    if _is_nothing(match, value) or (not is_tight and _is_named_alike(value, name, key)):
        return False
    if key.isupper() and is_tight:
        return True
    if kind == "word" and _is_code(value):
        return False
    if kind in _QUOTED and " " in value:
        return _is_passphrase(key, value)
    if key.isupper() and ("_" in name or kind != "word"):
        return True
    if name.startswith("-"):
        return not _is_placeholder(value)
    is_said_of_others = value.lower() in patterns.PROSE or (not _is_password(key) and _is_version(value))
    if is_said_of_others or (name.lower() in patterns.VAGUE and not _is_random(value)):
        return False
    return _is_quiet_secret(match, value) if kind == "word" else is_tight or _is_password(key) or not _is_slug(value)


def _is_quiet_secret(match: Match[str], value: str) -> bool:
    """The same of a word without quotes that is assigned to a quiet name."""
    key, is_identifier = match["key"].lower(), value.replace("_", "").isalpha()
    if is_identifier and key in value.lower():
        return False
    if _is_tight(match):
        follows = match.start("word") + len(value)
        return not (is_identifier and match.string[follows : follows + 1] in (",", ")"))
    if _is_random(value):
        return match["name"].lower() not in patterns.VAGUE or _begins_line(match)
    return ":" in match["sign"] and key.startswith("pass") and _begins_line(match) and _ends_line(match)


def _is_passphrase(key: str, value: str) -> bool:
    """Whether words in quotes are a password, not the label or the message of a form.

    Only people choose words, so only for passwords. `Try again later` is a sentence by its capital.
    """
    words = [each.strip(".,:;!?()") for each in value.split()]
    is_sentence = words[0].istitle() and all(each.isalpha() and each.islower() for each in words[1:])
    is_about = any(each.lower() in patterns.ASKING or each.lower() in patterns.PROSE for each in words)
    return _is_password(key) and not (is_sentence or is_about or "passw" in value.lower() or value.endswith((":", "?")))


def _is_password(key: str) -> bool:
    return "pass" in key.lower() or "pw" in key.lower()


def _is_tight(match: Match[str]) -> bool:
    """Whether it is assigned as shells and URLs do it."""
    return match["sign"] in ("=", "%3D", "%3d")


def _is_named_alike(value: str, name: str, key: str) -> bool:
    """Whether a name stands for a name: `TOKEN = "token"`, `PASSWORD: "challengePassword"`."""
    bare = value.replace("_", "").replace("-", "")
    is_name = bare.isalpha() and (bare != value or not value.islower())
    return value.lower() in (name.lower(), key.lower()) or (is_name and key.lower().replace("_", "") in bare.lower())


def _begins_line(match: Match[str]) -> bool:
    before = match.string[max(0, match.start() - 40) : match.start()]
    return not before.rpartition("\n")[2].strip(" \t\"'{-")


def _ends_line(match: Match[str]) -> bool:
    rest = match.string[match.end() : match.end() + 40].partition("\n")[0].strip(" \t,}")
    return not rest or rest.startswith("#")


def _is_random(value: str) -> bool:
    """Whether letters and digits are mixed, as in few words."""
    is_mixed = len(value) >= 6 and any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return is_mixed and not _is_slug(value)


def _is_slug(value: str) -> bool:
    from re import match  # noqa: PLC0415 - see `_sub`

    return match(patterns.SLUG, value) is not None


def _is_version(value: str) -> bool:
    from re import match  # noqa: PLC0415 - see `_sub`

    return match(patterns.VERSION, value) is not None


def _is_placeholder(value: str) -> bool:
    """Whether a help text or a sentence says this of an option."""
    return value.lower() in patterns.PROSE or (value.isupper() and value.endswith(patterns.PLACEHOLDERS))


def _is_nothing(match: Match[str], value: str) -> bool:
    """Whether a value keeps no secret, whatever it is assigned to."""
    from re import match as fits  # noqa: PLC0415 - see `_sub`
    from re import search  # noqa: PLC0415

    return (
        _is_reference(value)
        or value.lower() in patterns.NOTHING
        or (len(value) < 6 and value.lstrip("-").replace(".", "").isdigit())
        or (len(value) == 1 and match["name"].lower() == "accesskey")  # of HTML
        or fits(patterns.PATH, value) is not None
        or search(patterns.OTHER_TOKENS, _name_in_prose(match)) is not None
    )


def _name_in_prose(match: Match[str]) -> str:
    """The name, before a colon with the word before it: an `unexpected token:` is a parser's."""
    before = match.string[max(0, match.start() - 16) : match.start()] if ":" in match["sign"] else ""
    return before.rpartition("\n")[2] + match["name"]


def _is_reference(value: str) -> bool:
    """Whether it only says where the secret is, or has been masked by us or by somebody else."""
    from re import match  # noqa: PLC0415 - see `_sub`

    is_masked = 0 <= value.find(MASK[:-1]) <= 28
    return is_masked or not any(map(str.isalnum, value)) or match(patterns.REFERENCE, value) is not None


def _is_code(value: str) -> bool:
    """Whether it is a call, an index or an attribute."""
    from re import match  # noqa: PLC0415 - see `_sub`

    return match(patterns.CODE, value) is not None


def _until(value: str, stops: str) -> str:
    return value[: min((at for stop in stops if (at := value.find(stop)) >= 0), default=len(value))]


# In this order: the more a rule knows, the more it lets stay.
_RULES: tuple[tuple[tuple[str, ...], str, Callable[[Match[str]], str]], ...] = (
    (patterns.TOKEN_SIGNS, patterns.TOKEN, _mask_token),
    (("://",), patterns.URL, _mask_value),
    (("authorization", "x-api-key", "x-auth-", "x-goog-", "x-vault-", "private-token"), patterns.HEADER, _mask_header),
    (("bearer",), patterns.BEARER, _mask_value),
    (patterns.SIGNATURE_SIGNS, patterns.SIGNATURE, _mask_signature),
    (("password",), patterns.NETRC, _mask_netrc),
    *(((program,), command, _masking(option)) for program, command, option in patterns.PROGRAMS),
    (patterns.NAME_SIGNS, patterns.ASSIGNED_WHOLE, _mask_assigned),
    (patterns.NAME_SIGNS, patterns.ASSIGNED, _mask_assigned),
    (patterns.NAME_SIGNS, patterns.OPTION, _mask_argument),
    (("config",), patterns.CONFIGURED, _mask_argument),
)
