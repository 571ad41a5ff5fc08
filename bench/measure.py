"""Measuring on a noisy machine: interleaved rounds, medians, ratios to a floor of the same round."""

from __future__ import annotations

import os
import select
import signal
import statistics
import time
from typing import TYPE_CHECKING, NamedTuple

from outlive.bundle.processes import opened_by

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PATIENCE = 60.0
SLOW_ROUNDS = 3


class Samples:
    """What one case took in milliseconds, by the number of the round."""

    def __init__(self) -> None:
        self.by_round: dict[int, float] = {}

    def add(self, seconds: float, turn: int | None = None) -> None:
        """One more round."""
        self.by_round[len(self.by_round) if turn is None else turn] = seconds * 1000

    @property
    def ms(self) -> list[float]:
        """Every round, in order."""
        return list(self.by_round.values())

    @property
    def median(self) -> float:
        """The middle round."""
        return statistics.median(self.ms)

    @property
    def p95(self) -> float:
        """Nineteen of twenty rounds were faster."""
        return sorted(self.ms)[int(len(self.ms) * 0.95)]

    def ratio_to(self, floor: Samples) -> float:
        """The median of the ratios round by round: what disturbs one disturbs the other."""
        return statistics.median(mine / floor.by_round[turn] for turn, mine in self.by_round.items())


def turns(rounds: int, *, slow: bool) -> range:
    """The rounds a case takes part in: a slow one sits out two of three, and still meets every floor it is held to."""
    return range(0, rounds, SLOW_ROUNDS if slow else 1)


class Ran(NamedTuple):
    """What became of a program: its exit code, or None if our patience was over first; and what it printed."""

    code: int | None
    out: str


def spawn(argv: Sequence[str], env: Mapping[str, str], patience: float | None = None) -> Ran:
    """Start a program as cheaply as possible and wait for it.

    It prints into memory and not into a pipe, because a daemon it leaves behind would hold a pipe open.
    """
    printed = os.memfd_create("printed")
    try:
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, printed, 1),
            (os.POSIX_SPAWN_DUP2, printed, 2),
        ]
        pid = os.posix_spawn(argv[0], list(argv), dict(env), file_actions=actions)
        if patience is not None and not ends_within(pid, patience):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return Ran(None, "")
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return Ran(code, os.pread(printed, os.fstat(printed).st_size, 0).decode(errors="replace"))
    finally:
        os.close(printed)


def ends_within(pid: int, patience: float) -> bool:
    """Whether a process ends in time; the kernel tells, so nothing is added to what is measured."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], patience)[0])
    finally:
        os.close(handle)


def until(holds: Callable[[], bool], what: str, *, patience: float = PATIENCE, pause: float = 0.02) -> None:
    """Look again and again; only for what is not being timed, or takes seconds."""
    deadline = time.monotonic() + patience
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {patience:.0f} s")
        time.sleep(pause)


def pss_kb(pid: int) -> int:
    """The memory a process is charged with, shared pages divided among their users; 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    except OSError:
        return 0


def parent_of(pid: int) -> int:
    """The process a process belongs to."""
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def is_alive(pid: int) -> bool:
    """Whether it runs: a zombie nobody has fetched yet does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _pids_where(holds: Callable[[str], bool]) -> list[int]:
    """Processes whose directory in /proc satisfies; those that vanish while we look do not."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if holds(f"/proc/{name}"):
                found.append(int(name))
        except OSError:
            continue
    return found


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def pids_marked(mark: str) -> list[int]:
    """Processes that were started with `mark` in their environment, and so belong to one peer."""
    return _pids_where(lambda proc: mark.encode() in _read(f"{proc}/environ").split(b"\0"))


def pids_running(argv: Sequence[str]) -> list[int]:
    """Processes with exactly these words as their command line."""
    wanted = "\0".join(argv).encode() + b"\0"
    return _pids_where(lambda proc: _read(f"{proc}/cmdline") == wanted)


def pids_mentioning(words: str, parent: int) -> list[int]:
    """Children of a process with these words somewhere in their command line."""
    candidates = _pids_where(lambda proc: words.encode() in _read(f"{proc}/cmdline"))
    return [pid for pid in candidates if parent_of(pid) == parent]


def pids_holding(top: str, prefix: str) -> list[int]:
    """Processes whose name for the kernel begins with `prefix` and that have a file below `top` open."""

    def holds(proc: str) -> bool:
        if not _read(f"{proc}/comm").startswith(prefix.encode()):
            return False
        return any(path.startswith(top) for path in opened_by(int(proc.rpartition("/")[2])))

    return _pids_where(holds)


def cpu_times() -> list[int]:
    """What all processors together have done since the machine started, in ticks, as /proc/stat tells it."""
    with open("/proc/stat", encoding="ascii") as file:
        return [int(each) for each in file.readline().split()[1:9]]


def stolen_since(before: Sequence[int]) -> float:
    """The share of the processors' time that another machine on the same hardware had instead of this one."""
    spent = [now - then for now, then in zip(cpu_times(), before, strict=True)]
    return spent[-1] / max(1, sum(spent))
