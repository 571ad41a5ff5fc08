"""The list of ports: who listens where, on which branch, and for whom."""

from __future__ import annotations

import re

from outlive.bundle.output import read_piece
from outlive.bundle.ports import read_ports
from outlive.domain.tasks.lifecycle import LIVE
from outlive.domain.text.sanitize import masked, plain
from outlive.domain.value import Value
from outlive.keeper.readiness.port_owner import directory_of
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.listeners import all_listeners
from outlive.linux.processes import command_line
from outlive.observe.git.refs import read_head
from outlive.observe.git.repository import find_repository
from outlive.observe.git.safe_read import Unknown
from outlive.service.clock import utc_now
from outlive.service.notices.find_recipients import Recipients
from outlive.service.tasks.launch_context import project_of
from outlive.service.tasks.port_owners import PortOwners
from outlive.service.tasks.read import files_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task
    from outlive.linux.listeners import Listener

_SEARCHED_BYTES = 1 << 16
_URL = re.compile(r"https?://[^\s/:'\"<>]+:(\d+)[^\s'\"<>)]*|https?://\[[0-9a-f:]+\]:(\d+)[^\s'\"<>)]*")


class PortRow(Value):
    """One port, and who has it."""

    port: int
    name: str | None
    """The name under which a task has leased the port, or None."""
    addresses: tuple[str, ...]
    """The addresses on which a process listens. Empty for a leased port on which no process listens."""
    pids: tuple[int, ...]
    """The processes that have the listener open. Empty if they cannot be seen."""
    user: int | None
    """The uid of the process that made the listener. None if no process listens."""
    task: Task | None
    """The task to which the processes belong, or None."""
    command: str | None
    directory: str | None
    branch: str | None
    """The branch that is checked out in the directory. None if it is not known, or if no branch is checked out."""
    url: str | None
    """The URL with this port that the task has printed, or None."""
    users_gone: bool | None
    """Whether the session for which the task works has ended, with all sessions that continue it.

    None if the task was launched outside of a session, and for processes of no task.
    """

    @property
    def project(self) -> str | None:
        """The project of the directory, or None if the directory is not known."""
        if self.task is not None:
            return self.task.launch.project
        return None if self.directory is None else project_of(self.directory)


def list_ports(home: Home, *, with_foreign: bool) -> list[PortRow]:
    """Return the ports of all tasks, sorted by number.

    With `with_foreign`, the listeners of other processes are returned too.
    """
    owners = PortOwners(home)
    grouped: dict[tuple[int, str | tuple[int, ...]], tuple[Task | None, list[Listener]]] = {}
    for each in all_listeners():
        task = owners.task_of_listener(each)
        if task is not None or with_foreign:
            key = (each.port, each.pids or (each.user,)) if task is None else (each.port, task.id)
            grouped.setdefault(key, (task, []))[1].append(each)
    rows = [_row(home, task, found) for task, found in grouped.values()]
    listed = {row.port for row in rows}
    rows += [_row_of_lease(home, task, port) for port, task in owners.leases().items() if port not in listed]
    return sorted(rows, key=lambda row: (row.port, row.addresses))


def _row(home: Home, task: Task | None, found: Sequence[Listener]) -> PortRow:
    """Return the row of the listeners that one task or one process has on a port."""
    port, pid = found[0].port, next(iter(found[0].pids), None)
    directory = directory_of(pid) if pid is not None else None
    if task is not None:
        directory = directory or task.launch.cwd
    return PortRow(
        port=port,
        name=None if task is None else _name_of(home, task, port),
        addresses=tuple(dict.fromkeys(each.address for each in found)),
        pids=tuple(sorted({pid for each in found for pid in each.pids})),
        user=found[0].user,
        task=task,
        command=None if pid is None else command_line(pid),
        directory=directory,
        branch=None if directory is None else _branch_of(directory),
        url=None if task is None else _printed_url(home, task, port),
        users_gone=None if task is None else _are_users_gone(home, task),
    )


def _row_of_lease(home: Home, task: Task, port: int) -> PortRow:
    """Return the row of a leased port on which no process listens."""
    return PortRow(
        port=port,
        name=_name_of(home, task, port),
        addresses=(),
        pids=(),
        user=None,
        task=task,
        command=task.launch.command,
        directory=task.launch.cwd,
        branch=_branch_of(task.launch.cwd),
        url=None,
        users_gone=_are_users_gone(home, task),
    )


def _name_of(home: Home, task: Task, port: int) -> str | None:
    if task.state not in LIVE:
        return None  # the lease has ended with the attempt
    return next((name for name, number in read_ports(files_of(home, task)).items() if number == port), None)


def _branch_of(directory: str) -> str | None:
    """Return the branch that is checked out in a directory, or None."""
    repository = find_repository(directory)
    try:
        ref = "" if repository is None else read_head(repository)[0]
    except (OSError, Unknown):
        return None
    return ref.removeprefix("refs/heads/") or None


def _printed_url(home: Home, task: Task, port: int) -> str | None:
    """Return the first URL with a port in the beginning of a task's output, or None.

    A server knows its own URL best: the protocol and the path cannot be seen from outside.
    """
    content = read_piece(files_of(home, task), 0, _SEARCHED_BYTES).content
    for found in _URL.finditer(plain(content.decode("utf-8", "replace"))):
        if str(port) in found.groups():
            return masked(found[0]).rstrip(".,;")
    return None


def _are_users_gone(home: Home, task: Task) -> bool | None:
    """Return whether no living session is left for which a task works."""
    launch = task.launch
    if launch.session is None:
        return None
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        session = Sessions(ledger).find(launch.session, launch.session_project or launch.project)
        return None if session is None else Recipients(ledger).heir_of(session.seq) is None


def port_json(row: PortRow) -> dict[str, object]:
    """Return a row as JSON values."""
    return {
        "port": row.port,
        "name": row.name,
        "addresses": list(row.addresses),
        "pids": list(row.pids),
        "uid": row.user,
        "task": None if row.task is None else row.task.id,
        "state": None if row.task is None else row.task.state,
        "command": None if row.command is None else masked(row.command),
        "cwd": row.directory,
        "project": row.project,
        "branch": row.branch,
        "url": row.url,
        "session": None if row.task is None else row.task.launch.session,
        "users_gone": row.users_gone,
    }
