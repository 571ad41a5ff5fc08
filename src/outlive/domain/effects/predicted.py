"""What a command is going to touch, as far as its text shows."""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    TouchKind = Literal["path", "git", "packages", "container", "database", "remote", "service", "unknown"]
    DeclaredLevel = Literal["declared", "unknown"]

# A text without any of these strings opens no window, so it need not be parsed.
_LETTERS = (
    *("stash", "checkout", "switch", "restore", "bisect", "rebase", "reset", "abort", "apply", "patch", "clean"),
    *("mv ", "cp ", "ln "),
)

TOUCH_KINDS = ("path", "git", "packages", "container", "database", "remote", "service", "unknown")


class Touch(Value):
    """One thing that a simple command is going to change; `unknown` may be anything."""

    kind: TouchKind
    what: str
    """The absolute path, or the word as written (`$DIR/x`); else the name of a host, remote, container or tool."""
    by: str
    """The simple command on one line, as it was written. It must be masked before it is shown."""


class Declared(Value):
    """What a command is going to touch according to its text, and perhaps not all."""

    touches: tuple[Touch, ...] = ()
    level: DeclaredLevel = "unknown"
    """`declared` if the whole text was understood. With `unknown`, the command may touch more than is listed."""
    needs_privileges: bool = False
    """Whether the text names a program that fails under no_new_privs, or a daemon that would inherit no_new_privs."""
    opens_window: bool = False
    """Whether the command changes something shared and is meant to restore it."""
    taken_away: tuple[Touch, ...] = ()
    """The commands that change files of others, such as a stash or a checkout, in the order of the text.

    `what` is the directory. `opens_window` is True if the command is meant to restore the files.
    """

    @property
    def is_flagged(self) -> bool:
        """Whether the text names something that is certainly going to change."""
        return any(touch.kind != "unknown" for touch in self.touches)

    @property
    def is_open(self) -> bool:
        """Whether the command may do more than its text says."""
        return self.level == "unknown" or any(touch.kind == "unknown" for touch in self.touches)


def may_take_away(text: str) -> bool:
    """Return whether a command's text may change files that the command did not write.

    The text is only searched for certain strings, because parsing it would take much longer.
    """
    return any(letters in text for letters in _LETTERS)
