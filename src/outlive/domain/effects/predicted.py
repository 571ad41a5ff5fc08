"""The changes that a command is going to make, as predicted from its text."""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    TouchKind = Literal["path", "git", "packages", "container", "database", "remote", "service", "unknown"]
    DeclaredLevel = Literal["declared", "unknown"]

# Every command that can change files that it did not write (for instance `git stash`) contains one of these strings.
# So the text of a command without these strings need not be parsed.
_LETTERS = (
    *("stash", "checkout", "switch", "restore", "bisect", "rebase", "reset", "abort", "apply", "patch", "clean"),
    *("mv ", "cp ", "ln ", "rm -", "read-tree"),
)

TOUCH_KINDS = ("path", "git", "packages", "container", "database", "remote", "service", "unknown")


class Touch(Value):
    """One predicted change by a simple command."""

    kind: TouchKind
    what: str
    """The absolute path, or a path as written in the command (`$DIR/x`).

    If the change is not a change of a path, this is the name of a host, remote, container or tool.
    """
    by: str
    """The simple command on one line, as it was written. Its secrets must be masked before it is shown."""


class Declared(Value):
    """The predicted changes of a command. The list may be incomplete."""

    touches: tuple[Touch, ...] = ()
    level: DeclaredLevel = "unknown"
    """How completely the command's text was understood.

    `declared`: the whole text was understood. `unknown`: the command may make more changes than the list shows.
    """
    needs_privileges: bool = False
    """Whether the command calls a program that the process flag no_new_privs affects.

    The program would fail with this flag, or would start a daemon that inherits the flag.
    """
    opens_window: bool = False
    """Whether the command changes existing files and restores them later, by its text."""
    taken_away: tuple[Touch, ...] = ()
    """The parts of the command that change files which the command did not write.

    Examples are a stash or a checkout. The order is that of the command's text. An entry of the kind `git` has the
    directory in which git is called. An entry of the kind `path` has a directory that is removed. `opens_window` is
    True if the command is meant to restore the files.
    """

    @property
    def is_open(self) -> bool:
        """Whether the command may change more than its text shows."""
        return self.level == "unknown" or any(touch.kind == "unknown" for touch in self.touches)


def may_take_away(text: str) -> bool:
    """Return whether a command may change files that the command itself did not write.

    The function only searches the text for certain strings, because parsing takes much longer.
    """
    return any(letters in text for letters in _LETTERS)
