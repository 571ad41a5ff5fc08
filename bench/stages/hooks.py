"""The stage that measures how long a client waits for a hook.

The ledger has 10,000 tasks. Each event is measured twice: when nothing was written to the ledger since the last call,
and after a task of another session was written. A hook that has to report something may take longer.
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
from stages.telling import fill

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

TASKS, SESSIONS = 10_000, 1_000
GOAL = 2.0
# The events that a client reports many times in a session.
_OFTEN = ("PreToolUse", "UserPromptSubmit", "PostToolBatch", "Stop")
_EVENTS = (*_OFTEN, "SessionEnd", "PreCompact", "SessionStart")
_CALLS = 40
_SESSION = "a-session-with-nothing-in-it"


class Hooks(NamedTuple):
    """The measured times of a bare Python interpreter and of each hook event.

    `quiet` has the times with an unchanged ledger, and `committed` has the times after a change of the ledger.
    """

    bare: Samples
    quiet: dict[str, Samples]
    committed: dict[str, Samples]


def hooks(place: Path, share: float, say: Callable[[str], None]) -> Hooks:
    """Measure the hook events and a bare Python interpreter in turns.

    The goal is a ratio of both, and noise affects calls close in time alike.
    """
    say(f"hooks: a ledger of {TASKS:,} tasks")
    project = place / "hooked"
    project.mkdir()
    env, client = fill({**os.environ, "OUTLIVE_HOME": str(place / "hooks-home")}, TASKS, SESSIONS)
    env = {**env, "CLAUDE_PID": str(os.getpid()), "CLAUDE_PROJECT_DIR": str(project)}
    found = Hooks(Samples(), {name: Samples() for name in _OFTEN}, {name: Samples() for name in _EVENTS})
    log = open_home(env).ledger + "-wal"
    _call("SessionStart", env, project)
    for _ in range(max(5, int(_CALLS * share))):
        found.bare.add(_timed([sys.executable, "-I", "-c", "pass"], env, ""))
        for name in _EVENTS:
            os.utime(log)
            found.committed[name].add(_call(name, env, project))
        os.utime(log, ns=(0, time.time_ns() - 10**9))
        _call("Stop", env, project)
        for name in _OFTEN:
            found.quiet[name].add(_call(name, env, project))
    client.cancel(*client.tasks(all_projects=True, state=("running",), limit=None))
    return found


def _call(name: str, env: Mapping[str, str], project: Path) -> float:
    payload = {
        "session_id": _SESSION,
        "cwd": str(project),
        "hook_event_name": name,
        "source": "resume",
        "tool_name": "Bash",
        "tool_input": {"command": "npm test -- --watch=false && git status"},
    }
    return _timed([sys.executable, "-I", which("outlive"), "hook", "claude", name], env, json.dumps(payload))


def _timed(words: list[str], env: Mapping[str, str], payload: str) -> float:
    began = time.perf_counter()
    done = subprocess.run(words, input=payload, env=env, capture_output=True, text=True, check=True)
    took = time.perf_counter() - began
    if done.stderr:
        raise RuntimeError(done.stderr)
    return took
