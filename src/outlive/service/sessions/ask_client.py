"""Requests to a client to look for its child sessions.

A request is a write to a small file that the client watches. Requests are needed because only the client can read its
own store of sessions. A process that needs the state of child sessions, such as the gate, writes to the file. The
client then looks for its child sessions, and reports those that it does not find. The file exists only after the
client has reported child sessions, so no request is written for any other session.
"""

from __future__ import annotations

import os

from outlive.bundle.trace import path_of
from outlive.service.clock import tick

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home

_FLAGS = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC


def request_path(home: Home, session: str) -> str:
    """Return the path of the file to which requests to a session's client are written."""
    name = os.path.basename(path_of(home, session)).removesuffix(".jsonl")
    return f"{home.path}/hooks/{name}.look"


def accept_requests(home: Home, session: str) -> str:
    """Create the file that a client watches, and return the path of the file.

    Returns an empty string if the file cannot be created. An existing file is not written, because a write would make
    the client look for its child sessions again.
    """
    path = request_path(home, session)
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        os.close(os.open(path, _FLAGS | os.O_CREAT, 0o600))
    except OSError:
        return ""
    return path


def request_look(home: Home, session: str) -> None:
    """Ask a session's client to look for its child sessions.

    If the request cannot be written, no error is raised.
    """
    try:
        fd = os.open(request_path(home, session), _FLAGS | os.O_TRUNC)
    except OSError:
        return
    try:
        os.write(fd, tick().encode("ascii"))
    except OSError:
        pass
    finally:
        os.close(fd)
