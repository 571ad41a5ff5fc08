"""`outlive sweep`: show the tasks that may be deleted now, or delete them."""

from __future__ import annotations

from outlive.cli import context
from outlive.cli.formatting import print_json, table
from outlive.cli.parser import Command, Given, option
from outlive.domain.text.sanitize import masked
from outlive.domain.text.units import parse_size, show_duration, show_size
from outlive.domain.timestamps import iso, timedelta
from outlive.service.clock import utc_now
from outlive.service.maintenance.sweep import Swept, preview, sweep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN = 40


def act(given: Given) -> int:
    """Show the tasks that may be deleted now. With `--apply`, delete them."""
    home, now = context.here(), utc_now()
    swept = (sweep if given.apply else preview)(home, now, given.max_disk)
    if given.json:
        print_json(_document(swept, applied=given.apply))
        return 0
    if not swept.tasks and not swept.strays:
        print("nothing is due for deletion")
        return 0
    rows = [
        (each.task, _overdue(now - each.delete_after), show_size(each.size), each.command)
        for each in swept.tasks[:_SHOWN]
    ]
    for line in table(("ID", "OVERDUE", "OUTPUT", "WHAT"), rows) if rows else ():
        print(line)
    if len(swept.tasks) > _SHOWN:
        print(f"... and {len(swept.tasks) - _SHOWN} more")
    for stray in swept.strays:
        print(f"{stray}  files without a record")
    what = f"{_count(swept.tasks, 'record', 'records')} with {show_size(swept.size)} of output"
    if swept.strays:
        what += f" and {_count(swept.strays, 'directory', 'directories')} without a record"
    print(f"deleted {what}" if given.apply else f"would delete {what}: outlive sweep --apply")
    return 0


def _overdue(span: timedelta) -> str:
    """Return a phrase that says how long ago a task should have been deleted.

    If the task is deleted early because space is needed, the phrase says so.
    """
    return show_duration(span) if span >= timedelta() else "no, for room"


def _count(several: Sequence[object], one: str, more: str) -> str:
    return f"{len(several)} {one if len(several) == 1 else more}"


def _document(swept: Swept, *, applied: bool) -> dict[str, object]:
    tasks = [
        {"id": each.task, "command": masked(each.command), "delete_after": iso(each.delete_after), "bytes": each.size}
        for each in swept.tasks
    ]
    return {"applied": applied, "tasks": tasks, "strays": list(swept.strays), "bytes": swept.size}


COMMAND = Command(
    name="sweep",
    summary="list the tasks that are due for deletion, or delete them with --apply",
    usage="outlive sweep [--apply]",
    refuses_words=True,
    details=(
        "A task is due when its retention is over and its ending was reported. If all outputs together take more\n"
        "space than OUTLIVE_MAX_DISK (default 8G), the oldest reported tasks are due earlier. Keepers (the processes\n"
        "that supervise tasks) delete some due tasks by themselves. A task is never deleted while it runs or waits,\n"
        "or before its ending was reported."
    ),
    options=(
        option("--apply", "delete the tasks that are due"),
        option("--max-disk SIZE", "keep at most this much output of all tasks together", parse_size),
    ),
    examples=(
        ("outlive sweep", "list what would be deleted"),
        ("outlive sweep --apply --max-disk 1G", "delete the oldest tasks until their output fits into 1 GiB"),
    ),
)
