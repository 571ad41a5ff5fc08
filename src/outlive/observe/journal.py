"""The journal of an attempt: a file in its bundle, one line per observed change.

    time  operation  thread  state  path  [state  path]

Times are microseconds since 1970. Setting the system's clock while the task runs does not affect the times. A state
describes what was at the path before the change (see `path_state.py`), or is `-` if the path was not read. Tabs,
newlines and backslashes of paths are escaped. A path that is not valid UTF-8 keeps its bytes.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

UNSEEN = "-"
_ESCAPES = {ord("\\"): "\\\\", ord("\t"): "\\t", ord("\n"): "\\n", ord("\r"): "\\r"}
_MOST_GATHERED, _LONGEST_GATHERED_US = 500, 100_000
_MOST_READ = 8 << 20
_LONGEST_BEGINNING, _STARTS = 64 << 10, ([b"begin"], [b"exec"])
CHANGES = ("write", "rename", "remove", "make")
LARGEST = 128 << 20
_TORN = "\0\n"
"""The end of a line that a keeper left unfinished when it died. No path contains NUL."""


def escaped(text: str) -> str:
    """Return the text as one field, with tabs, newlines and backslashes escaped."""
    return text.translate(_ESCAPES) if "\\" in text or "\t" in text or "\n" in text or "\r" in text else text


def unescaped(field: str) -> str:
    """Return the text of an escaped field."""
    if "\\" not in field:
        return field
    parts = field.split("\\\\")
    return "\\".join(part.replace("\\t", "\t").replace("\\n", "\n").replace("\\r", "\r") for part in parts)


class Journal:
    """An open file of observed changes. Lines are collected and written in batches."""

    def __init__(self, fd: int, wall: int, on_unwritten: Callable[[int], object] = lambda _: None) -> None:
        """Write to the file of observed changes that is open as `fd`.

        `wall` is the Unix time in nanoseconds at which the monotonic clock was 0. `on_unwritten` is called with the
        time of the first collected line, and with 0 when all lines are written.
        """
        self._fd = fd
        self._lines: list[str] = []
        self._since = 0
        self._last = b""
        self._room = LARGEST
        self._wall = wall
        self._on_unwritten = on_unwritten

    def now(self) -> int:
        """Return the time in microseconds since 1970.

        Setting the system's clock does not affect this time.
        """
        return (self._wall + time.monotonic_ns()) // 1000

    def add(self, at: int, words: str) -> None:
        """Add a line with the time `at` and the other fields, which are in `words`."""
        if not self._lines:
            self._since = at
            self._on_unwritten(at)
        self._lines.append(f"{at}\t{words}\n")
        if len(self._lines) >= _MOST_GATHERED or at - self._since > _LONGEST_GATHERED_US:
            self.flush()

    @property
    def is_empty(self) -> bool:
        """Whether all collected lines are written."""
        return not self._lines

    def flush(self) -> None:
        """Write the collected lines. If the disk is full, record that lines are missing."""
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
            content = self._gap("the journal is full, so later changes are missing")
        try:
            written = os.write(self._fd, content)
        except OSError:
            written = 0
        if written == len(content):
            self._last = content
        else:
            self._make_room_for_a_gap(self._last + content[:written])

    def _make_room_for_a_gap(self, tail: bytes) -> None:
        """Replace the last lines of a journal by a line that says that lines are missing.

        `tail` is the end of the file.
        """
        gap = self._gap("the disk was full, so changes are missing")
        kept = tail.rfind(b"\n", 0, max(0, len(tail) - len(gap))) + 1
        self._last = tail[:kept] + gap
        try:
            os.ftruncate(self._fd, os.fstat(self._fd).st_size - len(tail) + kept)
            os.write(self._fd, gap)
        except OSError:
            self._room = 0  # the loss of lines cannot be recorded either: write nothing more

    def _gap(self, words: str) -> bytes:
        return f"{self.now()}\tgap\t0\t{UNSEEN}\t{words}\n".encode("ascii")


def is_of_something(state: str) -> bool:
    """Return whether a recorded state describes an existing file or symbolic link."""
    return state[:1] in ("f", "l", "u")


def is_bare(path: str) -> bool:
    """Return whether a file of observed changes is missing or has only program starts."""
    lines = _first_lines(path)
    return not lines[-1] and all(line.split(b"\t", 2)[1:2] in _STARTS for line in lines[:-1])


def is_observed(path: str) -> bool:
    """Return whether a file of observed changes records system calls.

    The `begin` line of the file shows this.
    """
    return any(line.split(b"\t", 2)[1:2] == [b"begin"] for line in _first_lines(path)[:-1])


def _first_lines(path: str) -> list[bytes]:
    """Return the first complete lines of a journal, and the text after them.

    A journal is a file of observed changes. For a missing journal, the result is only an empty rest.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return [b""]
    try:
        return os.read(fd, _LONGEST_BEGINNING).split(b"\n")
    finally:
        os.close(fd)


def first_write(path: str, top: str) -> bool:
    """Return whether a task's recorded changes contain a write to an existing file.

    `path` is the journal, the file of these changes. The written file must be below `top`. Only the beginning of a very
    long journal is read.
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
    """Yield the fields of every well-formed line in a file of observed changes.

    A missing file has no lines.
    """
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            yield from fields_of(file)
    except FileNotFoundError:
        return


def fields_of(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the fields of every well-formed line of a journal. Skip other lines.

    A journal is a file of observed changes, with fields that are separated by tabs.
    """
    for line in lines:
        fields = line[:-1].split("\t") if line.endswith("\n") and not line.endswith(_TORN) else []
        if len(fields) >= 5 and fields[0].isdecimal() and fields[2].isdecimal():
            yield [*fields[:4], *map(unescaped, fields[4:])]
