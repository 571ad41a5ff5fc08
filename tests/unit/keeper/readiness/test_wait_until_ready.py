"""The wait until a process is ready, with real processes and without a keeper."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from outlive.bundle.attempt import AttemptFiles
from outlive.domain.tasks.readiness import parse_ready
from outlive.keeper.process_tree import descendants
from outlive.keeper.readiness.notify_socket import NotifySocket
from outlive.keeper.readiness.wait_until_ready import Progress, Watched, known_files_of, wait_until_ready
from outlive.linux.listeners import listeners_of
from tests.servers import ANSWER, LISTEN, PYTHON, free_port, free_ports, listening
from tests.support import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Attempt:
    """A process whose readiness is awaited, with the files of an attempt."""

    def __init__(self, root: Path, argv: list[str], notify: NotifySocket | None = None) -> None:
        self.files = files_in(root)
        self.root = root
        self.told: list[Progress] = []
        self.notify = notify
        environ = {**os.environ, **(notify.variable if notify else {})}
        with open(self.files.output, "ab") as output:
            self.process = subprocess.Popen(argv, cwd=root, stdout=output, stderr=output, env=environ)
        self.pidfd = os.pidfd_open(self.process.pid)

    def pids(self) -> list[int]:
        """Return the pids of the process and its descendants."""
        return [self.process.pid, *(each.pid for each in descendants(self.process.pid))]

    def wait(
        self, *conditions: str, seconds: float = 20.0, known: dict[str, tuple[int, int]] | None = None
    ) -> Progress:
        """Wait for the conditions."""
        watched = Watched(
            files=self.files,
            pids=self.pids,
            cwd=str(self.root),
            environ=dict(os.environ),
            ended=self.pidfd,
            notify=self.notify,
            known_files=known,
        )
        until = time.monotonic() + seconds
        return wait_until_ready(watched, [parse_ready(each) for each in conditions], until=until, tell=self.told.append)


def files_in(root: Path) -> AttemptFiles:
    """Return the files of an attempt in a new directory."""
    files = AttemptFiles(str(root / "tasks" / "t1"), 1)
    os.makedirs(files.path, exist_ok=True)
    return files


@contextmanager
def attempt(root: Path, *argv: str, notify: NotifySocket | None = None) -> Iterator[Attempt]:
    """Run a process whose readiness can be awaited, and end it afterwards."""
    running = Attempt(root, list(argv), notify)
    try:
        yield running
    finally:
        for pid in reversed(running.pids()):
            os.kill(pid, 9)
        running.process.wait()
        os.close(running.pidfd)
        if notify is not None:
            notify.close()


def test_port_is_ready_when_a_descendant_listens_on_it(tmp_path: Path) -> None:
    """The wait ends when the server listens, although a shell started it, and names the address."""
    port = free_port()
    with attempt(tmp_path, "sh", "-c", f'"$0" -c "$1" 0.2 127.0.0.1:{port}; true', PYTHON, LISTEN) as server:
        progress = server.wait(f"port:{port}")
    assert (progress.kind, progress.text) == ("ready", f"listens on 127.0.0.1:{port}")
    assert progress.listens_on == (f"127.0.0.1:{port}",)


def test_port_is_not_ready_when_another_process_listens_on_it(tmp_path: Path) -> None:
    """A listener outside of the task does not count, and its owner is told at once."""
    port = free_port()
    with listening(f"127.0.0.1:{port}", cwd=tmp_path) as other, attempt(tmp_path, "sleep", "60") as server:
        progress = server.wait(f"port:{port}", seconds=0.1)
    assert progress.kind == "timed_out"
    assert progress.waits_for == (f"port:{port}",)
    assert [each.kind for each in server.told] == ["waiting"]
    assert f"port {port} is held by pid {other} " in server.told[0].text
    assert server.told[0].text.endswith(" in the same directory")
    assert server.told[0].text in progress.text


def test_wait_ends_at_once_when_the_server_moved_because_its_port_is_taken(tmp_path: Path) -> None:
    """The result names the new port, the wanted port and its owner."""
    taken, moved = free_ports(2)
    (tmp_path / "other").mkdir()
    with (
        listening(f"127.0.0.1:{taken}", cwd=tmp_path / "other"),
        attempt(tmp_path, PYTHON, "-c", LISTEN, "0.1", f"127.0.0.1:{moved}") as server,
    ):
        progress = server.wait(f"port:{taken}")
    assert progress.kind == "elsewhere"
    assert progress.text.startswith(f"listens on {moved}; {taken} is held by pid ")
    assert progress.text.endswith(" in other")


def test_wait_goes_on_when_the_server_listens_on_another_port_first(tmp_path: Path) -> None:
    """A server may open several ports. The first port is told, and the wait ends with the wanted port."""
    first, wanted = free_ports(2)
    script = (
        f'"$0" -c "$1" 0 127.0.0.1:{first} & while [ ! -e go ]; do sleep 0.02; done; "$0" -c "$1" 0 127.0.0.1:{wanted}'
    )
    with attempt(tmp_path, "sh", "-c", script, PYTHON, LISTEN) as server:
        wait_until(lambda: listeners_of(server.pids()), "the first port")
        assert server.wait(f"port:{wanted}", seconds=0.1).kind == "timed_out"
        assert f"listens on {first}, and not on {wanted} yet" in server.told[0].text
        (tmp_path / "go").touch()
        assert server.wait(f"port:{wanted}").kind == "ready"


def test_end_of_the_process_ends_the_wait_at_once(tmp_path: Path) -> None:
    """The wait does not last until its timeout when the process dies."""
    began = time.monotonic()
    with attempt(tmp_path, "sh", "-c", "sleep 0.2; exit 3") as server:
        progress = server.wait(f"port:{free_port()}", seconds=600)
    assert progress.kind == "ended"
    assert "no process of the task listens" in progress.text
    assert time.monotonic() - began < 60


def test_all_conditions_must_hold(tmp_path: Path) -> None:
    """The wait lasts until the last condition holds."""
    with attempt(tmp_path, "sh", "-c", "echo up; sleep 60") as server:
        progress = server.wait("log:up", "file:ready", seconds=0.2)
        assert (progress.kind, progress.waits_for) == ("timed_out", ("file:ready",))
        (tmp_path / "ready").touch()
        assert server.wait("log:up", "file:ready").kind == "ready"


def test_file_of_an_earlier_attempt_does_not_count(tmp_path: Path) -> None:
    """A file counts only if it was made or changed since the attempt began."""
    (tmp_path / "ready").write_text("old")
    known = known_files_of([parse_ready("file:ready")], str(tmp_path))
    with attempt(tmp_path, "sleep", "60") as server:
        progress = server.wait("file:ready", seconds=0.1, known=known)
        assert progress.kind == "timed_out"
        assert "older than this attempt" in progress.text
        (tmp_path / "ready").write_text("new")
        assert server.wait("file:ready", known=known).kind == "ready"


@pytest.mark.parametrize(("path", "kind"), [("/200", "ready"), ("/302", "ready"), ("/404", "timed_out")])
def test_http_is_ready_when_the_status_is_good(tmp_path: Path, path: str, kind: str) -> None:
    """A status from 200 to 399 counts, and the address that answered is named."""
    port = free_port()
    with attempt(tmp_path, PYTHON, "-c", ANSWER, str(port)) as server:
        wait_until(lambda: listeners_of(server.pids()), "the server to listen")
        progress = server.wait(f"http://localhost:{port}{path}", seconds=20 if kind == "ready" else 0.3)
    assert progress.kind == kind
    assert f"127.0.0.1:{port}" in progress.text


def test_http_answer_of_another_process_does_not_count(tmp_path: Path) -> None:
    """A server outside of the task is not asked."""
    port = free_port()
    with attempt(tmp_path / "other", PYTHON, "-c", ANSWER, str(port)) as other:
        wait_until(lambda: listeners_of(other.pids()), "the server to listen")
        with attempt(tmp_path, "sleep", "60") as server:
            progress = server.wait(f"http://localhost:{port}/", seconds=0.2)
    assert progress.kind == "timed_out"
    assert f"no process of the task listens on port {port}" in progress.text


def test_hanging_probes_do_not_delay_the_wait(tmp_path: Path) -> None:
    """A request that is never answered and a command that never ends let the timeout pass in time."""
    port, began = free_port(), time.monotonic()
    with attempt(tmp_path, PYTHON, "-c", ANSWER, str(port)) as server:
        wait_until(lambda: listeners_of(server.pids()), "the server to listen")
        progress = server.wait(f"http://localhost:{port}/silent", "cmd:sleep 333.25", seconds=0.3)
        assert progress.kind == "timed_out"
        assert "has not answered yet" in progress.text
    assert time.monotonic() - began < 30
    assert not subprocess.run(["pgrep", "-f", "sleep 333.25"], capture_output=True, check=False).stdout


def test_command_is_tried_until_it_succeeds(tmp_path: Path) -> None:
    """The command runs in the directory of the task, and its last line says why it fails."""
    with attempt(tmp_path, "sleep", "60") as server:
        failed = "exit code 1: cat: ready: No such file"
        assert wait_until(lambda: failed in server.wait("cmd:echo checking; cat ready", seconds=0.4).text)
        (tmp_path / "ready").touch()
        assert server.wait("cmd:echo checking; cat ready").kind == "ready"


NOTIFY = """
import os, socket, sys, time
name = os.environ["NOTIFY_SOCKET"]
told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
told.connect("\\0" + name[1:] if name[0] == "@" else name)
told.send(b"STATUS=warming up")
time.sleep(0.1)
told.send(b"STATUS=done\\nREADY=1\\n")
time.sleep(60)
"""


@pytest.mark.parametrize("depth", [1, 120])
def test_process_is_ready_when_it_sends_ready(tmp_path: Path, depth: int) -> None:
    """`READY=1` counts, also if the directory is too deep for the path of a socket."""
    socket_ = NotifySocket(files_in(tmp_path / ("d" * depth)))
    assert socket_.name.startswith("@") or depth == 1
    with attempt(tmp_path, PYTHON, "-c", NOTIFY, notify=socket_) as server:
        assert server.wait("notify").kind == "ready"


def test_ready_of_a_process_outside_of_the_task_does_not_count(tmp_path: Path) -> None:
    """The kernel names the sender, and only processes of the task are accepted."""
    socket_ = NotifySocket(files_in(tmp_path))
    with attempt(tmp_path, "sleep", "60", notify=socket_) as server:
        other = subprocess.Popen([PYTHON, "-c", NOTIFY], env={**os.environ, **socket_.variable})
        try:
            progress = server.wait("notify", seconds=1.0)
        finally:
            other.kill()
            other.wait()
    assert progress.kind == "timed_out"
    assert "READY=1" in progress.text


def test_owner_of_a_taken_port_is_a_task_when_its_environment_names_one(tmp_path: Path) -> None:
    """The description of the owner begins with the id of the task."""
    port = free_port()
    other = subprocess.Popen(
        [PYTHON, "-c", LISTEN, "0", f"127.0.0.1:{port}"], env={**os.environ, "OUTLIVE_TASK": "t7k2"}, cwd=tmp_path
    )
    try:
        wait_until(lambda: listeners_of([other.pid]), "the server to listen")
        with attempt(tmp_path, "sleep", "60") as server:
            progress = server.wait(f"port:{port}", seconds=0.05)
    finally:
        other.kill()
        other.wait()
    assert f"port {port} is held by task t7k2 " in progress.text


def test_other_owner_of_a_port_is_named_when_the_task_has_only_one_address(tmp_path: Path) -> None:
    """The port is ready, but `localhost` may lead to another process on the other address."""
    port = free_port()
    with (
        listening(f"::1:{port}", cwd=tmp_path) as other,
        attempt(tmp_path, PYTHON, "-c", LISTEN, "0", f"127.0.0.1:{port}") as server,
    ):
        progress = server.wait(f"port:{port}")
    assert progress.kind == "ready"
    assert progress.text.startswith(
        f"listens on 127.0.0.1:{port}; another address of port {port} is held by pid {other} "
    )
