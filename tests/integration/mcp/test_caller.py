"""The project and the session of a caller, and the tasks that the caller sees."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from outlive.service.tasks.launch_context import environ_of_task
from tests.mcp_steps import CODEX_FREE, MAY_RUN, HttpServer, document_of, over_http, over_stdio, play, text_of
from tests.session_steps import Clients, begin, until

if TYPE_CHECKING:
    from tests.support import Bench

NO_SESSION = {"OUTLIVE_MCP_RUN": "on"}


def test_http_server_does_not_assign_its_own_session_to_callers(bench: Bench) -> None:
    """`inbox` over HTTP does not use the session in the server's environment. This session started the server."""
    server = HttpServer(bench, {"CLAUDE_CODE_SESSION_ID": "claude-session-1"})

    async def steps() -> None:
        async with over_http(server, "legacy") as client:
            assert "not known which session" in text_of(await client.call_tool("inbox", {}))

    try:
        play(steps)
    finally:
        server.end()


def test_opencode_session_comes_from_an_argument_that_the_plugin_adds(bench: Bench) -> None:
    """The plugin adds the session as an argument, and OpenCode's task belongs to it.

    From other clients it is refused.
    """
    given = {"command": "true", "outlive_session": "ses_e1ec439b9ffej0ojA8KPd8Zo6A"}

    async def steps() -> None:
        who = types.Implementation(name="opencode", version="1.18.33")
        async with over_stdio(bench, "legacy", client_info=who) as client:
            task = document_of(await client.call_tool("run", given))
            assert task["session"] == given["outlive_session"]
        async with over_stdio(bench, "legacy") as client:
            assert "outlive_session" in text_of(await client.call_tool("run", given))

    play(steps)


def test_openclaw_project_comes_from_an_argument_that_the_plugin_adds(bench: Bench) -> None:
    """The plugin adds the project as an argument, so `list` shows the tasks of this project.

    OpenClaw starts all servers in one directory.
    """
    other = bench.root / "other"
    other.mkdir()
    mine, theirs = bench.launch("true", cwd=other), bench.launch("true")

    async def steps() -> None:
        who = types.Implementation(name="openclaw-bundle-mcp", version="0.0.0")
        async with over_stdio(bench, "legacy", client_info=who) as client:
            listed = text_of(await client.call_tool("list", {"outlive_directory": str(other)}))
            assert (mine in listed, theirs in listed) == (True, False)
        async with over_stdio(bench, "legacy") as client:
            assert "outlive_directory" in text_of(await client.call_tool("list", {"outlive_directory": str(other)}))

    play(steps)


def test_session_sees_its_own_tasks_in_other_projects(bench: Bench, clients: Clients) -> None:
    """A session sees its tasks in other projects, and those of the session that it continues.

    It sees no other tasks there.
    """
    other = bench.root / "other"
    other.mkdir()
    neighbours = bench.launch("sleep 600", "--session", "s-2", cwd=other)
    begin(bench, "s-0", "--pid", clients.start())

    async def steps() -> None:
        async with over_stdio(bench, "legacy", {**MAY_RUN, "OUTLIVE_SESSION": "s-0"}) as client:
            given = {"command": until("go"), "cwd": str(other)}
            before = document_of(await client.call_tool("run", given))["id"]
        begin(bench, "s-1", "--source", "clear", "--continues", "s-0")
        async with over_stdio(bench, "legacy") as client:
            mine = document_of(await client.call_tool("run", {"command": until("go"), "cwd": str(other)}))["id"]
            here = document_of(await client.call_tool("run", {"command": until("go")}))["id"]
            assert document_of(await client.call_tool("wait", {"seconds": 0}))["done"] is False
            for task in (before, mine, here):
                assert document_of(await client.call_tool("show", {"id": task}))["state"] == "running"
            for directory in (other, bench.project):
                (directory / "go").touch()
            waited = document_of(await client.call_tool("wait", {"ids": [before, mine, here]}))
            assert [task["state"] for task in waited["tasks"]] == ["succeeded"] * 3
            assert not (await client.call_tool("output", {"id": mine})).is_error
            assert document_of(await client.call_tool("result", {"id": mine}))["exit_code"] == 0
            endless = document_of(await client.call_tool("run", {"command": "sleep 600", "cwd": str(other)}))["id"]
            assert document_of(await client.call_tool("cancel", {"ids": [endless]}))["tasks"][0]["cancelled"] is True
            assert "no task of this project" in text_of(await client.call_tool("show", {"id": neighbours}))

    play(steps)


def test_tasks_of_another_project_are_not_visible(bench: Bench) -> None:
    """No tool lists, shows or cancels a task of another project, and no resource reads its output."""
    other = bench.root / "other"
    other.mkdir()
    mine, foreign = bench.launch("sleep 600"), bench.launch("sleep 600", cwd=other)

    async def steps() -> None:
        async with over_stdio(bench, "legacy", {}) as client:
            listed = document_of(await client.call_tool("list", {}))["tasks"]
            assert [task["id"] for task in listed] == [mine]
            for tool, given in (
                ("show", {"id": foreign}),
                ("output", {"id": foreign}),
                ("result", {"id": foreign}),
                ("effects", {"id": foreign}),
                ("wait", {"ids": [foreign]}),
                ("cancel", {"ids": [foreign]}),
            ):
                answer = await client.call_tool(tool, given)
                assert answer.is_error, tool
                assert "no task of this project" in text_of(answer)
            assert [each.name for each in (await client.list_resources()).resources] == [mine]
            with pytest.raises(MCPError):
                await client.read_resource(f"outlive://task/{foreign}/output")

    play(steps)
    assert bench.show(foreign)["state"] == "running"


def test_ambiguous_prefix_names_only_tasks_that_the_caller_may_see(bench: Bench) -> None:
    """The error about an ambiguous prefix names no task of another project. Such a task makes no prefix ambiguous."""
    other = bench.root / "other"
    other.mkdir()
    foreign = bench.launch("true", cwd=other)
    mine = bench.launch("true")

    async def steps() -> None:
        async with over_stdio(bench, "legacy", NO_SESSION) as client:
            assert document_of(await client.call_tool("show", {"id": "t"}))["id"] == mine
            second = document_of(await client.call_tool("run", {"command": "true", "after": ["t"]}))["id"]
            for tool in ("effects", "show", "result"):
                said = text_of(await client.call_tool(tool, {"id": "t"}))
                assert (mine in said, second in said, foreign in said) == (True, True, False)
            said = text_of(await client.call_tool("show", {"id": "tzzzzzzzz"}))
            assert ("no task of this project" in said, "the tool `list`" in said) == (True, True)

    play(steps)


def test_server_takes_its_project_from_the_roots_of_the_client(bench: Bench) -> None:
    """A server that was started outside the project asks its client for the project's directory (MCP roots)."""
    task = bench.launch("true")

    async def roots(_: object) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=bench.project.as_uri())])  # type: ignore[arg-type]

    async def steps() -> None:
        async with over_stdio(bench, "legacy", {}, bench.root, list_roots_callback=roots) as client:
            listed = document_of(await client.call_tool("list", {}))["tasks"]
            assert [each["id"] for each in listed] == [task]

    play(steps)


def test_server_serves_the_session_that_hooks_recorded_for_its_client(bench: Bench) -> None:
    """The server serves the session that hooks recorded for the client's process.

    Gemini CLI names no session to its servers.
    """
    begin(bench, "not-this-process", "--source", "startup")
    begin(bench, "gemini-session-1", "--pid", str(os.getpid()), "--source", "startup")

    async def steps() -> None:
        async with over_stdio(bench, "auto", NO_SESSION) as client:
            launched = document_of(await client.call_tool("run", {"command": "true"}))
            assert launched["session"] == "gemini-session-1"
            bench.ok("session", "end", "--session", "gemini-session-1")
            assert document_of(await client.call_tool("run", {"command": "true"}))["session"] is None

    play(steps)


def test_server_inside_a_task_serves_the_session_of_its_client(bench: Bench) -> None:
    """A server inside a task serves the session of its client.

    The task's session counts only if no session is known.
    """
    inside = {**NO_SESSION, **environ_of_task({}, "t1", "parent")}

    async def steps() -> None:
        async with over_stdio(bench, "legacy", inside) as client:

            async def launched(**more: Any) -> str:
                return str(document_of(await client.call_tool("run", {"command": "true"}, **more))["session"])

            assert await launched() == "parent"
            begin(bench, "recorded-by-hooks", "--pid", str(os.getpid()))
            assert await launched() == "recorded-by-hooks"
            assert await launched(meta=CODEX_FREE) == "codex-session-1"
        async with over_stdio(bench, "legacy", {**inside, "CLAUDE_CODE_SESSION_ID": "named-by-client"}) as client:
            launched_there = document_of(await client.call_tool("run", {"command": "true"}))
            assert launched_there["session"] == "named-by-client"

    play(steps)


def test_server_serves_the_successor_when_its_session_was_cleared(bench: Bench, clients: Clients) -> None:
    """If a client clears its session, its server serves the new session."""
    pid = clients.start()
    begin(bench, "claude-session-1", "--pid", pid)
    task = bench.launch("true", "--session", "claude-session-1")
    bench.run("wait", "--no-ack", task)
    begin(bench, "claude-session-2", "--pid", pid, "--source", "clear")
    bench.run("session", "end", "--session", "claude-session-1", "--reason", "clear")

    async def steps() -> None:
        async with over_stdio(bench, "legacy", {"CLAUDE_CODE_SESSION_ID": "claude-session-1", **NO_SESSION}) as client:
            peeked = document_of(await client.call_tool("inbox", {"peek": True}))["notices"]
            assert [notice["task"]["id"] for notice in peeked] == [task]
            launched = document_of(await client.call_tool("run", {"command": "true"}))
            assert launched["session"] == "claude-session-2"

    play(steps)
