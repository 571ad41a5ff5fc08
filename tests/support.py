"""What tests share: a home of their own, the real command line, and waiting without sleeping."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from outlive.bundle.attempt import AttemptFiles
from outlive.bundle.home import Home, open_home
from outlive.bundle.processes import KEEPER_NAME, WITNESS_NAME, opened_by, stat_fields
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

T = TypeVar("T")
SCRIPT = Path(sysconfig.get_path("scripts")) / "outlive"
PATIENCE_S = 30.0


def wait_until(condition: Callable[[], T | None], what: str = "the condition") -> T:
    """The first true answer of `condition`; fails the test if none comes in time."""
    until = time.monotonic() + PATIENCE_S
    while not (answer := condition()):
        if time.monotonic() > until:
            raise AssertionError(f"waited {PATIENCE_S:.0f} s in vain for {what}")
        time.sleep(0.005)
    return answer


class Bench:
    """A state directory and a project of one test, with the command line pointed at them."""

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
        """The home as the product sees it."""
        return open_home(self.env)

    def command(self, *words: str) -> list[str]:
        """The argument vector of the real command line."""
        return [sys.executable, str(SCRIPT), *words]

    def run(
        self,
        *words: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        before: Sequence[str] = (),
        **options: Any,
    ) -> subprocess.CompletedProcess[str]:
        """Call the real command line, through what stands `before` it, and wait for it."""
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
        """The output of a call that must succeed."""
        done = self.run(*words, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def json(self, *words: str, **options: Any) -> Any:
        """The JSON document that a call prints, whatever its exit code."""
        done = self.run(*words, "--json", **options)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def launch(self, text: str, *options: str, **more: Any) -> str:
        """Launch a line of shell; its id."""
        return self.ok("run", *options, text, **more)

    def show(self, task: str) -> Any:
        """Everything about a task, as JSON."""
        return self.json("show", task)

    def row(self, task: str) -> Any:
        """The task as the ledger has it, without any reader having settled it."""
        with SqliteLedger(self.home.ledger, utc_now()) as ledger:
            return ledger.task(task)

    def files(self, task: str, attempt: int = 1) -> AttemptFiles:
        """The files of an attempt."""
        return AttemptFiles(self.home.bundle(task), attempt)

    def process(self, task: str, which: str = "pid") -> int:
        """The process id of a task's command (or `witness`), once it has begun."""
        slot = wait_until(lambda: self.files(task).read_slot("process"), "the process record")
        return int(slot[which])

    def keeper(self, task: str) -> int:
        """The process id of a task's keeper."""
        return wait_until(lambda: self.find_keeper(task), "the keeper")

    def find_keeper(self, task: str) -> int | None:
        """The process that has the task's control FIFO open and is called a keeper."""
        control = self.files(task).control
        for pid in processes_named(KEEPER_NAME):
            if control in open_files(pid):
                return pid
        return None

    def kill(self, task: str, *who: str) -> None:
        """Kill the `keeper`, the `witness` or the `command` of a task, or several of them, and see them gone."""
        pids = {"keeper": self.keeper(task), "witness": self.process(task, "witness"), "command": self.process(task)}
        for name in who:
            kill(pids[name])
        for name in who:
            wait_until(lambda name=name: not is_alive(pids[name]), f"the {name}'s end")  # type: ignore[misc]
        if {"keeper", "witness", "command"} <= set(who):
            # Until init has reaped it, the kernel could still tell how the command ended.
            wait_until(lambda: not os.path.exists(f"/proc/{pids['command']}"), "the command to be reaped")

    def clean(self) -> None:
        """Kill whatever a test left behind in its state directory."""
        for pid in processes_named(KEEPER_NAME, WITNESS_NAME):
            if any(path.startswith(str(self.state)) for path in open_files(pid)):
                kill_tree(pid)


def processes_named(*names: str) -> list[int]:
    """Process ids by the kernel's short name."""
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
    """What a process has open, by path."""
    try:
        return set(opened_by(pid))
    except OSError:
        return set()


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def parent_of(pid: int) -> int | None:
    """Whose child a process is; None if there is no such process."""
    fields = stat_fields(pid)
    return int(fields[1]) if fields else None


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Signal a process that the test itself started."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def kill_tree(pid: int) -> None:
    """Kill a process and its children, deepest last found."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    kill(pid)
    for child in children:
        kill_tree(int(child))
