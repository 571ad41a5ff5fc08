"""The context of a launch: its project, session and parent task."""

from __future__ import annotations

import os

from outlive.domain.errors import TooDeep, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DEEPEST = 3
# The variables in which clients name the session to the commands that they run.
_CLIENT_SESSION_VARIABLES = ("CLAUDE_CODE_SESSION_ID", "CODEX_SESSION_ID")
# The variable that lists the sessions which the environment named when the task began. Every process of the task
# inherits this variable.
_INHERITED_SESSIONS = "OUTLIVE_INHERITED_SESSIONS"
# The variables that `session_of` reads in addition to the variables of clients.
SESSION_VARIABLES = ("OUTLIVE_SESSION", "OUTLIVE_TASK", _INHERITED_SESSIONS)
# Clients set these variables for every command that they run, even if no variable names a session.
_CLIENT_VARIABLES = ("CLAUDECODE", "CODEX_THREAD_ID", "GEMINI_CLI", "OPENCODE", "OPENCLAW_SHELL", "CURSOR_AGENT")


def session_of(environ: Mapping[str, str]) -> str | None:
    """Return the session for which a process works.

    Returns None if the environment names no session. Inside a task, the variables may name a session that began in the
    task, and sessions of the task's launcher. The session that began in the task takes precedence.
    """
    found = own_session_of(environ)
    return found if found is not None else next(iter(_named_sessions(environ)), None)


def own_session_of(environ: Mapping[str, str], from_client: str | None = None) -> str | None:
    """Return the session that was named inside the task in which this process runs.

    Sessions that the task inherited from its launcher are left out. Outside a task, returns the session that the
    environment names. `from_client` is a session that the client named outside of the environment. Only
    OUTLIVE_SESSION takes precedence over `from_client`.
    """
    # Search in the text and not in a list, because a session name that a person chose may contain spaces.
    inherited = f" {environ.get(_INHERITED_SESSIONS, '')} " if parent_of(environ) else ""
    explicit = environ.get("OUTLIVE_SESSION")
    if explicit and f" {explicit} " not in inherited:
        return explicit
    if from_client:
        return from_client
    return next((one for one in _named_sessions(environ) if f" {one} " not in inherited), None)


def environ_of_task(environ: Mapping[str, str], task: str, session: str | None) -> dict[str, str]:
    """Return the environment of a task's command.

    `environ` is the environment of the launcher.
    """
    inside = {**environ, "OUTLIVE_TASK": task, "OUTLIVE_DEPTH": str(depth_of(environ) + 1)}
    if session is not None:
        inside["OUTLIVE_SESSION"] = session
    inside[_INHERITED_SESSIONS] = " ".join(dict.fromkeys(_named_sessions(inside)))
    return inside


def _named_sessions(environ: Mapping[str, str]) -> list[str]:
    """Return the sessions that the environment names, OUTLIVE_SESSION first."""
    return [environ[name] for name in ("OUTLIVE_SESSION", *_CLIENT_SESSION_VARIABLES) if environ.get(name)]


def is_read_by_model(environ: Mapping[str, str]) -> bool:
    """Return whether a model reads the output of this process.

    This is assumed inside a session, a client or a task.
    """
    if session_of(environ) is not None or parent_of(environ) is not None:
        return True
    return any(environ.get(name) for name in _CLIENT_VARIABLES)


def parent_of(environ: Mapping[str, str]) -> str | None:
    """Return the task in which this process runs, or None outside a task."""
    return environ.get("OUTLIVE_TASK") or None


def depth_of(environ: Mapping[str, str]) -> int:
    """Return in how many nested tasks this process runs.

    Raises `TooDeep` if the number is unknown.
    """
    if parent_of(environ) is None:
        return 0
    depth = environ.get("OUTLIVE_DEPTH", "")
    if not (depth.isascii() and depth.isdigit()):
        raise TooDeep(
            f"this process runs inside task {parent_of(environ)}, and the depth of nested tasks is not known",
            "pass on both OUTLIVE_DEPTH and OUTLIVE_TASK in the environment, or unset both",
        )
    return int(depth)


def check_depth(environ: Mapping[str, str], deepest: int = DEEPEST) -> None:
    """Raise `TooDeep` if this process runs inside too many nested tasks.

    This prevents an endless chain of tasks that launch tasks.
    """
    if depth_of(environ) >= deepest:
        raise TooDeep(
            f"this process runs inside {depth_of(environ)} nested tasks, and more are not allowed",
            "launch the task from outside of these tasks",
        )


def project_of(directory: str) -> str:
    """Return the top directory of the git worktree around a directory.

    Returns the directory itself if there is no git worktree around it.

    The search looks only for `.git`, so it also finds a damaged repository and a repository on another mount.
    """
    place = top = os.path.realpath(directory)
    while not os.path.lexists(top + "/.git"):
        above = os.path.dirname(top)
        if above == top:
            return place
        top = above
    return top


def current_directory(environ: Mapping[str, str]) -> str:
    """Return the current directory.

    If the directory was deleted, the function returns its former path, which is in PWD. Raises `Unavailable` if PWD
    does not have this path.
    """
    try:
        return os.getcwd()
    except OSError as error:
        # If PWD names an existing directory, another process has set PWD, and PWD does not name the deleted directory.
        directory = environ.get("PWD", "")
        if directory.startswith("/") and not os.path.exists(directory):
            return directory
        raise Unavailable("the current directory is gone", "cd to a directory that exists") from error
