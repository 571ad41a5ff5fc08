"""vite as a task: a taken port, a moved port, and a leased port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlive.linux.listeners import listeners_on
from tests.servers import free_port, listening

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench


def web_project(path: Path) -> Path:
    """Make a directory with the smallest project of vite."""
    path.mkdir(exist_ok=True)
    (path / "index.html").write_text("<!doctype html><title>app</title>")
    (path / "package.json").write_text('{"name": "app", "private": true, "type": "module"}')
    return path


def two_ports() -> int:
    """Return a free port whose next port is free, too."""
    while True:
        port = free_port()
        if port < 65000 and not listeners_on(port + 1):
            return port


def start(bench: Bench, vite: str, directory: Path, *options: str) -> str:
    """Launch vite in a directory, and return the id of the task."""
    return bench.ok("run", "--cwd", str(directory), "--", vite, *options)


def test_moved_vite_is_told_with_the_task_that_holds_its_port(bench: Bench, vite: str) -> None:
    """Vite takes the next port when its port is taken, and the wait names both ports and the other task."""
    ours, other = web_project(bench.project), web_project(bench.root / "other")
    port = two_ports()
    first = start(bench, vite, other, "--port", str(port))
    ready = bench.run("wait", first, "--until", f"port:{port}", "--timeout", "60s")
    assert (ready.returncode, f":{port}" in ready.stdout) == (0, True)
    second = start(bench, vite, ours, "--port", str(port))
    moved = bench.run("wait", second, "--until", f"port:{port}", "--timeout", "60s")
    assert moved.returncode == 1
    assert f"{second} listens on {port + 1}; {port} is held by task {first} " in moved.stderr
    assert " in ../other" in moved.stderr
    assert bench.run("wait", second, "--until", f"http://localhost:{port + 1}/", "--timeout", "60s").returncode == 0
    rows = {row["port"]: row for row in bench.json("ports")["ports"]}
    assert (rows[port]["task"], rows[port + 1]["task"]) == (first, second)
    assert rows[port + 1]["url"] == f"http://localhost:{port + 1}/"


def test_vite_that_moved_for_a_listener_on_ipv6_is_told(bench: Bench, vite: str) -> None:
    """Vite moves also if only `[::1]` is taken, and the process of no task is named."""
    project, port = web_project(bench.project), two_ports()
    with listening(f"::1:{port}", cwd=bench.root) as holder:
        task = start(bench, vite, project, "--port", str(port))
        moved = bench.run("wait", task, "--until", f"http://localhost:{port}/", "--timeout", "60s")
    assert moved.returncode == 1
    assert f"listens on {port + 1}; {port} is held by pid {holder} " in moved.stderr


def test_vite_that_ends_for_a_taken_port_shows_why(bench: Bench, vite: str) -> None:
    """With `--strictPort`, vite ends. The wait ends at once with the error that vite has printed."""
    project, port = web_project(bench.project), free_port()
    with listening(f"127.0.0.1:{port}"):
        task = start(bench, vite, project, "--port", str(port), "--strictPort", "--host", "127.0.0.1")
        done = bench.run("wait", task, "--until", f"port:{port}", "--timeout", "10m")
    assert done.returncode == 1
    assert f"Port {port} is already in use" in done.stderr
    assert f"{task} ended (failed)" in done.stderr


def test_vite_of_each_worktree_listens_on_its_leased_port(bench: Bench, vite: str) -> None:
    """Two copies in two directories listen on their own ports, although the ports are bound by the lease."""
    tasks = []
    for name in ("one", "two"):
        directory = web_project(bench.root / name)
        options = ("--strictPort", "--port", "{port:web}")
        task = bench.ok("run", "--port", "web", "--cwd", str(directory), "--", vite, *options)
        done = bench.run("wait", task, "--until", "port:web", "--timeout", "60s")
        assert done.returncode == 0, done.stderr
        tasks.append(task)
    ports = [bench.show(task)["ports"]["web"] for task in tasks]
    assert ports[0] != ports[1]
    again = bench.run(
        "run", "--port", "web", "--cwd", str(bench.root / "one"), "--", vite, "--strictPort", "--port", "{port:web}"
    )
    assert again.returncode == 2
    assert f"already running: {tasks[0]} " in again.stderr
