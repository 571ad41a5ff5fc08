"""The context of a command: its state directory, project and session."""

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
"""Tasks with restored records that this command has not yet named in a JSON document."""


def here() -> Home:
    """Return the state directory of this user.

    From now on, this process restores each ledger that lacks tasks, as soon as it opens that ledger.
    """
    completeness.restore_by(_restore)
    return open_home(os.environ)


def here_for_reading() -> Home:
    """Return the state directory for a command that reads the ledger several times.

    The ledger stays open between the reads, because such a command exits soon.
    """
    from outlive.ledger.connection import keep_open  # imported here, because a launch does not need it

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
    """Return the absolute path of a directory, by default of the current directory."""
    current = current_directory(os.environ)
    return os.path.normpath(os.path.join(current, given)) if given else current


def project(directory: str | None = None) -> str:
    """Return the project of a directory, by default of the current directory."""
    return project_of(directory or current_directory(os.environ))


def session(given: str | None) -> str | None:
    """Return the given session, or by default the session in which this command runs.

    Returns None if no session is given and this command runs outside of a session.
    """
    return given or session_of(os.environ)


def session_or_project(home: Home, given: str | None) -> Selection:
    """Return a selection of the tasks of a session, or else of this project.

    `given` is the name of the session. By default, the session in which this command runs is used. Outside of a
    session, the tasks of this project are selected.
    """
    from outlive.ledger.contract import Selection  # imported here, because a launch and its keeper do not need it

    name = session(given)
    if name is None:
        return Selection(project=project())
    from outlive.service.sessions.lineage import number_of

    # No session has the number 0, so a session that is not recorded selects no tasks. The number is needed, because
    # another project may have a session with the same name.
    return Selection(session=name, origin=number_of(home, name, project()) or 0)


def own_session(given: str | None) -> str:
    """Return the given session, or the session in which this command runs.

    Raises `UserError` if no session is given and this command runs outside of a session.
    """
    found = session(given)
    if found is None:
        raise UserError("it is not known which session this is", "give --session ID, or set OUTLIVE_SESSION")
    return found


def note_unknown_session(home: Home, given: str | None) -> None:
    """Print a note to stderr if a named session is not recorded in this project.

    This is no error, because a client may ask for the notices of a session that has just begun.
    """
    if given is None:
        return
    from outlive.service.sessions.lineage import number_of  # imported here, because a launch does not need it

    if number_of(home, given, project()) is None:
        from outlive.domain.text.sanitize import one_line

        print(f"note: no session {one_line(given, 60)} is recorded in this project", file=sys.stderr)


def begin_trace(*, wanted: bool) -> None:
    """Write every later decision about a session to a trace file, if `wanted` is set."""
    if wanted:
        os.environ["OUTLIVE_TRACE"] = "1"


def surroundings(
    home: Home, extra: dict[str, str], *, foreground: bool = False, session: str | None = None
) -> Surroundings:
    """Return the properties of this process that the task's command inherits.

    A foreground task ends when the client of its session ends. `session` is the session that an option names, or None.
    If no client is known, a foreground task ends when the leader of this Unix session ends.
    """
    umask = os.umask(0o077)
    os.umask(umask)
    owner = None
    if foreground:
        from outlive.service.sessions.foreground_client import client_of

        owner = client_of(home, os.environ, session, project())
        if owner is None:
            # getsid() returns 0 if the leader of the Unix session is outside of this PID namespace.
            owner = os.pidfd_open(os.getsid(0) or os.getppid() or os.getpid())
    return Surroundings(environ={**os.environ, **extra}, umask=umask, owner=owner)
