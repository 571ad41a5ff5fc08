"""Outlive in every real client, offline.

Tasks outlive the session that launched them. Each ending is reported once, to that session or to the session that
continues it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.model import Asked, Hang, Reply, Say
from tests.clients.rig import released
from tests.support import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.clients.rig import Rig
    from tests.clients.terminal import Terminal


@pytest.fixture
def installed(rig: Rig) -> Rig:
    """Return a client with a user's configuration and with Outlive installed."""
    rig.configure()
    rig.install()
    return rig


@pytest.fixture
def answers(answering: Rig) -> Rig:
    """Return a client with Outlive installed that answers one prompt and exits."""
    answering.configure()
    answering.install()
    return answering


def launching(rig: Rig, command: str) -> Callable[[Asked], list[Reply]]:
    """Return a model that launches a task on request, and later says whether a request contained the task's ending.

    The model says `heard` if it did, and otherwise `idle`. It replies too late to a prompt with "die".
    """

    def answer(asked: Asked) -> list[Reply]:
        if "launch it" in asked.all and not asked.results:
            return [rig.shell(f"outlive run {command}")]
        if "die" in asked.last:
            return [Hang()]
        return [Say("heard" if "(exit 3)" in asked.all else "idle")]

    return answer


def sit_down(rig: Rig, go: Path) -> tuple[Terminal, str]:
    """Start a session in a terminal, let it launch a task, and wait until it is idle.

    The task fails when the file `go` exists.
    """
    rig.model.answer = launching(rig, f"'{released(go)}; exit 3'")
    terminal = rig.sit_down("launch it")
    wait_until(lambda: len(rig.model.asked) == 2, "the end of the turn")
    rig.until_idle()
    return terminal, rig.only_task()


def end_the_task(rig: Rig, terminal: Terminal, go: Path, task: str) -> Asked:
    """Let the task end, and return the request to the model that contains the ending.

    If the client cannot be woken, a prompt is entered first.
    """
    before = len(rig.model.asked)
    go.touch()
    if not rig.is_woken:
        rig.until_ended(task)
        return rig.prompt(terminal, "and now")
    wait_until(lambda: len(rig.model.asked) > before, "the turn with the ending")
    return rig.model.asked[before]


def test_endings_of_a_killed_session_are_reported_once_to_its_successor(answers: Rig, tmp_path: Path) -> None:
    """If a session was killed, the hand-off to the session that continues it has two endings, each once.

    One of the two tasks was launched with the shell tool, and the other by MCP.
    """
    rig, go = answers, tmp_path / "go"

    launches = [
        rig.shell(f"outlive run '{released(go)}; exit 3'"),
        rig.tool("run", command=f"{released(go)}; exit 4"),
    ]
    done: list[Asked] = []

    def answer(asked: Asked) -> list[Reply]:
        if "again" in asked.all:
            return [Say("fine")]
        if not launches:
            done.append(asked)
            return [Hang()]
        return [launches.pop(0) if asked.offers(launches[0]) else rig.shell("sleep 0.1")]

    rig.model.answer = answer
    first = rig.begin("first")
    wait_until(lambda: done, "both results")
    rig.kill(first)
    by_shell, by_tool = rig.tasks(2)
    assert rig.bench.show(by_shell)["session"] == rig.bench.show(by_tool)["session"] is not None
    go.touch()
    endings = {by_shell: f"{by_shell} failed (exit 3)", by_tool: f"{by_tool} failed (exit 4)"}
    for task in endings:
        rig.until_ended(task)

    count = len(rig.model.asked)
    rig.finish(rig.resume("again"))
    told = rig.model.asked[count].all
    assert rig.hand_offs(told) == 1
    for task, ending in endings.items():
        assert told.count(ending) == 1
        assert rig.notices(task) == {"ended": "acked"}
    rig.finish(rig.resume("again, please"))
    for ending in endings.values():
        assert ending not in rig.model.asked[-1].last, "the ending was reported a second time"


def test_reader_of_a_file_that_a_task_has_stashed_is_warned(answers: Rig, tmp_path: Path) -> None:
    """If the model reads a file whose changes a task has stashed, a remark names the task.

    The content is shown unchanged. A file that no task has changed gets no remark.
    """
    rig, go = answers, tmp_path / "go"
    task = rig.stash(go)
    looks = [rig.look_at(rig.bench.project / name) for name in ("b.py", "a.py")]
    rig.model.answer = lambda _: [looks.pop(0) if looks else Say("finished")]
    assert "finished" in rig.finish(rig.ask("begin"))
    other, held = (asked.last for asked in rig.model.asked[1:3])
    assert "another" in other
    assert "[outlive]" not in other
    assert "as committed" in held
    assert held.count(f"task {task} has changed a.py and not restored it") == 1
    go.touch()


def test_sessions_of_two_projects_receive_only_their_own_endings(answers: Rig) -> None:
    """Two sessions of one user run at the same time in different projects, and each gets only its own ending."""
    rig = answers
    other = rig.bench.root / "other"
    other.mkdir()

    def answer(asked: Asked) -> list[Reply]:
        name = "aardvark" if "aardvark" in asked.all else "badger"
        if not asked.results:
            return [rig.shell(f"outlive run 'sleep 0.5; echo of-{name}; exit 4'")]
        return [Say("finished")]

    rig.model.answer = answer
    first = rig.ask("aardvark")
    wait_until(lambda: rig.model.asked, "the first request")  # two first starts at once may fail
    second = rig.ask("badger", cwd=other)
    rig.finish(first)
    rig.finish(second)
    for mine, theirs in (("aardvark", "badger"), ("badger", "aardvark")):
        told = [asked.all for asked in rig.model.asked if mine in asked.all][-1]
        assert f"of-{mine}" in told
        assert theirs not in told
        assert told.count("01ended)") == 1


def test_idle_session_receives_an_ending_once(installed: Rig, tmp_path: Path) -> None:
    """The ending is reported once to an idle session. A client that can be woken takes a new turn with the ending.

    For another client, the next prompt has the ending.
    """
    rig, go = installed, tmp_path / "go"
    terminal, task = sit_down(rig, go)
    asked = end_the_task(rig, terminal, go, task)
    assert f"n{task}01ended" in asked.last
    wait_until(lambda: rig.notices(task) == {"ended": "acked"}, "the acknowledgement")
    count = len(rig.model.asked)
    asked = rig.prompt(terminal, "anything else")
    assert f"n{task}01ended" not in asked.last
    assert len(rig.model.asked) == count + 1


def test_end_of_a_session_does_not_end_the_tasks_of_another_one(installed: Rig, tmp_path: Path) -> None:
    """A session's task continues when another session of the project ends, and when a third session is killed."""
    rig, go = installed, tmp_path / "go"
    terminal, task = sit_down(rig, go)
    rig.finish(rig.ask("hello"))
    peer = rig.ask("die")
    wait_until(lambda: len(rig.model.asked) == 4, "the first request of the other session")
    rig.kill(peer)
    assert rig.bench.row(task).state == "running"
    asked = end_the_task(rig, terminal, go, task)
    assert f"n{task}01ended" in asked.last
    assert "launch it" in asked.all


def test_cleared_session_gets_a_hand_off(installed: Rig, tmp_path: Path) -> None:
    """After a clear, the new session gets a hand-off with the running task, and later the task's ending."""
    rig, go = installed, tmp_path / "go"
    terminal, task = sit_down(rig, go)
    terminal.enter("/clear", lambda: rig.is_cleared(terminal))
    told = rig.prompt(terminal, "who are you").all
    assert "launch it" not in told
    assert rig.hand_offs(told) == 1
    assert f"{task} running" in told
    rig.until_idle()
    asked = end_the_task(rig, terminal, go, task)
    assert f"n{task}01ended" in asked.last
    sessions = rig.bench.json("session", "list", "--all")["sessions"]
    assert len(sessions) == 2
    assert len({each["lineage"] for each in sessions}) == 1


def test_session_gets_a_hand_off_after_a_summary(installed: Rig, tmp_path: Path) -> None:
    """After the client has replaced the history by a summary, the session gets a hand-off.

    The summary may omit the tasks.
    """
    rig, go = installed, tmp_path / "go"
    assert rig.compacted not in bytes(rig.bench.project), "the path contains the text that the test waits for"
    terminal, task = sit_down(rig, go)
    terminal.enter(rig.compact, lambda: rig.compacted in terminal.screen)
    told = rig.prompt(terminal, "and now").all
    assert rig.hand_offs(told) == 1
    assert f"{task} running" in told
    go.touch()


def test_uninstall_restores_the_configuration_after_a_session(rig: Rig) -> None:
    """After `uninstall`, the configuration file has the same bytes as before `install`."""
    file = rig.configure()
    before = file.read_bytes()
    rig.install()
    rig.finish(rig.ask("hello"))
    assert rig.bench.json("session", "list", "--all")["sessions"], "the hooks did not run"
    rig.bench.ok("uninstall", "--yes", "--client", rig.name)
    assert file.read_bytes() == before
    assert not (file.parent / "hooks.json").exists()
    assert not (file.parent / "skills/outlive").exists()
