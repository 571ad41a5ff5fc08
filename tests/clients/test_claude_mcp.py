"""Claude Code in a terminal with Outlive's MCP server. The client itself follows the tasks that it launched by MCP."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from tests.clients.model import Asked, Reply, Say
from tests.clients.rig import new_session, released
from tests.support import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.clients.rigs.claude import Claude

FOLLOWED = "started server-side task"


def launching(claude: Claude, command: str) -> Callable[[Asked], list[Reply]]:
    """Return a model that launches a task with the tool `run` as soon as the client offers the tool."""
    launch = claude.tool("run", command=command)

    def answer(asked: Asked) -> list[Reply]:
        if FOLLOWED in asked.all:
            return [Say("idle")]
        return [launch] if asked.offers(launch) else [claude.shell("sleep 0.3")]

    return answer


def endings(asked: Asked, task: str) -> int:
    """Return how often a request reports the ending of a task."""
    return asked.all.count(f"- {task} failed (exit 3)")


def at_rest(claude: Claude) -> Asked:
    """Wait as long as a second report would need to arrive, and return the last request to the model."""
    seen = [(0, 0)]

    def is_still() -> bool:
        seen.append((len(claude.model.asked), sum(map(os.path.getsize, claude.bench.state.glob("*/ledger.sqlite*")))))
        return len(seen) > 300 and len(set(seen[-300:])) == 1

    wait_until(is_still, "the time for a second report to pass")
    return claude.model.asked[-1]


def test_ending_of_an_mcp_task_is_reported_once_by_the_client(claude: Claude, tmp_path: Path) -> None:
    """The client reports the ending of an MCP task, and Outlive's waking hook does not report it again.

    The report has the output of the task with its line breaks.
    """
    claude.configure()
    claude.install()
    go = tmp_path / "go"
    claude.model.answer = launching(claude, f"echo one; echo two; {released(go)}; exit 3")
    claude.sit_down("launch it")
    task = claude.only_task()
    claude.until_idle()
    count = len(claude.model.asked)
    go.touch()
    wait_until(lambda: claude.notices(task) == {"ended": "acked"}, "the acknowledgement")
    wait_until(lambda: len(claude.model.asked) > count, "the turn")
    asked = at_rest(claude)
    assert len(claude.model.asked) == count + 1
    assert endings(asked, task) == 1
    assert f"\n  directory: {claude.bench.project}\n" in asked.last
    assert "\n  | one\n  | two\n" in asked.last
    assert "<task-notification>" in asked.last
    [session] = claude.bench.json("session", "list")["sessions"]
    assert claude.bench.json("hand-off", "--session", session["id"])["foreign"] == [], "listed as a client command"


def test_ending_of_an_mcp_task_is_reported_once_when_its_server_was_killed(claude: Claude, tmp_path: Path) -> None:
    """If the MCP server was killed, the waking hook reports the ending once.

    The client cannot follow the task any more.
    """
    claude.configure()
    claude.install()
    go = tmp_path / "go"
    claude.model.answer = launching(claude, f"{released(go)}; exit 3")
    claude.sit_down("launch it")
    task = claude.only_task()
    claude.until_idle()
    count = len(claude.model.asked)
    for pid in servers(claude):
        os.kill(pid, signal.SIGKILL)
    go.touch()
    wait_until(lambda: len(claude.model.asked) > count, "the turn")
    wait_until(lambda: claude.notices(task) == {"ended": "acked"}, "the acknowledgement")
    assert endings(at_rest(claude), task) == 1


def servers(claude: Claude) -> list[int]:
    """Return the process ids of this user's MCP servers."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as line, open(f"/proc/{name}/environ", "rb") as environ:
                if line.read().endswith(b"\0mcp\0") and str(claude.home).encode() in environ.read():
                    found.append(int(name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("ends_meanwhile", [False, True], ids=["that still runs", "that has ended meanwhile"])
def test_ending_of_an_mcp_task_is_reported_once_when_the_client_was_killed_and_resumed(
    claude: Claude, tmp_path: Path, ends_meanwhile: bool
) -> None:
    """If the client was killed and resumed, the model gets the whole ending only once.

    Without care there would be two reports, because the client follows the task again and a hook gives a hand-off.
    """
    claude.configure()
    claude.install()
    go, session = tmp_path / "go", new_session()
    claude.model.answer = launching(claude, f"{released(go)}; exit 3")
    terminal = claude.sit_down("launch it", "--session-id", session)
    task = claude.only_task()
    claude.until_idle()
    claude.until_recorded(session, FOLLOWED)
    terminal.close()
    wait_until(lambda: not servers(claude), "the end of the client's MCP server")
    if ends_meanwhile:
        go.touch()
        claude.until_ended(task)
    again = claude.come_back(session)
    claude.prompt(again, "and now?")
    go.touch()
    wait_until(lambda: claude.notices(task) == {"ended": "acked"}, "the acknowledgement")
    told = at_rest(claude).all
    assert told.count("ended, and not yet reported to you (1)") == ends_meanwhile, "not in the hand-off"
    assert told.count("\n  directory: ") == (not ends_meanwhile), "not the whole ending"
    assert told.count("This ending was reported before.") <= 1, "a late MCP result was reported more than once"
