"""Search of long journals for the lines that some paths depend on.

A journal lists the observed changes of one attempt (see `journal.py`). A path depends on every line that names the path
or a directory above the path. After a move, the path also depends on the lines with the other name of the path or
directory. The lines about the processes that made these changes are needed, too. A replay of only these lines has the
same result for the path as a replay of all lines. Paths are bytes in this module, as in the journal.
"""

from __future__ import annotations

import gc
import os

from outlive.observe.journal import escaped, fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# Every name of a path must be searched for. If a directory is moved again and again, a path can have very many names.
# So their number is limited.
_MOST_NAMES = 400
_MOST_LINES = 5_000
_BEGINNINGS = frozenset((b"begin", b"watch", b"further"))
_KEPT = _BEGINNINGS | {b"unobserved", b"unseen"}
_WORDS = frozenset((b"gap", b"connect", b"look", b"final"))
_PROGRAMS = frozenset((b"exec", b"fork"))
_ONE_PATH = frozenset((b"write", b"remove"))  # the operations in nearly all lines
_NO_CHANGES = _BEGINNINGS | _PROGRAMS
# A path whose first state was unknown or a special file never counts as changed.
_NEVER_MISSED = frozenset((b"?", b"-", b"s"))
_ABSENT = b"0"


def as_written(path: str) -> bytes:
    """Return the bytes that stand for a path in a file of observed changes."""
    return escaped(path).encode("utf-8", "surrogateescape")


class JournalSearch:
    """The observed changes of a task's attempts, in one searchable list."""

    def __init__(self, texts: Iterable[bytes], ignored: str, worktrees: str) -> None:
        """Split the texts into fields.

        `texts` are the contents of the files of observed changes. `ignored` is Outlive's own state directory. Changes
        in it do not count, except for changes in `worktrees`, where agents work.
        """
        self._programs: dict[bytes, list[tuple[int, bytes]]] = {}
        """For each thread, the numbers of the lines that show its start and its programs.

        Each number comes with the parent that the line names.
        """
        was_enabled = gc.isenabled()
        gc.disable()  # there is no garbage yet, and a garbage collection would take longer than the splitting
        try:
            self._lines = [
                fields
                for text in texts
                for fields in [line.split(b"\t") for line in _whole_lines(text)]
                if len(fields) >= 5
            ]
            self._firsts = self._find_firsts()
        finally:
            if was_enabled:
                gc.enable()
        self._ignored = as_written(ignored.rstrip("/") + "/")
        self._worktrees = as_written(worktrees.rstrip("/") + "/")
        self._changed: list[bytes] | None = None
        self._moves = [
            (fields[4], fields[6])
            for fields in self._lines
            if fields[1] == b"rename" and fields[3][:1] == b"d" and len(fields) > 6
        ]

    @property
    def changed(self) -> list[bytes]:
        """The paths that the task may have changed, in the order of the first change."""
        if self._changed is None:
            self._changed = self._find_changed()
        return self._changed

    def names(self, paths: Iterable[bytes]) -> bool:
        """Return whether a recorded change concerns one of the paths.

        A change concerns a path if it names the path or a directory above the path. Names before and after moves are
        searched for, too. Returns True if there are too many names to search for.
        """
        names = self._names_of(paths)
        return names is None or any(above in self._firsts for name in names for above in around_of(name))

    def lines_about(self, paths: Iterable[bytes]) -> list[list[str]] | None:
        """Return the recorded lines that are needed to know what happened to `paths`.

        Returns None if there are too many lines.
        """
        names = self._names_of(paths)
        if names is None:
            return None
        names |= {above for name in names for above in around_of(name)}
        about, threads = set(), set()
        for number, fields in enumerate(self._lines):
            if fields[1] in _KEPT:
                about.add(number)
            elif fields[1] not in _PROGRAMS and not names.isdisjoint(fields[4::2]):
                about.add(number)
                threads.add(fields[2])
        about |= self._programs_of(threads)
        if len(about) > _MOST_LINES:
            return None
        text = ("\t".join(map(_text, self._lines[number])) + "\n" for number in sorted(about))
        return list(fields_of(text))

    def _find_changed(self) -> list[bytes]:
        tops, gits, kept = self._places()
        kept_or_above = kept | {above for top in tops for above in around_of(top)}
        below = tuple(top + b"/" for top in tops)
        in_gits = tuple(git + b"/" for git in gits)
        # After a directory was moved away, a path below the old name may be first recorded as absent, although the path
        # existed before the move. So the path may have changed.
        left = tuple({source + b"/" for source, _ in self._moves if self._firsts.get(source) != _ABSENT})
        return [
            path
            for path, state in self._firsts.items()
            if state not in _NEVER_MISSED
            and (state != _ABSENT or path.startswith(left) or path in kept)
            and (
                path in kept_or_above
                or (
                    path.startswith(below)
                    and not path.startswith(in_gits)
                    and (not path.startswith(self._ignored) or path.startswith(self._worktrees))
                )
            )
        ]

    def _find_firsts(self) -> dict[bytes, bytes]:
        """Return the first recorded state of each path.

        The `exec` and `fork` lines, which show the programs of the threads, are collected at the same time.
        """
        firsts: dict[bytes, bytes] = {}
        for number, fields in enumerate(self._lines):
            operation = fields[1]
            if operation in _ONE_PATH and len(fields) == 5:
                firsts.setdefault(fields[4], fields[3])
                continue
            if operation in _PROGRAMS:
                at = 4 if operation == b"fork" else 6
                self._programs.setdefault(fields[2], []).append((number, fields[at] if len(fields) > at else b""))
                continue
            if operation in _WORDS or operation in _KEPT:
                continue
            if operation == b"mkdir" and fields[3][:1] == b"d":
                continue
            begin = max(3, len(fields) - 2) if operation == b"make" else 3
            for state, path in zip(fields[begin::2], fields[begin + 1 :: 2], strict=False):
                firsts.setdefault(path, state)
        return firsts

    def _places(self) -> tuple[set[bytes], set[bytes], set[bytes]]:
        """Return paths that every search needs.

        These are the tops of worktrees, the git directories, and the paths of HEAD and of the stash.
        """
        tops, gits, kept = set(), set(), set()
        for fields in self._lines:
            if fields[1] in _BEGINNINGS:
                roots = fields[4:7] if fields[1] == b"further" else fields[4:]
                for top, git, common in zip(roots[::3], roots[1::3], [*roots[2::3], b""], strict=False):
                    tops |= {top.rstrip(b"/")} - {b""}
                    gits |= {git.rstrip(b"/"), common.rstrip(b"/")} - {b""}
                    kept |= {git + b"/HEAD", (common or git) + b"/refs/stash"} if git else set()
        return tops, gits, kept

    def _names_of(self, paths: Iterable[bytes]) -> set[bytes] | None:
        """Return all names of the paths before and after moves.

        Returns None if there are too many names.
        """
        names, new = set(), set(paths)
        while new:
            names |= new
            if len(names) > _MOST_NAMES:
                return None
            new = {
                there + name[len(here) :]
                for name in new
                for move in self._moves
                for here, there in (move, move[::-1])
                if name == here or name.startswith(here + b"/")
            } - names
        return names

    def _programs_of(self, threads: set[bytes]) -> set[int]:
        """Return the numbers of the lines that show the programs of some threads.

        These are the `exec` and `fork` lines of the threads and of their parents.
        """
        found: set[int] = set()
        known, new = set(threads), set(threads)
        while new:
            own = [each for thread in new for each in self._programs.get(thread, ())]
            found |= {number for number, _ in own}
            new = {parent for _, parent in own} - known
            known |= new
        return found


def around_of(path: bytes) -> Iterator[bytes]:
    """Yield a path, and every directory above it."""
    path = path.rstrip(b"/")
    while path:
        yield path
        path = path.rpartition(b"/")[0]


def names_any(text: bytes, paths: Iterable[bytes]) -> bool:
    """Return whether a recorded change may concern some paths.

    `text` is the content of a file of observed changes. A change of a directory above a path, or of a file below a
    path, counts, too. The bytes are searched without reading every line, so the result may be True without such a
    change.
    """
    paths = {path.rstrip(b"/") for path in paths}
    # Each search reads the whole text, so a directory above several paths is searched for only once.
    above = {each for path in paths for each in around_of(path.rpartition(b"/")[0])}
    names = [path + end for path in paths for end in (b"\t", b"\n", b"/")]
    names += [each + end for each in above - paths for end in (b"\t", b"\n")]
    return any(_is_in_a_change(text, b"\t" + name) for name in names)


def _is_in_a_change(text: bytes, wanted: bytes) -> bool:
    """Return whether a line that records a change contains the bytes `wanted`."""
    at = text.find(wanted)
    while at >= 0:
        begin, end = text.rfind(b"\n", 0, at + 1) + 1, text.find(b"\n", at)
        operation = text[begin:at].split(b"\t", 2)[1:2]
        if not operation or operation[0] not in _NO_CHANGES:
            return True
        at = text.find(wanted, end) if end >= 0 else -1
    return False


def _whole_lines(text: bytes) -> list[bytes]:
    """Return the complete lines of a journal.

    A line is incomplete if it ends with a zero byte, or if it is the last line and has no line end.
    """
    lines = text.split(b"\n")[:-1]
    return [line for line in lines if line[-1:] != b"\0"] if b"\0" in text else lines


def read_texts(files: Sequence[str]) -> list[bytes]:
    """Return the contents of those files of observed changes that exist."""
    texts = []
    for path in files:
        try:
            with open(path, "rb") as file:
                texts.append(file.read())
        except FileNotFoundError:
            continue
    return texts


def size_of(files: Sequence[str]) -> int:
    """Return the total size of some files in bytes. A missing file counts as 0."""
    size = 0
    for path in files:
        try:
            size += os.stat(path).st_size
        except FileNotFoundError:
            continue
    return size


def _text(field: bytes) -> str:
    return field.decode("utf-8", "surrogateescape")
