"""The wait for a line of output or for readiness, for the tool `wait`."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from outlive.domain.errors import UserError
from outlive.domain.text.sanitize import from_json
from outlive.domain.value import Value
from outlive.service.tasks.wait_for_condition import condition_of

if TYPE_CHECKING:
    from outlive.mcp.tools.tool import Call

# How many seconds longer the process that searches may take, to start and to exit.
_MARGIN_S = 10


def check_pattern(pattern: str) -> None:
    """Raise `UserError` for an invalid condition, or for a NUL byte in it.

    A condition with a command is refused: the server may run outside of the sandbox in which the client's commands run.
    """
    if "\0" in pattern:
        raise UserError("until has a NUL byte, which matches no line", "remove the NUL byte")
    condition = condition_of(pattern)
    if condition is not None and condition.kind == "cmd":
        raise UserError(
            "this tool runs no command, so `cmd:` is not possible", "use `outlive wait --until` through the shell"
        )
    if condition is not None:
        return
    try:
        re.compile(pattern)
    except re.error as error:
        raise UserError(
            f"until is not a regular expression: {error}", "write a backslash before special characters"
        ) from error


class Found(Value):
    """The result of a wait for a line or a condition."""

    line: str | None
    """The line that matches, or a sentence about the condition that holds. None if nothing was found."""
    missing: str
    """What was not found. Empty if a line was found."""
    timed_out: bool
    """Whether another call may find the line, because the task goes on."""


def wait_for_line(call: Call, task: str, pattern: str, seconds: float) -> Found:
    """Wait for a line that matches a pattern, or for a condition such as `port:5173`.

    The search runs in a process of its own, which runs `outlive wait`. Some patterns take very long to match. In this
    process, they would block all other calls, but another process can be killed.
    """
    words = ("wait", task, "--no-ack", "--json", "--timeout", f"{seconds:.3f}s", f"--until={pattern}")
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-m", "outlive", *words],
            env=dict(call.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds + _MARGIN_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Found(line=None, missing="no line matches", timed_out=True)
    answer: Any = from_json(done.stdout) if done.stdout.strip() else {}
    if "matched" not in answer:
        raise UserError(
            f"the output of {task} cannot be searched: {done.stderr.strip()[:200]}",
            "use `outlive wait --until` through the shell",
        )
    found = answer["matched"]
    return Found(
        line=None if found is None else str(found),
        missing=str(answer["missing"] or ""),
        timed_out=bool(answer["timed_out"]),
    )
