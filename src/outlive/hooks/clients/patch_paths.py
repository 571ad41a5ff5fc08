"""The paths in a patch of the format that models of Codex and OpenCode write."""

from __future__ import annotations

_HEADS = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")


def files_of(patch: object) -> tuple[str, ...]:
    """Return the paths of the files that a patch changes.

    The result is empty if the patch is not a string.
    """
    lines = patch.splitlines() if isinstance(patch, str) else []
    return tuple(line.partition(": ")[2].strip() for line in lines if line.startswith(_HEADS))
