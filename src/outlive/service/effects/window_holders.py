"""The tasks that have changed given paths and not restored them.

Such a task holds the path. The task may have changed the path directly or through symbolic links.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import partial
from itertools import accumulate, takewhile

from outlive.domain.git.git_state import is_gits_own
from outlive.domain.value import Value
from outlive.service.effects.effects import is_inner_worktree
from outlive.service.effects.resolve_links import places_on_the_way
from outlive.service.effects.running_windows import WILD, Question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from outlive.domain.effects.effects import Window
    from outlive.domain.effects.left_open import LeftPath
    from outlive.service.effects.open_windows import OpenWindows
    from outlive.service.effects.running_windows import WindowsOfTask

_MANY = re.compile(r"\*\*|\{[^{}\s]*(,|\.\.)[^{}\s]*\}")


class Holder(Value):
    """A task, and files that it has changed and not restored.

    One of the files is a path that the caller asks about.
    """

    task: str
    window: Window
    unread: tuple[str, ...] = ()
    """The words of the command that are not fully known.

    Set only if no other words of the command name the changed paths.
    """
    unchecked: int = 0
    """The number of the task's further changed paths that were not compared with the disk."""


class Unsure(Value):
    """A task that may have changed a wanted path and not restored it.

    Not all paths that the task has changed were compared with the disk.
    """

    task: str
    paths: int = 0
    """The number of its changed paths that were not compared with the disk.

    0 if that number is not known.
    """

    def words(self) -> str:
        """Return a clause that says why it is not known whether the path is changed."""
        why = f"{self.paths:,} paths that it has changed there were not compared"
        if not self.paths:
            why = "its record of changes is too long to be read here"
        return f"cannot tell whether task {self.task} holds a path: {why} (`outlive guard PATH` compares all)"


class Found(Value):
    """The tasks that have, or may have, changed a path that the caller asks about.

    Only changes that are not restored count.
    """

    holders: tuple[Holder, ...] = ()
    unsure: tuple[Unsure, ...] = ()


def find_holders(held: OpenWindows, paths: Iterable[str], *, expands: bool = False, is_tree: bool = False) -> Found:
    """Return the tasks that have, or may have, changed one of the given paths.

    Only changes that are not restored count. With `expands`, wildcards in the paths are expanded as a shell does. With
    `is_tree`, changes in linked git worktrees inside the paths are left out.
    """
    paths = list(paths)
    wanted = {place for path in paths for place in places_on_the_way(path)}
    patterns = [_pattern(path) for path in wanted if WILD.search(path)] if expands else []

    def is_inner(scope: str) -> bool:
        return is_tree and any(is_inner_worktree(scope, path) for path in paths)

    asked = held.of_replayed(Question(places=frozenset(wanted), patterns=tuple(map(tuple, patterns))), is_inner)
    found = [
        Holder(task=each.task, window=window, unchecked=each.unchecked)
        for each in asked
        for window in each.windows
        if not is_inner(window.scope)
        and (
            _concerns(wanted, window.paths)
            or any(_may_mean(pattern, away) for pattern in patterns for away in window.paths if not is_gits_own(away))
        )
    ]
    recorded: dict[tuple[str, str, bool], Holder] = {}
    for each in _recorded(held, wanted, patterns, is_inner):
        for window in each.windows:
            holder = Holder(task=each.task, window=window, unchecked=each.unchecked)
            recorded.setdefault(key_of(holder), holder)
    unsure = tuple(Unsure(task=each.task, paths=each.unchecked) for each in asked if each.is_unsure)
    return Found(holders=(*found, *recorded.values()), unsure=unsure)


def _recorded(
    held: OpenWindows, wanted: set[str], patterns: list[list[str]], is_inner: Callable[[str], bool]
) -> Iterator[WindowsOfTask]:
    """Yield the changes of ended tasks that concern a wanted path or match a pattern."""
    if not held.recorded:
        return
    yield from held.at(_around(wanted), is_inner)
    for path in wanted:
        yield from held.below(path, lambda left: not is_gits_own(left.path) and not is_inner(left.scope))
    for pattern in patterns:
        known = "/".join(takewhile(lambda name: not WILD.search(name), pattern))
        yield from held.below(known, partial(_is_meant, pattern))


def _concerns(wanted: set[str], held: Sequence[str]) -> bool:
    """Return whether a changed path matters for a path that the caller wants to use.

    This is so if the two are equal, or if one contains the other. A file of git itself, such as HEAD, counts only if
    the caller names it. A command that reads the directory tree does not read git's own files.
    """
    below, around = tuple(path.rstrip("/") + "/" for path in wanted), _around(wanted)
    return any(away in around or (away.startswith(below) and not is_gits_own(away)) for away in held)


def _is_meant(pattern: list[str], left: LeftPath) -> bool:
    return not is_gits_own(left.path) and _may_mean(pattern, left.path)


def _around(wanted: Iterable[str]) -> set[str]:
    """Return the paths and all directories above them."""
    return {above for path in wanted for above in accumulate(path.rstrip("/").split("/"), "{}/{}".format)}


def _pattern(path: str) -> list[str]:
    """Split a path with shell wildcards into one pattern for each name."""
    many = _MANY.search(path)
    return (path if many is None else path[: many.start()] + "*").split("/")


def _may_mean(pattern: list[str], held: str) -> bool:
    return all(map(fnmatchcase, held.split("/"), pattern))


def key_of(holder: Holder) -> tuple[str, str, bool]:
    """Return a key for the changes of one task in one directory tree.

    Changes of git's own files have another key than changes of other files. The key does not depend on which paths
    were compared with the disk.
    """
    return holder.task, holder.window.scope, all(map(is_gits_own, holder.window.paths))
