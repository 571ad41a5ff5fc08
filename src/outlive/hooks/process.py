"""Processes around a hook: the client that called it, and what must go on when it has answered."""

from __future__ import annotations

import os

from outlive.bundle.processes import name_of, stat_fields
from outlive.domain.errors import UserError
from outlive.service.liveness import mark_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash", "fish")
_FARTHEST = 8


def nearest_client() -> int | None:
    """The process that called us, seen through the shells in between; None if nobody is left."""
    pid = os.getppid()
    for _ in range(_FARTHEST):
        if pid <= 1:
            return None
        if name_of(pid) not in _SHELLS:
            return pid
        fields = stat_fields(pid)
        pid = int(fields[1]) if fields else 0
    return None


def mark(pid: int | None) -> str | None:
    """A client's process as a session's record names it; None if it is none that we can see."""
    try:
        return None if pid is None else mark_of(pid)
    except UserError:
        return None


def detach(life: Callable[[], None]) -> None:
    """Let something go on that is not our child, in a session of its own, with nothing of the client's open.

    A client waits until nobody holds the other end of its pipes, and kills what it finds below itself.
    """
    first = os.fork()
    if first:
        os.waitpid(first, 0)
        return
    try:
        os.setsid()
        # Before the one that goes on is made: it may wait for its turn on a busy machine, and the client with it.
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nothing, fd)
        if os.fork() == 0:
            os.chdir("/")
            from outlive.ledger.opening import be_impatient  # noqa: PLC0415 - only now, when nobody waits

            be_impatient(None)
            life()
    finally:
        os._exit(0)
