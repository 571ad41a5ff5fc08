"""Atomic replacement of files: a temporary file is written, and then renamed.

The name of a temporary file has a random part, because two threads of one process may replace the same file.
"""

from __future__ import annotations

import os

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def temporary_name(path: str) -> str:
    """Return a name next to `path` that no other process or thread uses."""
    return f"{path}.{os.getpid()}-{os.urandom(6).hex()}"


def write_whole(path: str, content: bytes, *, mode: int = 0o600, is_durable: bool = False) -> None:
    """Replace a file atomically, so that a reader finds the old or the new content.

    The umask does not change `mode`. `is_durable` means that the content is synced before the rename.
    """
    fresh = temporary_name(path)
    fd = os.open(fresh, _FLAGS, mode)
    try:
        try:
            left = memoryview(content)
            while left:
                left = left[os.write(fd, left) :]
            os.fchmod(fd, mode)  # the umask may have cleared bits of the mode
            if is_durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(fresh, path)
    except BaseException:
        try:
            os.unlink(fresh)
        except FileNotFoundError:
            pass  # another process has emptied the directory
        raise
