"""A stamp of the ledger's files, so that most hooks need not open the ledger.

Each ending is recorded with a commit, and each commit changes the stamp. So if the stamp has not changed, there is no
new notice.
"""

from __future__ import annotations

import os
import time

from outlive.hooks.state import session_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home

# Two commits within one tick of the file system's clock could leave the same stamp. So the stamp is empty if a file has
# changed within this time.
_SETTLED_NS = 100_000_000


def stamp_of(home: Home) -> str:
    """Return the ledger's stamp.

    The stamp is empty if there are no files, or if a file has just changed.
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
    """Return whether a check at this stamp has found no notice for the session."""
    return bool(stamp) and session_files.word(home, session, "quiet") == stamp


def remember(home: Home, session: str, stamp: str) -> None:
    """Remember a stamp that was taken before a check that found no notices.

    The stamp is taken before the check, so that a commit during the check makes the stamp invalid.
    """
    if stamp:
        session_files.set_word(home, session, "quiet", stamp)
