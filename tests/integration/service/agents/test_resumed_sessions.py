"""Continuing the session of an agent: only one task at a time may do so, and each cost is counted once."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import TYPE_CHECKING, Any

import pytest

from tests.agent_steps import Agents
from tests.git_steps import Worktree
from tests.session_steps import Clients, begin
from tests.support import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from tests.support import Bench


@pytest.fixture
def agents(bench: Bench) -> Agents:
    """Create a user with two scripted clients."""
    return Agents(bench)


@pytest.mark.parametrize("options", [(), ("--worktree",)], ids=["in the project", "in a removed worktree"])
def test_two_resumes_at_the_same_time_start_one_agent(agents: Agents, options: tuple[str, ...]) -> None:
    """If several callers continue one session at the same time, only one of them succeeds.

    Most clients would write all runs into one transcript. The refused callers do not remove the worktree.
    """
    bench = agents.bench
    Worktree(bench.project).commit(a="1\n")
    before = agents.ended("answer hello", options=options)
    words = bench.command("agent", "--resume", before["id"], "--", "sleep 30")
    callers = [
        Popen(words, env=bench.env, cwd=bench.project, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, text=True)
        for _ in range(4)
    ]
    ended = [(*caller.communicate(timeout=PATIENCE_S), caller.returncode) for caller in callers]
    started = [out.strip() for out, _, code in ended if code == 0]
    assert os.path.isdir(before["cwd"])
    bench.run("cancel", *started)
    assert len(started) == 1, ended
    assert all("works in the session" in err for _, err, code in ended if code != 0), ended


def test_retry_does_not_continue_a_session_in_which_another_task_works(agents: Agents) -> None:
    """`retry` is refused while another task works in the session, even if the retried task began the session."""
    before = agents.ended("call true", "exit 3")
    other = agents.bench.ok("agent", "--resume", before["id"], "--", "sleep 30")
    refused = agents.bench.run("retry", before["id"])
    agents.bench.ok("cancel", other)
    assert refused.returncode == 2, refused.stdout
    assert f"task {other} works in the session" in refused.stderr
    assert len(agents.bench.show(before["id"])["attempts"]) == 1


def prompts(agents: Agents, task: str) -> list[str]:
    """Return the prompt that the client read in each attempt of a task."""
    bundle = Path(agents.bench.home.bundle(task))
    return [path.read_text() for path in sorted(bundle.glob("attempts/*/prompt"))]


def sessions(document: Any) -> list[str]:
    """Return the session of each attempt of a task."""
    return [each["agent"]["session"] for each in document["attempts"]]


def test_retry_of_an_agent_that_has_answered_begins_a_new_session(agents: Agents) -> None:
    """If an agent has answered, `retry` sends the task's prompt to a new session, because the earlier work is done."""
    before = agents.ended("call true", "answer done")
    agents.bench.ok("retry", before["id"])
    shown = agents.wait(before["id"])
    assert prompts(agents, before["id"]) == ["call true\nanswer done"] * 2
    assert [each["agent"]["class"] for each in shown["attempts"]] == ["answered", "answered"]
    assert len(set(sessions(shown))) == 2


def test_retry_of_an_answered_agent_continues_the_session_that_the_user_named(agents: Agents) -> None:
    """If the user named a session with `--resume`, `retry` sends the prompt to this session again.

    The prompt may make no sense in another session.
    """
    first = agents.ended("answer hello")
    again = agents.ended("call true", "answer done", options=("--resume", first["id"]))
    agents.bench.ok("retry", again["id"])
    shown = agents.wait(again["id"])
    assert prompts(agents, again["id"]) == ["call true\nanswer done"] * 2
    assert set(sessions(shown)) == {first["agent"]["session"]}


@pytest.mark.parametrize(
    ("steps", "options", "told"),
    [
        (("call true", "exit 3"), (), "The previous attempt was interrupted. Continue where it stopped."),
        (("call true", "sleep 60"), (), "The previous attempt was interrupted. Continue where it stopped."),
        (
            ("count 3", "sleep 60"),
            ("--max-turns", "2"),
            "The previous attempt ended without an answer. Continue where it stopped.",
        ),
    ],
)
def test_retry_says_interrupted_only_of_an_interrupted_attempt(
    agents: Agents, steps: tuple[str, ...], options: tuple[str, ...], told: str
) -> None:
    """`retry` tells the model that it was interrupted only if the attempt broke off or was cancelled.

    An attempt that ended at a limit was not interrupted.
    """
    task = agents.launch(*steps, options=options)
    if steps == ("call true", "sleep 60"):
        wait_until(lambda: agents.bench.show(task)["agent"]["calls"], "the tool call of the agent")
        agents.bench.ok("cancel", task)
    agents.wait(task)
    agents.bench.ok("retry", task)
    agents.bench.run("cancel", task)
    assert prompts(agents, task)[1] == told


def test_retry_of_an_agent_that_has_asked_is_refused(agents: Agents) -> None:
    """If an agent has asked a question, `retry` and a launch with its key are refused, with a hint how to answer.

    With the key scope `ended`, the launch returns the task as before.
    """
    words = ("call true", "ask May I?")
    task = agents.ended(*words, options=("--key", "k"))["id"]
    for refused in (
        agents.bench.run("retry", task),
        agents.bench.run("agent", "--key", "k", "--", "\n".join(words)),
        agents.bench.run("agent", "--key", "k", "--wait", "9s", "--", "\n".join(words)),
    ):
        assert refused.returncode == 2, refused.stdout
        assert f"the agent of task {task} asked a question" in refused.stderr
        assert f"outlive agent --resume {task} -- ANSWER" in refused.stderr
        assert "Traceback" not in refused.stderr
    ended = agents.bench.run("agent", "--key", "k", "--key-scope", "ended", "--", "\n".join(words))
    assert (ended.returncode, ended.stdout.strip()) == (0, task)
    assert f"outlive agent --resume {task} -- ANSWER" in ended.stderr
    assert "outlive retry" not in ended.stderr
    assert prompts(agents, task) == ["\n".join(words)], "the refused attempt left files"
    assert agents.ended("answer yes", options=("--resume", task))["agent"]["answer"] == "yes"


def test_lost_agent_that_has_asked_is_not_started_again(agents: Agents) -> None:
    """`retry --lost` does not start a lost agent again if the agent has asked a question."""
    bench = agents.bench
    task = agents.launch("ask May I?", "sleep 60", options=("--retries", "1", "--session", "s-1"))
    wait_until(lambda: "May I?" in Path(bench.files(task).output).read_text(), "the question of the agent")
    bench.kill(task, "keeper", "witness", "command")
    shown = wait_until(lambda: (found := bench.show(task))["settled_at"] and found, "the ending of the agent")
    assert (shown["state"], shown["agent"]["class"]) == ("lost", "asked")
    told = bench.ok("inbox", "--session", "s-1")
    assert f"outlive agent --resume {task} -- ANSWER" in told
    assert "outlive retry" not in told
    assert "no lost task" in bench.ok("retry", "--lost")


def test_hint_names_no_session_when_the_asking_client_cannot_continue_one(agents: Agents) -> None:
    """If the client cannot continue a session, the hint of the refused `retry` says to launch a new agent instead."""
    text = agents.settings.read_text()
    agents.settings.write_text(text.replace('resume = ["--resume", "{session}"]\n', ""))
    task = agents.ended("ask May I?")["id"]
    refused = agents.bench.run("retry", task)
    assert refused.returncode == 2, refused.stdout
    assert "launch a new agent with the answer in its prompt" in refused.stderr
    assert "--resume" not in refused.stderr


def test_session_that_its_client_has_open_is_not_continued(agents: Agents) -> None:
    """While a process of the client has a session open, no agent may continue the session.

    This also holds for an agent that the process itself launches. When the process has begun another session or has
    ended, an agent may continue it.
    """
    bench, clients = agents.bench, Clients()
    try:
        pid = clients.start()
        words = ("agent", "--client", "bot", "--resume", "s-open", "--wait", "30s", "--", "answer hello")
        begin(bench, "s-open", "--client", "bot", "--pid", pid)
        refused = bench.run(*words, env={"OUTLIVE_SESSION": "s-open"})
        assert refused.returncode == 2, refused.stdout
        assert "bot has the session s-open open at this moment" in refused.stderr
        begin(bench, "s-later", "--client", "bot", "--pid", pid)
        assert bench.ok(*words).endswith("hello")
        begin(bench, "s-open", "--client", "bot", "--pid", pid, "--source", "resume")
        assert bench.run(*words).returncode == 2
        clients.kill(pid)
        assert bench.ok(*words).endswith("hello")
    finally:
        clients.kill_all()


# Claude Code reports the cost of the whole session. If it is killed, it reports no cost.
SESSION_COST = """
import json, os, sys, time
words = sys.argv[1:]
session = words[words.index("--resume" if "--resume" in words else "--session-id") + 1]
memory = sys.argv[0] + "." + session
cost = 1.0 + (float(open(memory).read()) if os.path.exists(memory) else 0.0)
open(memory, "w").write(str(cost))
print(json.dumps({"type": "system", "subtype": "init", "session_id": session}), flush=True)
words = {"id": "m", "content": [{"type": "text", "text": "on it"}]}
print(json.dumps({"type": "assistant", "message": words, "parent_tool_use_id": None}), flush=True)
if "wait" in sys.stdin.read():
    time.sleep(300)
end = {"type": "result", "subtype": "success", "is_error": False, "result": "done", "total_cost_usd": cost}
print(json.dumps(end), flush=True)
"""


def test_cost_of_a_session_is_counted_once_whichever_of_its_tasks_is_continued(agents: Agents) -> None:
    """The cost of a run excludes all earlier runs of its session, even those of other tasks."""
    bench = agents.bench
    program = bench.root / "claude.py"
    program.write_text(SESSION_COST)
    command = json.dumps([sys.executable, str(program)])
    agents.settings.write_text(f'[agents]\nclient = "claude"\n[agents.clients.claude]\ncommand = {command}\n')

    def resumed(task: str) -> str:
        return str(agents.wait(bench.ok("agent", "--resume", task, "--", "go on"))["agent"]["cost_usd"])

    first = agents.ended("begin")["id"]
    assert [resumed(first), resumed(first)] == ["1.0", "1.0"]
    killed = bench.ok("agent", "--resume", first, "--", "wait")
    wait_until(lambda: bench.show(killed)["agent"]["turns"], "the first text of the agent")
    bench.ok("cancel", killed)
    assert resumed(killed) == "2.0"  # including the cost that the killed run did not report
    assert resumed(killed) == "1.0"


@pytest.mark.parametrize(
    "words", [("--model=--yolo",), ("--fallback=other:-x",), ("--client", "bot", "--resume=--yolo")]
)
def test_name_that_looks_like_an_option_of_the_client_is_refused(agents: Agents, words: tuple[str, ...]) -> None:
    """The name of a model or session that begins with `-` is refused.

    The client would read it as an option, for example as one that allows every tool.
    """
    done = agents.bench.run("agent", *words, "--", "answer hello")
    assert done.returncode == 2, done.stdout
    assert "begins with" in done.stderr


def test_prompt_that_would_be_an_option_of_the_client_is_refused(agents: Agents) -> None:
    """A prompt that begins with `-` is refused if the client takes the prompt as its last argument."""
    text = agents.settings.read_text()
    agents.settings.write_text(text.replace('session = "session_id"', 'session = "session_id"\nprompt = "argument"'))
    done = agents.bench.run("agent", "--", "--yolo")
    assert done.returncode == 2, done.stdout
    assert "begins with" in done.stderr
