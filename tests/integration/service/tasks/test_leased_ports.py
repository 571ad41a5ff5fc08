"""`outlive run --port`: leased ports of tasks."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

from outlive.linux.port_lease import ephemeral_ports, lease_one_of
from outlive.linux.processes import opened_by
from tests.servers import PYTHON
from tests.support import wait_until

if TYPE_CHECKING:
    from tests.support import Bench

# Listens on the port of its first argument, as most servers do.
SERVE = "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); time.sleep(600)"


def is_leased(port: int) -> bool:
    """Return whether another process has leased a port."""
    found = lease_one_of([port])
    for fd in found[1] if found else ():
        os.close(fd)
    return found is None


def test_command_gets_its_leased_ports(bench: Bench) -> None:
    """The ports are in the environment, in the command and in the JSON, and a server listens on its port."""
    script = 'echo $PORT $PORT_WEB $PORT_API_2 {port:api-2}; exec "$0" -c "$1" {port:web}'
    task = bench.ok("run", "--port", "web", "--port", "api-2", "--", "sh", "-c", script, PYTHON, SERVE)
    document = bench.show(task)
    web, api = document["ports"]["web"], document["ports"]["api-2"]
    assert bench.run("wait", task, "--until", "port:web", "--timeout", "30s").returncode == 0
    assert bench.ok("output", task) == f"{web} {web} {api} {api}"
    assert f"ports     web {web}, api-2 {api}" in bench.ok("show", task)
    assert "{port:web}" in document["command"]
    low, high = ephemeral_ports()
    assert not any(low <= port <= high for port in (web, api))


def test_port_of_a_worktree_stays_the_same_while_it_is_free(bench: Bench) -> None:
    """The second task gets another port, and a task after the end of both gets the port of the first one."""
    first = bench.launch("sleep 60", "--port", "web")
    port = bench.show(first)["ports"]["web"]
    second = bench.launch("sleep 61", "--port", "web")
    assert bench.show(second)["ports"]["web"] != port
    bench.ok("cancel", first, second)
    third = bench.launch("sleep 62", "--port", "web")
    assert bench.show(third)["ports"] == {"web": port}


def test_lease_lasts_while_the_keeper_or_the_witness_lives(bench: Bench) -> None:
    """The command does not inherit the lease, and the lease ends with the attempt."""
    task = bench.launch("sleep 60", "--port", "web")
    port = bench.show(task)["ports"]["web"]
    assert not any(path.startswith("socket:") for path in opened_by(bench.process(task)))
    bench.kill(task, "keeper")
    assert is_leased(port)
    other = bench.launch("sleep 61", "--port", "web")
    bench.kill(other, "witness")
    assert is_leased(bench.show(other)["ports"]["web"])
    bench.ok("cancel", task, other)
    wait_until(lambda: not is_leased(port), "the end of the lease")


def test_retry_has_the_ports_of_the_first_attempt(bench: Bench) -> None:
    """An automatic retry keeps its ports, and a retry by hand leases them again."""
    task = bench.launch("echo $PORT; exit 1", "--port", "web", "--retries", "1")
    bench.run("wait", task)
    document = bench.show(task)
    port = document["ports"]["web"]
    assert document["attempt"] == 2
    bench.ok("retry", task)
    bench.run("wait", task)
    assert bench.show(task)["ports"] == {"web": port}
    for attempt in (1, 2, 3):
        assert bench.ok("output", task, "--attempt", str(attempt)) == str(port)


def test_retry_gets_another_port_when_the_port_is_taken(bench: Bench) -> None:
    """A retry by hand does not fail because a program has taken the port meanwhile."""
    task = bench.launch("echo $PORT", "--port", "web")
    bench.run("wait", task)
    port = bench.show(task)["ports"]["web"]
    with socket.create_server(("127.0.0.1", port)):
        bench.ok("retry", task)
        bench.run("wait", task)
    again = bench.show(task)["ports"]["web"]
    assert again != port
    assert bench.ok("output", task) == str(again)


def test_queued_task_has_its_lease_while_it_waits(bench: Bench) -> None:
    """The keeper of a queued task hibernates with the lease."""
    first = bench.launch("sleep 60")
    task = bench.launch("echo $PORT", "--port", "web", "--after-any", first)
    port = bench.show(task)["ports"]["web"]
    assert is_leased(port)
    bench.ok("cancel", first)
    bench.run("wait", task)
    assert bench.ok("output", task) == str(port)


def test_port_name_is_refused_when_it_is_not_usable(bench: Bench) -> None:
    """A wrong or repeated name is an error, and nothing is started."""
    for names in (("a b",), ("web", "web")):
        done = bench.run("run", *(word for name in names for word in ("--port", name)), "--", "true")
        assert done.returncode == 2
        assert "hint: " in done.stderr
    assert bench.json("list")["tasks"] == []


def test_sdk_leases_ports(bench: Bench) -> None:
    """A program passes names, and its spawner starts a keeper that holds the lease."""
    code = "import outlive; t = outlive.Outlive().run('sleep 60', ports=['web', 'api']); print(t.id)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=bench.env, cwd=bench.project, capture_output=True, text=True, check=True
    )
    ports = bench.show(done.stdout.strip())["ports"]
    assert list(ports) == ["web", "api"]
    assert all(map(is_leased, ports.values()))
