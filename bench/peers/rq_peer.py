"""RQ on redis: a process of RQ's forks a child for each function it calls."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import PATIENCE, is_alive, parent_of, until

from peers.protocol import Guard, Peer, Server

if TYPE_CHECKING:
    from collections.abc import Sequence

_HERE = str(Path(__file__).parent)
_KEEP = 86_400


class RqCold(Peer):
    """Submitted by `rq enqueue`."""

    name = "RQ, CLI"
    programs = ("redis-server",)
    record = "redis with its log synced at every write"
    is_durable = True
    waits_inside = True
    is_slow = True
    waiter = "blocked on a redis stream"
    short_tasks = 50
    running_tasks = 20  # an interpreter each: a hundred take a minute to start
    records = 0  # its list is that of the API, below
    _redis: Server | None = None
    _calling: Server | None = None

    @classmethod
    def missing(cls) -> str | None:
        """The client comes with the `bench` extra, the server from Debian."""
        return super().missing() or (None if importlib.util.find_spec("rq") else "not installed: rq from PyPI")

    def start(self, slots: int) -> None:
        """A redis of our own on a socket, and one RQ process per slot."""
        if self._redis is None:
            self._start_redis()
        self.env["PYTHONPATH"] = _HERE
        many = ["worker-pool", "-n", str(slots)] if slots > 1 else ["worker"]
        argv = ["rq", *many, "--quiet", "--url", f"unix://{self._socket}", "bench"]
        self._calling = Server(argv, self.env, self.place / "rq.out")
        self.wait(self.submit(["true"]))

    def _start_redis(self) -> None:
        from redis import Redis  # noqa: PLC0415 - may not be installed
        from rq import Queue  # noqa: PLC0415

        self._socket = f"{self.place}/redis.socket"
        argv = ["redis-server", "--port", "0", "--unixsocket", self._socket, "--dir", str(self.place)]
        durable = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"]
        self._redis = Server(argv + durable, self.env, self.place / "redis.out")
        until(lambda: os.path.exists(self._socket), "redis-server")
        self._client = Redis(unix_socket_path=self._socket, socket_timeout=None)  # or it cannot block for long
        self._queue = Queue("bench", connection=self._client)

    def stop(self) -> None:
        """By their own pids."""
        if self._calling:
            self._calling.end(signal.SIGKILL)
            for pid in self.pids():
                if self._redis and pid != self._redis.pid and is_alive(pid):
                    os.kill(pid, signal.SIGKILL)
        if self._redis:
            self._redis.end(signal.SIGTERM)

    def revive(self, slots: int) -> None:
        """Another RQ process on the same redis."""
        if self._calling:
            self._calling.end(signal.SIGKILL)
        self.start(slots)

    def submit(self, argv: Sequence[str]) -> str:
        """A fresh interpreter that enqueues."""
        words = ["--url", f"unix://{self._socket}", "-q", "bench", "--result-ttl", str(_KEEP)]
        printed = self.run("rq", "enqueue", *words, "rq_task.run_command", f":{json.dumps(list(argv))}")
        return printed.split("'")[-2]  # ... with job-id '...'.

    def wait(self, ticket: str, patience: float = PATIENCE) -> str:
        """Blocked on the stream of its results."""
        return "told" if self._find(ticket).latest_result(timeout=max(1, int(patience))) else "blocked"

    def _find(self, ticket: str) -> Any:
        return self._queue.fetch_job(ticket)

    def finished(self) -> int:
        """The registry of what has ended."""
        return int(self._queue.finished_job_registry.count)

    def code(self, ticket: str) -> int | None:
        """The first half of the result."""
        result = self._find(ticket).return_value()
        return None if result is None else result[0]

    def output(self, ticket: str) -> str:
        """The second half."""
        result = self._find(ticket).return_value()
        return "" if result is None else result[1]

    def show_all(self) -> None:
        """`rq info` counts, it does not list; a program can fetch all that have ended."""
        registry = self._queue.finished_job_registry
        type(self._find(registry.get_job_ids()[0])).fetch_many(registry.get_job_ids(), connection=self._client)

    def guards(self, task: int) -> list[Guard]:
        """The lasting process, and the child that it forked for this call."""
        child = parent_of(task)
        lasting = self._calling.pid if self._calling else 0
        return [Guard("the lasting process", (lasting,)), Guard("it and its child", (lasting, child))]


class RqApi(RqCold):
    """Submitted from a running program: the command does not run yet when the call returns."""

    name = "RQ, API"
    is_warm = True
    short_tasks = 200
    records = 1000

    def submit(self, argv: Sequence[str]) -> str:
        """Enqueue."""
        return str(self._queue.enqueue("rq_task.run_command", list(argv), result_ttl=_KEEP).id)
