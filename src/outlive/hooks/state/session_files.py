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
    """Return the stored string of a kind, such as `quiet`, or an empty string."""
    try:
        return read_small(_path(home, session, kind)).decode("ascii", "replace")
    except OSError:
        return ""


def set_word(home: Home, session: str, kind: str, text: str) -> None:
    """Store a session's string of a kind. A failure to write is ignored."""
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
    """Empty the stored string of a kind, and return a descriptor.

    The descriptor becomes readable when a new string is stored. Returns None if the user has too few inotify instances.
    """
    set_word(home, session, kind, "")
    return watch_modifications(_path(home, session, kind))


def replace(home: Home, session: str, kind: str) -> int | None:
    """Store this process's id as the string of a kind, and return a descriptor.

    Only the process whose id is stored does the work of this kind. The descriptor becomes readable when another process
    stores its id. Returns None if the user has too few inotify instances.
    """
    set_word(home, session, kind, str(os.getpid()))
    return watch_modifications(_path(home, session, kind))


def count(home: Home, session: str, kind: str) -> int:
    """Return the stored number of a kind, or 0 if there is none."""
    found = word(home, session, kind)
    return int(found) if found.isdigit() else 0


def set_count(home: Home, session: str, kind: str, number: int) -> None:
    """Store a session's number of a kind. A failure to write is ignored."""
    set_word(home, session, kind, str(number))


def forget(home: Home, session: str) -> None:
    """Delete all stored values of a session."""
    for kind in _KINDS:
        try:
            os.unlink(_path(home, session, kind))
        except OSError:
            pass


def watch(home: Home, session: str, client: int, departures: int) -> int | None:
    """Wait until a session's previous watcher has ended, and become the new watcher.

    A watcher wakes the idle session. This process is the watcher as long as the returned descriptor stays open.
    `client` is the process id of the client. Returns None if this client already has a watcher, or if `departures` (a
    descriptor of `watch_departures`) becomes readable first.
    """
    make_place(home)
    fd = os.open(_path(home, session, "watch"), _FLAGS, 0o600)
    if _is_only_one_of(client, fd) and _wait_for_turn(fd, departures):
        return fd
    os.close(fd)
    return None


def _is_only_one_of(client: int, fd: int) -> bool:
    """Lock the byte of the file at the offset that equals the client's process id.

    Returns False if another watcher of this client has locked the byte.
    """
    import struct  # noqa: PLC0415 - imported here, because only watchers need it

    # Without this lock, each turn of the client would add a process that waits to become the watcher.
    try:
        fcntl(fd, F_OFD_SETLK, struct.pack("hhqqi0q", F_WRLCK, os.SEEK_SET, client, 1, 0))
    except BlockingIOError:
        return False
    return True


def _wait_for_turn(fd: int, departures: int) -> bool:
    """Wait until no other process is the watcher.

    Returns False if the descriptor `departures` becomes readable first.
    """
    try:
        flock(fd, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        pass
    else:
        return True
    from select import POLLIN, poll  # noqa: PLC0415 - imported here, because only watchers need it
    from threading import Thread  # noqa: PLC0415

    # poll() cannot wait for a lock. So a thread waits for the lock, and then closes a pipe. The thread ends when the
    # process exits.
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
