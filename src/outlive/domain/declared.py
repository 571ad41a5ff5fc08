"""What a command is going to touch, as far as its text tells."""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    TouchKind = Literal["path", "git", "packages", "container", "database", "remote", "service", "unknown"]
    DeclaredLevel = Literal["declared", "unknown"]

TOUCH_KINDS = ("path", "git", "packages", "container", "database", "remote", "service", "unknown")


class Touch(Value):
    """One thing that one simple command is going to change; kind `unknown`: that may change anything."""

    kind: TouchKind
    what: str
    """An absolute path where it can be known, else the word as it is written (`$DIR/x`, `…` for words
    that another command supplies); or the name of a host, a remote, a container, a tool."""
    by: str
    """The simple command, on one line, as it was written: mask it before it is shown."""


class Declared(Value):
    """What the text of a command says, which is never a proof that it does nothing else."""

    touches: tuple[Touch, ...] = ()
    level: DeclaredLevel = "unknown"
    """`declared` if all of the text was read; with `unknown` the touches are only those that could be seen."""
    needs_privileges: bool = False
    """It names a program that no_new_privs would disarm, or a daemon that would inherit it."""
    opens_window: bool = False
    """It changes something shared and means to put it back."""

    @property
    def is_flagged(self) -> bool:
        """Whether the text says for certain that something is going to be changed."""
        return any(touch.kind != "unknown" for touch in self.touches)

    @property
    def is_open(self) -> bool:
        """Whether the command may do more than its text says."""
        return self.level == "unknown" or any(touch.kind == "unknown" for touch in self.touches)
