"""Outlive in every real client, offline: what a session launches outlives it, and is told once, to the right one."""

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
    """A client that was configured by its user, and has Outlive."""
    rig.configure()
    rig.install()
    return rig


@pytest.fixture
def answers(answering: Rig) -> Rig:
    """The same, of those that answer one prompt and end."""
    answering.configure()
    answering.install()
    return answering


def launching(rig: Rig, command: str) -> Callable[[Asked], list[Reply]]:
    """A model that launches a task when it is told to, and then says whether it has heard of its ending."""

    def answer(asked: Asked) -> list[Reply]:
        if "launch it" in asked.all and not asked.results:
            return [rig.shell(f"outlive run {command}")]
        if "die" in asked.last:
            return [Hang()]
        return [Say("heard" if "(exit 3)" in asked.all else "idle")]

    return answer


def sit_down(rig: Rig, go: Path) -> tuple[Terminal, str]:
    """A session at a terminal that has launched a task, which fails when `go` is there, and is idle."""
    # Whoever cannot be woken would be held.
    how = "" if rig.is_woken else "--notify failure "
    rig.model.answer = launching(rig, f"{how}'{released(go)}; exit 3'")
    terminal = rig.sit_down("launch it")
    wait_until(lambda: len(rig.model.asked) == 2, "the end of the turn")
    rig.until_idle()
    return terminal, rig.only_task()


def end_the_task(rig: Rig, terminal: Terminal, go: Path, task: str) -> Asked:
    """What the model is told when the task has ended: woken, or with the next prompt."""
    before = len(rig.model.asked)
    go.touch()
    if not rig.is_woken:
        rig.until_ended(task)
        return rig.prompt(terminal, "and now")
    wait_until(lambda: len(rig.model.asked) > before, "the turn with the ending")
    return rig.model.asked[before]


def test_what_a_killed_session_launched_is_told_to_its_successor_once(answers: Rig, tmp_path: Path) -> None:
    """By the shell tool and by MCP, then SIGKILL: the hand-off names both, and each ending comes once."""
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
        assert ending not in rig.model.asked[-1].last, "it was said, and is not said again"


def test_the_gate_holds_and_then_lets_go(answers: Rig, tmp_path: Path) -> None:
    """The turn may not end while a task runs; it is told of the ending, and may."""
    rig, go = answers, tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [rig.shell(f"outlive run '{released(go)}; exit 3'")]
        if "This session waits" in asked.last:
            go.touch()
            return [rig.shell("outlive wait --no-ack")]
        return [Say("finished")]

    rig.model.answer = answer
    assert "finished" in rig.finish(rig.ask("begin"))
    told = rig.model.asked[-1].all
    assert "This session waits for background tasks" in told
    assert len(rig.model.asked) == 4, "it was held once"
    assert told.count("1 notice of background tasks") == 1
    assert rig.notices(rig.only_task()) == {"ended": "acked"}


def test_who_reads_what_a_task_holds_is_told_beside_it(answers: Rig, tmp_path: Path) -> None:
    """The file is shown as it is, with who took it away; of another one there is nothing to say."""
    rig, go = answers, tmp_path / "go"
    task = rig.stash(go)
    looks = [rig.look_at(rig.bench.project / name) for name in ("b.py", "a.py")]
    rig.model.answer = lambda _: [looks.pop(0) if looks else Say("finished")]
    assert "finished" in rig.finish(rig.ask("begin"))
    other, held = (asked.last for asked in rig.model.asked[1:3])
    assert "another" in other
    assert "[outlive]" not in other
    assert "as committed" in held
    assert held.count(f"task {task} holds a.py away from how it found it") == 1
    go.touch()


def test_sessions_of_two_projects_hear_of_their_own(answers: Rig) -> None:
    """At the same time, under the same user."""
    rig = answers
    other = rig.bench.root / "other"
    other.mkdir()

    def answer(asked: Asked) -> list[Reply]:
        name = "aardvark" if "aardvark" in asked.all else "badger"
        if not asked.results:
            return [rig.shell(f"outlive run 'sleep 0.5; echo of-{name}; exit 4'")]
        if "This session waits" in asked.last:
            return [rig.shell("outlive wait --no-ack")]
        return [Say("finished")]

    rig.model.answer = answer
    first = rig.ask("aardvark")
    wait_until(lambda: rig.model.asked, "the first request")  # two that start for the first time at once may stumble
    second = rig.ask("badger", cwd=other)
    rig.finish(first)
    rig.finish(second)
    for mine, theirs in (("aardvark", "badger"), ("badger", "aardvark")):
        told = [asked.all for asked in rig.model.asked if mine in asked.all][-1]
        assert f"of-{mine}" in told
        assert theirs not in told
        assert told.count("01ended)") == 1


def test_an_idle_session_is_told_once(installed: Rig, tmp_path: Path) -> None:
    """At a terminal nobody is held; the ending makes for another turn where the client can be woken."""
    rig, go = installed, tmp_path / "go"
    terminal, task = sit_down(rig, go)
    asked = end_the_task(rig, terminal, go, task)
    assert f"n{task}01ended" in asked.last
    assert "This session waits" not in asked.all
    wait_until(lambda: rig.notices(task) == {"ended": "acked"}, "the acknowledgement")
    count = len(rig.model.asked)
    asked = rig.prompt(terminal, "anything else")
    assert f"n{task}01ended" not in asked.last
    assert len(rig.model.asked) == count + 1


def test_the_end_of_one_session_leaves_the_tasks_of_another_alone(installed: Rig, tmp_path: Path) -> None:
    """Two sessions of one project: one ends, and one is killed, and the other's task runs on."""
    rig, go = installed, tmp_path / "go"
    terminal, task = sit_down(rig, go)
    rig.finish(rig.ask("hello"))
    peer = rig.ask("die")
    wait_until(lambda: len(rig.model.asked) == 4, "the peer to be at work")
    rig.kill(peer)
    assert rig.bench.row(task).state == "running"
    asked = end_the_task(rig, terminal, go, task)
    assert f"n{task}01ended" in asked.last
    assert "launch it" in asked.all


def test_clearing_hands_over(installed: Rig, tmp_path: Path) -> None:
    """It is another session then, and knows what runs; the ending is told to it."""
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


def test_compacting_hands_over(installed: Rig, tmp_path: Path) -> None:
    """What the summary may have lost, the hand-off says."""
    rig, go = installed, tmp_path / "go"
    terminal, task = sit_down(rig, go)
    terminal.enter(rig.compact, lambda: rig.compacted in terminal.screen)
    told = rig.prompt(terminal, "and now").all
    assert rig.hand_offs(told) == 1
    assert f"{task} running" in told
    go.touch()


def test_installed_used_and_uninstalled_nothing_is_left(rig: Rig) -> None:
    """The configuration is as it was, to the byte, after a session has run with it."""
    file = rig.configure()
    before = file.read_bytes()
    rig.install()
    rig.finish(rig.ask("hello"))
    assert rig.bench.json("session", "list", "--all")["sessions"], "the hooks did not run"
    rig.bench.ok("uninstall", "--client", rig.name)
    assert file.read_bytes() == before
    assert not (file.parent / "hooks.json").exists()
    assert not (file.parent / "skills/outlive").exists()
