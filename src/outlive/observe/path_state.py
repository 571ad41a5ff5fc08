"""The state of a path: a short string that is equal for equal contents.

| state | what the path holds |
|---|---|
| `0` | nothing exists at the path |
| `d`, inode and time of birth | a directory |
| `l` and a hash | a symbolic link |
| `f` and git's blob id | a file; the id is SHA-256 only if the known earlier state has a SHA-256 id |
| `u`, size and time | a file that is too large to read |
| `o`, inode, size and time | anything but a directory, outside the repositories; its content is not read |
| `s` | a device, socket or FIFO |
| `?` | unknown, because the path cannot be inspected |
"""

from __future__ import annotations

import os
import stat
import time
from errno import ELOOP, ENAMETOOLONG

from outlive.linux.syscalls import born_at, open_straight

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha1

    Look = os.stat_result | str
    """The result of lstat for a path, or the path's state `0` or `?` if lstat fails."""
else:
    from _sha1 import sha1  # importing `hashlib` would delay a launch more than the hashing does

LARGEST = 4 << 20
_SHORT = 16 << 10
ABSENT, SPECIAL, STAT, UNREADABLE = "0", "s", "o", "?"
_LONG = 65
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def look(path: str) -> Look:
    """Return the result of lstat for a path. If lstat fails, return the reason.

    The reason is `0` if nothing exists at the path, and `?` otherwise.
    """
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError as error:
        return ABSENT if error.errno in (ELOOP, ENAMETOOLONG) else UNREADABLE


def look_straight(path: str) -> Look:
    """Return the result of lstat for a path.

    Returns `0`, as for a missing path, if a directory of the path is a symbolic link.
    """
    fd = open_straight(path.encode("utf-8", "surrogateescape"))
    if fd < 0:
        return ABSENT if fd == -ELOOP else look(path)
    try:
        return os.fstat(fd)
    finally:
        os.close(fd)


def state_of(path: str, found: Look) -> str:
    """Return a short string for what is at a path, equal for equal contents.

    `found` is the result of `lstat` for that path.
    """
    state, fd = pin(path, found)
    return state if fd is None else read_pinned(state, fd)


def state_like(path: str, known: str) -> str:
    """Return the string for what is at a path now, in the form of an earlier string.

    The form of `known` differs in two cases: the id of a file may be SHA-256, and the string for a directory may have
    no time of birth.
    """
    if known[:1] == STAT:
        return glance(look_straight(path))
    found, fd = pin(path, look_straight(path))
    if found[:1] == "d":
        inode, _, born = found.partition(":")
        known_inode, _, known_born = known.partition(":")
        return known if inode == known_inode and not (born and known_born) else found
    if len(known) != _LONG:
        return found if fd is None else read_pinned(found, fd)
    if fd is not None:
        os.close(fd)
    if found[:1] not in "fu":
        return found
    from outlive.observe.git.object_ids import content_id  # noqa: PLC0415 - only repositories with SHA-256 ids need this import

    content = content_id(os.fsencode(path), stat.S_IFREG, 32)
    return found if content is None else "f" + content.hex()


def is_directory(found: Look) -> bool:
    """Return whether `lstat` found a directory."""
    return not isinstance(found, str) and stat.S_ISDIR(found.st_mode)


def glance(found: Look) -> str:
    """Return the state of a path that stat shows, without reading the content.

    For a directory, the state has only the inode.
    """
    if isinstance(found, str):
        return found
    if is_directory(found):
        return f"d{found.st_ino}"
    return f"{STAT}{found.st_ino}:{found.st_size}:{found.st_mtime_ns}"


def pin(path: str, found: Look) -> tuple[str, int | None]:
    """Return a path's state, and a descriptor if the content must be read later.

    The descriptor keeps a long file readable after the file is removed. A short file is read at once, because this
    takes less time than to keep it open.
    """
    if isinstance(found, str):
        return found, None
    mode = found.st_mode
    try:
        if stat.S_ISREG(mode):
            unread = f"u{found.st_size}:{found.st_mtime_ns}"
            if found.st_size > LARGEST:
                return unread, None
            fd = os.open(path, _OPEN)
            return (_blob_id(fd, found.st_size) or unread, None) if found.st_size <= _SHORT else (unread, fd)
        if stat.S_ISLNK(mode):
            return "l" + sha1(os.fsencode(os.readlink(path))).hexdigest()[:16], None
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT, None
    except OSError:
        return UNREADABLE, None
    return _directory(path, found.st_ino) if stat.S_ISDIR(mode) else SPECIAL, None


def _directory(path: str, inode: int) -> str:
    """Return the state of a directory: its inode and its time of birth.

    The time of birth distinguishes a directory from an earlier directory with the same inode.
    """
    born = born_at(os.fsencode(path))
    return f"d{inode}:{born}" if born else f"d{inode}"


def read_pinned(unread: str, fd: int) -> str:
    """Read and close a file that `pin` opened. Return the file's state.

    If reading fails, the result is `unread`, the state that `pin` returned.
    """
    return _blob_id(fd) or unread


def _blob_id(fd: int, size: int = -1) -> str | None:
    """Read and close a file. Return git's blob id of its content.

    `size` is the known size of the file, or -1. Returns None if the file is too large or cannot be read.
    """
    try:
        content = more = os.read(fd, _SHORT)
        while more and len(content) != size and len(content) <= LARGEST:
            more = os.read(fd, _SHORT if len(content) < _SHORT else LARGEST + 1 - len(content))
            content += more
    except OSError:
        return None
    finally:
        os.close(fd)
    if len(content) > LARGEST:
        return None
    return "f" + sha1(b"blob %d\0" % len(content) + content).hexdigest()


def moments_of(path: str) -> tuple[int, int]:
    """Return the mtime and the ctime of a path in microseconds, or 0 if unknown.

    Programs can set the mtime, but not the ctime.
    """
    try:
        found = os.lstat(path)
    except OSError:
        return 0, 0
    return max(0, found.st_mtime_ns // 1000), max(0, found.st_ctime_ns // 1000)


def changed_at_ns(path: str) -> int:
    """Return when a path last changed (ctime), in nanoseconds since 1970.

    For a missing path, this is the ctime of the nearest existing directory above. Returns 0 if the time is unknown, or
    in the future because the clock was set back.
    """
    while path:
        try:
            changed = os.lstat(path).st_ctime_ns
        except (FileNotFoundError, NotADirectoryError):
            path = path.rstrip("/").rpartition("/")[0]
        except OSError:
            break
        else:
            return changed if changed <= time.time_ns() else 0
    return 0
