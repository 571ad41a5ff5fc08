"""RQ on redis: a worker process of RQ forks a child for each function call."""

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
    """RQ, with the command `rq enqueue` for each task."""

    name = "RQ, CLI"
    programs = ("redis-server",)
    record = "redis with its log synced at every write"
    is_durable = True
    waits_inside = True
    is_slow = True
    waiter = "blocked on a redis stream"
    short_tasks = 50
    running_tasks = 20  # each task needs a Python interpreter, and a hundred take a minute to start
    records = 0  # the stage that measures lists measures RqApi instead
    _redis: Server | None = None
    _calling: Server | None = None

    @classmethod
    def missing(cls) -> str | None:
        """Return why RQ cannot be measured. Return None if it is installed.

        The optional dependencies `bench` of Outlive install rq, and a Debian package installs redis-server.
        """
        return super().missing() or (None if importlib.util.find_spec("rq") else "not installed: rq from PyPI")

    def start(self, slots: int) -> None:
        """Start redis on a Unix socket, and one RQ process per task that may run at once."""
        if self._redis is None:
            self._start_redis()
        self.env["PYTHONPATH"] = _HERE
        many = ["worker-pool", "-n", str(slots)] if slots > 1 else ["worker"]
        argv = ["rq", *many, "--quiet", "--url", f"unix://{self._socket}", "bench"]
        self._calling = Server(argv, self.env, self.place / "rq.out")
        self.wait(self.submit(["true"]))

    def _start_redis(self) -> None:
        from redis import Redis  # noqa: PLC0415 - the package may not be installed
        from rq import Queue  # noqa: PLC0415

        self._socket = f"{self.place}/redis.socket"
        argv = ["redis-server", "--port", "0", "--unixsocket", self._socket, "--dir", str(self.place)]
        durable = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"]
        self._redis = Server(argv + durable, self.env, self.place / "redis.out")
        until(lambda: os.path.exists(self._socket), "redis-server")
        self._client = Redis(unix_socket_path=self._socket, socket_timeout=None)  # without a timeout for long reads
        self._queue = Queue("bench", connection=self._client)

    def stop(self) -> None:
        """End the processes of RQ and redis by their process ids."""
        if self._calling:
            self._calling.end(signal.SIGKILL)
            for pid in self.pids():
                if self._redis and pid != self._redis.pid and is_alive(pid):
                    os.kill(pid, signal.SIGKILL)
        if self._redis:
            self._redis.end(signal.SIGTERM)

    def revive(self, slots: int) -> None:
        """Start another RQ process that uses the same redis server."""
        if self._calling:
            self._calling.end(signal.SIGKILL)
        self.start(slots)

    def submit(self, argv: Sequence[str]) -> str:
        """Submit a command by a new interpreter that runs `rq enqueue`."""
        words = ["--url", f"unix://{self._socket}", "-q", "bench", "--result-ttl", str(_KEEP)]
        printed = self.run("rq", "enqueue", *words, "rq_task.run_command", f":{json.dumps(list(argv))}")
        return printed.split("'")[-2]  # the output ends with: job-id '...'.

    def wait(self, ticket: str, patience: float = PATIENCE) -> str:
        """Wait for the task's result in redis with a blocking read."""
        return "told" if self._find(ticket).latest_result(timeout=max(1, int(patience))) else "blocked"

    def _find(self, ticket: str) -> Any:
        return self._queue.fetch_job(ticket)

    def finished(self) -> int:
        """Return the number of jobs that RQ lists as finished."""
        return int(self._queue.finished_job_registry.count)

    def code(self, ticket: str) -> int | None:
        """Return the exit code, which is the first part of the job's result."""
        result = self._find(ticket).return_value()
        return None if result is None else result[0]

    def output(self, ticket: str) -> str:
        """Return the output, which is the second part of the job's result."""
        result = self._find(ticket).return_value()
        return "" if result is None else result[1]

    def show_all(self) -> None:
        """Fetch the data of all finished jobs, because `rq info` only counts them."""
        registry = self._queue.finished_job_registry
        type(self._find(registry.get_job_ids()[0])).fetch_many(registry.get_job_ids(), connection=self._client)

    def guards(self, task: int) -> list[Guard]:
        """Return the RQ process that waits for jobs, and that process with its child.

        RQ forks the child for each job.
        """
        child = parent_of(task)
        lasting = self._calling.pid if self._calling else 0
        return [Guard("the lasting process", (lasting,)), Guard("it and its child", (lasting, child))]


class RqApi(RqCold):
    """RQ, called by a running program. The call returns before the command runs."""

    name = "RQ, API"
    is_warm = True
    short_tasks = 200
    records = 1000

    def submit(self, argv: Sequence[str]) -> str:
        """Submit a command from the benchmark's own process."""
        return str(self._queue.enqueue("rq_task.run_command", list(argv), result_ttl=_KEEP).id)
