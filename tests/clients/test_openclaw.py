"""Outlive in the real OpenClaw, offline: one gateway with many sessions, each told of its own, once."""

from __future__ import annotations

import threading
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.model import Asked, Hang, Reply, Say, Use
from tests.clients.rig import OpenClaw, new_session, program, released
from tests.support import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.clients.model import Model
    from tests.support import Bench


def shell(command: str) -> Use:
    """OpenClaw's shell tool."""
    return Use("exec", {"command": command})


def tasks(openclaw: OpenClaw, word: str) -> list[Any]:
    """The tasks whose command has a word."""
    found = openclaw.bench.json("list", "--all")["tasks"]
    return [each for each in found if word in each["command"]]


def only_task(openclaw: OpenClaw, word: str) -> str:
    """The one task whose command has a word, once there is one."""
    found = wait_until(lambda: tasks(openclaw, word), "the task")
    assert len(found) == 1
    return str(found[0]["id"])


def asked_by(openclaw: OpenClaw, word: str) -> list[Asked]:
    """The requests of the conversation that has a word in it."""
    return [each for each in openclaw.model.asked if word in each.all]


@pytest.fixture
def word() -> str:
    """A word by which a session and its tasks are known: tests share a gateway."""
    return f"w{new_session()[:8]}"


@pytest.fixture
def fresh(bench: Bench, model: Model) -> Iterator[OpenClaw]:
    """OpenClaw of a user who has neither Outlive nor a gateway yet."""
    if not program("openclaw").exists():
        pytest.skip("openclaw is not installed: `make test-clients` does it")
    rig = OpenClaw(bench, model)
    yield rig
    rig.clean()


def test_what_a_session_launched_is_told_once_when_it_is_woken(openclaw: OpenClaw, tmp_path: Path, word: str) -> None:
    """Its turn over, nobody asks it anything: the ending makes it take a turn, once."""
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [shell(f"outlive run '{released(go)}; : {word}; exit 3'")]
        return [Say("heard" if "(exit 3)" in asked.all else "idle")]

    openclaw.model.answer = answer
    assert openclaw.take_turn(f"launch {word}", word) == "idle"
    task = only_task(openclaw, word)
    assert "This session waits" not in asked_by(openclaw, word)[-1].all, "the gate lets it be: somebody wakes it"
    go.touch()
    wait_until(lambda: len(asked_by(openclaw, word)) == 3, "the turn that it was woken for")
    assert f"n{task}01ended" in asked_by(openclaw, word)[-1].last
    wait_until(lambda: openclaw.notices(task) == {"ended": "acked"}, "the acknowledgement")
    assert len(asked_by(openclaw, word)) == 3


def test_woken_twice_it_is_told_once(openclaw: OpenClaw, tmp_path: Path, word: str) -> None:
    """It need not answer to have heard; and when somebody else wakes it as well, there is nothing to tell any more."""
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [shell(f"outlive run '{released(go)}; : {word}; exit 3'")]
        return [Say("NO_REPLY" if "(exit 3)" in asked.last else "fine")]

    openclaw.model.answer = answer
    openclaw.take_turn(f"launch {word}", word)
    task = only_task(openclaw, word)
    go.touch()
    wait_until(lambda: len(asked_by(openclaw, word)) == 3, "the turn that it was woken for")
    wait_until(lambda: openclaw.notices(task) == {"ended": "acked"}, "the acknowledgement")
    openclaw.wake(word)
    wait_until(lambda: len(asked_by(openclaw, word)) == 4, "the turn that somebody else asked for")
    told = [f"n{task}01ended" in each.last for each in asked_by(openclaw, word)]
    assert told == [False, False, True, False]


def test_the_gate_holds_where_nobody_could_wake_it(fresh: OpenClaw, tmp_path: Path) -> None:
    """Without a gateway a session ends with its answer: it is held while its task runs, told, and let go."""
    fresh.configure()
    fresh.install()
    go, session = tmp_path / "go", new_session()
    task = fresh.bench.launch(f"{released(go)}; exit 3", "--session", session)

    def answer(asked: Asked) -> list[Reply]:
        if "This session waits" in asked.last:
            go.touch()
            return [shell("outlive wait --no-ack")]
        return [Say("finished" if "(exit 3)" in asked.all else "too early")]

    fresh.model.answer = answer
    assert "finished" in fresh.ask_alone("well?", session)
    asked = fresh.model.asked
    assert sum("This session waits for background tasks" in each.last for each in asked) == 1
    assert sum(f"n{task}01ended" in each.last for each in asked) == 1
    assert fresh.notices(task) == {"ended": "acked"}


def test_a_session_for_one_answer_is_woken_too(openclaw: OpenClaw, tmp_path: Path, word: str) -> None:
    """A webhook's, say: OpenClaw does not let its turn be held once it has used its shell."""
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [shell(f"outlive run '{released(go)}; : {word}; exit 3'")]
        return [Say("heard" if "(exit 3)" in asked.all else "idle")]

    openclaw.model.answer = answer
    assert openclaw.take_turn(f"launch {word}", f"hook:{word}") == "idle"
    task = only_task(openclaw, word)
    go.touch()
    wait_until(lambda: f"n{task}01ended" in asked_by(openclaw, word)[-1].last, "the turn that it was woken for")
    wait_until(lambda: openclaw.notices(task) == {"ended": "acked"}, "the acknowledgement")


def test_what_ends_during_a_turn_stands_beside_the_next_result(openclaw: OpenClaw, word: str) -> None:
    """And is not told again when the turn is over."""

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [shell(f"outlive run ': {word}; exit 3'")]
        return [shell("outlive wait --no-ack")] if asked.results == 1 else [Say("fine")]

    openclaw.model.answer = answer
    openclaw.take_turn(f"launch {word}", word)
    task = only_task(openclaw, word)
    asked = asked_by(openclaw, word)
    assert sum(f"n{task}01ended" in each.last for each in asked) == 1
    assert openclaw.notices(task) == {"ended": "acked"}
    assert len(asked) == 3


def test_what_a_killed_gateway_left_is_told_to_its_session_once(openclaw: OpenClaw, tmp_path: Path, word: str) -> None:
    """SIGKILL in the middle of a turn; the gateway that is started then has the same sessions, and they are told."""
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [shell(f"outlive run '{released(go)}; : {word}; exit 3'")]
        return [Hang()] if "again" not in asked.all else [Say("fine")]

    openclaw.model.answer = answer
    turn = threading.Thread(target=_ask_in_vain, args=(openclaw, f"launch {word}", word))
    turn.start()
    wait_until(lambda: len(asked_by(openclaw, word)) == 2, "the tool's result")
    openclaw.kill_gateway()
    turn.join()
    task = only_task(openclaw, word)
    go.touch()
    openclaw.until_ended(task)
    openclaw.serve()
    assert openclaw.take_turn(f"again {word}", word) == "fine"
    told = [each for each in asked_by(openclaw, word) if f"{task} failed (exit 3)" in each.last]
    assert len(told) == 1
    assert openclaw.hand_offs(told[0].all) == 1
    wait_until(lambda: openclaw.notices(task) == {"ended": "acked"}, "the acknowledgement")
    openclaw.take_turn(f"again, please {word}", word)
    assert f"{task} failed (exit 3)" not in openclaw.model.asked[-1].last


def _ask_in_vain(openclaw: OpenClaw, prompt: str, session: str) -> None:
    with pytest.raises((OSError, HTTPException)):
        openclaw.take_turn(prompt, session)


def test_a_reset_session_is_handed_over(openclaw: OpenClaw, tmp_path: Path, word: str) -> None:
    """It remembers nothing, and keeps its id: the hand-off says what runs for it."""
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if f"launch {word}" in asked.last and not asked.results:
            return [shell(f"outlive run '{released(go)}; : {word}; exit 3'")]
        return [Say("fine")]

    openclaw.model.answer = answer
    openclaw.take_turn(f"launch {word}", word)
    task = only_task(openclaw, word)
    openclaw.call("sessions.reset", key=f"agent:main:{word}")
    openclaw.take_turn(f"and now, {word}?", word)
    told = asked_by(openclaw, word)[-1]
    assert f"launch {word}" not in told.all
    assert openclaw.hand_offs(told.all) == 1
    assert f"{task} running" in told.last
    go.touch()
    wait_until(lambda: f"n{task}01ended" in asked_by(openclaw, word)[-1].last, "the turn that it was woken for")


def test_a_compacted_session_is_handed_over(openclaw: OpenClaw, tmp_path: Path, word: str) -> None:
    """What the summary may have lost, the hand-off says."""
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if f"launch {word}" in asked.last and not asked.results:
            return [shell(f"outlive run '{released(go)}; : {word}; exit 3'")]
        return [Say("fine")]

    openclaw.model.answer = answer
    openclaw.take_turn(f"launch {word}", word)
    for number in range(3):
        openclaw.take_turn(f"go on with {word}, step {number}: {'and on ' * 400}", word)
    task = only_task(openclaw, word)
    done = openclaw.call("sessions.compact", key=f"agent:main:{word}")
    assert done["compacted"] is True, done
    openclaw.take_turn(f"and now, {word}?", word)
    told = asked_by(openclaw, word)[-1]
    assert openclaw.hand_offs(told.last) == 1
    assert f"{task} running" in told.last
    go.touch()
    wait_until(lambda: f"n{task}01ended" in asked_by(openclaw, word)[-1].last, "the turn that it was woken for")


def test_sessions_of_two_projects_hear_of_their_own(openclaw: OpenClaw, word: str) -> None:
    """At the same time, in the same gateway, with the same name."""

    def answer(asked: Asked) -> list[Reply]:
        name = "alpha" if f"alpha {word}" in asked.all else "beta"
        if not asked.results:
            return [shell(f"outlive run 'sleep 0.5; echo of-{name}; : {word}; exit 4'")]
        return [Say("fine")]

    def heard(name: str, of: str) -> list[Asked]:
        return [each for each in asked_by(openclaw, f"{name} {word}") if f"of-{of}\n" in each.last]

    openclaw.model.answer = answer
    turns = [
        threading.Thread(target=openclaw.take_turn, args=(f"{name} {word}", word, agent))
        for name, agent in (("alpha", "main"), ("beta", "other"))
    ]
    for turn in turns:
        turn.start()
    for turn in turns:
        turn.join()
    places = {each["cwd"] for each in tasks(openclaw, word)}
    assert places == {str(openclaw.bench.project), str(openclaw.other)}
    for mine, theirs in (("alpha", "beta"), ("beta", "alpha")):
        wait_until(lambda mine=mine: heard(mine, mine), "its own ending")  # type: ignore[misc]
        assert (len(heard(mine, mine)), heard(mine, theirs)) == (1, [])


def test_the_end_of_one_session_leaves_the_tasks_of_another_alone(
    openclaw: OpenClaw, tmp_path: Path, word: str
) -> None:
    """Two sessions of one project in one process: one is deleted, and the other's task runs on, and is told to it."""
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if f"launch {word}" in asked.last and not asked.results:
            return [shell(f"outlive run '{released(go)}; : {word}; exit 3'")]
        return [Say("fine")]

    openclaw.model.answer = answer
    openclaw.take_turn(f"launch {word}", word)
    openclaw.take_turn(f"hello, peer of {word}", f"{word}-peer")
    peer = openclaw.model.asked[-1]
    assert "failed (exit" not in peer.all
    openclaw.call("sessions.delete", key=f"agent:main:{word}-peer")
    task = only_task(openclaw, word)
    assert openclaw.bench.row(task).state == "running"
    go.touch()
    wait_until(lambda: f"n{task}01ended" in openclaw.model.asked[-1].last, "the turn that it was woken for")
    assert f"launch {word}" in openclaw.model.asked[-1].all


def test_advice_stands_beside_the_result(openclaw: OpenClaw, word: str) -> None:
    """The command runs as it was meant, and what it loses is said once."""

    def answer(asked: Asked) -> list[Reply]:
        return [shell(f"nohup echo {word} >/dev/null")] if asked.results < 2 else [Say("fine")]

    openclaw.model.answer = answer
    openclaw.take_turn(f"do it, {word}", word)
    assert [each.last.count("A process detached by hand") for each in asked_by(openclaw, word)] == [0, 1, 0]


def test_who_reads_what_a_task_holds_is_told_beside_it(fresh: OpenClaw, tmp_path: Path) -> None:
    """The file is shown as it is, with who took it away; of another one there is nothing to say."""
    fresh.configure()
    fresh.install()
    go = tmp_path / "go"
    task = fresh.stash(go)
    looks = [Use("read", {"path": name}) for name in ("b.py", "a.py")]
    fresh.model.answer = lambda _: [looks.pop(0) if looks else Say("finished")]
    fresh.ask_alone("begin", new_session())
    other, held = (asked.last for asked in fresh.model.asked[1:3])
    assert "another" in other
    assert "[outlive]" not in other
    assert "as committed" in held
    assert held.count(f"task {task} holds a.py away from how it found it") == 1
    go.touch()


def test_sub_agents_that_died_with_the_gateway_are_unknown_and_then_lost(
    openclaw: OpenClaw, tmp_path: Path, word: str
) -> None:
    """They are OpenClaw's own; the hand-off says what can be said of them. Their tasks are their parent's."""
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if "[Subagent Task]" in asked.all:
            return [Hang()] if asked.results else [shell(f"outlive run '{released(go)}; : {word}; exit 3'")]
        if f"delegate, {word}" in asked.last and not asked.results:
            given = {"task": f"child of {word}", "label": f"child-{word}"}
            return [Use("tool_call", {"id": "sessions_spawn", "args": given})]
        return [Say("fine")]

    openclaw.model.answer = answer
    openclaw.take_turn(f"delegate, {word}", word)
    task = only_task(openclaw, word)
    openclaw.kill_gateway()
    go.touch()
    openclaw.until_ended(task)
    openclaw.model.answer = lambda _: [Say("fine")]
    openclaw.serve()
    openclaw.take_turn(f"and now, {word}?", word)
    told = [each for each in asked_by(openclaw, f"and now, {word}") if f"{task} failed (exit 3)" in each.last]
    assert len(told) == 1
    assert f"child-{word}" in told[0].last


def test_installed_used_and_uninstalled_nothing_is_left(fresh: OpenClaw) -> None:
    """The configuration, comments and all, is as it was after a gateway has run with it."""
    file = fresh.configure()
    before = file.read_bytes()
    fresh.install()
    fresh.serve()
    fresh.take_turn("hello", "one")
    assert fresh.bench.json("session", "list", "--all")["sessions"], "the hooks did not run"
    fresh.bench.ok("uninstall", "--client", "openclaw")
    assert file.read_bytes() == before
    assert not (file.parent / "extensions").exists()
    assert not (file.parent / "skills/outlive").exists()


def test_the_mcp_server_is_there_and_does_not_launch(openclaw: OpenClaw, word: str) -> None:
    """It shows the tasks of the session's project, in words; what OpenClaw's shell may do it does not know."""
    mine = openclaw.bench.launch(f": {word}", cwd=openclaw.other)
    theirs = openclaw.bench.launch(f": {word}")

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [Use("tool_call", {"id": "outlive__list", "args": {}})]
        if asked.results == 1:
            return [Use("tool_call", {"id": "outlive__run", "args": {"command": f": {word}"}})]
        return [Use("tool_call", {"id": "outlive__gate", "args": {}})] if asked.results == 2 else [Say("fine")]

    openclaw.model.answer = answer
    openclaw.take_turn(f"look, {word}", word, "other")
    listed, refused, gate = [each.last for each in asked_by(openclaw, f"look, {word}")[1:]]
    assert mine in listed
    assert theirs not in listed
    assert "this server does not launch tasks" in refused
    assert "may stop" in gate, "it knows the session, for the plugin says it"
    assert "structuredContent" not in listed + refused
    assert len(tasks(openclaw, word)) == 2
