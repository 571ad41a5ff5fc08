"""The program that `make bench` runs.

It measures Outlive and every installed peer, which is another tool that runs commands in the background. `ROUNDS=10
make bench` is quick and rough. All processes, including servers, run in a temporary directory. The table, the samples
and the plots are written to `bench/results/`.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import report
from measure import cpu_times, stolen_since
from peers import NOT_INSTALLABLE, PEERS
from stages.failed import after_failures
from stages.hooks import hooks
from stages.launch import launch
from stages.life import life
from stages.line import line
from stages.listing import listing
from stages.masking import masking
from stages.memory import memory
from stages.observing import observing
from stages.observing_memory import observing_memory
from stages.own import calls_while_waiting, syncs
from stages.requests import requests
from stages.survival import survival
from stages.telling import telling
from stages.throughput import throughput

ROUNDS = int(os.environ.get("ROUNDS", "60"))
SHARE = min(1.0, ROUNDS / 60)
"""The factor for the numbers of tasks and calls. It is below 1 in a run with few rounds."""
RESULTS = Path(__file__).parent / "results"
BEGAN = time.monotonic()
LOAD = os.getloadavg()[0]
"""The load average of the machine before the benchmark began."""
TIMES = cpu_times()


def say(what: str) -> None:
    """Print to stderr what the benchmark does now, with the time since its start."""
    print(f"{time.monotonic() - BEGAN:5.0f} s  {what}", file=sys.stderr, flush=True)


def measure(place: Path) -> report.Results:
    """Run all stages in order: first those that measure times, then those that count."""
    missing = {**NOT_INSTALLABLE, **{kind.name: why for kind in PEERS if (why := kind.missing())}}
    peers = [kind(place / kind.__name__) for kind in PEERS if kind.name not in missing]
    env = {**os.environ, "OUTLIVE_HOME": str(place / "own")}
    try:
        for peer in tuple(peers):
            say(f"starting {peer.name}")
            try:
                peer.start(1)
            except Exception as error:  # noqa: BLE001 - if one of the measured tools fails, the others are still measured
                missing[peer.name] = f"did not start: {error}"
                peer.stop()
                peers.remove(peer)
        launched = launch(peers, env, ROUNDS, say)
        lives = life(peers, env, max(4, ROUNDS // 2), say)
        rates = throughput(peers, env, SHARE, say)
        lists = listing(peers, place, SHARE, say)
    finally:
        for peer in peers:
            peer.stop()
    kinds = [type(peer) for peer in peers]
    told = telling(place, SHARE, say)
    hooked = hooks(place, SHARE, say)
    failed = after_failures(place, SHARE, say)
    observed = observing(place, SHARE, say)
    queued = line(place / "line", SHARE, say)
    masked = masking(SHARE, say)
    say("syncs of a launch")
    synced = syncs(env)
    say("ten seconds of waiting, traced")
    calls = calls_while_waiting(env)
    return report.Results(
        rounds=ROUNDS,
        load=LOAD,
        stolen=stolen_since(TIMES),
        kinds=kinds,
        launch=launched,
        start=lives.start,
        completion=lives.completion,
        rates=rates,
        listing=lists,
        telling=told,
        hooks=hooked,
        after_failures=failed,
        masking=masked,
        observing=observed,
        observing_memory=observing_memory(place, say),
        memory=memory(kinds, place, SHARE, say),
        fates=survival([kind for kind in kinds if not kind.is_warm], place, say),
        syncs=synced,
        calls=calls,
        queued=queued,
        requests=requests(place, say),
        missing=missing,
    )


def main() -> None:
    """Run the benchmark, write its results and print the table."""
    place = Path(tempfile.mkdtemp(prefix="outlive-bench-"))
    os.chdir(place)
    try:
        table = report.write(measure(place), RESULTS)
        say(f"written to {RESULTS}; removing the temporary files\n")
        print(table)
    finally:
        os.chdir("/")
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
