"""Watching as the keeper does it: in a thread of its own, from the first look at all files to the command's end.

Nobody waits for it, and whatever it fails at, the command goes on and is compared.
"""

from __future__ import annotations

import os
from _thread import allocate_lock, start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive.keeper.looks import Looks
    from outlive.observe.journal import Journal
    from outlive.observe.watching import Watcher

WITHOUT = "its files would be watched with `pip install 'outlive[watch]'`"


class Watch:
    """The watch of one attempt."""

    def __init__(self, looks: Looks, journal: Journal, note: Callable[..., None]) -> None:
        self._looks = looks
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
        except Exception as error:  # noqa: BLE001 - a limit, a repository that is gone, an installation that is
            self._note("gap", f"watching failed: {str(error)[:200] or type(error).__name__}")
        finally:
            if self._watcher is None:
                self._begun.release()
            self._done.release()

    def _watch(self) -> None:
        from outlive.observe.baseline import Baseline  # noqa: PLC0415 - few tasks are watched
        from outlive.observe.watching import Watcher, load_watcher  # noqa: PLC0415

        make = load_watcher()
        kept = self._looks.baseline()
        if kept is None:
            return  # there is no repository
        baseline = Baseline(kept, is_late=self._looks.is_late)
        try:
            if not baseline.watched.places:
                return
            watcher = Watcher(make, baseline, self._journal, lambda: self._looks.ended_ns)
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
        """Until it watches, or has failed to, or so long."""
        self._begun.acquire(timeout=seconds)

    def stop(self) -> dict[str, str]:
        """The command has ended: the paths that changed, and no further ones; with what they held before."""
        self._is_over = True
        if self._watcher is not None:
            self._watcher.stop()
        with self._done:
            return {} if self._watcher is None else self._watcher.touched
