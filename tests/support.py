"""Support for all tests: a state directory for each test, calls of the real command line, and functions that wait."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from outlive.bundle.attempt import AttemptFiles, keeper_lives
from outlive.bundle.home import Home, open_home
from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.processes import KEEPER_NAME, WITNESS_NAME, opened_by, stat_fields
from outlive.service.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

T = TypeVar("T")
SCRIPT = Path(sysconfig.get_path("scripts")) / "outlive"
PATIENCE_S = 30.0


def wait_until(condition: Callable[[], T | None], what: str = "the condition") -> T:
    """Call `condition` repeatedly until it returns a true value, and return this value.

    Raises `AssertionError` if it returns no true value within `PATIENCE_S`.
    """
    until = time.monotonic() + PATIENCE_S
    while not (answer := condition()):
        if time.monotonic() > until:
            raise AssertionError(f"waited {PATIENCE_S:.0f} s in vain for {what}")
        time.sleep(0.005)
    return answer


class Bench:
    """A state directory and a project for one test.

    The methods call the command line with this directory and this project.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = root / "state"
        self.project = root / "project"
        self.project.mkdir()
        self.env = {
            name: text for name, text in os.environ.items() if not name.startswith(("OUTLIVE_", "CLAUDE", "CODEX"))
        }
        self.env.update(OUTLIVE_HOME=str(self.state), NO_COLOR="1")

    @property
    def home(self) -> Home:
        """The state directory as an object of Outlive."""
        return open_home(self.env)

    def command(self, *words: str) -> list[str]:
        """Return the argument vector of a call of the real command line."""
        return [sys.executable, str(SCRIPT), *words]

    def run(
        self,
        *words: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        before: Sequence[str] = (),
        **options: Any,
    ) -> subprocess.CompletedProcess[str]:
        """Call the real command line and wait for its end.

        `before` is a command that runs the command line, and may be empty.
        """
        return subprocess.run(
            [*before, *self.command(*words)],
            env={**self.env, **(env or {})},
            cwd=cwd or self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=PATIENCE_S * 2,
            check=False,
            **options,
        )

    def ok(self, *words: str, **options: Any) -> str:
        """Return the output of a call that must succeed."""
        done = self.run(*words, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def json(self, *words: str, **options: Any) -> Any:
        """Return the JSON document that a call prints, whatever its exit code."""
        done = self.run(*words, "--json", **options)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def launch(self, text: str, *options: str, **more: Any) -> str:
        """Launch a shell command line, and return the id of its task."""
        return self.ok("run", *options, text, **more)

    def show(self, task: str) -> Any:
        """Return the JSON document that `show` prints for a task."""
        return self.json("show", task)

    def row(self, task: str) -> Any:
        """Return the task as it is in the ledger. Unlike a command, this does not settle a task whose keeper died."""
        with SqliteLedger(self.home.ledger, utc_now()) as ledger:
            return ledger.task(task)

    def files(self, task: str, attempt: int = 1) -> AttemptFiles:
        """Return the files of an attempt."""
        return AttemptFiles(self.home.bundle(task), attempt)

    def process(self, task: str, which: str = "pid") -> int:
        """Return the process id of a task's command, or of its witness.

        Waits until the command has begun.
        """
        slot = wait_until(lambda: self.files(task).read_slot("process"), "the process record")
        return int(slot[which])

    def keeper(self, task: str) -> int:
        """Return the process id of a task's keeper."""
        return wait_until(lambda: self.find_keeper(task), "the keeper")

    def find_keeper(self, task: str) -> int | None:
        """Return the keeper that has the control FIFO of a task open.

        Returns None if no keeper has it open.
        """
        control = self.files(task).control
        for pid in processes_named(KEEPER_NAME):
            if control in open_files(pid):
                return pid
        return None

    def kill(self, task: str, *who: str) -> None:
        """Kill processes of a task, and return when they are gone. Each name is `keeper`, `witness` or `command`."""
        pids = {"keeper": self.keeper(task), "witness": self.process(task, "witness"), "command": self.process(task)}
        for name in who:
            kill(pids[name])
        for name in who:
            wait_until(lambda name=name: not is_alive(pids[name]), f"the {name}'s end")  # type: ignore[misc]
        if {"keeper", "witness", "command"} <= set(who):
            # Until init has reaped the command, another process could still read its exit code from the kernel.
            wait_until(lambda: not os.path.exists(f"/proc/{pids['command']}"), "the command to be reaped")

    def clean(self) -> None:
        """Kill every keeper and witness that a test left in its state directory."""
        for pid in processes_named(KEEPER_NAME, WITNESS_NAME):
            if any(path.startswith(str(self.state)) for path in open_files(pid)):
                kill_tree(pid)


@contextmanager
def tasks_of_another_pid_namespace(bench: Bench, number: int, *options: str) -> Iterator[list[str]]:
    """Launch tasks in a new PID namespace, and end this namespace while they run."""
    if subprocess.run(["unshare", "-pf", "--mount-proc", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no PID namespaces here")
    launch = " ".join(bench.command("run", *options, "--", "sleep", "401"))
    script = f"{launch}; " * number + "exec sleep 400"
    other = subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script],
        env=bench.env, cwd=bench.project, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert other.stdout is not None
    tasks = [other.stdout.readline().strip() for _ in range(number)]
    try:
        yield tasks
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    for task in tasks:
        wait_until(lambda task=task: not keeper_lives(bench.files(task)), "the end of the keeper")  # type: ignore[misc]


def processes_named(*names: str) -> list[int]:
    """Return the ids of the processes that have one of these names. The kernel cuts a name after 15 characters."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                comm = Path(f"/proc/{name}/comm").read_text().strip()
            except OSError:
                continue
            if comm in names:
                found.append(int(name))
    return found


def open_files(pid: int) -> set[str]:
    """Return the paths of the files that a process has open."""
    try:
        return set(opened_by(pid))
    except OSError:
        return set()


def is_alive(pid: int) -> bool:
    """Return whether a process runs.

    A zombie does not run. Its files and locks may still be open, as long as its threads exit.
    """
    try:
        is_zombie = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
        return not is_zombie or len(os.listdir(f"/proc/{pid}/task")) > 1
    except OSError:
        return False


def parent_of(pid: int) -> int | None:
    """Return the parent of a process, or None if there is no such process."""
    fields = stat_fields(pid)
    return int(fields[1]) if fields else None


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to a process that the test started. A process that has ended is ignored."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def kill_tree(pid: int) -> None:
    """Kill a process, then its children and their descendants."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    kill(pid)
    for child in children:
        kill_tree(int(child))


_READER = """
import apsw, sys
connection = apsw.Connection(sys.argv[1])
connection.set_busy_timeout(10_000)  # a keeper that closes the ledger has it locked for a moment
cursor = connection.cursor()
cursor.execute("begin; select count(*) from task").fetchall()
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def kept_in_log(bench: Bench) -> Iterator[None]:
    """Keep all later writes in the ledger's write-ahead log.

    A reader of the earlier state stays open, and so prevents every checkpoint.
    """
    words = [sys.executable, "-c", _READER, bench.home.ledger]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        try:
            assert reader.stdout is not None
            assert reader.stdout.readline() == b"ready\n"
            yield
        finally:
            reader.kill()
