"""What the records of background agents contain, when endings are reported, and when records may be deleted.

Most of these tests check for a bug that another program once had, which kept its agents in memory (oh-my-openagent,
pull request 2293).
"""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from tests.agent_steps import Agents
from tests.git_steps import Worktree
from tests.support import wait_until

if TYPE_CHECKING:
    from tests.support import Bench


@pytest.fixture
def agents(bench: Bench) -> Agents:
    """Create a user with two scripted clients."""
    return Agents(bench)


def texts_of(bench: Bench, task: str) -> list[str]:
    """Return the messages of an agent, in the order of the transcript."""
    found = bench.json("transcript", task)["entries"]
    return [each["text"] for each in found if each["role"] == "assistant"]


def notices_of(bench: Bench, session: str) -> list[Any]:
    """Return the notices that `inbox` prints for a session."""
    found: list[Any] = bench.json("inbox", "--session", session)["notices"]
    return found


def expire(bench: Bench, task: str) -> None:
    """Set the deletion date of an ended task to the past."""
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger, ledger.write():
        ledger.db.execute("UPDATE attempt SET delete_after = 1 WHERE task = ? AND settled_at > 0", (task,))


@pytest.mark.parametrize(
    "moments",
    [
        ("2026-11-18T19:06:54Z", "2026-11-18T20:06:55.271+01:00", "2026-11-18T19:06:56Z"),
        (999999999, 1795028814, 1795028815.5),
        (1795028814271, 1795028815271, 1795028816271),
        ("999999999", "1795028814271", "1795028815000"),
        ({"created": 1795028814271}, "2026-11-18T19:06:55Z", 1795028816),
    ],
)
def test_transcript_sorts_times_as_numbers_in_every_format(agents: Agents, moments: tuple[Any, ...]) -> None:
    """A transcript has its messages in the order of their times, whatever format the times have.

    Messages with equal times stay in the order of their arrival. The final answer has no time, and stays last.
    """
    first, second, third = moments
    said = ((third, "four"), (first, "one"), (second, "two"), (second, "three"))
    lines = [json.dumps({"type": "message", "content": text, "timestamp": at}) for at, text in said]
    shown = agents.ended(*(f"line {each}" for each in lines), "answer five")
    assert texts_of(agents.bench, shown["id"]) == ["one", "two", "three", "four", "five"]


@pytest.mark.parametrize("how", ["failed", "cancelled", "timed_out"])
def test_agent_that_did_not_answer_stays_on_record(agents: Agents, how: str) -> None:
    """An agent that ended without an answer stays on record, and its ending is reported once.

    `list`, `show`, `result` and `transcript` print the agent. Row 41 of the acceptance scenarios.
    """
    end = "exit 3" if how == "failed" else "sleep 60"
    options = ("--timeout", "1s") if how == "timed_out" else ()
    task = agents.launch("say I have begun", "call echo hi", end, options=("--session", "s-1", *options))
    if how == "cancelled":
        wait_until(lambda: "hi" in Path(agents.bench.files(task).output).read_text(), "the output of the tool call")
        agents.bench.ok("cancel", task, "--session", "s-2")
    shown = agents.wait(task)
    assert (shown["state"], shown["agent"]["class"]) == (how, "broken" if how == "failed" else "stopped")
    assert shown["agent"]["calls"] == 1
    assert task in [each["id"] for each in agents.bench.json("list")["tasks"]]
    result = agents.bench.run("result", task)
    assert result.returncode == 1
    assert result.stdout.startswith(f"{task} {how}")
    assert "I have begun" in result.stdout
    assert texts_of(agents.bench, task) == ["I have begun"]
    assert [each["task"]["id"] for each in notices_of(agents.bench, "s-1")] == [task]
    assert notices_of(agents.bench, "s-1") == []


def test_sweep_leaves_an_agent_whose_ending_was_not_delivered(agents: Agents) -> None:
    """`sweep` deletes an expired record only after its ending was reported to the session.

    Row 42 of the acceptance scenarios.
    """
    bench = agents.bench
    task = agents.ended("say thinking", "answer done", options=("--session", "s-1"))["id"]
    expire(bench, task)
    assert bench.json("sweep", "--apply", "--max-disk", "0")["tasks"] == []
    assert texts_of(bench, task) == ["thinking", "done"]
    assert "done" in bench.ok("result", task, "--session", "s-1")
    assert [each["id"] for each in bench.json("sweep", "--apply")["tasks"]] == [task]
    assert bench.run("transcript", task).returncode == 2
    assert not Path(bench.home.bundle(task)).exists()


def test_answer_is_kept_for_its_retention_after_the_session_was_told(agents: Agents) -> None:
    """After its ending was reported, `result` still prints an answer until the record is deleted.

    Row 41 of the acceptance scenarios.
    """
    shown = agents.ended("answer done", options=("--session", "s-1", "--retain", "1h"))
    for _ in range(2):
        assert "done" in agents.bench.ok("result", shown["id"], "--session", "s-1")
    assert agents.bench.json("sweep", "--apply")["tasks"] == []
    assert agents.bench.show(shown["id"])["delete_after"] > (utc_now() + timedelta(minutes=50)).isoformat()


def test_notice_of_the_last_agent_says_that_all_have_ended(agents: Agents) -> None:
    """The notices of three agents say that two still run, that one still runs, and that all have ended.

    No notice is repeated. Row 27 of the acceptance scenarios.
    """
    told = []
    for task, go in released_agents(agents, "--session", "s-1"):
        go.touch()
        agents.wait(task)
        (notice,) = notices_of(agents.bench, "s-1")
        assert notice["task"]["id"] == task
        told.append(notice["text"].splitlines()[-2])
    assert told == [
        "2 of 3 tasks of this session still run: outlive list",
        "1 of 3 tasks of this session still run: outlive list",
        "all 3 tasks of this session have ended",
    ]
    assert notices_of(agents.bench, "s-1") == []


def test_last_notice_of_a_group_lists_all_its_agents(agents: Agents) -> None:
    """The last notice lists the two agents that succeeded and the agent that failed.

    Row 27 of the acceptance scenarios.
    """
    heard, tasks = [], released_agents(agents, "--session", "s-1", "--group", "g")
    for task, go in tasks:
        go.touch()
        agents.wait(task)
        heard += notices_of(agents.bench, "s-1")
    assert [(each["kind"], each["remaining"]) for each in heard] == [("ended", 2), ("ended", 1), ("group_ended", 0)]
    assert [(each["id"], each["state"]) for each in heard[-1]["members"]] == [
        *((tasks[0][0], "succeeded"), (tasks[1][0], "failed"), (tasks[2][0], "succeeded")),
    ]
    assert notices_of(agents.bench, "s-1") == []


def released_agents(agents: Agents, *options: str) -> list[tuple[str, Path]]:
    """Launch three agents that wait, and return each id with the file that ends the wait. The second agent fails."""
    goes = [agents.bench.root / f"go{number}" for number in range(3)]
    ends = ("answer one", "exit 3", "answer three")
    return [(agents.launch(f"until {go}", end, options=options), go) for go, end in zip(goes, ends, strict=True)]


def test_answer_and_transcript_stay_when_the_client_deletes_its_session(agents: Agents) -> None:
    """Outlive prints the answer and the transcript even if the client has deleted its session.

    Outlive reads the task's output, and not the client's own files.
    """
    shown = agents.ended("say thinking", "call echo hi", "answer done")
    agents.program.with_name(f"{agents.program.name}.{shown['agent']['session']}").unlink()
    agents.program.unlink()
    assert agents.bench.ok("result", shown["id"]).endswith("done")
    assert texts_of(agents.bench, shown["id"]) == ["thinking", "done"]
    assert "echo hi" in agents.bench.ok("transcript", shown["id"], "--tools")


def test_agent_times_out_when_it_waits_too_long_for_a_slot_of_its_model(agents: Agents) -> None:
    """If an agent waits too long for a free place at its model, it times out with the reason `queue_timeout`.

    The running agent continues. Row 17 of the acceptance scenarios.
    """
    agents.configure("at_once = 1")
    go = agents.bench.root / "go"
    first = agents.launch(f"until {go}", "answer 1", options=("--model", "m1"))
    second = agents.ended("answer 2", options=("--model", "m1", "--queue-timeout", "200ms"))
    assert (second["state"], second["reason"], second["agent"]["answer"]) == ("timed_out", "queue_timeout", "")
    go.touch()
    assert agents.wait(first)["agent"]["answer"] == "1"


def test_notice_of_a_group_names_questions_attempts_and_kept_worktrees(agents: Agents) -> None:
    """A group's notice names the questions, attempts and kept worktrees of its agents, as single notices do."""
    Worktree(agents.bench.project).commit(a="1\n")
    listed = agents.bench.root / "list"
    prompts = ("call echo 2 > a\nanswer one", "ask May I?", "m1? error Overloaded (529)\nm1? exit 1\nanswer three")
    listed.write_text("".join(json.dumps({"prompt": each}) + "\n" for each in prompts))
    options = ("--worktree", "--model", "m1", "--fallback", "m2", "--session", "s-1")
    document = agents.bench.json("agent", "--fan-out", str(listed), *options)
    agents.bench.run("wait", "--group", document["group"])
    (told,) = agents.bench.json("inbox", "--session", "s-1")["notices"]
    place = f"{agents.bench.home.worktrees}/{document['tasks'][0]}"
    assert f"    worktree: {place}, branch outlive/{document['tasks'][0]}\n" in told["text"]
    answer = f"to answer: outlive agent --resume {document['tasks'][1]} -- ANSWER"
    assert f"    question: May I?\n    {answer}\n" in told["text"]
    assert "    attempt 1: bot:m1 unavailable (Overloaded (529))\n    agent: bot:m2\n" in told["text"]
    assert "  more: outlive result ID, outlive transcript ID --tools" in told["text"]
    assert '"type"' not in told["text"], "the output of an agent is JSON for programs"


def test_worktree_that_outlive_removed_is_not_reported_as_drift(agents: Agents) -> None:
    """If Outlive removed an agent's worktree, neither the notice nor `show` says that the directory is gone."""
    Worktree(agents.bench.project).commit(a="1\n")
    shown = agents.ended("call cat a", "answer ok", options=("--worktree", "--session", "s-1"))
    assert shown["drift"] is None
    (told,) = agents.bench.json("inbox", "--session", "s-1")["notices"]
    assert "is gone" not in told["text"] + agents.bench.ok("show", shown["id"])


def test_kept_worktree_that_is_gone_now_is_reported(agents: Agents) -> None:
    """If a user has removed a worktree that Outlive kept, `show` says that the directory is gone."""
    Worktree(agents.bench.project).commit(a="1\n")
    shown = agents.ended("call echo 2 > a", "answer ok", options=("--worktree",))
    shutil.rmtree(shown["agent"]["worktree"])
    assert "the directory it ran in is gone" in agents.bench.ok("show", shown["id"])
