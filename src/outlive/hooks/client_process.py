"""Functions about the client process that called a hook.

The module also starts processes that go on after the hook has exited.
"""

from __future__ import annotations

import os
from stat import S_ISCHR, S_ISREG

from outlive.domain.errors import UserError
from outlive.domain.tasks.shells_and_wrappers import SHELLS
from outlive.linux.processes import name_of, stat_fields, words_of
from outlive.service.sessions.liveness import mark_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_FARTHEST = 8
_CLIENTS = ("codex", "gemini", "opencode", "openclaw", "cursor")
# The major device numbers of terminals: consoles, serial lines, /dev/tty and pseudo-terminals. The number of /dev/null
# is not one of them.
_TERMINALS = (4, 5, 204, *range(136, 144))


def nearest_client() -> int | None:
    """Return the id of the nearest parent process that is not a shell, or None.

    If a process's parent has exited, process 1 becomes its parent. That is usually not a client. So process 1 is
    returned only if its command line is that of a client, as in a container.
    """
    pid = os.getppid()
    for _ in range(_FARTHEST):
        if pid < 1 or (pid == 1 and not _is_client(pid)):
            return None
        if name_of(pid) not in SHELLS:
            return pid
        fields = stat_fields(pid)
        pid = int(fields[1]) if fields else 0
    return None


def _is_client(pid: int) -> bool:
    """Return whether a command line starts an agent client.

    The client may also be started through an interpreter, such as `node`.
    """
    return any(name in word for word in words_of(pid)[:2] for name in _CLIENTS)


def mark(pid: int | None) -> str | None:
    """Return a string that identifies a client's process even if its id is reused.

    Returns None if no process id is given, or if the process cannot be inspected.
    """
    try:
        return None if pid is None else mark_of(pid)
    except UserError:
        return None


def lacks_terminal(pid: int) -> bool:
    """Return whether stdin or stdout of a process is certainly not a terminal.

    Returns False if this is not known, because the process may not be inspected.
    """
    try:
        os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    return not (_is_terminal(pid, 0) and _is_terminal(pid, 1))


def reads_file(pid: int) -> bool:
    """Return whether stdin of a process is a regular file.

    A client that reads its prompts from such a file gets no prompts from a person.
    """
    try:
        return S_ISREG(os.stat(f"/proc/{pid}/fd/0").st_mode)
    except OSError:
        return False


def _is_terminal(pid: int, fd: int) -> bool:
    try:
        found = os.stat(f"/proc/{pid}/fd/{fd}")
    except OSError:  # the process has closed this descriptor, as Node does when its input pipe has ended
        return False
    return S_ISCHR(found.st_mode) and os.major(found.st_rdev) in _TERMINALS


def detach(function: Callable[[], None]) -> None:
    """Run a function in a new process that goes on after the hook has exited.

    A client waits until all pipes to its hook are closed, and then kills the hook's child processes. So the new process
    closes the pipes, and is not a child process of the hook.
    """
    first = os.fork()
    if first:
        os.waitpid(first, 0)
        return
    try:
        os.setsid()
        # Close the client's pipes before the second fork. On a busy machine, the new process may run late, and the
        # client would wait until it closes the pipes.
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        if os.fork() == 0:
            os.chdir("/")
            function()
    finally:
        os._exit(0)
