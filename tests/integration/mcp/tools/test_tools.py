"""The tools of the MCP server: their texts, JSON documents and limits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from outlive import Outlive
from tests.effects_steps import window_on
from tests.git_steps import Worktree
from tests.mcp_steps import ERAS, VERSIONS, HttpServer, document_of, over_http, over_stdio, play, text_of
from tests.session_steps import until

if TYPE_CHECKING:
    from mcp.client.client import Client

    from tests.support import Bench

TOOLS = (
    *("run", "agent", "list", "show", "output", "transcript", "wait", "result", "cancel", "retry", "send", "effects"),
    *("guard", "inbox", "hand_off", "gate"),
)


async def use_every_tool(client: Client, bench: Bench) -> None:
    """Call every tool at least once, on tasks that the tools launch."""
    launched = document_of(await client.call_tool("run", {"command": f"echo hi; {until('go')}", "description": "one"}))
    assert launched["state"] == "running"
    task = launched["id"]
    listed = document_of(await client.call_tool("list", {"state": ["running"]}))
    assert [each["id"] for each in listed["tasks"]] == [task]
    assert document_of(await client.call_tool("gate", {}))["may_stop"] is False
    assert [each["id"] for each in document_of(await client.call_tool("hand_off", {}))["running"]] == [task]
    (bench.project / "go").touch()
    waited = document_of(await client.call_tool("wait", {"ids": [task]}))
    assert waited["done"] is True
    assert waited["tasks"][0]["state"] == "succeeded"
    assert document_of(await client.call_tool("output", {"id": task, "tail": 1}))["content"] == "hi\n"
    assert document_of(await client.call_tool("result", {"id": task}))["exit_code"] == 0
    assert document_of(await client.call_tool("show", {"id": task}))["moves"]
    assert document_of(await client.call_tool("effects", {"id": task}))["level"]
    assert document_of(await client.call_tool("inbox", {}))["notices"] == []  # `result` has acknowledged the notice
    failing = document_of(await client.call_tool("run", {"command": ["sh", "-c", "exit 3"]}))["id"]
    await anyio.to_thread.run_sync(lambda: bench.run("wait", "--no-ack", failing))
    answer = await client.call_tool("inbox", {})
    assert [each["task"]["id"] for each in document_of(answer)["notices"]] == [failing]
    assert f"{failing} failed (exit 3)" in text_of(answer)
    again = document_of(await client.call_tool("retry", {"id": failing}))
    assert (again["id"], again["attempt"]) == (failing, 2)
    assert document_of(await client.call_tool("wait", {"ids": [failing]}))["done"] is True
    clear = {"clear": True, "holders": [], "unknown": [], "coming": []}
    assert document_of(await client.call_tool("guard", {"paths": ["a.py"]})) == clear
    endless = document_of(await client.call_tool("run", {"command": "sleep 600"}))["id"]
    assert document_of(await client.call_tool("cancel", {}))["tasks"][0]["cancelled"] is True
    assert (await client.call_tool("result", {"id": endless})).is_error is not True
    reader = document_of(await client.call_tool("run", {"command": "read -r line; echo $line", "stdin": True}))["id"]
    assert document_of(await client.call_tool("send", {"id": reader, "text": "an answer"}))["id"] == reader
    assert document_of(await client.call_tool("wait", {"ids": [reader]}))["done"] is True
    assert document_of(await client.call_tool("output", {"id": reader}))["content"] == "an answer\n"
    inline = document_of(await client.call_tool("run", {"command": "echo quick", "wait": "45s"}))
    assert inline["state"] == "succeeded"


@pytest.mark.parametrize("era", ERAS)
def test_tools_answer_over_stdio(bench: Bench, era: str) -> None:
    """Every tool answers in text and JSON, for clients of both protocol versions."""

    async def steps() -> None:
        async with over_stdio(bench, era) as client:
            assert client.protocol_version == VERSIONS[era]
            assert [tool.name for tool in (await client.list_tools()).tools] == list(TOOLS)
            assert "outlive run" in (client.instructions or "")
            await use_every_tool(client, bench)

    play(steps)


@pytest.mark.parametrize("era", ERAS)
def test_tools_answer_over_http(bench: Bench, server: HttpServer, era: str) -> None:
    """Over HTTP, every tool answers as it does over stdio."""

    async def steps() -> None:
        async with over_http(server, era) as client:
            await use_every_tool(client, bench)

    play(steps)


def test_tool_documents_equal_those_of_the_command_line(bench: Bench) -> None:
    """A tool's JSON equals that of `--json` on the command line. Only the JSON of `list` has fewer fields."""
    task = bench.launch("echo hi")
    bench.ok("wait", task)

    async def steps() -> None:
        async with over_stdio(bench, "legacy", {}) as client:
            assert document_of(await client.call_tool("show", {"id": task})) == bench.show(task)
            [listed], [whole] = (
                found["tasks"] for found in (document_of(await client.call_tool("list", {})), bench.json("list"))
            )
            assert listed == {name: whole[name] for name in listed}
            assert {"id", "state", "exit_code", "command"} <= listed.keys()
            assert document_of(await client.call_tool("output", {"id": task})) == bench.json("output", task)

    play(steps)


def test_effects_tool_bounds_its_answer(bench: Bench) -> None:
    """The tool `effects` gives a short answer, because the model reads it. `effects --json` has every path."""
    (bench.project / ".git").mkdir()
    task = bench.launch("i=0; while [ $i -lt 2000 ]; do : > f$i; i=$((i + 1)); done")
    bench.ok("wait", task)

    async def steps() -> None:
        async with over_stdio(bench, "legacy", {}) as client:
            found = await client.call_tool("effects", {"id": task})
            whole = bench.json("effects", task)
            assert document_of(found) == {**bench.show(task)["effects"], "declared": whole["declared"]}
            assert (len(whole["created"]), len(str(found)) < 8000) == (2000, True)

    play(steps)


@pytest.mark.parametrize("tool", ["wait", "cancel"])
def test_wait_and_cancel_tools_fail_when_the_group_has_no_task(bench: Bench, tool: str) -> None:
    """`wait` and `cancel` fail if the group has no task. A mistyped name must not look like a group that has ended."""

    async def steps() -> None:
        async with over_stdio(bench, "legacy", {}) as client:
            answer = await client.call_tool(tool, {"group": "g"})
            assert answer.is_error
            assert "no task of this project is in the group g" in text_of(answer)

    play(steps)


def test_wait_tool_returns_after_a_time_limit_and_can_be_resumed(bench: Bench) -> None:
    """`wait` returns after a time limit, with an argument that continues the wait.

    Other calls are answered during a wait.
    """

    async def steps() -> None:
        async with over_stdio(bench, "legacy") as client:
            task = document_of(await client.call_tool("run", {"command": until("go")}))["id"]
            slice_ = document_of(await client.call_tool("wait", {"ids": [task], "seconds": 0.1}))
            assert (slice_["done"], slice_["timed_out"]) == (False, True)
            found: list[dict[str, Any]] = []

            async def go_on() -> None:
                found.append(document_of(await client.call_tool("wait", {"resume": slice_["resume"]})))

            async with anyio.create_task_group() as group:
                group.start_soon(go_on)
                assert document_of(await client.call_tool("list", {}))["tasks"]
                assert not found  # The call of `wait` still waits, but the server answers other calls.
                (bench.project / "go").touch()
            assert (found[0]["done"], found[0]["resume"]) == (True, None)
            assert (await client.call_tool("wait", {"resume": "nonsense"})).is_error
            assert (await client.call_tool("wait", {"ids": [task], "seconds": 60})).is_error  # above the limit

    play(steps)


def test_wait_tool_for_a_group_includes_tasks_that_join_later(bench: Bench) -> None:
    """`wait` also waits for tasks that join the group between two calls of `wait`, or during a call."""

    async def steps() -> None:
        async with over_stdio(bench, "legacy") as client:

            async def join(gate: str) -> None:
                await client.call_tool("run", {"command": until(gate), "group": "g"})

            async def wait(**given: Any) -> Any:
                return document_of(await client.call_tool("wait", given))

            await join("first")
            slice_ = await wait(group="g", seconds=0.1)
            await join("second")
            (bench.project / "first").touch()
            slice_ = await wait(resume=slice_["resume"], seconds=1)
            assert (slice_["done"], len(slice_["tasks"])) == (False, 2)
            (bench.project / "second").touch()
            slice_ = await wait(resume=slice_["resume"])
            assert (slice_["done"], [task["state"] for task in slice_["tasks"]]) == (True, ["succeeded"] * 2)

    play(steps)


def test_wait_tool_returns_when_a_line_of_output_matches(bench: Bench) -> None:
    """`wait` returns when a line of the output matches.

    The notice stays pending, and a slow pattern blocks no other call.
    """
    server = f"echo starting; {until('go')}; echo listening on 8080; {until('stop')}"

    async def steps() -> None:
        async with over_stdio(bench, "legacy") as client:

            async def wait(**given: Any) -> Any:
                return document_of(await client.call_tool("wait", given))

            task = document_of(await client.call_tool("run", {"command": server}))["id"]
            slice_ = await wait(ids=[task], until="listening on [0-9]+", seconds=0.1)
            assert (slice_["done"], slice_["timed_out"], slice_["matched"]) == (False, True, None)
            (bench.project / "go").touch()
            found = await wait(resume=slice_["resume"])
            assert (found["done"], found["matched"], found["resume"]) == (True, "listening on 8080", None)
            (bench.project / "stop").touch()
            missed = await wait(ids=[task], until="never said")
            assert (missed["done"], missed["matched"], missed["tasks"][0]["state"]) == (True, None, "succeeded")
            assert bench.show(task)["notices"][0]["state"] == "pending"
            assert (await client.call_tool("wait", {"ids": [task], "until": "("})).is_error

            hard = document_of(await client.call_tool("run", {"command": f"echo {'a' * 40}; {until('never')}"}))["id"]
            async with anyio.create_task_group() as group:
                group.start_soon(lambda: wait(ids=[hard], until="(a+)+b", seconds=1))
                assert document_of(await client.call_tool("list", {}))["tasks"]
            bench.ok("cancel", hard)

    play(steps)


def test_list_tool_is_short_for_twenty_tasks(bench: Bench) -> None:
    """The text and JSON of `list` for twenty tasks have less than 8,000 characters, even if their commands are long."""
    outlive = Outlive(home=str(bench.state))
    text = f"cd {bench.project} && FOO=bar python -m pytest -q tests/integration/test_one.py --maxfail=3 -k 'a or b'; "
    tasks = [
        outlive.run(f"{text * 3}exit 3", cwd=bench.project, description="Run all tests of it " * 9) for _ in range(21)
    ]
    assert outlive.wait(*tasks)

    async def steps() -> None:
        async with over_stdio(bench, "legacy", {}) as client:
            answer = await client.call_tool("list", {})
            assert len(document_of(answer)["tasks"]) == 20
            assert len(text_of(answer)) + len(json.dumps(document_of(answer))) < 8000
            assert text_of(answer).count("failed (exit 3)") == 20

    play(steps)


def test_run_tool_obeys_notify_and_key(bench: Bench) -> None:
    """The argument `notify` works as `run --notify`. A second call with the same key returns the same task."""

    async def steps() -> None:
        async with over_stdio(bench, "legacy") as client:
            given = {"command": "exit 3", "notify": "never", "key": "one"}
            first, second = [document_of(await client.call_tool("run", given)) for _ in range(2)]
            assert first["id"] == second["id"]
            await anyio.to_thread.run_sync(lambda: bench.run("wait", "--no-ack", first["id"]))
            assert document_of(await client.call_tool("inbox", {}))["notices"] == []
            odd = await client.call_tool("run", {"command": "true", "notify": "sometimes"})
            assert odd.is_error

    play(steps)


def test_guard_tool_names_the_task_that_holds_a_file(bench: Bench) -> None:
    """For paths or a command, `guard` names the task that has changed a file and not restored it.

    For a client of another project, `guard` names no task.
    """
    worktree = Worktree(bench.project)
    worktree.commit(**{"a.py": "as committed\n"})
    worktree.write("a.py", "as it should be\n")
    task = bench.launch(f"git stash push -q; {until('go')}; git stash pop -q")
    window_on(bench, task, "a.py")
    other = bench.root / "other"
    other.mkdir()

    async def steps() -> None:
        async with over_stdio(bench, "legacy", {}) as client:
            for given in ({"paths": ["a.py"]}, {"command": "git add a.py"}):
                answer = await client.call_tool("guard", given)
                assert [each["task"] for each in document_of(answer)["holders"]] == [task]
                assert task in text_of(answer)
            assert (await client.call_tool("guard", {})).is_error
        async with over_stdio(bench, "legacy", {}, cwd=other) as client:
            assert document_of(await client.call_tool("guard", {"paths": [str(bench.project)]}))["clear"] is True

    play(steps)
    (bench.project / "go").touch()


def test_tool_error_has_a_fact_and_a_hint(bench: Bench) -> None:
    """A tool answers a mistake of the caller with an error that has a fact and a hint.

    A call of a tool that does not exist gets an error of the protocol.
    """

    async def steps() -> None:
        async with over_stdio(bench, "legacy", {}) as client:
            for tool, given, code in (
                ("show", {"id": "tzzzzz"}, "unknown_id"),
                ("show", {}, "usage"),
                ("show", {"id": "t", "colour": "blue"}, "usage"),
                ("inbox", {}, "usage"),
                ("cancel", {}, "usage"),
            ):
                answer = await client.call_tool(tool, given)
                assert answer.is_error
                fact, hint = text_of(answer).split("\n")
                assert fact.startswith("outlive: ")
                assert hint.startswith("hint: ")
                assert answer.structured_content["error"]["code"] == code
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool("forget", {"id": "t"})

    play(steps)


def test_tools_mask_secrets(bench: Bench) -> None:
    """Recognised secrets are masked in texts, documents and resources."""
    secret = "ghp_" + "a1B2" * 9
    task = bench.launch(f"echo token {secret}", "--session", "s-1", "--description", f"with {secret}")
    bench.run("wait", "--no-ack", task)

    async def steps() -> None:
        async with over_stdio(bench, "legacy") as client:
            seen = [str(await client.call_tool("inbox", {"peek": True}))]
            seen += [
                str(await client.call_tool(tool, {"id": task})) for tool in ("show", "output", "result", "effects")
            ]
            seen += [str(await client.call_tool(tool, {})) for tool in ("list", "inbox", "hand_off", "gate")]
            seen.append(str(await client.read_resource(f"outlive://task/{task}/output")))
            assert "token" in seen[2]
            assert [text for text in seen if secret in text] == []

    play(steps)
