"""Outlive's errors, grouped by what the caller can do about them.

There are four base classes: `UserError` (correct the call), `Conflict` (the state has changed: read it again),
`Unavailable` (try again) and `Broken` (an invariant of Outlive, or the disk, is broken). `NotStarted` is the only error
without one of these base classes. Every error has a message, which states the fact, and a hint, which says what to do.
The base class sets the exit code.
"""

from __future__ import annotations

from errno import EMFILE, ENFILE

TOO_MANY_FILES = "too many files are open: close some, or raise the limit (`ulimit -n`)"


def hint_after(error: OSError, otherwise: str) -> str:
    """Return the hint for a failed system call.

    If the call failed because too many files are open, the hint says to close some files. Otherwise the
    hint is `otherwise`.
    """
    return TOO_MANY_FILES if error.errno in (EMFILE, ENFILE) else otherwise


class OutliveError(Exception):
    """An error with a stable `code` for programs and a `hint` that says what to do."""

    code = "error"
    exit_code = 3

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UserError(OutliveError):
    """The caller has to correct the arguments or the configuration of the call."""

    code = "usage"
    exit_code = 2


class Conflict(OutliveError):
    """The task's state does not allow the call. The caller can read the state again."""

    code = "conflict"
    exit_code = 2


class Unavailable(OutliveError):
    """A condition outside of Outlive prevents the call at the moment."""

    code = "unavailable"
    exit_code = 3


class TooManyWaiting(Unavailable):
    """The queue is full."""

    code = "too_many_waiting"


class TooDeep(UserError):
    """A task cannot launch another task, because the chain of launches is too deep."""

    code = "too_deep"


class Broken(OutliveError):
    """An invariant of Outlive, or the disk under it, is broken."""

    code = "broken"
    exit_code = 3


class LedgerIncomplete(Unavailable):
    """The ledger lacks tasks whose files exist.

    The ledger was moved away, deleted or replaced.
    """

    code = "ledger_incomplete"

    @classmethod
    def at(cls, path: str) -> LedgerIncomplete:
        """Return the error for the ledger at this path."""
        return cls(
            f"the ledger {path} lacks tasks whose files exist: the ledger was moved away, deleted or replaced",
            "`outlive audit --rebuild` restores their records; running tasks continue",
        )


class UnknownTask(UserError):
    """No task has this id."""

    code = "unknown_id"


class AmbiguousId(UserError):
    """The ids of several tasks begin with the given prefix."""

    code = "ambiguous_id"


class KeyTaken(Conflict):
    """A task with another command has the requested key."""

    code = "key_taken"


class AlreadyRunning(Conflict):
    """A server or a watcher with the same command runs in the same directory."""

    code = "already_running"


class TriedAgain(Conflict):
    """Another process has already started a new attempt, or deleted the task."""

    code = "tried_again"


class NotStarted(OutliveError):
    """The command could not be started. The task's record has the reason."""

    code = "not_started"
    exit_code = 1

    def __init__(self, message: str, hint: str, task: str) -> None:
        super().__init__(message, hint)
        self.task = task


class NewerLedger(Unavailable):
    """The ledger was written by a newer version of Outlive."""

    code = "newer_ledger"


class DiskFull(Unavailable):
    """The disk has too little free space to record tasks reliably."""

    code = "disk_full"
