"""Outlive in the real OpenClaw, offline: one gateway with many sessions.

Each session receives its own endings, once.
"""

from __future__ import annotations

import threading
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.model import Asked, Hang, Reply, Say, Use
from tests.clients.rig import new_session, program, released
from tests.clients.rigs.openclaw import OpenClaw
from tests.clients.telegram import Telegram
from tests.support import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.clients.model import Model
    from tests.support import Bench


def shell(command: str) -> Use:
    """Return a call of OpenClaw's shell tool."""
    return Use("exec", {"command": command})


def tasks(openclaw: OpenClaw, word: str) -> list[Any]:
    """Return the tasks whose command contains a given word."""
    found = openclaw.bench.json("list", "--all")["tasks"]
    return [each for each in found if word in each["command"]]


def only_task(openclaw: OpenClaw, word: str) -> str:
    """Wait for a task whose command contains a given word, and return its id. Two such tasks are an error."""
    found = wait_until(lambda: tasks(openclaw, word), "the task")
    assert len(found) == 1
    return str(found[0]["id"])


def asked_by(openclaw: OpenClaw, word: str) -> list[Asked]:
    """Return the model's requests that contain a given word."""
    return [each for each in openclaw.model.asked if word in each.all]


@pytest.fixture
def word() -> str:
    """Return a word that is unique to the test, for its session and its tasks in the shared gateway."""
    return f"w{new_session()[:8]}"


@pytest.fixture
def fresh(bench: Bench, model: Model) -> Iterator[OpenClaw]:
    """Return OpenClaw for a user who has not installed Outlive and has not started a gateway."""
    if not program("openclaw").exists():
        pytest.skip("openclaw is not installed: `make test-clients` does it")
    rig = OpenClaw(bench, model)
    yield rig
    rig.clean()


def test_idle_session_is_woken_once(openclaw: OpenClaw, tmp_path: Path, word: str) -> None:
    """When a task ends, the idle session takes one turn, although no user sent a prompt. This turn has the ending."""
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [shell(f"outlive run '{released(go)}; : {word}; exit 3'")]
        return [Say("heard" if "(exit 3)" in asked.all else "idle")]

    openclaw.model.answer = answer
    assert openclaw.take_turn(f"launch {word}", word) == "idle"
    task = only_task(openclaw, word)
    go.touch()
    wait_until(lambda: len(asked_by(openclaw, word)) == 3, "the turn after the waking")
    assert f"n{task}01ended" in asked_by(openclaw, word)[-1].last
    wait_until(lambda: openclaw.notices(task) == {"ended": "acked"}, "the acknowledgement")
    assert len(asked_by(openclaw, word)) == 3


def test_ending_is_reported_once_when_the_session_is_woken_twice(openclaw: OpenClaw, tmp_path: Path, word: str) -> None:
    """If another program wakes the session after Outlive has, the ending is not reported again.

    The model has received the ending, although it gave no answer.
    """
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [shell(f"outlive run '{released(go)}; : {word}; exit 3'")]
        return [Say("NO_REPLY" if "(exit 3)" in asked.last else "fine")]

    openclaw.model.answer = answer
    openclaw.take_turn(f"launch {word}", word)
    task = only_task(openclaw, word)
    go.touch()
    wait_until(lambda: len(asked_by(openclaw, word)) == 3, "the turn after the waking")
    wait_until(lambda: openclaw.notices(task) == {"ended": "acked"}, "the acknowledgement")
    openclaw.wake(word)
    wait_until(lambda: len(asked_by(openclaw, word)) == 4, "the turn that another program requested")
    told = [f"n{task}01ended" in each.last for each in asked_by(openclaw, word)]
    assert told == [False, False, True, False]


def test_a_turn_without_a_gateway_ends_while_its_task_runs(fresh: OpenClaw, tmp_path: Path) -> None:
    """Without a gateway, a turn ends while its task runs.

    The session cannot be woken, so its next turn has the ending.
    """
    fresh.configure()
    fresh.install()
    go, session = tmp_path / "go", new_session()
    task = fresh.bench.launch(f"{released(go)}; exit 3", "--session", session)
    fresh.model.answer = lambda asked: [Say("finished" if "(exit 3)" in asked.all else "too early")]
    assert "too early" in fresh.ask_alone("well?", session)
    assert len(fresh.model.asked) == 1
    go.touch()
    fresh.until_ended(task)
    assert "finished" in fresh.ask_alone("and now?", session)
    assert sum(f"{task} failed (exit 3)" in each.last for each in fresh.model.asked) == 1
    assert fresh.notices(task) == {"ended": "acked"}


def test_session_of_a_webhook_is_woken(openclaw: OpenClaw, tmp_path: Path, word: str) -> None:
    """A session that a webhook began is woken after its turn. OpenClaw's hooks cannot delay the end of such a turn."""
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [shell(f"outlive run '{released(go)}; : {word}; exit 3'")]
        return [Say("heard" if "(exit 3)" in asked.all else "idle")]

    openclaw.model.answer = answer
    assert openclaw.take_turn(f"launch {word}", f"hook:{word}") == "idle"
    task = only_task(openclaw, word)
    go.touch()
    wait_until(lambda: f"n{task}01ended" in asked_by(openclaw, word)[-1].last, "the turn after the waking")
    wait_until(lambda: openclaw.notices(task) == {"ended": "acked"}, "the acknowledgement")


def test_ending_during_a_turn_is_added_to_the_next_tool_result(openclaw: OpenClaw, word: str) -> None:
    """An ending during a turn is added to the next tool result, and is not repeated after the turn."""

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


def test_ending_is_reported_once_when_the_gateway_was_killed_in_a_turn(
    openclaw: OpenClaw, tmp_path: Path, word: str
) -> None:
    """If the gateway was killed in a turn, the ending is reported once, in the hand-off of the next gateway."""
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


def test_reset_session_gets_a_hand_off(openclaw: OpenClaw, tmp_path: Path, word: str) -> None:
    """If a session was reset, it gets a hand-off that names its running task.

    A reset session keeps its id, but has no history.
    """
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
    wait_until(lambda: f"n{task}01ended" in asked_by(openclaw, word)[-1].last, "the turn after the waking")


def test_compacted_session_gets_a_hand_off(openclaw: OpenClaw, tmp_path: Path, word: str) -> None:
    """After OpenClaw has compacted the history of a session, the session gets a hand-off.

    The summary may omit the tasks.
    """
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
    wait_until(lambda: f"n{task}01ended" in asked_by(openclaw, word)[-1].last, "the turn after the waking")


def test_sessions_of_two_projects_receive_only_their_own_endings(openclaw: OpenClaw, word: str) -> None:
    """Each of two sessions in different projects receives only its own ending.

    The two sessions have the same name and run in the same gateway at the same time.
    """

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
        wait_until(lambda mine=mine: heard(mine, mine), "the session's own ending")  # type: ignore[misc]
        assert (len(heard(mine, mine)), heard(mine, theirs)) == (1, [])


def test_end_of_a_session_does_not_end_the_tasks_of_another_one(openclaw: OpenClaw, tmp_path: Path, word: str) -> None:
    """If one of two sessions in a gateway is deleted, the other session still gets the ending of its task."""
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
    wait_until(lambda: f"n{task}01ended" in openclaw.model.asked[-1].last, "the turn after the waking")
    assert f"launch {word}" in openclaw.model.asked[-1].all


def test_advice_is_added_once_to_the_tool_result(openclaw: OpenClaw, word: str) -> None:
    """Advice is added once to the tool's result, and the command runs unchanged."""

    def answer(asked: Asked) -> list[Reply]:
        return [shell(f"nohup echo {word} >/dev/null")] if asked.results < 2 else [Say("fine")]

    openclaw.model.answer = answer
    openclaw.take_turn(f"do it, {word}", word)
    assert [each.last.count("A process detached by hand") for each in asked_by(openclaw, word)] == [0, 1, 0]


def test_reader_of_a_file_that_a_task_has_stashed_is_warned(fresh: OpenClaw, tmp_path: Path) -> None:
    """If the model reads a file whose changes a task has stashed, a remark names the task.

    The content is shown unchanged. A file that no task has changed gets no remark.
    """
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
    assert held.count(f"task {task} has changed a.py and not restored it") == 1
    go.touch()


def test_hand_off_names_sub_agents_that_died_with_the_gateway(openclaw: OpenClaw, tmp_path: Path, word: str) -> None:
    """The hand-off of the parent session names the sub-agents that died with the gateway.

    OpenClaw ran the sub-agents, and Outlive recorded them as tasks of the parent session.
    """
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


def test_uninstall_restores_the_configuration_after_a_session(fresh: OpenClaw) -> None:
    """After `uninstall`, the configuration file has the same bytes as before `install`, including its comments."""
    file = fresh.configure()
    before = file.read_bytes()
    fresh.install()
    fresh.serve()
    fresh.take_turn("hello", "one")
    assert fresh.bench.json("session", "list", "--all")["sessions"], "the hooks did not run"
    fresh.bench.ok("uninstall", "--yes", "--client", "openclaw")
    assert file.read_bytes() == before
    assert not (file.parent / "extensions").exists()
    assert not (file.parent / "skills/outlive").exists()


def test_mcp_server_lists_tasks_and_refuses_to_launch(openclaw: OpenClaw, word: str) -> None:
    """The MCP server lists the tasks of the session's project, and refuses to launch one.

    OpenClaw does not tell the server which commands its shell may run.
    """
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
    assert "may stop" in gate, "the server does not know the session that the plugin named"
    assert "structuredContent" not in listed + refused
    assert len(tasks(openclaw, word)) == 2


def test_woken_session_answers_in_the_chat_where_it_was_last_used(fresh: OpenClaw, tmp_path: Path) -> None:
    """A woken session answers in the chat where it was last used. OpenClaw's own heartbeats would use another chat."""
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if "(exit 3)" in asked.all:
            return [Say("It has failed.")]
        return [Say("It runs.")] if asked.results else [shell(f"outlive run '{released(go)}; exit 3'")]

    fresh.model.answer = answer
    with Telegram() as telegram:
        fresh.configure(telegram.channel)
        fresh.install()
        fresh.bench.env.pop("OPENCLAW_SKIP_CHANNELS")
        fresh.serve()
        telegram.write(4711, "launch it")

        def texts() -> list[tuple[int, str]]:
            return [(int(each["chat_id"]), str(each["text"])) for each in telegram.sent]

        wait_until(lambda: (4711, "It runs.") in texts(), "the answer in the chat")
        go.touch()
        wait_until(lambda: (4711, "It has failed.") in texts(), "the answer of the turn after the waking")
