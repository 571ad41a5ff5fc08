"""`make bench`: what a launch, an ending, a wait and a running task cost here, as ratios to a bare start."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from measure import Samples, interleave, pids_named, pss_kb, spawn

from outlive import Outlive

OUTLIVE = str(Path(sysconfig.get_path("scripts")) / "outlive")
BARE = [sys.executable, "-I", "-c", "pass"]
ROUNDS = int(os.environ.get("ROUNDS", "60"))
RUNNING = 100


def launch(env: dict[str, str], client: Outlive) -> list[str]:
    """A launch by the command line and through the SDK, beside the bare interpreter."""
    client.run(["true"]).wait()
    cases = {
        "bare": lambda: spawn(BARE, env),
        "cli": lambda: spawn([OUTLIVE, "run", "--", "true"], env),
        "sdk": lambda: client.run(["true"]),
    }
    samples = interleave(cases, ROUNDS)
    count, seconds = syncs(env)
    floor = samples["bare"]
    net = Samples()
    for ms in samples["cli"].ms:
        net.add((ms / 1000) - seconds)
    return [
        f"| `python -I -c pass` | {floor.median:.1f} | {floor.p95:.1f} | 1 | |",
        row("`outlive run` without its syncs", net, floor, 2.5),
        f"| its {count} syncs, timed apart | {seconds * 1000:.1f} | | {seconds * 1000 / floor.median:.2f} | |",
        row("SDK `run`, second and later", samples["sdk"], floor, 0.8),
    ]


def row(name: str, samples: Samples, floor: Samples, goal: float) -> str:
    """One line of the table."""
    ratio = samples.ratio_to(floor)
    met = "met" if ratio <= goal else "missed"
    return f"| {name} | {samples.median:.1f} | {samples.p95:.1f} | {ratio:.2f} | at most {goal}: {met} |"


def syncs(env: dict[str, str]) -> tuple[int, float]:
    """How often a launch syncs until it returns, and how long that takes: median over nine launches."""
    counts, times = [], []
    for _ in range(9):
        traced = subprocess.run(
            ["strace", "-f", "-T", "-e", "trace=fsync,fdatasync,write", "-s", "12", OUTLIVE, "run", "--", "sleep", "1"],
            env=env, capture_output=True, text=True, check=True,
        ).stderr  # fmt: skip
        until = traced.find('write(1, "t')
        taken = re.findall(r"f(?:data)?sync\(\d+\).*<([\d.]+)>", traced[:until])
        counts.append(len(taken))
        times.append(sum(map(float, taken)))
    return sorted(counts)[4], sorted(times)[4]


def completion(client: Outlive) -> str:
    """From the command's last instruction until a blocked waiter knows the ending."""
    samples = Samples()
    for _ in range(ROUNDS):
        task = client.run("sleep 0.2; exec date +%s.%N").wait()
        samples.add(time.time() - float(task.output()))
    met = "met" if samples.median <= 5 else "missed"
    return f"| completion to a blocked waiter | {samples.median:.1f} | {samples.p95:.1f} | | at most 5 ms: {met} |"


def waiting(env: dict[str, str], client: Outlive) -> str:
    """System calls of a waiter during ten seconds."""
    task = client.run(["sleep", "14"])
    waiter = subprocess.Popen([OUTLIVE, "wait", task.id], env=env, stdout=subprocess.DEVNULL)
    time.sleep(1)
    traced = subprocess.run(
        ["timeout", "-s", "INT", "10", "strace", "-f", "-o", "/dev/stdout", "-p", str(waiter.pid)],
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    waiter.wait()
    calls = [line for line in traced.splitlines() if "poll(" not in line and "detached" not in line and line.strip()]
    return f"| system calls of a waiter in 10 s | {len(calls)} | | | none: {'met' if not calls else 'missed'} |"


def memory(env: dict[str, str], home: str) -> str:
    """PSS of keeper and witness with a hundred tasks, each launched by its own command line."""
    for _ in range(RUNNING):
        spawn([OUTLIVE, "run", "--", "sleep", "300"], env)
    pids = pids_named("outlive-", home)
    each = sum(map(pss_kb, pids)) / RUNNING / 1024
    subprocess.run([OUTLIVE, "cancel", "--all"], env=env, stdout=subprocess.DEVNULL, check=True)
    return f"| MB PSS per running task at {RUNNING} | {each:.1f} | | | at most 9: {'met' if each <= 9 else 'missed'} |"


def main() -> None:
    """Print the table."""
    place = Path(tempfile.mkdtemp(prefix="outlive-bench-"))
    home = str(place / "state")
    env = {**os.environ, "OUTLIVE_HOME": home}
    os.chdir(place)
    client = Outlive(home=home)
    try:
        print("| what | median ms | p95 ms | ratio to a bare start | goal |\n|---|---|---|---|---|")
        for line in launch(env, client):
            print(line, flush=True)
        print(completion(client), flush=True)
        print(waiting(env, client), flush=True)
        print(memory(env, home), flush=True)
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
