"""Conditions of readiness: the facts that show that a server can be used.

A user writes a condition as a text: `port:N`, `port:NAME`, `http:URL`, `log:REGEX`, `cmd:CMD`, `file:PATH` or `notify`.
"""

from __future__ import annotations

from outlive.domain.errors import UserError
from outlive.domain.tasks.ports import is_port_name, with_ports
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Mapping
    from typing import Literal

    ReadyKind = Literal["port", "http", "log", "cmd", "file", "notify"]

KINDS: tuple[ReadyKind, ...] = ("port", "http", "log", "cmd", "file", "notify")
_FORMS = "port:N, port:NAME, http:URL, log:REGEX, cmd:CMD, file:PATH or notify"
_HIGHEST_PORT = 65535
_HTTP_PORT = 80


class ReadyCondition(Value):
    """One condition of readiness."""

    kind: ReadyKind
    value: str = ""
    """The text after the colon. Empty for `notify`."""

    @property
    def text(self) -> str:
        """The condition as a user writes it."""
        return f"{self.kind}:{self.value}" if self.value else self.kind

    @property
    def port(self) -> int | None:
        """The port that the condition is about.

        None if the condition is not about a port, or if its port is still a name.
        """
        if self.kind == "port":
            return int(self.value) if self.value.isdigit() else None
        return url_parts(self.value)[1] if self.kind == "http" else None


def parse_ready(text: str) -> ReadyCondition:
    """Return the condition that a text describes.

    Raises `UserError` for any other text.
    """
    kind, colon, value = text.partition(":")
    if text == "notify":
        return ReadyCondition(kind="notify")
    found = next((each for each in KINDS if each == kind), None)
    if found is None or found == "notify" or not colon or not value or "\0" in value:
        raise UserError(f"{text!r} is no condition of readiness", f"give {_FORMS}")
    if found == "port":
        _check_port(value)
    elif found == "http":
        value = _checked_url(value)
    elif found == "log":
        compile_pattern(value)
    return ReadyCondition(kind=found, value=value)


def resolve_ports(condition: ReadyCondition, ports: Mapping[str, int]) -> ReadyCondition:
    """Return a condition in which the names of leased ports are numbers.

    Raises `UserError` if the condition names a port that was not leased.
    """
    if condition.kind == "port" and not condition.value.isdigit():
        number = ports.get(condition.value)
        if number is None:
            known = f"; the task has {', '.join(ports)}" if ports else ""
            raise UserError(
                f"{condition.text} names a port that this task has not leased{known}",
                f"add `--port {condition.value}`, or give the number of the port",
            )
        return condition.but(value=str(number))
    return condition.but(value=with_ports(condition.value, ports))


def url_parts(url: str) -> tuple[str, int, str]:
    """Return the host, the port and the path with the query of an HTTP URL."""
    from urllib.parse import urlsplit  # noqa: PLC0415 - importing `urllib.parse` is slow, and only HTTP conditions need it

    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return parts.hostname or "", parts.port or _HTTP_PORT, path


def _check_port(value: str) -> None:
    if value.isascii() and value.isdigit():
        if not 0 < int(value) <= _HIGHEST_PORT:
            raise UserError(f"port:{value} is no port", f"give a number from 1 to {_HIGHEST_PORT}")
    elif not is_port_name(value):
        raise UserError(f"port:{value} is no port", "give a number, or the name of a port from --port NAME")


def _checked_url(value: str) -> str:
    """Return the URL of an HTTP condition.

    `http:http://HOST` and `http://HOST` mean the same.
    """
    url = f"http:{value}" if value.startswith("//") else value
    hint = "give a URL such as http://localhost:3000/health"
    if url.startswith("https://"):
        raise UserError(f"{url!r} cannot be checked, because it needs TLS", f"use `cmd:curl -kfsS {url}`")
    if not url.startswith("http://"):
        raise UserError(f"http:{value} has no URL", hint)
    try:
        host, _, _ = url_parts(with_ports_of_any_name(url))
    except ValueError as error:
        raise UserError(f"{url!r} is no URL: {error}", hint) from error
    if not host or any(each <= " " for each in url):
        raise UserError(f"{url!r} is no URL", hint)
    return url


def with_ports_of_any_name(url: str) -> str:
    """Return a URL in which a placeholder for a port is replaced by a number."""
    before, found, after = url.partition("{port:")
    return f"{before}{_HTTP_PORT}{after.partition('}')[2]}" if found else url


def compile_pattern(text: str) -> re.Pattern[str]:
    """Return the regular expression in a text. Raise `UserError` if it is invalid."""
    import re  # noqa: PLC0415 - only a condition on the output needs this import

    try:
        return re.compile(text)
    except re.error as error:
        raise UserError(f"{text!r} is not a regular expression: {error}", "quote special characters with \\") from error
