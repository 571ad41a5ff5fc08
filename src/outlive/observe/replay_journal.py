"""The computation of a task's effects from the journals in its bundle.

A journal lists the observed changes of one attempt (see `journal.py`). To replay it means to read the changes in order.
"""

from __future__ import annotations

from outlive.bundle.attempt import AttemptFiles
from outlive.domain.effects.replay.replay import Replay
from outlive.domain.timestamps import to_micros
from outlive.observe.journal import read_journal
from outlive.observe.path_state import changed_at_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task
    from outlive.observe.search_journal import JournalSearch


def replay_of(home: Home, task: Task, last: int) -> Replay:
    """Return the result of reading all changes of a task's attempts, in order.

    Attempts after the attempt `last` are left out. `journals_of` selects the files of observed changes to read.
    """
    replay = Replay(home.path, home.worktrees)
    for path in journals_of(home, task, last):
        replay.read(read_journal(path))
    return _ended(replay, task, last)


def replay_about(home: Home, task: Task, last: int, search: JournalSearch, paths: Iterable[bytes]) -> Replay | None:
    """Return the changes of a task that concern `paths`, read in order.

    `search` finds the lines that concern the paths in the files of observed changes, up to the attempt `last`. Returns
    None if there are too many of these lines.
    """
    lines = search.lines_about(paths)
    if lines is None:
        return None
    replay = Replay(home.path, home.worktrees)
    replay.read(lines)
    return _ended(replay, task, last)


def journals_of(home: Home, task: Task, last: int) -> list[str]:
    """Return the files of observed changes of a task's attempts.

    The attempts after the attempt `last` are left out. An automatic retry continues the attempt before it. So the list
    begins with the newest attempt that is not an automatic retry.
    """
    tries = range(task.first_try(last).number, last + 1)
    return [AttemptFiles(home.bundle(task.id), number).effects for number in tries]


def _ended(replay: Replay, task: Task, last: int) -> Replay:
    ended_at = task.attempts[last - 1].ended_at
    replay.end(None if ended_at is None else to_micros(ended_at), lambda path: changed_at_ns(path) // 1000)
    return replay
