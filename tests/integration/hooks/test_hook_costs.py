"""Hooks do little work when there is nothing to report: what they import, parse and write."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from outlive.hooks.state.unchanged import stamp_of
from tests.hook_steps import SESSION, call, ended, launch, said
from tests.session_steps import until
from tests.support import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench

HEAVY = {"json", "re", "argparse", "typing", "dataclasses", "subprocess", "collections", "enum", "inspect", "ctypes"}


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolBatch", "UserPromptSubmit", "Stop", "SessionStart"])
def test_hook_imports_no_heavy_module(bench: Bench, event: str) -> None:
    """A hook imports no slow module. Most of a hook's time is import time, and a hook runs at every use of a tool."""
    ended(bench)
    said(call(bench, "claude", "PostToolBatch"))
    said(call(bench, "claude", "PostToolBatch"))
    wait_until(lambda: stamp_of(bench.home), "the ledger's files to count as settled")
    said(call(bench, "claude", "PreToolUse", tool_name="Bash", tool_input={"command": "ls"}))
    payload = {"session_id": SESSION, "cwd": str(bench.project), "tool_name": "Bash", "tool_input": {"command": "ls"}}
    words = bench.command("hook", "claude", event)
    done = subprocess.run(
        [words[0], "-I", "-X", "importtime", *words[1:]],
        input=json.dumps(payload),
        env=bench.env,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    bare = subprocess.run(
        [words[0], "-I", "-X", "importtime", "-c", "pass"], capture_output=True, text=True, check=True
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    anyway = {line.rpartition("|")[2].strip() for line in bare.stderr.splitlines()}
    assert "outlive.hooks.entry" in loaded
    assert not HEAVY.intersection(loaded - anyway)
    if event == "PreToolUse":
        assert "apsw" not in loaded


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_session_start_calls_no_fsync_when_there_is_nothing_to_report(bench: Bench, tmp_path: Path) -> None:
    """The start of a session without a report calls no fsync.

    A power failure that loses the record also ends the session.
    """
    said(call(bench, "claude", "SessionStart", source="startup"))
    log = tmp_path / "calls"
    payload = {"session_id": SESSION, "cwd": str(bench.project), "hook_event_name": "SessionStart", "source": "resume"}
    subprocess.run(
        [
            "strace",
            "-f",
            "-o",
            str(log),
            "-e",
            "trace=fsync,fdatasync",
            *bench.command("hook", "claude", "SessionStart"),
        ],
        input=json.dumps(payload),
        env=bench.env,
        text=True,
        check=True,
    )
    assert "sync" not in log.read_text()
    assert bench.json("session", "list", "--all")["sessions"][0]["boundary"] == 2


def test_tool_hook_parses_no_command_while_running_tasks_changed_nothing(bench: Bench) -> None:
    """If running tasks have changed no file, a tool hook does not import the code that parses commands."""
    launch(bench, until("go"))
    loaded = subprocess.run(
        [sys.executable, "-X", "importtime", *bench.command("hook", "claude", "PreToolUse")[1:]],
        input=json.dumps(
            {
                "session_id": SESSION,
                "cwd": str(bench.project),
                "tool_name": "Bash",
                "tool_input": {"command": "git status"},
            }
        ),
        env={**bench.env, "OUTLIVE_HOOK_DEADLINE_S": str(PATIENCE_S)},
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    assert "outlive.hooks.guard.open_window_warning" in loaded
    assert "outlive.ledger.sqlite" in loaded
    assert "outlive.service.effects.effects" not in loaded
    assert "outlive.observe.shell.commands" not in loaded
