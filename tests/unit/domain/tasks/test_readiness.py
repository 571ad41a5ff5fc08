"""Conditions of readiness, as users write them."""

from __future__ import annotations

import pytest

from outlive.domain.errors import UserError
from outlive.domain.tasks.readiness import parse_ready, resolve_ports


@pytest.mark.parametrize(
    ("text", "kind", "value", "port"),
    [
        ("port:5173", "port", "5173", 5173),
        ("port:web", "port", "web", None),
        ("http://localhost:3000/health?full=1", "http", "http://localhost:3000/health?full=1", 3000),
        ("http:http://[::1]:80/", "http", "http://[::1]:80/", 80),
        ("http:http://localhost", "http", "http://localhost", 80),
        ("log:listening on \\d+: ok", "log", "listening on \\d+: ok", None),
        ("cmd:pg_isready -q", "cmd", "pg_isready -q", None),
        ("file:dist/index.html", "file", "dist/index.html", None),
        ("notify", "notify", "", None),
    ],
)
def test_condition_is_parsed(text: str, kind: str, value: str, port: int | None) -> None:
    """Each documented form gives its kind, its value and its port."""
    found = parse_ready(text)
    assert (found.kind, found.value, found.port) == (kind, value, port)
    assert parse_ready(found.text) == found


@pytest.mark.parametrize(
    "text",
    [
        *("", "ready", "port", "port:", "port:0", "port:65536", "port:a b", "port:-1", "tcp:5173", "notify:x"),
        *("http:", "http:localhost", "http://", "http://localhost:99999/", "http://a b/", "https://localhost/"),
        *("http:https://localhost", "log:(", "log:", "cmd:", "file:", "file:a\0b", "port:²"),
    ],
)
def test_condition_is_refused_with_a_hint_when_it_is_not_valid(text: str) -> None:
    """Every other text is an error that says what to write."""
    with pytest.raises(UserError) as refused:
        parse_ready(text)
    assert refused.value.hint


def test_names_of_leased_ports_become_numbers() -> None:
    """A name of `port:NAME` and a placeholder in any other condition are replaced."""
    ports = {"web": 20001, "api": 20002}
    assert resolve_ports(parse_ready("port:api"), ports).port == 20002
    assert resolve_ports(parse_ready("port:80"), ports).port == 80
    assert resolve_ports(parse_ready("http://localhost:{port:web}/"), ports).port == 20001
    assert resolve_ports(parse_ready("cmd:nc -z localhost {port:api}"), ports).value == "nc -z localhost 20002"
    with pytest.raises(UserError, match="has not leased; the task has web, api") as refused:
        resolve_ports(parse_ready("port:db"), ports)
    assert "--port db" in refused.value.hint
