"""Whether the MCP tool `run` may launch a task.

This depends on whether the caller's shell is unrestricted. The user may allow or forbid launches with OUTLIVE_MCP_RUN.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from outlive.mcp.caller import Caller
from outlive.mcp.permission import RunRefused, check_may_run, why_not
from outlive.service.sessions import claude_restrictions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NO_RULES = {"permissions": {"allow": ["Bash(ls:*)"], "deny": ["Read(x)", "mcp__*"]}, "sandbox": {}}


def caller(directory: Path, **more: Any) -> Caller:
    """Return a caller that works in a directory."""
    return Caller(session=None, directory=str(directory), project=str(directory), **more)


@contextmanager
def client(*words: str) -> Iterator[tuple[int, int]]:
    """Start a process that looks like a client with arguments, and a shell in it.

    Yields the process ids of the client and of the shell.
    """
    text = "sh -c 'echo $$; read -r line; :'; :"
    with subprocess.Popen(
        ["claude", "-c", text, "claude", *words], executable="/bin/sh", stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        yield process.pid, int(process.stdout.readline())


@pytest.fixture(autouse=True)
def managed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of the managed settings, without its suffix."""
    monkeypatch.setattr(claude_restrictions, "MANAGED", str(tmp_path / "managed-settings"))
    return tmp_path / "managed-settings"


def test_run_is_refused_when_the_callers_shell_is_unknown(tmp_path: Path) -> None:
    """`run` is refused if the caller's shell is unknown: the client does not describe it, or calls over HTTP."""
    environ = {"HOME": str(tmp_path)}
    assert why_not(caller(tmp_path), environ)
    assert why_not(caller(tmp_path, client="some-client"), environ)
    assert why_not(caller(tmp_path, sandbox="none", is_distant=True), environ)


def test_run_is_allowed_for_codex_only_without_a_sandbox(tmp_path: Path) -> None:
    """For Codex, `run` is allowed only if the sandbox is `none`. An unknown value counts as a sandbox."""
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
def test_run_is_refused_for_claude_when_its_settings_restrict_the_shell(
    tmp_path: Path, settings: object, where: str
) -> None:
    """For Claude Code, `run` is refused if a settings file has a sandbox or a rule for the shell, or cannot be read."""
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
def test_run_is_refused_for_claude_when_an_agent_has_no_shell(tmp_path: Path, where: str, denied: str) -> None:
    """For Claude Code, `run` is refused if any agent has no shell, because it is not known which agent calls."""
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
def test_run_is_refused_for_claude_when_it_was_started_with_rules(tmp_path: Path, words: tuple[str, ...]) -> None:
    """For Claude Code, `run` is refused if its command line has rules, even if it is not the server's parent."""
    environ = {"HOME": str(tmp_path)}
    with client(*words) as processes:
        for process in processes:
            assert "was started with" in str(why_not(caller(tmp_path, client="claude-code", process=process), environ))


def test_run_is_refused_for_claude_when_its_process_is_not_found(tmp_path: Path) -> None:
    """For Claude Code, `run` is refused if its process is not found. Rules on its command line are then unknown."""
    environ = {"HOME": str(tmp_path)}
    assert why_not(caller(tmp_path, client="claude-code"), environ)
    with client() as (gone, _):
        assert why_not(caller(tmp_path, client="claude-code", process=gone), environ) is None
    assert why_not(caller(tmp_path, client="claude-code", process=gone), environ)


def test_outlive_mcp_run_overrides_every_other_rule(tmp_path: Path) -> None:
    """OUTLIVE_MCP_RUN has precedence: `on` allows an unknown caller, and any other value refuses a known one."""
    check_may_run(caller(tmp_path, is_distant=True), {"OUTLIVE_MCP_RUN": "on"})
    for said in ("off", "0", "yes"):
        with pytest.raises(RunRefused, match=said):
            check_may_run(caller(tmp_path, sandbox="none"), {"OUTLIVE_MCP_RUN": said})
