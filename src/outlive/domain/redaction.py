r"""Secrets, masked before they are shown; the only place that knows what one looks like.

A mask keeps what a person recognises the secret by: `ghp_[redacted]`, `DB_PASSWORD=[redacted]`,
`https://bob:[redacted]@host`. The patterns are few and precise, because a mask over what was no
secret hides the very line somebody looks for. So a format counts by its prefix and its length, and
a name (`..._TOKEN`, `password`) by what is assigned to it: `$TOKEN`, `<token>`, `/run/secrets/x`,
`str` and `next(tokens)` are no secrets.

Redact what `plain` has cleaned, or a colour may stand in the middle of a token; and redact before
cutting to a width, because half a secret is recognised less often than a whole one.

Every pattern takes time in proportion to the text: a part without bound is possessive or ends the
pattern, and cannot run over a place where the next match might begin. Only single characters are
repeated possessively; Python 3.11 before 3.11.5 is wrong about groups.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from re import Match

MASK = "[redacted]"
# One finds them all, one sees that; seldom a mask falls on what an earlier pattern took for a name. No text
# that a command writes may keep us longer.
_PASSES = 4

# --- formats: the group is what stays ---------------------------------------------------------

# A random word is told from an English one by an early digit, or by its length.
_RANDOM = r"(?=[A-Za-z]{0,19}\d|[A-Za-z0-9]{32})[A-Za-z0-9]{20,}"
_FORMATS = (
    r"(gh[oprsu]_)(?:[A-Za-z0-9]{10}|\d{1,12}_eyJ)\w*",  # GitHub
    r"(github_pat_)\w{10,}",
    r"(gl(?:pat|ptt|dt|rt|cbt)-)[\w-]{10,}(?:\.\w+)*",  # GitLab
    r"(A[KS]IA)[A-Z0-9]{16}(?![A-Za-z0-9])",  # AWS
    r"(AIza)[\w-]{20,}",  # Google: API key, access token, client secret
    r"(ya29\.)[\w-]{10,}(?:\.[\w-]+)*",
    r"(GOCSPX-)[\w-]{16,}",
    r"(xox[a-z]-|xapp-\d-)[\w-]{10,}",  # Slack, then the webhooks that need no other secret
    r"(hooks\.slack\.com/(?:services|workflows|triggers)/)[\w/-]{8,}",
    r"(discord(?:app)?\.com/api/webhooks/)\d+/[\w-]{8,}",
    r"(sk-ant-)[\w-]{8,}",  # Anthropic
    r"(sk-(?:proj|svcacct|or-v1)-)[\w-]{16,}",  # OpenAI, OpenRouter
    rf"(sk-|npm_|hf_|gsk_){_RANDOM}",  # OpenAI and its kin, npm, Hugging Face, Groq
    r"([sr]k_(?:live|test)_)[A-Za-z0-9]{10,}",  # Stripe
    r"(pypi-)(?:Ag[\w-]{16,}|\w{40,})",
    r"(do[opr]_v1_)[A-Za-z0-9]{20,}",  # DigitalOcean
    r"(dckr_pat_)[\w-]{12,}",  # Docker
    r"(hvs\.)[\w-]{24,}",  # Vault
    r"(SG\.)[\w-]{20,24}\.[\w-]{16,}",  # SendGrid
    r"(SK)[0-9a-f]{32}(?![A-Za-z0-9])",  # Twilio
    r"(\d{8,10}:)AA[\w-]{16,}",  # Telegram
    r"(AGE-SECRET-KEY-1)[A-Z0-9]{20,}",
    # JSON Web Tokens. Two parts are enough: the first may be missing from a tail.
    r"(?<![_-])(eyJ)[\w-]{8,}+\.[\w-]{16,}+(?:\.[\w-]+)*",
)
# Before a token a word ends; or a line does, escaped in JSON; or it is the `bot` of a Telegram URL.
_TOKEN = r"(?a)(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=/bot))(?:" + "|".join(_FORMATS) + ")"
_TOKEN_SIGNS = (
    *("gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_", "glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "AKIA"),
    *("ASIA", "AIza", "ya29.", "GOCSPX-", "xox", "xapp-", "hooks.slack.com/", "/webhooks/", "sk-", "npm_", "hf_"),
    *("gsk_", "k_live_", "k_test_", "pypi-", "_v1_", "dckr_pat_", "hvs.", "SG.", "SK", ":AA", "AGE-SECRET", "eyJ"),
)

_MARKER = r"(-----(?:BEGIN|END) [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----)"
_BREAK = r"(?:\s|\\[nr])"
_KEY_LINE = rf"""[A-Za-z0-9+/]{{16,}}+={{0,2}}(?:{_BREAK}+|(?=["']|\Z))"""
_KEY_BEGUN = rf"{_BREAK}*(?:[A-Z][A-Za-z-]{{2,20}}: [^\n]*+\n\s*+)*(?:{_KEY_LINE})+(?:[A-Za-z0-9+/=]+\Z)?"
_KEY_ENDED = rf"(?:\A[A-Za-z0-9+/]++{_BREAK}+)?(?:{_KEY_LINE})+(?:[A-Za-z0-9+/=]++{_BREAK}*)?"

# --- places: what stands there is a secret, whatever it looks like ----------------------------

# How a value is written: within quotes, within quotes that are escaped themselves, or as a word.
_VALUE = (
    r"""(?:"(?P<double>[^"\\\n]*+(?:\\.[^"\\\n]*+)*)"|'(?P<single>[^'\\\n]*+(?:\\.[^'\\\n]*+)*)'"""
    r"""|\\++["'](?P<escaped>[^\\"'\n]++)"""
    r"""|(?P<word>[^\s"'`;&|<>\\]++(?:\\(?!["'nrt])[^\s"'`;&|<>\\]*+)*))"""
)
# Up to the last @, because people forget to escape the one in a password.
_URL = r"""://[^\s/?#:@"'<>]*+:(?P<word>[^\s/?#"'<>,]+)@(?!sha256:)"""
_HEADER = (
    r"""(?ai)(?:(?P<auth>authorization)|x-(?:api-key|auth-token|goog-api-key|vault-token)|private-token)"""
    r"""\\*+["']?[ \t]*+[:=][ \t]*+\\*+["']?(?P<scheme>(?:bearer|basic|token) ++)?(?P<word>[^\s"'\\,;\]]++)"""
)
_BEARER = r"(?ai)(?<![\w-])bearer ++(?=[a-z._~+/-]{0,40}\d)(?P<word>[\w.~+/=-]{20,})"
# Options that mean a password only after the name of their program: the rest of its command, the option.
_PROGRAMS = (
    ("mysql", r"(?a)(?<![\w.-])mysql\w*+ [^\n|;&]*+", r""" ["']?-p(?![\d:.]+(?:\s|\Z))"""),
    ("mariadb", r"(?a)(?<![\w.-])mariadb[a-z-]*+ [^\n|;&]*+", r""" ["']?-p(?![\d:.]+(?:\s|\Z))"""),
    ("sshpass", r"(?<![\w.-])sshpass [^\n|;&]*+", r"""(?<=sshpass) ["']?-p ?"""),
    ("login", r"(?:docker|podman|skopeo|helm registry) login [^\n|;&]*+", r" -p "),
    ("curl", r"(?<![\w.-])curl [^\n|;]*+", r""" (?:-[uU] ?|--(?:proxy-)?user[ =])["']?[^\s:"'-][^\s:"']*+:"""),
    ("redis-cli", r"redis-cli [^\n|;&]*+", r" (?:-a|--pass) "),
    ("openssl", r"openssl [^\n|;&]*+", r" -pass(?:in|out)? pass:"),
)

# --- names: what is assigned to them is a secret, if it looks like one ------------------------

_KEY = (
    r"(?P<key>token|secret|passw(?:or)?d|passphrase|(?:api|access|private|secret|account|master|encryption|signing)[_-]?key|credentials"
    r"|db_pass|smtp_pass|mysql_pwd)"
)
_ASSIGNED = (
    rf"""(?ai)(?<![\w.-])(?P<name>[\w.-]{{0,60}}?{_KEY})"""
    rf"""\\*+["']?\]?(?P<sign>[ \t]*+(?:=>|:=|=(?!=)|:(?!:))[ \t]*+){_VALUE}"""
)
# In quotes from name to end, as a shell wants it: the value may have spaces. A whole command (-c) is not that.
_ASSIGNED_WHOLE = (
    rf"""(?ai)(?<=(["']))(?<!-c ["'])(?P<name>[\w.-]{{0,60}}?{_KEY})(?P<sign>=)"""
    r"""(?P<whole>[^"'&;\n]++(?:(?!\1|[&;][\w-]{1,40}=)["'&;][^"'&;\n]*+)*)(?=\1|[&;])"""
)
_OPTION = rf"(?ai)(?<![\w-])(?P<name>--?[\w-]{{0,60}}?{_KEY})(?P<sign>[ \t]++){_VALUE}"
_NAME_SIGNS = ("token", "secret", "passw", "passphrase", "key", "credentials", "_pass", "_pwd")

# By themselves these words are common in code and prose.
_VAGUE = frozenset(("token", "secret", "credentials"))
# ... and these are tokens of lexers, of language models, of pages.
_OTHER_TOKENS = (
    r"(?:^|[^A-Za-z]|(?<=[a-z])(?=[A-Z]))(?i:next|prev|page|starting|continuation|resume|sync|cancellation|start|stop"
    r"|end|first|last|current|max|min|num|n|per|pad|eos|bos|unk|sep|cls|mask|special|image)[_-]?(?i:token)$"
)
_REFERENCE = (
    r"(?ai)\$[({]|\$[a-z_]\w*+(?!\$)|\{(?!\w+\}.)|[`<]|\[[a-z]|%(?:[a-z_]+%|[srd]\b|\()"
    r"|!(?:vault|ref|sub|secret|getatt|env|reference)\b|your[_-]|#[0-9a-f]{3,8}$|(?:op|file|vault|sm|ssm|env|arn):"
    r"|process\.env|import\.meta|os\.(?:environ|getenv)|(?:self|this|args|config|settings|secrets|env)\.[a-z_]"
)
_PATH = r"(?a)(?:~|\.{1,2})/|/(?:[a-z][a-z-]+|Users|Volumes)(?:/|$)|[\w./-]+\.(?:json|pem|key|txt|ya?ml|env|crt|p12)$"
_CODE = r"(?a)[A-Za-z_][\w.]*+[(\[]|[A-Za-z_]+(?:\.[A-Za-z_]+)+$"
_NOTHING = frozenset(("true", "false", "yes", "no", "on", "off", "null", "none", "nil", "undefined"))
_PROSE = frozenset(
    (
        *("str", "string", "bytes", "int", "integer", "number", "bool", "boolean", "any", "object", "text", "unknown"),
        *("required", "optional", "invalid", "incorrect", "wrong", "missing", "expired", "changed", "updated", "set"),
        *(
            "unset",
            "hidden",
            "empty",
            "include",
            "omit",
            "same-origin",
            "bearer",
            "basic",
            "value",
            "option",
            "options",
            "flag",
        ),
        *("a", "an", "and", "are", "argument", "as", "at", "before", "by", "can", "cannot", "for", "from", "has", "if"),
        *("in", "instead", "is", "must", "needs", "not", "of", "or", "requires", "so", "the", "then", "to", "via"),
        *("was", "when", "which", "will", "with", "without", "auth", "authentication", "token", "password", "secret"),
    )
)
_PLACEHOLDERS = ("TOKEN", "SECRET", "PASSWORD", "PASS", "KEY", "FILE", "PATH", "NAME", "CREDENTIALS")


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
    seen = f"{text}\n{text.lower()}"
    for signs, pattern, replace in _RULES:
        if any(sign in seen for sign in signs):
            text = _sub(pattern, replace, text)
    return text


def may_begin_secret(text: str) -> bool:
    """Whether what follows might make a secret of the end of this text: a token, or a key that has begun."""
    last = text[max(text.rfind(c) for c in " \t\n\r") + 1 :]
    if any(sign in last for sign in _TOKEN_SIGNS):
        return True
    begun = text.rfind("PRIVATE KEY-----")
    return begun >= 0 and "-----BEGIN" in text[max(0, begun - 60) : begun]


def redact_words(words: Sequence[str]) -> list[str]:
    """The words of a command, masked as within the whole: only the option before it tells a password."""
    shown = []
    program = [each for each in words[:2] if not each.startswith("-")]
    for at, word in enumerate(words):
        lead = dict.fromkeys((*program[:at], *words[max(at - 1, 0) : at]))
        opening = " ".join(each for each in lead if each.isascii() and each.replace("-", "").isalnum()) + " '"
        quoted = redact(f"{opening}{word}'")
        is_whole = quoted.startswith(opening) and quoted.endswith("'")
        shown.append(quoted[len(opening) : -1] if is_whole else redact(word))
    return shown


def _sub(pattern: str, replace: Callable[[Match[str]], str], text: str) -> str:
    """`re.sub`, which keeps what it has compiled; late, because a launch shows nothing and could not afford it."""
    from re import sub  # noqa: PLC0415 - see above

    return sub(pattern, replace, text)


def _without_keys(text: str) -> Iterator[str]:
    """The text without the insides of private keys, also of one that began before it or ends after it."""
    from re import finditer, match, search, split  # noqa: PLC0415 - see `_sub`

    pieces = ["", *split(_MARKER, text), ""]
    for before, piece, after in zip(pieces[::2], pieces[1::2], pieces[2::2], strict=False):
        is_begun, is_ended = before.startswith("-----BEGIN"), after.startswith("-----END")
        start, end = 0, 0
        if is_begun and is_ended:
            end = len(piece) if search(r"[A-Za-z0-9+/]{32}", piece) else 0
        elif is_begun:
            found = match(_KEY_BEGUN, piece)
            end = found.end() if found else 0
        elif is_ended:
            for found in finditer(_KEY_ENDED, piece):
                start, end = found.span()
            end = end if end == len(piece) else start
        yield from (piece[:start], MASK if start < end else "", piece[end:], after)


def _mask_token(match: Match[str]) -> str:
    return f"{match[match.lastindex or 0]}{MASK}"


def _mask_value(match: Match[str]) -> str:
    kind = match.lastgroup or "word"
    return match[0] if _is_reference(match[kind]) else _masked(match, kind, match[kind])


def _masking(option: str) -> Callable[[Match[str]], str]:
    """Mask what follows the option in a command."""
    return lambda command: _sub(option + _VALUE, _mask_value, command[0])


def _mask_header(match: Match[str]) -> str:
    value = match["word"]
    is_known = not match["auth"] or match["scheme"]
    if _is_reference(value) or value.lower() in _PROSE or not (is_known or (_is_random(value) and not _is_code(value))):
        return match[0]
    return _masked(match, "word", value)


def _mask_argument(match: Match[str]) -> str:
    """`--password value`; of what stands after an option in prose and in help texts, nothing."""
    kind = match.lastgroup or "word"
    value = match[kind].rstrip(",.)]}") if kind == "word" else match[kind]
    is_named = match["name"].lstrip("-").lower() not in _VAGUE and not match["key"].lower().startswith("private")
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
    name, key, is_tight = match["name"].rpartition(".")[2], match["key"], match["sign"] == "="
    if _is_nothing(match, value) or (not is_tight and _is_named_alike(value, name, key)):
        return False
    if key.isupper() and is_tight:
        return True
    if (kind == "word" and _is_code(value)) or (kind != "whole" and " " in value):
        return False
    if key.isupper() and ("_" in name or kind != "word"):
        return True
    if name.startswith("-"):
        return not _is_placeholder(value)
    if value.lower() in _PROSE or (name.lower() in _VAGUE and not _is_random(value)):
        return False
    return kind != "word" or _is_quiet_secret(match, value)


def _is_quiet_secret(match: Match[str], value: str) -> bool:
    """The same of a word without quotes that is assigned to a quiet name."""
    key, is_identifier = match["key"].lower(), value.replace("_", "").isalpha()
    if is_identifier and key in value.lower():
        return False
    if match["sign"] == "=":
        follows = match.start("word") + len(value)
        return not (is_identifier and match.string[follows : follows + 1] in (",", ")"))
    if _is_random(value):
        return match["name"].lower() not in _VAGUE or _begins_line(match)
    return ":" in match["sign"] and key.startswith("pass") and _begins_line(match) and _ends_line(match)


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
    return len(value) >= 6 and any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _is_placeholder(value: str) -> bool:
    """Whether a help text or a sentence says this of an option."""
    return value.lower() in _PROSE or (value.isupper() and value.endswith(_PLACEHOLDERS))


def _is_nothing(match: Match[str], value: str) -> bool:
    """Whether a value keeps no secret, whatever it is assigned to."""
    from re import match as fits  # noqa: PLC0415 - see `_sub`
    from re import search  # noqa: PLC0415

    return (
        _is_reference(value)
        or value.lower() in _NOTHING
        or (len(value) < 6 and value.lstrip("-").replace(".", "").isdigit())
        or (len(value) == 1 and match["name"].lower() == "accesskey")  # of HTML
        or fits(_PATH, value) is not None
        or search(_OTHER_TOKENS, match["name"]) is not None
    )


def _is_reference(value: str) -> bool:
    """Whether it only says where the secret is, or has been masked by us or by somebody else."""
    from re import match  # noqa: PLC0415 - see `_sub`

    is_masked = 0 <= value.find(MASK[:-1]) <= 28
    return is_masked or not any(map(str.isalnum, value)) or match(_REFERENCE, value) is not None


def _is_code(value: str) -> bool:
    """Whether it is a call, an index or an attribute."""
    from re import match  # noqa: PLC0415 - see `_sub`

    return match(_CODE, value) is not None


def _until(value: str, stops: str) -> str:
    return value[: min((at for stop in stops if (at := value.find(stop)) >= 0), default=len(value))]


# In this order: the more a rule knows, the more it lets stay.
_RULES: tuple[tuple[tuple[str, ...], str, Callable[[Match[str]], str]], ...] = (
    (_TOKEN_SIGNS, _TOKEN, _mask_token),
    (("://",), _URL, _mask_value),
    (("authorization", "x-api-key", "x-auth-", "x-goog-", "x-vault-", "private-token"), _HEADER, _mask_header),
    (("bearer",), _BEARER, _mask_value),
    *(((program,), command, _masking(option)) for program, command, option in _PROGRAMS),
    (_NAME_SIGNS, _ASSIGNED_WHOLE, _mask_assigned),
    (_NAME_SIGNS, _ASSIGNED, _mask_assigned),
    (_NAME_SIGNS, _OPTION, _mask_argument),
)
