"""The rule that this process does not fork while the ledger is in use.

A forked child would trust its copy of SQLite's table of the parent's open files and locks, and a mutex that another
thread holds stays locked in the child forever. So one thread at a time uses the ledger, a fork waits until the ledger
is not in use, and the fork closes a resting ledger, which is kept open for its next use.
"""

from __future__ import annotations

import os
from _thread import RLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class _Closable(Protocol):
        def discard(self) -> None:
            """Close the ledger at once."""


_gate = RLock()
_resting: list[_Closable] = []


def enter() -> None:
    """Begin to use a ledger in this thread; wait while another thread uses one."""
    _gate.acquire()


def leave() -> None:
    """End the use of a ledger in this thread."""
    _gate.release()


def rest(ledger: _Closable) -> None:
    """Keep a ledger open without using it; a fork may close it from now on."""
    _resting.append(ledger)
    leave()


def resume(ledger: _Closable) -> bool:
    """Use a resting ledger again; return False if a fork has closed it."""
    enter()
    if ledger in _resting:
        _resting.remove(ledger)
        return True
    leave()
    return False


def _before() -> None:
    enter()
    while _resting:
        _resting.pop().discard()


def _in_child() -> None:
    global _gate  # noqa: PLW0603 - the parent's lock belongs to a thread that the child lacks
    _gate = RLock()


os.register_at_fork(before=_before, after_in_parent=leave, after_in_child=_in_child)
