"""No fork of this process happens while the ledger is in use.

SQLite keeps a table of its open files and locks in memory, and a fork that opens the ledger anew
would believe what its parent's copy says; a mutex that another thread holds in that moment is
held for ever in the child. So a ledger is used by one thread at a time, whoever forks waits for
it, and one that only rests - kept open for when it is needed - is closed by the fork.
"""

from __future__ import annotations

import os
from _thread import RLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class _Closable(Protocol):
        def discard(self) -> None:
            """Close it at once."""


_gate = RLock()
_resting: list[_Closable] = []


def enter() -> None:
    """Begin to use a ledger in this thread."""
    _gate.acquire()


def leave() -> None:
    """No longer use it."""
    _gate.release()


def rest(ledger: _Closable) -> None:
    """Keep it open, but not in use: a fork may close it from now on."""
    _resting.append(ledger)
    leave()


def resume(ledger: _Closable) -> bool:
    """Use a resting ledger again; False if a fork has closed it, or we are its copy in the child."""
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
    global _gate  # noqa: PLW0603 - the parent's belongs to a thread that is not here
    _gate = RLock()


os.register_at_fork(before=_before, after_in_parent=leave, after_in_child=_in_child)
