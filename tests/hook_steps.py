"""Steps of tests that call hooks as clients do."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outlive.hooks.clients import claude, codex, gemini, opencode
from tests.support import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from tests.support import Bench

PAYLOADS = Path(__file__).with_name("clients") / "payloads"
SESSION = "0d413d96-f387-4132-a51a-c0d99b18c65d"
MODULES: dict[str, Any] = {"claude": claude, "codex": codex, "gemini": gemini, "opencode": opencode}
STOPS = {"claude": "Stop", "codex": "Stop", "gemini": "AfterAgent", "opencode": "session.idle"}
RESULTS = {"claude": "PostToolBatch", "codex": "PostToolUse", "gemini": "AfterTool"}


def recorded(client: str) -> dict[str, Any]:
    """Return the payloads that a real client has sent, by event and variant."""
    found: dict[str, Any] = json.loads((PAYLOADS / f"{client}.json").read_text())
    return found


def call(
    bench: Bench,
    client: str,
    event: str,
    *options: str,
    env: dict[str, str] | None = None,
    through: tuple[str, ...] = (),
    **fields: Any,
) -> subprocess.CompletedProcess[str]:
    """Call a hook as a client does, and return the ended process.

    `through` is a command that runs the hook, and may be empty.
    """
    payload = {"session_id": SESSION, "cwd": str(bench.project), "hook_event_name": event, **fields}
    return subprocess.run(
        [*through, *bench.command("hook", client, event, *options)],
        input=json.dumps(payload),
        # The tests check what a hook answers. On a busy machine, the answer may take longer than the usual deadline.
        env={**bench.env, "OUTLIVE_HOOK_DEADLINE_S": str(PATIENCE_S), **(env or {})},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def said(done: subprocess.CompletedProcess[str]) -> Any:
    """Assert that a hook succeeded, and return the JSON that it printed, or an empty object."""
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout) if done.stdout else {}


def context(answer: Any) -> str:
    """Return the text that a hook's answer shows to the model."""
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


def launch(bench: Bench, text: str = "true", *options: str) -> str:
    """Launch a task of the test's session, and return its id."""
    return bench.launch(text, "--session", SESSION, *options)


def ended(bench: Bench, text: str = "true", *options: str) -> str:
    """Launch a task of the test's session, and wait until it has ended.

    The ending has not been reported to the session.
    """
    task = launch(bench, text, *options)
    wait_until(lambda: bench.row(task).current.settled_at, "the ending")
    return task


def state(bench: Bench, task: str) -> str:
    """Return the state of the notice of a task's ending."""
    return str(bench.show(task)["notices"][0]["state"])
