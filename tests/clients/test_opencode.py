"""Outlive as a plugin of the real OpenCode, offline.

Some sessions answer one prompt and exit. Other sessions stay open in a server.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.model import Asked, Hang, Pause, Reply, Say, Use
from tests.clients.rig import released
from tests.support import wait_until

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from tests.clients.rigs.opencode import OpenCode


def tasks(opencode: OpenCode, number: int = 1) -> list[str]:
    """Wait until there are `count` tasks, and return their ids, oldest first."""

    def found() -> list[Any]:
        rows: list[Any] = opencode.bench.json("list", "--all")["tasks"]
        return rows if len(rows) == number else []

    rows = sorted(wait_until(found, "the tasks"), key=lambda row: str(row["created_at"]))
    return [str(row["id"]) for row in rows]


def session_of(client: subprocess.Popen[str]) -> str:
    """Return the session id from the first line of a client's output."""
    assert client.stdout is not None
    return str(json.loads(client.stdout.readline())["sessionID"])


def until_asked(opencode: OpenCode, number: int) -> Asked:
    """Wait until the model has received `number` requests, and return the request with this number."""
    wait_until(lambda: len(opencode.model.asked) >= number, f"request {number}")
    return opencode.model.asked[number - 1]


def until_watched(opencode: OpenCode) -> None:
    """Wait until a process of Outlive watches the idle session."""
    wait_until(lambda: list(opencode.bench.state.glob("*/hooks/*.watch")), "the watcher")


# --- sessions that answer one prompt ---------------------------------------------------------------


def test_session_ends_after_one_prompt_and_can_be_continued(opencode: OpenCode) -> None:
    """A session that answered one prompt ends, and another process can continue it.

    Outlive's skill is offered to the model, and the task belongs to the project.
    """
    opencode.configure()
    opencode.install()

    def answer(asked: Asked) -> list[Reply]:
        return [Say("finished") if asked.results else opencode.shell("outlive run --notify never true")]

    def how() -> Any:
        (session,) = opencode.bench.json("session", "list", "--all")["sessions"]
        return session["end_reason"]

    opencode.model.answer = answer
    opencode.finish(opencode.ask("begin"))
    assert "<name>outlive</name>" in opencode.model.asked[-1].all, "the skill is not offered"
    (task,) = tasks(opencode)
    assert opencode.bench.show(task)["project"] == str(opencode.bench.project)
    assert wait_until(how, "the session's end") == "dispose"
    opencode.finish(opencode.ask("go on", "-c"))
    assert "begin" in opencode.model.asked[-1].all
    assert wait_until(how, "the second end of the session") == "dispose"


def test_text_before_a_tool_is_not_the_end_of_a_turn(opencode: OpenCode, tmp_path: Path) -> None:
    """If the model writes text and then calls a tool, the turn goes on.

    In the API of Anthropic, the text arrives before the tool call, and looks like the end of a turn. The hook has
    started to wait for tasks by then, and is ended.
    """
    opencode.configure(dialect="anthropic")
    opencode.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [Say("I launch it."), opencode.shell(f"outlive run '{released(go)}; exit 3'")]
        if asked.results == 1:
            return [Say("I look at something else."), opencode.shell("echo else")]
        if asked.results == 2:
            return [Say("And at something else."), Pause(), opencode.shell("echo more")]
        assert not go.exists() or asked.all.count("(exit 3)") == 1
        go.touch()
        return [Say("finished")]

    opencode.model.answer = answer
    opencode.finish(opencode.ask("begin"))
    assert len(opencode.model.asked) == 5
    told = opencode.model.asked[-1].all
    assert told.count("(exit 3)") == 1
    assert opencode.notices(tasks(opencode)[0]) == {"ended": "acked"}


def test_ending_in_the_history_is_not_repeated_after_a_kill(opencode: OpenCode) -> None:
    """If the history of a killed client contains the ending, the ending is not reported again after the kill.

    The client was killed before it could confirm that the ending was delivered.
    """
    opencode.configure()
    opencode.install()

    def answer(asked: Asked) -> list[Reply]:
        if "carry on" in asked.all:
            return [Say("fine")]
        return [Hang()] if asked.results else [opencode.shell("outlive run 'exit 3'; outlive wait --no-ack")]

    opencode.model.answer = answer
    first = opencode.ask("launch it")
    session = session_of(first)
    until_asked(opencode, 2)
    (task,) = tasks(opencode)
    assert f"notice n{task}01ended" in opencode.model.asked[1].last
    assert opencode.notices(task) == {"ended": "presented"}
    opencode.kill(first)
    opencode.finish(opencode.ask("carry on", "-s", session))
    told = opencode.model.asked[-1].all
    assert told.count(f"notice n{task}01ended") == 1
    assert opencode.hand_offs(told) == 0
    assert opencode.notices(task) == {"ended": "acked"}


def test_new_session_learns_of_the_running_task_of_a_killed_session(opencode: OpenCode, tmp_path: Path) -> None:
    """A new session's hand-off names the running task of a killed session.

    When the killed session is resumed, it gets the ending of the task.
    """
    opencode.configure()
    opencode.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if "launch it" in asked.all and not asked.results:
            return [opencode.shell(f"outlive run '{released(go)}; exit 3'")]
        return [Hang()] if asked.results and "carry on" not in asked.all else [Say("fine")]

    opencode.model.answer = answer
    first = opencode.ask("launch it")
    session = session_of(first)
    until_asked(opencode, 2)
    opencode.kill(first)
    (task,) = tasks(opencode)
    opencode.finish(opencode.ask("another"))
    assert f"{task} (of an earlier session) running" in opencode.model.asked[2].all
    go.touch()
    opencode.until_ended(task)
    opencode.finish(opencode.ask("carry on", "-s", session))
    assert f"{task} failed (exit 3)" in opencode.model.asked[3].all
    assert opencode.notices(task) == {"ended": "acked"}


def test_hand_off_names_a_sub_agent_that_died_with_its_client(opencode: OpenCode) -> None:
    """If a sub-agent died with its client, the session's hand-off names it, with an unknown outcome."""
    opencode.configure()
    opencode.install()
    prompt = {"description": "look around", "prompt": "look below", "subagent_type": "general"}

    def answer(asked: Asked) -> list[Reply]:
        if "carry on" in asked.all:
            return [Say("fine")]
        if "look below" in asked.all and "delegate it" not in asked.all:
            return [Hang()] if asked.results else [opencode.shell("outlive run 'exit 3'")]
        return [Use("task", prompt)]

    opencode.model.answer = answer
    first = opencode.ask("delegate it")
    session = session_of(first)
    until_asked(opencode, 3)
    (task,) = tasks(opencode)
    opencode.until_ended(task)
    assert opencode.bench.show(task)["session"] == session
    running = opencode.bench.json("hand-off", "--session", session)["foreign"]
    assert [(one["client"], one["state"]) for one in running] == [("opencode", "running")]
    opencode.kill(first)
    opencode.finish(opencode.ask("carry on", "-s", session))
    told = opencode.model.asked[-1].all
    assert f"{task} failed (exit 3)" in told
    assert "run by the client itself, not by Outlive (1):" in told
    assert "may run, or have ended" in told
    assert "look around" in told


# --- sessions that stay open -----------------------------------------------------------------------


def test_idle_session_is_woken_once(opencode: OpenCode, tmp_path: Path) -> None:
    """When a task ends, the idle session takes one turn with the ending, and the ending is not repeated."""
    opencode.configure()
    opencode.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [opencode.shell(f"outlive run '{released(go)}; exit 3'")]
        return [Say("heard" if "(exit 3)" in asked.all else "idle")]

    opencode.model.answer = answer
    server = opencode.serve()
    session = server.begin()
    server.say(session, "launch it")
    until_asked(opencode, 2)
    (task,) = tasks(opencode)
    until_watched(opencode)
    go.touch()
    assert f"n{task}01ended" in until_asked(opencode, 3).last
    wait_until(lambda: opencode.notices(task) == {"ended": "acked"}, "the acknowledgement")
    server.say(session, "and now?")
    told = until_asked(opencode, 4).all
    assert "and now?" in told
    assert told.count(f"notice n{task}01ended") == 1


def test_idle_session_in_a_terminal_is_woken(opencode: OpenCode, tmp_path: Path) -> None:
    """An idle session in a terminal is woken by the same plugin as a session in a server."""
    opencode.configure()
    opencode.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [opencode.shell(f"outlive run '{released(go)}; exit 3'")]
        return [Say("heard" if "(exit 3)" in asked.all else "idle")]

    opencode.model.answer = answer
    terminal = opencode.sit_down("launch it")
    wait_until(lambda: b"launch it" in terminal.screen, "the prompt")
    terminal.enter("", lambda: bool(opencode.model.asked))
    until_asked(opencode, 2)
    (task,) = tasks(opencode)
    until_watched(opencode)
    go.touch()
    assert f"n{task}01ended" in until_asked(opencode, 3).last
    wait_until(lambda: opencode.notices(task) == {"ended": "acked"}, "the acknowledgement")


def test_interrupted_session_is_not_woken(opencode: OpenCode, tmp_path: Path) -> None:
    """A session whose turn the user has stopped is not woken. The next prompt has the ending."""
    opencode.configure()
    opencode.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [opencode.shell(f"outlive run '{released(go)}; exit 3'")]
        return [Hang(5)] if "carry on" not in asked.all else [Say("fine")]

    opencode.model.answer = answer
    server = opencode.serve()
    session = server.begin()
    server.say(session, "launch it")
    until_asked(opencode, 2)
    server.post(f"/session/{session}/abort", {})
    wait_until(lambda: server.is_idle(session), "the end of the turn")
    (task,) = tasks(opencode)
    go.touch()
    opencode.until_ended(task)
    server.say(session, "carry on")
    told = until_asked(opencode, 3).all
    assert "carry on" in told
    assert told.count(f"notice n{task}01ended") == 1
    assert not list(opencode.bench.state.glob("*/hooks/*.watch")), "a watcher was started for the interrupted session"


def test_compacted_session_gets_one_hand_off(opencode: OpenCode, tmp_path: Path) -> None:
    """After OpenCode has compacted the history of a session, the session gets one hand-off.

    The summary may omit the tasks.
    """
    opencode.configure()
    opencode.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results and "launch it" in asked.last:
            return [opencode.shell(f"outlive run --notify failure '{released(go)}; exit 3'")]
        return [Say("fine")]

    opencode.model.answer = answer
    server = opencode.serve()
    session = server.begin()
    server.say(session, "launch it")
    until_asked(opencode, 2)
    wait_until(lambda: server.is_idle(session), "the end of the turn")
    (task,) = tasks(opencode)
    server.post(f"/session/{session}/summarize", {"providerID": "scripted", "modelID": "scripted"})
    server.say(session, "and now?")
    wait_until(lambda: "and now?" in opencode.model.asked[-1].all, "the next turn")
    told = opencode.model.asked[-1].all
    assert opencode.hand_offs(told) == 1
    assert f"{task} running" in told
    wait_until(lambda: server.is_idle(session), "the end of the turn")
    server.say(session, "and then?")
    wait_until(lambda: "and then?" in opencode.model.asked[-1].all, "the turn after that")
    assert opencode.hand_offs(opencode.model.asked[-1].all) == 1
    go.touch()


def test_end_of_a_session_does_not_end_the_tasks_of_another_one(opencode: OpenCode, tmp_path: Path) -> None:
    """A session's task continues when other sessions are deleted, end or are killed."""
    opencode.configure()
    opencode.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if "launch it" in asked.all and not asked.results:
            return [opencode.shell(f"outlive run '{released(go)}; exit 3'")]
        return [Hang()] if "die" in asked.last else [Say("heard" if "(exit 3)" in asked.all else "idle")]

    opencode.model.answer = answer
    server = opencode.serve()
    session, neighbour = server.begin(), server.begin()
    server.say(session, "launch it")
    until_asked(opencode, 2)
    until_watched(opencode)
    server.say(neighbour, "hello")
    until_asked(opencode, 3)
    wait_until(lambda: server.is_idle(neighbour), "the end of the session's turn")
    server.delete(f"/session/{neighbour}")
    opencode.finish(opencode.ask("hello"))
    peer = opencode.ask("die")
    until_asked(opencode, 5)
    opencode.kill(peer)
    (task,) = tasks(opencode)
    assert opencode.bench.row(task).state == "running"
    go.touch()
    woken = until_asked(opencode, 6)
    assert f"n{task}01ended" in woken.last
    assert "launch it" in woken.all


# --- a plugin without its interpreter --------------------------------------------------------------


@pytest.mark.parametrize("program", ["/nonexistent/python", "/bin/echo", "/bin/false"])
def test_opencode_works_when_the_interpreter_of_the_plugin_is_missing_or_replaced(
    opencode: OpenCode, program: str
) -> None:
    """If the plugin's Python interpreter is missing or replaced, OpenCode works as it does without Outlive."""
    file = opencode.configure()
    opencode.install()
    plugin = file.parent / "plugin/outlive.js"
    was = plugin.read_text()
    plugin.write_text(was.replace(json.dumps(sys.executable), json.dumps(program)))
    assert plugin.read_text() != was
    opencode.model.answer = lambda asked: [Say("finished") if asked.results else opencode.shell("echo out; env")]
    opencode.finish(opencode.ask("begin"))
    told = opencode.model.asked[-1].last
    assert told.startswith("out\n")
    assert "OUTLIVE_SESSION=ses_" in told, "the plugin was not loaded"
    assert "hook opencode" not in told


# --- install and uninstall -------------------------------------------------------------------------


def test_uninstall_restores_the_configuration_after_a_session(opencode: OpenCode) -> None:
    """After `uninstall`, the configuration files have the same bytes as before `install`, including comments."""
    file = opencode.configure()
    before = {path: path.read_bytes() for path in file.parent.rglob("*") if path.is_file()}
    opencode.install()
    opencode.finish(opencode.ask("hello"))
    assert opencode.bench.json("session", "list", "--all")["sessions"], "the plugin did not run"
    opencode.bench.ok("uninstall", "--yes", "--client", "opencode")
    assert {path: path.read_bytes() for path in file.parent.rglob("*") if path.is_file()} == before
    assert not (file.parent / "plugin").exists()
    assert not (file.parent / "skills").exists()
