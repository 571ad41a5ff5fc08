"""Checks of the ledger for events that do not open the ledger themselves.

At the end of a session and before the history is summarized, a detached process does the work. It cannot report an
error to the client, so the hook checks the ledger first. Events of a sub-agent do not open the ledger either, because a
sub-agent gets no notices.
"""

from __future__ import annotations

import os

from outlive.bundle.home import open_home
from outlive.domain.errors import DiskFull
from outlive.hooks.state import session_files
from outlive.hooks.state.unchanged import stamp_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home

# The size of the smallest write to the ledger: some pages in its write-ahead log, and the index of that log.
_LEAST_ROOM = 64 << 10


def has_ledger(home: Home) -> bool:
    """Return whether there is a ledger in the state directory, or was one.

    A deleted ledger counts, too, because its tasks keep running. Raises `Unavailable` if the state directory cannot be
    used.
    """
    try:
        os.lstat(home.ledger)
    except FileNotFoundError:
        from outlive.ledger.completeness import had_ledger  # noqa: PLC0415 - imported here, because it is rarely needed: usually the ledger exists

        return had_ledger(home.ledger)
    except OSError:
        open_home(os.environ)  # raises an error that names the cause
    return True


def check_readable(home: Home, session: str, patience_s: float) -> None:
    """Raise the error that reading the ledger would raise.

    If the ledger's files have not changed since the last check, this function does nothing.
    """
    stamp = stamp_of(home)
    if not has_ledger(home) or (stamp and session_files.word(home, session, "readable") == stamp):
        return
    _open(home, patience_s, is_written=False)
    if stamp:
        session_files.set_word(home, session, "readable", stamp)


def check_writable(home: Home, patience_s: float) -> None:
    """Raise the error that writing to the ledger would raise."""
    _open(home, patience_s, is_written=True)


def check_room(home: Home) -> None:
    """Raise `DiskFull` if the state directory's disk has no space for a write."""
    try:
        disk = os.statvfs(home.path)
    except OSError:
        return
    # The file system ramfs reports 0 blocks, even if it is not full.
    if disk.f_blocks and disk.f_bavail * disk.f_frsize < _LEAST_ROOM:
        raise DiskFull(f"the disk under {home.path} is full", "free some space; nothing that was recorded is lost")


def _open(home: Home, patience_s: float, *, is_written: bool) -> None:
    from outlive.ledger.connection import LedgerFile, hurry  # noqa: PLC0415 - imported here, because it is rarely needed: usually the ledger is unchanged
    from outlive.service.clock import utc_now  # noqa: PLC0415

    hurry(patience_s)
    with LedgerFile(home.ledger, utc_now()) as ledger:
        if is_written:
            with ledger.write():
                pass
