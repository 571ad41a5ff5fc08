"""What moved in the world since tasks ended, looked at once for all notices that are read together."""

from __future__ import annotations

import os
import time

from outlive.bundle.attempt import AttemptFiles
from outlive.domain.drift import drift, with_further, with_meanwhile
from outlive.domain.when import to_micros
from outlive.service.effects import snapshot_of, snapshots_of, wait_for_comparison

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.domain.drift import Distance, Drift
    from outlive.domain.effects import Effects
    from outlive.domain.snapshot import GitState, Snapshot
    from outlive.domain.task import Task

# Whoever reads notices waits for this: what is not seen by then is unknown.
_ALL_FILES_S = 0.5
_NAMED_FILES_S = 0.25
_COUNTING_S = 1.0
_COMPARING_S = 0.5
_MOST_FORMER = 200


class World:
    """What lies there now."""

    def __init__(self) -> None:
        self._left_s = _ALL_FILES_S
        self._quick: dict[str, Snapshot] = {}
        self._full: dict[str, Snapshot] = {}
        self._left_to_count_s = _COUNTING_S
        self._distances: dict[tuple[str, str | None, str | None], Distance | None] = {}
        self._left_to_wait_s = _COMPARING_S

    def wait_for(self, home: Home, task: Task, attempt: int) -> None:
        """Until all files have been compared that are to be, if there is time: who is told once should hear of that."""
        files = AttemptFiles(home.bundle(task.id), attempt)
        if _is_being_compared(files, snapshot_of(files.after)) and self._left_to_wait_s > 0:
            began = time.monotonic()
            wait_for_comparison(files, task.attempts[attempt - 1].settled_at, self._left_to_wait_s)
            self._left_to_wait_s -= time.monotonic() - began

    def drift_of(self, home: Home, task: Task, attempt: int, effects: Effects) -> Drift | None:
        """What has moved since an attempt with these effects ended, and by others while it ran; None if nobody looked.

        Where it ran, and in what it was to touch.
        """
        files = AttemptFiles(home.bundle(task.id), attempt)
        own, *others = (*snapshots_of(files.after),) or (None,)
        if own is None:
            return None
        if _is_being_compared(files, own):
            own = own.but(unknown=(*own.unknown, "files: what others changed while it ran is still being compared"))
        from outlive.observe.snapshot import look_at_paths  # noqa: PLC0415 - only who reads a notice looks

        now = self._look(task.launch.cwd) if own.git is None else self._look_at_all(own, task.launch.cwd)
        if own.files:
            now = now.but(files=look_at_paths(own.files, time.monotonic() + _NAMED_FILES_S))
        if own.settings:
            now = now.but(settings=look_at_paths(own.settings, time.monotonic() + _NAMED_FILES_S))
        ended_at = task.attempts[attempt - 1].ended_at
        ended_ns = None if ended_at is None else to_micros(ended_at) * 1000
        found = drift(own, now, self._distance(own.git, now.git), ended_ns=ended_ns)
        further = []
        for each in others:
            if each is not None and each.git is not None:
                then = each.but(files=own.files)  # what it touched is told already, wherever it lies
                now = self._look_at_all(then, each.directory)
                moved = drift(then, now, self._distance(then.git, now.git), ended_ns=ended_ns, is_own=False)
                further.append((each.git.top or each.directory, moved))
        return with_meanwhile(with_further(found, further) if further else found, effects)

    def _distance(self, then: GitState | None, now: GitState | None) -> Distance | None:
        """How far HEAD has moved, as long as there is time to count."""
        if then is None or now is None or then.head == now.head:
            return None
        from outlive.observe.commits import measure_distance  # noqa: PLC0415 - only where HEAD has moved

        key = now.common_dir, then.head, now.head
        if key not in self._distances and self._left_to_count_s > 0:
            began = time.monotonic()
            self._distances[key] = measure_distance(then, now, self._left_to_count_s)
            self._left_to_count_s -= time.monotonic() - began
        return self._distances.get(key)

    def _look(self, directory: str) -> Snapshot:
        from outlive.observe.snapshot import take_quick  # noqa: PLC0415 - only who reads a notice looks

        if directory not in self._quick:
            self._quick[directory] = take_quick(directory)
        return self._quick[directory]

    def _look_at_all(self, then: Snapshot, directory: str) -> Snapshot:
        """All tracked files, and those that were dirty then and are no longer in the index."""
        from outlive.domain.snapshot import as_text  # noqa: PLC0415 - only who reads a notice looks
        from outlive.observe.object_ids import look_at  # noqa: PLC0415
        from outlive.observe.snapshot import take_full  # noqa: PLC0415

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
    """Whether that is still to come; or never will, if its keeper has died of it."""
    return left is not None and left.compares and not os.path.exists(files.compared)


def drift_document(found: Drift | None) -> dict[str, object] | None:
    """It as JSON, the same wherever it is told; None if nobody compared."""
    if found is None:
        return None
    return {"moved": found.moved, "summary": found.summary, "details": list(found.details)}
