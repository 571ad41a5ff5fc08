"""Steps of tests that compare all files before and after a task."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from outlive.linux.processes import KEEPER_NAME
from outlive.linux.seccomp import is_known_machine
from tests.session_steps import until
from tests.support import parent_of, processes_named, wait_until

if TYPE_CHECKING:
    from tests.support import Bench

can_observe = pytest.mark.skipif(not is_known_machine(), reason="the calls of this machine are not known")


def first_look(bench: Bench, task: str) -> bool:
    """Return whether the first snapshot of a running task has been written.

    A fork of the keeper writes the snapshot with the lowest CPU priority. If the command ended before the fork, the
    keeper would kill the fork.
    """
    keeper = bench.keeper(task)
    if any(parent_of(pid) == keeper for pid in processes_named(KEEPER_NAME)):
        return False
    for number in os.listdir(f"/proc/{keeper}/fd"):
        path = f"/proc/{keeper}/fd/{number}"
        try:
            if os.readlink(path).endswith("/first (deleted)"):
                return os.stat(path).st_size > 0
        except OSError:
            continue
    return False


def begun(bench: Bench, text: str, *options: str) -> str:
    """Launch a task that waits for the file `go`, and wait for the task's first snapshot."""
    task = bench.launch(f"{until(str(bench.root / 'go'))}; {text}", *options)
    wait_until(lambda: first_look(bench, task), "the first snapshot")
    return task


def compared(bench: Bench, task: str) -> Any:
    """Let a waiting task continue, and return its effects when the comparison is complete."""
    (bench.root / "go").touch()
    bench.run("wait", task)
    wait_until(lambda: os.path.exists(bench.files(task).compared), "the comparison")
    return bench.json("effects", task)


def hows(bench: Bench, found: Any) -> dict[str, str]:
    """Return how each unattributed path in `found` changed, by the path relative to the project."""
    return {each["path"].removeprefix(f"{bench.project}/"): each["how"] for each in found["unattributed"]}
