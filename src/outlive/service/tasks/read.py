"""Reading tasks.

Attempts without a living process are settled first, so that no returned state is outdated.
"""

from __future__ import annotations

import os

from outlive.bundle.attempt import AttemptFiles
from outlive.bundle.output import read_hole, read_tail, size_of
from outlive.domain.errors import UserError
from outlive.domain.tasks.task_json import OutputView
from outlive.domain.text.sanitize import shown
from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.syscalls import boot_id, pid_namespace
from outlive.service.clock import utc_now
from outlive.service.maintenance.reconcile import reconcile
from outlive.service.tasks.find import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import History, Task
    from outlive.ledger.contract import Selection, Within
    from outlive.service.maintenance.reconcile import Adopter

TAIL = 2048
# The number of bytes that readers read in addition to the part that they show. Otherwise a secret at the edge of the
# shown part would be incomplete, and it would not be recognised.
MARGIN = 4096
_LAST_LINE_WITHIN = 8192


def files_of(home: Home, task: Task, attempt: int | None = None) -> AttemptFiles:
    """Return the files of a task's attempt, by default of the newest attempt."""
    return AttemptFiles(home.bundle(task.id), attempt or task.current.number)


def ports_of(home: Home, task: Task) -> dict[str, int]:
    """Return the ports that the newest attempt has leased, the first one first."""
    files = files_of(home, task)
    if not os.path.exists(files.ports):
        return {}
    from outlive.bundle.ports import read_ports  # noqa: PLC0415 - imported here, because few tasks have leased ports

    return read_ports(files)


def processes_on_record(home: Home, task: Task) -> list[int]:
    """Return the process ids of a task's command and of its witness.

    An adopted process has no witness. Returns an empty list for a task of another boot or PID namespace.
    """
    slot = files_of(home, task).read_slot("process")
    if slot is None or slot.get("boot") != boot_id() or str(slot.get("namespace")) != str(pid_namespace()):
        return []  # here, these process ids may belong to other processes
    return [int(slot[name]) for name in ("pid", "witness") if slot.get(name)]


def find(home: Home, texts: Sequence[str], adopter: Adopter | None, within: Within | None = None) -> list[Task]:
    """Return the named tasks as they are now.

    Attempts without a living process are settled first. With `within`, only the ids of such tasks may be shortened.
    """
    now = utc_now()
    with SqliteLedger(home.ledger, now) as ledger:
        ids = [resolve(ledger, text, within).id for text in texts]
    for one in ids:
        reconcile(home, now, one, adopter)
    with SqliteLedger(home.ledger, now) as ledger:
        return [resolve(ledger, one) for one in dict.fromkeys(ids)]


def select(home: Home, selection: Selection, adopter: Adopter | None) -> list[Task]:
    """Return the selected tasks as they are now, newest first."""
    now = utc_now()
    reconcile(home, now, None, adopter)
    with SqliteLedger(home.ledger, now) as ledger:
        return list(ledger.tasks(selection))


def select_group(home: Home, selection: Selection, adopter: Adopter | None) -> list[Task]:
    """Return the selected tasks of an existing group.

    For an unknown group, this function raises `UserError`. An empty list would mean that all tasks of the group have
    ended.
    """
    tasks = select(home, selection, adopter)
    if not tasks and not select(home, selection.but(states=(), limit=1), None):
        raise UserError(
            f"no task of this project is in the group {selection.group}",
            "a group belongs to one project; `outlive list --all --group NAME` searches all projects",
        )
    return tasks


def history_of(home: Home, task: Task) -> History:
    """Return the history of a task: its state changes, evidence and notices."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        return ledger.history(task.id)


def output_view(home: Home, task: Task, limit: int = TAIL, attempt: int | None = None) -> OutputView:
    """Return the output's size, its number of dropped bytes, and its end.

    Secrets in the end are masked. For an agent, the function returns the end of the agent's answer.
    """
    files = files_of(home, task, attempt)
    hole = read_hole(files)
    if task.launch.agent is None:
        tail = tail_text(files, limit)
    else:
        from outlive.service.agents.agent_view import agent_tail  # noqa: PLC0415 - imported here, because only agent tasks need it

        tail = agent_tail(home, task, limit, attempt)  # the output itself is JSON that is hard to read
    return OutputView(
        path=files.output,
        size=size_of(files),
        dropped=hole.end - hole.start,
        truncated=task.current.output_truncated,
        tail=tail,
    )


def tail_text(files: AttemptFiles, limit: int) -> str:
    """Return the last characters of an output, with secrets masked.

    A secret that is cut would not be recognised. So more text is read than is shown, and the shown text begins with a
    whole word.
    """
    piece = read_tail(files, limit + MARGIN)
    text = piece.content.decode("utf-8", "replace")
    if piece.start > 0:
        begins = min((at for c in " \n\t" if (at := text.find(c)) >= 0), default=len(text))
        text = text[begins:]
    return shown(text)[-limit:]


def last_line(home: Home, task: Task) -> str:
    """Return the last line of output that is not blank.

    Returns an empty string if there is no such line. For an agent, this function returns the agent's last tool call or
    last message.
    """
    if task.launch.agent is not None:
        from outlive.service.agents.agent_view import last_words  # noqa: PLC0415 - imported here, because only agent tasks need it

        return last_words(home, task)
    piece = read_tail(files_of(home, task), _LAST_LINE_WITHIN)
    text = piece.content.decode("utf-8", "replace")
    lines = text.split("\n")[1 if piece.start else 0 :]
    # A progress bar redraws its line with carriage returns. Only its last state is visible.
    seen = shown("\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines))
    return next((line.strip() for line in reversed(seen.split("\n")) if line.strip()), "")
