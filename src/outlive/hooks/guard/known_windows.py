"""A fast check whether a path may be in an open window, without the ledger.

An open window is a set of files that a task has changed and not restored. The check reads the index of the module
`left_paths`, which names the paths that ended tasks left changed. The check also reads the journals of running tasks.
Each attempt of a task has a journal, which names the paths that the attempt changed.
"""

from __future__ import annotations

import os

from outlive.bundle.attempt import AttemptFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from outlive.bundle.home import Home
    from outlive.hooks.state.left_paths import LeftPathsIndex

# The maximum number of bytes of all journals. If the journals are longer, every path counts as possibly changed.
_MOST_SEARCHED = 8 << 20
# Characters that may stand before a path within a word (`--file=a`, `host:a`, `f=@a`), and characters that a shell
# expands.
_BEFORE_PATH = str.maketrans(dict.fromkeys("=:,@<>", "\0"))
_EXPANDED = "$`*?[{"
# Programs that only read files, and only the files that their arguments name. This is certain only for a command that
# consists of letters, digits and `_PLAIN_SIGNS`, because other characters may have a special meaning in a shell or for
# these programs.
PLAIN_READERS = frozenset(
    (
        *("basename", "cat", "cksum", "cmp", "date", "dirname", "echo", "head", "md5sum", "nl", "printf", "readlink"),
        *("realpath", "sha1sum", "sha256sum", "sleep", "stat", "tac", "tail", "true", "wc", "which"),
    )
)
_PLAIN_SIGNS = frozenset(" ./,:%+|-_")


class KnownWindows:
    """The check of paths against the index and the journals of running tasks."""

    def __init__(self, known: LeftPathsIndex, home: Home, own_task: str | None) -> None:
        """Read the journals of running tasks.

        `own_task` is the task in which the client itself runs, or None. Its journal is not read.
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
        """Return whether one of the paths may equal, contain or lie below a changed path."""
        paths = list(paths)
        return self._known.may_concern(paths) or self.is_running_in(paths)

    def is_running_in(self, paths: Iterable[str]) -> bool:
        """Return whether a running task may have changed one of the paths.

        A change of a path above or below one of the paths counts too.
        """
        if not self._is_whole or not self._texts:
            return not self._is_whole
        from outlive.observe.search_journal import as_written, names_any  # noqa: PLC0415 - imported here, because usually no running task has changed files

        wanted = list(map(as_written, paths))
        return any(names_any(text, wanted) for text in self._texts)


def named_in(command: str, directory: str) -> Iterator[str]:
    """Yield the paths that a command may name.

    If a shell would expand a part of a path, the path is cut before this part.
    """
    from outlive.observe.shell.split_text import pieces_within  # noqa: PLC0415 - imported here, because the event of an edit has no command

    for piece in pieces_within(command):
        for word in piece.words:
            for part in word.translate(_BEFORE_PATH).split("\0"):
                known = up_to_wild(part)
                if known:
                    path = os.path.normpath(os.path.join(directory, os.path.expanduser(known)))
                    yield path.removesuffix("/.git")


def up_to_wild(word: str) -> str:
    """Return a path up to the first component that a shell would expand."""
    end = min((at for sign in _EXPANDED if (at := word.find(sign)) >= 0), default=len(word))
    known = word[:end]
    if known == word:
        return word
    return known.rpartition("/")[0] + "/" if "/" in known else ""


def names_all_it_reads(command: str) -> bool:
    """Return whether a command certainly uses only the paths in its arguments."""
    if not all(sign.isalnum() or sign in _PLAIN_SIGNS for sign in command):
        return False
    from outlive.observe.shell.split_text import pieces_within, program  # noqa: PLC0415 - imported here, because the event of an edit has no command

    programs = [program(piece)[:1] for piece in pieces_within(command)]
    return all(words and words[0] in PLAIN_READERS for words in programs)


def _read(path: str, most: int) -> bytes | None:
    """Return the content of a journal, or None if it has more than `most` bytes."""
    try:
        with open(path, "rb") as file:
            text = file.read(most + 1)
    except FileNotFoundError:
        return b""
    return text if len(text) <= most else None
