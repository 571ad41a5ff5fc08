"""Features that only Codex has: sessions that a server of Codex keeps open."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from tests.clients.model import Asked, Reply, Say
from tests.clients.rig import PATIENCE_S, released
from tests.support import kill, wait_until

if TYPE_CHECKING:
    from tests.clients.rigs.codex import Codex
    from tests.clients.terminal import Terminal


def idle(codex: Codex, go: Path) -> tuple[Terminal, str]:
    """Return a terminal with an idle session, and the id of the session's task.

    The task fails as soon as the file `go` exists.
    """
    codex.configure()
    codex.install()

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [codex.shell(f"outlive run '{released(go)}; exit 3'")]
        return [Say("fine")]

    codex.model.answer = answer
    terminal = codex.sit_down("launch it")
    wait_until(lambda: len(codex.model.asked) == 2, "the end of the turn")
    codex.until_idle()
    return terminal, codex.only_task()


def test_session_is_woken_once_when_its_terminal_is_closed(codex: Codex, tmp_path: Path) -> None:
    """A session whose terminal was closed is woken once, because the server of Codex keeps the session open.

    Afterwards, the history of the session contains the ending.
    """
    go = tmp_path / "go"
    terminal, task = idle(codex, go)
    terminal.close()
    [session] = codex.bench.json("session", "list", "--all")["sessions"]
    assert session["alive"] is True
    go.touch()
    wait_until(lambda: len(codex.model.asked) == 3, "the turn after the waking")
    assert f"n{task}01ended" in codex.model.asked[2].last
    wait_until(lambda: codex.notices(task) == {"ended": "acked"}, "the acknowledgement")
    elsewhere = codex.ask("again", "resume", session["id"])
    assert "already has an active writer" in elsewhere.communicate(timeout=PATIENCE_S)[1], "not open in the server"
    codex.sit_down("again", "resume", session["id"])
    wait_until(lambda: len(codex.model.asked) == 4, "the turn at another terminal")
    told = codex.model.asked[3]
    assert f"n{task}01ended" in told.all
    assert f"n{task}01ended" not in told.last
    assert len(codex.bench.json("session", "list", "--all")["sessions"]) == 1


def processes_of(codex: Codex) -> list[int]:
    """Return the process ids of the client and of the server with its session."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            is_codex = os.readlink(f"/proc/{pid}/exe").endswith("/codex")
            environ = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if is_codex and f"HOME={codex.home}\0".encode() in environ:
            found.append(int(pid))
    return found


def test_message_that_was_queued_for_a_killed_session_repeats_no_ending(codex: Codex, tmp_path: Path) -> None:
    """If a message about an ending was queued for a killed session, the ending is reported only once after the resume.

    Codex delivers the queued message when the session is resumed. The hand-off has reported the ending by then.
    """
    go = tmp_path / "go"
    _, task = idle(codex, go)
    session = codex.bench.show(task)["session"]
    processes = processes_of(codex)
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    go.touch()
    wait_until(lambda: len(processes_of(codex)) > len(processes), "the process that sends the message")
    for pid in processes:
        kill(pid)
    wait_until(lambda: not processes_of(codex), "the end of all processes of Codex")
    terminal = codex.sit_down("again", "resume", session)
    wait_until(lambda: len(codex.model.asked) == 3, "the first turn")
    assert codex.model.asked[2].all.count("(exit 3)") == 1
    wait_until(lambda: codex.notices(task) == {"ended": "acked"}, "the acknowledgement")
    assert codex.prompt(terminal, "anything else").all.count("(exit 3)") == 1
    assert len(codex.model.asked) == 4, "the queued message caused a turn"
