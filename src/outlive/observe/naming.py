"""Which file a path means, as the kernel will resolve it for the process that names it.

Nothing is remembered: a link may lead elsewhere by the next call, of this task or of anybody.
"""

from __future__ import annotations

import os

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_MOST_LINKS = 40
_SELF = ("/proc/self/", "/proc/thread-self/")
_DELETED = " (deleted)"
_NO_NAMES = ("", ".", "..")


def base_of(thread: int, place: int | None) -> str:
    """The directory that a path is relative to: the current one, or that of a descriptor."""
    found = os.readlink(f"/proc/{thread}/cwd" if place is None else f"/proc/{thread}/fd/{place}")
    # The kernel says so of one that has no name any more; nothing can be made in it.
    return found.removesuffix(_DELETED) if found.endswith(_DELETED) and not os.path.lexists(found) else found


def named(thread: int, place: int | None, text: str) -> str:
    """What a text means to a thread, relative to its directory or to that of a descriptor; see `name_of`."""
    above, slash, name = text.rpartition("/")
    if text[:1] == "/":
        return name_of(thread, text)
    if name in _NO_NAMES:
        base = base_of(thread, place)
        return name_of(thread, f"{base}/{text}") if text else base
    if slash:
        try:
            # Below its own directory as it sees that itself: both are resolved by one look.
            fd = os.open(
                f"/proc/{thread}/cwd/{above}" if place is None else f"/proc/{thread}/fd/{place}/{above}", _DIRECTORY
            )
            try:
                real = os.readlink(f"/proc/self/fd/{fd}")
            finally:
                os.close(fd)
            if not real.endswith(_DELETED) and not real.startswith("/proc/") and real != "/":
                return f"{real}/{name}"
        except OSError:
            pass  # it is not there, or goes through something that is not
    base = base_of(thread, place)
    if slash:
        return name_of(thread, f"{base}/{text}")
    return f"{base}/{name}" if base != "/" else "/" + name


def name_of(thread: int, path: str) -> str:
    """An absolute path with everything but its last name resolved: that one is what most calls are about."""
    if path.startswith("/proc/"):
        for start in _SELF:
            if path.startswith(start):
                path = f"/proc/{thread}/{path.removeprefix(start)}"
    path = path.rstrip("/") or "/"
    above, _, name = path.rpartition("/")
    if name in (".", ".."):
        return os.path.realpath(path)
    try:
        fd = os.open(above or "/", _DIRECTORY)
        try:
            real = os.readlink(f"/proc/self/fd/{fd}")  # a fifth of the time that looking at every name takes
        finally:
            os.close(fd)
    except OSError:
        real = os.path.realpath(above or "/")
    if real.startswith("/proc/"):
        real = real.replace(f"/proc/{os.getpid()}/", f"/proc/{thread}/")  # its /dev/fd is not ours
    return f"{real}/{name}" if real != "/" else "/" + name


def target_of(thread: int, path: str) -> str:
    """What such a path leads to if its last name is a link, for calls that follow it; that may not be there yet."""
    for _ in range(_MOST_LINKS):
        try:
            target = os.readlink(path)
        except OSError:
            break
        path = name_of(thread, os.path.join(os.path.dirname(path), target))
    return path
