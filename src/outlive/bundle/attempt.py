"""The directory of one attempt, and the locks that show that the attempt is alive.

    attempts/N/lock     locked (flock) by the keeper and the witness, the processes that can finish the attempt
    attempts/N/control  a FIFO for messages to the keeper; locked by the keeper, or by a process that finishes its work
    attempts/N/done     a FIFO that only the keeper keeps open: its closing or the keeper's death wakes every waiter
    attempts/N/turn     a FIFO of a queued attempt: it is closed when the command begins, which wakes the next task
    attempts/N/record   exit, intent, process, hole and owner (see `record`)
    attempts/N/output   the output of the command, which writes it directly
    attempts/N/input    a FIFO that the command reads, if it takes input; deleted at the end of the input
    attempts/N/effects  the observed changes (see `observe.journal`)
    attempts/N/before   a quick snapshot of the repository before the command (see `observe.git.take_snapshot`)
    attempts/N/after    a quick snapshot of the repository after the command
    attempts/N/compared the changes to all files during the attempt, by any process (see `observe.git.compare`)
    attempts/N/ports    the names and numbers of the leased ports, if there are any (see `ports`)

The lock on the file `lock` proves only that the keeper or the witness is alive. No process waits for this lock, because
a waiter that got the lock for a short time would be taken for a keeper. No process unlocks the file explicitly. A
process gives up the lock by closing the file.
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
        self.ports = self.path + "/ports"

    def read_slot(self, slot: record.Slot) -> dict[str, str] | None:
        """Return one fact from the attempt's record file.

        Returns None if the file or the fact is missing. `slot` is the name of the fact.
        """
        try:
            fd = record.open_record(self.record)
        except FileNotFoundError:
            return None
        try:
            return record.read_slot(fd, slot)
        finally:
            os.close(fd)


class HeldFiles:
    """The open and locked files of an attempt, which a keeper inherits."""

    def __init__(
        self,
        *,
        lock: int | None,
        control: int,
        done: int,
        record: int,
        output: int,
        turn: int | None = None,
        ports: tuple[int, ...] = (),
    ) -> None:
        # `lock` is None if this is a later keeper of a task whose witness is alive, because then the witness has the
        # lock.
        self.lock = lock
        # `turn` is None after the command has begun, and for a command that was never queued.
        self.turn = turn
        self.control = control
        self.done = done
        self.record = record
        self.output = output
        # The sockets of leased ports (see `ports`). The command does not inherit them.
        self.ports = ports

    def fds(self) -> tuple[int, ...]:
        """Return the descriptors of all files and leased ports of the attempt."""
        held = (self.lock, self.control, self.done, self.record, self.output, self.turn, *self.ports)
        return tuple(fd for fd in held if fd is not None)

    def let_go(self) -> None:
        """Close the files that other processes wait for, and the leased ports.

        The record file stays open. It shows other keepers that this process is a keeper, and not a process of their own
        task.
        """
        for fd in (self.lock, self.control, self.done, self.turn, *self.ports):
            if fd is not None:
                os.close(fd)

    def give_turn(self) -> None:
        """Close the turn FIFO when the command begins, to wake the next task in the queue."""
        if self.turn is not None:
            os.close(self.turn)
            self.turn = None

    def close(self) -> None:
        """Close all files of the attempt.

        The lock is closed first, because a process that waits for the closing of the FIFO `done` must then find the
        lock free.
        """
        for fd in self.fds():
            os.close(fd)


def fill_bundle(path: str, spec: str) -> None:
    """Write the launch data of a new task (`spec.json`) into its bundle.

    The file is not synced, because it is read only if the ledger is lost.
    """
    os.mkdir(path + "/attempts", 0o700)
    fd = os.open(path + "/spec.json", os.O_WRONLY | _CREATE, 0o600)
    try:
        os.write(fd, spec.encode("ascii") + b"\n")
    finally:
        os.close(fd)


def create_attempt(files: AttemptFiles, *, in_line: bool = False) -> HeldFiles:
    """Create and lock the files of an attempt that is not in the ledger yet.

    `in_line` means that the attempt waits in the queue.
    """
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
    return HeldFiles(
        lock=lock, control=control, done=done, record=record_fd, output=output, turn=turn[0] if turn else None
    )


def reopen_attempt(files: AttemptFiles, lock: int | None, control: int) -> HeldFiles:
    """Open the files of a running attempt for a new keeper.

    `lock` and `control` are descriptors that are locked already.
    """
    opened: list[int] = []
    try:
        opened.append(os.open(files.done, os.O_RDWR | _OPEN))
        opened.append(record.open_record(files.record, write=True))
        opened.append(os.open(files.output, os.O_WRONLY | os.O_APPEND | _OPEN))
    except BaseException:
        for fd in opened:
            os.close(fd)
        raise
    return HeldFiles(lock=lock, control=control, done=opened[0], record=opened[1], output=opened[2])


def discard_bundle(path: str) -> None:
    """Remove a bundle that has no row in the ledger.

    A keeper that was asked to exit may add or remove files meanwhile. If files are left, a later cleanup removes them.
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
    """Lock `lock` or `control`, and return the descriptor.

    Returns None if another process has locked the file.

    A process that gets the lock on `lock` knows that no process is alive that can finish the attempt. A process that
    gets the lock on `control` knows that the keeper is gone. Raises OSError for a missing or unreadable file. Then the
    caller must not change the attempt.
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
    """Send the keeper a message. Return False if there is no keeper."""
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
    """Open the FIFO with which to wait for the end of an attempt.

    The descriptor hangs up when the keeper is gone.
    """
    return os.open(files.done, os.O_RDONLY | os.O_NONBLOCK | _OPEN)


def open_turn(files: AttemptFiles) -> int:
    """Open the FIFO with which to wait until an attempt leaves the queue.

    The descriptor then hangs up.
    """
    return os.open(files.turn, os.O_RDONLY | os.O_NONBLOCK | _OPEN)


def has_writer(done: int) -> bool:
    """Return whether a process has an attempt's FIFO `done` open for writing.

    poll() does not show this, because it reports no hang-up if the last writer closed the FIFO before this process
    opened it.
    """
    try:
        return os.read(done, 1) != b""
    except BlockingIOError:
        return True


def keeper_lives(files: AttemptFiles) -> bool:
    """Return whether a keeper is alive, or a launcher that will fork a keeper."""
    done = open_done(files)
    try:
        return has_writer(done)
    finally:
        os.close(done)
