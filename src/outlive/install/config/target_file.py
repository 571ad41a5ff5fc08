"""A file of a client's configuration: what installing adds, and how to remove it."""

from __future__ import annotations

import os
import stat

from outlive.bundle.atomic_file import write_whole
from outlive.domain.errors import UserError
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST = 16 << 20


class Target(Value):
    """A configuration file of a client, and the functions that edit its text.

    If the file does not exist, its text is empty.
    """

    path: str
    add: Callable[[str], str]
    """Adds Outlive's entries to a text that does not have them."""
    strip: Callable[[str], str]
    """Removes Outlive's entries from a text. A text without them is returned unchanged."""
    give_back: Callable[[str, str], str] = lambda text, _: text
    """Removes other text that installing added. The arguments are the text without Outlive's entries and the text
    before the installation.
    """
    is_nothing: Callable[[str], bool] = lambda text: not text
    """Returns whether a text without Outlive's entries is empty otherwise. Then the file is deleted if installing
    created it.
    """
    left_out: Callable[[str], str] = lambda _: ""
    """Returns a message that names the entries that cannot be added, and why. It is empty if all can be added."""
    carry: Callable[[str, str], str] = lambda _, text: text
    """Copies what a user has changed in Outlive's entries from the current text to the new text, and returns the new
    text.
    """


def whole(path: str, text: str, is_ours: Callable[[str], bool]) -> Target:
    """Return a description of a file that belongs to Outlive as a whole.

    If another program wrote a file at this path, it is kept.
    """

    def add(there: str) -> str:
        if there.strip():
            raise UserError(f"{path} was not written by Outlive", "move the file away first; nothing was changed")
        return text

    return Target(path=path, add=add, strip=lambda there: "" if is_ours(there) else there)


def edited(path: str, edit: Callable[[str], str], text: str) -> str:
    """Return a text after `edit` has changed it.

    A `UserError` in `edit` is raised again with the name of the file.
    """
    try:
        return edit(text)
    except UserError as error:
        if error.message.startswith("/"):
            raise  # the message already names the faulty file, which may be another one than `path`
        raise UserError(f"{path}: {error.message}", error.hint) from error


def begins_like(text: str, lines: int) -> Callable[[str], bool]:
    """Return a function that recognizes a file that some version of Outlive wrote.

    The function compares the first `lines` lines of the file with those of `text`.
    """
    known = "".join(text.splitlines(keepends=True)[:lines])
    return lambda there: there.startswith(known)


def read(path: str) -> str | None:
    """Return the text of a file with every byte, or None if there is no file.

    Raises `UserError` if the file cannot be read, is not a regular file, or is longer than 16 MB.
    """
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for a writer.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UserError(f"{path} is not a regular file", "replace it by a regular file; nothing was changed")
            content = file.read(_LONGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", "nothing was changed") from error
    if len(content) > _LONGEST:
        raise UserError(f"{path} is larger than 16 MB", "make the file smaller first; nothing was changed")
    return content.decode("utf-8", "surrogateescape")


def missing_directories(path: str) -> list[str]:
    """Return the directories that are missing above a file, from the top down."""
    found: list[str] = []
    above = os.path.dirname(os.path.realpath(path))
    while not os.path.isdir(above):
        found.insert(0, above)
        above = os.path.dirname(above)
    return found


def is_writable(path: str) -> bool:
    """Return whether this user may write or create the file at a path."""
    missing = missing_directories(path)
    above = os.path.dirname(missing[0] if missing else os.path.realpath(path))
    return os.access(above, os.W_OK | os.X_OK)


def write(path: str, text: str | None) -> None:
    """Replace the text of a file in one step, and keep its mode.

    If the text is None, the file is removed. If the path is a symbolic link, the file behind it is replaced. People use
    such links to store their configuration elsewhere.
    """
    real = os.path.realpath(path)
    if text is None:
        if os.path.exists(real):
            os.unlink(real)
        return
    for each in missing_directories(real):
        os.mkdir(each, 0o700)
    mode = os.stat(real).st_mode & 0o7777 if os.path.exists(real) else 0o600
    write_whole(real, text.encode("utf-8", "surrogateescape"), mode=mode, is_durable=True)
