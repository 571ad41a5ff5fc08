"""The wait until an attempt is ready: one loop for keepers and for `outlive wait`.

The loop checks the task's own processes every 20 ms at first, and later every 0.5 s. It ends when the task is ready, so
a ready task costs nothing.
"""

from __future__ import annotations

import os
import time
from select import POLLIN, poll

from outlive.domain.value import Value
from outlive.keeper.readiness.port_owner import describe_owner
from outlive.keeper.readiness.probes import (
    CommandProbe,
    FileProbe,
    HttpProbe,
    LogProbe,
    NotifyProbe,
    PortProbe,
    Situation,
    state_of_file,
)
from outlive.linux.listeners import listeners_of, listeners_on, sockets_on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Literal

    from outlive.bundle.attempt import AttemptFiles
    from outlive.domain.tasks.readiness import ReadyCondition
    from outlive.keeper.readiness.notify_socket import NotifySocket
    from outlive.keeper.readiness.probes import FileState, Probe
    from outlive.linux.listeners import Listener

    Kind = Literal["ready", "elsewhere", "waiting", "timed_out", "ended"]

_SHORTEST_PAUSE, _LONGEST_PAUSE, _GROWTH = 0.02, 0.5, 1.5


class Watched(Value):
    """The attempt whose readiness is awaited."""

    files: AttemptFiles
    """The files of the attempt. Only the output of this attempt is searched."""
    pids: Callable[[], Collection[int]]
    """Returns the pids of the task's living processes. `process_tree` finds these processes."""
    cwd: str
    environ: dict[str, str]
    ended: int | None
    """A descriptor that becomes readable or hangs up when the attempt ends: a pidfd, or the FIFO `done`.

    None if there is no such descriptor. Then `has_ended` is called before each check.
    """
    has_ended: Callable[[], bool] | None = None
    """Returns whether the attempt has really ended, after `ended` has reported something.

    None if every report means the end. The FIFO `done` hangs up also when only the keeper has died.
    """
    notify: NotifySocket | None = None
    """The socket for `notify`. None if no condition needs the socket."""
    known_files: dict[str, FileState] | None = None
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


def known_files_of(conditions: Sequence[ReadyCondition], cwd: str) -> dict[str, FileState]:
    """Return the present state of the files that conditions name.

    A keeper calls this function before the attempt begins. A file that an earlier attempt has left does not count.
    """
    paths = [each.value for each in conditions if each.kind == "file"]
    return {path: state for path in paths if (state := state_of_file(os.path.join(cwd, path))) is not None}


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
    waiting = _Wait(watched, [_probe_of(each, watched) for each in conditions], tell)
    try:
        return waiting.run(until, departures)
    finally:
        waiting.close()


def _probe_of(condition: ReadyCondition, watched: Watched) -> Probe:
    """Return the probe of a condition, in which the names of ports are numbers."""
    if condition.kind == "port":
        return PortProbe(condition)
    if condition.kind == "http":
        return HttpProbe(condition)
    if condition.kind == "log":
        return LogProbe(condition, watched.files)
    if condition.kind == "file":
        return FileProbe(condition, watched.cwd, watched.known_files or {})
    if condition.kind == "cmd":
        return CommandProbe(condition, watched.cwd, watched.environ)
    assert watched.notify is not None  # noqa: S101 - the caller opens the socket before the command begins
    return NotifyProbe(condition, watched.notify)


class _Wait:
    """One wait: the probes that do not hold yet, and what the caller was told."""

    def __init__(self, watched: Watched, probes: Sequence[Probe], tell: Callable[[Progress], None]) -> None:
        self._watched = watched
        self._probes = probes
        self._open = list(probes)
        self._tell = tell
        self._told = ""
        self._listeners: list[Listener] = []
        self._held_by_others: dict[int, tuple[frozenset[int], str]] = {}
        self._is_watching_end = watched.ended is not None
        self._wants_listeners = any(each.condition.port is not None for each in probes)

    def run(self, until: float | None, departures: int | None) -> Progress:
        """Check the probes until all of them hold, or until the wait ends otherwise."""
        pause = _SHORTEST_PAUSE
        while True:
            # Check for the end before the probes, so that all output and files from before the end are found.
            is_over = self._has_ended()
            now = time.monotonic()
            self._check(now)
            if not self._open:
                return self._progress("ready", self._success())
            if is_over:
                return self._progress("ended", self._missing())
            moved = self._moved()
            if moved is not None:
                return self._progress("elsewhere", moved)
            self._tell_if_new()
            if until is not None and now >= until:
                return self._progress("timed_out", self._missing())
            woken = self._sleep(pause if until is None else min(pause, max(0.0, until - now)), departures)
            if departures is not None and departures in woken:
                return self._progress("timed_out", self._missing())
            if not woken:
                pause = min(pause * _GROWTH, _LONGEST_PAUSE)

    def _check(self, now: float) -> None:
        """Check the open probes, and drop those that hold."""
        pids = self._watched.pids
        self._listeners = listeners_of(pids()) if self._wants_listeners else []
        situation = Situation(now=now, pids=pids, listeners=self._listeners)
        self._open = [each for each in self._open if not each.holds(situation)]
        if not self._open:
            # Another condition may have taken long, and a server may have closed its port meanwhile.
            self._open = [each for each in self._probes if isinstance(each, PortProbe) and not each.holds(situation)]

    def _has_ended(self) -> bool:
        watched = self._watched
        if self._is_watching_end and watched.ended is not None:
            ended = poll()
            ended.register(watched.ended, POLLIN)
            if not ended.poll(0):
                return False
            # From now on, the descriptor stays readable. So it must not wake this loop any more.
            self._is_watching_end = False
        return watched.has_ended is None or watched.has_ended()

    def _moved(self) -> str | None:
        """Return a sentence if the task listens elsewhere because its port is taken."""
        for probe in self._open:
            port = probe.condition.port
            if port is None or not self._listeners or any(each.port == port for each in self._listeners):
                continue
            owner = self._owner_of(port)
            if owner:
                return f"listens on {self._ports()}; {port} is held by {owner}"
        return None

    def _owner_of(self, port: int) -> str:
        """Return who holds a port outside of the task, or an empty string."""
        sockets = frozenset(sockets_on(port)) - {each.inode for each in self._listeners}
        known = self._held_by_others.get(port)
        if known is None or known[0] != sockets:
            others = [each for each in listeners_on(port) if each.inode in sockets] if sockets else []
            known = (sockets, describe_owner(others[0], self._watched.cwd) if others else "")
            self._held_by_others[port] = known
        return known[1]

    def _tell_if_new(self) -> None:
        """Tell the caller which port is taken, or on which other port the task listens."""
        parts = []
        for probe in self._open:
            port = probe.condition.port
            if port is None or any(each.port == port for each in self._listeners):
                continue
            owner = self._owner_of(port)
            if owner:
                parts.append(f"port {port} is held by {owner}")
            elif self._listeners:
                parts.append(f"listens on {self._ports()}, and not on {port} yet")
        text = "; ".join(parts)
        if text and text != self._told:
            self._told = text
            self._tell(self._progress("waiting", text))

    def _sleep(self, seconds: float, departures: int | None) -> set[int]:
        waiting = poll()
        if self._is_watching_end and self._watched.ended is not None:
            waiting.register(self._watched.ended, POLLIN)
        if departures is not None:
            waiting.register(departures, POLLIN)
        for probe in self._open:
            for fd, events in probe.awaited():
                waiting.register(fd, events)
        return {fd for fd, _ in waiting.poll(seconds * 1000)}

    def _ports(self) -> str:
        return ", ".join(str(port) for port in sorted({each.port for each in self._listeners}))

    def _missing(self) -> str:
        """Return a sentence about the conditions that do not hold."""
        parts = [f"{each.condition.text}: {each.why_not}" for each in self._open]
        return "; ".join((*parts, *((self._told,) if self._told else ())))

    def _success(self) -> str:
        """Return a sentence about the conditions that hold."""
        parts = []
        for probe in self._probes:
            if isinstance(probe, PortProbe):
                endpoints = [each.endpoint for each in self._listeners if each.port == probe.port]
                other = self._owner_of(probe.port)
                parts.append(f"listens on {', '.join(endpoints)}")
                if other:
                    # `localhost` has two addresses, so a client may reach the other process.
                    parts.append(f"another address of port {probe.port} is held by {other}")
            elif isinstance(probe, HttpProbe):
                parts.append(f"answers {probe.condition.value} on {probe.answered_at}")
            else:
                parts.append(f"{probe.condition.text} holds")
        return "; ".join(parts) or "runs"

    def _progress(self, kind: Kind, text: str) -> Progress:
        return Progress(
            kind=kind,
            text=text,
            waits_for=tuple(each.condition.text for each in self._open),
            listens_on=tuple(each.endpoint for each in self._listeners),
        )

    def close(self) -> None:
        """End all unfinished checks."""
        for probe in self._probes:
            probe.close()
