"""A fast check whether a task may have changed a path and not restored it.

The check does not open the ledger. For tasks that have ended, it reads the index file of the module `left_paths`. For
running tasks, it reads the files in which their keepers record each changed path.
"""

from __future__ import annotations

import os

from outlive.bundle.attempt import AttemptFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from outlive.bundle.home import Home
    from outlive.hooks.state.left_paths import LeftPathsIndex

# The largest number of bytes to read of the records of running tasks. If the records are longer, every path counts as
# possibly changed.
_MOST_SEARCHED = 8 << 20
# Characters that may stand before a path within a word (`--file=a`, `host:a`, `f=@a`), and characters that a shell
# expands.
_BEFORE_PATH = str.maketrans(dict.fromkeys("=:,@<>", "\0"))
_EXPANDED = "$`*?[{"
# Programs that only read files, and only those that their arguments name. This is certain only for a command of
# letters, digits and `_PLAIN_SIGNS`. Other characters may have a special meaning for a shell or for these programs.
PLAIN_READERS = frozenset(
    (
        *("basename", "cat", "cksum", "cmp", "date", "dirname", "echo", "head", "md5sum", "nl", "printf", "readlink"),
        *("realpath", "sha1sum", "sha256sum", "sleep", "stat", "tac", "tail", "true", "wc", "which"),
    )
)
_PLAIN_SIGNS = frozenset(" ./,:%+|-_")


class KnownWindows:
    """The paths that tasks may have changed, to check other paths against them."""

    def __init__(self, known: LeftPathsIndex, home: Home, own_task: str | None) -> None:
        """Read the records of the paths that running tasks have changed.

        `own_task` is the task in which the client itself runs, or None. Its record is not read.
        """
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
        """Return whether a task may have changed one of the paths.

        A change of a directory above or of a file below one of the paths counts, too.
        """
        paths = list(paths)
        return self._known.may_concern(paths) or self.is_running_in(paths)

    def is_running_in(self, paths: Iterable[str]) -> bool:
        """Return whether a running task may have changed one of the paths.

        A change of a directory above or of a file below one of the paths counts, too.
        """
        if not self._is_whole or not self._texts:
            return not self._is_whole
        from outlive.observe.search_journal import as_written, names_any  # noqa: PLC0415 - imported here, because it is rarely needed: usually no running task has changed files

        wanted = list(map(as_written, paths))
        return any(names_any(text, wanted) for text in self._texts)


def named_in(command: str, directory: str) -> Iterator[str]:
    """Yield the paths that a command may name.

    If a shell would expand a part of a path, as in `src/*.py`, only the path before this part is yielded.
    """
    from outlive.observe.shell.split_text import pieces_within  # noqa: PLC0415 - imported here, because only events with a shell command need it

    for piece in pieces_within(command):
        for word in piece.words:
            for part in word.translate(_BEFORE_PATH).split("\0"):
                known = up_to_wild(part)
                if known:
                    path = os.path.normpath(os.path.join(directory, os.path.expanduser(known)))
                    yield path.removesuffix("/.git")


def up_to_wild(word: str) -> str:
    """Return the part of a path before the first component that a shell would expand.

    For `src/*.py`, this is `src/`.
    """
    end = min((at for sign in _EXPANDED if (at := word.find(sign)) >= 0), default=len(word))
    known = word[:end]
    if known == word:
        return word
    return known.rpartition("/")[0] + "/" if "/" in known else ""


def names_all_it_reads(command: str) -> bool:
    """Return whether a command certainly reads only the files that its arguments name."""
    if not all(sign.isalnum() or sign in _PLAIN_SIGNS for sign in command):
        return False
    from outlive.observe.shell.split_text import pieces_within, program  # noqa: PLC0415 - imported here, because only events with a shell command need it

    programs = [program(piece)[:1] for piece in pieces_within(command)]
    return all(words and words[0] in PLAIN_READERS for words in programs)


def _read(path: str, most: int) -> bytes | None:
    """Return the content of a file, or None if it has more than `most` bytes."""
    try:
        with open(path, "rb") as file:
            text = file.read(most + 1)
    except FileNotFoundError:
        return b""
    return text if len(text) <= most else None
