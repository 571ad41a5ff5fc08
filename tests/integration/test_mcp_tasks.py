"""MCP tasks: a task of Outlive under another name, in both dialects, durable before it is answered."""

from __future__ import annotations

import os
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from tests.mcp_steps import MAY_RUN, HttpServer, ask, over_http, over_stdio, play, speaks_tasks
from tests.session_steps import until
from tests.support import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from mcp.client.client import Client

    from tests.support import Bench

UNKNOWN, NO_METHOD, NO_CAPABILITY, MISMATCH = -32602, -32601, -32021, -32020


@asynccontextmanager
async def modern(bench: Bench, **options: Any) -> AsyncIterator[Client]:
    """A client that speaks the extension."""
    async with over_stdio(bench, "auto", extensions=[speaks_tasks()], **options) as client:
        yield client


@pytest.fixture
def server(bench: Bench) -> Iterator[HttpServer]:
    """A server over HTTP that may launch."""
    found = HttpServer(bench, MAY_RUN)
    yield found
    found.end()


async def begin(client: Client, command: str, **more: Any) -> dict[str, Any]:
    """`run`, called as a task where the client has to ask for it."""
    asked: dict[str, Any] = {"task": {"ttl": 60_000}} if client.protocol_version == "2025-11-25" else {}
    found = await ask(client, "tools/call", name="run", arguments={"command": command, **more}, **asked)
    assert "content" not in found
    task: dict[str, Any] = found["task"] if asked else found
    return task


async def ended(client: Client, task: str) -> dict[str, Any]:
    """The task once it has ended."""
    while (found := await ask(client, "tasks/get", taskId=task))["status"] == "working":  # noqa: ASYNC110
        await anyio.sleep(0.05)  # as a client of this protocol has to
    return found


def test_a_task_of_2025(bench: Bench) -> None:
    """Asked for by `params.task`, followed by get and result, which blocks."""

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


def test_a_task_of_the_extension(bench: Bench) -> None:
    """The server decides; the result comes with get, and a command that failed is an error inside of it."""

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
            assert found["result"]["isError"] is True
            unstarted = await ask(client, "tools/call", name="run", arguments={"command": ["no-such-program"]})
            found = await ended(client, unstarted["taskId"])
            assert found["status"] == "failed"
            assert found["error"]["code"] == -32603
            assert (await ask(client, "tasks/update", taskId=task["taskId"], inputResponses={}))[
                "resultType"
            ] == "complete"

    play(steps)


@pytest.mark.parametrize("dialect", ["legacy", "extension"])
def test_a_cancelled_task_is_ended_with_all_it_started(bench: Bench, dialect: str) -> None:
    """And the answer comes when that is true."""

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
    """The request fails with this code."""
    with pytest.raises(MCPError) as caught:
        await ask(client, method, **params)
    assert caught.value.error.code == code


def test_each_dialect_stays_in_its_era(bench: Bench) -> None:
    """What the other one has does not exist; an id that was not given out is nobody's."""

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
            assert (await client.call_tool("run", {"command": "true"})).structured_content  # no task was asked for

    play(steps)


@pytest.mark.parametrize("dialect", ["legacy", "extension"])
def test_a_task_outlives_its_server(bench: Bench, dialect: str) -> None:
    """Killed in the middle of a call, it leaves a task that another server answers for."""
    found: dict[str, str] = {}

    async def first() -> None:
        async with over_stdio(bench, "legacy") if dialect == "legacy" else modern(bench) as client:
            found["task"] = (await begin(client, f"echo survived; {until('go')}"))["taskId"]
            # A call that waits on it, in the middle of which the server dies.
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
    """A wait that its server does not live to answer."""
    with pytest.raises(MCPError):
        await client.call_tool("wait", {"ids": [task]})


def servers(bench: Bench) -> list[int]:
    """The servers of this test's state directory."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as line, open(f"/proc/{name}/environ", "rb") as environ:
                if line.read().endswith(b"outlive\0mcp\0") and str(bench.state).encode() in environ.read():
                    found.append(int(name))
        except OSError:
            continue
    return found


def test_another_projects_task_is_not_there(bench: Bench) -> None:
    """Also for who knows its id."""
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


def test_over_http_the_header_names_the_task(bench: Bench, server: HttpServer) -> None:
    """A proxy that routes by the header and a server that reads the body must mean the same task."""

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
