"""What a directory and its repository looked like at one moment.

A snapshot is evidence: what could not be read is None and named in `unknown`, what was not looked
at is marked so. No time is kept in it, because clocks jump: two snapshots are ordered by whoever
took them.

A file is one short `bytes`, because there may be a hundred thousand of them: a letter that says
how much is known, the stamp (git's own stat fields: ctime, mtime, inode, mode, uid, gid, size, of
32 bits each; no device, whose number need not survive a reboot), then the id of its content.
"""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

AS_INDEXED = b"i"
"""The stamp is the index's, or the content is: the id is the one that git has for it."""
HASHED = b"c"
"""It differs from the index; the id is of its bytes, without the filters that git may put them through."""
UNHASHED = b"u"
"""It differs from the index, or is untracked; nobody looked inside."""
GONE = b"g"
UNSEEN = b"?"
"""Nobody looked: time was up, or it lies behind something that we do not enter."""

GITLINK = 0o160000
"""The mode of a directory, as git has it of a submodule."""
STAMP_BYTES = 36
_CTIME, _MTIME, _INODE, _MODE, _SIZE = 0, 8, 16, 20, 32


class Tree(Value):
    """The files of a worktree: those that the index names, and those that lie beside them."""

    tracked: Mapping[bytes, bytes]
    untracked: Mapping[bytes, bytes]
    """Of directories that hold tracked files; a directory among them ends in a slash and is not entered."""
    all_untracked: bool = True
    stopped: str | None = None
    """Why not everything was looked at."""
    converts: bool = False
    """Whether git may change bytes between worktree and object, so that ids of the two differ by nature."""
    has_submodules: bool = False
    """Whether there are submodules in it, of which only the commit was looked at."""


class GitState(Value):
    """A repository: None is unknown, and an empty string or collection is known to be empty."""

    top: str | None
    """Where its files are; None if it is bare."""
    git_dir: str
    common_dir: str
    identity: str
    """Of the git directory: another one in its place is another repository."""
    head: str | None = None
    """The commit; empty on a branch without one."""
    branch: str | None = None
    """The full name of the ref that HEAD is; empty if HEAD is detached."""
    refs: Mapping[str, str] | None = None
    refs_mark: str | None = None
    """Changes with the refs, also where they cannot be read."""
    stash: tuple[str, ...] | None = None
    """Newest first."""
    worktrees: tuple[str, ...] | None = None
    config: str | None = None
    index: str | None = None
    """The index file, as stat has it; empty if there is none."""
    staged: str | None = None
    """What the index holds, without the stamps that git refreshes at will."""


class Snapshot(Value):
    """A directory, the repository it lies in, and what of them could not be read."""

    directory: str
    is_present: bool
    git: GitState | None = None
    tree: Tree | None = None
    files: Mapping[str, bytes] | None = None
    """The paths that were asked for by name, wherever they lie."""
    touched: int = 0
    """Of one taken at an end, how many paths the task touched; `files` has the first of them."""
    unfollowed: int = 0
    """How many of these are neither in `files` nor tracked: nobody will know whether they change."""
    compares: bool = False
    """Of one taken at an end, whether all files are compared right after it with what they were at first."""
    settings: Mapping[str, bytes] | None = None
    """Of one taken at an end, the files that git's settings came from, but for the repository's own."""
    dirty: Mapping[bytes, bytes] | None = None
    """Of a kept one, the tracked files that were not what the index says, or that somebody had changed since its end.

    None if not everything was looked at.
    """
    contents: bytes | None = None
    """Of a kept one, the marks of what all tracked files held, but for those in `files`."""
    late: bool = False
    """Taken while the command was running already: it may show what the command did."""
    unknown: tuple[str, ...] = ()


def kind_of(seen: bytes) -> bytes:
    """How much is known of a file."""
    return seen[:1]


def stamp_of(seen: bytes) -> bytes:
    """The stat fields of a file; empty if it was not there to be looked at."""
    return seen[1 : 1 + STAMP_BYTES]


def content_of(seen: bytes) -> bytes:
    """The id of a file's content; empty if nobody knows it."""
    return seen[1 + STAMP_BYTES :]


def size_of(stamp: bytes) -> int:
    """The size of a file, modulo 2^32 as git has it."""
    return int.from_bytes(stamp[_SIZE:], "big")


def mode_of(stamp: bytes) -> int:
    """The mode of a file as git knows it: kind, and whether it is executable."""
    return _number(stamp, _MODE)


def inode_of(stamp: bytes) -> int:
    """The inode of a file, modulo 2^32 as git has it."""
    return _number(stamp, _INODE)


def written_at_ns(stamp: bytes) -> int:
    """When the file was written last, by the clock of its file system and whoever set it."""
    return _number(stamp, _MTIME) * 10**9 + _number(stamp, _MTIME + 4)


def changed_at_ns(stamp: bytes) -> int:
    """When anything about the file changed last, by the kernel's clock."""
    return _number(stamp, _CTIME) * 10**9 + _number(stamp, _CTIME + 4)


def is_changed_between(seen: bytes, since_ns: int, until_ns: int) -> bool:
    """Whether anything about the file changed later than the one, and not than the other; False if it has no times."""
    stamp = stamp_of(seen)
    return bool(stamp) and since_ns < changed_at_ns(stamp) <= until_ns


def dirty_paths(tree: Tree) -> dict[bytes, bytes]:
    """The tracked files that are not what the index says."""
    return {path: seen for path, seen in tree.tracked.items() if seen[:1] not in (AS_INDEXED, UNSEEN)}


def is_changed(was: bytes, is_now: bytes) -> bool | None:
    """Whether a file is not what it was; None if that cannot be told."""
    if was == is_now:
        return False if was != UNSEEN else None
    if UNSEEN in {kind_of(was), kind_of(is_now)}:
        return None
    if GONE in {was, is_now}:
        return True
    stamp, stamp_now = stamp_of(was), stamp_of(is_now)
    if size_of(stamp) != size_of(stamp_now) or mode_of(stamp) != mode_of(stamp_now):
        return True
    if content_of(was) and len(content_of(was)) == len(content_of(is_now)):
        return content_of(was) != content_of(is_now)
    # Names come and go in a directory; those that it touched are compared, and every git writes into its own.
    is_directory = mode_of(stamp) == GITLINK and inode_of(stamp) == inode_of(stamp_now)
    return False if stamp == stamp_now or is_directory else None


def as_text(path: bytes) -> str:
    """A path as text; what is not UTF-8 survives as lone surrogates."""
    return path.decode("utf-8", "surrogateescape")


def _number(stamp: bytes, at: int) -> int:
    return int.from_bytes(stamp[at : at + 4], "big")
