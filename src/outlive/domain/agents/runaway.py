"""The count of an agent's tool calls and errors, which detects a runaway agent.

An agent counts as a runaway if it repeats one call or one error very often, or makes too many calls.
"""

from __future__ import annotations

MOST_IDENTICAL = 20


class Runaway:
    """A counter of one agent's tool calls and errors."""

    def __init__(self, most_calls: int) -> None:
        self._most_calls = most_calls
        self._last: str | None = None
        self._identical = 0
        self._last_error: str | None = None
        self._errors = 0
        self.calls = 0

    def count(self, call: str) -> None:
        """Count one tool call.

        `call` is a string with the tool and its input. The caller must pass equal strings for equal calls.
        """
        self.calls += 1
        self._identical = self._identical + 1 if call == self._last else 1
        self._last = call
        self._errors = 0

    def count_error(self, error: str) -> None:
        """Count an error after which the client continues by itself.

        Some clients repeat one error without calling a tool, for example while they fail to compact their history.
        """
        self._errors = self._errors + 1 if error == self._last_error else 1
        self._last_error = error

    @property
    def reason(self) -> str | None:
        """Why the agent counts as a runaway, or None if it does not."""
        if self._identical >= MOST_IDENTICAL:
            return f"{self._identical} identical tool calls in a row"
        if self._errors >= MOST_IDENTICAL:
            return f"the same error {self._errors} times in a row"
        return f"{self.calls} tool calls" if self.calls >= self._most_calls else None
