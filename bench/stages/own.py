"""The stage that counts the disk syncs of a launch and the system calls of a wait.

Only Outlive is measured.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import time
from typing import TYPE_CHECKING

from peers.protocol import which

if TYPE_CHECKING:
    from collections.abc import Mapping

_TRACED = 9


def syncs(env: Mapping[str, str]) -> tuple[int, float]:
    """Return how many disk syncs a launch makes, and how many seconds they take.

    The results are medians of nine launches.
    """
    counts, times = [], []
    for _ in range(_TRACED):
        traced = subprocess.run(
            ["strace", "-f", "-T", "-e", "trace=fsync,fdatasync,write", "-s", "12",
             which("outlive"), "run", "--", "sleep", "0.5"],
            env=env, capture_output=True, text=True, check=True,
        ).stderr  # fmt: skip
        until_told = traced.find('write(1, "t')
        taken = re.findall(r"f(?:data)?sync\(\d+\).*<([\d.]+)>", traced[:until_told])
        counts.append(len(taken))
        times.append(sum(map(float, taken)))
    return int(statistics.median(counts)), statistics.median(times)


def calls_while_waiting(env: Mapping[str, str]) -> int:
    """Return the number of system calls that `outlive wait` makes in ten seconds.

    The system call in which `outlive wait` sleeps does not count.
    """
    task = subprocess.run([which("outlive"), "run", "--", "sleep", "14"], env=env, capture_output=True, check=True)
    waiter = subprocess.Popen(
        [which("outlive"), "wait", task.stdout.decode().strip()], env=env, stdout=subprocess.DEVNULL
    )
    time.sleep(1)
    traced = subprocess.run(
        ["timeout", "-s", "INT", "10", "strace", "-f", "-o", "/dev/stdout", "-p", str(waiter.pid)],
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    waiter.wait()
    lines = [line for line in traced.splitlines() if line.strip()]
    if not any("detached" in line for line in lines):
        raise RuntimeError("strace did not even see the call that the waiter sleeps in")
    return sum("poll(" not in line and "detached" not in line for line in lines)
