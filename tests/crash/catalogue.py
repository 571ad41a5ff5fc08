"""All series of crash tests by name, and a program that runs them, two at a time.

A series, called a sweep, kills a process or fails a system call, once at each system call. `python -m
tests.crash.catalogue` runs all sweeps, or those that its arguments name, and prints their reports.
"""

import errno
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tests.crash.deliverer import AT_ONCE, HAND_OFF, IN_JSON, Delivery
from tests.crash.farewell import Farewell
from tests.crash.life import (
    ADOPTED,
    ADOPTER,
    AGAIN,
    COMMAND,
    GATED,
    INTERMEDIATE,
    KEEPER,
    LAUNCHER,
    QUEUED,
    UNSTARTABLE,
    WITNESS,
)
from tests.crash.mutants import MUTANTS as OF_LIVES
from tests.crash.mutants import Mutant
from tests.crash.mutants_of_telling import MUTANTS as OF_TELLING
from tests.crash.ptrace import PIPE_WRITE
from tests.crash.sweep import Report, Sweep, hunt, run_sweep
from tests.crash.tree import drive

# The longest sweeps come first, so that no long one runs alone at the end.
SWEEPS: Final[dict[str, Sweep]] = {
    "kill the keeper": Sweep(KEEPER),
    "kill the keeper of a command that runs on": Sweep(KEEPER, script=GATED, since=PIPE_WRITE, looks=7),
    "kill keeper and witness": Sweep(KEEPER, also=(WITNESS,), since="clone"),
    "kill who ends a session": Farewell(distinct=True),
    "kill the launcher": Sweep(LAUNCHER),
    "kill the keeper of a task in line": Sweep(KEEPER, script=QUEUED, since="openat"),
    "kill the launcher of a task in line": Sweep(LAUNCHER, script=QUEUED, since="clone"),
    "kill who tells": Delivery(),
    "kill who hands off": Delivery(script=HAND_OFF, distinct=True),
    "kill who tells in JSON": Delivery(script=IN_JSON, since="flock", distinct=True),
    "kill who tells and acknowledges": Delivery(script=AT_ONCE, since="flock", distinct=True),
    "kill launcher and keeper": Sweep(LAUNCHER, also=(KEEPER,), since="clone"),
    "kill the adopter": Sweep(ADOPTER, script=ADOPTED),
    "kill adopter and witness": Sweep(ADOPTER, also=(WITNESS,), script=ADOPTED),
    "kill the reconciler of a recorded end": Sweep(LAUNCHER, ruin="recorded"),
    "kill the reconciler of an unseen end": Sweep(LAUNCHER, ruin="unrecorded"),
    "kill the reconciler of what never began": Sweep(LAUNCHER, ruin="unbegun"),
    "kill the witness": Sweep(WITNESS),
    "kill witness and keeper": Sweep(WITNESS, also=(KEEPER,)),
    "kill witness and command": Sweep(WITNESS, also=(COMMAND,)),
    "kill the keeper that had another task": Sweep(KEEPER, script=AGAIN, since="recvmsg", distinct=True, looks=7),
    "kill the witness that had another task": Sweep(WITNESS, script=AGAIN, since="recvmsg"),
    "kill its spawner": Sweep(INTERMEDIATE, script=AGAIN, since="sendmsg", distinct=True),
    "kill the command": Sweep(COMMAND),
    "kill the intermediate": Sweep(INTERMEDIATE),
    "kill what cannot be executed": Sweep(COMMAND, script=UNSTARTABLE),
    "disk error in what cannot be executed": Sweep(COMMAND, errno=errno.EIO, script=UNSTARTABLE),
    **{
        f"{word} in the {who}{', and on' if persistent else ''}": Sweep(role, errno=code, persistent=persistent)
        for word, code in (("disk full", errno.ENOSPC), ("disk error", errno.EIO))
        for who, role in (("keeper", KEEPER), ("launcher", LAUNCHER), ("witness", WITNESS))
        for persistent in (False, True)
    },
}

MUTANTS: Final[dict[str, Mutant]] = {**OF_LIVES, **OF_TELLING}

_ROOT: Final = Path(__file__).parents[2]


def run_apart(names: Iterable[str]) -> list[Report]:
    """Run the given series of crash tests in separate processes, two at a time."""
    processors: SimpleQueue[int] = SimpleQueue()
    for processor in sorted(os.sched_getaffinity(0))[:2]:
        processors.put(processor)

    def run_one(name: str) -> Report:
        processor = processors.get()
        try:
            done = subprocess.run(
                [sys.executable, "-m", "tests.crash.catalogue", "--on", str(processor), name],
                cwd=_ROOT,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            processors.put(processor)
        if done.returncode:
            return Report(name, violations=[f"the sweep itself failed: {done.stderr}"])
        found = json.loads(done.stdout)
        return Report(**{**found, "outcomes": Counter(found["outcomes"])})

    with ThreadPoolExecutor(processors.qsize()) as pool:
        return list(pool.map(run_one, names))


def _run_here(name: str) -> Report:
    if name in SWEEPS:
        return run_sweep(name, SWEEPS[name])
    bug = MUTANTS[name]
    return hunt(name, bug.sweep, bug.plant, bug.caught_by, bug.near)


def main(words: list[str]) -> int:
    """Run the named series of crash tests, or all of them. Return 1 if a guarantee was broken."""
    if words[:1] == ["--on"]:
        os.sched_setaffinity(0, {int(words[1])})
        sys.stdout.write(json.dumps(vars(drive(lambda: _run_here(words[2])))))
        return 0
    reports = run_apart(words or SWEEPS)
    for report in reports:
        sys.stdout.write(f"{report}\n")
    sys.stdout.write(f"{sum(report.points for report in reports)} points\n")
    return int(any(report.violations for report in reports))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
