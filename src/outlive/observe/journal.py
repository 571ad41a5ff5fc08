"""The journal: every change that was seen, one line each, in the bundle.

    time  operation  thread  state  path  [state  path]

Times are microseconds since 1970 by a clock that nobody can set back while the task runs. A state
is what the path held before (see `content`), `-` where nobody looked. Tabs, newlines and
backslashes of paths are escaped; whatever bytes a path has survive.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

UNSEEN = "-"
_ESCAPES = {ord("\\"): "\\\\", ord("\t"): "\\t", ord("\n"): "\\n", ord("\r"): "\\r"}
_MOST_GATHERED, _LONGEST_GATHERED_US = 500, 100_000
_MOST_READ = 8 << 20
_LONGEST_BEGINNING, _STARTS = 64 << 10, ([b"begin"], [b"exec"])
CHANGES = ("write", "rename", "remove", "make")
LARGEST = 128 << 20
_TORN = "\0\n"
"""How a line ends that the keeper died of writing: the witness ends it so, for no path has that."""


def escaped(text: str) -> str:
    """The text as one field."""
    return text.translate(_ESCAPES) if "\\" in text or "\t" in text or "\n" in text or "\r" in text else text


def unescaped(field: str) -> str:
    """The text of a field."""
    if "\\" not in field:
        return field
    parts = field.split("\\\\")
    return "\\".join(part.replace("\\t", "\t").replace("\\n", "\n").replace("\\r", "\r") for part in parts)


class Journal:
    """An open journal. Lines are gathered until somebody has the time to write them."""

    def __init__(self, fd: int, wall: int, on_unwritten: Callable[[int], object] = lambda _: None) -> None:
        """`wall` is what lies between the monotonic clock and 1970, in nanoseconds, as of the task's start.

        `on_unwritten`: called with the time of the first line that is gathered, and with 0 when all are written.
        """
        self._fd = fd
        self._lines: list[str] = []
        self._since = 0
        self._last = b""
        self._room = LARGEST
        self._wall = wall
        self._on_unwritten = on_unwritten

    def now(self) -> int:
        """Microseconds since 1970, of the clock that was set when we began."""
        return (self._wall + time.monotonic_ns()) // 1000

    def add(self, at: int, words: str) -> None:
        """One more line: when it was, and the rest of it."""
        if not self._lines:
            self._since = at
            self._on_unwritten(at)
        self._lines.append(f"{at}\t{words}\n")
        if len(self._lines) >= _MOST_GATHERED or at - self._since > _LONGEST_GATHERED_US:
            self.flush()

    @property
    def is_empty(self) -> bool:
        """Whether everything has been written."""
        return not self._lines

    def flush(self) -> None:
        """Write what was gathered; a full disk loses lines, never the task, and that they are lost is told."""
        if not self._lines:
            return
        content = "".join(self._lines).encode("utf-8", "surrogateescape")
        self._lines.clear()
        if self._room > 0:
            self._write(content)
        self._on_unwritten(0)

    def _write(self, content: bytes) -> None:
        self._room -= len(content)
        if self._room <= 0:
            content = self._gap("the journal is full")
        try:
            written = os.write(self._fd, content)
        except OSError:
            written = 0
        if written == len(content):
            self._last = content
        else:
            self._make_room_for_a_gap(self._last + content[:written])

    def _make_room_for_a_gap(self, tail: bytes) -> None:
        """Give up the last whole lines, and the torn one after them, for the word that more are missing."""
        gap = self._gap("the disk was full: what it did then is not known")
        kept = tail.rfind(b"\n", 0, max(0, len(tail) - len(gap))) + 1
        self._last = tail[:kept] + gap
        try:
            os.ftruncate(self._fd, os.fstat(self._fd).st_size - len(tail) + kept)
            os.write(self._fd, gap)
        except OSError:
            self._room = 0  # nothing can be said any more

    def _gap(self, words: str) -> bytes:
        return f"{self.now()}\tgap\t0\t{UNSEEN}\t{words}\n".encode("ascii")


def is_of_something(state: str) -> bool:
    """Whether a state is that of a file or link which was there."""
    return state[:1] in ("f", "l", "u")


def is_bare(path: str) -> bool:
    """Whether a journal tells of nothing but programs that were started, or there is none: its task holds nothing."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        content = os.read(fd, _LONGEST_BEGINNING)
    finally:
        os.close(fd)
    *lines, rest = content.split(b"\n")
    return not rest and all(line.split(b"\t", 2)[1:2] in _STARTS for line in lines)


def first_write(path: str, top: str) -> bool:
    """Whether a journal tells that its task wrote to a file of this tree that was there before.

    Looked for only in the beginning of a very long one; line by line only if it names the tree at all.
    """
    below, read = top.rstrip("/") + "/", 0
    gits: tuple[str, ...] = ()
    for fields in read_journal(path) if _names(path, below) else ():
        _, operation, _, *words = fields
        if operation in ("begin", "further"):
            gits += tuple(word.rstrip("/") + "/" for word in (*words[2::3], *words[3::3]) if word)
        elif operation in CHANGES:
            for state, name in zip(words[::2], words[1::2], strict=False):
                if is_of_something(state) and name.startswith(below) and not name.startswith(gits):
                    return True
        read += sum(map(len, fields))
        if read > _MOST_READ:
            break
    return False


def _names(path: str, place: str) -> bool:
    try:
        with open(path, "rb") as file:
            return escaped(place).encode("utf-8", "surrogateescape") in file.read(_MOST_READ)
    except FileNotFoundError:
        return False


def read_journal(path: str) -> Iterator[list[str]]:
    """The fields of every whole line; a line that is none is left out."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            for line in file:
                fields = line[:-1].split("\t") if line.endswith("\n") and not line.endswith(_TORN) else []
                if len(fields) >= 5 and fields[0].isdecimal() and fields[2].isdecimal():
                    yield [*fields[:4], *map(unescaped, fields[4:])]
    except FileNotFoundError:
        return
