"""Outlive in the real Codex, offline: its hooks are trusted as installed, and its sessions are told once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.clients.model import Asked, Hang, Reply, Say, Use
from tests.clients.rig import program, released
from tests.clients.terminal import Terminal
from tests.support import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.clients.rig import Codex


def shell(command: str) -> Use:
    """Codex's shell tool."""
    return Use("exec_command", {"cmd": command})


def only_task(codex: Codex) -> str:
    """The one task there is, once there is one."""
    found = wait_until(lambda: codex.bench.json("list", "--all")["tasks"], "the task")
    assert len(found) == 1
    return str(found[0]["id"])


def thread(output: str) -> str:
    """The name of the session, from what it printed."""
    return str(json.loads(output.splitlines()[0])["thread_id"])


def test_hooks_are_trusted_as_installed_and_the_gate_holds(codex: Codex, tmp_path: Path) -> None:
    """Without any flag that bypasses trust: held while the task runs, then told of its ending, then free."""
    codex.configure()
    codex.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [shell(f"outlive run '{released(go)}; exit 3'")]
        if "This session waits" in asked.last:
            go.touch()
            return [shell("outlive wait --no-ack")]
        return [Say("finished")]

    codex.model.answer = answer
    codex.finish(codex.ask("begin"))
    told = codex.model.asked[-1].all
    assert told.count("This session waits for background tasks") == 1
    assert told.count("(exit 3)") == 1
    assert codex.notices(only_task(codex)) == {"ended": "acked"}


def test_what_a_killed_session_launched_is_told_to_its_successor_once(codex: Codex, tmp_path: Path) -> None:
    """SIGKILL, then `resume`: the hand-off names it, and the next one does not."""
    codex.configure()
    codex.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [shell(f"outlive run '{released(go)}; exit 3'")]
        return [Hang()] if "again" not in asked.all else [Say("fine")]

    codex.model.answer = answer
    first = codex.ask("first")
    assert first.stdout is not None
    session = thread(first.stdout.readline())
    wait_until(lambda: len(codex.model.asked) == 2, "the tool's result")
    codex.kill(first)
    task = only_task(codex)
    go.touch()
    codex.until_ended(task)

    codex.finish(codex.ask("again", "resume", session))
    told = codex.model.asked[2].all
    assert codex.hand_offs(told) == 1
    assert f"{task} failed (exit 3)" in told
    assert codex.notices(task) == {"ended": "acked"}
    codex.finish(codex.ask("again, please", "resume", session))
    assert codex.model.asked[-1].all.count(f"{task} failed (exit 3)") == 1


def test_installed_used_and_uninstalled_nothing_is_left(codex: Codex) -> None:
    """Configuration and hooks are as they were, to the byte, after a session has run with them."""
    file = codex.configure()
    before = file.read_bytes()
    codex.install()
    codex.finish(codex.ask("hello"))
    assert codex.bench.json("session", "list", "--all")["sessions"], "the hooks did not run"
    codex.bench.ok("uninstall", "--client", "codex")
    assert file.read_bytes() == before
    assert not (file.parent / "hooks.json").exists()
    assert not (file.parent / "skills/outlive").exists()


def test_an_idle_session_is_woken_once(codex: Codex, tmp_path: Path) -> None:
    """In its terminal, its turn over: the ending is queued for it, and it takes a turn."""
    codex.configure()
    codex.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [shell(f"outlive run '{released(go)}; exit 3'")]
        return [Say("heard" if "(exit 3)" in asked.all else "idle")]

    codex.model.answer = answer
    terminal = Terminal([str(program("codex")), "--no-alt-screen", "launch it"], codex.bench.env, codex.bench.project)
    try:
        wait_until(lambda: len(codex.model.asked) == 2, "the end of the turn")
        task = only_task(codex)
        wait_until(lambda: list(codex.bench.state.glob("*/hooks/*.watch")), "the watcher")
        go.touch()
        wait_until(lambda: len(codex.model.asked) == 3, "the turn that it was woken for")
        assert f"n{task}01ended" in codex.model.asked[2].last
        assert "This session waits" not in codex.model.asked[2].all, "the gate lets it be: somebody wakes it"
        wait_until(lambda: codex.notices(task) == {"ended": "acked"}, "the acknowledgement")
        assert len(codex.model.asked) == 3
    finally:
        terminal.close()


def test_sessions_of_two_projects_hear_of_their_own(codex: Codex) -> None:
    """At the same time, under the same user."""
    codex.configure()
    codex.install()
    other = codex.bench.root / "other"
    other.mkdir()

    def answer(asked: Asked) -> list[Reply]:
        name = "alpha" if "alpha" in asked.all else "beta"
        if not asked.results:
            return [shell(f"outlive run 'sleep 0.5; echo of-{name}; exit 4'")]
        return [Say("finished")]

    codex.model.answer = answer
    first, second = codex.ask("alpha"), codex.ask("beta", cwd=other)
    codex.finish(first)
    codex.finish(second)
    for mine, theirs in (("alpha", "beta"), ("beta", "alpha")):
        told = [asked.all for asked in codex.model.asked if f"\n{mine}\n" in asked.all][-1]
        assert f"of-{mine}" in told
        assert f"of-{theirs}" not in told


def test_the_end_of_one_session_leaves_the_tasks_of_another_alone(codex: Codex, tmp_path: Path) -> None:
    """Two sessions of one project: one ends, and one is killed, and the other's task runs on."""
    codex.configure()
    codex.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if "launch it" in asked.all and not asked.results:
            return [shell(f"outlive run '{released(go)}; exit 3'")]
        return [Hang()] if "die" in asked.last else [Say("heard" if "(exit 3)" in asked.all else "idle")]

    codex.model.answer = answer
    terminal = Terminal([str(program("codex")), "--no-alt-screen", "launch it"], codex.bench.env, codex.bench.project)
    try:
        wait_until(lambda: len(codex.model.asked) == 2, "the end of the turn")
        wait_until(lambda: list(codex.bench.state.glob("*/hooks/*.watch")), "the watcher")
        codex.finish(codex.ask("hello"))
        peer = codex.ask("die")
        wait_until(lambda: len(codex.model.asked) == 4, "the peer to be at work")
        codex.kill(peer)
        task = only_task(codex)
        assert codex.bench.row(task).state == "running"
        go.touch()
        wait_until(lambda: len(codex.model.asked) == 5, "the turn that it was woken for")
        assert f"n{task}01ended" in codex.model.asked[4].last
        assert "launch it" in codex.model.asked[4].all
    finally:
        terminal.close()


def test_compacting_hands_over(codex: Codex, tmp_path: Path) -> None:
    """In its terminal: what the summary may have lost, the hand-off says."""
    codex.configure()
    codex.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results and "launch it" in asked.last:
            return [shell(f"outlive run --notify failure '{released(go)}; exit 3'")]
        return [Say("fine")]

    codex.model.answer = answer
    terminal = Terminal([str(program("codex")), "--no-alt-screen", "launch it"], codex.bench.env, codex.bench.project)
    try:
        wait_until(lambda: len(codex.model.asked) == 2, "the end of the turn")
        task = only_task(codex)
        wait_until(lambda: list(codex.bench.state.glob("*/hooks/*.watch")), "the watcher")
        terminal.enter("/compact")
        wait_until(lambda: b"ompacted" in terminal.screen, "the summary")
        terminal.enter("and now?")
        wait_until(lambda: "and now?" in codex.model.asked[-1].all, "the next turn")
        told = codex.model.asked[-1].all
        assert codex.hand_offs(told) == 1
        assert f"{task} running" in told
    finally:
        terminal.close()
        go.touch()
