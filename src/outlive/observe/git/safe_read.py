"""Safe reading of files that any process may have created or replaced.

Only regular files are read, and only up to a limit of bytes. If the last name of a path is a symbolic link, the link is
not followed. A FIFO or a device does not block the reader. If a path exists but cannot be read in this way, `Unknown`
is raised with the reason.
"""

from __future__ import annotations

import os
from stat import S_ISLNK, S_ISREG

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class Unknown(Exception):
    """The error that a file cannot be read, although it exists or should exist."""


def read_regular(path: str | bytes, limit: int, dir_fd: int | None = None) -> bytes | None:
    """Return the content of a regular file. Return None if the path does not exist."""
    try:
        # Opening a device can already have an effect, so check the type first. If the file is replaced after the
        # check, the flags of the open prevent following a link or blocking.
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
        # Read one byte more than the size, to notice that the file grows or shrinks during the read.
        content = os.read(fd, found.st_size + 1)
    except OSError as error:
        raise Unknown(_reason(error)) from error
    finally:
        os.close(fd)
    if len(content) != found.st_size:
        raise Unknown("being written")
    return content


def identity_of(path: str) -> str:
    """Return a string that changes when the file is written.

    For a missing file, the string is empty.
    """
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, ValueError) as error:
        raise Unknown(_reason(error)) from error
    return f"{found.st_ino:x} {found.st_size:x} {found.st_mtime_ns:x} {found.st_ctime_ns:x}"


def names_in(path: str, most: int) -> list[os.DirEntry[str]]:
    """Return the entries of a directory. A missing directory has no entries.

    Raises `Unknown` for a symbolic link, or for more entries than `most`.
    """
    try:
        if S_ISLNK(os.lstat(path).st_mode):
            raise Unknown("a directory is a symbolic link")
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
