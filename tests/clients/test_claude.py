"""Outlive in the real Claude Code, offline: what its sessions are told, and what they are spared."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.clients.model import Asked, Hang, Reply, Say, Use
from tests.clients.rig import new_session, released
from tests.support import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.clients.rig import Claude

ENDED = "ended, and you have not been told"


def bash(command: str, **more: object) -> Use:
    """Claude's shell tool."""
    return Use("Bash", {"command": command, "description": "a step", **more})


def only_task(claude: Claude) -> str:
    """The one task there is, once there is one."""
    found = wait_until(lambda: claude.bench.json("list", "--all")["tasks"], "the task")
    assert len(found) == 1
    return str(found[0]["id"])


def test_what_a_killed_session_launched_is_told_to_its_successor_once(claude: Claude, tmp_path: Path) -> None:
    """Launched through the shell tool, then SIGKILL: the resumed session hears of the ending, once."""
    claude.install()
    session, go = new_session(), tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if "first" in asked.last and not asked.results:
            return [bash(f"outlive run '{released(go)}; echo said-it'")]
        return [Hang()] if "again" not in asked.all else [Say("fine")]

    claude.model.answer = answer
    first = claude.ask("first", "--session-id", session)
    wait_until(lambda: len(claude.model.asked) == 2, "the tool's result")
    claude.kill(first)
    task = only_task(claude)
    go.touch()
    claude.until_ended(task)

    claude.finish(claude.ask("again", "--resume", session))
    told = claude.model.asked[2].all
    assert claude.hand_offs(told) == 1
    assert ENDED in told
    assert task in told
    assert claude.notices(task) == {"ended": "acked"}

    claude.finish(claude.ask("again, please", "--resume", session))
    told = claude.model.asked[-1].all
    assert told.count(ENDED) == 1, "it stays in the history, and is not said again"
    assert claude.hand_offs(told) == 1


def test_the_gate_holds_and_then_lets_go(claude: Claude, tmp_path: Path) -> None:
    """The turn may not end while a task runs; it is told of the ending, and may."""
    claude.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [bash(f"outlive run '{released(go)}; echo said-it'")]
        if "This session waits" in asked.last:
            return [bash(f"touch {go}; outlive wait --no-ack")]
        return [Say("finished")]

    claude.model.answer = answer
    out = json.loads(claude.finish(claude.ask("begin")))
    assert out["result"] == "finished"
    told = claude.model.asked[-1].all
    assert "This session waits for background tasks" in told
    assert told.count("1 notice of background tasks") == 1
    assert claude.notices(only_task(claude)) == {"ended": "acked"}


def test_what_ended_before_the_turn_does_is_told_at_its_end(claude: Claude, tmp_path: Path) -> None:
    """The turn goes on with the ending, which is told in one place."""
    claude.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [bash(f"outlive run '{released(go)}'")]
        if "notice of background tasks" not in asked.all:
            go.touch()
            claude.until_ended(only_task(claude))
        return [Say("finished")]

    claude.model.answer = answer
    claude.finish(claude.ask("begin"))
    told = claude.model.asked[-1].all
    assert told.count("1 notice of background tasks") == 1
    assert claude.notices(only_task(claude)) == {"ended": "acked"}


def test_compacting_and_clearing_hand_over(claude: Claude, tmp_path: Path) -> None:
    """After either, the model knows what runs; after `/clear` it is another session, and told all the same."""
    claude.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if "launch it" in asked.last and not asked.results:
            return [bash(f"outlive run --notify failure '{released(go)}; exit 3'")]
        return [Say("finished")]

    claude.model.answer = answer
    session = claude.converse()
    session.say("launch it")
    session.result()
    task = only_task(claude)
    session.say("/compact")
    session.result()
    session.say("and now?")
    session.result()
    told = claude.model.asked[-1].all
    assert claude.hand_offs(told) == 1
    assert f"{task} running" in told

    session.say("/clear")
    session.result()
    go.touch()
    claude.until_ended(task)
    session.say("who are you?")
    session.result()
    told = claude.model.asked[-1].all
    assert task in told
    sessions = claude.bench.json("session", "list", "--all")["sessions"]
    assert len(sessions) == 2
    assert len({each["lineage"] for each in sessions}) == 1


def test_sessions_of_two_projects_hear_of_their_own(claude: Claude) -> None:
    """At the same time, under the same user."""
    claude.install()
    other = claude.bench.root / "other"
    other.mkdir()

    def answer(asked: Asked) -> list[Reply]:
        name = "alpha" if "alpha" in asked.all else "beta"
        if not asked.results:
            return [bash(f"outlive run 'sleep 0.5; echo of-{name}; exit 4'")]
        return [Say("finished")]

    claude.model.answer = answer
    first, second = claude.ask("alpha"), claude.ask("beta", cwd=other)
    claude.finish(first)
    claude.finish(second)
    for mine, theirs in (("alpha", "beta"), ("beta", "alpha")):
        told = [asked.all for asked in claude.model.asked if f"\n{mine}\n" in asked.all][-1]
        assert f"of-{mine}" in told
        assert f"of-{theirs}" not in told
        assert told.count("01ended)") == 1


def test_an_idle_session_is_woken_once(claude: Claude, tmp_path: Path) -> None:
    """Its turn is over; when the task ends it takes another one, with the ending in it."""
    claude.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [bash(f"outlive run '{released(go)}; exit 3'")]
        return [Say("heard" if "(exit 3)" in asked.all else "idle")]

    claude.model.answer = answer
    session = claude.converse()
    session.say("launch it")
    assert session.result() == "idle", "the gate lets it be: somebody wakes it"
    task = only_task(claude)
    count = len(claude.model.asked)
    go.touch()
    assert session.result() == "heard"
    wait_until(lambda: claude.notices(task) == {"ended": "acked"}, "the acknowledgement")
    session.say("anything else?")
    session.result()
    assert len(claude.model.asked) == count + 2
    told = claude.model.asked[-1].all
    assert told.count(f"n{task}01ended") == 1


def test_a_person_is_not_held_and_their_idle_session_is_woken(claude: Claude, tmp_path: Path) -> None:
    """In a terminal: the turn ends although a task runs, and another one begins when that has ended."""
    claude.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [bash(f"outlive run '{released(go)}; exit 3'")]
        return [Say("heard" if "(exit 3)" in asked.all else "idle")]

    claude.model.answer = answer
    terminal = claude.sit_down("launch it")
    try:
        wait_until(lambda: len(claude.model.asked) == 2, "the end of the turn")
        wait_until(lambda: list(claude.bench.state.glob("*/hooks/*.watch")), "the watcher")
        task = only_task(claude)
        go.touch()
        wait_until(lambda: len(claude.model.asked) == 3, "the turn that it was woken for")
        assert f"n{task}01ended" in claude.model.asked[2].last
        assert "This session waits" not in claude.model.asked[2].all
        wait_until(lambda: claude.notices(task) == {"ended": "acked"}, "the acknowledgement")
    finally:
        terminal.close()


def test_the_end_of_one_session_leaves_the_tasks_of_another_alone(claude: Claude, tmp_path: Path) -> None:
    """Two sessions of one project: one ends, in each of the ways there are, and the other's task runs on."""
    claude.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if "launch it" in asked.all and not asked.results:
            return [bash(f"outlive run '{released(go)}; exit 3'")]
        return [Say("heard" if "(exit 3)" in asked.all else "idle")]

    claude.model.answer = answer
    mine = claude.converse()
    mine.say("launch it")
    assert mine.result() == "idle"
    task = only_task(claude)
    claude.finish(claude.ask("hello"))
    peer = claude.ask("hello again")
    wait_until(lambda: len(claude.model.asked) >= 4, "the peer to be at work")
    claude.kill(peer)
    assert claude.bench.row(task).state == "running"
    go.touch()
    assert mine.result() == "heard"


def test_installed_used_and_uninstalled_nothing_is_left(claude: Claude) -> None:
    """The settings are as they were, to the byte, after a session has run with them."""
    file = claude.home / ".claude/settings.json"
    file.parent.mkdir()
    before = b'{\n\t"env": {"A": "b"},\n\t"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}\n}'
    file.write_bytes(before)
    claude.install()
    claude.model.answer = lambda asked: [Say("done")] if asked.results else [bash("outlive run true")]
    claude.finish(claude.ask("begin"))
    assert claude.bench.json("session", "list", "--all")["sessions"]
    claude.bench.ok("uninstall", "--client", "claude")
    assert file.read_bytes() == before
    assert not (file.parent / "skills").exists()


def test_the_plugin_is_valid_and_does_the_same(claude: Claude, tmp_path: Path) -> None:
    """By Claude Code's own judgement, and in a session."""
    folder = tmp_path / "plugin"
    claude.bench.ok("install", "--client", "claude", "--plugin", str(folder))
    claude.finish(claude.start("plugin", "validate", str(folder)))
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [bash(f"outlive run '{released(go)}; exit 3'")]
        if "This session waits" in asked.last:
            go.touch()
            return [bash("outlive wait --no-ack")]
        return [Say("finished")]

    claude.model.answer = answer
    claude.finish(claude.ask("begin", "--plugin-dir", str(folder)))
    assert "(exit 3)" in claude.model.asked[-1].all
    assert claude.notices(only_task(claude)) == {"ended": "acked"}
    assert not (claude.home / ".claude/settings.json").exists()


def test_installed_twice_each_ending_is_told_once(claude: Claude, tmp_path: Path) -> None:
    """In the settings and as a plugin: every hook runs twice, at the same time."""
    folder = tmp_path / "plugin"
    claude.install()
    claude.bench.ok("install", "--client", "claude", "--plugin", str(folder))
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [bash(f"outlive run '{released(go)}; exit 3'")]
        return [Say("heard" if "(exit 3)" in asked.all else "idle")]

    claude.model.answer = answer
    session = claude.converse("--plugin-dir", str(folder))
    session.say("launch it")
    assert session.result() == "idle"
    go.touch()
    assert session.result() == "heard"
    session.say("anything else?")
    session.result()
    assert claude.model.asked[-1].all.count(f"n{only_task(claude)}01ended") == 1


def test_a_command_for_the_background_becomes_a_task_if_that_was_asked_for(claude: Claude) -> None:
    """`--guard rewrite`: the client runs ours instead of its own background, which would die with it."""
    claude.install("--guard", "rewrite")

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [bash("echo from-the-background; exit 3", run_in_background=True)]
        return [Say("finished")]

    claude.model.answer = answer
    claude.finish(claude.ask("begin"))
    task = only_task(claude)
    told = claude.model.asked[-1].all
    assert "running in background with ID" not in told
    assert f"n{task}01ended" in told
    assert "from-the-background" in told
