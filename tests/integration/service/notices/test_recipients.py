"""Which sessions receive a task's ending when the launching session is over."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.agent_steps import Agents
from tests.mcp_steps import over_stdio, play
from tests.session_steps import begin, ended, told, until
from tests.support import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.session_steps import Clients
    from tests.support import Bench


def state_of(bench: Bench, task: str) -> str:
    """Return the state of the notice of a task's ending."""
    (notice,) = bench.show(task)["notices"]
    return str(notice["state"])


def handed(begun: Any) -> list[str]:
    """Return the ids of the ended tasks that a hand-off names."""
    return [task["id"] for task in (*begun["hand_off"]["lost"], *begun["hand_off"]["ended"])]


def over(bench: Bench, clients: Clients, session: str, *texts: str, options: tuple[str, ...] = ()) -> list[str]:
    """Let a session launch tasks and wait until they have ended. Then kill the session's client, and return the ids."""
    process = clients.start()
    begin(bench, session, "--pid", process)
    tasks = [bench.launch(text, "--session", session, *options) for text in texts]
    bench.run("wait", *tasks)
    clients.kill(process)
    return tasks


# --- a new session --------------------------------------------------------------------------------


def test_ending_of_an_earlier_session_is_reported_to_one_new_session(bench: Bench, clients: Clients) -> None:
    """If the launching session is over, the first new session receives the ending, and its next turn acknowledges it.

    The record is deleted later.
    """
    (task,) = over(bench, clients, "s-1", "exit 3", options=("--retain", "1s"))
    first = begin(bench, "s-2", "--pid", clients.start())
    assert handed(first) == [task]
    assert state_of(bench, task) == "presented"
    assert handed(begin(bench, "s-3", "--pid", clients.start())) == []
    assert told(bench, "s-2") == []
    assert state_of(bench, task) == "acked"
    assert handed(begin(bench, "s-4", "--pid", clients.start())) == []
    wait_until(
        lambda: bench.ok("sweep", "--apply") is not None and bench.run("show", task).returncode == 2, "the deletion"
    )


def test_presented_ending_is_reported_again_when_its_session_dies(bench: Bench, clients: Clients) -> None:
    """If a session dies before it has acknowledged an ending, the next new session receives the ending."""
    (task,) = over(bench, clients, "s-1", "exit 3")
    process = clients.start()
    assert handed(begin(bench, "s-2", "--pid", process)) == [task]
    clients.kill(process)
    assert handed(begin(bench, "s-3", "--pid", clients.start())) == [task]
    bench.run("result", task, env={"OUTLIVE_SESSION": "s-3"})
    assert state_of(bench, task) == "acked"


def test_hand_off_names_five_endings_of_earlier_sessions_and_counts_the_rest(bench: Bench, clients: Clients) -> None:
    """A hand-off names at most five endings of earlier sessions, failures first, and counts the others.

    Endings that are only counted are acknowledged, too.
    """
    tasks = over(bench, clients, "s-1", "exit 3", *["true"] * 7, "exit 4")
    begun = begin(bench, "s-2", "--pid", clients.start())
    names = handed(begun)
    assert len(names) == 5
    assert set(names) >= {tasks[0], tasks[-1]}
    assert begun["hand_off"]["earlier_more"] == 4
    assert "and 4 more" in begun["hand_off"]["text"]
    assert handed(begin(bench, "s-3", "--pid", clients.start())) == []
    assert told(bench, "s-2") == []
    assert {state_of(bench, task) for task in tasks} == {"acked"}


def test_compacted_session_receives_no_endings_of_earlier_sessions(bench: Bench, clients: Clients) -> None:
    """A session that was compacted does not count as new, so it receives no endings of earlier sessions."""
    process = clients.start()
    begin(bench, "s-0", "--pid", process)
    (task,) = over(bench, clients, "s-1", "exit 3")
    assert handed(begin(bench, "s-0", "--source", "compact", "--pid", process)) == []
    assert handed(begin(bench, "s-2", "--pid", clients.start())) == [task]


@pytest.mark.parametrize(("client", "event"), [("claude", "Stop"), ("codex", "Stop"), ("gemini", "AfterAgent")])
def test_stop_hook_confirms_endings_of_earlier_sessions(
    bench: Bench, clients: Clients, client: str, event: str
) -> None:
    """The stop hook acknowledges endings of earlier sessions, even if its session has no task.

    They are not reported again.
    """
    (task,) = over(bench, clients, "s-1", "exit 3")
    process = clients.start()
    assert handed(begin(bench, "s-2", "--client", client, "--pid", process)) == [task]
    for name in ("UserPromptSubmit", event) if client != "gemini" else ("BeforeAgent", event):
        assert hook(bench, {"session_id": "s-2", "cwd": str(bench.project), "prompt": "go on"}, client, name) == ""
    assert state_of(bench, task) == "acked"
    clients.kill(process)
    assert handed(begin(bench, "s-3", "--pid", clients.start())) == []


# --- a session inside the task of another session -------------------------------------------------


@pytest.mark.parametrize("hook", [True, False], ids=["begun", "only launched"])
def test_parent_session_receives_endings_of_a_session_inside_its_task(
    bench: Bench, clients: Clients, *, hook: bool
) -> None:
    """If a session inside a task is over, its parent session receives the ending of the task that it launched."""
    begin(bench, "parent", "--pid", clients.start())
    outlive = " ".join(bench.command())
    begins = f"{outlive} session begin --session child --pid $$; " if hook else ""
    script = f"{begins}{outlive} run --session child '{until('go')}; exit 3' > inner; {until('over')}"
    script += f"; {outlive} session end --session child"
    outer = bench.launch(script, "--session", "parent")
    inner = wait_until(lambda: _text_of(bench.project / "inner"), "the inner task's id")
    assert [task["id"] for task in bench.json("gate", "--session", "parent")["running"]] == [outer]
    (bench.project / "over").touch()
    bench.run("wait", outer, "--session", "parent")
    assert [task["id"] for task in bench.json("gate", "--session", "parent")["running"]] == [inner]
    (bench.project / "go").touch()
    bench.run("wait", inner)
    assert handed(begin(bench, "other", "--pid", clients.start())) == []
    assert told(bench, "parent") == [inner]
    assert told(bench, "parent") == []
    assert state_of(bench, inner) == "acked"


def test_client_inside_a_task_has_its_own_session(bench: Bench, clients: Clients) -> None:
    """A client inside a task has its own session.

    If it is killed, its parent session receives the ending of its task.
    """
    begin(bench, "parent", "--pid", clients.start())
    outlive = " ".join(bench.command())
    client = clients.start()
    launches = {
        "CLAUDE_CODE_SESSION_ID=claude": "claude",
        "CODEX_SESSION_ID=codex": "codex",
        "CLAUDE_CODE_SESSION_ID=claude OUTLIVE_SESSION=plugin": "plugin",
        "SHELL=sh": "parent",
    }
    script = f"env OUTLIVE_SESSION=claude {outlive} session begin --pid {client} > begun"
    script += "".join(f"; env {one} {outlive} run 'exit 3' >> inner" for one in launches)
    environ = {"CLAUDE_CODE_SESSION_ID": "elsewhere"}
    bench.run("wait", bench.launch(script, "--session", "parent", env=environ), "--session", "parent")
    tasks = _text_of(bench.project / "inner").split()
    assert [bench.show(task)["session"] for task in tasks] == list(launches.values())
    bench.run("wait", *tasks, "--no-ack")
    assert tasks[0] not in told(bench, "parent")
    clients.kill(client)
    assert told(bench, "parent") == [tasks[0]]


@pytest.mark.parametrize("has_ended", [True, False], ids=["ended", "still running"])
def test_session_of_a_background_agent_takes_no_ending_of_an_earlier_session(
    bench: Bench, clients: Clients, *, has_ended: bool
) -> None:
    """The session of a background agent receives no ending of an earlier session.

    The user's next session receives it.
    """
    process = clients.start()
    begin(bench, "s-1", "--pid", process)
    task = bench.launch("exit 3" if has_ended else f"{until('go')}; exit 3", "--session", "s-1")
    if has_ended:
        bench.run("wait", task, "--no-ack")
    clients.kill(process)
    outlive = " ".join(bench.command())
    steps = f"{outlive} session begin --session inner --pid $$ --json > begun; {until('over')}"
    agent = Agents(bench).launch(f"call {steps}", "answer ok")
    begun = json.loads(wait_until(lambda: _text_of(bench.project / "begun"), "the session inside the agent"))
    assert handed(begun) == []
    (bench.project / "go").touch()
    bench.run("wait", task, "--no-ack")
    assert told(bench, "inner") == []
    assert handed(begin(bench, "s-2", "--pid", clients.start())) == [task]
    assert told(bench, "s-2") == []
    assert state_of(bench, task) == "acked"
    (bench.project / "over").touch()
    bench.run("wait", agent)


def _text_of(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


# --- a session whose hand-off showed the task as running ------------------------------------------


def test_session_that_was_shown_a_running_task_receives_its_ending(bench: Bench, clients: Clients) -> None:
    """If session A dies, session B, which was shown A's running task, receives its ending.

    The gate does not make B wait for the task.
    """
    process = clients.start()
    begin(bench, "A", "--pid", process)
    task = bench.launch(f"{until('go')}; exit 3", "--session", "A")
    clients.kill(process)
    shown = begin(bench, "B", "--pid", clients.start())["hand_off"]["running"]
    assert [(each["id"], each["earlier_session"]) for each in shown] == [(task, True)]
    assert bench.json("gate", "--session", "B")["may_stop"] is True
    (bench.project / "go").touch()
    bench.run("wait", task)
    assert handed(begin(bench, "C", "--pid", clients.start())) == []
    assert told(bench, "B") == [task]
    assert told(bench, "B") == []
    assert state_of(bench, task) == "acked"
    assert handed(begin(bench, "D", "--pid", clients.start())) == []


def test_ending_waits_for_a_new_session_when_no_session_is_left(bench: Bench, clients: Clients) -> None:
    """If the launching session and all sessions that were shown the task died, a new session gets the ending."""
    processes = [clients.start() for _ in range(2)]
    begin(bench, "A", "--pid", processes[0])
    task = bench.launch(f"{until('go')}; exit 3", "--session", "A")
    clients.kill(processes[0])
    begin(bench, "B", "--pid", processes[1])
    clients.kill(processes[1])
    (bench.project / "go").touch()
    bench.run("wait", task)
    assert handed(begin(bench, "C", "--pid", clients.start())) == [task]
    assert ended(bench, "C") in told(bench, "C")


@pytest.mark.parametrize("dies_first", [True, False], ids=["before the ending", "after it"])
def test_warned_session_receives_an_ending_when_the_launching_session_dies(
    bench: Bench, clients: Clients, *, dies_first: bool
) -> None:
    """If B's hand-off warned of a task of A, and A dies, B receives the ending of the task."""
    process = clients.start()
    begin(bench, "A", "--pid", process)
    task = bench.launch(f"{until('go')}; exit 3 && git stash", "--session", "A")
    handed_to_b = begin(bench, "B", "--pid", clients.start())["hand_off"]
    assert (handed_to_b["running"], task in handed_to_b["text"]) == ([], True)
    if dies_first:
        clients.kill(process)
    assert bench.json("gate", "--session", "B")["may_stop"] is True
    (bench.project / "go").touch()
    bench.run("wait", task)
    if not dies_first:
        prompt = {"session_id": "B", "cwd": str(bench.project), "prompt": "go on"}
        for _ in range(2):
            assert hook(bench, prompt) == "", "B was told although A is still alive"
        clients.kill(process)
        assert f"n{task}01ended" in hook(bench, prompt)
        return
    assert handed(begin(bench, "C", "--pid", clients.start())) == []
    assert told(bench, "B") == [task]
    assert told(bench, "B") == []
    assert state_of(bench, task) == "acked"


def hook(bench: Bench, payload: dict[str, str], client: str = "claude", event: str = "UserPromptSubmit") -> str:
    """Return the output of a hook. By default, this is the hook that runs before a prompt."""
    words = bench.command("hook", client, event)
    done = subprocess.run(words, input=json.dumps(payload), env=bench.env, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


# --- a session that retries a task of another session ---------------------------------------------


@pytest.mark.parametrize("by", ["retry", "SDK", "MCP"])
def test_session_that_retries_a_task_receives_the_ending_of_the_new_attempt(
    bench: Bench, clients: Clients, by: str
) -> None:
    """If a session retries a task of a session that is over, it receives the ending, and its gate waits."""
    (task,) = over(bench, clients, "s-1", f"[ -e again ] && {until('go')}; exit 3")
    assert handed(begin(bench, "s-2", "--pid", clients.start())) == [task]
    assert told(bench, "s-2") == []
    (bench.project / "again").touch()
    retry_as(bench, "s-2", task, by)
    assert [each["id"] for each in bench.json("gate", "--session", "s-2")["running"]] == [task]
    (bench.project / "go").touch()
    bench.run("wait", task)
    assert handed(begin(bench, "s-3", "--pid", clients.start())) == []
    assert told(bench, "s-2") == [task]


def test_session_that_retries_a_task_gets_no_parent_from_it(bench: Bench, clients: Clients) -> None:
    """If a session retries a task, the session around the task's first launch does not receive the new ending."""
    begin(bench, "other", "--pid", clients.start())
    inner = f"{' '.join(bench.command())} run --session s-1 '[ -e again ] && {until('go')}; exit 3' > inner"
    bench.run("wait", bench.launch(inner, "--session", "other"), "--session", "other")
    task = _text_of(bench.project / "inner")
    bench.run("wait", task, "--session", "s-1")
    process = clients.start()
    begin(bench, "s-2", "--pid", process)
    (bench.project / "again").touch()
    retry_as(bench, "s-2", task, "retry")
    clients.kill(process)
    (bench.project / "go").touch()
    bench.run("wait", task)
    assert task not in told(bench, "other")
    assert handed(begin(bench, "s-3", "--pid", clients.start())) == [task]


def retry_as(bench: Bench, session: str, task: str, by: str) -> None:
    """Retry a task in the environment of a session."""
    inside = {"OUTLIVE_SESSION": session, "OUTLIVE_MCP_RUN": "on"}

    async def steps() -> None:
        async with over_stdio(bench, "legacy", inside) as client:
            await client.call_tool("retry", {"id": task})

    if by == "retry":
        bench.ok("retry", task, env=inside)
        return
    if by == "MCP":
        play(steps)
        return
    program = f"from outlive import Outlive; Outlive().task({task!r}).retry()"
    subprocess.run([sys.executable, "-c", program], env={**bench.env, **inside}, cwd=bench.project, check=True)


# --- a compacted session --------------------------------------------------------------------------


def test_compacted_session_is_reminded_of_reported_endings(bench: Bench, clients: Clients) -> None:
    """After a compaction, the hand-off reminds the session of the last eight endings, with one line for each.

    No notice is presented again.
    """
    process = clients.start()
    begin(bench, "s-1", "--pid", process)
    tasks = [bench.launch("exit 3", "--session", "s-1") for _ in range(9)]
    bench.run("wait", *tasks)
    assert len(told(bench, "s-1")) == 9
    assert told(bench, "s-1") == []
    begun = begin(bench, "s-1", "--pid", process, "--source", "compact")["hand_off"]
    assert len(set(begun["told_lately"]) & set(tasks)) == len(begun["told_lately"]) == 8
    assert begun["ended"] == []
    (line,) = [line for line in begun["text"].splitlines() if begun["told_lately"][0] in line]
    assert "failed (exit 3)" in line
    assert len(line.encode()) <= 100
    assert told(bench, "s-1") == []
    assert bench.ok("session", "begin", "--session", "s-1", "--source", "resume", "--pid", process) == ""


def test_compacted_session_is_reminded_of_endings_of_earlier_sessions(bench: Bench, clients: Clients) -> None:
    """After a compaction, the hand-off also reminds of endings of earlier sessions that this session got."""
    process = clients.start()
    begin(bench, "A", "--pid", process)
    shown = bench.launch(f"{until('go')}; exit 3", "--session", "A")
    clients.kill(process)
    (earlier,) = over(bench, clients, "E", "exit 4")
    process = clients.start()
    assert handed(begin(bench, "B", "--pid", process)) == [earlier]
    (bench.project / "go").touch()
    bench.run("wait", shown)
    assert told(bench, "B") == [shown]
    assert told(bench, "B") == []
    begun = begin(bench, "B", "--pid", process, "--source", "compact")["hand_off"]
    assert (set(begun["told_lately"]), begun["ended"]) == ({shown, earlier}, [])
