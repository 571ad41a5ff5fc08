"""An index file of paths that tasks have changed and not restored at their end.

Hooks read it first, because this is faster than opening the ledger. The index contains a stamp of the ledger's files,
and is valid as long as they do not change. Paths are stored as hashes. If two paths have the same hash, a hook may open
the ledger in vain, but it misses no change. The changes of running tasks are not in the index. The index only names
these tasks.
"""

from __future__ import annotations

import os

from outlive.domain.errors import Unavailable
from outlive.domain.value import Value
from outlive.hooks.state.session_files import make_place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from outlive.bundle.home import Home

_MOST = 64 << 20


class Running(Value):
    """A task that ran when the index was written.

    The keeper records changed paths in a file for each attempt. Hooks read these files for the attempts from number
    `first` to number `last`.
    """

    task: str
    first: int
    last: int


class LeftPathsIndex:
    """The content of the index file of changed paths."""

    def __init__(self, hashes: memoryview, count: int, running: tuple[Running, ...]) -> None:
        """Create the content of an index file.

        The first `count` hashes are those of changed paths. The other hashes are those of the directories above these
        paths.
        """
        self._hashes, self._left, self._around = hashes, hashes[:count], hashes[count:]
        self.running = running

    @property
    def name(self) -> str:
        """A checksum of the changed paths. Other changes of the ledger leave it the same."""
        from binascii import crc32  # noqa: PLC0415 - imported here, because it is rarely needed: usually no ended task has left a file changed

        return str(crc32(self._hashes))

    @property
    def is_empty(self) -> bool:
        """Whether no ended task has left a path changed."""
        return not len(self._left)

    def may_concern(self, paths: Iterable[str]) -> bool:
        """Return whether an ended task may have left one of the paths changed.

        A change of a directory above or of a file below one of the paths counts, too.
        """
        from binascii import crc32  # noqa: PLC0415 - imported here, because it is rarely needed: usually no ended task has left a file changed

        for path in paths:
            names = os.fsencode(path).rstrip(b"/").split(b"/")
            if _has(self._around, crc32(b"/".join(names))):
                return True
            if any(_has(self._left, crc32(b"/".join(names[:length]))) for length in range(1, len(names) + 1)):
                return True
        return False


def read_left_paths(home: Home, stamp: str) -> LeftPathsIndex | None:
    """Return the content of the index file, or None if the ledger has changed since."""
    if not stamp:
        return None
    try:
        fd = os.open(_path(home), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        content = os.read(fd, _MOST)
    finally:
        os.close(fd)
    head, _, rest = content.partition(b"\n")
    known, running, count = (*head.decode("ascii", "replace").split("\t"), "", "")[:3]
    if known != stamp or len(rest) % 4 or not count.isdecimal():
        return None
    hashes = memoryview(rest).cast("I")
    each = running.split()
    rows = zip(each[::3], map(int, each[1::3]), map(int, each[2::3]), strict=True)
    tasks = tuple(Running(task=task, first=first, last=last) for task, first, last in rows)
    return LeftPathsIndex(hashes, int(count), tasks)


def write_left_paths(home: Home, stamp: str, paths: Iterable[bytes], running: Iterable[Running]) -> None:
    """Write the index file of changed paths.

    `stamp` is the stamp of the ledger's files. It was taken before the paths were read from the ledger.
    """
    from array import array  # noqa: PLC0415 - imported here, because it is rarely needed: usually the index file exists already
    from binascii import crc32  # noqa: PLC0415

    from outlive.bundle.atomic_file import write_whole  # noqa: PLC0415

    left, directories = set(), set()
    for path in paths:
        left.add(crc32(path))
        above = path.rpartition(b"/")[0]
        while above not in directories:
            directories.add(above)
            above = above.rpartition(b"/")[0]
    hashes = array("I", sorted(left)) + array("I", sorted(map(crc32, directories)))
    tasks = " ".join(f"{each.task} {each.first} {each.last}" for each in running)
    content = f"{stamp}\t{tasks}\t{len(left)}\n".encode("ascii") + hashes.tobytes()
    try:
        make_place(home)
        write_whole(_path(home), content)
    except (OSError, Unavailable):
        return  # without the index file, the next hook reads the ledger


def _has(hashes: memoryview, wanted: int) -> bool:
    low, high = 0, len(hashes)
    while low < high:
        middle = (low + high) // 2
        if hashes[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low < len(hashes) and bool(hashes[low] == wanted)


def _path(home: Home) -> str:
    return f"{home.path}/hooks/left-paths"
