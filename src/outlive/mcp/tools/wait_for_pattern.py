"""The wait for a line of a task's output, for the tool `wait`."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from outlive.domain.errors import UserError
from outlive.domain.text.sanitize import from_json

if TYPE_CHECKING:
    from outlive.mcp.tools.tool import Call

# How many seconds longer the process that searches may take, to start and to exit.
_MARGIN_S = 10


def check_pattern(pattern: str) -> None:
    """Raise `UserError` if a text is not a regular expression or contains a NUL byte."""
    if "\0" in pattern:
        raise UserError("until has a NUL byte, which matches no line", "remove the NUL byte")
    try:
        re.compile(pattern)
    except re.error as error:
        raise UserError(
            f"until is not a regular expression: {error}", "write a backslash before special characters"
        ) from error


def wait_for_line(call: Call, task: str, pattern: str, seconds: float) -> str | None:
    """Return the first line of a task's output that matches a pattern.

    Returns None if the task ended or the time was over before a line matched.

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
        return None
    answer: Any = from_json(done.stdout) if done.stdout.strip() else {}
    if "matched" not in answer:
        raise UserError(
            f"the output of {task} cannot be searched: {done.stderr.strip()[:200]}",
            "use `outlive wait --until` through the shell",
        )
    found = answer["matched"]
    return None if found is None else str(found)
