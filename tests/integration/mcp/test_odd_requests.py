"""The MCP server with many waiting calls, and with invalid requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from tests.mcp_steps import MAY_RUN, ask, document_of, over_stdio, play, text_of

if TYPE_CHECKING:
    from tests.support import Bench

INVALID_PARAMS = -32602
_CROWD = 80
_LONGEST_ANSWER_S = 20


def test_server_answers_other_calls_while_many_calls_wait(bench: Bench) -> None:
    """While 160 calls wait for tasks, the server still launches and cancels tasks."""

    async def steps() -> None:
        async with over_stdio(bench, "legacy") as client:
            task = document_of(await client.call_tool("run", {"command": "sleep 600"}))["id"]
            asked: dict[str, Any] = {"arguments": {"command": "sleep 600"}, "task": {}}
            other = (await ask(client, "tools/call", name="run", **asked))["task"]["taskId"]
            answered: list[object] = []

            async def wait() -> None:
                answered.append(await client.call_tool("wait", {"ids": [task]}))

            async def read() -> None:
                answered.append(await ask(client, "tasks/result", taskId=other))

            async with anyio.create_task_group() as crowd:
                for _ in range(_CROWD):
                    crowd.start_soon(wait)
                    crowd.start_soon(read)
                await client.call_tool("list", {})  # a call that is sent after all the calls that wait
                with anyio.fail_after(_LONGEST_ANSWER_S):
                    document_of(await client.call_tool("run", {"command": "true", "wait": "10s"}))
                    assert (await ask(client, "tasks/cancel", taskId=other))["status"] == "cancelled"
                    document_of(await client.call_tool("cancel", {"ids": [task]}))
            assert len(answered) == 2 * _CROWD

    play(steps)


@pytest.mark.parametrize(
    ("tool", "given", "told"),
    [
        ("wait", {"until": "x\0"}, "NUL byte"),
        ("wait", {"resume": "W1tb" * 5000}, "not a value that this tool has returned"),
        ("run", {"command": "true", "env": {"A=B": "c"}}, "not a name of a variable"),
        ("run", {"command": "true", "description": "x" * 20_000}, "use at most 10000 characters"),
    ],
)
def test_tool_answers_with_an_error_when_its_arguments_make_no_sense(
    bench: Bench, tool: str, given: dict[str, Any], told: str
) -> None:
    """If the arguments of a tool make no sense, the answer is an error that names the mistake. No task is launched."""

    async def steps() -> None:
        async with over_stdio(bench, "legacy") as client:
            task = document_of(await client.call_tool("run", {"command": "true"}))["id"]
            more = {"ids": [task]} if "until" in given else {}
            answer = await client.call_tool(tool, {**given, **more})
            assert answer.is_error is True
            assert told in text_of(answer)
            assert len(document_of(await client.call_tool("list", {}))["tasks"]) == 1

    play(steps)


def test_task_requests_are_refused_as_invalid_when_their_parameters_make_no_sense(bench: Bench) -> None:
    """If the parameters of a task request make no sense, the error code says so, and no task is launched."""
    asked: list[tuple[str, dict[str, Any]]] = [
        ("tasks/list", {"cursor": cursor}) for cursor in ("x", "-1", "9" * 30, "9" * 5000)
    ]
    run = {"name": "run", "arguments": {"command": "true"}}
    wrong: list[Any] = ["x", True, [], 0]
    asked += [("tools/call", {**run, "task": task}) for task in wrong]
    asked += [("tools/call", {**run, "arguments": [1], "task": {}})]

    async def steps() -> None:
        async with over_stdio(bench, "legacy") as client:
            for method, params in asked:
                with pytest.raises(MCPError) as refused:
                    await ask(client, method, **params)
                assert refused.value.code == INVALID_PARAMS, (method, params)
            assert (await ask(client, "tasks/list"))["tasks"] == []

    play(steps)


def test_run_tool_is_refused_when_after_names_a_task_of_another_project(bench: Bench) -> None:
    """The tool `run` refuses a task of another project in `after` and `after_any`."""
    other = bench.root / "other"
    other.mkdir()

    async def steps() -> None:
        async with over_stdio(bench, "auto") as client:
            task = document_of(await client.call_tool("run", {"command": "true"}))["id"]
        async with over_stdio(bench, "auto", {**MAY_RUN, "OUTLIVE_SESSION": "s-2"}, cwd=other) as client:
            for name in ("after", "after_any"):
                answer = await client.call_tool("run", {"command": "true", name: [task]})
                assert answer.is_error is True
                assert "no task of this project" in text_of(answer)

    play(steps)
