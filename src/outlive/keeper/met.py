"""Programs that were met without what they should have had, and the commands that met them: not so again.

A program is known by its name. A command of which nobody can tell that it runs one (`make`) is known by its
text and directory, of which only a checksum is kept.
"""

from __future__ import annotations

import os
from zlib import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Literal

    from outlive.keeper.plan import Plan

    What = Literal["gaining", "supervising"]
    """Privileges by being executed, or what others do."""

_WRITE = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_BYTES = 1 << 16


def met_before(plan: Plan, what: What) -> tuple[list[str], bool]:
    """The names of those that were met by any task, and whether this very command has met one."""
    lines = _lines(plan, what)
    return [line for line in lines if line and " " not in line], bool(lines) and _mark(plan) in lines


def remember(plan: Plan, *, gaining: Collection[str], supervising: Collection[str]) -> None:
    """Keep the names of the programs at these paths, and that this command met them."""
    from outlive.observe.supervising import name_to_remember  # noqa: PLC0415 - it has been loaded

    if gaining:
        _add(plan, "gaining", {path.rpartition("/")[2] for path in gaining})
    if supervising:
        _add(plan, "supervising", {name for path in supervising if (name := name_to_remember(path)) is not None})


def _mark(plan: Plan) -> str:
    """What a command is known by; no word of a text is like that."""
    said = "\0".join((plan.launch.cwd, *plan.launch.argv))
    return f"command {crc32(said.encode('utf-8', 'surrogateescape')):08x}"


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
    fresh = sorted({*names, _mark(plan)}.difference(lines))
    if not fresh:
        return
    path = f"{plan.home.path}/{what}"
    try:
        if sum(map(len, lines)) < _MOST_BYTES:
            _write(path, os.O_APPEND, fresh)
        else:  # the older half is met again, or is not
            part = f"{path}.{os.getpid()}"
            _write(part, os.O_TRUNC, [*lines[len(lines) // 2 : -1], *fresh])
            os.rename(part, path)
    except OSError:
        pass


def _write(path: str, how: int, lines: list[str]) -> None:
    fd = os.open(path, _WRITE | how, 0o600)
    try:
        os.write(fd, "".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
    finally:
        os.close(fd)
