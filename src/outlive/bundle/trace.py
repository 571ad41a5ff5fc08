"""The trace: every decision about a session, one line each, for whoever asks why.

Off unless `OUTLIVE_TRACE` is set or `--trace` was given. One file per session, ours alone, never
longer than two halves: a full one becomes the older half.
"""

from __future__ import annotations

import os
import time

from outlive.domain.text import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home

_HALF = 1 << 20
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


def is_traced() -> bool:
    """Whether anybody wants to know."""
    return os.environ.get("OUTLIVE_TRACE", "0") not in ("", "0")


def trace(home: Home, session: str | None, decision: str, **why: object) -> None:
    """Write one decision down; a trace that cannot be written stops nothing."""
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
    """The file of a session; its name may be anything, so only harmless letters of it are kept."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in session)[:80]
    if name != session:
        from zlib import crc32  # noqa: PLC0415 - every hook comes by here, with a name that can be a file's

        name += f"-{crc32(session.encode('utf-8', 'surrogateescape')):08x}"  # no other one has the same
    return f"{home.traces}/{name}.jsonl"
