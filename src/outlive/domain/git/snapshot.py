"""The state of a directory and its repository at one moment.

A snapshot is evidence. A part that could not be read is None and named in `unknown`. A file that was not read is marked
as `UNSEEN`. A snapshot has no time, because clocks may be set.

A file is one short `bytes`, because there may be a hundred thousand files: a letter that says how much is known, the
stamp, and the id of the content. The stamp is git's own stat fields: ctime, mtime, inode, mode, uid, gid and size, of
32 bits each. It has no device, because a device number need not survive a reboot.
"""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

AS_INDEXED = b"i"
"""The file's stamp or its content is the same as in the index. The id is git's id of the content."""
HASHED = b"c"
"""The file differs from the index. The id is that of its bytes, without the filters that git may apply."""
UNHASHED = b"u"
"""The file differs from the index, or is untracked. Its content was not read."""
GONE = b"g"
UNSEEN = b"?"
"""The file was not read, because the time was over, or because a directory on its path is not entered."""

GITLINK = 0o160000
"""The mode that git gives to the directory of a submodule."""
STAMP_BYTES = 36
_CTIME, _MTIME, _INODE, _MODE, _SIZE = 0, 8, 16, 20, 32


class Tree(Value):
    """The files of a worktree: those that the index lists, and untracked files."""

    tracked: Mapping[bytes, bytes]
    untracked: Mapping[bytes, bytes]
    """Untracked files and directories next to tracked files. A directory ends in a slash and is not entered."""
    all_untracked: bool = True
    stopped: str | None = None
    """Why not everything was read."""
    converts: bool = False
    """Whether git may convert bytes, so that its ids cannot be compared with ids of file bytes."""
    has_submodules: bool = False
    """Whether there are submodules. Only their commits are recorded."""


class GitState(Value):
    """The state of a repository: None is unknown, and empty is no such thing."""

    top: str | None
    """The top of the worktree. None if the repository is bare."""
    git_dir: str
    common_dir: str
    identity: str
    """The identity of the git directory. Another directory in its place is another repository."""
    head: str | None = None
    """The commit. Empty on a branch without a commit."""
    branch: str | None = None
    """The full name of the ref that HEAD points to. Empty if HEAD is detached."""
    refs: Mapping[str, str] | None = None
    refs_mark: str | None = None
    """A value that changes when refs change. It is known even if the refs cannot be read."""
    stash: tuple[str, ...] | None = None
    """The stash entries, newest first."""
    worktrees: tuple[str, ...] | None = None
    config: str | None = None
    index: str | None = None
    """The stat fields of the index file. Empty if there is no index."""
    staged: str | None = None
    """A digest of the staged contents, without the stamps, which git refreshes at any time."""


class Snapshot(Value):
    """A directory and its repository at one moment, with the parts that were not read."""

    directory: str
    is_present: bool
    git: GitState | None = None
    tree: Tree | None = None
    files: Mapping[str, bytes] | None = None
    """The requested paths, inside or outside of the directory, with their states."""
    touched: int = 0
    """In an end snapshot: how many paths the task touched. `files` has the first of them."""
    unfollowed: int = 0
    """How many of the touched paths are neither in `files` nor tracked. Their later changes will not be noticed."""
    compares: bool = False
    """In an end snapshot: whether a comparison of all files with the first snapshot follows directly."""
    settings: Mapping[str, bytes] | None = None
    """In an end snapshot: the files that git's settings come from, without the repository's own files."""
    dirty: Mapping[bytes, bytes] | None = None
    """In a stored snapshot: tracked files that differ from the index or changed since the end; None if not all read."""
    contents: bytes | None = None
    """In a stored snapshot: the digest of all tracked files without those in `files`."""
    late: bool = False
    """Whether the command was already running. Then the snapshot may contain the command's changes."""
    unknown: tuple[str, ...] = ()


def kind_of(seen: bytes) -> bytes:
    """Return the letter that shows how much is known about a file."""
    return seen[:1]


def stamp_of(seen: bytes) -> bytes:
    """Return the stat fields of a file; empty if it did not exist or was not read."""
    return seen[1 : 1 + STAMP_BYTES]


def content_of(seen: bytes) -> bytes:
    """Return the id of a file's content; empty if it is not known."""
    return seen[1 + STAMP_BYTES :]


def size_of(stamp: bytes) -> int:
    """Return the size of a file, modulo 2^32 as git stores it."""
    return int.from_bytes(stamp[_SIZE:], "big")


def mode_of(stamp: bytes) -> int:
    """Return the mode of a file as git stores it: its kind and if it is executable."""
    return _number(stamp, _MODE)


def inode_of(stamp: bytes) -> int:
    """Return the inode of a file, modulo 2^32 as git stores it."""
    return _number(stamp, _INODE)


def written_at_ns(stamp: bytes) -> int:
    """Return when the file was last written, by a time that programs can change."""
    return _number(stamp, _MTIME) * 10**9 + _number(stamp, _MTIME + 4)


def changed_at_ns(stamp: bytes) -> int:
    """Return when the file or its metadata last changed, by the kernel's clock."""
    return _number(stamp, _CTIME) * 10**9 + _number(stamp, _CTIME + 4)


def is_changed_between(seen: bytes, since_ns: int, until_ns: int) -> bool:
    """Return whether a file changed in a span; False if the file has no times."""
    stamp = stamp_of(seen)
    return bool(stamp) and since_ns < changed_at_ns(stamp) <= until_ns


def dirty_paths(tree: Tree) -> dict[bytes, bytes]:
    """Return the tracked files that differ from the index."""
    return {path: seen for path, seen in tree.tracked.items() if seen[:1] not in (AS_INDEXED, UNSEEN)}


def is_changed(was: bytes, is_now: bytes) -> bool | None:
    """Return whether two states of a file differ; None if that is not known."""
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
    # A new stamp of a directory proves nothing: the stamp changes with the entries, and git writes into each git
    # directory. Entries that the task touched are compared one by one.
    is_directory = mode_of(stamp) == GITLINK and inode_of(stamp) == inode_of(stamp_now)
    return False if stamp == stamp_now or is_directory else None


def as_text(path: bytes) -> str:
    """Return a path as text; bytes that are not UTF-8 become lone surrogates."""
    return path.decode("utf-8", "surrogateescape")


def _number(stamp: bytes, at: int) -> int:
    return int.from_bytes(stamp[at : at + 4], "big")
