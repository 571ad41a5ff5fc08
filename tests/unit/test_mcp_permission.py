"""Whether the tool `run` may launch: only where the caller's shell is known to be free, or the user said so."""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from outlive.mcp.permission import RunRefused, check_may_run, why_not
from outlive.mcp.sessions import Caller
from outlive.service import claude_rules

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NO_RULES = {"permissions": {"allow": ["Bash(ls:*)"], "deny": ["Read(x)", "mcp__*"]}, "sandbox": {}}


def caller(directory: Path, **more: Any) -> Caller:
    """Somebody who works there."""
    return Caller(session=None, directory=str(directory), project=str(directory), **more)


@contextmanager
def client(*words: str) -> Iterator[tuple[int, int]]:
    """A process that looks as a client does that was started with these words, and a shell below it."""
    text = "sh -c 'echo $$; read -r line; :'; :"
    with subprocess.Popen(
        ["claude", "-c", text, "claude", *words], executable="/bin/sh", stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())


@pytest.fixture(autouse=True)
def managed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the settings of the machine's owner would be, without their ending."""
    monkeypatch.setattr(claude_rules, "MANAGED", str(tmp_path / "managed-settings"))
    return tmp_path / "managed-settings"


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
        {"permissions": {"deny": ["*"]}},
        {"permissions": {"deny": ["B*(rm:*)"]}},
        "not even a mapping, but text {",
    ],
)
@pytest.mark.parametrize(
    "where",
    [
        "home/.claude/settings.json",
        "home/.claude/remote-settings.json",
        "work/.claude/settings.local.json",
        "managed-settings.json",
        "managed-settings.d/50-shell.json",
    ],
)
def test_claude_is_free_unless_its_settings_say_otherwise(tmp_path: Path, settings: object, where: str) -> None:
    """A sandbox or a rule for its shell in any of its files, or a file that cannot be read."""
    (tmp_path / "work").mkdir()
    environ = {"HOME": str(tmp_path / "home")}
    path = tmp_path / where
    with client("--permission-mode", "default") as (process, _):
        who = caller(tmp_path / "work", client="claude-code", process=process)
        assert why_not(who, environ) is None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(NO_RULES))
        assert why_not(who, environ) is None
        path.write_text(settings if isinstance(settings, str) else json.dumps(settings))
        assert why_not(who, environ)


@pytest.mark.parametrize(
    "denied", ["disallowedTools: Edit, Bash", "disallowedTools:\n  - Edit\n  - 'B*'", "disallowedTools: ['*']"]
)
@pytest.mark.parametrize(
    "where",
    ["home/.claude/agents/deep/a.md", "home/.claude/plugins/cache/m/p/1/agents/a.md", "work/.claude/agents/a.md"],
)
def test_claude_is_not_free_if_an_agent_has_no_shell(tmp_path: Path, where: str, denied: str) -> None:
    """It does not say which of its agents calls."""
    (tmp_path / "work/below").mkdir(parents=True)
    environ = {"HOME": str(tmp_path / "home")}
    path = tmp_path / where
    path.parent.mkdir(parents=True)
    with client() as (process, _):
        who = caller(tmp_path / "work/below", client="claude-code", process=process)
        path.write_text("---\nname: a\ndisallowedTools: Edit\ntools: Bash\n---\ndisallowedTools: Bash\n")
        assert why_not(who, environ) is None
        path.write_text(f"---\nname: a\n{denied}\nmodel: b\n---\nBe careful.\n")
        assert str(path) in str(why_not(who, environ))


@pytest.mark.parametrize(
    "words",
    [
        ("--disallowedTools", "Bash"),
        ("--disallowed-tools=Bash",),
        ("--settings", '{"permissions":{"deny":["Bash"]}}'),
        ('--settings={"sandbox":{"enabled":true}}',),
        ("--tools", "Read"),
        ("--restricted",),
        ("x" * 100_000, "--disallowedTools", "Bash"),
    ],
)
def test_claude_is_not_free_if_it_was_started_with_rules(tmp_path: Path, words: tuple[str, ...]) -> None:
    """They are in no file. Between it and us there may be others, and then it is not our parent."""
    environ = {"HOME": str(tmp_path)}
    with client(*words) as processes:
        for process in processes:
            assert "was started with" in str(why_not(caller(tmp_path, client="claude-code", process=process), environ))


def test_claude_is_not_free_if_it_is_not_seen(tmp_path: Path) -> None:
    """What it was started with is not known then."""
    environ = {"HOME": str(tmp_path)}
    assert why_not(caller(tmp_path, client="claude-code"), environ)
    with client() as (gone, _):
        assert why_not(caller(tmp_path, client="claude-code", process=gone), environ) is None
    assert why_not(caller(tmp_path, client="claude-code", process=gone), environ)


def test_the_users_word_is_the_last(tmp_path: Path) -> None:
    """`on` allows what is not known, anything else refuses what is."""
    check_may_run(caller(tmp_path, is_distant=True), {"OUTLIVE_MCP_RUN": "on"})
    for said in ("off", "0", "yes"):
        with pytest.raises(RunRefused, match=said):
            check_may_run(caller(tmp_path, sandbox="none"), {"OUTLIVE_MCP_RUN": said})
