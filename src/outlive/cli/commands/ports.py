"""`outlive ports`: print who listens on which port."""

from __future__ import annotations

import os

from outlive.cli import context
from outlive.cli.formatting import print_json, table
from outlive.cli.parser import Command, Given, option
from outlive.domain.text.sanitize import masked, one_line
from outlive.service.clock import utc_now
from outlive.service.maintenance.reconcile import reconcile
from outlive.service.tasks.list_ports import PortRow, list_ports, port_json

_COMMAND_COLUMNS = 80


def act(given: Given) -> int:
    """Print the ports of all tasks, or of all processes."""
    home = context.here_for_reading()
    reconcile(home, utc_now())
    rows = list_ports(home, with_foreign=given.all)
    if given.json:
        print_json({"ports": [port_json(row) for row in rows]})
        return 0
    if not rows:
        print("no task listens on a port" if not given.all else "no process listens on a port")
        return 0
    heads = ("PORT", "ADDRESS", "TASK", "USERS", "BRANCH", "URL", "PROJECT", "COMMAND")
    for line in table(heads, [_cells(row) for row in rows], may_go=("ADDRESS", "PROJECT", "BRANCH", "URL")):
        print(line)
    return 0


def _cells(row: PortRow) -> tuple[str, ...]:
    """Return the cells of a row of the table."""
    return (
        f"{row.port} {row.name}" if row.name else str(row.port),
        ",".join(row.addresses) or "leased",
        _owner(row),
        {True: "gone", False: "alive", None: "-"}[row.users_gone],
        one_line(row.branch or "-", 40),
        one_line(row.url or "-", 80),
        one_line(_short(row.project), 60),
        one_line(masked(row.command or "-"), _COMMAND_COLUMNS),
    )


def _owner(row: PortRow) -> str:
    """Return the id of the task, or the process or the user that has the port."""
    if row.task is not None:
        return row.task.id if row.task.current.settled_at is None else f"{row.task.id} ({row.task.state})"
    return f"pid {row.pids[0]}" if row.pids else f"uid {row.user}"


def _short(project: str | None) -> str:
    """Return a project with `~` for the user's home directory."""
    if project is None:
        return "-"
    home = os.path.expanduser("~")
    return "~" + project[len(home) :] if home != "/" and f"{project}/".startswith(home + "/") else project


COMMAND = Command(
    name="ports",
    summary="show which task listens on which port, in which project and on which branch",
    usage="outlive ports [--all]",
    refuses_words=True,
    details=(
        "The list has the ports on which processes of tasks listen, in all projects, and the ports that tasks have\n"
        "leased with `run --port`. USERS is `gone` if the session that launched the task has ended, and no session\n"
        "continues it. The URL is the one that the task has printed. `outlive cancel --port N` ends the task that\n"
        "listens on a port."
    ),
    options=(option("--all", "also show ports of processes that belong to no task"),),
    examples=(
        ("outlive ports", "print the ports of all tasks"),
        ("outlive ports --all --json", "print every listener of this machine as JSON"),
    ),
)
