"""Measuring on a noisy machine: interleaved rounds, medians and ratios."""

from __future__ import annotations

import os
import select
import signal
import statistics
import time
from typing import TYPE_CHECKING, NamedTuple

from outlive.linux.processes import opened_by

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PATIENCE = 60.0
SLOW_ROUNDS = 3


class Samples:
    """The times of one case in milliseconds, by the number of the round."""

    def __init__(self) -> None:
        self.by_round: dict[int, float] = {}

    def add(self, seconds: float, turn: int | None = None) -> None:
        """Add the time of one round."""
        self.by_round[len(self.by_round) if turn is None else turn] = seconds * 1000

    @property
    def ms(self) -> list[float]:
        """The times of all rounds, in order."""
        return list(self.by_round.values())

    @property
    def median(self) -> float:
        """The median time."""
        return statistics.median(self.ms)

    @property
    def p95(self) -> float:
        """The time that 95 % of the rounds do not exceed."""
        return sorted(self.ms)[int(len(self.ms) * 0.95)]

    def ratio_to(self, floor: Samples) -> float:
        """Return the median of the ratios to another case, computed round by round.

        A disturbance of the machine affects both cases of a round, so the ratio stays similar.
        """
        return statistics.median(mine / floor.by_round[turn] for turn, mine in self.by_round.items())


def turns(rounds: int, *, slow: bool) -> range:
    """Return the rounds that a case takes part in.

    A slow case takes part in every third round.
    """
    return range(0, rounds, SLOW_ROUNDS if slow else 1)


class Ran(NamedTuple):
    """The exit code and the output of a program.

    The code is None if the program took too long.
    """

    code: int | None
    out: str


def spawn(argv: Sequence[str], env: Mapping[str, str], patience: float | None = None) -> Ran:
    """Start a program with little overhead and wait for it.

    Its output goes to memory. A daemon that the program leaves behind would keep a pipe open.
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
    """Return whether a process ends within some seconds.

    The kernel wakes this process through a pidfd, so polling adds nothing to a measured time.
    """
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], patience)[0])
    finally:
        os.close(handle)


def until(holds: Callable[[], bool], what: str, *, patience: float = PATIENCE, pause: float = 0.02) -> None:
    """Poll until a condition is true.

    Use this only where the time is not measured, or is many seconds. Raises `TimeoutError` after `patience`
    seconds.
    """
    deadline = time.monotonic() + patience
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {patience:.0f} s")
        time.sleep(pause)


def pss_kb(pid: int) -> int:
    """Return the PSS of a process in kB: its memory, with shared pages divided.

    Returns 0 if the process is gone.
    """
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    except OSError:
        return 0


def parent_of(pid: int) -> int:
    """Return the parent of a process."""
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def is_alive(pid: int) -> bool:
    """Return whether a process runs. A zombie does not count."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _pids_where(holds: Callable[[str], bool]) -> list[int]:
    """Return the processes whose directory in /proc satisfies a condition.

    Processes that end during the search are left out.
    """
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
    """Return the processes of one peer, which have `mark` in their environment."""
    return _pids_where(lambda proc: mark.encode() in _read(f"{proc}/environ").split(b"\0"))


def pids_running(argv: Sequence[str]) -> list[int]:
    """Return the processes with exactly this command line."""
    wanted = "\0".join(argv).encode() + b"\0"
    return _pids_where(lambda proc: _read(f"{proc}/cmdline") == wanted)


def pids_mentioning(words: str, parent: int) -> list[int]:
    """Return the children of a process that have a text in their command line."""
    candidates = _pids_where(lambda proc: words.encode() in _read(f"{proc}/cmdline"))
    return [pid for pid in candidates if parent_of(pid) == parent]


def pids_holding(top: str, prefix: str) -> list[int]:
    """Return the processes that have a file below `top` open.

    Only processes whose name in the kernel begins with `prefix` are returned.
    """

    def holds(proc: str) -> bool:
        if not _read(f"{proc}/comm").startswith(prefix.encode()):
            return False
        return any(path.startswith(top) for path in opened_by(int(proc.rpartition("/")[2])))

    return _pids_where(holds)


def cpu_times() -> list[int]:
    """Return the ticks of all processors together since boot, from /proc/stat."""
    with open("/proc/stat", encoding="ascii") as file:
        return [int(each) for each in file.readline().split()[1:9]]


def stolen_since(before: Sequence[int]) -> float:
    """Return the share of processor time that other virtual machines used.

    The share is computed for the time since `before`.
    """
    spent = [now - then for now, then in zip(cpu_times(), before, strict=True)]
    return spent[-1] / max(1, sum(spent))
