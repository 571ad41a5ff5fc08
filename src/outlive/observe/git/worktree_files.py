"""A comparison of a worktree's files with the git index, within a time limit.

First, every tracked file is inspected by stat. Second, files whose stat differs from the index are hashed. Third,
untracked files in the same directories as tracked files are listed. Untracked directories are not entered, so a
`node_modules` needs only one stat call.
"""

from __future__ import annotations

import os
import time

from outlive.domain.git.snapshot import (
    AS_INDEXED,
    GITLINK,
    GONE,
    HASHED,
    STAMP_BYTES,
    UNHASHED,
    UNSEEN,
    Tree,
    as_text,
    mode_of,
    stamp_of,
)
from outlive.observe.git.directories import Barred, Directories
from outlive.observe.git.index import SKIP_WORKTREE
from outlive.observe.git.object_ids import content_id, stamp_from
from outlive.observe.git.refs import read_head
from outlive.observe.git.repository import repository_at
from outlive.observe.git.safe_read import Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from outlive.observe.git.index import Index

MOST_UNTRACKED = 2000
_CHECK_EVERY = 64
_SPARSE_DIRECTORY = 0o040000
_NO_STAMP = bytes(STAMP_BYTES)
_MODE = slice(20, 24)
_BARRED = -1


class _TimeIsUp(Exception):
    pass


class TreeReader:
    """The pass over the files of a worktree, with a time limit."""

    def __init__(self, top: str, index: Index, index_written_ns: int, until: float) -> None:
        self._top = top
        self._index = index
        self._until = until
        # If a file was written in the same clock tick as the git index, or later, equal stat fields do not prove an
        # equal content.
        self._racy_from = b"".join(part.to_bytes(4, "big") for part in divmod(index_written_ns, 10**9))
        self._inside: dict[bytes, list[bytes]] = {}
        self._tracked: dict[bytes, bytes] = {}
        self._suspects: dict[bytes, list[bytes]] = {}
        self._untracked: dict[bytes, bytes] = {}
        self._left_out: set[bytes] = set()
        self._has_submodules = False
        self._steps = 0
        self._doing = "inspecting files"

    def look(self, also: Iterable[bytes] = (), *, untracked: bool = True) -> Tree:
        """Return the states of the files in the git index, and of the files in `also`.

        `untracked` means that the untracked files in the same directories are listed, too.
        """
        self._group(also)
        stopped, complete = None, False
        try:
            with Directories(self._top) as directories:
                self._stat_all(directories)
                self._hash_suspects(directories)
                complete = untracked and self._list_untracked(directories)
        except _TimeIsUp:
            total = sum(map(len, self._inside.values()))
            stopped = f"time was up while {self._doing} ({len(self._tracked)} of {total} inspected)"
        except OSError as error:
            stopped = (error.strerror or "unreadable").lower()
        for names in self._inside.values():
            for path in names:
                if path not in self._left_out:
                    self._tracked.setdefault(path, UNSEEN)
        return Tree(
            tracked=self._tracked,
            untracked=self._untracked,
            all_untracked=complete,
            stopped=stopped,
            has_submodules=self._has_submodules,
            converts=any(path.rpartition(b"/")[2] == b".gitattributes" for path in self._index.entries),
        )

    def _group(self, also: Iterable[bytes]) -> None:
        entries, inside = self._index.entries, self._inside
        for path, (stamp, _, _) in entries.items():
            if mode_of(stamp) != _SPARSE_DIRECTORY:
                inside.setdefault(path.rpartition(b"/")[0], []).append(path)
        for path in also:
            if path not in entries:
                inside.setdefault(path.rpartition(b"/")[0], []).append(path)

    def _stat_all(self, directories: Directories) -> None:
        for directory, fd in self._enter_each(directories, self._inside):
            for path in self._inside[directory]:
                self._tick()
                entry = self._index.entries.get(path)
                seen = GONE if fd is None else self._stat(fd, path)
                if seen == GONE and entry and entry[2] & SKIP_WORKTREE:
                    self._left_out.add(path)  # a sparse checkout left the file out, so it does not count as deleted
                    continue
                if entry and mode_of(entry[0]) == GITLINK:
                    self._tracked[path] = self._submodule(path, entry[1]) if len(seen) > 1 else seen
                    continue
                if entry and seen[1:] == entry[0] and seen[9:17] < self._racy_from:
                    self._tracked[path] = AS_INDEXED + seen[1:] + entry[1]
                    continue
                self._tracked[path] = seen
                if len(seen) > 1:
                    self._suspects.setdefault(directory, []).append(path)

    def _stat(self, fd: int, path: bytes) -> bytes:
        name = path.rpartition(b"/")[2]
        if fd == _BARRED or name in {b"", b".", b".."}:
            return UNSEEN
        try:
            return UNHASHED + stamp_from(os.stat(name, dir_fd=fd, follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            return GONE
        except (OSError, ValueError):
            return UNSEEN

    def _submodule(self, path: bytes, indexed: bytes) -> bytes:
        """Return the state of a submodule: the commit that is checked out."""
        inner = repository_at(f"{self._top}/{as_text(path)}")
        if inner is None:
            return AS_INDEXED + _NO_STAMP + indexed  # for git, a submodule that is not checked out is unchanged
        self._has_submodules = True
        try:
            commit = bytes.fromhex(read_head(inner)[1]) if inner.broken is None else b""
        except Unknown:
            commit = b""
        return (AS_INDEXED if commit == indexed else HASHED) + _NO_STAMP + commit if commit else UNSEEN

    def _hash_suspects(self, directories: Directories) -> None:
        self._doing = "reading contents"
        for directory, fd in self._enter_each(directories, self._suspects):
            for path in self._suspects[directory]:
                self._tick(1)
                stamp = stamp_of(self._tracked[path])
                if fd is None or fd == _BARRED:
                    continue
                content = content_id(path.rpartition(b"/")[2], mode_of(stamp), self._index.id_bytes, fd)
                if content is None:
                    continue
                indexed, found, _ = self._index.entries.get(path, (b"", b"", 0))
                same = content == found and stamp[_MODE] == indexed[_MODE]
                self._tracked[path] = (AS_INDEXED if same else HASHED) + stamp + content

    def _list_untracked(self, directories: Directories) -> bool:
        """List the untracked files up to a limit. Return whether the list is complete."""
        self._doing = "listing untracked files"
        known: dict[bytes, set[bytes]] = {b"": {b".git"}}
        for directory, paths in self._inside.items():
            known.setdefault(directory, {b".git"}).update(path.rpartition(b"/")[2] for path in paths)
            inner = directory
            while inner:
                above, _, name = inner.rpartition(b"/")
                known.setdefault(above, {b".git"}).add(name)
                inner = above
        complete = True
        for directory, fd in self._enter_each(directories, known):
            complete = complete and fd != _BARRED
            if fd is None or fd == _BARRED:
                continue
            prefix = directory + b"/" if directory else b""
            with os.scandir(fd) as entries:
                for entry in entries:
                    self._tick()
                    name = entry.name.encode("utf-8", "surrogateescape")
                    if name in known[directory]:
                        continue
                    if len(self._untracked) >= MOST_UNTRACKED:
                        return False
                    self._note(prefix + name, entry)
        return complete

    def _note(self, path: bytes, entry: os.DirEntry[str]) -> None:
        try:
            found = entry.stat(follow_symlinks=False)
            slash = b"/" if entry.is_dir(follow_symlinks=False) else b""
        except OSError:
            return
        self._untracked[path + slash] = UNHASHED + stamp_from(found)

    def _enter_each(self, directories: Directories, wanted: Iterable[bytes]) -> Iterator[tuple[bytes, int | None]]:
        """Yield each wanted directory with its descriptor.

        The descriptor is None if the directory is missing, and -1 if the directory must not or cannot be entered.
        """
        for directory in sorted(wanted, key=lambda each: each.split(b"/")):
            try:
                yield directory, directories.enter(directory)
            except Barred:
                yield directory, _BARRED

    def _tick(self, every: int = _CHECK_EVERY) -> None:
        self._steps += 1
        if not self._steps % every and time.monotonic() > self._until:
            raise _TimeIsUp
