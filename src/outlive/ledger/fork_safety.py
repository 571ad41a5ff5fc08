"""The guard that prevents a fork of this process while the ledger is in use.

SQLite has a table of this process's open files and locks. A forked child would rely on its copy of this table, which is
wrong in the child. A mutex that another thread has locked would also stay locked in the child forever. So only one
thread at a time uses the ledger, and a fork waits until the ledger is not in use. A fork also closes an idle ledger,
which is kept open for its next use.
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
    """Begin to use a ledger in this thread. Wait while another thread uses a ledger."""
    _gate.acquire()


def leave() -> None:
    """End the use of a ledger in this thread."""
    _gate.release()


def rest(ledger: _Closable) -> None:
    """Keep a ledger open without using it. From now on, a fork may close it."""
    _resting.append(ledger)
    leave()


def resume(ledger: _Closable) -> bool:
    """Use an idle ledger again. Return False if a fork has closed it."""
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
    global _gate  # noqa: PLW0603 - the parent's lock may belong to a thread that does not exist in the child
    _gate = RLock()


os.register_at_fork(before=_before, after_in_parent=leave, after_in_child=_in_child)
