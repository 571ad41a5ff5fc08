"""A stamp of the ledger's files, with which most hooks need not open the ledger.

Every ending is a commit, and every commit changes the stamp. The same stamp means that no notice is new.
"""

from __future__ import annotations

import os
import time

from outlive.hooks.state import session_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home

# Two commits within one tick of the file system's clock could leave the same stamp. So a file that changed within this
# time gives no stamp.
_SETTLED_NS = 100_000_000


def stamp_of(home: Home) -> str:
    """Return the ledger's stamp; empty without files, or if one changed just now."""
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
    """Return whether a check with the same stamp found no notice for the session."""
    return bool(stamp) and session_files.word(home, session, "quiet") == stamp


def remember(home: Home, session: str, stamp: str) -> None:
    """Remember the stamp that was taken before a check without notices.

    A commit during the check then makes the stored stamp invalid.
    """
    if stamp:
        session_files.set_word(home, session, "quiet", stamp)
