"""Kills of keepers and witnesses at random times, while commands read and wait."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tests.support import kill, open_files, processes_named

if TYPE_CHECKING:
    from tests.support import Bench

TASKS = 40


def test_random_kills_leave_one_correct_ending_for_each_task(bench: Bench) -> None:
    """Each task ran once, has one notice, and is either failed with its own exit code or lost."""
    source = random.Random(20261115)
    script = "echo x >> ran-$OUTLIVE_TASK; sleep 0.{}; exit 3"
    with ThreadPoolExecutor(6) as pool:
        ids = list(pool.map(lambda n: bench.launch(script.format(n % 9 + 1)), range(TASKS)))
        shots = [pool.submit(_shoot, bench, source.random()) for _ in range(TASKS)]
        readers = [pool.submit(bench.run, "list", "--limit", "5") for _ in range(8)]
        waiting = pool.submit(bench.run, "wait", *ids, "--timeout", "25s")
        for shot in shots:
            shot.result()
        for reader in (*readers, waiting):
            assert reader.result().returncode in (0, 1)
    bench.run("wait", *ids)
    for task in bench.json("list", "--limit", "0")["tasks"]:
        shown = bench.show(task["id"])
        assert shown["state"] in ("failed", "lost"), shown["state"]
        assert shown["exit_code"] in (3, None)
        assert shown["state"] == "lost" or shown["exit_code"] == 3 or shown["signal"] == 9
        assert len(shown["notices"]) == 1
        assert shown["delete_after"] is not None
        ran = bench.project / f"ran-{task['id']}"
        assert ran.read_text() == "x\n"


def _shoot(bench: Bench, luck: float) -> None:
    """Kill a keeper or witness of this test. The random number `luck` selects which one."""
    ours = [
        pid
        for pid in processes_named("outlive-keeper", "outlive-witness")
        if any(path.startswith(str(bench.state)) for path in open_files(pid))
    ]
    if ours:
        kill(ours[int(luck * len(ours))])
