"""Where a launch comes from: project, session and parent, read from its surroundings."""

from __future__ import annotations

import os

from outlive.domain.errors import TooDeep, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DEEPEST = 3
# The variables in which clients tell the commands they run which session they belong to.
SESSION_VARIABLES = ("OUTLIVE_SESSION", "CLAUDE_CODE_SESSION_ID", "CODEX_SESSION_ID")


def session_of(environ: Mapping[str, str]) -> str | None:
    """The session that this process works for, as its client names it."""
    return next((environ[name] for name in SESSION_VARIABLES if environ.get(name)), None)


def parent_of(environ: Mapping[str, str]) -> str | None:
    """The task that this process is part of, if it is."""
    return environ.get("OUTLIVE_TASK") or None


def depth_of(environ: Mapping[str, str]) -> int:
    """How many tasks this process is inside of; refuses if it is inside of some and nobody knows how many.

    A task that launches tasks that launch tasks has most likely lost its way.
    """
    if parent_of(environ) is None:
        return 0
    told = environ.get("OUTLIVE_DEPTH", "")
    if not (told.isascii() and told.isdigit()):
        raise TooDeep(
            f"this runs inside task {parent_of(environ)}, and how deep is not known",
            "keep OUTLIVE_DEPTH beside OUTLIVE_TASK in its environment, or unset both",
        )
    return int(told)


def check_depth(environ: Mapping[str, str]) -> None:
    """Refuse a launch from too many tasks inside of each other."""
    if depth_of(environ) >= DEEPEST:
        raise TooDeep(
            f"this runs inside {depth_of(environ)} tasks already, which is as deep as it may be",
            "launch it from outside; a task should not launch tasks without end",
        )


def project_of(directory: str) -> str:
    """The git worktree that a directory lies in, else the directory itself.

    Only names are looked at; nothing that the repository configures is executed.
    """
    place = os.path.realpath(directory)
    top = place
    while True:
        if os.path.lexists(top + "/.git"):
            return top
        above = os.path.dirname(top)
        if above == top:
            return place
        top = above


def current_directory(environ: Mapping[str, str]) -> str:
    """Where we are; the shell's word for it if the directory is gone, so that it can be told."""
    try:
        return os.getcwd()
    except OSError as error:
        # Only if that is gone too: a PWD that exists is where somebody else was.
        told = environ.get("PWD", "")
        if told.startswith("/") and not os.path.exists(told):
            return told
        raise Unavailable("the current directory is gone", "cd to a directory that exists") from error
