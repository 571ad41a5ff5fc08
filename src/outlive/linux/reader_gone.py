"""Detection that the reader of a waiting process's output is gone.

This event is called a departure. For example, the reader closes its pipe or terminal, or an ssh connection breaks. One
epoll descriptor becomes readable at the first departure. A function that waits polls this descriptor together with the
other descriptors for which it waits.
"""

from __future__ import annotations

import os
from select import EPOLLIN, EPOLLRDHUP, POLLIN, epoll, poll
from stat import S_ISFIFO, S_ISSOCK

from outlive.linux.syscalls import borrow_descriptor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def watch_departures(
    *,
    ends: Iterable[int | None] = (),
    inputs: Iterable[int | None] = (),
    processes: Iterable[int] = (),
    changes: Iterable[int | None] = (),
) -> int:
    """Return a descriptor that becomes readable when a reader goes or a file changes.

    `ends` are this process's ends of pipes, sockets and terminals. A reader is gone when the opposite end is closed.
    `inputs` are descriptors that are only read. Here the event is that no more input will come. `processes` are pidfds,
    and `changes` are inotify descriptors. Regular files are left out, because they have no opposite end.
    """
    watch = epoll()
    # For `ends`, no event is requested: the kernel always reports a hang-up and an error.
    wanted = [*((fd, 0) for fd in ends), *((fd, EPOLLRDHUP) for fd in inputs)]
    wanted += [(fd, EPOLLIN) for fd in (*processes, *changes)]
    for fd, events in wanted:
        if fd is not None:
            try:
                watch.register(fd, events)
            except PermissionError:  # a regular file, or /dev/null
                continue
    descriptor = os.dup(watch.fileno())
    os.set_inheritable(descriptor, False)
    watch.close()
    return descriptor


def has_departed(watch: int | None) -> bool:
    """Return whether a watched reader of the output is gone.

    Returns False if no reader is watched.
    """
    return watch is not None and wait_for_departure(watch, 0.0)


def wait_for_departure(watch: int | None, seconds: float) -> bool:
    """Wait at most `seconds` until the output's reader is gone. Return whether it is."""
    waiting = poll()
    if watch is not None:
        waiting.register(watch, POLLIN)
    return bool(waiting.poll(seconds * 1000))


def reader_of_output() -> int | None:
    """Return the descriptor that shows when this process's output has no reader left.

    The descriptor is stdout, or stderr if stdout is a file. Under ssh, stderr then still shows the end of the
    connection. Returns None if neither descriptor has another end that can be closed.
    """
    return next((fd for fd in (1, 2) if _has_other_end(fd)), None)


def open_input_of(pid: int) -> int | None:
    """Return a copy of a process's stdin, with which a hang-up can be detected.

    Returns None if stdin cannot hang up, or if this process may not copy it. On a system where a process may trace only
    its own children, a pipe can still be opened by its path in /proc, but a socket cannot.
    """
    copy = borrow_descriptor(pid, 0)
    if copy is None:
        try:
            copy = os.open(f"/proc/{pid}/fd/0", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
    if _has_other_end(copy) and not os.isatty(copy):
        return copy
    os.close(copy)
    return None


def _has_other_end(fd: int) -> bool:
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return False
    return S_ISFIFO(mode) or S_ISSOCK(mode) or os.isatty(fd)
