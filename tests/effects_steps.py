"""Steps that tests of a task's effects share."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

from outlive.domain.tasks.command import from_shell_text
from outlive.service.clock import utc_now
from outlive.service.effects.guard import answer_document, guard_command
from tests.support import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench

NAMES = ("a.py", "b.py", "dir/c.py")


def git(bench: Bench, *words: str) -> str:
    """Run git in the project, with the author of the tests, and return its output."""
    env = {
        **bench.env,
        **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "t"),
        **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "t@example.org"),
    }
    return subprocess.run(
        ["git", *words], cwd=bench.project, env=env, check=True, capture_output=True, text=True
    ).stdout.strip()


def paths(bench: Bench, *names: str) -> list[str]:
    """Return the names as absolute paths in the project."""
    return [str(bench.project / name) for name in names]


def window_on(bench: Bench, task: str, *names: str) -> Any:
    """Return the entry of a running task's effects that lists these paths as changed.

    Git changes one file after the other. So this function waits until the entry has all the paths.
    """

    def found() -> Any:
        windows = bench.json("effects", task, "--open")["windows"]
        return next((each for each in windows if set(names) <= set(each["paths"])), None)

    return wait_until(found, f"the window on {', '.join(names)}")


def touched(bench: Bench, text: str, *options: str) -> Any:
    """Run a shell command as a task, and return the effects of the task."""
    task = bench.launch(text, *options)
    bench.run("wait", task)
    return bench.json("effects", task)


def guarded(bench: Bench, text: str, directory: Path | None = None) -> Any:
    """Return what `outlive guard --command TEXT --json` prints, without starting a process for it."""
    argv = from_shell_text(text).argv
    return answer_document(guard_command(bench.home, argv, str(directory or bench.project), bench.env), utc_now())
