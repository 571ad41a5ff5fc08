"""The trace: a log for debugging, with one line for each decision about a session.

The trace is off unless `OUTLIVE_TRACE` is set or `--trace` is given. When a session's file has reached 1 MiB, it is
renamed to `.older`.
"""

from __future__ import annotations

import os
import time

from outlive.domain.text.sanitize import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home

_HALF = 1 << 20
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


def is_traced() -> bool:
    """Return whether the log for debugging is on."""
    return os.environ.get("OUTLIVE_TRACE", "0") not in ("", "0")


def trace(home: Home, session: str | None, decision: str, **why: object) -> None:
    """Write one decision about a session to the debugging log.

    `why` are the reasons. A failed write is ignored.
    """
    if session is None or not is_traced():
        return
    line = to_json({"at": round(time.time(), 6), "pid": os.getpid(), "decision": decision, **why}) + "\n"
    path = path_of(home, session)
    try:
        os.makedirs(home.traces, 0o700, exist_ok=True)
        fd = os.open(path, _FLAGS, 0o600)
        try:
            if os.fstat(fd).st_size > _HALF:
                os.replace(path, path + ".older")
            os.write(fd, line.encode("ascii"))
        finally:
            os.close(fd)
    except OSError:
        pass


def path_of(home: Home, session: str) -> str:
    """Return the path of a session's debugging log. Its name has only safe characters."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in session)[:80]
    if name != session:
        from zlib import crc32  # noqa: PLC0415 - only names with replaced characters need this import

        # Two names that differ only in the replaced characters must not share a file.
        name += f"-{crc32(session.encode('utf-8', 'surrogateescape')):08x}"
    return f"{home.traces}/{name}.jsonl"
