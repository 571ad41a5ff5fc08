"""Continuing the session of an agent: one task at a time may do it, and each cost is counted once."""

from __future__ import annotations

import json
import os
import sys
from subprocess import DEVNULL, PIPE, Popen
from typing import TYPE_CHECKING

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
    """If several callers continue one session at the same time, all callers but one are refused.

    Most clients would write all runs into one transcript. The callers that are refused do not remove the worktree.
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


def test_session_that_its_client_has_open_is_not_continued(agents: Agents) -> None:
    """No agent may continue a session while a process of the client has the session open.

    This also holds for an agent that this process launches. The session can be continued when the process has begun
    another session or has ended.
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
    """The cost of a run excludes all earlier runs of its session, including runs by other tasks."""
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
    """The name of a model or of a session is refused if it begins with `-`.

    The client would read the name as an option, for example as an option that allows every tool.
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
