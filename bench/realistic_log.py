"""A realistic log text of any size, with lines of builds, servers and tests.

The same size always gives the same text. About one line in fourteen contains a word such as `token` or `key`, and one
in two hundred contains a secret. The secrets are invented.
"""

from __future__ import annotations

import random
import string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_TEXT = (
    "loading parsing writing reading module package request response handler cache index table column session user"
    " account order payment invoice shipping retry timeout connection socket buffer thread worker queue event timer"
    " started finished failed skipped opened closed updated removed created merged resolved compiled linked copied"
)
_WORDS = _TEXT.split()
_HARMLESS_NAMES = (
    "next token: {number}",
    "cache key user:{number} missed",
    "max_tokens={number} temperature=0.2",
    "foreign key constraint on {word}_id checked",
    "token expired, asking for another one",
    "keyboard layout: us",
    "password changed for account {number}",
    "Accepted publickey for deploy from 10.0.3.{byte} port {number} ssh2",
    "SELECT id, token, key FROM {word} WHERE id = {number}",
    "secret scanning found nothing in {number} files",
)


def realistic_log(size: int, *, has_secrets: bool = True) -> str:
    """Return a log of at least `size` characters in whole lines."""
    source = random.Random(20260621)
    kinds = (_plain, _access, _json, _test, _compiler, _coloured, _commit, _install)
    lines: list[str] = []
    written = 0
    while written < size:
        chance = source.random()
        if has_secrets and chance < 0.005:
            line = _secret(source)
        elif has_secrets and chance < 0.07:
            line = f"{_time(source)} INFO {_filled(source, source.choice(_HARMLESS_NAMES))}"
        else:
            line = source.choice(kinds)(source)
        lines.append(line)
        written += len(line) + 1
    return "\n".join(lines) + "\n"


def _filled(source: random.Random, text: str) -> str:
    number, byte = source.randrange(100_000), source.randrange(256)
    return text.format(number=number, byte=byte, word=source.choice(_WORDS))


def _time(source: random.Random) -> str:
    return (
        f"2026-06-{source.randrange(1, 29):02}T{source.randrange(24):02}:{source.randrange(60):02}"
        f":{source.randrange(60):02}.{source.randrange(1000):03}Z"
    )


def _words(source: random.Random, count: int) -> str:
    return " ".join(source.choices(_WORDS, k=count))


def _hex(source: random.Random, count: int) -> str:
    return f"{source.getrandbits(count * 4):0{count}x}"


def _plain(source: random.Random) -> str:
    level = source.choice(("DEBUG", "INFO", "INFO", "WARN"))
    return f"{_time(source)} {level} [{source.choice(_WORDS)}-{source.randrange(32)}] {_words(source, 7)}"


def _access(source: random.Random) -> str:
    path = "/".join(source.choices(_WORDS, k=3))
    return (
        f'10.0.{source.randrange(256)}.{source.randrange(256)} - - [{_time(source)}] "GET /{path}?page='
        f'{source.randrange(90)} HTTP/1.1" 200 {source.randrange(90_000)} "-" "Mozilla/5.0 (X11; Linux x86_64)"'
    )


def _json(source: random.Random) -> str:
    return (
        f'{{"at": "{_time(source)}", "level": "info", "id": "{_hex(source, 16)}", "took_ms": {source.randrange(900)},'
        f' "message": "{_words(source, 5)}"}}'
    )


def _test(source: random.Random) -> str:
    name = "_".join(source.choices(_WORDS, k=4))
    return f"tests/unit/test_{source.choice(_WORDS)}.py::test_{name} PASSED  [{source.randrange(101):3}%]"


def _compiler(source: random.Random) -> str:
    file = f"src/{source.choice(_WORDS)}/{source.choice(_WORDS)}.c"
    return f"{file}:{source.randrange(900)}:{source.randrange(80)}: warning: unused variable '{source.choice(_WORDS)}'"


def _coloured(source: random.Random) -> str:
    return f"\x1b[32m  ok\x1b[0m {_words(source, 4)} \x1b[2m({source.randrange(900)} ms)\x1b[0m"


def _commit(source: random.Random) -> str:
    return f"{_hex(source, 40)} {_words(source, 5)}"


def _install(source: random.Random) -> str:
    return (
        f"Get:{source.randrange(90)} https://deb.example.org/debian stable/main amd64 lib{source.choice(_WORDS)} 1.2-3"
    )


def _secret(source: random.Random) -> str:
    body = "".join(source.choices(string.ascii_letters + string.digits, k=40))
    kinds: tuple[Callable[[], str], ...] = (
        lambda: f"{_time(source)} INFO using ghp_{body[:36]}",
        lambda: f"DB_PASSWORD={body[:16]} make deploy",
        lambda: f"postgres://app:{body[:14]}@db.example.org:5432/shop",
        lambda: f"> Authorization: Bearer {body}",
        lambda: f'{{"user": "bob", "access_token": "{body}"}}',
        lambda: f"mysql -u root -p{body[:12]} shop",
    )
    return source.choice(kinds)()
