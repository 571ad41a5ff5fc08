"""The changes that tasks have made and not restored up to now.

A window is a time span in which a file differed from the state in which the task found it. The window is open until
the file is restored.

For a running task, the open windows come from the record of its effects (the journal). A task that ended without
success is included for one hour, or for one day if its notice is unread. It is left out earlier if all paths that it
changed are restored. The ledger stores the paths of ended tasks, so that a reader queries only the paths that it
needs. A task that succeeded is left out, because its changes were intended.
"""

from __future__ import annotations

from outlive.domain.effects.left_open import windows_left
from outlive.domain.errors import OutliveError
from outlive.domain.timestamps import timedelta
from outlive.domain.value import Value
from outlive.ledger.left_open_paths import LeftOpenPaths
from outlive.service.clock import utc_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from outlive.bundle.home import Home
    from outlive.domain.effects.effects import Window
    from outlive.domain.effects.left_open import LeftPath
    from outlive.domain.tasks.task import Task
    from outlive.ledger.sqlite import SqliteLedger
    from outlive.service.effects.running_windows import Question, RunningWindows, WindowsOfTask

_RECENT, _UNTOLD = timedelta(hours=1), timedelta(days=1)
# After the end of a task, its keeper records within this time which paths the task left changed. If they are not
# recorded later, the keeper has died, and another process that needs the paths records them.
_KEEPER_RECORDS_WITHIN = timedelta(seconds=10)
_AT_ONCE = 100
MOST_COMPARED = 20
"""How many paths of a task are compared with the disk at a time in fast calls.

For example, a hook has to be fast.
"""
# The number of ended tasks that are examined if the number of paths is limited. The newest tasks come first.
_MOST_TASKS = 20
# A task's paths are compared with the disk in batches, to find a path that is still changed. This is the largest
# number of batches.
_TURNS = 5


class OpenInProject(Value):
    """The files of a project that tasks have changed and not restored."""

    windows: tuple[tuple[str, Window], ...] = ()
    unsure: tuple[str, ...] = ()
    """Tasks that may have changed files without restoring them.

    Some of their paths were not compared with the disk.
    """
    more: int = 0
    """The number of further ended tasks that left paths changed here. These paths were not compared with the disk."""


class OpenWindows:
    """The unrestored changes (open windows) of all tasks, or of all tasks except one.

    Each call compares the recorded paths with the disk.
    """

    def __init__(self, home: Home, ledger: SqliteLedger, but: str | None = None, most: int | None = None) -> None:
        """Find the tasks that may have unrestored changes, except the task `but`.

        `most` limits how many paths of a task are compared with the disk at a time.
        """
        self._home, self._left, self._most = home, LeftOpenPaths(ledger), most
        self.replayed: list[Task] = [task for task in ledger.unsettled() if task.id != but]
        """Tasks whose record of changes has to be read for this search."""
        self.recorded: list[str] = []
        """The ids of ended tasks whose unrestored paths are stored in the ledger."""
        now = utc_now()
        for each in self._left.failed(now - _RECENT, now - _UNTOLD):
            if each.task == but:
                continue
            task = None if each.is_known else ledger.task(each.task)
            if task is not None and not _record_late(home, ledger, task):
                self.replayed.append(task)
            elif each.has_left or task is not None:
                self.recorded.append(each.task)
        self._windows: list[WindowsOfTask] | None = None
        self._long: list[Task] = []
        self._running: RunningWindows | None = None

    def of_replayed(
        self, question: Question, is_left_out: Callable[[str], bool] = lambda _: False
    ) -> list[WindowsOfTask]:
        """Return unrestored changes of tasks whose record of changes has to be read.

        If the number of compared paths is limited, a long record is searched only for the paths of `question`. Changes
        in a directory tree for which `is_left_out` returns True do not count in this search.
        """
        found = list(self._of_short())
        if self._running is not None:
            found += [self._running.ask(task, question, is_left_out) for task in self._long]
        return [each for each in found if each.windows or each.is_unsure]

    def may_be_open(self) -> bool:
        """Return whether a task may have changed files and not restored them.

        The task that was excluded when this object was made does not count.
        """
        return bool(self.recorded) or bool(self._of_short()) or bool(self._long)

    def has_opened(self, task: Task) -> bool:
        """Return whether a task may have changed files, even if it has restored them."""
        self._of_short()
        if self._running is not None and task in self._long:
            return self._running.has_changed(task)
        from outlive.service.effects.effects import effects_of  # noqa: PLC0415 - imported here, because it is needed only if a record of changes has to be read

        return bool(effects_of(self._home, task).windows)

    def _of_short(self) -> list[WindowsOfTask]:
        """Return the unrestored changes of tasks with a short record of changes.

        The record is read as a whole. If the number of compared paths is limited, a task with a long record is only
        added to `_long`.
        """
        if self._windows is None:
            self._windows = []
            if self.replayed:
                from outlive.service.effects.effects import open_now  # noqa: PLC0415 - imported here, because it is needed only if a record of changes has to be read
                from outlive.service.effects.running_windows import RunningWindows, WindowsOfTask  # noqa: PLC0415

                self._running = None if self._most is None else RunningWindows(self._home, self._most)
                for task in self.replayed:
                    if self._running is not None and not self._running.is_short(task):
                        self._long.append(task)
                    elif windows := open_now(self._home, task, with_stashes=True):
                        self._windows.append(WindowsOfTask(task=task.id, windows=windows))
        return self._windows

    def at(self, paths: Iterable[str], is_left_out: Callable[[str], bool] = lambda _: False) -> Iterator[WindowsOfTask]:
        """Yield the changes of ended tasks that left one of the given paths changed.

        A path below a given path does not count. Changes in a directory tree for which `is_left_out` returns True are
        left out.
        """
        seeds: dict[str, list[LeftPath]] = {}
        for task, each in self._left.at(paths):
            if not is_left_out(each.scope):
                seeds.setdefault(task, []).append(each)
        for task in self.recorded:
            if still := self._still_left(task, seeds.get(task, ())):
                yield self._around(task, still)

    def below(self, directory: str, accepts: Callable[[LeftPath], bool] = lambda _: True) -> Iterator[WindowsOfTask]:
        """Yield the changes of ended tasks that left paths below a directory changed.

        Only paths for which `accepts` returns True count.
        """
        for task in self._left.tasks_below(self.recorded, directory):
            last: str | None = None
            while found := self._left.below(task, directory, last, _AT_ONCE):
                if still := self._still_left(task, filter(accepts, found)):
                    yield self._around(task, still)
                    break
                last = found[-1].path

    def ask_also(self, tasks: Iterable[Task]) -> None:
        """Add tasks to those whose records of changes have to be read."""
        known = {*(task.id for task in self.replayed), *self.recorded}
        self.replayed += {task.id: task for task in tasks if task.id not in known}.values()

    def in_project(self, project: str) -> OpenInProject:
        """Return the unrestored changes in a project's directory tree, each with its task."""
        if not self.may_be_open():
            return OpenInProject()
        from outlive.observe.git.repository import find_repository  # noqa: PLC0415 - imported here, because it is needed only if a task may have changed files
        from outlive.service.effects.effects import is_in  # noqa: PLC0415
        from outlive.service.effects.running_windows import Question  # noqa: PLC0415

        repository = find_repository(project)
        # The HEAD of a linked worktree lies outside the worktree, so it is not among the files of the project.
        head = "" if repository is None else f"{repository.roots[1]}/HEAD"
        asked = self.of_replayed(Question(places=frozenset([project, head]) - {""}, with_gits_own=True))
        found = [
            (held.task, window.but(uncompared=held.unchecked))
            for held in asked
            for window in _without_stashes(held.windows)
        ]
        tasks = self._left.tasks_below(self.recorded, project, head)
        most = len(tasks) if self._most is None else _MOST_TASKS
        for task in tasks[:most]:
            found += [(task, window) for window in self._left_in(task, project, head)]
        return OpenInProject(
            windows=tuple((task, window) for task, window in found if is_in(project, window)),
            unsure=tuple(held.task for held in asked if held.is_unsure),
            more=len(tasks) - most if len(tasks) > most else 0,
        )

    def _left_in(self, task: str, project: str, head: str) -> Iterator[Window]:
        """Yield the changes in a project that an ended task did not restore."""
        seeds = [left for of, left in self._left.at([head]) if of == task]
        last: str | None = None
        still: list[LeftPath] = []
        for _ in range(_TURNS):
            found = self._left.below(task, project, last, self._most)
            still = self._still_left(task, [*seeds, *(each for each in found if not each.is_stash)])
            if still or self._most is None or len(found) < self._most:
                break
            last, seeds = found[-1].path, []
        unchecked = 0 if self._most is None else max(0, self._left.count(task) - len(still))
        for window in windows_of_ended(still):
            yield window.but(uncompared=unchecked)

    def _around(self, task: str, seeds: Sequence[LeftPath]) -> WindowsOfTask:
        """Return the groups of changed files that contain one of the paths `seeds`.

        An ended task has left the paths `seeds` changed. The caller has checked that they are still changed.
        """
        known = {each.path for each in seeds}
        room = None if self._most is None else max(0, self._most - len(seeds))
        more = [each for each in self._left.below(task, "/", limit=room) if each.path not in known]
        still = self._still_left(task, more)
        unchecked = 0 if self._most is None else self._left.count(task) - len(seeds) - len(still)
        from outlive.service.effects.running_windows import WindowsOfTask  # noqa: PLC0415 - imported here, because usually no ended task left changed paths

        windows = windows_of_ended([*seeds, *still])
        names = {each.name for each in seeds}
        return WindowsOfTask(
            task=task,
            windows=tuple(window for window in windows if not names.isdisjoint(window.paths)),
            unchecked=max(0, unchecked),
        )

    def _still_left(self, task: str, paths: Iterable[LeftPath]) -> list[LeftPath]:
        """Return the paths that are still as the task left them.

        The other paths have changed since, so they are deleted from the ledger.
        """
        from outlive.observe.path_state import moments_of, state_like  # noqa: PLC0415 - imported here, because usually no ended task left changed paths

        still: list[LeftPath] = []
        restored: list[LeftPath] = []
        for each in paths:
            is_left = each.is_left(state_like, lambda path: moments_of(path)[0])
            (still if is_left else restored).append(each)
            if self._most is not None and len(still) == self._most:
                break
        if restored:
            try:
                self._left.restore(task, restored)
            except OutliveError:
                pass  # the ledger keeps the paths, and the next reader compares them again
        return still


def windows_of_ended(paths: Iterable[LeftPath]) -> tuple[Window, ...]:
    """Return the changes that an ended task left, grouped by time and worktree."""
    return tuple(window.but(is_left=True) for window in windows_left(paths))


def _without_stashes(windows: Iterable[Window]) -> Iterator[Window]:
    return (each for each in windows if not all(path.endswith("/refs/stash") for path in each.paths))


def _record_late(home: Home, ledger: SqliteLedger, task: Task) -> bool:
    """Record the paths that an ended task left changed, if its keeper has not.

    Returns False and records nothing while the keeper may still record the paths, or while processes of the task run.
    """
    settled = task.current.settled_at
    if settled is None or task.current.left_running or utc_now() - settled < _KEEPER_RECORDS_WITHIN:
        return False
    from outlive.keeper.observation.record_left_open import record_left_open  # noqa: PLC0415 - imported here, because usually the keeper has recorded the paths

    return record_left_open(home, ledger, task)
