"""Overlaps of a task: tasks, sessions and clients' commands that may affect it.

An overlap is another task or session that changed the same paths while the task ran. Another task that had files of
the same directory tree changed and not yet restored at that time is an overlap too.
"""

from __future__ import annotations

from outlive.bundle.attempt import AttemptFiles
from outlive.domain.effects.effects import Effects
from outlive.domain.effects.overlap import (
    Overlap,
    by_hand,
    changed_paths,
    in_both,
    lie_in,
    restored_since,
    shared_span,
    shared_tree,
    windows_meanwhile,
)
from outlive.domain.sessions.client_task import did_run
from outlive.domain.text.sanitize import masked
from outlive.domain.timestamps import from_micros, iso
from outlive.ledger.client_tasks import ClientTasks
from outlive.ledger.session_edits import SessionEdits
from outlive.ledger.sqlite import SqliteLedger
from outlive.observe.journal import is_bare, is_observed
from outlive.service.clock import utc_now
from outlive.service.effects.effects import effects_of, taking_away, window_document
from outlive.service.tasks.launch_context import project_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.effects.overlap import Edit
    from outlive.domain.effects.predicted import Declared
    from outlive.domain.sessions.client_task import ClientTask
    from outlive.domain.tasks.task import Task

_MOST_PATHS, _MOST_WINDOWS = 20, 3
_MOST_NEIGHBOURS = 50
_EVER = from_micros(0)


class Neighbours:
    """The tasks and edits that may have changed the same paths as a task.

    The record of each task's changes is read only once.
    """

    def __init__(self, home: Home, since: datetime | None = None) -> None:
        """Find the tasks, without those that ended before `since`.

        If `since` is None, tasks of any age are included.
        """
        self._home = home
        self._since = since or _EVER
        self._effects: dict[str, Effects] = {}
        self._near: dict[str, list[Task]] = {}
        self._anywhere: list[Task] | None = None
        self._foreign: list[tuple[str, str, ClientTask]] | None = None

    def of(self, task: Task) -> list[Task]:
        """Return the other tasks that may have run at the same time as a task, or later."""
        project = task.launch.project
        with SqliteLedger(self._home.ledger, utc_now()) as ledger:
            if project not in self._near:
                self._near[project] = list(ledger.newest(_MOST_NEIGHBOURS, project, self._since))
            if self._anywhere is None:
                # A task of another project may write to this project: with --touches, or if one of the two
                # repositories lies inside the other.
                newest = ledger.newest(_MOST_NEIGHBOURS, None, self._since)
                # A task that runs for a long time may be older than the newest tasks. So all tasks that have not ended
                # are included.
                self._anywhere = [*newest, *ledger.unsettled()]
        found = {each.id: each for each in (*self._near[project], *self._anywhere)}
        return [each for each in found.values() if each.id != task.id]

    def edits(self, since: datetime, until: datetime) -> Sequence[Edit]:
        """Return the edits that sessions made to files themselves, between two times.

        Changes by tasks are not included.
        """
        with SqliteLedger(self._home.ledger, utc_now()) as ledger:
            return SessionEdits(ledger).between(since, until)

    def foreign(self, task: Task, since: datetime, until: datetime) -> Iterator[tuple[str, ClientTask]]:
        """Yield the background commands that clients ran in a task's directory tree.

        Clients run these commands without Outlive. Only commands that ran between `since` and `until` count. Each
        command comes with the session that runs it. An adopted command is a task, so it is left out. A command that
        only calls `outlive` changes no file itself, so it is left out too.
        """
        if self._foreign is None:
            with SqliteLedger(self._home.ledger, utc_now()) as ledger:
                self._foreign = ClientTasks(ledger).newest()
        found = [each for each in self._foreign if did_run(each[2], since, until)]
        # It may not be known when a client's command ended, and the task that adopted the command may have ended long
        # ago. So tasks of any age are read.
        everyone = self if self._since == _EVER else Neighbours(self._home)
        tasks = (task, *everyone.of(task)) if found else ()
        adopted = {each.launch.adopted_output for each in tasks} - {None}
        for session, project, one in found:
            tree = project if one.seen.cwd is None else project_of(one.seen.cwd)
            is_ours = one.seen.output in adopted or one.seen.command.split()[:1] == ["outlive"]
            if not is_ours and shared_tree(task.launch.project, tree) is not None:
                yield session, one

    def effects(self, task: Task) -> Effects:
        """Return the effects of a task.

        The effects are empty if only the task's program starts were recorded.
        """
        if task.id not in self._effects:
            files = (AttemptFiles(self._home.bundle(task.id), each.number) for each in task.attempts)
            is_idle = all(is_bare(each.effects) for each in files)
            self._effects[task.id] = Effects() if is_idle else effects_of(self._home, task)
        return self._effects[task.id]

    def taking_by_text(self, task: Task, other: Task) -> Declared | None:
        """Return the files that the task `other` takes away, by the text of its command.

        Taking away means changing files that the command did not write, as `git stash` does. Returns None if the
        changes of `other` are observed, or if it takes no files away in the directory tree of `task`. Files that a
        succeeded task removed for good do not count, because their removal is the task's result.
        """
        taking = taking_away(other)
        files = AttemptFiles(self._home.bundle(other.id), other.current.number)
        if taking is None or is_observed(files.effects) or (other.state == "succeeded" and not taking.opens_window):
            return None
        from outlive.service.effects.guard import is_in_one_tree, tree_of  # noqa: PLC0415 - imported here, because few commands take files away

        is_near = any(is_in_one_tree(tree_of(each), [task.launch.project]) for each in taking.taken_away)
        return taking if is_near else None

    def restored_by(self, task: Task, ended_at: datetime) -> dict[str, list[tuple[str, datetime]]]:
        """Return the paths that other tasks restored after the end of a task.

        For each path, the result has the ids of the tasks that restored the path, and the times.
        """
        found: dict[str, list[tuple[str, datetime]]] = {}
        for other in self.of(task):
            if other.current.ended_at is None or other.current.ended_at > ended_at:
                for path, at in restored_since(self.effects(other), ended_at):
                    found.setdefault(path, []).append((other.id, at))
        return found


def overlaps_of(
    neighbours: Neighbours, task: Task, attempt: int, own: Effects, *, in_one_tree: bool = False
) -> tuple[Overlap, ...]:
    """Return what other tasks, sessions and clients did while an attempt ran.

    `own` are the effects of the attempt. The result has tasks and sessions that changed the same paths, and tasks that
    had files of the directory tree changed and not yet restored. The background commands of clients come last. With
    `in_one_tree`, tasks that changed other files of the directory tree count too.
    """
    since = task.first_try(attempt).started_at
    if since is None:
        return ()
    mine = changed_paths(own)
    until = task.attempts[attempt - 1].ended_at or utc_now()
    found = by_hand(mine, neighbours.edits(since, until)) if mine else []
    for other in neighbours.of(task):
        span = shared_span(task, other)
        if span is None:
            continue
        beside = neighbours.effects(other)
        paths = in_both(changed_paths(own, span), changed_paths(beside, span)) if mine else ()
        windows = windows_meanwhile(task, other, beside)
        taking = None if windows else neighbours.taking_by_text(task, other)
        tree = shared_tree(task.launch.project, other.launch.project) if in_one_tree else None
        is_in_way = tree is not None and lie_in(tree, mine) and lie_in(tree, changed_paths(beside))
        if paths or windows or taking is not None or is_in_way:
            found.append(
                Overlap(task=other.id, paths=paths, since=span[0], until=span[1], windows=windows, taking=taking)
            )
    found += [
        Overlap(task=None, session=session, paths=(), since=one.started_at or since, until=one.ended_at, foreign=one)
        for session, one in neighbours.foreign(task, since, until)
    ]
    return tuple(found)


def overlaps_document(overlaps: Sequence[Overlap], now: datetime) -> list[dict[str, object]]:
    """Return what other tasks and sessions did while a task ran, as JSON."""
    return [
        {
            "task": each.task,
            "session": each.session,
            "paths": list(each.paths[:_MOST_PATHS]),
            "paths_in_all": len(each.paths),
            "foreign": None if each.foreign is None else _foreign_document(each.foreign),
            "since": iso(each.since),
            "until": iso(each.until),
            "windows": [window_document(window, now) for window in each.windows[:_MOST_WINDOWS]],
            "windows_in_all": len(each.windows),
            "by_text": None if each.taking is None else masked(each.taking.taken_away[0].by),
        }
        for each in overlaps
    ]


def _foreign_document(one: ClientTask) -> dict[str, object]:
    return {"client": one.client, "id": one.seen.id, "command": masked(one.seen.command), "cwd": one.seen.cwd}
