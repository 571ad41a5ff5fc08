"""Looking at tasks: what a reader is shown, settled first, so that nothing stale is told."""

from __future__ import annotations

from outlive.bundle.attempt import AttemptFiles
from outlive.bundle.output import read_hole, read_tail, size_of
from outlive.domain.errors import UserError
from outlive.domain.text import shown
from outlive.domain.wire import OutputView, history_json, task_json
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.drift import World, drift_document
from outlive.service.effects import effects_document, effects_of, git_document
from outlive.service.lookup import resolve
from outlive.service.reconcile import reconcile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.drift import Drift
    from outlive.domain.task import History, Task
    from outlive.ledger.contract import Selection
    from outlive.service.reconcile import Adopter

TAIL = 2048
# So much beside what is shown is read: half a secret is not recognised.
MARGIN = 4096
_LAST_LINE_WITHIN = 8192


def files_of(home: Home, task: Task, attempt: int | None = None) -> AttemptFiles:
    """The files of a task's attempt, by default the newest."""
    return AttemptFiles(home.bundle(task.id), attempt or task.current.number)


def find(home: Home, texts: Sequence[str], adopter: Adopter | None) -> list[Task]:
    """The named tasks as they are now: whatever died unseen has been settled first."""
    now = utc_now()
    with SqliteLedger(home.ledger, now) as ledger:
        ids = [resolve(ledger, text).id for text in texts]
    for one in ids:
        reconcile(home, now, one, adopter)
    with SqliteLedger(home.ledger, now) as ledger:
        return [resolve(ledger, one) for one in dict.fromkeys(ids)]


def select(home: Home, selection: Selection, adopter: Adopter | None) -> list[Task]:
    """The selected tasks as they are now, newest first."""
    now = utc_now()
    reconcile(home, now, None, adopter)
    with SqliteLedger(home.ledger, now) as ledger:
        return list(ledger.tasks(selection))


def select_group(home: Home, selection: Selection, adopter: Adopter | None) -> list[Task]:
    """The selected tasks of a group that there is.

    A group without any task is a wrong name, or the right one in another project: whoever was told that nothing
    of it runs would believe that all of it has ended.
    """
    tasks = select(home, selection, adopter)
    if not tasks and not select(home, selection.but(states=(), limit=1), None):
        raise UserError(
            f"no task of this project is in the group {selection.group}",
            "a group is of one project: `outlive list --all --group NAME` looks in all of them",
        )
    return tasks


def history_of(home: Home, task: Task) -> History:
    """What the ledger remembers of a task beyond its state."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        return ledger.history(task.id)


def output_view(home: Home, task: Task, limit: int = TAIL, attempt: int | None = None) -> OutputView:
    """The output as it is now: its size, what is gone of it, its last bytes as harmless text."""
    files = files_of(home, task, attempt)
    hole = read_hole(files)
    return OutputView(
        path=files.output,
        size=size_of(files),
        dropped=hole.end - hole.start,
        truncated=task.current.output_truncated,
        tail=tail_text(files, limit),
    )


def tail_text(files: AttemptFiles, limit: int) -> str:
    """The last characters of an output as anybody may see them.

    A secret that is cut in two is not recognised: so more is read than is shown, from a word's beginning on.
    """
    piece = read_tail(files, limit + MARGIN)
    text = piece.content.decode("utf-8", "replace")
    if piece.start > 0:
        begins = min((at for c in " \n\t" if (at := text.find(c)) >= 0), default=len(text))
        text = text[begins:]
    return shown(text)[-limit:]


def last_line(home: Home, task: Task) -> str:
    """The last line of output that says anything; empty if there is none yet."""
    piece = read_tail(files_of(home, task), _LAST_LINE_WITHIN)
    text = piece.content.decode("utf-8", "replace")
    lines = text.split("\n")[1 if piece.start else 0 :]
    # A bar that redraws itself is as many lines as it has states; the last is the one that is seen.
    seen = shown("\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines))
    return next((line.strip() for line in reversed(seen.split("\n")) if line.strip()), "")


def task_document(home: Home, task: Task, now: datetime) -> dict[str, object]:
    """The task as JSON."""
    effects = effects_document(effects_of(home, task), now)
    return {**task_json(task, output_view(home, task), now, effects), "git": git_document(home, task)}


def full_document(home: Home, task: Task, now: datetime) -> dict[str, object]:
    """The task as JSON with all that is remembered of it."""
    drift = drift_document(drift_now(home, task))
    return {**task_document(home, task, now), **history_json(history_of(home, task)), "drift": drift}


def drift_now(home: Home, task: Task) -> Drift | None:
    """What has moved since its newest attempt ended; None while that goes on, or if nobody looked then."""
    if task.current.settled_at is None:
        return None
    return World().drift_of(home, task, task.current.number, effects_of(home, task))
