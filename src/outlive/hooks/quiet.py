"""Whether anything can have changed since a session was last found with nothing owed and nothing running.

Every ending, launch and boundary is a commit, and every commit changes the ledger's log. A session
for which there was nothing as of a log that is still the same needs no look at the ledger: most
events of most sessions are answered by this.
"""

from __future__ import annotations

import os
import time

from outlive.hooks import marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home

# Two commits within one tick of the file system's clock could look like one.
_SETTLED_NS = 100_000_000


def stamp_of(home: Home) -> str:
    """What the ledger's files look like now; empty if they have changed just now, or are not there."""
    words, newest = [], 0
    for path in (home.ledger, home.ledger + "-wal"):
        try:
            found = os.stat(path)
        except OSError:
            words.append("none")
            continue
        words += [str(found.st_ino), str(found.st_size), str(found.st_mtime_ns)]
        newest = max(newest, found.st_mtime_ns)
    return " ".join(words) if 0 < newest < time.time_ns() - _SETTLED_NS else ""


def is_quiet(home: Home, session: str, stamp: str) -> bool:
    """Whether there is nothing for the session, as was found when the ledger looked like this."""
    return bool(stamp) and marks.word(home, session, "quiet") == stamp


def remember(home: Home, session: str, stamp: str) -> None:
    """There was nothing for the session; the stamp was taken before anybody looked."""
    if stamp:
        marks.set_word(home, session, "quiet", stamp)
