"""A fast check whether open windows may concern some paths, without the ledger.

The index names the paths that ended tasks left changed. Journals name the changes of running tasks.
"""

from __future__ import annotations

import os

from outlive.bundle.attempt import AttemptFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from outlive.bundle.home import Home
    from outlive.hooks.state.left_paths import LeftPathsIndex

# The number of bytes of journals that are searched. If there are more, every path may be concerned.
_MOST_SEARCHED = 8 << 20
# Signs that may stand before a path within a word (`--file=a`, `host:a`, `f=@a`), and signs of a shell's expansion.
_BEFORE_PATH = str.maketrans(dict.fromkeys("=:,@<>", "\0"))
_EXPANDED = "$`*?[{"
# Programs that read the files which they are given, and nothing else; what is written so has no meaning of its own.
PLAIN_READERS = frozenset(
    (
        *("basename", "cat", "cksum", "cmp", "date", "dirname", "echo", "head", "md5sum", "nl", "printf", "readlink"),
        *("realpath", "sha1sum", "sha256sum", "sleep", "stat", "tac", "tail", "true", "wc", "which"),
    )
)
_PLAIN_SIGNS = frozenset(" ./,:%+|-_")


class KnownWindows:
    """The index and the journals, which show that some paths are not concerned."""

    def __init__(self, known: LeftPathsIndex, home: Home, own_task: str | None) -> None:
        """Read the journals of running tasks, but not of `own_task`, the caller's task."""
        self._known = known
        self._texts: list[bytes] = []
        self._is_whole = True
        running = (each for each in known.running if each.task != own_task)
        files = (
            AttemptFiles(home.bundle(each.task), number)
            for each in running
            for number in range(each.first, each.last + 1)
        )
        room = _MOST_SEARCHED
        for each in files:
            text = _read(each.effects, room)
            if text is None or os.path.exists(each.compared):
                self._is_whole = False
                break
            room -= len(text)
            if text:
                self._texts.append(text)

    def may_concern(self, paths: Iterable[str]) -> bool:
        """Return whether one of the paths may be, contain or lie in a changed path."""
        paths = list(paths)
        return self._known.may_concern(paths) or self.is_running_in(paths)

    def is_running_in(self, paths: Iterable[str]) -> bool:
        """Return whether a running task may have changed a path, or inside or above it."""
        if not self._is_whole or not self._texts:
            return not self._is_whole
        from outlive.observe.search_journal import as_written, names_any  # noqa: PLC0415 - usually no running task has changed files

        wanted = list(map(as_written, paths))
        return any(names_any(text, wanted) for text in self._texts)


def named_in(command: str, directory: str) -> Iterator[str]:
    """Yield the paths that a command may name, without parts that a shell expands."""
    from outlive.observe.shell.split_text import pieces_within  # noqa: PLC0415 - an edit has no command

    for piece in pieces_within(command):
        for word in piece.words:
            for part in word.translate(_BEFORE_PATH).split("\0"):
                known = up_to_wild(part)
                if known:
                    path = os.path.normpath(os.path.join(directory, os.path.expanduser(known)))
                    yield path.removesuffix("/.git")


def up_to_wild(word: str) -> str:
    """Return a path up to its first name that a shell would expand."""
    end = min((at for sign in _EXPANDED if (at := word.find(sign)) >= 0), default=len(word))
    known = word[:end]
    if known == word:
        return word
    return known.rpartition("/")[0] + "/" if "/" in known else ""


def names_all_it_reads(command: str) -> bool:
    """Return whether a command surely touches only what its words name."""
    if not all(sign.isalnum() or sign in _PLAIN_SIGNS for sign in command):
        return False
    from outlive.observe.shell.split_text import pieces_within, program  # noqa: PLC0415 - an edit has no command

    programs = [program(piece)[:1] for piece in pieces_within(command)]
    return all(words and words[0] in PLAIN_READERS for words in programs)


def _read(path: str, most: int) -> bytes | None:
    """Return the content of a journal; None if it has more than `most` bytes."""
    try:
        with open(path, "rb") as file:
            text = file.read(most + 1)
    except FileNotFoundError:
        return b""
    return text if len(text) <= most else None
