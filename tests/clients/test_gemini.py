"""Outlive in the real Gemini CLI, offline: what only it does."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from tests.clients.model import Asked, Reply, Say
from tests.clients.rig import released
from tests.support import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.clients.rig import Gemini


def test_compressing_by_itself_hands_over_at_the_next_boundary(gemini: Gemini, tmp_path: Path) -> None:
    """Nobody is told that it did; the result that is read next tells, in the same session."""
    file, go = gemini.configure(), tmp_path / "go"
    file.write_text(file.read_text().replace("{\n", '{\n  "model": {"compressionThreshold": 0.000001},\n', 1))
    gemini.install()

    def answer(asked: Asked) -> list[Reply]:
        if "launch it" in asked.last:
            return [gemini.shell(f"outlive run --notify failure '{released(go)}'")]
        if "look around" in asked.last:
            return [gemini.shell("true")]
        # It takes what it has heard before for a loop, and what is short for not worth a summary.
        return [Say(" ".join(str(uuid.uuid4()) for _ in range(60)))]

    gemini.model.answer = answer
    terminal = gemini.sit_down("launch it")
    wait_until(lambda: len(gemini.model.asked) == 2, "the end of the turn")
    gemini.until_idle()
    task = gemini.only_task()
    asked = gemini.prompt(terminal, "look around")
    assert "launch it" not in asked.all, "it was not compressed"
    assert gemini.hand_offs(asked.all) == 0
    wait_until(lambda: len(gemini.model.asked) == 4, "the request with the result")
    told = gemini.model.asked[3].last
    assert gemini.hand_offs(told) == 1
    assert f"{task} running" in told
    assert len(gemini.bench.json("session", "list", "--all")["sessions"]) == 1
    go.touch()


def test_advice_stands_beside_the_result(gemini: Gemini) -> None:
    """Said before the tool it would reach nobody; the command is told its session all the same."""
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
