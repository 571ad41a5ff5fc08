"""Bugs as a careful programmer could write them, each planted on purpose, and the guarantees that they break.

The crash tests must find each bug and name the guarantee that it breaks. Only then do crash tests without a finding
prove something.
"""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NoReturn

from outlive.bundle import record
from outlive.bundle.attempt import AttemptFiles, discard_bundle
from outlive.bundle.home import Home
from outlive.domain.errors import OutliveError
from outlive.domain.tasks.evidence import Evidence
from outlive.domain.tasks.queueing import Dependency
from outlive.domain.tasks.task import Launch, Task
from outlive.keeper import exit_watch, keeper, witness
from outlive.ledger import sqlite
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.maintenance import reconcile
from outlive.service.tasks import run, start_attempt
from tests.crash.life import GATED, INTERMEDIATE, KEEPER, LAUNCHER, WITNESS
from tests.crash.ptrace import PIPE_WRITE
from tests.crash.sweep import Sweep


@dataclass(frozen=True)
class Mutant:
    """A bug, the series of crash tests that must find it, and the name of the guarantee that it breaks."""

    plant: Callable[[], object]
    sweep: Sweep
    caught_by: str
    near: tuple[str, int] | None = None  # the name of a system call and its index, where the search begins


def replace(owner: object, name: str, planted: object) -> None:
    """Replace an attribute by another value. If the attribute does not exist, raise an error."""
    getattr(owner, name)
    setattr(owner, name, planted)


def settle_in_two_transactions() -> None:
    """Plant a bug: the notice is written only after the state was committed."""
    replace(sqlite, "_NOTICE", f"COMMIT; BEGIN IMMEDIATE; {sqlite._NOTICE}")


def insert_row_before_lock() -> None:
    """Plant a bug: the row of an attempt is inserted before its files and its lock exist."""
    check_room, plan, enqueue = Home.check_room, run._plan_launch, run._enqueue
    homes: list[Home] = []
    tasks: dict[str, Task] = {}

    def check_and_remember(home: Home) -> None:
        check_room(home)
        homes.append(home)

    def plan_and_enqueue(request: run.Request, after: tuple[Dependency, ...], now: datetime) -> Launch:
        launch = plan(request, after, now)
        tasks[launch.id] = enqueue(homes[-1], launch, now, None, None)
        return launch

    replace(Home, "check_room", check_and_remember)
    replace(run, "_plan_launch", plan_and_enqueue)
    replace(run, "_enqueue", lambda _home, launch, *_, **__: tasks[launch.id])


def reap_before_recording() -> None:
    """Plant a bug: the command is reaped before its exit status is on the disk.

    After the command was reaped, no other process can read the status.
    """

    def watch(record_fd: int, command: int, voice: int, _: int) -> None:
        _, status = os.waitpid(command, 0)
        witness.write_exit(record_fd, os.CLD_EXITED, os.waitstatus_to_exitcode(status))
        witness._say(voice, b"exited\n")

    replace(witness, "_watch", watch)


def tell_before_recording() -> None:
    """Plant a bug: the witness notifies the keeper before it records the exit.

    If the keeper is gone, the witness is ended by EPIPE and records no exit.
    """
    say, write_exit = witness._say, witness.write_exit
    voices: list[int] = []

    def remember(voice: int, word: bytes) -> None:
        voices.append(voice)
        say(voice, word)

    def tell_and_write(record_fd: int, *seen: int, **more: bool) -> None:
        os.write(voices[-1], b"exited\n")
        write_exit(record_fd, *seen, **more)

    replace(witness, "_say", remember)
    replace(witness, "write_exit", tell_and_write)


def take_a_dead_witness_for_success() -> None:
    """Plant a bug: if no process saw the end of a command, its task is settled with exit code 0."""
    success = Evidence(kind="exited", seen_by="keeper", exit_code=0)
    replace(exit_watch, "_without_witness", lambda _: success)


def ignore_the_record() -> None:
    """Plant a bug: a dead task is settled without reading the exit that the witness recorded."""
    replace(reconcile, "read_evidence", lambda *_: None)


def reconcile_without_the_lock() -> None:
    """Plant a bug: a task is settled by a reader that neither takes the task's lock nor checks the task's keeper."""

    def open_only(files: AttemptFiles, which: str = "lock") -> int:
        return os.open(files.lock if which == "lock" else files.control, os.O_RDWR | os.O_CLOEXEC)

    replace(reconcile, "take", open_only)
    replace(reconcile, "keeper_lives", lambda _: False)


def begin_without_a_go() -> None:
    """Plant a bug: the command begins before the row of its attempt says `running`."""
    become = witness._become_command

    def begin_at_once(failure: int, start: witness.Start, own: int) -> NoReturn:
        reader, writer = os.pipe()
        os.write(writer, b"g")
        become(failure, start.but(begin=reader), own)

    replace(witness, "_become_command", begin_at_once)


def take_lost_for_never_begun() -> None:
    """Plant a bug: a lost command is started again as if it had never begun, although it may have run."""
    unseen = reconcile._Check._unseen
    replace(reconcile._Check, "_unseen", lambda check, _: unseen(check, "no"))


def write_the_record_in_two() -> None:
    """Plant a bug: the exit record is written in two steps, and it is read without a check of its checksum."""
    write, read = record.write_slot, record.read_slot

    def write_halves(fd: int, slot: "record.Slot", *, durable: bool = True, **fields: object) -> None:
        if slot == "exit":
            os.pwrite(fd, " ".join(f"{name}=" for name in fields).encode("ascii"), 0)
        write(fd, slot, durable=durable, **fields)

    def read_unchecked(fd: int, slot: "record.Slot") -> dict[str, str] | None:
        if slot != "exit":
            return read(fd, slot)
        line = os.pread(fd, 64, 0).rstrip(b"\0\n").decode("ascii")
        return dict(pair.split("=", 1) for pair in line.split(" ")) if line else None

    replace(record, "write_slot", write_halves)
    replace(record, "read_slot", read_unchecked)


def inherit_nothing() -> None:
    """Plant a bug: the keeper does not become the subreaper.

    If the witness dies, the command's exit status is then lost.
    """
    replace(keeper, "become_subreaper", lambda: None)


def answer_a_dead_launcher() -> None:
    """Plant a bug: the keeper is ended by EPIPE if its launcher is gone."""

    def answer(ready: int | None, word: str) -> None:
        if ready is None:
            return
        os.write(ready, word.encode() + b"\n")
        os.close(ready)

    replace(keeper, "answer", answer)


def believe_a_failed_commit() -> None:
    """Plant a bug: if COMMIT reports an error, the keeper assumes that no row was written. A row may have been."""
    attempt = start_attempt.new_attempt

    def enqueue(home: Home, launch: Launch, now: datetime, *_: object, **__: object) -> Task:
        try:
            with SqliteLedger(home.ledger, now) as ledger:
                return ledger.enqueue(launch, attempt(launch, 1, now))
        except OutliveError:
            discard_bundle(home.bundle(launch.id))
            raise

    replace(run, "_enqueue", enqueue)


def leave_the_bundle() -> None:
    """Plant a bug: the bundle of a refused launch is left on the disk."""
    replace(run, "discard_bundle", lambda _: None)


_SYNC: Final = frozenset({"fdatasync"})

MUTANTS: Final[dict[str, Mutant]] = {
    "settle in two transactions": Mutant(
        settle_in_two_transactions, Sweep(KEEPER), "0 ending notices", ("fdatasync", -1)
    ),
    "insert the row before the lock": Mutant(insert_row_before_lock, Sweep(LAUNCHER), "still running", ("flock", 0)),
    "reap before recording": Mutant(reap_before_recording, Sweep(WITNESS), "exit code lost", ("pwrite64", -1)),
    "tell before recording": Mutant(
        tell_before_recording,
        Sweep(KEEPER, also=(LAUNCHER,)),
        "exit code lost",
        (PIPE_WRITE, 0),
    ),
    "take a dead witness for success": Mutant(
        take_a_dead_witness_for_success, Sweep(WITNESS), "wrong exit code 0", ("waitid", 0)
    ),
    "ignore the record": Mutant(ignore_the_record, Sweep(LAUNCHER, ruin="recorded"), "exit code lost"),
    "reconcile without the lock": Mutant(
        reconcile_without_the_lock,
        Sweep(INTERMEDIATE, script=GATED),
        "orphan although its keeper lives",
        ("exit_group", 0),
    ),
    "begin without a go": Mutant(begin_without_a_go, Sweep(LAUNCHER), "ran before it was on record", ("fdatasync", -2)),
    "take lost for never begun": Mutant(
        take_lost_for_never_begun,
        Sweep(WITNESS, also=(LAUNCHER, KEEPER)),
        "ran 2 times",
        ("waitid", 0),
    ),
    "write the record in two": Mutant(
        write_the_record_in_two, Sweep(WITNESS), "the reconciler raised", ("pwrite64", -1)
    ),
    "inherit nothing": Mutant(inherit_nothing, Sweep(WITNESS), "exit code lost", ("waitid", 0)),
    "answer a dead launcher": Mutant(
        answer_a_dead_launcher, Sweep(LAUNCHER), "although its keeper lived", (PIPE_WRITE, -1)
    ),
    "believe a failed commit": Mutant(
        believe_a_failed_commit,
        Sweep(LAUNCHER, errno=errno.EIO, names=_SYNC),
        "damage: lock of attempt 1 is missing",
    ),
    "leave the bundle": Mutant(
        leave_the_bundle,
        Sweep(LAUNCHER, errno=errno.ENOSPC, names=frozenset({"fsync"})),
        "bundle without a row",
    ),
}
