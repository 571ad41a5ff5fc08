"""The count of tool calls, to find agents that repeat themselves."""

from __future__ import annotations

MOST_IDENTICAL = 20


class Runaway:
    """The count of an agent's tool calls."""

    def __init__(self, most_calls: int) -> None:
        self._most_calls = most_calls
        self._last: str | None = None
        self._identical = 0
        self._last_error: str | None = None
        self._errors = 0
        self.calls = 0

    def count(self, call: str) -> None:
        """Count one call.

        `call` is the tool with its input, in a form that is equal for equal calls.
        """
        self.calls += 1
        self._identical = self._identical + 1 if call == self._last else 1
        self._last = call
        self._errors = 0

    def count_error(self, error: str) -> None:
        """Count an error after which the client goes on by itself.

        A client that compacts its history in vain repeats one error, and calls no tool.
        """
        self._errors = self._errors + 1 if error == self._last_error else 1
        self._last_error = error

    @property
    def reason(self) -> str | None:
        """Why the agent is taken for a runaway; None if it is not."""
        if self._identical >= MOST_IDENTICAL:
            return f"{self._identical} identical tool calls in a row"
        if self._errors >= MOST_IDENTICAL:
            return f"the same error {self._errors} times in a row"
        return f"{self.calls} tool calls" if self.calls >= self._most_calls else None
