"""Work that a keeper does in a low-priority fork while its command runs.

The work is done in a fork, because the memory of a fork is freed when the fork ends. A thread would slow down the
keeper, which must answer the system calls of its command. The fork closes every descriptor on which other processes
wait. Besides the files that it needs, the fork keeps the attempt's exit record open, so that other processes recognize
that the fork is not a process of the task.
"""

from __future__ import annotations

import os
from _thread import allocate_lock, start_new_thread

from outlive.linux.processes import close_all_but
from outlive.linux.syscalls import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_NICE = 5


class BackgroundFork:
    """A forked process that does one piece of work in the background."""

    def __init__(self, work: Callable[[], None], keep: tuple[int, ...], *, is_idle: bool = False) -> None:
        """Start the work in a fork that keeps only the descriptors in `keep` open.

        `is_idle` means that the fork runs only when no other process wants the processor.
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
        # After the fork has ended, a new process may get its pid. The pidfd never refers to that new process, so
        # `give_up` cannot kill it.
        self._pidfd = os.pidfd_open(self._pid)
        self._done = allocate_lock()
        self._done.acquire()
        start_new_thread(self._reap, ())

    def _reap(self) -> None:
        try:
            os.waitpid(self._pid, 0)
        except ChildProcessError:
            pass  # another wait call of the keeper has reaped the fork
        finally:
            self._done.release()

    @property
    def is_done(self) -> bool:
        """Whether the work has ended."""
        return not self._done.locked()

    def is_done_within(self, seconds: float) -> bool:
        """Wait at most `seconds` for the end of the work. Return whether it has ended."""
        if not self._done.acquire(timeout=seconds):
            return False
        self._done.release()
        return True

    def give_up(self) -> None:
        """Kill the fork, because its result is not needed any more."""
        try:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        except ProcessLookupError:
            pass  # the work has ended already
        self.wait()

    def wait(self) -> None:
        """Wait until the work has ended."""
        with self._done:
            if self._pidfd >= 0:
                os.close(self._pidfd)
                self._pidfd = -1
