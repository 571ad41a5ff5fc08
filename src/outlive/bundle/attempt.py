"""The directory of one attempt, and the descriptors that keep it alive.

    attempts/N/lock     held (flock) by everybody who can still finish the attempt: keeper and witness
    attempts/N/control  a FIFO that pokes the keeper; its flock is the turn of whoever keeps or reconciles it
    attempts/N/done     a FIFO that the keeper alone holds: its death, or its work's end, wakes every waiter
    attempts/N/turn     the same until the command begins, if it has to wait for its turn: wakes the next in line
    attempts/N/record   exit, intent, process and hole (see `record`)
    attempts/N/output   what the command wrote, straight from it
    attempts/N/input    a FIFO that the command reads, if it takes input; gone when there will be no more
    attempts/N/effects  what it was seen to touch (see `observe.journal`)
    attempts/N/before   and `after`: the repository then, in short (see `observe.snapshot`)
    attempts/N/compared what changed meanwhile, whoever did it (see `observe.comparing`)

The lock proves liveness and nothing else. Nobody waits on it, because a waiter that was granted
it for an instant would look alive, and nobody unlocks it: holders close it.
"""

from __future__ import annotations

import os
from errno import ENOENT, ENOTEMPTY
from fcntl import LOCK_EX, LOCK_NB, flock

from outlive.bundle import record

_CREATE = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN = os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_WALKS = 5


class AttemptFiles:
    """The paths of one attempt."""

    def __init__(self, bundle: str, number: int) -> None:
        self.bundle = bundle
        self.number = number
        self.path = f"{bundle}/attempts/{number}"
        self.lock = self.path + "/lock"
        self.control = self.path + "/control"
        self.input = self.path + "/input"
        self.effects = self.path + "/effects"
        self.before, self.after = self.path + "/before", self.path + "/after"
        self.compared = self.path + "/compared"
        self.done = self.path + "/done"
        self.turn = self.path + "/turn"
        self.record = self.path + "/record"
        self.output = self.path + "/output"

    def read_slot(self, slot: record.Slot) -> dict[str, str] | None:
        """One fact of the record, None if there is none (or no record)."""
        try:
            fd = record.open_record(self.record)
        except FileNotFoundError:
            return None
        try:
            return record.read_slot(fd, slot)
        finally:
            os.close(fd)


class Held:
    """The open descriptors of an attempt whose lock we hold: what a keeper inherits."""

    def __init__(
        self, *, lock: int | None, control: int, done: int, record: int, output: int, turn: int | None = None
    ) -> None:
        # None for an adopter beside a living witness, which holds the lock itself.
        self.lock = lock
        # None once the command has begun, and where it never had to wait.
        self.turn = turn
        self.control = control
        self.done = done
        self.record = record
        self.output = output

    def fds(self) -> tuple[int, ...]:
        """All of them."""
        held = (self.lock, self.control, self.done, self.record, self.output, self.turn)
        return tuple(fd for fd in held if fd is not None)

    def let_go(self) -> None:
        """Release what others look at, and keep the record: it tells that we are no task's process."""
        for fd in (self.lock, self.control, self.done, self.turn):
            if fd is not None:
                os.close(fd)

    def give_turn(self) -> None:
        """The command begins: let the next in line look."""
        if self.turn is not None:
            os.close(self.turn)
            self.turn = None

    def close(self) -> None:
        """Let go of them, the lock first: whoever is woken by `done` must find it free."""
        for fd in self.fds():
            os.close(fd)


def fill_bundle(path: str, spec: str) -> None:
    """What was asked for, in the task's new directory. Not synced: only a lost ledger makes anybody read it."""
    os.mkdir(path + "/attempts", 0o700)
    fd = os.open(path + "/spec.json", os.O_WRONLY | _CREATE, 0o600)
    try:
        os.write(fd, spec.encode("ascii") + b"\n")
    finally:
        os.close(fd)


def create_attempt(files: AttemptFiles, *, in_line: bool = False) -> Held:
    """Make the attempt's files and take its lock, before any row speaks of it."""
    opened: list[int] = []
    try:
        os.mkdir(files.path, 0o700)
        opened.append(os.open(files.lock, os.O_RDWR | _CREATE, 0o600))
        flock(opened[0], LOCK_EX | LOCK_NB)
        for path in (files.control, files.done):
            os.mkfifo(path, 0o600)
            opened.append(os.open(path, os.O_RDWR | _OPEN))
        flock(opened[1], LOCK_EX | LOCK_NB)
        opened.append(record.preallocate(files.record))
        opened.append(os.open(files.output, os.O_WRONLY | os.O_APPEND | _CREATE, 0o600))
        if in_line:
            os.mkfifo(files.turn, 0o600)
            opened.append(os.open(files.turn, os.O_RDWR | _OPEN))
    except BaseException:
        for fd in opened:
            os.close(fd)
        raise
    lock, control, done, record_fd, output, *turn = opened
    return Held(lock=lock, control=control, done=done, record=record_fd, output=output, turn=turn[0] if turn else None)


def reopen_attempt(files: AttemptFiles, lock: int | None, control: int) -> Held:
    """The descriptors of an attempt that goes on under a new keeper, given its locks."""
    opened: list[int] = []
    try:
        opened.append(os.open(files.done, os.O_RDWR | _OPEN))
        opened.append(record.open_record(files.record, write=True))
        opened.append(os.open(files.output, os.O_WRONLY | os.O_APPEND | _OPEN))
    except BaseException:
        for fd in opened:
            os.close(fd)
        raise
    return Held(lock=lock, control=control, done=opened[0], record=opened[1], output=opened[2])


def discard_bundle(path: str) -> None:
    """Remove a bundle that no row speaks of. A keeper that is told to go may add to it, or take from it, meanwhile.

    What is left of it even so is a stray, which is swept.
    """
    for _ in range(_MOST_WALKS):
        try:
            for directory, _, names in os.walk(path, topdown=False):
                for name in names:
                    os.unlink(f"{directory}/{name}")
                os.rmdir(directory)
        except OSError as error:
            if error.errno not in (ENOENT, ENOTEMPTY):
                raise
        else:
            return


def take(files: AttemptFiles, which: str = "lock") -> int | None:
    """Try to take `lock` (nobody can finish it any more) or `control` (the keeper is gone).

    None if somebody holds it. A missing or unreadable file raises: a failed probe means
    unknown, and unknown changes nothing.
    """
    path = files.lock if which == "lock" else files.control
    fd = os.open(path, os.O_RDWR | _OPEN)
    try:
        flock(fd, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    except BaseException:
        os.close(fd)
        raise
    return fd


def poke(files: AttemptFiles, message: str) -> bool:
    """Tell the keeper something; False if there is no keeper to tell."""
    try:
        fd = os.open(files.control, os.O_WRONLY | os.O_NONBLOCK | _OPEN)
    except OSError:
        return False
    try:
        os.write(fd, message.encode("ascii") + b"\n")
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def open_done(files: AttemptFiles) -> int:
    """The reading end of the done FIFO: hangs up when the last holder is gone."""
    return os.open(files.done, os.O_RDONLY | os.O_NONBLOCK | _OPEN)


def open_turn(files: AttemptFiles) -> int:
    """The reading end of the turn FIFO: hangs up when the command begins, or its keeper is gone."""
    return os.open(files.turn, os.O_RDONLY | os.O_NONBLOCK | _OPEN)


def has_writer(done: int) -> bool:
    """Whether anybody still holds the done FIFO, at this very moment.

    poll() would not tell: a FIFO that lost its writers before we opened it never hangs up.
    """
    try:
        return os.read(done, 1) != b""
    except BlockingIOError:
        return True


def keeper_lives(files: AttemptFiles) -> bool:
    """Whether a keeper (or the launcher that is about to fork it) holds the attempt."""
    done = open_done(files)
    try:
        return has_writer(done)
    finally:
        os.close(done)
