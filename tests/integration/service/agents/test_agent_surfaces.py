"""Background agents through the MCP server and the Python client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from outlive import AsyncOutlive, NotStarted, Outlive, UserError
from tests.agent_steps import Agents
from tests.mcp_steps import ERAS, MAY_RUN, document_of, over_stdio, play, text_of

if TYPE_CHECKING:
    from tests.support import Bench


@pytest.fixture
def agents(bench: Bench) -> Agents:
    """Create a user with two scripted clients."""
    return Agents(bench)


@pytest.fixture
def client(agents: Agents, monkeypatch: pytest.MonkeyPatch) -> Outlive:
    """Return a Python client for the user with the scripted clients."""
    monkeypatch.chdir(agents.bench.project)
    monkeypatch.delenv("OUTLIVE_SESSION", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", agents.bench.env["XDG_CONFIG_HOME"])
    return Outlive(home=str(agents.bench.state))


@pytest.mark.parametrize("era", ERAS)
def test_mcp_tools_launch_an_agent_and_read_its_answer(agents: Agents, era: str) -> None:
    """The MCP tools `agent`, `wait`, `result` and `transcript` return the same facts as the commands of these names."""

    async def steps() -> None:
        async with over_stdio(agents.bench, era, MAY_RUN) as client:
            given = {"prompt": "m1? error Overloaded\nm1? exit 1\nsay I look\nanswer all fine", "model": "m1"}
            launched = await client.call_tool("agent", {**given, "fallback": ["other:m2"]})
            task = document_of(launched)["id"]
            assert "Go on with other work" in text_of(launched)
            assert document_of(await client.call_tool("wait", {"ids": [task]}))["done"] is True
            result = await client.call_tool("result", {"id": task})
            agent = document_of(result)["agent"]
            assert (agent["client"], agent["model"], agent["answer"]) == ("other", "m2", "all fine")
            assert "all fine" in text_of(result)
            assert "attempt 1: bot:m1 unavailable (Overloaded)" in text_of(result)
            entries = document_of(await client.call_tool("transcript", {"id": task}))["entries"]
            assert "I look" in [entry["text"] for entry in entries]

    play(steps)


def test_agent_tool_is_refused_when_the_run_tool_would_be_refused(agents: Agents) -> None:
    """The tool `agent` is refused, and launches no agent, where the tool `run` would be refused."""

    async def steps() -> None:
        async with over_stdio(agents.bench, "auto", {"OUTLIVE_SESSION": "s-1"}) as client:
            answer = await client.call_tool("agent", {"prompt": "answer no"})
            assert answer.is_error
            assert "does not launch tasks" in text_of(answer)

    play(steps)
    assert agents.bench.json("list", "--all")["tasks"] == []


def test_sdk_takes_one_fallback_as_text(client: Outlive) -> None:
    """If `fallback` is one text, it is one model, and its letters are no models."""
    task = client.agent("m1? error Overloaded\nm1? exit 1\nanswer fine", model="m1", fallback="other:m2").wait(60)
    agent = task.as_dict()["agent"]
    assert agent is not None
    assert (agent["client"], agent["model"], agent["answer"]) == ("other", "m2", "fine")


def test_sdk_launches_an_agent_and_reads_its_answer(client: Outlive) -> None:
    """`Outlive.agent` takes the options of the command as arguments, and `Task.answer` returns the answer."""
    task = client.agent("cost 0.5\nanswer from a program", model="m1", budget=2, max_turns=9)
    assert task.answer is None or task.has_ended
    assert task.wait(60).answer == "from a program"
    document = task.as_dict()
    assert document["kind"] == "agent"
    agent = document["agent"]
    assert agent is not None
    assert (agent["model"], agent["cost_usd"], agent["class"]) == ("m1", 0.5, "answered")
    assert client.run("true").wait().answer is None


def test_sdk_continues_the_session_of_an_agent(client: Outlive) -> None:
    """`Outlive.agent` continues the session of an earlier agent if `resume` is the task of that agent."""
    first = client.agent("ask Which one?").wait(60)
    again = client.agent("answer the second", resume=first).wait(60)
    assert again.answer == "the second"


@pytest.mark.parametrize("given", [{"prompt": ""}, {"prompt": 3}, {"prompt": "x", "client": "nobody"}])
def test_sdk_agent_raises_when_its_arguments_are_invalid(client: Outlive, given: dict[str, object]) -> None:
    """With invalid arguments, `Outlive.agent` raises an error and launches no agent."""
    with pytest.raises((UserError, NotStarted)):
        client.agent(**given)  # type: ignore[arg-type]
    assert client.tasks() == []


def test_async_client_launches_an_agent(client: Outlive) -> None:
    """`AsyncOutlive.agent` launches an agent as `Outlive.agent` does."""

    async def steps() -> str | None:
        outlive = AsyncOutlive(home=client._home.path.rsplit("/", 1)[0])
        task = await outlive.agent("answer from a coroutine")
        await outlive.wait(task)
        return task.answer

    assert asyncio.run(steps()) == "from a coroutine"
