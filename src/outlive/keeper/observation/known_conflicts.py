"""Programs that could not do their work because they were observed.

Such a program gains privileges when it is executed, or supervises system calls itself. The next launch of the program
is not observed. A program is recognized by its name. A command whose text does not name the program is recognized by a
checksum of the command's text and directory.
"""

from __future__ import annotations

import os
from zlib import crc32

from outlive.bundle.atomic_file import write_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Literal

    from outlive.keeper.plan import Plan

    What = Literal["gaining", "supervising"]
    """Programs that gain privileges when they are executed, or that supervise the system calls of other programs."""

_WRITE = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_BYTES = 1 << 16


def met_before(plan: Plan, what: What) -> tuple[list[str], bool]:
    """Return which programs failed under observation in earlier tasks.

    The second result tells whether this command failed before. `what` selects programs that gain privileges when they
    are executed, or programs that supervise system calls.
    """
    lines = _lines(plan, what)
    return [line for line in lines if line and " " not in line], bool(lines) and _line_of_command(plan) in lines


def remember(plan: Plan, *, gaining: Collection[str], supervising: Collection[str]) -> None:
    """Store which programs failed under observation, and a checksum of the command.

    `gaining` are paths of programs that gain privileges when they are executed. `supervising` are paths of programs
    that supervise system calls themselves.
    """
    from outlive.observe.seccomp.tracer_conflicts import name_to_remember  # noqa: PLC0415 - this import takes little time, because the module is already loaded

    if gaining:
        _add(plan, "gaining", {path.rpartition("/")[2] for path in gaining})
    if supervising:
        _add(plan, "supervising", {name for path in supervising if (name := name_to_remember(path)) is not None})


def _line_of_command(plan: Plan) -> str:
    """Return the line that stands for this command in the file of stored names.

    The file has the names of programs that failed under observation. The line contains a space, so it is not taken for
    such a name.
    """
    text = "\0".join((plan.launch.cwd, *plan.launch.argv))
    return f"command {crc32(text.encode('utf-8', 'surrogateescape')):08x}"


def _lines(plan: Plan, what: What) -> list[str]:
    try:
        fd = os.open(f"{plan.home.path}/{what}", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        return os.read(fd, 2 * _MOST_BYTES).decode("utf-8", "replace").split("\n")
    finally:
        os.close(fd)


def _add(plan: Plan, what: What, names: set[str]) -> None:
    lines = _lines(plan, what)
    fresh = sorted({*names, _line_of_command(plan)}.difference(lines))
    if not fresh:
        return
    path = f"{plan.home.path}/{what}"
    try:
        if sum(map(len, lines)) < _MOST_BYTES:
            _append(path, _text_of(fresh))
        else:  # the file is full: drop its older half, whose programs are added again when they conflict again
            write_whole(path, _text_of([*lines[len(lines) // 2 : -1], *fresh]))
    except OSError:
        pass


def _text_of(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def _append(path: str, text: bytes) -> None:
    fd = os.open(path, _WRITE | os.O_APPEND, 0o600)
    try:
        os.write(fd, text)
    finally:
        os.close(fd)
