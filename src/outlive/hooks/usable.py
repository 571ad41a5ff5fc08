"""Whether the ledger can be used, asked where an event would not notice by itself.

An end and a summary leave their work to a process that nobody reads, and sub-agents have none for us.
Whoever wonders why nothing is told should find the reason in one line, whichever event they look at.
"""

from __future__ import annotations

import os

from outlive.bundle.home import open_home
from outlive.domain.errors import DiskFull
from outlive.hooks import marks
from outlive.hooks.quiet import stamp_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home

# What the smallest commit takes: a few pages of the log, and the log's index.
_LEAST_ROOM = 64 << 10


def has_ledger(home: Home) -> bool:
    """Whether anybody has ever launched anything here; `Unavailable` where nobody could."""
    try:
        os.lstat(home.ledger)
    except FileNotFoundError:
        return False
    except OSError:
        open_home(os.environ)  # knows what is wrong with it
    return True


def check_readable(home: Home, session: str, patience_s: float) -> None:
    """Raise what whoever reads the ledger would meet; it is not opened while it looks as it did the last time."""
    stamp = stamp_of(home)
    if not has_ledger(home) or (stamp and marks.word(home, session, "readable") == stamp):
        return
    _open(home, patience_s, is_written=False)
    if stamp:
        marks.set_word(home, session, "readable", stamp)


def check_writable(home: Home, patience_s: float) -> None:
    """Raise what whoever writes to the ledger would meet."""
    _open(home, patience_s, is_written=True)


def check_room(home: Home) -> None:
    """Raise if nothing more can be written down, whether or not anything had to be."""
    try:
        disk = os.statvfs(home.path)
    except OSError:
        return
    # A file system in plain memory (ramfs) counts no blocks at all: unknown is not full.
    if disk.f_blocks and disk.f_bavail * disk.f_frsize < _LEAST_ROOM:
        raise DiskFull(f"the disk under {home.path} is full", "free some space; nothing that was recorded is lost")


def _open(home: Home, patience_s: float, *, is_written: bool) -> None:
    from outlive.ledger.connection import LedgerFile  # noqa: PLC0415 - mostly it looks as it did
    from outlive.ledger.opening import be_impatient  # noqa: PLC0415
    from outlive.service.clock import utc_now  # noqa: PLC0415

    be_impatient(patience_s)
    with LedgerFile(home.ledger, utc_now()) as ledger:
        if is_written:
            with ledger.write():
                pass
