"""The masking of secrets before text is shown. Only this module masks secrets.

A masked text still shows which secret was masked: `ghp_[redacted]`, `DB_PASSWORD=[redacted]`,
`https://bob:[redacted]@host`. A text that matches a format of `secret_patterns` is a secret. A value that is assigned
to a name such as `..._TOKEN` or `password` may be a secret. The values `$TOKEN`, `<token>`, `/run/secrets/x`, `str` and
`next(tokens)` are not secrets.

Call `plain` before masking, because a color code in the middle of a token would hide the token. Cut a text to a width
only after masking, because a part of a secret is recognised less often than the whole secret.
"""

from __future__ import annotations

from outlive.domain.text import secret_patterns as patterns
from outlive.domain.text.sanitize import masked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from re import Match

    from outlive.domain.text.secret_lines import Finder, Prefilter

MASK = "[redacted]"
# The largest number of passes over the output of a task. The first pass masks the secrets, and the second pass
# confirms that nothing changes any more. A third pass is rarely needed, for example if a mask changes what another
# pattern matches. Without this limit, hostile output could need many passes.
_PASSES = 4
# In texts of at least this length, it is faster to search first for the lines that may contain a secret.
_LARGE = 16 << 10
# A sign is a string that a token contains. Signs of two letters are left out. Otherwise a prompt that ends with these
# letters would be shown late, because the letters could be the beginning of a token.
_BEGINNINGS = tuple(sign for sign in patterns.TOKEN_SIGNS if sign not in patterns.DISCORD_SIGNS)
# The separator between lines that are masked as one text. No rule matches the separator, or a text that contains it.
_APART = b'\n"\n'
_BLANK = dict.fromkeys(map(ord, " \t\n\r\v\f"))
_QUOTED = frozenset(("double", "single", "escaped"))
_prefilters: list[Prefilter] = []


def redact(text: str) -> str:
    """Return the text with its secrets masked.

    Masking the result again changes nothing.
    """
    if len(text) < _LARGE:
        unbroken = _unbroken(text)
        return _mask_lines(_without_keys(text, has_sign=any(sign in unbroken for sign in patterns.KEY_SIGNS)))
    return _mask_large(text, _prefilter())


def _mask_large(text: str, prefilter: Prefilter) -> str:
    """Return a large text with its secrets masked.

    Only lines that may have a secret are checked.
    """
    data = text.encode("utf-8", "surrogatepass")
    bare = _without_keys(text, has_sign=prefilter.has_key_sign(data))
    if bare is not text:
        text, data = bare, bare.encode("utf-8", "surrogatepass")
    spans = prefilter.lines(data)
    lines = [data[start:end] for start, end in spans]
    masked_lines = _mask_apart(lines, _once)
    if masked_lines is None:  # one of the lines contains the separator, so they cannot be masked as one text
        return _mask_lines(text)
    changed = [at for at, line in enumerate(lines) if line != masked_lines[at]]
    if not changed:
        return text
    again = _mask_apart([masked_lines[at] for at in changed], _mask_again)
    if again is None:
        return _mask_lines(text)
    kept: list[bytes] = []
    end = 0
    for at, line in zip(changed, again, strict=True):
        kept += (data[end : spans[at][0]], line)
        end = spans[at][1]
    return b"".join((*kept, data[end:])).decode("utf-8", "surrogatepass")


def _mask_apart(lines: list[bytes], mask: Callable[[str], str]) -> list[bytes] | None:
    """Return the lines after masking them as one text.

    Returns None if a line contains the separator. Equal lines are masked once, because a program may print the same
    line very often.
    """
    if not lines:
        return []
    unique = list(dict.fromkeys(lines))
    found = mask(_APART.join(unique).decode("utf-8", "surrogatepass")).encode("utf-8", "surrogatepass").split(_APART)
    if len(found) != len(unique):
        return None
    masked_as = dict(zip(unique, found, strict=True))
    return [masked_as[line] for line in lines]


def _without_keys(text: str, *, has_sign: bool) -> str:
    """Return the text without private keys.

    `has_sign` says whether the text contains one of the strings by which a private key is found without its BEGIN and
    END lines.
    """
    if "PRIVATE KEY-----" in text or "PRIVATE KEY BLOCK-----" in text:
        text = "".join(_without_marked_keys(text))
    if patterns.PUTTY_SIGN in text:
        text = _sub(patterns.PUTTY_KEY, _mask_token, text)
    return _sub(patterns.BASE64_LINES, _mask_key_body, text) if has_sign else text


def _mask_lines(text: str) -> str:
    """Return the text after applying all rules until nothing changes."""
    before, text = text, _once(text)
    return text if text == before else _mask_again(text)


def _mask_again(text: str) -> str:
    """Return a masked text after applying all rules again until nothing changes."""
    for _ in range(_PASSES - 1):
        before, text = text, _once(text)
        if text == before:
            break
    return text


def _once(text: str) -> str:
    """Return the text after applying each rule once, in the order of the rules."""
    seen = f"{text}\n{text.lower()}"
    for signs, pattern, replace in _RULES:
        if any(sign in seen for sign in signs):
            text = _sub(pattern, replace, text)
    return text


def _prefilter() -> Prefilter:
    """Return the filter that finds the lines of a large text to check for secrets.

    The filter is made once. `functools.cache` would do the same, but its import takes 3 ms, and only few texts are
    large.
    """
    if not _prefilters:
        from outlive.domain.text.secret_lines import Prefilter  # noqa: PLC0415 - only large texts need this import

        _prefilters.append(Prefilter(finders()))
    return _prefilters[0]


def finders() -> tuple[Finder, ...]:
    """Return the patterns that find the lines to which a masking rule may apply.

    The rule for netrc entries has no such pattern, because `Prefilter` searches for these entries itself.
    """
    from outlive.domain.text.secret_lines import Finder  # noqa: PLC0415 - only large texts need this import

    programs = tuple(program for program, _, _ in patterns.PROGRAMS)
    commands = tuple(command for _, command, _ in patterns.PROGRAMS)
    others: dict[tuple[str, ...], list[str]] = {}
    for signs, pattern, _ in _RULES:
        if pattern not in (patterns.TOKEN, patterns.NETRC, *commands):
            others.setdefault(signs, []).append(pattern)
    return (
        Finder(signs=patterns.TOKEN_SIGNS, found=patterns.FORMATS, is_exact=True),
        Finder(signs=programs, found=commands, is_exact=True),
        *(Finder(signs=signs, found=tuple(found)) for signs, found in others.items()),
    )


def may_begin_secret(text: str) -> bool:
    """Return whether the end of a text may be the beginning of a secret."""
    last = text[max(text.rfind(c) for c in " \t\n\r") + 1 :]
    if any(sign in last for sign in (*_BEGINNINGS, "sig=", "ignature=")) or _ends_in_netrc(text[-400:]):
        return True
    if text.rfind(patterns.PUTTY_SIGN) > text.rfind("Private-MAC:"):
        return True
    begun = text.rfind("PRIVATE KEY-----")
    return begun >= 0 and "-----BEGIN" in text[max(0, begun - 60) : begun]


def _ends_in_netrc(text: str) -> bool:
    """Return whether the text ends inside a netrc entry, before its password."""
    if "machine" not in text and "default" not in text:
        return False
    from re import search  # noqa: PLC0415 - a launch must not load `re`, which is slow to import

    return search(patterns.NETRC_BEGUN, text) is not None


def redact_words(words: Sequence[str]) -> list[str]:
    """Return the words of a command, masked as if the whole command were masked.

    A word cannot be masked by itself, because often only the option before the word shows that it is a password.
    """
    shown = []
    program = [(at, each) for at, each in enumerate(words) if not each.startswith("-")][:4]
    for at, word in enumerate(words):
        lead = dict.fromkeys((*(each for place, each in program if place < at), *words[max(at - 1, 0) : at]))
        opening = " ".join(filter(_is_name, lead)) + " '"
        quoted = masked(f"{opening}{word}'")
        is_whole = quoted.startswith(opening) and quoted.endswith("'")
        shown.append(quoted[len(opening) : -1] if is_whole else masked(word))
    return shown


def _is_name(word: str) -> bool:
    """Return whether a word is a name: a program, a subcommand, an option or a key."""
    return word.isascii() and word.replace("-", "").replace("_", "").replace(".", "").isalnum()


def _sub(pattern: str, replace: Callable[[Match[str]], str], text: str) -> str:
    """Return the result of `re.sub`, and import `re` only here.

    A launch does not call this function, so it does not load `re`, which is slow to import.
    """
    from re import sub  # noqa: PLC0415 - a launch must not load `re`, which is slow to import

    return sub(pattern, replace, text)


def _without_marked_keys(text: str) -> Iterator[str]:
    """Yield the text without the private keys that have a BEGIN or an END line.

    A key may lack one of these two lines.
    """
    from re import finditer, match, search, split  # noqa: PLC0415 - a launch must not load `re`, which is slow to import

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
    """Mask lines of base64 that contain a string (sign) found only in private keys.

    A line break may divide the sign. Lines without a sign are not masked, because they may be a certificate or an
    image. So the middle part of a key, which has no sign, is not masked.
    """
    from re import search  # noqa: PLC0415 - a launch must not load `re`, which is slow to import

    body = _unbroken(match[0])
    return MASK if len(body) >= 40 and search(patterns.KEY_SIGN, body) else match[0]


def _unbroken(text: str) -> str:
    """Return the text without blanks and line ends.

    Private keys are found by certain strings, and a line break could divide such a string.
    """
    return text.replace("\\r", "").replace("\\n", "").translate(_BLANK)


def _mask_value(match: Match[str]) -> str:
    kind = match.lastgroup or "word"
    return match[0] if _is_reference(match[kind]) else _masked(match, kind, match[kind])


def _masking(option: str) -> Callable[[Match[str]], str]:
    """Return a function that masks the value after an option of a matched command."""
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


def _mask_user(match: Match[str]) -> str:
    value = match["word"]
    return _masked(match, "word", value) if _is_random(value) and not _is_reference(value) else match[0]


def _mask_cookies(match: Match[str]) -> str:
    """Return the matched cookies, masked if they look random or belong to a login."""
    return _sub(patterns.COOKIE, _mask_cookie, match[0])


def _mask_cookie(match: Match[str]) -> str:
    name, value = match["name"].lower(), match["word"]
    is_session = any(each in name for each in patterns.COOKIE_NAMES) and len(value) >= 6
    is_secret = (len(value) >= 12 and _is_random(value)) or is_session
    if name in patterns.COOKIE_WORDS or not is_secret or _is_reference(value):
        return match[0]
    return _masked(match, "word", value)


def _mask_said(match: Match[str]) -> str:
    """Return `The password is VALUE`, masked if the value looks like a password."""
    kind = match.lastgroup or "word"
    value = match[kind].rstrip(".,;:!?)`") if kind == "word" else match[kind]
    is_quoted = kind != "word" and value.lower() not in patterns.PROSE and " " not in value
    if _is_reference(value) or not (_is_random(value) or is_quoted):
        return match[0]
    return _masked(match, kind, value)


def _mask_netrc(match: Match[str]) -> str:
    """Return the entry `machine h login u password value` with its password masked.

    If the entry is incomplete, the value is masked only if it looks random and the entry is at the beginning of its
    line.
    """
    kind = match.lastgroup or "word"
    value = match[kind].rstrip(",;)") if kind == "word" else match[kind]
    is_entry = match["entry"] and match["login"]
    is_part = (match["entry"] or match["login"]) and _begins_line(match) and _is_random(value)
    is_nothing = _is_reference(value) or _is_placeholder(value)
    return _masked(match, kind, value) if (is_entry or is_part) and not is_nothing else match[0]


def _mask_argument(match: Match[str]) -> str:
    """Return `--password value` with the value masked, unless the value is prose."""
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
    """Return an assignment such as `NAME=value` with the value masked if it is secret."""
    kind = match.lastgroup or "word"
    value = match[kind]
    if kind == "word" and match["sign"].startswith("%"):
        value = value.partition("%26")[0]
    if kind == "word":
        value = value.rstrip(",)]}") if match["key"].isupper() else _until(value, ",)]}")
    return _masked(match, kind, value) if _is_secret(match, kind, value) else match[0]


def _masked(match: Match[str], kind: str, value: str) -> str:
    """Return the matched text with its part `value` masked.

    The match's group `kind` is the beginning of `value`, and stays visible.
    """
    start = match.start(kind)
    return match.string[match.start() : start] + MASK + match.string[start + len(value) : match.end()]


def _is_secret(match: Match[str], kind: str, value: str) -> bool:
    """Return whether an assigned value is a secret.

    If the name is in capitals (`DB_PASSWORD`), the value is almost always a secret. Other names also occur in code and
    in prose, so their values must look like secrets as well.
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
    """Return whether an unquoted value, assigned to a lower-case name, is a secret."""
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
    """Return whether quoted words are a password, and not a label of a form.

    Several words are a secret only if a person chose them as a password. So the value must be assigned to the name of a
    password. Words count as a sentence, and not as a password, if only the first word begins with a capital letter.
    """
    words = [each.strip(".,:;!?()") for each in value.split()]
    is_sentence = words[0].istitle() and all(each.isalpha() and each.islower() for each in words[1:])
    is_about = any(each.lower() in patterns.ASKING or each.lower() in patterns.PROSE for each in words)
    return _is_password(key) and not (is_sentence or is_about or "passw" in value.lower() or value.endswith((":", "?")))


def _is_password(key: str) -> bool:
    return "pass" in key.lower() or "pw" in key.lower()


def _is_tight(match: Match[str]) -> bool:
    """Return whether a value is assigned without spaces, as in a shell or a URL."""
    return match["sign"] in ("=", "%3D", "%3d")


def _is_named_alike(value: str, name: str, key: str) -> bool:
    """Return whether a value repeats its name: `PASSWORD: "challengePassword"`."""
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
    """Return whether a value has letters and digits, and does not look like a name."""
    is_mixed = len(value) >= 6 and any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return is_mixed and not _is_slug(value)


def _is_slug(value: str) -> bool:
    from re import match  # noqa: PLC0415 - a launch must not load `re`, which is slow to import

    return match(patterns.SLUG, value) is not None


def _is_version(value: str) -> bool:
    from re import match  # noqa: PLC0415 - a launch must not load `re`, which is slow to import

    return match(patterns.VERSION, value) is not None


def _is_placeholder(value: str) -> bool:
    """Return whether a value is a word from help texts or from prose about an option."""
    return value.lower() in patterns.PROSE or (value.isupper() and value.endswith(patterns.PLACEHOLDERS))


def _is_nothing(match: Match[str], value: str) -> bool:
    """Return whether a value cannot be a secret, whatever its name is."""
    from re import match as fits  # noqa: PLC0415 - a launch must not load `re`, which is slow to import
    from re import search  # noqa: PLC0415 - a launch must not load `re`, which is slow to import

    return (
        _is_reference(value)
        or value.lower() in patterns.NOTHING
        or (len(value) < 6 and value.lstrip("-").replace(".", "").isdigit())
        or (len(value) == 1 and match["name"].lower() == "accesskey")  # HTML has an attribute of this name
        or fits(patterns.PATH, value) is not None
        or search(patterns.OTHER_TOKENS, _name_in_prose(match)) is not None
    )


def _name_in_prose(match: Match[str]) -> str:
    """Return the name of an assignment.

    If a colon follows the name, the result begins with the text before the name. For example, this is `unexpected` in
    `unexpected token:`, the message of a parser. This text can show that the value is not a secret.
    """
    before = match.string[max(0, match.start() - 16) : match.start()] if ":" in match["sign"] else ""
    return before.rpartition("\n")[2] + match["name"]


def _is_reference(value: str) -> bool:
    """Return whether the value only refers to a secret, or is already masked."""
    from re import match  # noqa: PLC0415 - a launch must not load `re`, which is slow to import

    is_masked = 0 <= value.find(MASK[:-1]) <= 28
    return is_masked or not any(map(str.isalnum, value)) or match(patterns.REFERENCE, value) is not None


def _is_code(value: str) -> bool:
    """Return whether the value is a call, an index or an attribute."""
    from re import match  # noqa: PLC0415 - a launch must not load `re`, which is slow to import

    return match(patterns.CODE, value) is not None


def _until(value: str, stops: str) -> str:
    return value[: min((at for stop in stops if (at := value.find(stop)) >= 0), default=len(value))]


# More specific rules come first, because they mask less of the text.
_RULES: tuple[tuple[tuple[str, ...], str, Callable[[Match[str]], str]], ...] = (
    (patterns.TOKEN_SIGNS, patterns.TOKEN, _mask_token),
    (("://",), patterns.URL, _mask_value),
    (("://",), patterns.URL_USER, _mask_user),
    (("cookie",), patterns.COOKIES, _mask_cookies),
    (("curl",), patterns.CURL_COOKIES, lambda command: _sub(patterns.CURL_COOKIE, _mask_cookies, command[0])),
    (("authorization", "x-api-key", "x-auth-", "x-goog-", "x-vault-", "private-token"), patterns.HEADER, _mask_header),
    (("bearer",), patterns.BEARER, _mask_value),
    (patterns.SIGNATURE_SIGNS, patterns.SIGNATURE, _mask_signature),
    (("password",), patterns.NETRC, _mask_netrc),
    *(((program,), command, _masking(option)) for program, command, option in patterns.PROGRAMS),
    (patterns.NAME_SIGNS, patterns.ASSIGNED_WHOLE, _mask_assigned),
    (patterns.NAME_SIGNS, patterns.ASSIGNED, _mask_assigned),
    (patterns.NAME_SIGNS, patterns.OPTION, _mask_argument),
    (("config",), patterns.CONFIGURED, _mask_argument),
    (patterns.SAID_SIGNS, patterns.SAID, _mask_said),
    (patterns.SQL_SIGNS, patterns.SQL, _mask_value),
)
