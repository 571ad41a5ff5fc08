"""Outlive in the real Gemini CLI, offline: features that only this client has."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from tests.clients.model import Asked, Reply, Say, Use
from tests.clients.rig import released
from tests.support import wait_until

if TYPE_CHECKING:
    from tests.clients.rigs.gemini import Gemini


def test_session_gets_a_hand_off_after_an_automatic_compression(gemini: Gemini, tmp_path: Path) -> None:
    """After Gemini CLI has compressed the history by itself, the next tool result has the hand-off.

    No hook is called then.
    """
    file, go = gemini.configure(), tmp_path / "go"
    file.write_text(file.read_text().replace("{\n", '{\n  "model": {"compressionThreshold": 0.000001},\n', 1))
    gemini.install()

    def answer(asked: Asked) -> list[Reply]:
        if "launch it" in asked.last:
            return [gemini.shell(f"outlive run --notify failure '{released(go)}'")]
        if "look around" in asked.last:
            return [gemini.shell("true")]
        # Equal answers would count as a loop, and short answers would not be compressed.
        return [Say(" ".join(str(uuid.uuid4()) for _ in range(60)))]

    gemini.model.answer = answer
    terminal = gemini.sit_down("launch it")
    wait_until(lambda: len(gemini.model.asked) == 2, "the end of the turn")
    gemini.until_idle()
    task = gemini.only_task()
    asked = gemini.prompt(terminal, "look around")
    assert "launch it" not in asked.all, "the conversation was not compressed"
    assert gemini.hand_offs(asked.all) == 0
    wait_until(lambda: len(gemini.model.asked) == 4, "the request with the result")
    told = gemini.model.asked[3].last
    assert gemini.hand_offs(told) == 1
    assert f"{task} running" in told
    assert len(gemini.bench.json("session", "list", "--all")["sessions"]) == 1
    go.touch()


def test_advice_is_added_to_the_tool_result(gemini: Gemini) -> None:
    """Advice is added to the tool's result, because Gemini CLI shows its model no advice before the tool call."""
    gemini.configure()
    gemini.install()
    commands = ["sleep 0.1 &", "outlive run --notify never true"]

    def answer(_: Asked) -> list[Reply]:
        return [gemini.shell(commands.pop(0)) if commands else Say("finished")]

    gemini.model.answer = answer
    gemini.finish(gemini.ask("begin"))
    assert "detached by hand has no record" in gemini.model.asked[1].last
    assert "[outlive]" not in gemini.model.asked[2].last
    assert gemini.bench.show(gemini.only_task())["session"] is not None


def test_advice_about_a_background_of_the_client_is_true_if_the_command_survives(
    gemini: Gemini, tmp_path: Path
) -> None:
    """The advice about background commands of Gemini CLI is true: it says that they survive unless the user quits.

    A command survives a client that answers one prompt. A client in a terminal ends the command at `/quit`.
    """
    gemini.configure()
    gemini.install()
    go, file = tmp_path / "go", tmp_path / "pid"
    given = {"command": f"echo $$ > {file}; {released(go)}", "description": "a step", "is_background": True}
    gemini.model.answer = lambda asked: [Say("done") if asked.results else Use("run_shell_command", given)]
    gemini.finish(gemini.ask("begin"))
    wait_until(lambda: file.exists() and file.read_text(), "the command")
    pid = int(file.read_text())
    os.kill(pid, 0)
    go.touch()
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the end of the command")
    assert "may end with the session" in gemini.model.asked[1].last
