"""The watch of a running command's files, in a thread of the keeper.

If the thread fails, the command goes on. At the end of the command, the files are compared with the first snapshot.
"""

from __future__ import annotations

import os
from _thread import allocate_lock, start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive.keeper.observation.task_snapshots import TaskSnapshots
    from outlive.observe.journal import Journal
    from outlive.observe.watch.watcher import Watcher

WITHOUT = "to have its files watched, run `pip install 'outlive[watch]'`"


class Watch:
    """A thread that records the changes to the files of one attempt."""

    def __init__(self, snapshots: TaskSnapshots, journal: Journal, note: Callable[..., None]) -> None:
        self._snapshots = snapshots
        self._journal = journal
        self._note = note
        self._watcher: Watcher | None = None
        self._is_over = False
        self._done, self._begun = allocate_lock(), allocate_lock()
        for lock in (self._done, self._begun):
            lock.acquire()
        start_new_thread(self._run, ())

    def _run(self) -> None:
        try:
            self._watch()
        except Exception as error:  # noqa: BLE001 - the command must go on after any error, such as a reached limit or a deleted repository
            self._note("gap", f"watching failed: {str(error)[:200] or type(error).__name__}")
        finally:
            if self._watcher is None:
                self._begun.release()
            self._done.release()

    def _watch(self) -> None:
        from outlive.observe.watch.baseline import Baseline  # noqa: PLC0415 - only tasks whose files are watched need this import
        from outlive.observe.watch.watcher import Watcher, load_watcher  # noqa: PLC0415

        make = load_watcher()
        kept = self._snapshots.baseline()
        if kept is None:
            return  # there is no repository
        baseline = Baseline(kept, is_late=self._snapshots.is_late)
        try:
            if not baseline.watched.places:
                return
            watcher = Watcher(make, baseline, self._journal, lambda: self._snapshots.ended_ns)
            self._note("watch", *baseline.watched.places)
            if not baseline.watched.is_whole:
                self._note("gap", f"only {len(baseline.watched.directories)} directories were watched")
            self._watcher = watcher
            self._begun.release()
            if self._is_over:
                watcher.stop()
            watcher.run()
        finally:
            baseline.close()
            os.close(kept)

    def wait_for_begin(self, seconds: float) -> None:
        """Wait at most `seconds` until the files are watched or the watch has failed."""
        self._begun.acquire(timeout=seconds)

    def stop(self) -> dict[str, str]:
        """Stop the watch. Return the changed paths, with their states before the change."""
        self._is_over = True
        if self._watcher is not None:
            self._watcher.stop()
        with self._done:
            return {} if self._watcher is None else self._watcher.touched
