"""What the trace of an agent task records: why each model was chosen, and how each attempt ended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.agent_steps import Agents
from tests.support import wait_until

if TYPE_CHECKING:
    from tests.support import Bench


@pytest.fixture
def agents(bench: Bench) -> Agents:
    """Create a user with two scripted clients."""
    return Agents(bench)


def test_trace_has_the_ending_of_each_attempt_and_why_the_next_one_began(agents: Agents) -> None:
    """The trace has the ending of each attempt, and why the next attempt began.

    The second attempt begins by itself with the fallback model, and the third attempt by `retry`.
    """
    steps = ("m1? error Overloaded", "m1? exit 1", "answer done")
    task = agents.ended(*steps, options=("--model", "m1", "--fallback", "m2", "--trace"))["id"]
    agents.bench.ok("retry", task)
    agents.wait(task)
    found = agents.decisions(task)
    assert [each["decision"] for each in found] == [
        *("launch", "attempt_ended", "next_attempt", "attempt_ended", "next_attempt", "attempt_ended"),
    ]
    ended = [each for each in found if each["decision"] == "attempt_ended"]
    assert [(each["attempt"], each["model"], each["class"]) for each in ended] == [
        *((1, "m1", "unavailable"), (2, "m2", "answered"), (3, "m2", "answered")),
    ]
    assert (ended[0]["state"], ended[0]["reason"], ended[0]["error"]) == ("failed", "unavailable", "Overloaded")
    following = [each for each in found if each["decision"] == "next_attempt"]
    assert [(each["cause"], each["after"]["model"], each["model"]) for each in following] == [
        *(("automatic", "m1", "m2"), ("retry", "m2", "m2")),
    ]
    assert following[1]["unavailable"] == ["bot:m1"]


def test_trace_has_the_ending_of_an_agent_whose_processes_were_killed(agents: Agents) -> None:
    """If an agent's processes were killed, the command that settles its task adds the ending to the trace."""
    task = agents.launch("say I have begun", "sleep 60", options=("--trace",))
    wait_until(lambda: "begun" in Path(agents.bench.files(task).output).read_text(), "the first text of the agent")
    agents.bench.kill(task, "keeper", "witness", "command")
    wait_until(lambda: agents.bench.show(task)["settled_at"], "the ending of the agent")
    ended = agents.decisions(task)[-1]
    assert (ended["decision"], ended["state"], ended["class"], ended["settled_by"]) == (
        *("attempt_ended", "lost", None, "reconciler"),
    )
