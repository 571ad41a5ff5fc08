"""Whether a task would be ended with the sandbox that it is launched in."""

from __future__ import annotations

import os

from outlive.bundle.kernel import pid_namespace
from outlive.bundle.processes import name_of, stat_fields, words_of

# The kernel's own number of the namespace that the machine starts with.
_FIRST_NAMESPACE = 0xEFFFFFFC
# Programs that make a PID namespace for one command. When that ends, the kernel kills all that is in it.
_MAKERS = ("bwrap", "codex-linux-san", "firejail", "nsjail", "unshare", "minijail0")
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "busybox")
_FARTHEST = 8


def doomed_by() -> str | None:
    """Whose end would end everything that is started here, however detached; None if nothing is known of that kind.

    A container is none: it lasts as long as its first process, which is meant to. Not so if that is the very command
    that launches: the namespace was made for it.
    """
    if pid_namespace() == _FIRST_NAMESPACE:
        return None
    first = name_of(1)
    return first if first in _MAKERS or _is_made_for_us(first) else None


def _is_made_for_us(first: str) -> bool:
    """Whether we are the first process ourselves, or a step of what a shell was given that is."""
    is_given = first in _SHELLS and any(word[:1] == "-" and "c" in word[1:] for word in words_of(1)[1:2])
    pid = os.getpid()
    for _ in range(_FARTHEST):
        if pid == 1:
            return True
        fields = stat_fields(pid)
        pid = int(fields[1]) if fields else 0
        if not is_given or name_of(pid) not in _SHELLS:
            return False
    return False
