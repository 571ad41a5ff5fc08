"""What can go wrong, by what the caller can do about it.

Four roots: `UserError` (mend the call), `Conflict` (the world moved: read again), `Unavailable`
(the world is in the way: try again), `Broken` (our invariant or your disk). Every error states
the fact and then a hint; the exit code belongs to the root.
"""

from __future__ import annotations

from errno import EMFILE, ENFILE

TOO_MANY_FILES = "too many files are open: close some, or raise the limit (`ulimit -n`)"


def hint_after(error: OSError, otherwise: str) -> str:
    """What to do about a refusal of the system: something about its limit of open files, if that was the reason."""
    return TOO_MANY_FILES if error.errno in (EMFILE, ENFILE) else otherwise


class OutliveError(Exception):
    """Something went wrong; `code` is stable for programs, `hint` says what to do."""

    code = "error"
    exit_code = 3

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UserError(OutliveError):
    """The call itself has to be mended."""

    code = "usage"
    exit_code = 2


class Conflict(OutliveError):
    """The task's state does not allow this; read it again."""

    code = "conflict"
    exit_code = 2


class Unavailable(OutliveError):
    """The world is in the way just now."""

    code = "unavailable"
    exit_code = 3


class TooManyWaiting(Unavailable):
    """As many tasks wait for their turn as may."""

    code = "too_many_waiting"


class TooDeep(UserError):
    """Tasks have launched tasks to as great a depth as may be."""

    code = "too_deep"


class Broken(OutliveError):
    """An invariant of ours, or the disk under us, is broken."""

    code = "broken"
    exit_code = 3


class UnknownTask(UserError):
    """No task has this id."""

    code = "unknown_id"


class AmbiguousId(UserError):
    """More than one task has this prefix."""

    code = "ambiguous_id"


class KeyTaken(Conflict):
    """The key belongs to another command."""

    code = "key_taken"


class TriedAgain(Conflict):
    """Somebody else's attempt at this task came first."""

    code = "tried_again"


class NotStarted(OutliveError):
    """The command could not be started; its record is settled and says why."""

    code = "not_started"
    exit_code = 1

    def __init__(self, message: str, hint: str, task: str) -> None:
        super().__init__(message, hint)
        self.task = task


class NewerLedger(Unavailable):
    """The ledger was written by a newer Outlive than this one."""

    code = "newer_ledger"


class DiskFull(Unavailable):
    """There is no room left to promise anything."""

    code = "disk_full"
