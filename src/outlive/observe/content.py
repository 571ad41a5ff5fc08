"""What a path holds, as a short word that two equal contents share.

`0` nothing, `d` with inode and birth a directory, `l` and a hash a link, `f` and git's own blob id a file (by SHA-256
only where that is what is known of how it was before), `u`
with size and time a file that is too large to be read, `o` with what stat says one that is not ours to
read, `s` something special, `?` what cannot be looked at.
"""

from __future__ import annotations

import os
import stat
import time
from errno import ELOOP, ENAMETOOLONG

from outlive.bundle.kernel import born_at, open_straight

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha1

    Look = os.stat_result | str
    """What stat says of a path, or in a word that it says nothing."""
else:
    from _sha1 import sha1  # all of `hashlib` would cost a launch more than it costs to use it

LARGEST = 4 << 20
_SHORT = 16 << 10
ABSENT, SPECIAL, STAT, UNREADABLE = "0", "s", "o", "?"
_LONG = 65
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def look(path: str) -> Look:
    """What is there."""
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError as error:
        return ABSENT if error.errno in (ELOOP, ENAMETOOLONG) else UNREADABLE


def look_straight(path: str) -> Look:
    """What is there by this name, with no link on the way: what one leads to has another name, and is told by that."""
    fd = open_straight(path.encode("utf-8", "surrogateescape"))
    if fd < 0:
        return ABSENT if fd == -ELOOP else look(path)
    try:
        return os.fstat(fd)
    finally:
        os.close(fd)


def state_of(path: str, found: Look) -> str:
    """The state of a path of which somebody has just found out what is there."""
    state, fd = pin(path, found)
    return state if fd is None else read_pinned(state, fd)


def state_like(path: str, known: str) -> str:
    """The state of a path now, as it can be compared with a known one.

    Git may have told that by its longer ids; and of a directory its birth, if not everybody may ask for that.
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
    from outlive.observe.object_ids import content_id  # noqa: PLC0415 - few repositories have such ids

    content = content_id(os.fsencode(path), stat.S_IFREG, 32)
    return found if content is None else "f" + content.hex()


def is_directory(found: Look) -> bool:
    """Whether a directory is there."""
    return not isinstance(found, str) and stat.S_ISDIR(found.st_mode)


def glance(found: Look) -> str:
    """What stat says as a state; of a directory only which one it is, for its time changes with its entries."""
    if isinstance(found, str):
        return found
    if is_directory(found):
        return f"d{found.st_ino}"
    return f"{STAT}{found.st_ino}:{found.st_size}:{found.st_mtime_ns}"


def pin(path: str, found: Look) -> tuple[str, int | None]:
    """The state of a path; of a longer file a descriptor that keeps its content, to be read a little later.

    A name may be gone by then; what it named is not. A short one is read at once: whoever removes it would
    leave it to us to give its blocks back, which takes longer than to read them.
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
    """Which directory it is. The inode of one that was removed is that of the next one; but not its birth."""
    born = born_at(os.fsencode(path))
    return f"d{inode}:{born}" if born else f"d{inode}"


def read_pinned(unread: str, fd: int) -> str:
    """The blob id of what was pinned, or what is known of it without reading."""
    return _blob_id(fd) or unread


def _blob_id(fd: int, size: int = -1) -> str | None:
    """The blob id of a file, of which the size may be known; None if it is too large or cannot be read."""
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
    """When a path was written last, as it says itself, and when anything about it changed, as the kernel says.

    In microseconds since 1970; 0 if that is not known.
    """
    try:
        found = os.lstat(path)
    except OSError:
        return 0, 0
    return max(0, found.st_mtime_ns // 1000), max(0, found.st_ctime_ns // 1000)


def changed_at_ns(path: str) -> int:
    """When a path changed last, by the kernel's clock; of one that is gone, when what it lay in did.

    0 if that is not known. A time that is still to come tells that the clock was set back since, and nothing else.
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
