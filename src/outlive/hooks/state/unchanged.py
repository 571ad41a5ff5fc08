"""A stamp of the ledger's files, which shows whether the ledger has changed.

Each end of a task is written to the ledger, and each write changes the stamp. So while the stamp is the same, there is
no new notice, and a hook need not open the ledger.
"""

from __future__ import annotations

import os
import time

from outlive.hooks.state import session_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home

# The file system's clock has a coarse resolution, so two writes shortly after each other could give the same stamp. So
# the stamp is empty if a file has changed within this time.
_SETTLED_NS = 100_000_000


def stamp_of(home: Home) -> str:
    """Return the stamp of the ledger's files.

    It is empty if there are no files, or if a file has just changed.
    """
    words, newest = [], 0
    for path in (home.ledger, home.ledger + "-wal", home.path + "/fingerprint"):
        try:
            found = os.stat(path)
        except OSError:
            words.append("none")
            continue
        words += [str(found.st_ino), str(found.st_size), str(found.st_mtime_ns)]
        newest = max(newest, found.st_mtime_ns)
    return " ".join(words) if 0 < newest < time.time_ns() - _SETTLED_NS else ""


def is_quiet(home: Home, session: str, stamp: str) -> bool:
    """Return whether a check with this stamp of the ledger found no notice."""
    return bool(stamp) and session_files.word(home, session, "quiet") == stamp


def remember(home: Home, session: str, stamp: str) -> None:
    """Remember that a check with this stamp of the ledger found no notices.

    The stamp was taken before the check. So if the ledger is written during the check, the remembered stamp is
    outdated.
    """
    if stamp:
        session_files.set_word(home, session, "quiet", stamp)
