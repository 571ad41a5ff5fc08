"""Small files in which hooks store values of a session until it ends.

If the files are lost, no notice is lost. But a hook may give the same advice or block the same stop a second time.
"""

from __future__ import annotations

import os
from fcntl import F_OFD_SETLK, F_WRLCK, LOCK_EX, LOCK_NB, fcntl, flock

from outlive.bundle.home import open_home
from outlive.bundle.trace import path_of
from outlive.domain.errors import Unavailable
from outlive.linux.syscalls import read_small, watch_modifications

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS = (
    "blocks",
    "advised",
    "advised_below",
    "coming",
    "coming_below",
    "left_told",
    "left_told_below",
    "quiet",
    "foreign",
    "begins",
    "heard",
    "missed",
    "read",
    "readable",
    "sleeper",
    "unawaited",
    "look",
)


def word(home: Home, session: str, kind: str) -> str:
    """Return the string that was stored for a session under a name such as `quiet`.

    Return an empty string if there is none.
    """
    try:
        return read_small(_path(home, session, kind)).decode("ascii", "replace")
    except OSError:
        return ""


def set_word(home: Home, session: str, kind: str, text: str) -> None:
    """Store a string for a session under a name. A failure to write is ignored."""
    try:
        try:
            fd = os.open(_path(home, session, kind), _FLAGS | os.O_TRUNC, 0o600)
        except FileNotFoundError:
            make_place(home)
            fd = os.open(_path(home, session, kind), _FLAGS | os.O_TRUNC, 0o600)
        os.write(fd, text.encode("ascii"))
        os.close(fd)
    except (OSError, Unavailable):
        pass


def listen(home: Home, session: str, kind: str) -> int | None:
    """Empty a session's stored string, and return a descriptor that watches it.

    The descriptor becomes readable when a new string is stored. Returns None if the user has too few inotify instances.
    """
    set_word(home, session, kind, "")
    return watch_modifications(_path(home, session, kind))


def replace(home: Home, session: str, kind: str) -> int | None:
    """Store this process's id for a session, and return a descriptor that watches it.

    Only the process whose id is stored may do the work that `kind` names. The descriptor becomes readable when another
    process stores its id. Returns None if the user has too few inotify instances.
    """
    set_word(home, session, kind, str(os.getpid()))
    return watch_modifications(_path(home, session, kind))


def count(home: Home, session: str, kind: str) -> int:
    """Return the number that was stored for a session under a name, or 0."""
    found = word(home, session, kind)
    return int(found) if found.isdigit() else 0


def set_count(home: Home, session: str, kind: str, number: int) -> None:
    """Store a number for a session under a name. A failure to write is ignored."""
    set_word(home, session, kind, str(number))


def forget(home: Home, session: str) -> None:
    """Delete all strings and numbers that hooks have stored for a session."""
    for kind in _KINDS:
        try:
            os.unlink(_path(home, session, kind))
        except OSError:
            pass


def watch(home: Home, session: str, client: int, departures: int) -> int | None:
    """Wait until no other process watches the session, and then watch it in this one.

    A watching process wakes the idle session. It has this role as long as the returned descriptor stays open. `client`
    is the process id of the client, and `departures` a descriptor that becomes readable when a process exits. Returns
    None if another process already waits for the role for this client, or if `departures` becomes readable first.
    """
    make_place(home)
    fd = os.open(_path(home, session, "watch"), _FLAGS, 0o600)
    if _is_only_one_of(client, fd) and _wait_for_turn(fd, departures):
        return fd
    os.close(fd)
    return None


def _is_only_one_of(client: int, fd: int) -> bool:
    """Lock one byte of a file, at the offset that equals the client's process id.

    Returns False if another process has locked it. That process watches the session for this client, or waits to do so.
    """
    import struct  # noqa: PLC0415 - imported here, because only a process that watches a session needs it

    # Without this lock, each turn of the client would start one more process that waits until it may watch the session.
    try:
        fcntl(fd, F_OFD_SETLK, struct.pack("hhqqi0q", F_WRLCK, os.SEEK_SET, client, 1, 0))
    except BlockingIOError:
        return False
    return True


def _wait_for_turn(fd: int, departures: int) -> bool:
    """Wait until no other process watches the session.

    Returns False if the descriptor `departures` becomes readable first, because a process has exited.
    """
    try:
        flock(fd, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        pass
    else:
        return True
    from select import POLLIN, poll  # noqa: PLC0415 - imported here, because only a process that watches a session needs it
    from threading import Thread  # noqa: PLC0415

    # poll() cannot wait for a lock. So a thread waits for the lock and then closes a pipe, which poll() notices. The
    # thread ends when this process exits.
    turn, ready = os.pipe()

    def take() -> None:
        flock(fd, LOCK_EX)
        os.close(ready)

    taker = Thread(target=take, daemon=True)
    taker.start()
    waiting = poll()
    for each in (turn, departures):
        waiting.register(each, POLLIN)
    if any(each == departures for each, _ in waiting.poll()):
        return False
    taker.join()
    os.close(turn)
    return True


def make_place(home: Home) -> None:
    """Create the directory of these files, and the state directory if it is missing."""
    if not os.path.isdir(home.path):
        open_home(os.environ)
    try:
        os.mkdir(home.path + "/hooks", 0o700)
    except FileExistsError:
        pass


def _path(home: Home, session: str, kind: str) -> str:
    name = os.path.basename(path_of(home, session)).removesuffix(".jsonl")
    return f"{home.path}/hooks/{name}.{kind}"
