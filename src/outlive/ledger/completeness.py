"""The check that a ledger has all tasks of its state directory.

If a ledger was moved away, deleted, or overwritten by another copy, the file in its place can be read, but lacks tasks.
So each ledger contains a name and a count of all attempts ever recorded. The file `fingerprint` in its directory
contains the same name and count. If the ledger's name differs from the name in this file, or its count is smaller, the
ledger is incomplete.

A new count is written to the file before the attempt is committed. If the process is killed in between, the count is
one too high. Then the next process that opens the ledger reads all bundles once and corrects the count.
"""

from __future__ import annotations

import os
import time
from _thread import get_ident
from fcntl import LOCK_EX, LOCK_NB, flock

from outlive.domain.errors import LedgerIncomplete
from outlive.linux.syscalls import read_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

NEW = "new"
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST = 64
_TURN_S = 0.01
_restorer: Callable[[str], object] | None = None
_restoring_thread: int | None = None


def file_of(ledger: str) -> str:
    """Return the path of the file that shows whether the ledger is complete.

    The file is called `fingerprint` and lies beside the ledger.
    """
    return os.path.dirname(ledger) + "/fingerprint"


def read_fingerprint(ledger: str) -> str:
    """Return the ledger's name and count of attempts from the file `fingerprint`.

    The result is `NAME COUNT`, `new`, or empty if unknown. `new` means that no ledger was made yet. If the file is
    missing and there is no directory of tasks, the result is also `new`.
    """
    try:
        return read_small(file_of(ledger)).decode("ascii", "replace").strip()
    except OSError:
        return "" if os.path.isdir(os.path.dirname(ledger) + "/tasks") else NEW


def had_ledger(ledger: str) -> bool:
    """Return whether this state directory had a ledger before, or may have had one."""
    return read_fingerprint(ledger) != NEW


def is_complete(ledger: str, name: str, attempts: int) -> bool:
    """Return whether this ledger has all recorded attempts.

    A ledger also counts as complete if no task was recorded yet.
    """
    known, count = _parse(read_fingerprint(ledger))
    return (known == name and count <= attempts) or not os.path.isdir(os.path.dirname(ledger) + "/tasks")


def begin_fingerprint(ledger: str, name: str, attempts: int) -> None:
    """Write a new file `fingerprint`, which says that this ledger is complete.

    The file contains the ledger's name and its count of recorded attempts.
    """
    fd = os.open(file_of(ledger), _FLAGS | os.O_CREAT, 0o600)
    try:
        _write(fd, name, attempts)
    finally:
        os.close(fd)


def count_attempt(ledger: str, name: str, attempts: int) -> None:
    """Write the new count of attempts, in the transaction that records the attempt.

    The count is written to the file `fingerprint`. An older copy of the ledger does not lower it. If the ledger has
    another name than the file, the file is marked as unknown, because one of the two ledgers lacks this attempt. If the
    file cannot be written, the file stays unknown or its count is one too low. Both cases are safe, and the commit
    reports the failure of the disk.
    """
    try:
        fd = os.open(file_of(ledger), _FLAGS)
    except OSError:
        return
    try:
        known, count = _parse(os.pread(fd, _LONGEST, 0).decode("ascii", "replace").strip())
        if known != name:
            os.ftruncate(fd, 0)
        elif count < attempts:
            _write(fd, name, attempts)
    except OSError:
        pass
    finally:
        os.close(fd)


def restore_by(restorer: Callable[[str], object] | None) -> None:
    """Set the function with which this process restores an incomplete ledger.

    The function gets the path of the ledger.
    """
    global _restorer  # noqa: PLW0603 - the variable applies to the whole process
    _restorer = restorer


def restore(ledger: str) -> bool:
    """Restore the ledger. Return False if this process cannot restore it now.

    Returns False if `restore_by` has set no function for this, or if this thread is already restoring the ledger and
    would wait for itself.
    """
    if _restorer is None or is_restoring():
        return False
    _restorer(ledger)
    return True


def is_restoring() -> bool:
    """Return whether this thread is restoring the ledger.

    Such a thread may use the ledger while it is incomplete.
    """
    return _restoring_thread == get_ident()


class Restoring:
    """The lock under which one thread of one process restores a ledger.

    Raises `LedgerIncomplete` if the lock is still taken at the monotonic time `until`.
    """

    def __init__(self, ledger: str, until: float | None = None) -> None:
        self._ledger = ledger
        self._until = until
        self._fd = os.open(file_of(ledger), _FLAGS | os.O_CREAT, 0o600)

    def __enter__(self) -> Self:
        global _restoring_thread  # noqa: PLW0603 - only the thread that has the lock sets this variable
        try:
            self._lock()
        except BaseException:
            os.close(self._fd)
            raise
        _restoring_thread = get_ident()
        return self

    def _lock(self) -> None:
        if self._until is None:
            flock(self._fd, LOCK_EX)
            return
        while not self._try_lock():
            if time.monotonic() > self._until:
                raise LedgerIncomplete.at(self._ledger)
            time.sleep(_TURN_S)

    def _try_lock(self) -> bool:
        try:
            flock(self._fd, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def __exit__(self, *_: object) -> None:
        global _restoring_thread  # noqa: PLW0603
        _restoring_thread = None
        os.close(self._fd)


def _parse(text: str) -> tuple[str, int]:
    name, _, count = text.partition(" ")
    return (name, int(count)) if count.isdigit() else ("", 0)


def _write(fd: int, name: str, attempts: int) -> None:
    """Write the ledger's name and its count of attempts to the file `fd`.

    The text has a fixed length, so that no reader sees digits of an older count.
    """
    os.pwrite(fd, f"{name} {attempts:019d}\n".encode("ascii"), 0)
