"""Detection of sandboxes that kill all their processes when the sandbox ends."""

from __future__ import annotations

import os

from outlive.linux.processes import name_of, stat_fields, words_of
from outlive.linux.syscalls import FIRST_PID_NAMESPACE, pid_namespace

# Programs that make a PID namespace for one command. When this command ends, the kernel kills every process in the
# namespace.
_MAKERS = ("bwrap", "codex-linux-san", "firejail", "nsjail", "unshare", "minijail0")
_FARTHEST = 8


def killing_sandbox() -> str | None:
    """Return the name of the sandbox whose end will kill this process's tasks.

    Returns None if no such sandbox is known. A container does not count, because its first process is meant to run for
    long. A PID namespace counts as a sandbox if its first process is the launching command itself, because the
    namespace ends with this command.
    """
    if pid_namespace() == FIRST_PID_NAMESPACE:
        return None
    first = name_of(1)
    return first if first in _MAKERS or _is_made_for_us(first) else None


def _is_made_for_us(first: str) -> bool:
    """Return whether the PID namespace was made for the launching command.

    If so, the first process of the namespace is this process, or a shell with a script (`sh -c`) that runs this
    process.
    """
    from outlive.domain.tasks.shells_and_wrappers import SHELLS  # noqa: PLC0415 - only a process inside a PID namespace needs this module

    shells = (*SHELLS, "busybox")
    is_given = first in shells and any(word[:1] == "-" and "c" in word[1:] for word in words_of(1)[1:2])
    pid = os.getpid()
    for _ in range(_FARTHEST):
        if pid == 1:
            return True
        fields = stat_fields(pid)
        pid = int(fields[1]) if fields else 0
        if not is_given or name_of(pid) not in shells:
            return False
    return False
