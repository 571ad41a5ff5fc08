"""The targets of paths, and the symbolic links on the way to these targets."""

from __future__ import annotations

import os

# The kernel follows at most this many links for one path.
_MOST_LINKS = 40


def places_on_the_way(path: str) -> tuple[str, ...]:
    """Return the target of a path, and every symbolic link on the way to it.

    A task may have changed one of these links. Then the path leads to another file.
    """
    here, names = "/", path.split("/")[::-1]
    links: list[str] = []
    while names:
        name = names.pop()
        at = os.path.join(here, name) if name not in {"", ".", ".."} else here
        target = _target(at) if at != here and len(links) < _MOST_LINKS else None
        if target is not None:
            links.append(at)
            here = "/" if target.startswith("/") else here
            names += target.split("/")[::-1]
        else:
            here = os.path.dirname(here) if name == ".." else at
    return here, *links


def _target(path: str) -> str | None:
    """Return where a symbolic link points to, or None if the path is not a link."""
    try:
        return os.readlink(path)
    except OSError:
        return None
