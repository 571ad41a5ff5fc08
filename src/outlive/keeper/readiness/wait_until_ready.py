"""The wait until an attempt is ready: one loop for keepers and for `outlive wait`."""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Literal

    from outlive.bundle.attempt import AttemptFiles
    from outlive.domain.tasks.readiness import ReadyCondition
    from outlive.keeper.readiness.notify_socket import NotifySocket

    Kind = Literal["ready", "elsewhere", "waiting", "timed_out", "ended"]


class Watched(Value):
    """The attempt whose readiness is awaited."""

    files: AttemptFiles
    """The files of the attempt. Only the output of this attempt is searched."""
    pids: Callable[[], Collection[int]]
    """Returns the pids of the task's living processes. `process_tree` finds these processes."""
    cwd: str
    environ: dict[str, str]
    ended: int
    """A descriptor that becomes readable or hangs up when the attempt ends: a pidfd, or the FIFO `done`."""
    notify: NotifySocket | None = None
    """The socket for `notify`. None if no condition needs the socket."""
    known_files: dict[str, tuple[int, int]] | None = None
    """The files of `file:PATH` before the attempt began. None if an old file counts, too."""


class Progress(Value):
    """What is known about the readiness of an attempt."""

    kind: Kind
    text: str
    """A sentence without the name of the task, such as `listens on 127.0.0.1:5173`."""
    waits_for: tuple[str, ...] = ()
    """The conditions that do not hold yet."""
    listens_on: tuple[str, ...] = ()
    """The endpoints on which the task listens, such as `127.0.0.1:5173`."""


def known_files_of(conditions: Sequence[ReadyCondition], cwd: str) -> dict[str, tuple[int, int]]:
    """Return the present state of the files that conditions name.

    A keeper calls this function before the attempt begins. A file that an earlier attempt has left does not count.
    """
    raise NotImplementedError


def wait_until_ready(
    watched: Watched,
    conditions: Sequence[ReadyCondition],
    *,
    until: float | None,
    tell: Callable[[Progress], None] = lambda _: None,
    departures: int | None = None,
) -> Progress:
    """Block until all conditions hold. Return how the wait ended.

    `until` is a time of the monotonic clock. `tell` is called at once when something new is known that does not end the
    wait. The result is `ready`, `timed_out`, `ended` (the attempt has ended), or `elsewhere`: the task listens on
    another port, and a process outside of the task listens on the wanted port. The wait ends early with `timed_out`
    if the descriptor `departures` becomes readable.
    """
    raise NotImplementedError
