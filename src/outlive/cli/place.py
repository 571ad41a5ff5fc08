"""Where a command stands: its home, its project, its session."""

from __future__ import annotations

import os

from outlive.bundle.home import open_home
from outlive.domain.errors import UserError
from outlive.keeper.plan import Surroundings
from outlive.service.origin import current_directory, project_of, session_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.ledger.contract import Selection


def here() -> Home:
    """The state directory of this user."""
    return open_home(os.environ)


def directory(given: str | None) -> str:
    """The absolute directory that was given, or the current one."""
    current = current_directory(os.environ)
    return os.path.normpath(os.path.join(current, given)) if given else current


def project(directory: str | None = None) -> str:
    """The project of a directory, by default of the current one."""
    return project_of(directory or current_directory(os.environ))


def session(given: str | None) -> str | None:
    """The session that was given, or the one we run in."""
    return given or session_of(os.environ)


def session_or_project(home: Home, given: str | None) -> Selection:
    """The tasks of the session that was given or that we run in; of this project outside of a session."""
    from outlive.ledger.contract import Selection  # a launch, and every keeper after it, has no use for it

    name = session(given)
    if name is None:
        return Selection(project=project())
    from outlive.service.sessions import number_of

    # Of a session that was never heard of there are none; of one of another project with its name, some.
    return Selection(session=name, origin=number_of(home, name, project()) or 0)


def own_session(given: str | None) -> str:
    """The session that was given, or the one we run in; it must be one of them."""
    found = session(given)
    if found is None:
        raise UserError("it is not known which session this is", "give --session ID, or set OUTLIVE_SESSION")
    return found


def begin_trace(*, wanted: bool) -> None:
    """Write down every decision about the session from here on."""
    if wanted:
        os.environ["OUTLIVE_TRACE"] = "1"


def surroundings(extra: dict[str, str], *, foreground: bool = False) -> Surroundings:
    """What the command inherits from this process."""
    umask = os.umask(0o077)
    os.umask(umask)
    # In a PID namespace of its own a process may belong to a session whose leader is outside.
    owner = os.pidfd_open(os.getsid(0) or os.getppid() or os.getpid()) if foreground else None
    return Surroundings(environ={**os.environ, **extra}, umask=umask, owner=owner)
