"""The tasks to which the listening processes of this machine belong."""

from __future__ import annotations

from outlive.bundle.ports import read_ports
from outlive.domain.errors import Conflict, UserError
from outlive.keeper.readiness.port_owner import describe_owner
from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.foreign_process import ancestors
from outlive.linux.listeners import listeners_on
from outlive.linux.processes import setting_of
from outlive.service.clock import utc_now
from outlive.service.tasks.read import files_of, processes_on_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task
    from outlive.linux.listeners import Listener


class PortOwners:
    """The rule that tells to which task a process belongs.

    A process belongs to the task that `OUTLIVE_TASK` in its environment names. An adopted process and a process with
    a cleared environment have no such variable. They belong to the task of which an ancestor is on record.
    """

    def __init__(self, home: Home) -> None:
        with SqliteLedger(home.ledger, utc_now()) as ledger:
            self._tasks: dict[str, Task | None] = {task.id: task for task in ledger.unsettled()}
        self._home = home
        self.live = [task for task in self._tasks.values() if task is not None]
        """The tasks that have not ended."""
        self._on_record = {pid: task for task in self.live for pid in processes_on_record(home, task)}

    def task_of(self, pid: int) -> Task | None:
        """Return the task of a process, which may have ended, or None."""
        for each in ancestors(pid):
            if each in self._on_record:
                return self._on_record[each]
            named = setting_of(each, "OUTLIVE_TASK")
            if named:
                return self._find(named)
        return None

    def task_of_listener(self, listener: Listener) -> Task | None:
        """Return the task to which an owner of a listener belongs, or None."""
        return next((task for pid in listener.pids if (task := self.task_of(pid)) is not None), None)

    def _find(self, named: str) -> Task | None:
        if named not in self._tasks:
            with SqliteLedger(self._home.ledger, utc_now()) as ledger:
                self._tasks[named] = ledger.task(named)
        return self._tasks[named]

    def leases(self) -> dict[int, Task]:
        """Return the leased ports of the tasks that have not ended."""
        return {port: task for task in self.live for port in read_ports(files_of(self._home, task)).values()}


def owner_of_port(home: Home, port: int, near: str) -> Task:
    """Return the task that listens on a port, or that has leased it.

    Raises `UserError` if no process has the port, and `Conflict` if a process outside of all tasks has it. `near` is
    the directory relative to which the error names other directories.
    """
    owners, found = PortOwners(home), listeners_on(port)
    tasks = {task.id: task for each in found if (task := owners.task_of_listener(each)) is not None}
    if len(tasks) > 1:
        raise Conflict(
            f"several tasks listen on port {port}: {', '.join(tasks)}", "name one of them: outlive cancel ID"
        )
    foreign = [each for each in found if owners.task_of_listener(each) is None]
    if tasks:
        return next(iter(tasks.values()))
    if foreign:
        raise Conflict(
            f"port {port} is held by {describe_owner(foreign[0], near)}, which belongs to no task",
            "only ports of tasks can be freed here; if the process is yours, end it yourself",
        )
    leased = owners.leases().get(port)
    if leased is None:
        raise UserError(f"no process listens on port {port}", "`outlive ports --all` shows who listens on which port")
    return leased
