"""Measuring on a noisy machine: interleaved rounds, medians, ratios to a floor of the same round."""

from __future__ import annotations

import os
import statistics
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class Samples:
    """What one case took, round by round, in milliseconds."""

    def __init__(self) -> None:
        self.ms: list[float] = []

    def add(self, seconds: float) -> None:
        """One more round."""
        self.ms.append(seconds * 1000)

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
        return statistics.median(mine / theirs for mine, theirs in zip(self.ms, floor.ms, strict=True))


def interleave(cases: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Samples]:
    """Every case once per round, so that no case gets the quiet half of the hour."""
    samples = {name: Samples() for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            began = time.perf_counter()
            case()
            samples[name].add(time.perf_counter() - began)
    return samples


def spawn(argv: Sequence[str], env: Mapping[str, str], *, quiet: bool = True) -> int:
    """Start a program as cheaply as possible and wait for it; its exit status."""
    actions = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)] if quiet else []
    pid = os.posix_spawn(argv[0], list(argv), dict(env), file_actions=actions)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def pss_kb(pid: int) -> int:
    """The memory a process is charged with, shared pages divided among their users."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))


def pids_named(prefix: str, holding: str) -> list[int]:
    """Processes by the kernel's name for them that have a file below `holding` open."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit():
                with open(f"/proc/{name}/comm") as file:
                    if not file.read().startswith(prefix):
                        continue
                fds = os.listdir(f"/proc/{name}/fd")
                if any(os.readlink(f"/proc/{name}/fd/{fd}").startswith(holding) for fd in fds):
                    found.append(int(name))
        except OSError:
            continue
    return found
