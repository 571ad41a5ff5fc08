"""The search of long records of changes (journals) in limited time.

The search finds files that running tasks have changed and not restored. It reads only the entries about the paths that
the caller asks about, and compares only a limited number of these paths with the disk. If no compared path is still
changed, but other paths were not compared, the task is reported as one that may have changed files.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from itertools import takewhile

from outlive.domain.effects.left_open import windows_left
from outlive.domain.git.git_state import is_gits_own
from outlive.domain.value import Value
from outlive.observe.journal import unescaped
from outlive.observe.path_state import moments_of, state_like
from outlive.observe.replay_journal import journals_of, replay_about
from outlive.observe.search_journal import JournalSearch, around_of, as_written, read_texts, size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from outlive.bundle.home import Home
    from outlive.domain.effects.effects import Window
    from outlive.domain.effects.left_open import LeftPath
    from outlive.domain.tasks.task import Task

# The characters with which the wildcards of a shell begin. A path with wildcards may name several files.
WILD = re.compile(r"[*?\[{]")
_GITS_OWN = (b"/HEAD", b"/refs/stash")
# The largest sizes in bytes of records of changes: of one short record, of all short records together, and of all long
# records together.
_SHORT, _MOST_REPLAYED, _MOST_READ = 16 << 10, 128 << 10, 8 << 20
# A task's paths are compared with the disk in batches, to find a path that is still changed. This is the largest
# number of batches.
_TURNS = 5


class WindowsOfTask(Value):
    """The unrestored changes of one task that the caller asks about."""

    task: str
    windows: tuple[Window, ...]
    unchecked: int = 0
    """How many more paths of the task may still be changed.

    These paths were not compared with the disk.
    """
    is_unsure: bool = False
    """Whether the task may have changed files and not restored them.

    Paths that the caller asks about were not compared with the disk.
    """


class Question(Value):
    """The paths that a caller asks about: exact paths, and shell patterns.

    The caller asks about each path in `places`, every path below it, every directory above it, and all paths that match
    the patterns.
    """

    places: frozenset[str]
    patterns: tuple[tuple[str, ...], ...] = ()
    """Paths with wildcards that a shell may expand. Each path is a tuple of its names."""
    with_gits_own: bool = False
    """Whether the search also covers git's own files, such as HEAD, of a worktree."""

    def chosen_from(self, paths: Iterable[bytes]) -> list[bytes]:
        """Return those of the given paths that the caller asks about.

        The given and the returned paths have the escapes that the record of changes uses.
        """
        places = [as_written(place) for place in self.places]
        around = {above for place in places for above in around_of(place)}
        below = tuple(place.rstrip(b"/") + b"/" for place in places)
        paths = list(paths)
        found = [each for each in paths if each in around or (each.startswith(below) and self._counts(each))]
        for pattern in self.patterns:
            known = list(takewhile(lambda name: not WILD.search(name), pattern))
            start, rest = as_written("/".join(known)) + b"/", pattern[len(known) :]
            inside = (each for each in paths if each.startswith(start) and self._counts(each))
            found += [each for each in inside if all(map(fnmatchcase, _names(each[len(start) :]), rest))]
        return list(dict.fromkeys(found))

    def _counts(self, path: bytes) -> bool:
        return not path.endswith(_GITS_OWN) or self.with_gits_own or not is_gits_own(os.fsdecode(path))


class RunningWindows:
    """The unrestored changes of tasks with long records of changes.

    The limits on the bytes that are read apply to all these tasks together.
    """

    def __init__(self, home: Home, most: int) -> None:
        """Set how many paths of a task are compared with the disk at a time (`most`)."""
        self._home, self._most = home, most
        self._replayed, self._read = _MOST_REPLAYED, _MOST_READ
        self._searches: dict[str, JournalSearch | None] = {}

    def is_short(self, task: Task) -> bool:
        """Return whether a task's record of changes is short enough to be read as a whole.

        The size of a short record is subtracted from the limit for all short records.
        """
        size = size_of(journals_of(self._home, task, task.current.number))
        if size > min(_SHORT, self._replayed):
            return False
        self._replayed -= size
        return True

    def has_changed(self, task: Task) -> bool:
        """Return whether a task may have changed a path.

        Returns True if the task's record of changes is too long to be read.
        """
        search = self._search(task)
        return search is None or bool(search.changed)

    def ask(self, task: Task, question: Question, is_left_out: Callable[[str], bool]) -> WindowsOfTask:
        """Return the unrestored changes of a task that contain paths of `question`.

        Changes in a directory tree for which `is_left_out` returns True do not count.
        """
        search = self._search(task)
        if search is None:
            return WindowsOfTask(task=task.id, windows=(), is_unsure=True)
        changed = search.changed
        named = [as_written(place) for place in question.places]
        asked = question.chosen_from(changed)
        rest = [path for path in asked if path not in named]
        if not asked and not search.names(named):
            return WindowsOfTask(task=task.id, windows=())
        # If the limit allows it, some paths that the caller does not ask about are compared too. Then the result names
        # more of the paths that the task has changed.
        room, known = max(0, self._most - len(rest)), set(rest) if len(rest) < self._most else set()
        others = _spread([path for path in changed if path not in known], room) if room else []
        compared = {*named, *others}
        for _ in range(_TURNS):
            batch = _spread(rest, self._most)
            compared.update(batch)
            left = self._left_open(task, search, [*named, *batch, *others])
            if left is None:
                return WindowsOfTask(task=task.id, windows=(), unchecked=len(rest), is_unsure=True)
            meant = [each for each in left if not is_left_out(each.scope)]
            if question.chosen_from(as_written(path) for each in meant for path in (each.path, each.name)):
                unchecked = len(changed) - len(compared.intersection(changed))
                is_over = task.current.settled_at is not None
                windows = tuple(each.but(is_left=is_over) for each in windows_left(left))
                return WindowsOfTask(task=task.id, windows=windows, unchecked=unchecked)
            rest = [path for path in rest if path not in compared]
            if not rest:
                break
        return WindowsOfTask(task=task.id, windows=(), unchecked=len(rest), is_unsure=bool(rest))

    def _left_open(self, task: Task, search: JournalSearch, paths: Sequence[bytes]) -> list[LeftPath] | None:
        replay = replay_about(self._home, task, task.current.number, search, paths)
        if replay is None:
            return None
        found = replay.left_open(state_like)
        return [each for each in found if each.is_left(state_like, lambda path: moments_of(path)[0])]

    def _search(self, task: Task) -> JournalSearch | None:
        """Return a search in a task's records of changes, or None if they are too long."""
        if task.id not in self._searches:
            files = journals_of(self._home, task, task.current.number)
            size = size_of(files)
            is_readable = size <= self._read
            self._read -= size if is_readable else 0
            self._searches[task.id] = (
                JournalSearch(read_texts(files), self._home.path, self._home.worktrees) if is_readable else None
            )
        return self._searches[task.id]


def _spread(paths: Sequence[bytes], most: int) -> Sequence[bytes]:
    """Return at most `most` paths, chosen evenly from the whole list.

    Often a task restores its paths in the order of the list. Then the first paths may all be restored while later
    paths are still changed.
    """
    return paths if len(paths) <= most else [paths[number * len(paths) // most] for number in range(most)]


def _names(path: bytes) -> list[str]:
    return unescaped(path.decode("utf-8", "surrogateescape")).split("/")
