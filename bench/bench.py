"""`make bench`: Outlive and every peer that is installed, in one run, as ratios to the floor of that run.

`ROUNDS=10 make bench` is quick and rough. Everything happens in a temporary directory, servers
included; the table, the raw samples and the plots go to `bench/results/`.
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
from stages.hooks import hooks
from stages.launch import launch
from stages.life import life
from stages.line import line
from stages.listing import listing
from stages.memory import memory
from stages.observing import observing
from stages.observing_memory import observing_memory
from stages.own import calls_while_waiting, syncs
from stages.survival import survival
from stages.telling import telling
from stages.throughput import throughput

ROUNDS = int(os.environ.get("ROUNDS", "60"))
SHARE = min(1.0, ROUNDS / 60)
"""How much of the counted stages a quick run does."""
RESULTS = Path(__file__).parent / "results"
BEGAN = time.monotonic()
LOAD = os.getloadavg()[0]
"""How busy others kept the machine before we began."""
TIMES = cpu_times()


def say(what: str) -> None:
    """Where we are, for whoever watches."""
    print(f"{time.monotonic() - BEGAN:5.0f} s  {what}", file=sys.stderr, flush=True)


def measure(place: Path) -> report.Results:
    """Every stage in order: first what is timed, then what is only counted."""
    missing = {**NOT_INSTALLABLE, **{kind.name: why for kind in PEERS if (why := kind.missing())}}
    peers = [kind(place / kind.__name__) for kind in PEERS if kind.name not in missing]
    env = {**os.environ, "OUTLIVE_HOME": str(place / "own")}
    try:
        for peer in tuple(peers):
            say(f"starting {peer.name}")
            try:
                peer.start(1)
            except Exception as error:  # noqa: BLE001 - one broken peer must not cost us the others
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
    observed = observing(place, SHARE, say)
    queued = line(place / "line", SHARE, say)
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
        observing=observed,
        observing_memory=observing_memory(place, say),
        memory=memory(kinds, place, SHARE, say),
        fates=survival([kind for kind in kinds if not kind.is_warm], place, say),
        syncs=synced,
        calls=calls,
        queued=queued,
        missing=missing,
    )


def main() -> None:
    """Measure, write, print."""
    place = Path(tempfile.mkdtemp(prefix="outlive-bench-"))
    os.chdir(place)
    try:
        table = report.write(measure(place), RESULTS)
        say(f"written to {RESULTS}; removing what it was measured with\n")
        print(table)
    finally:
        os.chdir("/")
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
