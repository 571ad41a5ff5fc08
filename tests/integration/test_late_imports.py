"""The modules with the rules for shell commands are loaded only by processes that read the text of a command."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.git_steps import ENVIRON, Worktree
from tests.hook_steps import SESSION
from tests.session_steps import begin, until
from tests.support import PATIENCE_S

if TYPE_CHECKING:
    from tests.support import Bench

RULES = (
    "outlive.observe.predict.rule",
    "outlive.observe.predict.apply_rules",
    "outlive.observe.shell.commands",
    "tree_sitter",
)
WITHOUT_TEXT = (
    ("list",),
    ("run", "echo done"),
    ("wait", "--session", SESSION),
    ("gate", "--session", SESSION),
    ("hand-off", "--session", SESSION),
    ("inbox", "--session", SESSION, "--peek"),
    ("session", "list"),
    ("guard", "a.py"),
)
EVENTS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolBatch", "Stop", "PreCompact", "SessionEnd")


@pytest.fixture(autouse=True)
def repo(bench: Bench) -> None:
    """Make a repository and a session, one of whose tasks failed and changed a file."""
    bench.env.update({name: each for name, each in ENVIRON.items() if name.startswith("GIT_")})
    bench.env["OUTLIVE_HOOK_DEADLINE_S"] = str(PATIENCE_S)
    Worktree(bench.project).commit(**{"a.py": "one\n"})
    begin(bench, SESSION)
    bench.run("run", "--session", SESSION, "--wait", "60s", "git stash; echo two > a.py; exit 1")


def loaded(bench: Bench, *words: str, given: str = "") -> tuple[str, ...]:
    """Return which modules with rules, and which modules of the shell parser, a call of the command line loads."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *bench.command(*words)[1:]],
        input=given,
        env=bench.env,
        cwd=bench.project,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S * 2,
    )
    assert "outlive.cli.main" in done.stderr, done.stderr
    names = (line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines() if line.startswith("import time:"))
    return tuple(sorted(name for name in names if name.startswith(RULES)))


def test_verbs_load_no_rules_when_they_read_no_text_of_a_command(bench: Bench) -> None:
    """Commands that read no text of a shell command load no rules, even if a failed task left a file changed."""
    assert {words: loaded(bench, *words) for words in WITHOUT_TEXT} == dict.fromkeys(WITHOUT_TEXT, ())


def test_verbs_load_no_rules_while_a_harmless_task_runs(bench: Bench) -> None:
    """While a harmless task runs, no rules are loaded. A quick search of its text shows that it removes no file."""
    task = bench.launch(until("go"), "--session", SESSION)
    asked = WITHOUT_TEXT[3:]
    assert {words: loaded(bench, *words) for words in asked} == dict.fromkeys(asked, ())
    (bench.project / "go").touch()
    bench.run("wait", task, "--no-ack")


def test_hooks_load_no_rules_for_an_edit_of_an_unchanged_file(bench: Bench) -> None:
    """For an edit of an unchanged file, no hook loads the rules."""
    found = {}
    for event in EVENTS:
        payload = {"session_id": SESSION, "cwd": str(bench.project), "source": "resume", "tool_name": "Edit"}
        given = json.dumps({**payload, "tool_input": {"file_path": "other.py"}, "hook_event_name": event})
        found[event] = loaded(bench, "hook", "claude", event, given=given)
    assert found == dict.fromkeys(EVENTS, ())


def test_verbs_load_the_rules_when_they_read_the_text_of_a_command(bench: Bench) -> None:
    """`guard --command` and `hand-off` load the rules.

    So the other tests of this file search for the right module names.
    """
    task = bench.launch(f"{until('go')}; git stash", "--session", SESSION)
    assert "outlive.observe.predict.rule" in loaded(bench, "guard", "--command", "cat a.py")
    assert "outlive.observe.predict.rule" in loaded(bench, "hand-off", "--session", SESSION)
    (bench.project / "go").touch()
    bench.run("wait", task, "--no-ack")
