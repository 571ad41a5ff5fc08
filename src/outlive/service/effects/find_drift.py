"""Drift: changes of files and repositories since a task ended.

When several notices are read together, one snapshot of the present state is used for all their tasks.
"""

from __future__ import annotations

import os
import time

from outlive.bundle.attempt import AttemptFiles
from outlive.bundle.output import has_writers
from outlive.domain.effects.drift import drift, named, with_further, with_meanwhile
from outlive.domain.git.changed_since import KERNELS_CLOCK_LAGS_NS, changed_by_time
from outlive.domain.git.snapshot import as_text
from outlive.domain.timestamps import to_micros
from outlive.service.effects.effects import snapshot_of, snapshots_of, wait_for_comparison

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.effects.drift import Distance, Drift
    from outlive.domain.effects.effects import Effects
    from outlive.domain.git.snapshot import GitState, Snapshot
    from outlive.domain.tasks.task import Task
    from outlive.service.effects.overlaps import Neighbours

# The time limit in seconds, because a reader of notices waits for this search. Files that are not examined in time
# count as unknown.
_ALL_FILES_S = 0.5
_NAMED_FILES_S = 0.25
_COUNTING_S = 1.0
_COMPARING_S = 0.5
_MOST_FORMER = 200


class World:
    """The present state of the directories and repositories in which tasks ran."""

    def __init__(self) -> None:
        self._left_s = _ALL_FILES_S
        self._quick: dict[str, Snapshot] = {}
        self._full: dict[str, Snapshot] = {}
        self._left_to_count_s = _COUNTING_S
        self._distances: dict[tuple[str, str | None, str | None], Distance | None] = {}
        self._left_to_wait_s = _COMPARING_S
        self._neighbours: Neighbours | None = None

    def neighbours(self, home: Home) -> Neighbours:
        """Return what may have changed the same paths as an ended task: tasks and edits.

        The result is kept for the next call, so that the record of each task's changes is read only once.
        """
        if self._neighbours is None:
            from outlive.service.effects.overlaps import Neighbours  # noqa: PLC0415 - imported here, because only readers of notices need it

            self._neighbours = Neighbours(home)
        return self._neighbours

    def wait_for(self, home: Home, task: Task, attempt: int) -> None:
        """Wait while the keeper compares an attempt's files.

        A notice is usually read only once, so its reader waits until the comparison is complete. For all notices that
        are read together, the reader waits at most `_COMPARING_S` seconds.
        """
        files = AttemptFiles(home.bundle(task.id), attempt)
        if _is_being_compared(files, snapshot_of(files.after)) and self._left_to_wait_s > 0:
            began = time.monotonic()
            wait_for_comparison(files, task.attempts[attempt - 1].settled_at, self._left_to_wait_s)
            self._left_to_wait_s -= time.monotonic() - began

    def drift_of(self, home: Home, task: Task, attempt: int, effects: Effects) -> Drift | None:
        """Return what has changed since an attempt ran: its drift.

        This has the changes since the attempt ended, and the changes that other processes made while the attempt ran.
        Returns None if no snapshot was taken when the attempt ended, or if Outlive has removed the agent's worktree
        because nothing had changed in it.
        """
        if _has_removed_worktree(task):
            return None
        files = AttemptFiles(home.bundle(task.id), attempt)
        own, *others = (*snapshots_of(files.after),) or (None,)
        if own is None:
            return None
        if _lacks_comparison(files, own):
            how = "is still being compared" if has_writers(files.record) else "was not compared"
            own = own.but(unknown=(*own.unknown, f"files: what others changed while the task ran {how}"))
        from outlive.observe.git.take_snapshot import look_at_paths  # noqa: PLC0415 - imported here, because only readers of notices need it

        now = self._look(task.launch.cwd) if own.git is None else self._look_at_all(own, task.launch.cwd)
        if own.files:
            now = now.but(files=look_at_paths(own.files, time.monotonic() + _NAMED_FILES_S))
        if own.settings:
            now = now.but(settings=look_at_paths(own.settings, time.monotonic() + _NAMED_FILES_S))
        ended_at = task.attempts[attempt - 1].ended_at
        ended_ns = None if ended_at is None else to_micros(ended_at) * 1000
        own, now = self._without_restored(home, task, ended_at, own, now)
        found = drift(own, now, self._distance(own.git, now.git), ended_ns=ended_ns)
        further = []
        for each in others:
            if each is not None and each.git is not None:
                # `found` already reports the files that the task touched, also in other repositories. `then` gets the
                # list of these files, so that this comparison leaves them out.
                then = each.but(files=own.files)
                now = self._look_at_all(then, each.directory)
                moved = drift(then, now, self._distance(then.git, now.git), ended_ns=ended_ns, is_own=False)
                further.append((each.git.top or each.directory, moved))
        return with_meanwhile(with_further(found, further) if further else found, effects)

    def _without_restored(
        self, home: Home, task: Task, ended_at: datetime | None, own: Snapshot, now: Snapshot
    ) -> tuple[Snapshot, Snapshot]:
        """Return the snapshots `own` and `now` without files that another task restored.

        `own` is the snapshot from the end of the task. A file whose content at the task's end is not known counts as
        changed if it was written later. But another task may have written it only to restore it. Then it is not known
        whether the file has changed, so the file is reported as unknown.
        """
        late = {} if ended_at is None else changed_by_time(own, now, to_micros(ended_at) * 1000)
        if not late or ended_at is None or now.git is None or now.tree is None:
            return own, now
        names = {path: as_text(path) for path in late}
        restored = self.neighbours(home).restored_by(task, ended_at)
        covered: dict[bytes, str] = {}
        for path, changed_ns in late.items():
            for other, at in restored.get(f"{now.git.top}/{names[path]}", ()):
                if changed_ns <= to_micros(at) * 1000 + KERNELS_CLOCK_LAGS_NS:
                    covered[path] = other
        if not covered:
            return own, now
        whom = ", ".join(dict.fromkeys(covered.values()))
        why = f"{named([names[path] for path in covered])}: changed and restored by {whom} since the task ended"
        tracked = {path: seen for path, seen in now.tree.tracked.items() if path not in covered}
        return own.but(unknown=(*own.unknown, why)), now.but(tree=now.tree.but(tracked=tracked))

    def _distance(self, then: GitState | None, now: GitState | None) -> Distance | None:
        """Return by how many commits HEAD has moved.

        Returns None if HEAD has not moved or if counting failed.
        """
        if then is None or now is None or then.head == now.head:
            return None
        from outlive.observe.git.commits import measure_distance  # noqa: PLC0415 - imported here, because it is needed only if HEAD has moved

        key = now.common_dir, then.head, now.head
        if key not in self._distances and self._left_to_count_s > 0:
            began = time.monotonic()
            self._distances[key] = measure_distance(then, now, self._left_to_count_s)
            self._left_to_count_s -= time.monotonic() - began
        return self._distances.get(key)

    def _look(self, directory: str) -> Snapshot:
        from outlive.observe.git.take_snapshot import take_quick  # noqa: PLC0415 - imported here, because only readers of notices need it

        if directory not in self._quick:
            self._quick[directory] = take_quick(directory)
        return self._quick[directory]

    def _look_at_all(self, then: Snapshot, directory: str) -> Snapshot:
        """Take a snapshot of all tracked files and of files that were dirty in `then`.

        Dirty files differ from git's index. Such a file may have been removed from the index since, so it is examined
        by its name.
        """
        from outlive.observe.git.object_ids import look_at  # noqa: PLC0415 - imported here, because only readers of notices need it
        from outlive.observe.git.take_snapshot import take_full  # noqa: PLC0415

        if directory not in self._full:
            began = time.monotonic()
            self._full[directory] = take_full(directory, max(0.0, self._left_s), untracked=False)
            self._left_s -= time.monotonic() - began
        now = self._full[directory]
        if now.tree is None or now.git is None:
            return now
        former = [path for path in then.dirty or () if path not in now.tree.tracked][:_MOST_FORMER]
        seen = {path: look_at(f"{now.git.top}/{as_text(path)}") for path in former}
        return now.but(tree=now.tree.but(tracked={**now.tree.tracked, **seen})) if seen else now


def _is_being_compared(files: AttemptFiles, left: Snapshot | None) -> bool:
    """Return whether the keeper of an attempt has not finished comparing its files.

    Until the keeper has finished, it has the record of the attempt open.
    """
    return left is not None and _lacks_comparison(files, left) and has_writers(files.record)


def _lacks_comparison(files: AttemptFiles, left: Snapshot) -> bool:
    """Return whether a comparison of all files was planned but is not stored."""
    return left.compares and not os.path.exists(files.compared)


def _has_removed_worktree(task: Task) -> bool:
    """Return whether Outlive has removed the unchanged worktree of an agent.

    A task that continues the agent's session may have made the worktree again. The new worktree is another repository,
    so it cannot be compared with the removed one.
    """
    request, agent = task.launch.agent, task.current.agent
    if request is None or request.worktree is None or agent is None or agent.worktree is not None:
        return False
    # The stored result of an ended agent names the worktree only if the worktree was kept.
    return task.current.settled_at is not None or not os.path.isdir(request.worktree.path)


def drift_document(found: Drift | None) -> dict[str, object] | None:
    """Return the changes since a task ended as JSON, or None if they are not known."""
    if found is None:
        return None
    return {"moved": found.moved, "summary": found.summary, "details": list(found.details)}
