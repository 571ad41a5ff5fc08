"""Telling: notices made into JSON and into text for a model, with all that is known of them now."""

from __future__ import annotations

import os

from outlive.domain.ids import letters
from outlive.domain.telling import TAIL_BYTES, Told, tell
from outlive.domain.when import iso
from outlive.ledger.contract import Selection
from outlive.ledger.edits import Edits
from outlive.ledger.inbox import Inbox
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.drift import World, drift_document
from outlive.service.effects import effects_of, open_now, overlaps_of
from outlive.service.view import files_of, output_view, tail_text, task_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.bundle.home import Home
    from outlive.domain.effects import Effects
    from outlive.domain.notice import Notice, Telling
    from outlive.domain.overlap import Overlap
    from outlive.domain.session import Session
    from outlive.domain.task import Task


_LAST_WORDS = 400
_MOST_PATHS = 20
_MOST_NEIGHBOURS = 50


def new_mark() -> str:
    """A mark that nobody can have guessed."""
    return letters(os.urandom(12), 12)


def gather(home: Home, tellings: Sequence[Telling], told_to: Session | None) -> list[Told]:
    """What there is to say of each notice; one whose task is gone says nothing."""
    found, world = [], World()
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        inbox, boundaries = Inbox(ledger), {}
        for telling in tellings:
            notice = telling.notice
            task = ledger.task(notice.task)
            if task is None:
                continue
            members: tuple[Task, ...] = ()
            if notice.kind == "group_ended":
                members = tuple(m for one in sorted(inbox.members_of(task.id)) if (m := ledger.task(one)) is not None)
            origin = inbox.origin_of(task.id)
            if origin is not None and origin.session not in boundaries:
                boundaries[origin.session] = Sessions(ledger).boundary_of(origin.session)
            crossed = origin is not None and (
                (told_to is not None and told_to.seq != origin.session) or boundaries[origin.session] > origin.boundary
            )
            world.wait_for(home, task, notice.attempt)
            effects = effects_of(home, task, notice.attempt)
            # What HEAD is held away from is told as no window of the tree: only who looks now sees it.
            may_hold = bool(effects.git) or any(window.is_open for window in effects.windows)
            found.append(
                Told(
                    notice=notice.id,
                    kind=notice.kind,
                    task=task,
                    attempt=task.attempts[notice.attempt - 1],
                    output=output_view(home, task, TAIL_BYTES, attempt=notice.attempt),
                    remaining=inbox.remaining(task.id),
                    members=tuple(sorted(members, key=lambda member: member.launch.created_at)),
                    launched_by=task.launch.session,
                    crossed_boundary=crossed,
                    effects=effects,
                    held=open_now(home, task, notice.attempt) if may_hold else (),
                    drift=world.drift_of(home, task, notice.attempt, effects),
                    overlaps=_overlaps(home, ledger, task, notice, effects),
                    last_words={
                        member.id: tail_text(files_of(home, member), _LAST_WORDS)
                        for member in members
                        if member.state != "succeeded"
                    },
                )
            )
    return found


def _overlaps(home: Home, ledger: SqliteLedger, task: Task, notice: Notice, effects: Effects) -> tuple[Overlap, ...]:
    """Who was in its way: of the tasks that may have run beside it, and of the sessions' edits."""
    attempt, since = task.attempts[notice.attempt - 1], task.first_try(notice.attempt).started_at
    if since is None:
        return ()
    near = ledger.tasks(Selection(project=task.launch.project, limit=_MOST_NEIGHBOURS))
    # Whoever runs elsewhere may write here: by --touches, or in a repository inside of this one, or around it.
    newest = ledger.tasks(Selection(limit=_MOST_NEIGHBOURS))
    # One that runs for long was launched before very many others.
    neighbours = {each.id: each for each in (*near, *newest, *ledger.unsettled())}.values()
    edits = Edits(ledger).between(since, attempt.ended_at or utc_now())
    return tuple(overlaps_of(home, task, effects, neighbours, edits, in_one_tree=notice.kind == "overlap"))


def notice_documents(home: Home, tellings: Sequence[Telling], told_to: Session | None) -> list[dict[str, object]]:
    """The notices as JSON."""
    told = {each.notice: each for each in gather(home, tellings, told_to)}
    return [
        notice_document(home, telling, told[telling.notice.id]) for telling in tellings if telling.notice.id in told
    ]


def notice_document(home: Home, telling: Telling, told: Told) -> dict[str, object]:
    """One notice as JSON."""
    notice, now = telling.notice, utc_now()
    return {
        "id": notice.id,
        "kind": notice.kind,
        "task": task_document(home, told.task, now),
        "attempt": notice.attempt,
        "remaining": told.remaining,
        "members": [
            {"id": member.id, "state": member.state, "exit_code": member.current.exit_code} for member in told.members
        ],
        "covers": [each.id for each in telling.covers],
        "crossed_boundary": told.crossed_boundary,
        "launched_by": told.launched_by,
        "drift": drift_document(told.drift),
        "overlap": [
            {
                "task": each.task,
                "session": each.session,
                "paths": list(each.paths[:_MOST_PATHS]),
                "paths_in_all": len(each.paths),
                "since": iso(each.since),
                "until": iso(each.until),
            }
            for each in told.overlaps
        ],
        "delivery": {"state": notice.state, "tries": notice.tries, "last_error": notice.last_error},
        "text": tell([told], new_mark(), now),
    }


def text_of(home: Home, tellings: Sequence[Telling], told_to: Session | None) -> str:
    """The notices as one text for a model."""
    told = gather(home, tellings, told_to)
    return tell(told, new_mark(), utc_now()) if told else ""
