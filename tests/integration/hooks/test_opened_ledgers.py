"""A hook process opens the ledger at most once while its client waits.

The hook runs as it does for a client, but a class that counts openings replaces `apsw.Connection`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.hook_steps import SESSION, context, ended, launch, state
from tests.session_steps import until
from tests.support import PATIENCE_S

if TYPE_CHECKING:
    from tests.support import Bench

COUNTING = """
import os
from outlive.ledger.open_ledger import apsw

log = os.open(os.environ["OPENINGS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
os.write(log, f"{os.getpid()} begins\\n".encode())

class Counted(apsw.Connection):
    def __init__(self, *given, **named):
        os.write(log, f"{os.getpid()} opens\\n".encode())
        super().__init__(*given, **named)

apsw.Connection = Counted

from outlive.cli.main import main_and_exit
main_and_exit()
"""


class Hooked:
    """The result of one hook call: the hook's answer, and how often the hook process opened the ledger."""

    def __init__(self, bench: Bench, event: str, client: str = "claude", **fields: Any) -> None:
        log = bench.root / "openings"
        log.unlink(missing_ok=True)
        payload = {"session_id": SESSION, "cwd": str(bench.project), "hook_event_name": event, **fields}
        done = subprocess.run(
            [sys.executable, "-c", COUNTING, "hook", client, event],
            input=json.dumps(payload),
            env={**bench.env, "OUTLIVE_HOOK_DEADLINE_S": str(PATIENCE_S), "OPENINGS": str(log)},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        self.answer: Any = json.loads(done.stdout) if done.stdout else {}
        own, *others = (line.split() for line in log.read_text().splitlines())
        self.openings = sum(process == own[0] for process, _ in others)


EDIT = {"tool_name": "Edit", "tool_input": {"file_path": "f"}}
COMMAND = {"tool_name": "Bash", "tool_input": {"command": "git status"}}


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ("Stop", {}),
        ("PostToolBatch", {}),
        ("UserPromptSubmit", {"prompt": "go on"}),
        ("SessionStart", {"source": "resume", "transcript_path": "/etc/hostname"}),
        ("SessionStart", {"source": "clear"}),
        ("SessionStart", {"source": "compact"}),
    ],
)
def test_hook_opens_the_ledger_once_when_it_reports_an_ending(bench: Bench, event: str, fields: Any) -> None:
    """A hook that reports an ending opens the ledger only once, although it checks, settles, claims and presents."""
    Hooked(bench, "SessionStart", source="startup")
    task = ended(bench, "echo new > file; exit 3")
    told = Hooked(bench, event, **fields)
    assert (task in context(told.answer), told.openings) == (True, 1)


@pytest.mark.parametrize("event", ["Stop", "PostToolBatch"])
def test_hook_opens_the_ledger_once_when_it_acknowledges_a_notice(bench: Bench, event: str) -> None:
    """A hook opens the ledger once when it acknowledges a notice that an earlier event presented."""
    task = ended(bench)
    assert task in context(Hooked(bench, "PostToolBatch").answer)
    assert (Hooked(bench, event).openings, state(bench, task)) == (1, "acked")


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ("Stop", {}),
        ("PreToolUse", COMMAND),
        ("PreToolUse", EDIT),
        ("PostToolUse", EDIT),
        ("PostToolUse", {"agent_id": "a", **EDIT}),
        ("PreCompact", {}),
        ("SessionEnd", {}),
    ],
)
def test_hook_opens_the_ledger_at_most_once_while_a_task_runs(bench: Bench, event: str, fields: Any) -> None:
    """While a task runs, a hook opens the ledger at most once at each other event.

    Detached processes that the hook starts are not counted.
    """
    Hooked(bench, "SessionStart", source="startup")
    launch(bench, until("go"))
    assert Hooked(bench, event, **fields).openings <= 1


def test_hook_opens_the_ledger_once_more_when_it_forks_a_keeper(bench: Bench) -> None:
    """A hook that starts a keeper opens the ledger twice.

    It closes the ledger before the fork, so that no keeper inherits it.
    """
    task = launch(bench, until("go"))
    bench.kill(task, "keeper", "witness")
    assert Hooked(bench, "Stop").openings == 2
    assert bench.keeper(task)
    (bench.project / "go").touch()
    bench.run("wait", task)
