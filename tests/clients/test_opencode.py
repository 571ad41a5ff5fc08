"""Outlive in the real OpenCode, offline."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.clients.model import Asked, Hang, Reply, Say, Use
from tests.clients.rig import released
from tests.support import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.clients.rig import OpenCode


def shell(command: str) -> Use:
    """OpenCode's shell tool."""
    return Use("bash", {"command": command, "description": "a step"})


def only_task(opencode: OpenCode) -> str:
    """The one task there is, once there is one."""
    found = wait_until(lambda: opencode.bench.json("list", "--all")["tasks"], "the task")
    assert len(found) == 1
    return str(found[0]["id"])


def test_the_gate_holds_a_session_that_answers_one_prompt(opencode: OpenCode, tmp_path: Path) -> None:
    """Its end would be the session's end: held while the task runs, then told of its ending, then free."""
    opencode.configure()
    opencode.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [shell(f"outlive run '{released(go)}; exit 3'")]
        if "This session waits" in asked.last:
            go.touch()
            return [shell("outlive wait --no-ack")]
        return [Say("finished")]

    opencode.model.answer = answer
    opencode.finish(opencode.ask("begin"))
    told = opencode.model.asked[-1].all
    assert told.count("This session waits for background tasks") == 1
    assert told.count("(exit 3)") == 1
    assert opencode.notices(only_task(opencode)) == {"ended": "acked"}
