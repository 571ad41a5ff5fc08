"""The search for a line in the output of one attempt."""

from __future__ import annotations

from outlive.domain.tasks.readiness import compile_pattern
from outlive.domain.text.sanitize import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.output import Piece

_LONGEST_LINE = 1 << 20


class LineSearch:
    """A search for the first line that matches a regular expression."""

    def __init__(self, pattern: str) -> None:
        self._wanted = compile_pattern(pattern)
        self._rest = b""

    def search(self, piece: Piece) -> str | None:
        """Return the first line that matches, up to the end of the next piece.

        Returns None if no line matches. The text after the last newline counts as a line too, because a prompt for
        input does not end with a newline.
        """
        if piece.dropped_before or piece.restarted:
            self._rest = b""  # output was dropped here, so this piece does not continue the unfinished line
        *lines, rest = (self._rest + piece.content).split(b"\n")
        self._rest = rest[-_LONGEST_LINE:]
        for line in (*lines, self._rest):
            text = plain(line.decode("utf-8", "replace"))
            if self._wanted.search(text):
                return text
        return None
