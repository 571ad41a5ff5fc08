"""Whether the MCP server launches tasks, which depends on the rights of the caller's shell."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from tests.mcp_steps import CODEX_FREE, HttpServer, ask, document_of, over_http, over_stdio, play, text_of

if TYPE_CHECKING:
    from tests.support import Bench

CODEX_BOXED = {"x-codex-turn-metadata": {"session_id": "codex-session-1", "sandbox": "seccomp"}}


@pytest.mark.parametrize(
    ("env", "meta", "why"),
    [
        ({}, None, "does not know whether"),
        ({}, CODEX_BOXED, "sandboxed (seccomp)"),
        ({"OUTLIVE_MCP_RUN": "off"}, CODEX_FREE, "OUTLIVE_MCP_RUN is 'off'"),
    ],
)
def test_run_tool_is_refused_when_the_clients_shell_may_be_restricted(
    bench: Bench, env: dict[str, str], meta: dict[str, Any] | None, why: str
) -> None:
    """`run` is refused if the client's shell may be restricted. The error gives the reason and the next step."""

    async def steps() -> None:
        async with over_stdio(bench, "legacy", env) as client:
            refused = await client.call_tool("run", {"command": "touch launched"}, meta=meta)  # type: ignore[arg-type]
            fact, hint = text_of(refused).split("\n")
            assert refused.is_error
            assert why in fact
            assert "outlive run -- CMD" in hint
            more = {} if meta is None else {"_meta": meta}
            with pytest.raises(MCPError, match="does not launch tasks"):
                await ask(client, "tools/call", name="run", arguments={"command": "true"}, task={}, **more)

    play(steps)
    assert bench.json("list")["tasks"] == []


def test_run_tool_is_refused_over_http(bench: Bench) -> None:
    """`run` is refused over HTTP, because the server does not know which client calls."""
    server = HttpServer(bench)

    async def steps() -> None:
        async with over_http(server, "legacy") as client:
            assert "over HTTP" in text_of(await client.call_tool("run", {"command": "true"}, meta=CODEX_FREE))  # type: ignore[arg-type]

    try:
        play(steps)
    finally:
        server.end()


def test_run_tool_launches_for_codex_in_its_session_and_directory(bench: Bench) -> None:
    """For Codex, `run` launches a task in the session and directory that Codex sends with each call.

    Codex also sends its sandbox setting. In this test, the sandbox is off.
    """
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    meta = {**CODEX_FREE, "codex/sandbox-state-meta": {"sandboxCwd": elsewhere.as_uri()}}

    async def steps() -> None:
        async with over_stdio(bench, "legacy", {}) as client:
            assert "codex/sandbox-state-meta" in (client.server_capabilities.experimental or {})
            task = document_of(await client.call_tool("run", {"command": "pwd", "wait": "45s"}, meta=meta))  # type: ignore[arg-type]
            assert (task["session"], task["project"]) == ("codex-session-1", str(elsewhere))
            assert task["output"]["tail"] == f"{elsewhere}\n"

    play(steps)


def test_run_tool_launches_for_claude_unless_settings_restrict_its_shell(bench: Bench) -> None:
    """For Claude Code, `run` launches a task unless settings restrict the client's shell.

    The task gets the session and the project from the server's environment.
    """
    claude = types.Implementation(name="claude-code", version="2.1.325")
    home = bench.root / "home"
    env = {
        "CLAUDE_CODE_SESSION_ID": "claude-session-1",
        "CLAUDE_PROJECT_DIR": str(bench.project),
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
    }
    (home / ".claude").mkdir(parents=True)
    program = bench.root / "claude"
    program.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; "$@"; exit $?\n')
    program.chmod(0o700)

    async def attempt(*words: str) -> types.CallToolResult:
        through = (str(program), *words, "--")
        async with over_stdio(bench, "legacy", env, bench.root, through, client_info=claude) as client:
            return await client.call_tool("run", {"command": "true"})

    async def steps() -> None:
        assert "was started with" in text_of(await attempt("--disallowedTools", "Bash"))
        assert not (await attempt("--permission-mode", "default")).is_error
        task = bench.json("list")["tasks"][0]
        assert (task["session"], task["project"]) == ("claude-session-1", str(bench.project))
        for settings in ({"sandbox": {"enabled": True}}, {"permissions": {"ask": ["Bash(rm:*)"]}}):
            (home / ".claude" / "settings.json").write_text(json.dumps(settings))
            assert "the client's shell is" in text_of(await attempt())

    play(steps)


def test_retry_tool_is_refused_when_the_run_tool_is_refused(bench: Bench) -> None:
    """Where `run` is refused, `retry` is refused, too, because it also launches a command."""
    task = bench.launch("true")
    bench.ok("wait", task)

    async def steps() -> None:
        async with over_stdio(bench, "legacy", {}) as client:
            answer = await client.call_tool("retry", {"id": task})
            assert answer.structured_content["error"]["code"] == "run_refused"

    play(steps)
    assert bench.row(task).current.number == 1
