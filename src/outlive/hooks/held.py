"""Before a tool is used: whether a task holds what it is about to touch or to look at away from how it was.

Most often nothing runs at all, and that is known from the ledger's files without opening it.
"""

from __future__ import annotations

import os

from outlive.hooks import marks
from outlive.hooks.quiet import stamp_of
from outlive.hooks.usable import has_ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.domain.task import Task
    from outlive.hooks.event import Event
    from outlive.service.guard import Holder

_MOST = 3


def held(home: Home, event: Event, patience_s: float) -> str:
    """What the model should know before it goes on; empty if nothing is held."""
    stamp = stamp_of(home)
    if not has_ledger(home) or (stamp and marks.word(home, event.session, "unheld") == stamp):
        return ""
    from outlive.ledger.opening import be_impatient  # noqa: PLC0415 - mostly nothing runs
    from outlive.ledger.sqlite import SqliteLedger  # noqa: PLC0415
    from outlive.service.clock import utc_now  # noqa: PLC0415
    from outlive.service.holding import may_hold  # noqa: PLC0415

    be_impatient(patience_s)
    with SqliteLedger(home.ledger, utc_now(), create=False) as ledger:
        tasks = may_hold(ledger)
    if not any(_may_ever_hold(home, task) for task in tasks):
        marks.set_word(home, event.session, "unheld", stamp)
    return _words(_holders(home, event), event.cwd) if any(_has_changed(home, task) for task in tasks) else ""


def _may_ever_hold(home: Home, task: Task) -> bool:
    """Whether what it holds need be asked before the next use as well: it runs, or has left something away."""
    if task.current.settled_at is None:
        return True
    if not _has_changed(home, task):
        return False
    from outlive.service.effects import open_now  # noqa: PLC0415 - mostly nothing was left

    return bool(open_now(home, task, with_stashes=True))


def _has_changed(home: Home, task: Task) -> bool:
    """Whether it has been seen to change anything; what exactly is dear to find out."""
    from outlive.bundle.attempt import AttemptFiles  # noqa: PLC0415 - mostly nothing runs
    from outlive.observe.journal import is_bare  # noqa: PLC0415

    tries = (AttemptFiles(home.bundle(task.id), attempt.number) for attempt in task.attempts)
    return any(os.path.exists(files.compared) or not is_bare(files.effects) for files in tries)


def _holders(home: Home, event: Event) -> list[Holder]:
    from outlive.domain.command import from_shell_text  # noqa: PLC0415 - only if something runs
    from outlive.service.guard import holders_of_command, holders_of_paths  # noqa: PLC0415

    if event.command is not None:
        return holders_of_command(home, from_shell_text(event.command).argv, event.cwd, os.environ)
    paths = [os.path.join(event.cwd, path) for path in (*event.edits, *event.reads)]
    return holders_of_paths(home, paths, os.environ)


def _words(holders: list[Holder], directory: str) -> str:
    from outlive.domain.digest import maybe_held_line  # noqa: PLC0415 - only if something is held
    from outlive.service.clock import utc_now  # noqa: PLC0415
    from outlive.service.origin import project_of  # noqa: PLC0415

    now, tree = utc_now(), project_of(directory)
    lines = [maybe_held_line(each.task, each.window, each.unread, now, tree) for each in holders[:_MOST]]
    more = f" and {len(holders) - _MOST} more tasks" if len(holders) > _MOST else ""
    advice = "What is there now is not how it was, and may be put back: wait for it (`outlive wait ID`) or ask first."
    if all(each.window.is_left for each in holders):
        advice = "Nobody is going to put that back: see what it did (`outlive effects ID`) before you build on it."
    return f"{'; '.join(lines)}{more}. {advice}" if lines else ""
