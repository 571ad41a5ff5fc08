"""What moved in the world since tasks ended, looked at once for all notices that are read together."""

from __future__ import annotations

import os
import time

from outlive.bundle.attempt import AttemptFiles
from outlive.domain.drift import drift
from outlive.domain.when import to_micros
from outlive.service.effects import snapshot_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.domain.drift import Drift
    from outlive.domain.snapshot import Snapshot
    from outlive.domain.task import Task

# Whoever reads notices waits for this: what is not seen by then is unknown.
_ALL_FILES_S = 0.5
_NAMED_FILES_S = 0.25
_MOST_FORMER = 200


class World:
    """What lies there now."""

    def __init__(self) -> None:
        self._left_s = _ALL_FILES_S
        self._quick: dict[str, Snapshot] = {}
        self._full: dict[str, Snapshot] = {}

    def drift_of(self, home: Home, task: Task, attempt: int) -> Drift | None:
        """What has moved since an attempt ended; None if nobody looked then."""
        files = AttemptFiles(home.bundle(task.id), attempt)
        then = snapshot_of(files.after)
        if then is None:
            return None
        from outlive.observe.commits import measure_distance  # noqa: PLC0415 - only who reads a notice counts commits
        from outlive.observe.snapshot import look_at_paths  # noqa: PLC0415

        now = self._look(task.launch.cwd) if then.git is None else self._look_at_all(then, task.launch.cwd)
        if then.files:
            now = now.but(files=look_at_paths(then.files, time.monotonic() + _NAMED_FILES_S))
        if then.settings:
            now = now.but(settings=look_at_paths(then.settings, time.monotonic() + _NAMED_FILES_S))
        has_moved = then.git is not None and now.git is not None and then.git.head != now.git.head
        distance = measure_distance(then.git, now.git) if has_moved and then.git and now.git else None
        ended_at = task.attempts[attempt - 1].ended_at
        ended_ns = None if ended_at is None else to_micros(ended_at) * 1000
        return drift(then, now, distance, taken_ns=_written_ns(files.after), ended_ns=ended_ns)

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


def drift_document(found: Drift | None) -> dict[str, object] | None:
    """It as JSON, the same wherever it is told; None if nobody compared."""
    if found is None:
        return None
    return {"moved": found.moved, "summary": found.summary, "details": list(found.details)}


def _written_ns(path: str) -> int | None:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None
