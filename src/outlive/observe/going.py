"""Where a command says that it goes, by a look at its words: whoever launches waits, and to read a text is dear.

It may name too many directories, which costs a look at each, and it knows nothing of variables but `HOME`.
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
_AROUND = "'\"(){};&|"
_LONGEST = 64 << 10
_MOST = 32


def goes_to(argv: Sequence[str], cwd: str) -> list[str]:
    """The directories that are there of those that it changes into, or gives to git and its like."""
    found: dict[str, None] = {}
    here = cwd
    for _, word in zip(range(_MOST), _targets(argv), strict=False):
        name = os.path.expanduser(word.replace("${HOME}", "~").replace("$HOME", "~"))
        if os.path.basename(name) == ".git":
            name = os.path.dirname(name)
        # From where it was at first, or from where the last one led to: both are looked at.
        for base in dict.fromkeys((here, cwd)):
            path = os.path.normpath(os.path.join(base, name))
            if name and "\0" not in path and os.path.isdir(path):
                found[path] = None
                here = path
                break
    return list(found)


def _targets(argv: Sequence[str]) -> Iterator[str]:
    # Every keeper would load `itertools` for its `pairwise`.
    for option, word in zip(argv, argv[1:], strict=False):  # noqa: RUF007
        if option in _GOING:
            yield word
    for text in argv:
        words = (
            text[:_LONGEST].replace(";", " ; ").replace("&", " & ").split() if " " in text or "\n" in text else [text]
        )
        for before, word in zip(words, [*words[1:], ""], strict=True):
            option, equals, value = before.lstrip(_AROUND).partition("=")
            if option in _GOING:
                yield (value if equals else word).strip(_AROUND)
