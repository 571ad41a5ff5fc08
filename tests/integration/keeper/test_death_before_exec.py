"""Processes that die between fork and exec. No ending may be recorded for a command that did not begin."""

from __future__ import annotations

import os
import signal
import time
from select import POLLIN, poll
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from outlive.bundle import record
from outlive.bundle.attempt import AttemptFiles, HeldFiles, create_attempt, reopen_attempt, take
from outlive.bundle.home import Home, open_home
from outlive.domain.errors import Unavailable
from outlive.domain.tasks.evidence import decide
from outlive.keeper import witness
from outlive.keeper.exit_watch import OwnWitness, command_of, never_begun, read_evidence
from outlive.keeper.intent import write_intent
from outlive.keeper.keeper import wait_for_go
from outlive.keeper.plan import Plan, Surroundings
from outlive.keeper.spawn import NewKeeper
from outlive.keeper.supervise import Supervision
from outlive.linux.processes import identify
from outlive.linux.shared_listener import PROMISED, SharedListener
from outlive.linux.syscalls import SYS_ADMIN, has_capability
from outlive.observe.seccomp import self_test
from outlive.service.clock import utc_now
from outlive.service.tasks import start_attempt
from tests.support import is_alive, kill, wait_until
from tests.unit import values

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import NoReturn

    from outlive.domain.tasks.evidence import Evidence
    from tests.support import Bench

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="observed by system calls on x86_64 here")


class Start:
    """A command that is about to begin, with the pipes, locks and files of its attempt."""

    def __init__(self, root: Path) -> None:
        self.home: Home = open_home({"OUTLIVE_HOME": str(root / "state")})
        bundle = self.home.bundle("aaaaaaaa")
        os.makedirs(bundle + "/attempts")
        self.files = AttemptFiles(bundle, 1)
        self.held: HeldFiles = create_attempt(self.files)
        self.ran = root / "ran"

    def make_channels(self) -> None:
        """Make the pipes and the listener for system calls in the keeper, so that they close when the keeper dies."""
        journal = os.open(self.files.effects, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.shared_listener = SharedListener(journal, 0, keep_privileges=has_capability(SYS_ADMIN))
        self.voice, self._voice_write = os.pipe()
        self._begin_read, self.begin = os.pipe()

    def fork_witness(self) -> None:
        """Fork the witness, which forks the command's process.

        Then close the pipe ends that belong to these two processes.
        """
        assert self.held.lock is not None
        start = witness.Start(
            lock=self.held.lock,
            record=self.held.record,
            output=self.held.output,
            voice=self._voice_write,
            begin=self._begin_read,
            argv=("/bin/sh", "-c", f"touch {self.ran}"),
            cwd="/",
            environ={"PATH": os.defpath},
            umask=0o077,
            limits=(),
            shared_listener=self.shared_listener,
        )
        if os.fork() == 0:
            for fd in (self.begin, self.voice, self.held.control, self.held.done):
                os.close(fd)
            witness.serve(start)
        os.close(self._voice_write)
        os.close(self._begin_read)

    def is_over(self) -> bool:
        """Return whether no process holds the attempt's lock any more."""
        lock = take(self.files)
        if lock is not None:
            os.close(lock)
        return lock is not None

    def ending(self) -> Evidence | None:
        """Wait until no process holds the attempt's lock, and return the recorded evidence."""
        self.held.close()
        wait_until(self.is_over, "the end of every process that has the attempt's lock")
        fd = os.open(self.files.record, os.O_RDONLY)
        try:
            return read_evidence(fd, "witness")
        finally:
            os.close(fd)


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Return a command that is about to begin."""
    return Start(tmp_path)


def keeper_that(life: Callable[[], object]) -> int:
    """Fork a process that calls `life` and then kills itself. Return its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            life()
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    return pid


def has_begun_falsely(seen: Evidence | None) -> bool:
    """Return whether the evidence has an ending although the command never began."""
    return seen is not None and (decide(seen, None).state != "lost" or seen.started != "no")


def test_command_has_no_ending_when_its_keeper_dies_before_the_exec(start: Start) -> None:
    """If the keeper is killed before it takes the listener for system calls, the command never begins.

    So the command has no ending.
    """

    def live() -> None:
        start.make_channels()
        start.fork_witness()
        os.close(start.shared_listener._keeper)
        os.write(start.begin, PROMISED)

    os.waitpid(keeper_that(live), 0)
    seen = start.ending()
    assert not start.ran.exists()
    assert not has_begun_falsely(seen), seen


def test_command_dies_when_keeper_and_witness_are_killed_during_its_exec(start: Start) -> None:
    """If keeper and witness are killed during the command's exec, the command's process dies.

    No process is left that could answer the system call of the exec.
    """
    said, say = os.pipe()

    def live() -> None:
        start.make_channels()
        os.write(start.begin, PROMISED)
        start.fork_witness()
        os.read(start.voice, 64)
        command = command_of(start.held.record)
        listener = start.shared_listener.of_keeper(command)
        assert listener is not None
        os.write(start.begin, b"g")
        waiting = poll()
        waiting.register(listener, POLLIN)
        waiting.poll()
        os.write(say, b"asked")
        time.sleep(60)

    keeper = keeper_that(live)
    assert os.read(said, 16) == b"asked"
    command = command_of(start.held.record)
    own = int((start.files.read_slot("process") or {})["witness"])
    os.kill(own, signal.SIGSTOP)  # A running witness could answer the call before it is killed.
    kill(keeper)
    kill(own)
    os.waitpid(keeper, 0)
    try:
        wait_until(lambda: not is_alive(command), "the end of the command that never began")
        assert not has_begun_falsely(start.ending())
        assert not start.ran.exists()
    finally:
        kill(command)


def test_task_is_cancelled_when_its_cancel_prevents_the_start(bench: Bench) -> None:
    """If the keeper finds a cancel before the exec, the command never begins, and the task is cancelled."""
    task = bench.launch("sleep 60")
    bench.kill(task, "keeper", "witness", "command")
    files, launch = bench.files(task), bench.row(task).launch
    control = take(files, "control")
    assert control is not None
    held = reopen_attempt(files, take(files), control)
    write_intent(held.record, "cancel", utc_now())
    plan = Plan(home=bench.home, launch=launch, files=files, surroundings=Surroundings(environ={}, umask=0o077))
    voice, _ = os.pipe()
    Supervision(plan, held, OwnWitness(voice, held.record), "keeper").settle(never_begun())
    attempt = bench.row(task).current
    assert (attempt.state, attempt.reason) == ("cancelled", "requested")


def test_cancel_prevents_a_start_that_the_launcher_has_allowed(start: Start) -> None:
    """If a stopped keeper finds the permission to start and a cancel together, the command does not begin."""
    around = Surroundings(environ={}, umask=0o077)
    plan = Plan(home=start.home, launch=values.launch(), files=start.files, surroundings=around)
    go, launcher = os.pipe()
    os.write(launcher, b"g")
    os.write(start.held.control, b"cancel\n")
    assert wait_for_go(plan, start.held, go) == "cancel"


def test_lost_task_is_reported_as_never_begun_when_its_processes_died_at_the_start(bench: Bench) -> None:
    """If a task's processes died before the command began, `inbox`, `show` and `list` say so.

    `retry --lost` starts the task.
    """
    task = bench.launch("[ -e go ] || sleep 60", "--session", "s-1")
    bench.kill(task, "keeper", "witness", "command")
    forget_process(bench, task)
    told = bench.ok("inbox", "--session", "s-1")
    cause = "its keeper, its witness or its own process was killed before it began"
    assert f"lost: {cause}; `outlive retry --lost` starts it again" in told
    assert f"{task} lost (killed_at_start) before it began" in told
    assert "ran never to ?" in told
    assert cause in bench.ok("show", task)
    assert cause in bench.ok("list")
    (evidence,) = bench.show(task)["evidence"]
    assert (evidence["started"], evidence["seen_by"]) == ("no", "reconciler")
    (bench.project / "go").touch()
    assert bench.ok("retry", "--lost") == task


def test_task_may_have_begun_when_a_power_failure_deleted_its_process_record(bench: Bench) -> None:
    """If a power failure deleted the record of the process, `retry --lost` refuses to start the task again.

    The command may have begun, because this record is not synced to the disk.
    """
    task = bench.launch("sleep 60")
    bench.kill(task, "keeper", "witness", "command")
    forget_process(bench, task)
    database = apsw.Connection(bench.home.ledger)
    database.execute("UPDATE attempt SET boot = '00000000-0000-0000-0000-000000000000'")
    database.close()
    shown = bench.show(task)
    assert (shown["reason"], shown["evidence"][0]["started"]) == ("reboot", "unknown")
    assert bench.ok("retry", "--lost").startswith("no lost task")


def test_launcher_does_not_confirm_a_command_that_may_not_have_begun(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launch raises `Unavailable` if it is not known whether the command has begun.

    Keeper and witness have died, and the command's process lives but has not executed the command.
    """
    monkeypatch.setattr(start_attempt, "_BEGINNING_TAKES_AT_MOST", 0.1)
    task = bench.launch("sleep 60")
    bench.kill(task, "keeper", "witness", "command")
    files, launch = bench.files(task), bench.row(task).launch
    control = take(files, "control")
    assert control is not None
    held = reopen_attempt(files, take(files), control)
    unbegun = os.fork()
    if unbegun == 0:
        for fd in (held.control, held.done):
            os.close(fd)
        time.sleep(60)
        os._exit(0)
    child = identify(unbegun)
    found = files.read_slot("process") or {}
    mine: dict[str, Any] = {"pid": child.pid, "inode": child.inode, "start": child.start, "started": "unknown"}
    record.write_slot(held.record, "process", **{**found, **mine})
    try:
        with (
            NewKeeper(held, lambda *_: os._exit(0), lambda *_: False) as keeper,
            pytest.raises(Unavailable, match="not known whether"),
        ):
            start_attempt.hand_over(bench.home, launch, files, keeper, utc_now())
        kill(unbegun)
        wait_until(lambda: bench.row(task).state == "lost", "the end of the process")
    finally:
        kill(unbegun)
        os.waitpid(unbegun, 0)
    (evidence,) = bench.show(task)["evidence"]
    assert (evidence["started"], evidence["seen_by"]) == ("no", "adopter")


def forget_process(bench: Bench, task: str) -> None:
    """Clear the part of a task's record that names the command's process."""
    fd = os.open(bench.files(task).record, os.O_RDWR)
    record.clear_slot(fd, "process")
    os.close(fd)


def test_self_test_process_ends_when_its_keeper_is_killed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the keeper is killed, the process of its self-test releases the attempt's lock, and no ending is recorded."""
    monkeypatch.setattr(self_test, "_sees", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    pid = keeper_that(lambda: self_test.can_observe(start.home, keep_privileges=has_capability(SYS_ADMIN)))
    os.waitpid(pid, 0)
    assert start.ending() is None


def test_launcher_gives_up_when_its_keeper_does_not_confirm(start: Start) -> None:
    """If the keeper neither confirms the start nor exits, the launcher returns `silent` after its timeout."""
    here, there = os.pipe()

    def live(*_: int) -> NoReturn:
        os.write(there, b"%d" % os.getpid())
        while True:
            signal.pause()

    with NewKeeper(start.held, live, lambda *_: False) as keeper:
        pid = int(os.read(here, 16))
        try:
            assert keeper.begin(within_ms=50) == "silent"
        finally:
            kill(pid)
