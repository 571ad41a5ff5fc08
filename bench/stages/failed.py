"""The stage that measures the hook before a tool call, after failed tasks.

The cost of the hook must not grow with the number of failed tasks, nor with the number of files that they left changed.
Each project has 20,000 files. The first project has no failed task. The second project has 300 failed tasks. The third
project has one failed task more, which has rewritten every file. The stage calls the hook for an edit of a file that no
task has touched, and for a shell command that names such a file. The command is sent by a session that was notified of
the changed files, and by a session that was not. A hook that has to print a warning may take longer.

The same calls are measured while a task sleeps, and while a task runs that has rewritten every file. The commands
`gate` and `hand-off` are measured, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from measure import Samples
from peers.protocol import which

from outlive.bundle.home import open_home
from outlive.domain.errors import Unavailable
from outlive.ledger.left_open_paths import MOST_ENDINGS, LeftOpenPaths
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    _Project = tuple[Path, Mapping[str, str]]

FILES, TASKS = 20_000, 300
GOAL, RUNNING_GOAL = 1.2, 2.0
_CALLS = 30
_REWRITE = "import glob, time\nfor each in glob.glob('src/*/*'): open(each, 'w').write('new')\n"
_FAIL, _STAY = f"{_REWRITE}raise SystemExit(1)", f"{_REWRITE}open('done', 'w'), time.sleep(100000)"
_PATIENCE_S = 120.0


class AfterFailures(NamedTuple):
    """The measured times of the hook, `gate` and `hand-off` in all projects."""

    none: Samples
    many: Samples
    files: Samples
    told: Samples
    """The hook before an edit of a file that a failed task left changed."""
    command: Samples
    """The hook before a shell command, in a session that was notified of the files that a task left changed."""
    first_command: Samples
    """The hook before a shell command, in a new session that was not notified of any changed file."""
    first_of_many: Samples
    """The hook before a shell command, in a new session, after 300 failed tasks."""
    idle: Samples
    """The hook before an edit of a file that no task has touched, while one task sleeps."""
    idle_command: Samples
    running: Samples
    """The hook before an edit of a file that no task has touched, while a task runs that has rewritten all other files.
    """
    running_command: Samples
    running_told: Samples
    """The hook before an edit of a file that the running task has rewritten."""
    gate: Samples
    """The command `gate` without a failed task. `gate_files` is after a failed task that rewrote all files, and
    `gate_running` is while such a task runs.
    """
    gate_files: Samples
    gate_running: Samples
    hand_off: Samples
    """The command `hand-off` without a failed task. `hand_off_files` is after a failed task that rewrote all files, and
    `hand_off_running` is while such a task runs.
    """
    hand_off_files: Samples
    hand_off_running: Samples


def after_failures(place: Path, share: float, say: Callable[[str], None]) -> AfterFailures:
    """Measure five projects in turns, so that noise affects all of them alike.

    Each project has its own state directory.
    """
    say(f"hooks after failures: {TASKS} tasks and {FILES:,} files")
    calls = {
        name: _project(place / name, env_name, tasks=tasks, all_files=all_files)
        for name, env_name, tasks, all_files in (
            ("nothing-failed", "none", 0, False),
            ("many-failed", "many", max(3, int(TASKS * share)), False),
            ("all-rewritten", "files", max(3, int(TASKS * share)), True),
        )
    }
    calls |= {name: _project(place / name, name, tasks=0, all_files=False) for name in ("idle", "running")}
    none, many, files = (calls[name] for name in ("nothing-failed", "many-failed", "all-rewritten"))
    idle, running = calls["idle"], calls["running"]
    stays = [(idle, _launch(idle, "sleep", "100000")), (running, _launch(running, sys.executable, "-c", _STAY))]
    try:
        _wait_until((running[0] / "done").exists, "not all files were rewritten")
        return _ask(share, none, many, files, idle, running)
    finally:
        for project, task in stays:
            _outlive(project, "cancel", task)


def _ask(share: float, *projects: _Project) -> AfterFailures:
    """Measure the hook and commands in five projects.

    In these projects no task has failed, many tasks have failed, one task has rewritten all files, a task sleeps, and a
    task runs that has rewritten all files.
    """
    none, many, files, idle, running = projects
    for each in projects:
        _outlive(each, "session", "begin", "--session", "one")
    time.sleep(0.2)  # shortly after a change, a hook always opens the ledger, so wait before the measurement
    for each in projects:
        for _ in range(3):  # the first calls take longer, because they receive notices and create cached data
            _call(*each, "Bash", {"command": "git status"})
    found = AfterFailures(*(Samples() for _ in AfterFailures._fields))
    for turn in range(max(5, int(_CALLS * share)) + 2):
        for samples, project, name in (
            (found.none, none, "other.py"),
            (found.many, many, "other.py"),
            (found.files, files, "other.py"),
            (found.told, files, "src/d1/f100"),
            (found.idle, idle, "other.py"),
            (found.running, running, "other.py"),
            (found.running_told, running, "src/d1/f100"),
        ):
            took = _call(*project, "Edit", {"file_path": str(project[0] / name)})
            if turn > 1:  # the first two calls are not counted, because they fill caches
                samples.add(took)
        for samples, project, session in (
            (found.command, files, "one"),
            (found.first_command, files, f"new-{turn}"),
            (found.first_of_many, many, f"new-{turn}"),
            (found.idle_command, idle, "one"),
            (found.running_command, running, "one"),
        ):
            took = _call(*project, "Bash", {"command": "cat other.py"}, session)
            if turn > 1:
                samples.add(took)
        for samples, project, verb in (
            (found.gate, none, "gate"),
            (found.gate_files, files, "gate"),
            (found.gate_running, running, "gate"),
            (found.hand_off, none, "hand-off"),
            (found.hand_off_files, files, "hand-off"),
            (found.hand_off_running, running, "hand-off"),
        ):
            samples.add(_outlive(project, verb, "--session", "one"))
    return found


def _project(project: Path, name: str, *, tasks: int, all_files: bool) -> _Project:
    """Make a git repository of 20,000 files, and run tasks in it that fail.

    Each task rewrites one file. With `all_files`, one more task rewrites all files.
    """
    for number in range(FILES):
        directory = project / f"src/d{number // 100}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"f{number}").write_text(f"old {number}\n")
    (project / "other.py").write_text("old\n")
    author = {f"GIT_{who}_{what}": "t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = {**os.environ, **author, "OUTLIVE_HOME": str(project.parent / f"{name}-home"), "CLAUDE_PID": str(os.getpid())}
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "first")):
        subprocess.run(["git", *words], cwd=project, env=env, check=True)
    outlive = [sys.executable, "-I", which("outlive")]
    texts = [f"echo new > src/d{number * 60 // 100}/f{number * 60}; exit 1" for number in range(tasks)]
    commands = [["sh", "-c", text] for text in texts] + [[sys.executable, "-c", _FAIL]] * all_files
    for each in commands:
        started = [*outlive, "run", "--observe", "syscalls", "--wait", "60s", "--", *each]
        subprocess.run(started, cwd=project, env=env, check=False, capture_output=True)
    subprocess.run([*outlive, "list"], cwd=project, env=env, check=True, capture_output=True)
    _wait_until_recorded(env, len(commands))
    return project, env


def _wait_until_recorded(env: Mapping[str, str], tasks: int) -> None:
    def is_recorded() -> bool:
        now = utc_now()
        with SqliteLedger(open_home(env).ledger, now) as ledger:
            failed = LeftOpenPaths(ledger).failed(now.replace(year=1971), now)
        return len(failed) >= min(tasks, MOST_ENDINGS) and all(each.is_known for each in failed)

    _wait_until(is_recorded, "the paths that failed tasks left changed were not recorded")


def _wait_until(is_so: Callable[[], bool], problem: str) -> None:
    until = time.monotonic() + _PATIENCE_S
    while not is_so():
        if time.monotonic() > until:
            raise Unavailable(problem, "check the keepers")
        time.sleep(0.1)


def _launch(project: _Project, *words: str) -> str:
    """Launch a task that runs until it is cancelled, and return its id."""
    where, env = project
    started = [sys.executable, "-I", which("outlive"), "run", "--observe", "syscalls", "--", *words]
    return subprocess.run(started, cwd=where, env=env, check=True, capture_output=True, text=True).stdout.split()[0]


def _outlive(project: _Project, *words: str) -> float:
    where, env = project
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-I", which("outlive"), *words], cwd=where, env=env, check=True, capture_output=True
    )
    return time.perf_counter() - began


def _call(project: Path, env: Mapping[str, str], tool: str, given: Mapping[str, str], session: str = "one") -> float:
    payload = {"session_id": session, "cwd": str(project), "tool_name": tool, "tool_input": given}
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-I", which("outlive"), "hook", "claude", "PreToolUse"],
        input=json.dumps(payload),
        env=env,
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )
    return time.perf_counter() - began
