"""`outlive ports`, and `outlive cancel --port`."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

from outlive.linux.listeners import listeners_on
from tests.servers import LISTEN, PYTHON, free_port, listening
from tests.support import is_alive, wait_until

if TYPE_CHECKING:
    from tests.support import Bench


def serve(bench: Bench, *endpoints: str, first: str = "", options: tuple[str, ...] = ()) -> str:
    """Launch a task that listens on the endpoints, and return its id when it does."""
    task = bench.ok("run", *options, "--", PYTHON, "-c", first + LISTEN, "0", *endpoints)
    for each in endpoints:
        bench.ok("wait", task, "--until", f"port:{each.rpartition(':')[2]}", "--timeout", "30s")
    return task


def row_of(bench: Bench, port: int, *options: str) -> Any:
    """Return the only row of a port in the JSON, or None."""
    rows = [row for row in bench.json("ports", *options)["ports"] if row["port"] == port]
    assert len(rows) <= 1
    return rows[0] if rows else None


def test_ports_names_the_task_its_project_branch_and_url(bench: Bench) -> None:
    """One row has both addresses of a server, and the URL that the server has printed."""
    subprocess.run(["git", "init", "-q", "-b", "feature/x"], cwd=bench.project, check=True)
    port = free_port()
    told = f"print('Local: http://localhost:{port}/app/?x=1.', flush=True)\n"
    task = serve(bench, f"127.0.0.1:{port}", f"::1:{port}", first=told)
    row = row_of(bench, port)
    assert sorted(row["addresses"]) == ["127.0.0.1", "::1"]
    wanted = {"task": task, "branch": "feature/x", "project": str(bench.project), "cwd": str(bench.project)}
    assert {**row, **wanted, "url": f"http://localhost:{port}/app/?x=1", "users_gone": None} == row
    (line,) = [line for line in bench.ok("ports").splitlines() if line.startswith(str(port))]
    assert all(text in line for text in (task, "feature/x", f"http://localhost:{port}/app/"))


def test_ports_tells_that_the_users_of_a_server_are_gone(bench: Bench) -> None:
    """A server has users as long as its session, or a session that continues it, is alive."""
    port = free_port()
    bench.ok("session", "begin", "--session", "s-1")
    task = serve(bench, f"127.0.0.1:{port}", options=("--session", "s-1"))
    assert row_of(bench, port)["users_gone"] is False
    bench.ok("session", "end", "--session", "s-1")
    row = row_of(bench, port)
    assert (row["task"], row["session"], row["users_gone"]) == (task, "s-1", True)
    assert " gone " in bench.ok("ports")


def test_ports_shows_a_leased_port_before_a_process_listens_on_it(bench: Bench) -> None:
    """The row has the name of the lease and no address, and `cancel --port` ends the task."""
    task = bench.launch("sleep 60", "--port", "web")
    port = bench.show(task)["ports"]["web"]
    row = row_of(bench, port)
    assert (row["task"], row["name"], row["addresses"], row["pids"]) == (task, "web", [], [])
    bench.ok("cancel", "--port", str(port))
    assert bench.show(task)["state"] == "cancelled"
    assert row_of(bench, port) is None


def test_ports_names_foreign_owners_only_when_all_are_asked_for(bench: Bench) -> None:
    """A listener of no task is shown with its process and its directory."""
    port = free_port()
    with listening(f"127.0.0.1:{port}", cwd=bench.project) as pid:
        assert row_of(bench, port) is None
        row = row_of(bench, port, "--all")
        assert (row["task"], row["pids"], row["uid"], row["cwd"]) == (None, [pid], os.getuid(), str(bench.project))
        assert f"pid {pid}" in bench.ok("ports", "--all")


def test_cancel_by_port_ends_the_task_that_listens(bench: Bench) -> None:
    """The task that owns the port is ended, also if only a child with a cleared environment listens."""
    port, bystander = free_port(), bench.launch("sleep 60")
    task = bench.ok("run", "--", "env", "-i", PYTHON, "-c", LISTEN, "0", f"127.0.0.1:{port}")
    bench.ok("wait", task, "--until", f"port:{port}", "--timeout", "30s")
    assert task in bench.ok("cancel", "--port", str(port))
    assert bench.show(task)["state"] == "cancelled"
    assert bench.show(bystander)["state"] == "running"
    assert listeners_on(port) == []


def test_cancel_by_port_ends_a_server_that_an_ended_task_left_running(bench: Bench) -> None:
    """The task has ended, and its server is ended without a pid being named."""
    port = free_port()
    script = f'"$0" -c "$1" 0 127.0.0.1:{port} & '
    task = bench.ok("run", "--", "sh", "-c", script, PYTHON, LISTEN)
    bench.run("wait", task)
    (found,) = wait_until(lambda: listeners_on(port), "the server to listen")
    row = row_of(bench, port)
    assert (row["task"], row["state"]) == (task, "succeeded")
    assert "ended the process that the task had left running" in bench.ok("cancel", "--port", str(port))
    wait_until(lambda: not is_alive(found.pids[0]), "the end of the server")


def test_cancel_by_port_refuses_a_process_of_no_task(bench: Bench) -> None:
    """The error names the process, which goes on. A port without a listener is an error, too."""
    port, free = free_port(), free_port()
    with listening(f"127.0.0.1:{port}", cwd=bench.project) as pid:
        done = bench.run("cancel", "--port", str(port))
        assert (done.returncode, done.stdout) == (2, "")
        assert f"port {port} is held by pid {pid} " in done.stderr
        assert "belongs to no task" in done.stderr
        assert is_alive(pid)
    done = bench.run("cancel", "--port", str(free))
    assert done.returncode == 2
    assert f"no process listens on port {free}" in done.stderr
    assert bench.run("cancel", "t7k2", "--port", str(free)).returncode == 2
