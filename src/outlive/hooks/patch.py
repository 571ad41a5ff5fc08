"""Which files a patch is about, as Codex and OpenCode let their models write one."""

from __future__ import annotations

_HEADS = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")


def files_of(patch: object) -> tuple[str, ...]:
    """The paths that it names; none if it is no text."""
    lines = patch.splitlines() if isinstance(patch, str) else []
    return tuple(line.partition(": ")[2].strip() for line in lines if line.startswith(_HEADS))
