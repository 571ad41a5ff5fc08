"""Samples of a noisy machine: the measured programs take turns in each round.

The results are medians, and ratios of two programs in the same round.
"""

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
    """The measured times of one program in milliseconds, by the number of the round."""

    def __init__(self) -> None:
        self.by_round: dict[int, float] = {}

    def add(self, seconds: float, turn: int | None = None) -> None:
        """Add the time that was measured in one round."""
        self.by_round[len(self.by_round) if turn is None else turn] = seconds * 1000

    @property
    def ms(self) -> list[float]:
        """The times of all rounds in milliseconds, in the order of the rounds."""
        return list(self.by_round.values())

    @property
    def median(self) -> float:
        """The median of all times, in milliseconds."""
        return statistics.median(self.ms)

    @property
    def p95(self) -> float:
        """The time in milliseconds that 95 % of the rounds do not exceed."""
        return sorted(self.ms)[int(len(self.ms) * 0.95)]

    def ratio_to(self, floor: Samples) -> float:
        """Return the median of the ratios to another program's times, round by round.

        A disturbance of the machine slows down both programs of a round, so their ratio hardly changes.
        """
        return statistics.median(mine / floor.by_round[turn] for turn, mine in self.by_round.items())


def turns(rounds: int, *, slow: bool) -> range:
    """Return the numbers of the rounds in which a program is measured.

    A slow program is measured only in every third round, so that the benchmark ends in minutes.
    """
    return range(0, rounds, SLOW_ROUNDS if slow else 1)


class Ran(NamedTuple):
    """The exit code and the output of a program.

    The exit code is None if the program was killed because it took too long.
    """

    code: int | None
    out: str


def spawn(argv: Sequence[str], env: Mapping[str, str], patience: float | None = None) -> Ran:
    """Start a program with little overhead, and wait until it ends.

    The output goes to a file in memory. With a pipe, a daemon that the program leaves running would keep the pipe open,
    and reading would not end.
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

    The kernel wakes the caller when the process ends, so no polling adds to a measured time.
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

    Use this only where the time is not measured, or is many seconds. Raises `TimeoutError` after `patience` seconds.
    """
    deadline = time.monotonic() + patience
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {patience:.0f} s")
        time.sleep(pause)


def pss_kb(pid: int) -> int:
    """Return the PSS of a process in kB. Return 0 if the process has ended.

    PSS is the memory of a process, with each shared page divided among the processes that share it.
    """
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    except OSError:
        return 0


def parent_of(pid: int) -> int:
    """Return the process id of a process's parent."""
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def is_alive(pid: int) -> bool:
    """Return whether a process runs. A zombie does not count as running."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _pids_where(holds: Callable[[str], bool]) -> list[int]:
    """Return the ids of the processes whose directory in /proc fulfils a condition.

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
    """Return the ids of the processes whose environment contains the string `mark`.

    The benchmark sets such a string for each measured tool, so these are the processes of one tool.
    """
    return _pids_where(lambda proc: mark.encode() in _read(f"{proc}/environ").split(b"\0"))


def pids_running(argv: Sequence[str]) -> list[int]:
    """Return the ids of the processes with exactly this command line."""
    wanted = "\0".join(argv).encode() + b"\0"
    return _pids_where(lambda proc: _read(f"{proc}/cmdline") == wanted)


def pids_mentioning(words: str, parent: int) -> list[int]:
    """Return the ids of the children of a process whose command line has a string."""
    candidates = _pids_where(lambda proc: words.encode() in _read(f"{proc}/cmdline"))
    return [pid for pid in candidates if parent_of(pid) == parent]


def pids_holding(top: str, prefix: str) -> list[int]:
    """Return the ids of the processes that have a file below the directory `top` open.

    Only processes whose name in the kernel begins with `prefix` are returned.
    """

    def holds(proc: str) -> bool:
        if not _read(f"{proc}/comm").startswith(prefix.encode()):
            return False
        return any(path.startswith(top) for path in opened_by(int(proc.rpartition("/")[2])))

    return _pids_where(holds)


def cpu_times() -> list[int]:
    """Return the times in /proc/stat: ticks since boot, summed over all processors.

    The list has a number for each kind of use, such as user programs, the kernel or idle time.
    """
    with open("/proc/stat", encoding="ascii") as file:
        return [int(each) for each in file.readline().split()[1:9]]


def stolen_since(before: Sequence[int]) -> float:
    """Return the share of processor time that other virtual machines used.

    `before` is an earlier result of `cpu_times`. The share is computed for the time since then.
    """
    spent = [now - then for now, then in zip(cpu_times(), before, strict=True)]
    return spent[-1] / max(1, sum(spent))
