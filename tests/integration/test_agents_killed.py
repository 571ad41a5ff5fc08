"""Many agents at once, while keepers, witnesses and clients are killed."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.agent_steps import Agents
from tests.support import is_alive, kill, wait_until

if TYPE_CHECKING:
    from tests.support import Bench

AGENTS, KILLS = 40, int(os.environ.get("KILLS", "40"))


def victim_of(bench: Bench, task: str, who: str) -> int | None:
    """Return a living process of a task, or None."""
    if who == "keeper":
        return bench.find_keeper(task)
    number = bench.row(task).current.number
    slot = bench.files(task, number).read_slot("process") or {}
    pid = int(slot.get("pid" if who == "command" else "witness", 0)) or None
    return pid if pid is not None and is_alive(pid) else None


def told_to(bench: Bench, session: str) -> list[Any]:
    """Read the session's inbox until it is empty, and return all notices."""
    found: list[Any] = []
    while more := bench.json("inbox", "--session", session)["notices"]:
        found += more
        bench.ok("ack", *(each["id"] for each in more), "--session", session)
    return found


def test_forty_agents_end_once_each_while_their_processes_are_killed(bench: Bench) -> None:
    """Each ending is reported once, answers are exact, no process is left, and at most five run at once."""
    agents, chance = Agents(bench), random.Random(20)
    agents.configure("at_once = 5")
    bench.ok("session", "begin", "--session", "s-1")
    answers, most, kills = {}, 0, 0
    for number in range(AGENTS):
        answer = f"answer {number}: ü漢☃ {chance.randbytes(12).hex()}"
        steps = (f"again? answer {answer}", "say I begin", "call sleep 1", f"answer {answer}")
        options = ("--session", "s-1", "--retries", "2")
        answers[agents.launch(*steps, options=options)] = answer
    for _ in range(KILLS):
        running = [one["id"] for one in bench.json("list", "--state", "running", "--limit", "0")["tasks"]]
        most = max(most, len(running))
        if not running:
            break
        pid = victim_of(bench, chance.choice(running), chance.choice(("keeper", "witness", "command")))
        if pid is not None:
            kill(pid)
            kills += 1
        time.sleep(chance.random() * 0.2)
    until = time.monotonic() + 240
    while bench.run("wait", *answers, "--timeout", "20s").returncode == 4:
        assert time.monotonic() < until, "they did not end"
    shown = {task: bench.show(task) for task in answers}
    assert 1 <= most <= 5
    assert kills >= 8, "the kills must hit something"
    for task, document in shown.items():
        assert document["settled_at"], document
        if document["state"] == "succeeded":
            assert document["agent"]["answer"] == answers[task]
        else:
            assert document["state"] in ("failed", "lost"), document
    assert sum(document["state"] == "succeeded" for document in shown.values()) > AGENTS // 2
    told = [each["task"]["id"] for each in told_to(bench, "s-1") if each["kind"] in ("ended", "lost")]
    assert sorted(told) == sorted(answers), "each ending once"
    wait_until(lambda: not [pid for task in answers for pid in marked_with(task)], "the end of every process")


def marked_with(task: str) -> list[int]:
    """Return the processes that have a task's mark in their environment."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            content = Path(f"/proc/{name}/environ").read_bytes()
        except OSError:
            continue
        if f"OUTLIVE_TASK={task}".encode() in content.split(b"\0"):
            found.append(int(name))
    return found
