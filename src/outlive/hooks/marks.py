"""What hooks remember of a session from one call to the next: a few small files, gone with the session.

Nothing here is needed to tell an ending once. Lost, it costs a repeated advice or one block more.
"""

from __future__ import annotations

import os
from fcntl import F_OFD_SETLK, F_WRLCK, LOCK_EX, LOCK_NB, LOCK_SH, fcntl, flock

from outlive.bundle.home import open_home
from outlive.bundle.kernel import read_small, watch_modifications
from outlive.bundle.trace import path_of
from outlive.domain.errors import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS = (
    "blocks",
    "advised",
    "advised_below",
    "quiet",
    "unheld",
    "foreign",
    "begins",
    "heard",
    "missed",
    "read",
    "readable",
)


def word(home: Home, session: str, kind: str) -> str:
    """What was last remembered; empty if nothing."""
    try:
        return read_small(_path(home, session, kind)).decode("ascii", "replace")
    except OSError:
        return ""


def set_word(home: Home, session: str, kind: str, text: str) -> None:
    """Remember it; a mark that cannot be written stops nothing."""
    try:
        try:
            fd = os.open(_path(home, session, kind), _FLAGS | os.O_TRUNC, 0o600)
        except FileNotFoundError:
            _make_place(home)
            fd = os.open(_path(home, session, kind), _FLAGS | os.O_TRUNC, 0o600)
        os.write(fd, text.encode("ascii"))
        os.close(fd)
    except (OSError, Unavailable):
        pass


def listen(home: Home, session: str, kind: str) -> int | None:
    """Forget it, and know when it is remembered anew: what this returns is readable then.

    None if the user has no inotify instance left.
    """
    set_word(home, session, kind, "")
    return watch_modifications(_path(home, session, kind))


def count(home: Home, session: str, kind: str) -> int:
    """How often something was done since it was last forgotten."""
    found = word(home, session, kind)
    return int(found) if found.isdigit() else 0


def set_count(home: Home, session: str, kind: str, number: int) -> None:
    """Remember how often."""
    set_word(home, session, kind, str(number))


def forget(home: Home, session: str) -> None:
    """It begins anew, or is over."""
    for kind in _KINDS:
        try:
            os.unlink(_path(home, session, kind))
        except OSError:
            pass


def watch(home: Home, session: str, client: int, life: int) -> int | None:
    """Become the one who wakes a session, as long as this stays open; if somebody else is, when that one has left.

    Clients that have the same session open each have one who waits for that. None if this client, by its number and
    its pidfd, has one already, or has ended meanwhile.
    """
    _make_place(home)
    fd = os.open(_path(home, session, "watch"), _FLAGS, 0o600)
    if _is_only_one_of(client, fd) and _wait_for_turn(fd, life):
        return fd
    os.close(fd)
    return None


def _is_only_one_of(client: int, fd: int) -> bool:
    """Each client has one byte of the file, so that what its turns start does not queue up."""
    import struct  # noqa: PLC0415 - only here, where nobody waits

    try:
        fcntl(fd, F_OFD_SETLK, struct.pack("hhqqi0q", F_WRLCK, os.SEEK_SET, client, 1, 0))
    except BlockingIOError:
        return False
    return True


def _wait_for_turn(fd: int, life: int) -> bool:
    """Asleep until nobody else watches, or only looks whether somebody does; False if the client ends before."""
    try:
        flock(fd, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        pass
    else:
        return True
    from select import POLLIN, poll  # noqa: PLC0415 - only here, where nobody waits
    from threading import Thread  # noqa: PLC0415

    # No poll() tells of a lock, so somebody else waits for it; the end of the process ends that one, too.
    turn, ready = os.pipe()

    def take() -> None:
        flock(fd, LOCK_EX)
        os.close(ready)

    taker = Thread(target=take, daemon=True)
    taker.start()
    waiting = poll()
    for each in (turn, life):
        waiting.register(each, POLLIN)
    if any(each == life for each, _ in waiting.poll()):
        return False
    taker.join()
    os.close(turn)
    return True


def is_watched(home: Home, session: str) -> bool:
    """Whether somebody wakes the session when something ends."""
    try:
        fd = os.open(_path(home, session, "watch"), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        flock(fd, LOCK_SH | LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _make_place(home: Home) -> None:
    """Where marks are kept; nobody may have launched anything yet, and then the state directory is made as for that."""
    if not os.path.isdir(home.path):
        open_home(os.environ)
    try:
        os.mkdir(home.path + "/hooks", 0o700)
    except FileExistsError:
        pass


def _path(home: Home, session: str, kind: str) -> str:
    name = os.path.basename(path_of(home, session)).removesuffix(".jsonl")
    return f"{home.path}/hooks/{name}.{kind}"
