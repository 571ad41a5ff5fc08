"""Outlive in the real Gemini CLI, offline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.clients.model import Asked, Hang, Reply, Say, Use
from tests.clients.rig import released
from tests.support import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.clients.rig import Gemini


def shell(command: str) -> Use:
    """Gemini's shell tool."""
    return Use("run_shell_command", {"command": command, "description": "a step"})


def only_task(gemini: Gemini) -> str:
    """The one task there is, once there is one."""
    found = wait_until(lambda: gemini.bench.json("list", "--all")["tasks"], "the task")
    assert len(found) == 1
    return str(found[0]["id"])


def test_the_gate_holds_a_session_whose_commands_know_its_name(gemini: Gemini, tmp_path: Path) -> None:
    """The client tells its commands no session; ours does, so the ending is owed to it, told, and waited for."""
    gemini.configure()
    gemini.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [shell(f"outlive run '{released(go)}; exit 3'")]
        if "This session waits" in asked.last:
            go.touch()
            return [shell("outlive wait --no-ack")]
        return [Say("finished")]

    gemini.model.answer = answer
    gemini.finish(gemini.ask("begin"))
    told = gemini.model.asked[-1].all
    assert told.count("This session waits for background tasks") == 1
    assert told.count("(exit 3)") == 1
    assert gemini.notices(only_task(gemini)) == {"ended": "acked"}


def test_what_a_killed_session_launched_is_told_to_its_successor_once(gemini: Gemini, tmp_path: Path) -> None:
    """SIGKILL, then `--resume`, which has a new name: the hand-off says what ended."""
    gemini.configure()
    gemini.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [shell(f"outlive run '{released(go)}; exit 3'")]
        return [Hang()] if "again" not in asked.all else [Say("fine")]

    gemini.model.answer = answer
    first = gemini.ask("first")
    wait_until(lambda: len(gemini.model.asked) == 2, "the tool's result")
    gemini.kill(first)
    task = only_task(gemini)
    go.touch()
    gemini.until_ended(task)
    gemini.finish(gemini.ask("again", "--resume", "latest"))
    told = gemini.model.asked[2].all
    assert gemini.hand_offs(told) == 1
    assert f"{task} failed (exit 3)" in told
    assert gemini.notices(task) == {"ended": "acked"}


def test_installed_used_and_uninstalled_nothing_is_left(gemini: Gemini) -> None:
    """The settings, comments and all, are as they were after a session has run with them."""
    file = gemini.configure()
    before = file.read_bytes()
    gemini.install()
    gemini.finish(gemini.ask("hello"))
    assert gemini.bench.json("session", "list", "--all")["sessions"], "the hooks did not run"
    gemini.bench.ok("uninstall", "--client", "gemini")
    assert file.read_bytes() == before
