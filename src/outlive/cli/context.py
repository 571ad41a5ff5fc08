"""The surroundings of a command: its state directory, project and session."""

from __future__ import annotations

import os
import sys

from outlive.bundle.home import open_home
from outlive.domain.errors import UserError
from outlive.keeper.plan import Surroundings
from outlive.ledger import completeness
from outlive.service.tasks.launch_context import current_directory, project_of, session_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive.bundle.home import Home
    from outlive.cli.parser import Given
    from outlive.domain.tasks.task import Task
    from outlive.ledger.contract import Selection


restored: list[str] = []
"""The tasks whose lost records were restored, until a JSON document of this command has named them."""


def here() -> Home:
    """Return the state directory of this user.

    After this call, whenever this process opens a ledger in which tasks are missing, it restores their records.
    """
    completeness.restore_by(_restore)
    return open_home(os.environ)


def here_for_reading() -> Home:
    """Return the state directory for a command that reads the ledger several times.

    The database connection stays open between the reads, because such a command exits soon.
    """
    from outlive.ledger.connection import keep_open  # imported here, because a launch does not need this module

    keep_open()
    return here()


def one_task(given: Given, verb: str, open_here: Callable[[], Home] = here) -> tuple[Home, Task]:
    """Return the state directory, and the task that the command names.

    The task's id is the only word of the command. Raises `UserError` if there is no word, or if there are several.
    """
    from outlive.keeper.spawn import launch_adopter  # imported here, because a launch does not read a task
    from outlive.service.tasks.read import find

    if len(given.words) != 1:
        raise UserError(f"{verb} takes one id", f"outlive {verb} ID")
    home = open_here()
    return home, find(home, given.words, launch_adopter)[0]


def _restore(ledger: str) -> None:
    from outlive.service.maintenance.rebuild import restore_incomplete, restored_sentences

    found = restore_incomplete(ledger)
    if found:
        restored.extend(found)
        sys.stderr.write("outlive: {}\nhint: {}\n".format(*restored_sentences(found)))


def directory(given: str | None) -> str:
    """Return the absolute path of the given directory, or of the current directory."""
    current = current_directory(os.environ)
    return os.path.normpath(os.path.join(current, given)) if given else current


def project(directory: str | None = None) -> str:
    """Return the project of the given directory, or of the current directory."""
    return project_of(directory or current_directory(os.environ))


def session(given: str | None) -> str | None:
    """Return the given session, or the session in which this command runs.

    Returns None if no session is given and this command runs outside of a session.
    """
    return given or session_of(os.environ)


def session_or_project(home: Home, given: str | None) -> Selection:
    """Return the filter for the tasks of a session, or else of this project.

    `given` is the name of a session. If it is None, the session in which this command runs is used. Outside of a
    session, the filter selects the tasks of this project.
    """
    from outlive.ledger.contract import Selection  # imported here, because a launch does not need this module

    name = session(given)
    if name is None:
        return Selection(project=project())
    from outlive.service.sessions.lineage import number_of

    # Another project may have a session with the same name, so the session's number in the ledger is needed. No session
    # has the number 0, so 0 selects no tasks if the session is not in the ledger.
    return Selection(session=name, origin=number_of(home, name, project()) or 0)


def own_session(given: str | None) -> str:
    """Return the given session, or the session in which this command runs.

    Raises `UserError` if no session is given and this command runs outside of a session.
    """
    found = session(given)
    if found is None:
        raise UserError("it is not known which session this is", "give --session ID, or set OUTLIVE_SESSION")
    return found


def note_unknown_session(home: Home, given: str | None, directory: str | None = None) -> None:
    """Print a note to stderr if no session of this name is recorded in this project.

    `given` is the name that an option has, or None. `directory` is a directory of the project (default: the current
    directory). An unknown name is not an error, because a client may ask for the notices of a session that has just
    begun.
    """
    if given is None:
        return
    from outlive.service.sessions.lineage import number_of  # imported here, because a launch does not need it

    if number_of(home, given, project(directory)) is None:
        from outlive.domain.text.sanitize import one_line

        print(f"note: no session {one_line(given, 60)} is recorded in this project", file=sys.stderr)


def begin_trace(*, wanted: bool) -> None:
    """Write all later decisions about sessions to a trace file, if `wanted` is set."""
    if wanted:
        os.environ["OUTLIVE_TRACE"] = "1"


def surroundings(
    home: Home, extra: dict[str, str], *, foreground: bool = False, session: str | None = None
) -> Surroundings:
    """Return what the task's command inherits, such as the environment.

    A foreground task ends when the agent client of its session exits. If no client is known, it ends when the leader of
    this Unix session exits. `extra` has additional environment variables, and `session` is the session that an option
    names, or None.
    """
    umask = os.umask(0o077)
    os.umask(umask)
    owner = None
    if foreground:
        from outlive.service.sessions.foreground_client import client_of

        owner = client_of(home, os.environ, session, project())
        if owner is None:
            # getsid() returns 0 if the session's leader is outside of this PID namespace. Then use the parent process,
            # or this one.
            owner = os.pidfd_open(os.getsid(0) or os.getppid() or os.getpid())
    return Surroundings(environ={**os.environ, **extra}, umask=umask, owner=owner)
