"""Where a command says that it goes, by a look at its words: whoever launches waits, and to read a text is dear.

It may name too many directories, which costs a look at each, and it knows nothing of variables but `HOME`.
"""

from __future__ import annotations

import os
from itertools import islice, pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_GOING = frozenset(("cd", "pushd", "-C", "--directory", "--prefix", "--work-tree", "--chdir"))
_AROUND = "'\"(){};&|"
_LONGEST = 64 << 10
_MOST = 32


def goes_to(argv: Sequence[str], cwd: str) -> list[str]:
    """The directories that are there of those that it changes into, or gives to git and its like."""
    found: dict[str, None] = {}
    here = cwd
    for word in islice(_targets(argv), _MOST):
        name = os.path.expanduser(word.replace("${HOME}", "~").replace("$HOME", "~"))
        # From where it was at first, or from where the last one led to: both are looked at.
        for base in dict.fromkeys((here, cwd)):
            path = os.path.normpath(os.path.join(base, name))
            if name and "\0" not in path and os.path.isdir(path):
                found[path] = None
                here = path
                break
    return list(found)


def _targets(argv: Sequence[str]) -> Iterator[str]:
    for option, word in pairwise(argv):
        if option in _GOING:
            yield word
    for text in argv:
        words = (
            text[:_LONGEST].replace(";", " ; ").replace("&", " & ").split() if " " in text or "\n" in text else [text]
        )
        for before, word in pairwise([*words, ""]):
            option, equals, value = before.lstrip(_AROUND).partition("=")
            if option in _GOING:
                yield (value if equals else word).strip(_AROUND)
