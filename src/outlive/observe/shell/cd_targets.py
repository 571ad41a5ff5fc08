"""The directories that a command changes into, read from its words.

A launch waits for this search, so the slower grammar of `bash_grammar.py` is not used. The search may find a directory
into which the command does not change. The only effect is that Outlive checks one more directory. `HOME` is the only
variable whose value is known.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_GOING = frozenset(
    (
        *("cd", "pushd", "-C", "--directory", "--prefix", "--chdir"),
        *("--git-dir", "--work-tree", "GIT_DIR", "GIT_WORK_TREE"),
    )
)
_LONGEST = 64 << 10
_MOST = 32
# A text within a text, as in `bash -c`, is read down to this depth.
_DEEPEST = 3


def goes_to(argv: Sequence[str], cwd: str) -> list[str]:
    """Return the existing directories that a command changes into or passes to git."""
    found: dict[str, None] = {}
    here = cwd
    for _, word in zip(range(_MOST), _targets(argv, 0), strict=False):
        name = os.path.expanduser(word.replace("${HOME}", "~").replace("$HOME", "~"))
        if os.path.basename(name) == ".git":
            name = os.path.dirname(name)
        # A relative path may start from the directory of the last `cd` or from the command's first directory. Try both.
        for base in dict.fromkeys((here, cwd)):
            path = os.path.normpath(os.path.join(base, name))
            if name and "\0" not in path and os.path.isdir(path):
                found[path] = None
                here = path
                break
    return list(found)


def _targets(words: Sequence[str], depth: int) -> Iterator[str]:
    """Yield the words that follow `cd`, `-C` and similar words.

    A word that is a shell text, as in `bash -c`, is searched in the same way.
    """
    for at, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option in _GOING:
            yield from (value,) if equals else words[at + 1 : at + 2]
        if depth < _DEEPEST and (" " in word or "\n" in word) and any(name in word for name in _GOING):
            from outlive.observe.shell.split_text import pieces  # noqa: PLC0415 - only commands that change the directory need this import

            # A text between backticks is a command, too.
            for piece in pieces(word[:_LONGEST].replace("`", ";")):
                yield from _targets((*piece.words, *piece.heredocs), depth + 1)
