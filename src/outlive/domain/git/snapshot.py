"""Snapshots: the state of a directory and its repository at one time.

A part of a snapshot that could not be read is None, and `unknown` names this part. A file that was not read has the
value `UNSEEN`. A snapshot does not record its time, because users can set the clock.

Each file is stored as one short `bytes` object, because there may be a hundred thousand files. The object has a letter
that shows how much is known about the file, the stamp, and the id of the content. The stamp has the stat fields that
git stores: ctime, mtime, inode, mode, uid, gid and size, with 32 bits for each number. The stamp has no device number,
because the device number may change at a reboot.
"""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

AS_INDEXED = b"i"
"""The letter of a file that has the same stat fields or content as in the index.

Then the id is git's id of the content.
"""
HASHED = b"c"
"""The letter of a file that differs from the index.

The id is computed from the file's bytes, without the filters that git may apply.
"""
UNHASHED = b"u"
"""The letter of a file whose content was not read.

The file differs from the index, or is untracked.
"""
GONE = b"g"
UNSEEN = b"?"
"""The value of a file that was not read.

Either the time limit was reached, or the file is in a directory that snapshots do not enter.
"""

GITLINK = 0o160000
"""The mode that git uses for the directory of a submodule."""
STAMP_BYTES = 36
_CTIME, _MTIME, _INODE, _MODE, _SIZE = 0, 8, 16, 20, 32


class Tree(Value):
    """The files of a worktree: the files that the index lists, and untracked files."""

    tracked: Mapping[bytes, bytes]
    untracked: Mapping[bytes, bytes]
    """Untracked files and directories in the directories of tracked files.

    The name of an untracked directory ends in a slash. Its content is not listed.
    """
    all_untracked: bool = True
    stopped: str | None = None
    """The reason why some files were not read."""
    converts: bool = False
    """Whether git may convert the bytes of files. Then git's ids cannot be compared with ids of the files' bytes."""
    has_submodules: bool = False
    """Whether there are submodules. Only their commits are recorded."""


class GitState(Value):
    """The state of a repository. A field is None if unknown, and empty if absent."""

    top: str | None
    """The top directory of the worktree. None if the repository is bare."""
    git_dir: str
    common_dir: str
    identity: str
    """The identity of the git directory, such as its inode.

    If the directory is replaced, the new directory at the same path has another identity.
    """
    head: str | None = None
    """The commit of HEAD. Empty if HEAD is on a branch without a commit."""
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
    """A hash of the staged contents.

    The files' stat fields in the index are left out, because git may refresh them at any time.
    """


class Snapshot(Value):
    """The state of a directory and its repository at one time."""

    directory: str
    is_present: bool
    git: GitState | None = None
    tree: Tree | None = None
    files: Mapping[str, bytes] | None = None
    """The requested paths with their states. They may be outside of the directory."""
    touched: int = 0
    """The number of paths that the task touched. `files` may have only the first ones.

    This field is set only in a snapshot of a task's end.
    """
    unfollowed: int = 0
    """The number of touched paths that are neither in `files` nor tracked. Their later changes will not be noticed."""
    compares: bool = False
    """Whether this snapshot is followed by a comparison of all files.

    The comparison is with the task's first snapshot. This field is set only in a snapshot of a task's end.
    """
    settings: Mapping[str, bytes] | None = None
    """The files outside the repository that contain git's settings.

    This field is set in a snapshot of a task's end, and in a snapshot that is compared with it.
    """
    dirty: Mapping[bytes, bytes] | None = None
    """The tracked files that differ from the index or changed after the task's end.

    This field is set only in a stored snapshot. It is None if some tracked files were not read.
    """
    contents: bytes | None = None
    """The hashes of all tracked files that are not in `files` (see `content_digest`).

    This field is set only in a snapshot that was stored in a bundle.
    """
    late: bool = False
    """Whether the command already ran when the snapshot was taken.

    Then the snapshot may contain changes that the command made.
    """
    unknown: tuple[str, ...] = ()


def kind_of(seen: bytes) -> bytes:
    """Return the letter that shows how much is known about a file."""
    return seen[:1]


def stamp_of(seen: bytes) -> bytes:
    """Return the stat fields of a file, or b"" if the file was absent or not read."""
    return seen[1 : 1 + STAMP_BYTES]


def content_of(seen: bytes) -> bytes:
    """Return the id of a file's content, or b"" if this id is not known."""
    return seen[1 + STAMP_BYTES :]


def size_of(stamp: bytes) -> int:
    """Return the size of a file, modulo 2^32 as git stores it."""
    return int.from_bytes(stamp[_SIZE:], "big")


def mode_of(stamp: bytes) -> int:
    """Return the mode of a file as git stores it: type and permission to execute."""
    return _number(stamp, _MODE)


def inode_of(stamp: bytes) -> int:
    """Return the inode of a file, modulo 2^32 as git stores it."""
    return _number(stamp, _INODE)


def written_at_ns(stamp: bytes) -> int:
    """Return when the file was last written (mtime). Programs can change this time."""
    return _number(stamp, _MTIME) * 10**9 + _number(stamp, _MTIME + 4)


def changed_at_ns(stamp: bytes) -> int:
    """Return when the file or its metadata last changed (ctime).

    The kernel sets this time.
    """
    return _number(stamp, _CTIME) * 10**9 + _number(stamp, _CTIME + 4)


def is_changed_between(seen: bytes, since_ns: int, until_ns: int) -> bool:
    """Return whether a file changed in a span of time. False if its times are unknown."""
    stamp = stamp_of(seen)
    return bool(stamp) and since_ns < changed_at_ns(stamp) <= until_ns


def dirty_paths(tree: Tree) -> dict[bytes, bytes]:
    """Return the tracked files that differ from the index."""
    return {path: seen for path, seen in tree.tracked.items() if seen[:1] not in (AS_INDEXED, UNSEEN)}


def is_changed(was: bytes, is_now: bytes) -> bool | None:
    """Return whether two states of a file differ, or None if this is not known."""
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
    # A directory's new stat fields do not prove a change, because they change whenever an entry changes, and git often
    # writes into git directories. Entries that the task touched are compared one by one.
    is_directory = mode_of(stamp) == GITLINK and inode_of(stamp) == inode_of(stamp_now)
    return False if stamp == stamp_now or is_directory else None


def as_text(path: bytes) -> str:
    """Return a path as text. Bytes that are not UTF-8 become lone surrogates."""
    return path.decode("utf-8", "surrogateescape")


def _number(stamp: bytes, at: int) -> int:
    return int.from_bytes(stamp[at : at + 4], "big")
