"""Sweeps: runs of a task in which a process is killed, or its call fails, at one system call after the other.

A run is one task from its launch to its last record. A point is the number of a system call of one process. A sweep
visits the points in order, until the run ends before it reaches a point. The invariants must hold after each point, in
whatever order the processes run.
"""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Final

from tests.crash.invariants import Point, point_of, violations
from tests.crash.life import KEEPER, LAUNCHER, ORDINARY, UNSTARTABLE, WITNESS, Aftermath, Life
from tests.crash.remains import bundles_without_row
from tests.crash.tree import FailAt, KillAt, Trace

WRITES: Final = frozenset(
    {"write", "pwrite64", "fsync", "fdatasync", "ftruncate", "fallocate", "openat", "rename", "mkdir", "mknodat"}
)
# A kill after one of these calls is the same as a kill before it. They only read, or take a lock that the kernel frees.
_TRACELESS: Final = frozenset(
    {"chdir", "fcntl", "fstat", "getcwd", "getdents64", "geteuid", "getpid", "getrandom", "gettid", "lstat"}
    | {"newfstatat", "poll", "pread64", "prlimit64", "read", "set_robust_list", "stat"}
)
# A sweep ends after this number of calls in a row that no run reached. One is not enough, because the order in which
# processes run changes their number of calls by one or two.
_LAST_MISSES: Final = 3
_TRIES: Final = 20
_HUNTS = 3
_NEVER: Final = 1 << 30
_MOST_HANGS: Final = 3  # Each of these runs takes seconds, and further runs would show nothing new.


@dataclass(frozen=True)
class Sweep:
    """The settings of a series of crash tests: the process, the kind of run, and the kill or error."""

    role: str
    also: tuple[str, ...] = ()
    errno: int | None = None  # the error with which calls of these names fail, or None to kill the process
    persistent: bool = False  # whether every later call of these names fails, too
    names: frozenset[str] = WRITES
    script: str = ORDINARY
    since: str | None = None  # The series begins at the first call of this name. Before it, the process is alone.
    distinct: bool = False  # whether to leave out kills after a call in `_TRACELESS`, which equal kills before the call
    ruin: str | None = None  # how a task loses its processes before the process that settles it is killed
    looks: int = 3  # the number of runs without a kill; the shortest of them gives the number of calls

    def stage(self) -> Life:
        """Create the state directory for the runs of this series."""
        return Life(self.script)

    def disturb(self, life: Life, number: int) -> Trace:
        """Run one task to its end. At the system call with this number, kill the process or let the call fail."""
        program = life.reconcile if self.ruin else None
        if self.errno is None:
            return life.trace(program, kill=KillAt(self.role, number, self.also))
        fail = FailAt(self.role, number, self.names, self.errno, self.persistent)
        return life.trace(program, fail=fail)

    def count(self, clean: Trace) -> int:
        """Return the number of system calls of the process in a run without a kill or failure."""
        calls = clean.calls[self.role]
        return len(calls) if self.errno is None else sum(name in self.names for name in calls)

    def points(self, clean: Trace) -> list[int]:
        """Return the numbers of the system calls at which a kill or failure is tried."""
        calls = clean.calls[self.role]
        begin = calls.index(self.since) if self.since else 0
        return [
            number
            for number in range(begin, self.count(clean))
            if number == begin or not self.distinct or calls[number - 1] not in _TRACELESS
        ]

    def judge(self, life: Life, trace: Trace, ruined: Point | None) -> tuple[str, list[str]]:
        """Let callers recover from a kill or failure. Return the outcome and the names of the broken guarantees."""
        after = life.clear_up(trace, ask_again=ruined is None)
        point = ruined or point_of(after, self.role if self.errno else None, startable=self.script != UNSTARTABLE)
        broken = violations(after, point)
        # If every later call fails too, the bundle cannot be removed.
        if self.errno and not self.persistent and (left := bundles_without_row(life.home, after.settled)):
            broken.append(f"bundle without a row: {left}")
        return _outcome(after), broken


@dataclass
class Report:
    """The result of one series of crash tests."""

    name: str
    expected: int = 0
    points: int = 0
    missed: list[int] = field(default_factory=list)
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        head = f"{self.name}: {self.points} points of {self.expected}, {self.seconds:.1f} s"
        lines = [f"{head}, {len(self.violations)} violations"]
        lines += [f"  {count:4} {outcome}" for outcome, count in self.outcomes.most_common()]
        lines += [f"  VIOLATION {text}" for text in self.violations[:12]]
        return "\n".join(lines)


def run_sweep(name: str, sweep: Sweep) -> Report:
    """Try a kill or failure at every system call of a series, and return the report.

    This function must be called inside `drive`.
    """
    began, report = time.monotonic(), Report(name)
    with closing(sweep.stage()) as life:
        ruined = _ruin(life, sweep.ruin) if sweep.ruin else None
        # Some runs have more calls than others. The series goes on until no run reaches a call.
        clean = min((_clean(life, sweep) for _ in range(sweep.looks)), key=sweep.count)
        points, end = sweep.points(clean), sweep.count(clean)
        report.expected = len(points)
        for number in chain(points, count(end)):
            if number >= end and len(report.missed) >= _LAST_MISSES:
                break
            _visit(report, life, sweep, number, ruined)
            if sum("hung" in text for text in report.violations) >= _MOST_HANGS:
                break
        # Numbers after the last call are no calls. Any other call that was not reached exists, but the other processes
        # were faster in that run. It is tried again until it is reached.
        missed, report.missed = [miss for miss in report.missed if miss < end], []
        for _ in range(_TRIES):
            for number in missed:
                _visit(report, life, sweep, number, ruined)
            missed, report.missed = report.missed, []
        report.missed = missed
    report.seconds = time.monotonic() - began
    return report


def hunt(
    name: str,
    sweep: Sweep,
    plant: Callable[[], object],
    prey: str,
    near: tuple[str, int] | None,
) -> Report:
    """Plant a bug, and try kills or failures until a run breaks the guarantee with the name `prey`.

    Calls nearest to the beginning of the search come first. The order in which processes run is random, so all calls
    are tried several times.
    """
    began, report = time.monotonic(), Report(name)
    with closing(sweep.stage()) as life:
        ruined = _ruin(life, sweep.ruin) if sweep.ruin else None
        plant()
        clean = _clean(life, sweep)
        report.expected = sweep.count(clean)
        place = _place_of(clean.calls[sweep.role], *near) if near else 0
        nearest_first = sorted(range(report.expected), key=lambda number: abs(number - place))
        for number in nearest_first * _HUNTS:
            _visit(report, life, sweep, number, ruined)
            if any(prey in text for text in report.violations):
                break
    report.seconds = time.monotonic() - began
    return report


def _place_of(calls: list[str], name: str, which: int) -> int:
    return [number for number, call in enumerate(calls) if call == name][which]


def _clean(life: Life, sweep: Sweep) -> Trace:
    """Run a task without a kill or failure. The run is traced like the others, so that it has the same timing."""
    return life.trace(life.reconcile if sweep.ruin else None, kill=KillAt(sweep.role, _NEVER))


def _visit(report: Report, life: Life, sweep: Sweep, number: int, ruined: Point | None) -> None:
    trace = sweep.disturb(life, number)
    if not trace.hit:
        report.missed.append(number)
        return
    report.points += 1
    outcome, broken = sweep.judge(life, trace, ruined)
    call = trace.killed or "+".join(dict.fromkeys(trace.failed))
    report.outcomes[outcome] += 1
    report.violations += [f"{number} ({call}): {text}" for text in broken]


def _outcome(after: Aftermath) -> str:
    said = "asked again: " if after.again else ""
    endings = [
        f"{a.state} {'-' if a.exit_code is None else a.exit_code}"
        f"{f' signal {a.signal}' if a.signal else ''} by {a.settled_by}"
        for task, _ in after.settled
        for a in task.attempts
    ]
    return f"{said}{', then '.join(endings) or 'no task'}; ran {after.ran[1]}"


def _ruin(life: Life, kind: str) -> Point:
    """End the keeper and the witness of a task, which leaves the state from which every run begins."""
    clean = life.trace()
    if kind == "recorded":
        number = len(clean.calls[KEEPER])
        while not (life.count_runs() and life.snapshot()[0][0].state == "running"):
            number -= 1
            life.trace(kill=KillAt(KEEPER, number))
        point = Point(dead=frozenset({KEEPER}), keeper_lived=False, began=True)
    elif kind == "unrecorded":
        waits = clean.calls[WITNESS].index("waitid")
        dead = life.trace(kill=KillAt(WITNESS, waits, (LAUNCHER, KEEPER))).victims
        point = Point(dead=frozenset(dead), keeper_lived=False, began=True)
    else:
        forks = clean.calls[KEEPER].index("clone")
        dead = life.trace(kill=KillAt(KEEPER, forks, (LAUNCHER,))).victims
        point = Point(dead=frozenset(dead), keeper_lived=False, began=False)
    life.freeze()
    return point
