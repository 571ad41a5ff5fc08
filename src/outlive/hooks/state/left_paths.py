"""An index of the paths that ended tasks left changed.

Hooks read the index first, because this is faster than opening the ledger. The index contains the ledger's stamp, and
is valid only as long as the ledger has this stamp. Paths are stored as hashes. If two paths have the same hash, a hook
may read the ledger in vain, but misses no change. Hooks find the changes of running tasks in the journals of these
tasks.
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

    Hooks read the journals of its attempts from number `first` to number `last`.
    """

    task: str
    first: int
    last: int


class LeftPathsIndex:
    """The content of the index file."""

    def __init__(self, hashes: memoryview, count: int, running: tuple[Running, ...]) -> None:
        """Create the index.

        The first `count` hashes are hashes of changed paths. The other hashes are hashes of the directories above these
        paths.
        """
        self._hashes, self._left, self._around = hashes, hashes[:count], hashes[count:]
        self.running = running

    @property
    def name(self) -> str:
        """A checksum of the changed paths.

        Changes of other data in the ledger do not change the checksum.
        """
        from binascii import crc32  # noqa: PLC0415 - imported here, because usually no ended task has left changed files behind

        return str(crc32(self._hashes))

    @property
    def is_empty(self) -> bool:
        """Whether no ended task has left a path changed."""
        return not len(self._left)

    def may_concern(self, paths: Iterable[str]) -> bool:
        """Return whether one of the paths may equal, contain or lie below a changed path."""
        from binascii import crc32  # noqa: PLC0415 - imported here, because usually no ended task has left changed files behind

        for path in paths:
            names = os.fsencode(path).rstrip(b"/").split(b"/")
            if _has(self._around, crc32(b"/".join(names))):
                return True
            if any(_has(self._left, crc32(b"/".join(names[:length]))) for length in range(1, len(names) + 1)):
                return True
        return False


def read_left_paths(home: Home, stamp: str) -> LeftPathsIndex | None:
    """Return the index, or None if there is no index for this stamp of the ledger."""
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
    """Write the index.

    `stamp` is the ledger's stamp, taken before the paths were read from the ledger.
    """
    from array import array  # noqa: PLC0415 - imported here, because usually the index exists already
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
        return  # without an index, the next hook reads the ledger


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
