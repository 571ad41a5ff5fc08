"""A file with the states of paths before the watching began, one line per path.

The lines of the baseline file are sorted. So a keeper can search the mapped file, and need not keep a hundred thousand
states in memory. The first line lists the directories to watch.
"""

from __future__ import annotations

import os
from mmap import ACCESS_READ, mmap
from stat import S_ISREG

from outlive.domain.git.snapshot import AS_INDEXED, GONE, HASHED, as_text, changed_at_ns, content_of, mode_of, stamp_of
from outlive.domain.text.sanitize import from_json, to_json
from outlive.domain.value import Value
from outlive.observe.journal import escaped, unescaped
from outlive.observe.path_state import ABSENT, UNREADABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from outlive.domain.git.snapshot import GitState, Snapshot, Tree

MOST_DIRECTORIES = 4000
_MOST_OF_REFS = 200
_SOME_DIRECTORY = "d"


class Watched(Value):
    """The first line of the file with the earlier states of paths.

    It lists the directories to watch.
    """

    places: tuple[str, ...]
    """Three paths for each worktree: top, git directory and shared git directory.

    The third path is empty if it equals the second.
    """
    directories: tuple[str, ...]
    is_whole: bool
    """Whether `directories` has all directories with tracked files."""
    all_known: bool
    """Whether the state of every path is known that existed when the task began."""


def write_baseline(fd: int, snapshots: Sequence[Snapshot], since_ns: int) -> None:
    """Write the states of files into the open file `fd`.

    The states come from snapshots. The state of a file that changed since `since_ns` is unknown.
    """
    states: dict[str, str] = {}
    places: list[str] = []
    directories: dict[str, None] = {}
    all_known = True
    for snapshot in snapshots:
        git, tree = snapshot.git, snapshot.tree
        if git is None or tree is None or git.top is None:
            continue
        top = git.top.rstrip("/")
        places += [top, git.git_dir, git.common_dir if git.common_dir != git.git_dir else ""]
        directories.update(dict.fromkeys((top, *_git_directories(git))))
        directories.update(dict.fromkeys(f"{top}/{as_text(each)}" for each in _directories(tree)))
        states.update((f"{top}/{path}", state) for path, state in _states(tree, since_ns))
        all_known = all_known and tree.all_untracked
    head = {
        "places": places,
        "directories": list(directories)[:MOST_DIRECTORIES],
        "is_whole": len(directories) <= MOST_DIRECTORIES,
        "all_known": all_known,
    }
    lines = sorted(_line(path) + state.encode("ascii") + b"\n" for path, state in states.items())
    with open(fd, "wb", closefd=False) as file:
        file.write(to_json(head).encode("ascii") + b"\n")
        file.writelines(lines)


def _line(path: str) -> bytes:
    return escaped(path).encode("utf-8", "surrogateescape") + b"\t"


def _git_directories(git: GitState) -> Iterator[str]:
    """Yield the directories in which git keeps HEAD and refs."""
    yield git.git_dir
    yield git.common_dir
    for number, (directory, _, _) in enumerate(os.walk(git.common_dir + "/refs")):
        if number >= _MOST_OF_REFS:
            return
        yield directory


def _directories(tree: Tree) -> dict[bytes, None]:
    """Return the directories with tracked files, and all directories above them.

    A directory comes after the directories above it.
    """
    found: dict[bytes, None] = {}
    for path in tree.tracked:
        above = path.rpartition(b"/")[0]
        while above and above not in found:
            found[above] = None
            above = above.rpartition(b"/")[0]
    return dict.fromkeys(sorted(found, key=lambda each: each.count(b"/")))


def _states(tree: Tree, since_ns: int) -> Iterator[tuple[str, str]]:
    """Yield each path of a snapshot with its state, in the form of `path_state.py`.

    The state of a file that changed since `since_ns` is unknown.
    """
    for path, seen in tree.tracked.items():
        yield as_text(path), _state(seen, since_ns, converts=tree.converts)
    for path in tree.untracked:
        yield as_text(path).rstrip("/"), _SOME_DIRECTORY if path.endswith(b"/") else UNREADABLE


def _state(seen: bytes, since_ns: int, *, converts: bool) -> str:
    if seen == GONE:
        return ABSENT
    stamp, content = stamp_of(seen), content_of(seen)
    if not content or not S_ISREG(mode_of(stamp)) or changed_at_ns(stamp) >= since_ns:
        return UNREADABLE
    # The id in the git index is the id of the converted content. This id differs from the id of the bytes on disk if
    # git converts line endings or applies a filter.
    is_of_bytes = seen[:1] == HASHED or (seen[:1] == AS_INDEXED and not converts)
    return "f" + content.hex() if is_of_bytes else UNREADABLE


class Baseline:
    """A reader of the states that paths had before the watching began."""

    def __init__(self, fd: int, *, is_late: bool = False) -> None:
        """Map the file with the states of paths.

        `is_late` means that the command was already running when the states were written. Then a file that is recorded
        as absent may have existed before the command.
        """
        self._is_late = is_late
        self._map = mmap(fd, 0, access=ACCESS_READ)
        self._start = self._map.find(b"\n") + 1
        head: Any = from_json(self._map[: self._start].decode("ascii"))
        self.watched = Watched(
            places=tuple(head["places"]),
            directories=tuple(head["directories"]),
            is_whole=head["is_whole"],
            all_known=head["all_known"],
        )

    def state(self, path: str) -> str:
        """Return the state that a path had, or `?` if the state is unknown."""
        wanted = _line(path)
        at = self._find(wanted)
        if self._map[at : at + len(wanted)] == wanted:
            state = self._map[at + len(wanted) : self._map.find(b"\n", at)].decode("ascii")
            return UNREADABLE if self._is_late and state == ABSENT else state
        return ABSENT if self.watched.all_known else UNREADABLE

    def below(self, directory: str) -> Iterator[str]:
        """Yield the recorded paths below a directory."""
        prefix = _line(directory)[:-1] + b"/"
        at = self._find(prefix)
        while self._map[at : at + len(prefix)] == prefix:
            end = self._map.find(b"\n", at)
            yield unescaped(self._map[at:end].rpartition(b"\t")[0].decode("utf-8", "surrogateescape"))
            at = end + 1

    def _find(self, wanted: bytes) -> int:
        """Return the offset of the first line that equals `wanted` or sorts after it."""
        low, high = self._start, len(self._map)
        while low < high:
            start = max(low, self._map.rfind(b"\n", low, (low + high) // 2) + 1)
            end = self._map.find(b"\n", start) + 1
            if self._map[start:end] < wanted:
                low = end
            else:
                high = start
        return low

    def close(self) -> None:
        """Close the mapped file."""
        self._map.close()
