"""What only Codex has: sessions that go on in a server of its own when their terminal is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.clients.model import Asked, Reply, Say
from tests.clients.rig import PATIENCE_S, released
from tests.support import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.clients.rig import Codex


def test_a_session_whose_terminal_is_gone_is_told_once(codex: Codex, tmp_path: Path) -> None:
    """It lives, so it is told, and woken, as one with a terminal is; resumed, it has it in its history."""
    codex.configure()
    codex.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [codex.shell(f"outlive run '{released(go)}; exit 3'")]
        return [Say("fine")]

    codex.model.answer = answer
    terminal = codex.sit_down("launch it")
    wait_until(lambda: len(codex.model.asked) == 2, "the end of the turn")
    codex.until_idle()
    task = codex.only_task()
    terminal.close()
    [session] = codex.bench.json("session", "list", "--all")["sessions"]
    assert session["alive"] is True
    go.touch()
    wait_until(lambda: len(codex.model.asked) == 3, "the turn that it was woken for")
    assert f"n{task}01ended" in codex.model.asked[2].last
    wait_until(lambda: codex.notices(task) == {"ended": "acked"}, "the acknowledgement")
    elsewhere = codex.ask("again", "resume", session["id"])
    assert "already has an active writer" in elsewhere.communicate(timeout=PATIENCE_S)[1], "it lives in the server"
    codex.sit_down("again", "resume", session["id"])
    wait_until(lambda: len(codex.model.asked) == 4, "the turn at another terminal")
    told = codex.model.asked[3]
    assert f"n{task}01ended" in told.all
    assert f"n{task}01ended" not in told.last
    assert len(codex.bench.json("session", "list", "--all")["sessions"]) == 1
