"""Whether the tool `run` may launch: only where the caller's shell is known to be free, or the user said so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from outlive.mcp.permission import RunRefused, check_may_run, why_not
from outlive.mcp.sessions import Caller

if TYPE_CHECKING:
    from pathlib import Path


def caller(directory: Path, **more: Any) -> Caller:
    """Somebody who works there."""
    return Caller(session=None, directory=str(directory), project=str(directory), **more)


def test_what_is_not_known_is_not_allowed(tmp_path: Path) -> None:
    """A client that says nothing of its shell, or says it over HTTP."""
    environ = {"HOME": str(tmp_path)}
    assert why_not(caller(tmp_path), environ)
    assert why_not(caller(tmp_path, client="some-client"), environ)
    assert why_not(caller(tmp_path, sandbox="none", is_distant=True), environ)


def test_codex_says_whether_its_shell_is_sandboxed(tmp_path: Path) -> None:
    """Only `none` is free; a word that we do not know is not."""
    assert why_not(caller(tmp_path, sandbox="none"), {}) is None
    for sandbox in ("seccomp", "seatbelt", "external", "None"):
        assert why_not(caller(tmp_path, sandbox=sandbox), {})


@pytest.mark.parametrize(
    "settings",
    [
        {"sandbox": {"enabled": True}},
        {"permissions": {"deny": ["Read(./.env)", "Bash(curl:*)"]}},
        {"permissions": {"ask": ["Bash"]}},
        "not even a mapping, but text {",
    ],
)
@pytest.mark.parametrize("where", ["home/.claude/settings.json", "work/.claude/settings.local.json"])
def test_claude_is_free_unless_its_settings_say_otherwise(tmp_path: Path, settings: object, where: str) -> None:
    """A sandbox or a rule for its shell in any of its files, or a file that cannot be read."""
    (tmp_path / "work").mkdir()
    environ = {"HOME": str(tmp_path / "home")}
    who = caller(tmp_path / "work", client="claude-code")
    assert why_not(who, environ) is None
    path = tmp_path / where
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"permissions": {"allow": ["Bash(ls:*)"], "deny": ["Read(x)"]}, "sandbox": {}}))
    assert why_not(who, environ) is None
    path.write_text(settings if isinstance(settings, str) else json.dumps(settings))
    assert why_not(who, environ)


def test_the_users_word_is_the_last(tmp_path: Path) -> None:
    """`on` allows what is not known, anything else refuses what is."""
    check_may_run(caller(tmp_path, is_distant=True), {"OUTLIVE_MCP_RUN": "on"})
    for said in ("off", "0", "yes"):
        with pytest.raises(RunRefused, match=said):
            check_may_run(caller(tmp_path, sandbox="none"), {"OUTLIVE_MCP_RUN": said})
