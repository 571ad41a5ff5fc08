"""Cancelling processes that fork again and again, and tasks that are about to start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import wait_until

if TYPE_CHECKING:
    from tests.support import Bench

HOP = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.setsid()
print("ready", flush=True)
end = time.time() + 20
while time.time() < end:
    if os.fork():
        os._exit(0)
    if "leave" in sys.argv:
        os.setsid()
    time.sleep(float(sys.argv[1]))
"""


@pytest.mark.parametrize("pause", ["0", "0.001", "0.005", "0.02"])
def test_cancel_ends_a_process_that_forks_and_exits_repeatedly(bench: Bench, pause: str) -> None:
    """`cancel` ends a process that forks and exits again and again, because it signals the whole process group."""
    (bench.project / "hop.py").write_text(HOP)
    task = bench.launch(f"{sys.executable} hop.py {pause} & sleep 60")
    wait_until(lambda: "ready" in bench.ok("output", task), "the first fork of the process")
    done = bench.run("cancel", task)
    assert (done.returncode, bench.show(task)["state"]) == (0, "cancelled")
    assert not any(_hoppers(bench) for _ in range(100))


@pytest.mark.parametrize("pause", ["0.001", "0.005", "0.02"])
def test_cancel_ends_or_reports_a_process_that_also_leaves_its_group(bench: Bench, pause: str) -> None:
    """If a process also changes its process group again and again, `cancel` ends it or exits with 5."""
    (bench.project / "hop.py").write_text(HOP)
    task = bench.launch(f"{sys.executable} hop.py {pause} leave & sleep 60")
    wait_until(lambda: "ready" in bench.ok("output", task), "the first fork of the process")
    done = bench.run("cancel", task)
    state = bench.show(task)["state"]
    if any(_hoppers(bench) for _ in range(100)):  # A scan of /proc, by the test or by the keeper, may miss the process.
        assert (done.returncode, state) == (5, "failed")
    else:
        # The keeper may kill the last process only after it has counted this process as a survivor.
        assert (done.returncode, state) in ((0, "cancelled"), (5, "failed"))


def _hoppers(bench: Bench) -> list[str]:
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.readlink(f"/proc/{name}/cwd") == str(bench.project):
                words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
                found += [name] if b"hop.py" in words else []
        except OSError:
            continue
    return found


SLOW_TO_GO = """
import sys
from outlive.cli.main import main
from outlive.service.tasks import run
hand_over = run.hand_over
def slowly(home, launch, *rest):
    print(launch.id, flush=True)
    sys.stdin.readline()
    return hand_over(home, launch, *rest)
run.hand_over = slowly
sys.exit(main(["run", "--", "touch", "ran"]))
"""


def test_cancel_before_the_start_signal_prevents_the_start(bench: Bench) -> None:
    """If a task is cancelled after it was recorded, but before its start signal, its command does not run."""
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_TO_GO],
        env=bench.env, cwd=bench.project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as launching:  # fmt: skip
        assert launching.stdout is not None
        task = launching.stdout.readline().strip()
        assert bench.run("cancel", task).returncode == 0
        launching.communicate("\n")
    assert not (bench.project / "ran").exists()
    shown = bench.show(task)
    assert (shown["state"], shown["evidence"][0]["started"]) == ("cancelled", "no")
