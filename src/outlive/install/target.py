"""One file of a client's configuration, with what we add to it and how that is taken out again."""

from __future__ import annotations

import os
import stat

from outlive.domain.errors import UserError
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST = 16 << 20


class Target(Value):
    """A file that belongs to somebody else."""

    path: str
    add: Callable[[str], str]
    """The text with what is ours, given the text without it; empty stands for no file."""
    strip: Callable[[str], str]
    """The text without what is ours; empty for no file. A text that has nothing of ours stays as it is."""
    give_back: Callable[[str, str], str] = lambda text, _: text
    """The text without ours also without what had to be there for ours, given the text before us."""
    is_nothing: Callable[[str], bool] = lambda text: not text
    """Whether a text without us is one that nobody but us would have made a file for."""
    left_out: Callable[[str], str] = lambda _: ""
    """What of ours is not added, and why, given the text without us; empty if all is."""
    carry: Callable[[str, str], str] = lambda _, text: text
    """The new text, the second, with what somebody has added to ours in the one that is there."""


def whole(path: str, text: str, is_ours: Callable[[str], bool]) -> Target:
    """A file that is all ours; one of somebody else in its place is neither written over nor taken away."""

    def add(there: str) -> str:
        if there.strip():
            raise UserError(f"{path} was written by somebody else", "move it away first; nothing was changed")
        return text

    return Target(path=path, add=add, strip=lambda there: "" if is_ours(there) else there)


def edited(path: str, edit: Callable[[str], str], text: str) -> str:
    """The text as an edit leaves it; why it cannot be edited is said with the name of its file."""
    try:
        return edit(text)
    except UserError as error:
        if error.message.startswith("/"):
            raise  # it names the file that is in the way, which may be another
        raise UserError(f"{path}: {error.message}", error.hint) from error


def begins_like(text: str, lines: int) -> Callable[[str], bool]:
    """Whether a file is ours, of this or another version, by the lines that all of them begin with."""
    known = "".join(text.splitlines(keepends=True)[:lines])
    return lambda there: there.startswith(known)


def read(path: str) -> str | None:
    """The text of a file with every byte of it; None if it is not there."""
    try:
        # Opening a pipe would wait for somebody who writes.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UserError(f"{path} is no regular file", "nothing was changed")
            content = file.read(_LONGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", "nothing was changed") from error
    if len(content) > _LONGEST:
        raise UserError(f"{path} is longer than any configuration", "nothing was changed")
    return content.decode("utf-8", "surrogateescape")


def missing_directories(path: str) -> list[str]:
    """Those that have to be made before there can be a file."""
    found: list[str] = []
    above = os.path.dirname(os.path.realpath(path))
    while not os.path.isdir(above):
        found.insert(0, above)
        above = os.path.dirname(above)
    return found


def is_writable(path: str) -> bool:
    """Whether a file could be put there, as far as rights can tell."""
    missing = missing_directories(path)
    above = os.path.dirname(missing[0] if missing else os.path.realpath(path))
    return os.access(above, os.W_OK | os.X_OK)


def write(path: str, text: str | None) -> None:
    """Put a text in the place of another in one step, with its mode.

    A link stays a link: people keep their configuration elsewhere. None removes the file.
    """
    real = os.path.realpath(path)
    if text is None:
        if os.path.exists(real):
            os.unlink(real)
        return
    for each in missing_directories(real):
        os.mkdir(each, 0o700)
    mode = os.stat(real).st_mode & 0o7777 if os.path.exists(real) else 0o600
    fresh = f"{real}.outlive-{os.getpid()}"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with open(fd, "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(fresh, mode)
        os.rename(fresh, real)
    except BaseException:
        os.unlink(fresh)
        raise
