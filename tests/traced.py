"""The paths in a trace of strace that calls could change, including failed calls.

These are the calls that change names or contents.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# The option --seccomp-bpf is left out. With it, strace would not see those calls of an observed command that Outlive's
# own filter handles.
STRACE = ("strace", "-f", "-y", "-s", "4096", "-e", "trace=file,fchdir,process")
_CHANGING = "O_WRONLY|O_RDWR|O_CREAT|O_TRUNC"
_CALL = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+|\?)")
_UNFINISHED = re.compile(r" <unfinished \.\.\.>$")
_RESUMED = re.compile(r"^(\d+) +<\.\.\. (?:clone3?|v?fork) resumed>.* = (\d+)")
_TEXT = re.compile(r'(AT_FDCWD(?:<[^>]*>)?|\d+<[^>]*>|"(?:[^"\\]|\\.)*"(?:\.\.\.)?)')
_OPENS = ("open", "openat", "openat2")
_FORKS = ("fork", "vfork", "clone", "clone3")
_NAMES = (
    *("rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "unlink", "unlinkat"),
    *("rmdir", "mkdir", "mkdirat", "creat", "truncate", "mknod", "mknodat"),
)


def paths_of_trace(path: Path, place: str) -> set[str]:
    """Return the paths of the calls that change files. `place` is the directory of the first process."""
    lines = path.read_text(errors="surrogateescape").split("\n")
    children = _children(lines)
    found: set[str] = set()
    places: dict[str, str] = {}
    for number, line in enumerate(lines):
        call = _CALL.match(_UNFINISHED.sub(") = ?", line))
        if call is None:
            continue
        process, name, arguments, result = call.groups()
        here = places.get(process, place)
        if number in children:
            places[children[number]] = here
        if name == "chdir" and result == "0":
            (places[process],) = _paths(name, arguments, here)
        if name == "fchdir":
            places[process] = arguments[arguments.index("<") + 1 : -1]
        if name in _NAMES or (name in _OPENS and re.search(_CHANGING, arguments)):
            found.update(_paths(name, arguments, here))
    return found


def _children(lines: list[str]) -> dict[int, str]:
    """Return, for each line that is a fork, the child that it created.

    The child begins in the directory of its parent. Strace may report the result of a fork some lines later.
    """
    found: dict[int, str] = {}
    begun: dict[str, int] = {}
    for number, line in enumerate(lines):
        if done := _RESUMED.match(line):
            found[begun[done[1]]] = done[2]
        elif (call := _CALL.match(_UNFINISHED.sub(") = ?", line))) and call[2] in _FORKS:
            begun[call[1]] = number
            if call[4].isdigit():
                found[number] = call[4]
    return found


def _paths(name: str, arguments: str, place: str) -> set[str]:
    base, found = place, []
    for word in _TEXT.findall(arguments):
        if word.startswith('"'):
            text = word[1:-1].encode("latin-1", "backslashreplace").decode("unicode_escape")
            found.append(os.path.join(base, text))
            base = place
        elif "<" in word:
            base = word[word.index("<") + 1 : -1]
    wanted = [path.rstrip("/") for path in (found[1:] if name.startswith("symlink") else found)]
    return {os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)) for path in wanted}
