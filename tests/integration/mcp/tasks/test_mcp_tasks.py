"""MCP tasks: tasks of Outlive, as two versions of the protocol describe them.

Each task is recorded before the server answers.
"""

from __future__ import annotations

import os
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from outlive.mcp.tasks.reservations import Reservations
from tests.mcp_steps import HttpServer, ask, over_http, over_stdio, play, speaks_tasks
from tests.session_steps import told, until
from tests.support import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp.client.client import Client

    from tests.support import Bench

UNKNOWN, NO_METHOD, NO_CAPABILITY, MISMATCH = -32602, -32601, -32021, -32020


@asynccontextmanager
async def modern(bench: Bench, **options: Any) -> AsyncIterator[Client]:
    """Yield a client that speaks the extension for tasks."""
    async with over_stdio(bench, "auto", extensions=[speaks_tasks()], **options) as client:
        yield client


async def begin(client: Client, command: str, **more: Any) -> dict[str, Any]:
    """Call `run` as a task, and return the task. A client of the older protocol has to ask for a task explicitly."""
    asked: dict[str, Any] = {"task": {"ttl": 60_000}} if client.protocol_version == "2025-11-25" else {}
    found = await ask(client, "tools/call", name="run", arguments={"command": command, **more}, **asked)
    assert "content" not in found
    task: dict[str, Any] = found["task"] if asked else found
    return task


async def ended(client: Client, task: str) -> dict[str, Any]:
    """Poll a task until it has ended, and return its document."""
    while (found := await ask(client, "tasks/get", taskId=task))["status"] == "working":  # noqa: ASYNC110 - clients of this protocol have to poll
        await anyio.sleep(0.05)
    return found


def test_task_of_protocol_2025_is_followed_by_get_and_result(bench: Bench) -> None:
    """A client of protocol 2025 asks for a task with `params.task`.

    `tasks/result` then waits until the task has ended.
    """

    async def steps() -> None:
        async with over_stdio(bench, "legacy") as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert tools["run"].execution is not None
            assert tools["run"].execution.task_support == "optional"
            assert tools["list"].execution is None
            assert client.server_capabilities.tasks is not None
            task = await begin(client, f"echo out; {until('go')}")
            assert task["status"] == "working"
            assert task["ttl"] is None
            assert (await ask(client, "tasks/get", taskId=task["taskId"]))["status"] == "working"
            found: list[dict[str, Any]] = []

            async def read() -> None:
                found.append(await ask(client, "tasks/result", taskId=task["taskId"]))

            async with anyio.create_task_group() as group:
                group.start_soon(read)
                await ask(client, "tasks/list")
                assert not found
                (bench.project / "go").touch()
            assert found[0]["structuredContent"]["state"] == "succeeded"
            assert found[0]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"] == task["taskId"]
            after = await ask(client, "tasks/get", taskId=task["taskId"])
            assert after["status"] == "completed"
            assert after["ttl"] >= 60_000
            assert [each["taskId"] for each in (await ask(client, "tasks/list"))["tasks"]] == [task["taskId"]]
            failing = await begin(client, "exit 3")
            assert (await ended(client, failing["taskId"]))["status"] == "failed"
            assert (await ask(client, "tasks/result", taskId=failing["taskId"]))["isError"] is True

    play(steps)


def test_task_of_the_extension_has_its_result_in_get(bench: Bench) -> None:
    """A client of the extension gets a task as the server's answer, and its result from `tasks/get`.

    If the command fails, the MCP task is still `completed`.
    """

    async def steps() -> None:
        async with modern(bench) as client:
            assert "io.modelcontextprotocol/tasks" in (client.server_capabilities.extensions or {})
            task = await begin(client, f"echo out; {until('go')}")
            assert (task["resultType"], task["status"], task["ttlMs"]) == ("task", "working", None)
            (bench.project / "go").touch()
            found = await ended(client, task["taskId"])
            assert (found["resultType"], found["status"]) == ("complete", "completed")
            assert found["result"]["structuredContent"]["output"]["tail"] == "out\n"
            failing = await begin(client, "exit 3")
            found = await ended(client, failing["taskId"])
            assert found["status"] == "completed"
            assert "failed (exit 3)" in found["result"]["content"][0]["text"]
            unstarted = await ask(client, "tools/call", name="run", arguments={"command": ["no-such-program"]})
            found = await ended(client, unstarted["taskId"])
            assert found["status"] == "failed"
            assert found["error"]["code"] == -32603
            assert "command: no-such-program" in found["error"]["message"]
            assert (await ask(client, "tasks/update", taskId=task["taskId"], inputResponses={}))[
                "resultType"
            ] == "complete"

    play(steps)


@pytest.mark.parametrize("dialect", ["legacy", "extension"])
def test_cancelled_task_has_ended_when_the_request_is_answered(bench: Bench, dialect: str) -> None:
    """When a cancel has been answered, `tasks/get` reports the status `cancelled`."""

    async def steps() -> None:
        async with over_stdio(bench, "legacy") if dialect == "legacy" else modern(bench) as client:
            task = (await begin(client, "sleep 600 & sleep 600"))["taskId"]
            await ask(client, "tasks/cancel", taskId=task)
            assert (await ask(client, "tasks/get", taskId=task))["status"] == "cancelled"
            if dialect == "legacy":
                await refused(UNKNOWN, client, "tasks/cancel", taskId=task)
            else:
                assert await ask(client, "tasks/cancel", taskId=task)

    play(steps)


async def refused(code: int, client: Client, method: str, **params: Any) -> None:
    """Assert that a request fails with an error code."""
    with pytest.raises(MCPError) as caught:
        await ask(client, method, **params)
    assert caught.value.error.code == code


def test_methods_of_a_dialect_exist_only_in_its_protocol_version(bench: Bench) -> None:
    """The server refuses methods of the other protocol version, and invalid ids of tasks."""

    async def steps() -> None:
        async with over_stdio(bench, "legacy") as client:
            task = (await begin(client, "true"))["taskId"]
            await refused(NO_METHOD, client, "tasks/update", taskId=task)
            await refused(NO_METHOD, client, "tools/call", name="list", arguments={}, task={})
            await refused(UNKNOWN, client, "tools/call", name="run", arguments={"colour": "blue"}, task={})
            for_ever = {"ttl": 10**18}
            await ask(client, "tools/call", name="run", arguments={"command": "true"}, task=for_ever)
            await refused(UNKNOWN, client, "tasks/get", taskId=task.partition(".")[0])
            await refused(UNKNOWN, client, "tasks/get", taskId=task[:-1] + ("0" if task[-1] != "0" else "1"))
        async with modern(bench) as client:
            for method in ("tasks/result", "tasks/list"):
                await refused(NO_METHOD, client, method, taskId=task)
            await refused(UNKNOWN, client, "tasks/get", taskId="tzzzzz.0")
            assert (await client.call_tool("list", {})).structured_content
        async with over_stdio(bench, "auto") as client:
            await refused(NO_CAPABILITY, client, "tasks/get", taskId=task)
            assert (await client.call_tool("run", {"command": "true"})).structured_content  # not an MCP task

    play(steps)


@pytest.mark.parametrize("dialect", ["legacy", "extension"])
def test_mcp_task_outlives_its_server(bench: Bench, dialect: str) -> None:
    """If the server is killed during a call, another server answers for the same task."""
    found: dict[str, str] = {}

    async def first() -> None:
        async with over_stdio(bench, "legacy") if dialect == "legacy" else modern(bench) as client:
            found["task"] = (await begin(client, f"echo survived; {until('go')}"))["taskId"]
            # The server is killed while this call waits for the task.
            async with anyio.create_task_group() as group:
                group.start_soon(wait_in_vain, client, found["task"].partition(".")[0])
                pid = await anyio.to_thread.run_sync(lambda: wait_until(lambda: servers(bench)))
                os.kill(pid[0], signal.SIGKILL)

    async def second() -> None:
        async with over_stdio(bench, "legacy") if dialect == "legacy" else modern(bench) as client:
            assert (await ask(client, "tasks/get", taskId=found["task"]))["status"] == "working"
            (bench.project / "go").touch()
            after = await ended(client, found["task"])
            assert after["status"] == "completed"
            result = after.get("result") or await ask(client, "tasks/result", taskId=found["task"])
            assert result["structuredContent"]["output"]["tail"] == "survived\n"

    play(first)
    play(second)


async def wait_in_vain(client: Client, task: str) -> None:
    """Call `wait`, and assert that the server dies before it answers."""
    with pytest.raises(MCPError):
        await client.call_tool("wait", {"ids": [task]})


def servers(bench: Bench) -> list[int]:
    """Return the process ids of the servers that use this test's state directory."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as line, open(f"/proc/{name}/environ", "rb") as environ:
                if line.read().endswith(b"outlive\0mcp\0") and str(bench.state).encode() in environ.read():
                    found.append(int(name))
        except OSError:
            continue
    return found


def test_mcp_task_of_another_project_is_not_found(bench: Bench) -> None:
    """A client of another project cannot get the task, even if the client knows the id."""
    other = bench.root / "other"
    other.mkdir()
    found: dict[str, str] = {}

    async def steps() -> None:
        async with over_stdio(bench, "legacy") as client:
            found["task"] = (await begin(client, "true"))["taskId"]
        async with over_stdio(bench, "legacy", cwd=other) as client:
            await refused(UNKNOWN, client, "tasks/get", taskId=found["task"])
            assert (await ask(client, "tasks/list"))["tasks"] == []

    play(steps)


def test_http_header_must_name_the_task_of_the_request(bench: Bench, server: HttpServer) -> None:
    """A request is refused if its header and its body name different tasks.

    A proxy chooses the server by the header, and the server reads the body.
    """

    async def steps() -> None:
        async with over_http(server, "auto", extensions=[speaks_tasks()]) as client:
            task = (await begin(client, "true"))["taskId"]
            assert await ask(client, "tasks/get", taskId=task)
            request: dict[str, Any] = {"method": "tasks/get", "params": {"taskId": task}}
            options: dict[str, Any] = {}
            client.session._stamp(request, options)  # type: ignore[arg-type]
            options.setdefault("headers", {})["mcp-name"] = "another"
            with pytest.raises(MCPError) as caught:
                await client.session._dispatcher.send_raw_request("tasks/get", request["params"], options)  # type: ignore[arg-type]
            assert caught.value.error.code == MISMATCH

    play(steps)
    assert bench.json("list")["tasks"]


def open_notices(bench: Bench, session: str = "s-1") -> list[str]:
    """Return the ids of the pending notices of a session, without claiming them."""
    answer = bench.json("gate", "--session", session)
    return [str(notice["id"]) for notice in answer["untold"]]


def test_result_of_a_failed_command_is_an_error_for_most_clients(bench: Bench) -> None:
    """The result of a failed command has `isError`, as the protocol asks, except for Claude Code.

    Claude Code would join the lines of a text that is marked as an error.
    """

    async def steps() -> None:
        async with modern(bench) as client:
            begun = await begin(client, "exit 3")
            task = begun["taskId"].partition(".")[0]
            await anyio.to_thread.run_sync(lambda: wait_until(lambda: bench.row(task).current.settled_at))
            found = await ask(client, "tasks/get", taskId=begun["taskId"])
            assert (found["status"], found["result"]["isError"]) == ("completed", True)

    play(steps)


def test_ending_is_reserved_for_the_mcp_client_that_follows_the_task(bench: Bench) -> None:
    """While an MCP client follows a task, the inbox does not report its ending.

    The MCP result has the text of the notice.
    """
    claude = types.Implementation(name="claude-code", version="2.1.327")

    async def steps() -> None:
        async with modern(bench, client_info=claude) as client:
            begun = await begin(client, "echo one; echo two; exit 3")
            task = begun["taskId"].partition(".")[0]
            await anyio.to_thread.run_sync(lambda: wait_until(lambda: bench.row(task).current.settled_at))
            assert await anyio.to_thread.run_sync(lambda: told(bench, "s-1")) == []
            assert await anyio.to_thread.run_sync(lambda: open_notices(bench)) == []
            found = await ask(client, "tasks/get", taskId=begun["taskId"])
            assert not found["result"].get("isError"), "Claude Code puts the text of an error into one line"
            text = found["result"]["content"][0]["text"]
            lines = text.splitlines()
            assert f"- {task} failed (exit 3)" in lines[1]
            assert "  command: echo one; echo two; exit 3" in lines
            assert f"  directory: {bench.project}" in lines
            assert any(line.startswith("  touched (") for line in lines)
            assert any(line.startswith(f"  output: {bench.files(task).output} (") for line in lines)
            assert [line for line in lines if line.startswith("  |")] == ["  | one", "  | two"]
            again = await ask(client, "tasks/get", taskId=begun["taskId"])
            assert again["result"]["content"][0]["text"].splitlines()[2:-1] == lines[2:-1], (
                "a second request does not get the same text"
            )

    play(steps)
    assert told(bench, "s-1") == []


@pytest.mark.parametrize("dialect", ["legacy", "extension"])
def test_ending_is_pending_again_when_the_server_of_the_mcp_client_has_exited(bench: Bench, dialect: str) -> None:
    """If the server of the MCP client exits, the inbox reports the ending.

    An MCP result that the client gets later says that the ending was reported before.
    """
    found: dict[str, str] = {}

    async def first() -> None:
        async with over_stdio(bench, "legacy") if dialect == "legacy" else modern(bench) as client:
            found["task"] = (await begin(client, "echo out; exit 3"))["taskId"]
            task = found["task"].partition(".")[0]
            await anyio.to_thread.run_sync(lambda: wait_until(lambda: bench.row(task).current.settled_at))
            assert await anyio.to_thread.run_sync(lambda: told(bench, "s-1")) == []

    async def second() -> None:
        async with over_stdio(bench, "legacy") if dialect == "legacy" else modern(bench) as client:
            after = await ask(client, "tasks/get", taskId=found["task"])
            result = after.get("result") or await ask(client, "tasks/result", taskId=found["task"])
            assert "This ending was reported before." in result["content"][0]["text"]
            assert "directory:" not in result["content"][0]["text"]

    play(first)
    task = found["task"].partition(".")[0]
    assert told(bench, "s-1") == [task]
    play(second)


def test_reservation_of_an_ending_lapses_when_the_mcp_client_stops_asking(bench: Bench) -> None:
    """If the MCP client asks for nothing during three poll intervals, the inbox reports the ending.

    If the client asks again, the ending is reserved for the client again.
    """
    task = begun_and_ended(bench)

    async def steps() -> None:
        reservations = Reservations(bench.home)
        await reservations.asked(task, 600)
        assert await anyio.to_thread.run_sync(lambda: told(bench, "s-1")) == []
        await reservations.asked(task, 0.05)
        await anyio.to_thread.run_sync(lambda: wait_until(lambda: open_notices(bench)))
        await reservations.asked(task, 600)
        assert await anyio.to_thread.run_sync(lambda: open_notices(bench)) == []
        reservations.drop(task)
        assert await anyio.to_thread.run_sync(lambda: told(bench, "s-1")) == [task]

    play(steps)


def begun_and_ended(bench: Bench) -> str:
    """Launch a task of the session s-1, and wait until it has ended.

    The ending has not been reported to the session.
    """
    task = bench.launch("true", "--session", "s-1")
    wait_until(lambda: bench.row(task).current.settled_at, "the ending")
    return task
