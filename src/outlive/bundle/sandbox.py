"""Whether a task would be ended with the sandbox that it is launched in."""

from __future__ import annotations

from outlive.bundle.kernel import pid_namespace
from outlive.bundle.processes import name_of

# The kernel's own number of the namespace that the machine starts with.
_FIRST_NAMESPACE = 0xEFFFFFFC
# Programs that make a PID namespace for one command. When that ends, the kernel kills all that is in it.
_MAKERS = ("bwrap", "codex-linux-san", "firejail", "nsjail", "unshare", "minijail0")


def doomed_by() -> str | None:
    """Whose end would end everything that is started here, however detached; None if nothing is known of that kind.

    A container is none: it lasts as long as its first process, which is meant to.
    """
    if pid_namespace() == _FIRST_NAMESPACE:
        return None
    first = name_of(1)
    return first if first in _MAKERS else None
