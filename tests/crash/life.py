"""One run of a task, from its launch to its last record, in which one process is killed or one call fails.

The state directory is prepared once and copied for every run. The harness runs the code of `outlive run` in a fork of a
process that has imported all modules. Afterwards the harness does what any caller does: it repeats the launch with the
same key if no id was printed, and reads the task twice.
"""

import os
import select
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

from outlive.bundle.attempt import AttemptFiles
from outlive.bundle.home import open_home
from outlive.domain.errors import OutliveError
from outlive.domain.tasks.command import from_argv, from_shell_text
from outlive.domain.tasks.queueing import lock
from outlive.keeper import (
    process_tree,
    settle,
    supervise,
    take_over,  # noqa: F401 - imported before the fork, like every module that the task needs
)
from outlive.keeper.observation import (
    record_left_open,  # noqa: F401 - imported before the fork
    unanswered_calls,  # noqa: F401 - imported before the fork
)
from outlive.keeper.plan import Surroundings
from outlive.keeper.spawn import become_detached
from outlive.ledger.completeness import restore_by
from outlive.ledger.contract import Selection
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.maintenance.rebuild import restore_incomplete
from outlive.service.maintenance.reconcile import reconcile
from outlive.service.tasks import wait_turn  # noqa: F401 - imported before the fork
from outlive.service.tasks.run import Request, run
from tests.crash import ptrace
from tests.crash.remains import Snapshot, damage_in
from tests.crash.tree import FailAt, KillAt, Trace, run_traced

LAUNCHER: Final = "0"
INTERMEDIATE: Final = "0.0"
KEEPER: Final = "0.0.0"
WITNESS: Final = "0.0.0.0"  # noqa: S104 - the name of a process in the tree of forks, not a network address
COMMAND: Final = "0.0.0.0.0"
ADOPTER: Final = "0.1.0"

CODE: Final = 3
ORDINARY: Final = f"echo x >> ran; exit {CODE}"
# A command that ends only after its launcher has seen it running and another command has read the task's state.
GATED: Final = f"read go < gate; {ORDINARY}"
# The same command, but its keeper is killed while it runs. The next command that reads the task starts a new keeper.
ADOPTED: Final = f"{GATED} # adopted"
# A command whose task needs a lock. The task is queued, and no other task is ahead of it in the queue.
QUEUED: Final = f"{ORDINARY} # queued"
# A command whose keeper and witness have run another task before, in another state directory.
AGAIN: Final = f"{ORDINARY} # again"
UNSTARTABLE: Final = "/no/such/program"
NOWHERE: Final = KillAt("nobody", 0)  # No process has this name, so the harness stops no process at its calls.
PATIENCE_S: Final = 4.0
_HURRY: Final = 200

# The tests only kill processes, so no file needs to survive a power loss. In memory, a run takes half the time.
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - mkdtemp makes the name


@dataclass(frozen=True)
class Aftermath:
    """The output, traces and ledgers after a kill or failure, at each step of the recovery."""

    trace: Trace
    answers: tuple[str, ...]  # the output of the first and the second launch
    ran: tuple[int, int]  # the number of runs of the command before the recovery began, and at the end
    again: Trace | None  # the trace of the second launch, which happens only if the first launch printed no id
    found: Snapshot  # the ledger before the recovery began
    settled: Snapshot  # the ledger after dead tasks were settled once
    untouched: Snapshot  # the ledger after dead tasks were settled a second time
    orphans: tuple[str, ...]
    damage: tuple[str, ...]  # defects of files and locks, and errors while dead tasks were settled

    @property
    def printed(self) -> tuple[str, ...]:
        """The task ids that the launches have printed."""
        return tuple(a.removeprefix("id ") for a in self.answers if a.startswith("id "))


class Life:
    """A state directory for one task at a time. It must be created inside `drive`, and closed after its use."""

    def __init__(self, script: str = ORDINARY) -> None:
        shared = _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else None
        self._root = Path(tempfile.mkdtemp(prefix="outlive-crash-", dir=shared))
        self._now = self._root / "now"
        self._template = self._root / "template"
        self._stdout = self._root / "stdout"
        self._gate = os.open(os.devnull, os.O_RDWR)
        (self._now / "place").mkdir(parents=True)
        os.mkfifo(self._now / "place/gate")
        self.home = open_home({"OUTLIVE_HOME": str(self._now / "state")})
        self._other_home = open_home({"OUTLIVE_HOME": str(self._now / "other")})
        for home in (self.home, self._other_home):
            with SqliteLedger(home.ledger, utc_now()):
                pass
        # If the launcher is killed between these two writes, the next command repairs the ledger.
        restore_by(restore_incomplete)
        self._request = Request(
            command=from_argv([script]) if script == UNSTARTABLE else from_shell_text(script),
            cwd=str(self._now / "place"),
            surroundings=Surroundings(environ={"PATH": os.defpath}, umask=0o077),
            session="a session",
            key="k",
            key_scope="ended",  # The key stays taken, whichever process is killed.
            observe="off",  # The observer's thread would change the trace in every run. Other tests kill observers.
            claims=(lock("l"),) if script == QUEUED else (),
        )
        self._script = script
        _make_small_and_fast()
        # A keeper prepares the settlement when its command has run for a while. Here it always does, or never.
        supervise._REHEARSES_AFTER = 0.0 if script == GATED else 3600.0
        self.freeze()

    def close(self) -> None:
        """Remove the directories of this life."""
        os.close(self._gate)
        shutil.rmtree(self._root)

    def freeze(self) -> None:
        """Make the current state directory the template that every further run copies."""
        shutil.rmtree(self._template, ignore_errors=True)
        self._now.rename(self._template)
        self._reset()

    def fold_log(self) -> None:
        """Copy the ledger's write-ahead log into its main file.

        The length of the log depends on timing, and would change the trace.
        """
        with SqliteLedger(self.home.ledger, utc_now()) as ledger:
            ledger.db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def _reset(self) -> None:
        shutil.rmtree(self._now, ignore_errors=True)
        shutil.copytree(self._template, self._now, copy_function=_copy)
        self._stdout.write_bytes(b"")
        os.close(self._gate)
        self._gate = os.open(self._now / "place/gate", os.O_RDWR)

    def launch(self) -> int:
        """Run the code of `outlive run`, then read the task as another command would."""
        if self._script != AGAIN:
            return self._launch()
        spawner = os.fork()
        if spawner == 0:
            keepers = become_detached()
            run(self._other_home, self._request.but(command=from_shell_text("exit 0"), key=None), utc_now())
            select.select(list(keepers._channels), [], [])  # Wait until the keeper is idle.
            os._exit(self._launch())
        return abs(os.waitstatus_to_exitcode(os.waitpid(spawner, 0)[1]))

    def _launch(self) -> int:
        try:
            task = run(self.home, self._request, utc_now())
        except OutliveError as error:
            _say(f"refused {error.code}: {error.message}")
            return error.exit_code
        else:
            return 0 if _say(f"id {task.task}") else 74
        finally:
            if self._script == ADOPTED:
                self._kill_keeper()
            if self._script in (GATED, ADOPTED):
                _say(f"orphans {' '.join(reconcile(self.home, utc_now()))}")
                os.write(self._gate, b"\n")

    def _kill_keeper(self) -> None:
        for task, _ in self.snapshot():
            files = AttemptFiles(self.home.bundle(task.id), 1)
            witness = (files.read_slot("process") or {})["witness"]
            keeper = os.pidfd_open(ptrace.parent_of(int(witness)))
            signal.pidfd_send_signal(keeper, signal.SIGKILL)
            select.select([keeper], [], [])  # The keeper is dead, and its locks are free.
            os.close(keeper)

    def reconcile(self) -> None:
        """Settle the tasks whose keepers are dead. Every command that reads tasks begins with this."""
        reconcile(self.home, utc_now())

    def trace(
        self,
        program: Callable[[], object] | None = None,
        *,
        kill: KillAt | None = None,
        fail: FailAt | None = None,
    ) -> Trace:
        """Run a task from its launch on, with or without a kill or failure, and keep the state that it leaves."""
        self._reset()
        return run_traced(
            program or self.launch,
            kill=kill,
            fail=fail,
            stdout=self._stdout,
            timeout_s=PATIENCE_S,
        )

    def clear_up(self, trace: Trace, *, ask_again: bool = True) -> Aftermath:
        """Do what a caller does after a kill or failure, and return the state after each step."""
        damage = []
        ran, found = self.count_runs(), self.snapshot()
        again = None
        printed = any(line.startswith("id ") for line in self._stdout.read_text().splitlines())
        if ask_again and not printed:
            again = run_traced(self.launch, kill=NOWHERE, stdout=self._stdout, timeout_s=PATIENCE_S)
        orphans: list[str] = []
        seen = []
        for _ in range(2):
            try:
                orphans += reconcile(self.home, utc_now(), adopter=None)
            except Exception as error:  # noqa: BLE001 - any error here is a finding
                damage.append(f"the reconciler raised {type(error).__name__}: {error}")
            seen.append(self.snapshot())
        return Aftermath(
            trace=trace,
            answers=tuple(self._stdout.read_text().splitlines()),
            ran=(ran, self.count_runs()),
            again=again,
            found=found,
            settled=seen[0],
            untouched=seen[1],
            orphans=tuple(orphans),
            damage=(*damage, *damage_in(self.home, seen[1])),
        )

    def count_runs(self) -> int:
        """Count how often the command has run."""
        with suppress(FileNotFoundError):
            return len((self._now / "place/ran").read_text().split())
        return 0

    def snapshot(self) -> Snapshot:
        """Read all tasks of the ledger with their histories."""
        with SqliteLedger(self.home.ledger, utc_now()) as ledger:
            return tuple((task, ledger.history(task.id)) for task in ledger.tasks(Selection()))


def _say(line: str) -> bool:
    try:
        os.write(1, line.encode() + b"\n")
    except OSError:
        return False  # The failing disk also holds the file with the caller's output, so this write may fail.
    return True


def _copy(source: str, target: str) -> None:
    if stat.S_ISFIFO(os.lstat(source).st_mode):
        os.mkfifo(target, 0o600)
    else:
        shutil.copyfile(source, target)
        shutil.copymode(source, target)


_sleep: Final = time.sleep


def _make_small_and_fast() -> None:
    """Shorten pauses and the search for processes in this process and its forks.

    Deadlines are not changed. The search for orphans of a dead task usually examines every process of the machine. Here
    it examines two processes.
    """
    settle._TIDIES_ONE_IN = 1 << 60  # Never tidy up. The random task id decides this, and would change the trace.
    time.sleep = lambda seconds: _sleep(float(seconds) / _HURRY)
    process_tree._all_pids = lambda: [1, os.getpid()]
