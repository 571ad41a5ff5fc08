"""Work beside a running command, in a fork of the keeper.

A look at all files of a repository takes tens of megabytes, which an interpreter hardly gives back,
and a thread would make those wait whose calls are observed. A fork takes both with it when it ends.
It lets go of everything that others look at, but for the record: that tells that it is no process
of the task.
"""

from __future__ import annotations

import os
from _thread import allocate_lock, start_new_thread

from outlive.bundle.kernel import signal
from outlive.bundle.processes import close_all_but

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_NICE = 5


class Beside:
    """One piece of work, from its fork to its end."""

    def __init__(self, work: Callable[[], None], keep: tuple[int, ...], *, is_idle: bool = False) -> None:
        """`keep` are the descriptors that the work needs, the record among them.

        If it `is_idle`, it has a processor only when nobody else wants it.
        """
        self._pid = os.fork()
        if self._pid == 0:
            try:
                close_all_but(keep)
                if is_idle:
                    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
                os.nice(_NICE)
                work()
            finally:
                os._exit(0)
        # Not by its number: whoever gets that next is not ours to end.
        self._pidfd = os.pidfd_open(self._pid)
        self._done = allocate_lock()
        self._done.acquire()
        start_new_thread(self._reap, ())

    def _reap(self) -> None:
        try:
            os.waitpid(self._pid, 0)
        except ChildProcessError:
            pass  # somebody else waits for everybody
        finally:
            self._done.release()

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return not self._done.locked()

    def is_done_within(self, seconds: float) -> bool:
        """Whether it has ended, for which it is waited so long."""
        if not self._done.acquire(timeout=seconds):
            return False
        self._done.release()
        return True

    def give_up(self) -> None:
        """End it: nobody needs it any more."""
        try:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it was faster
        self.wait()

    def wait(self) -> None:
        """Until it has ended."""
        with self._done:
            if self._pidfd >= 0:
                os.close(self._pidfd)
                self._pidfd = -1
