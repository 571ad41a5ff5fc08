"""Reading files that anybody may have put there.

Regular files only; the last component is never followed, nothing is waited for (a FIFO, a device),
nothing is read past a limit. What cannot be read so is `Unknown`, with the reason.
"""

from __future__ import annotations

import os
from stat import S_ISLNK, S_ISREG

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class Unknown(Exception):
    """It is there, or ought to be, and cannot be read."""


def read_regular(path: str | bytes, limit: int, dir_fd: int | None = None) -> bytes | None:
    """The whole content of a regular file; None if there is nothing of that name."""
    try:
        # Opening a device can already do something, so it is looked at before; what is swapped in
        # meanwhile is at least neither followed nor waited for.
        if not S_ISREG(os.stat(path, dir_fd=dir_fd, follow_symlinks=False).st_mode):
            raise Unknown("not a regular file")
        fd = os.open(path, _READ, dir_fd=dir_fd)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise Unknown(_reason(error)) from error
    try:
        found = os.fstat(fd)
        if not S_ISREG(found.st_mode):
            raise Unknown("not a regular file")
        if found.st_size > limit:
            raise Unknown(f"larger than {limit} bytes")
        # One byte more than it has: what grows or shrinks while it is read is neither old nor new.
        content = os.read(fd, found.st_size + 1)
    except OSError as error:
        raise Unknown(_reason(error)) from error
    finally:
        os.close(fd)
    if len(content) != found.st_size:
        raise Unknown("being written")
    return content


def identity_of(path: str) -> str:
    """What stat says of a file, as a text that is equal as long as nobody wrote it; empty if it is not there."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, ValueError) as error:
        raise Unknown(_reason(error)) from error
    return f"{found.st_ino:x} {found.st_size:x} {found.st_mtime_ns:x} {found.st_ctime_ns:x}"


def names_in(path: str, most: int) -> list[os.DirEntry[str]]:
    """What a directory holds, never followed; nothing if there is none."""
    try:
        if S_ISLNK(os.lstat(path).st_mode):
            raise Unknown("a symbolic link")
        with os.scandir(path) as entries:
            found = []
            for entry in entries:
                found.append(entry)
                if len(found) > most:
                    raise Unknown(f"more than {most} names in a directory")
            return found
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, ValueError) as error:
        raise Unknown(_reason(error)) from error


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or "unreadable").lower() if isinstance(error, OSError) else "not a path"
