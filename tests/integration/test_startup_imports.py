"""The commands and hooks that users wait for most often import few modules."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.git_steps import ENVIRON, Worktree
from tests.hook_steps import SESSION
from tests.session_steps import begin
from tests.support import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from tests.support import Bench

# How many modules of Outlive each command or hook imports. A number may become smaller, and must not grow. If a command
# needs a further module, import the module in the function that needs it.
MODULES = {
    "--version": 5,
    "run": 57,
    "show": 110,
    "hand-off": 92,
    "PreToolUse": 31,
    "Stop": 30,
}
# Modules of the standard library that take a millisecond or more.
EXPENSIVE = frozenset(
    ("collections", "dataclasses", "enum", "functools", "hashlib", "inspect", "json", "re", "subprocess", "typing")
)


def imported(bench: Bench, *words: str, given: str = "") -> list[str]:
    """Return the modules that a call of the command line imports, without those that Python needs to start."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *bench.command(*words)[1:]],
        input=given,
        env=bench.env,
        cwd=bench.project,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S * 2,
    )
    names = [line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")]
    return names[names.index("outlive") :]


def of_hook(bench: Bench, event: str) -> list[str]:
    """Return the modules that a hook imports if an earlier hook has found no ended task.

    Such a hook does not load the ledger.
    """
    payload = {"session_id": SESSION, "cwd": str(bench.project), "tool_name": "Bash", "tool_input": {"command": "ls"}}
    given = json.dumps({**payload, "hook_event_name": event})

    def without_ledger() -> list[str]:
        found = imported(bench, "hook", "claude", event, given=given)
        return [] if "outlive.ledger.sqlite" in found else found

    return wait_until(without_ledger, "a hook that does not load the ledger")


@pytest.fixture
def paths(bench: Bench) -> dict[str, list[str]]:
    """Return the imported modules of each command and hook, measured in a repository."""
    bench.env.update({name: each for name, each in ENVIRON.items() if name.startswith("GIT_")})
    bench.env["OUTLIVE_HOOK_DEADLINE_S"] = str(PATIENCE_S)
    Worktree(bench.project).commit(**{"a.py": "one\n"})
    begin(bench, SESSION)
    task = bench.ok("run", "--session", SESSION, "--", "true")
    bench.run("wait", task, "--session", SESSION)
    return {
        "show": imported(bench, "show", task),
        "hand-off": imported(bench, "hand-off", "--session", SESSION),
        "PreToolUse": of_hook(bench, "PreToolUse"),
        "Stop": of_hook(bench, "Stop"),
        "run": imported(bench, "run", "--session", SESSION, "--", "true"),
        "--version": imported(bench, "--version"),
    }


def test_frequent_calls_import_no_more_modules_than_before(paths: dict[str, list[str]]) -> None:
    """No command or hook imports more modules of Outlive than its number in `MODULES`."""
    own = {name: [each for each in found if each.startswith("outlive.")] for name, found in paths.items()}
    assert {name: found for name, found in own.items() if len(found) > MODULES[name]} == {}


def test_frequent_calls_import_no_expensive_module(paths: dict[str, list[str]]) -> None:
    """No frequent call imports a module of `EXPENSIVE`.

    Even `re` is not needed, because no text looks like a secret.
    """
    assert {name: found for name, each in paths.items() if (found := EXPENSIVE.intersection(each))} == {}
