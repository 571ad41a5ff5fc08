"""Many agents run at the same time, while their keepers, witnesses and clients are killed."""

from __future__ import annotations

import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outlive.linux.processes import KEEPER_NAME
from tests.agent_steps import Agents
from tests.support import is_alive, kill, open_files, processes_named, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from tests.support import Bench

AGENTS, SLOTS, KILLS = 40, 5, int(os.environ.get("KILLS", "40"))
SEED = int(os.environ.get("SEED", "20"))
LONGEST_S = 240


def victim_of(bench: Bench, task: str, who: str) -> int | None:
    """Return the id of a running process of a task's newest attempt. Returns None if the process has ended."""
    files = bench.files(task, bench.row(task).current.number)
    if who == "keeper":
        return next((pid for pid in processes_named(KEEPER_NAME) if files.control in open_files(pid)), None)
    slot = files.read_slot("process") or {}
    pid = int(slot.get("pid" if who == "command" else "witness", 0)) or None
    return pid if pid is not None and is_alive(pid) else None


class Killer:
    """A loop that kills random processes of running agents, one after the other."""

    def __init__(self, bench: Bench) -> None:
        self._bench, self._chance = bench, random.Random(SEED)
        self.is_over = threading.Event()
        self.victims: list[tuple[str, str]] = []
        """The task and the role of each killed process."""
        self.most = 0
        """The greatest number of agents that ran at the same time."""

    def __call__(self) -> None:
        """Kill processes until all agents have ended or `KILLS` processes were killed."""
        while len(self.victims) < KILLS and not self.is_over.is_set():
            running = [each["id"] for each in self._bench.json("list", "--state", "running", "--limit", "0")["tasks"]]
            self.most = max(self.most, len(running))
            if running:
                self._kill(self._chance.choice(running), self._chance.choice(("keeper", "witness", "command")))
            self.is_over.wait(self._chance.random() * 0.4)

    def _kill(self, task: str, who: str) -> None:
        pid = victim_of(self._bench, task, who)
        if pid is not None:
            kill(pid)
            self.victims.append((task, who))


def heard_by(bench: Bench, session: str) -> list[Any]:
    """Read the notices of a session until no more come, and return all of them."""
    found: list[Any] = []
    while more := bench.json("inbox", "--session", session)["notices"]:
        found += more
        bench.ok("ack", *(each["id"] for each in more), "--session", session)
    return found


def check_endings(bench: Bench, launch: Callable[[int, str], str]) -> None:
    """Launch forty agents, kill random processes of theirs, and check every ending.

    `launch` gets a number and the answer that the agent's model gives, and returns the id of the task. The session
    reads its notices meanwhile. An agent may end without an answer only if one of its processes was killed.
    """
    chance, killer = random.Random(SEED), Killer(bench)
    bench.ok("session", "begin", "--session", "s-1")
    answers: dict[str, str] = {}
    heard: list[Any] = []
    with ThreadPoolExecutor(1) as pool:
        killing = pool.submit(killer)
        try:
            for number in range(AGENTS):
                answer = f"answer {number}: ü漢☃ {chance.randbytes(12).hex()}"
                answers[launch(number, answer)] = answer
            until = time.monotonic() + LONGEST_S
            while bench.run("wait", *answers, "--no-ack", "--timeout", "2s").returncode == 4:
                heard += heard_by(bench, "s-1")
                assert time.monotonic() < until, f"some agents did not end within {LONGEST_S} s"
        finally:
            killer.is_over.set()
        killing.result()
    heard += heard_by(bench, "s-1")
    assert 1 <= killer.most <= SLOTS
    assert len(killer.victims) >= min(KILLS, AGENTS) // 2, "too few processes were killed"
    _check_answers(bench, answers, {task for task, _ in killer.victims})
    told = [each["task"]["id"] for each in heard if each["kind"] in ("ended", "lost")]
    assert sorted(told) == sorted(answers), "an ending was not reported, or was reported twice"
    wait_until(lambda: not [pid for task in answers for pid in marked_with(task)], "the end of every process")


def _check_answers(bench: Bench, answers: Mapping[str, str], killed: Collection[str]) -> None:
    succeeded = 0
    for task, answer in answers.items():
        document = bench.show(task)
        assert document["settled_at"], document
        if document["state"] == "succeeded":
            succeeded += 1
            assert document["agent"]["answer"] == answer
        else:
            assert task in killed, document
            assert document["state"] in ("failed", "lost", "timed_out"), document
    assert succeeded > AGENTS // 2


def test_forty_agents_end_once_each_while_their_processes_are_killed(bench: Bench) -> None:
    """Forty agents end once each, with one notice and the exact answer, while their processes are killed.

    No process is left, and at most five agents run at the same time.
    """
    agents = Agents(bench)
    agents.configure(f"at_once = {SLOTS}")

    def launch(_: int, answer: str) -> str:
        steps = (f"again? answer {answer}", "say I begin", "call sleep 2", f"answer {answer}")
        return agents.launch(*steps, options=("--session", "s-1", "--retries", "2"))

    check_endings(bench, launch)


def marked_with(task: str) -> list[int]:
    """Return the processes whose environment has the variable `OUTLIVE_TASK` of a task."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            content = Path(f"/proc/{name}/environ").read_bytes()
        except OSError:
            continue
        if f"OUTLIVE_TASK={task}".encode() in content.split(b"\0"):
            found.append(int(name))
    return found
