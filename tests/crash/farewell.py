"""Crash tests of a process that is killed while it ends a session. Then another process ends the session again.

The session has a foreground and a background task, and the background task must survive. All steps run in one process
tree. The process that launched the tasks forks the process that is killed, and then a process that is not killed.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from outlive.cli.main import load, main
from outlive.domain.tasks.command import from_shell_text
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.tasks import cancel
from outlive.service.tasks.run import Request, run
from tests.crash.invariants import Point
from tests.crash.life import CODE, GATED, Life
from tests.crash.remains import Snapshot, damage_in
from tests.crash.sweep import Sweep
from tests.crash.tree import Trace

ENDER: Final = "0.2"  # The process to kill is the one that is forked after the keepers of the two tasks.
_SESSION: Final = "a session"
_END: Final = ("session", "end", "--session", _SESSION)
# The command starts three processes in two process groups. The FIFO `tree` has a reader while any of them runs.
_TREE: Final = "exec 3<>tree; timeout 99 sleep 99; exit 0"


class Parting(Life):
    """A state directory for one session with a foreground task and a background task."""

    def __init__(self) -> None:
        super().__init__()
        os.environ["OUTLIVE_HOME"] = str(self._now / "state")
        os.environ.pop("OUTLIVE_TRACE", None)
        load("session")
        # The command that ends a session asks keepers a second time after a delay. Here the delay never ends, so that
        # the trace is the same on every machine.
        vars(cancel)["_ASK_AGAIN"] = timedelta(minutes=1)
        os.mkfifo(self._now / "place/tree")
        self.freeze()

    def launch(self) -> int:
        """Launch the two tasks, end the session twice, print the state, and then let the background task end."""
        os.chdir(self._now / "place")
        background = self._request.but(key=None, command=from_shell_text(GATED))
        run(self.home, self._in_foreground(), utc_now())
        run(self.home, background, utc_now())
        self.fold_log()
        _in_child()
        again = _in_child()
        lines = [f"again {again}", f"tree {'alive' if _is_read('tree') else 'gone'}"]
        lines += [f"{task.launch.mode} {task.state} {task.current.reason}" for task, _ in self.snapshot()]
        os.write(1, "".join(f"{line}\n" for line in lines).encode())
        os.write(self._gate, b"\n")
        return 0

    def _in_foreground(self) -> Request:
        around = self._request.surroundings.but(owner=os.pidfd_open(os.getppid()))
        return self._request.but(key=None, command=from_shell_text(_TREE), mode="foreground", surroundings=around)

    def said(self) -> list[str]:
        """Return the lines that were printed after the second end of the session."""
        return self._stdout.read_text().splitlines()

    def is_over(self) -> bool:
        """Return whether the session has ended."""
        with SqliteLedger(self.home.ledger, utc_now()) as ledger:
            found = Sessions(ledger).of_project(str(self._now / "place"), 1)
        return bool(found) and found[0].ended_at is not None


def _in_child() -> int:
    child = os.fork()
    if child == 0:
        code = 70
        with suppress(BaseException):
            code = main(list(_END))
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _is_read(fifo: str) -> bool:
    try:
        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


@dataclass(frozen=True)
class Farewell(Sweep):
    """A series of crash tests of a process that ends a session."""

    role: str = ENDER
    looks: int = 7

    def stage(self) -> Life:
        """Create the state directory for the two tasks."""
        return Parting()

    def judge(self, life: Life, trace: Trace, _: Point | None) -> tuple[str, list[str]]:
        """Compare the printed and the recorded state with the expected state."""
        assert isinstance(life, Parting)
        said, left = life.said(), life.snapshot()
        return "; ".join(said), [
            *([f"hung: {trace.hung}"] if trace.hung else []),
            *_of_parting(said, left),
            *([] if life.is_over() else ["the session is not over"]),
            *(f"damage: {text}" for text in damage_in(life.home, left)),
        ]


def _of_parting(said: list[str], left: Snapshot) -> Iterator[str]:
    for line in ("again 0", "tree gone", "foreground cancelled session_ended", "background running None"):
        if line not in said:
            yield f"not {line!r}: {said}"
    for task, history in left:
        if task.launch.mode == "background" and task.current.exit_code != CODE:
            yield f"the background task did not live on: {task.state}, {task.current.reason}"
        if len(history.notices) != 1:
            yield f"{len(history.notices)} notices of the {task.launch.mode} task"
        if task.current.settled_by != "keeper":
            yield f"the {task.launch.mode} task was settled by {task.current.settled_by}"
