"""Notices as JSON and as text for a model, with the present state of their tasks."""

from __future__ import annotations

import os

from outlive.domain.ids import letters
from outlive.domain.notices.hand_off_text import foreign_line
from outlive.domain.notices.notice_text import TAIL_BYTES, RenderedNotice, frame, tell
from outlive.ledger.notices import Notices
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.effects.effects import effects_of, open_now
from outlive.service.effects.find_drift import World, drift_document
from outlive.service.effects.overlaps import overlaps_document, overlaps_of
from outlive.service.tasks.read import files_of, output_view, tail_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.bundle.home import Home
    from outlive.domain.notices.notice import Telling
    from outlive.domain.sessions.client_task import ClientTask
    from outlive.domain.sessions.session import Session
    from outlive.domain.tasks.task import Task


_LAST_WORDS = 400


def new_mark() -> str:
    """Return a random string that marks the first and last line of a text for a model.

    The author of a task's output cannot guess the string. So the output cannot imitate the end of the text.
    """
    return letters(os.urandom(12), 12)


def gather(home: Home, tellings: Sequence[Telling], told_to: Session | None) -> list[RenderedNotice]:
    """Return the tasks, effects and changes that the text of each notice needs.

    Notices of deleted tasks are left out.
    """
    found, world = [], World()
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        inbox, boundaries = Notices(ledger), {}
        counts: dict[int, tuple[int, int]] = {}
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
            if origin is not None and origin.session not in counts:
                counts[origin.session] = inbox.running_of_session(origin.session)
            counted = (0, 0) if origin is None else counts[origin.session]
            world.wait_for(home, task, notice.attempt)
            effects = effects_of(home, task, notice.attempt)
            # `effects.windows` does not contain a changed HEAD. Only `open_now` finds this change.
            may_hold = bool(effects.git) or any(window.is_open for window in effects.windows)
            found.append(
                RenderedNotice(
                    notice=notice.id,
                    kind=notice.kind,
                    task=task,
                    attempt=task.attempts[notice.attempt - 1],
                    output=output_view(home, task, TAIL_BYTES, attempt=notice.attempt),
                    remaining=inbox.remaining(task.id),
                    session_running=counted[0],
                    session_tasks=counted[1],
                    members=tuple(sorted(members, key=lambda member: member.launch.created_at)),
                    launched_by=task.launch.session,
                    crossed_boundary=crossed,
                    effects=effects,
                    held=open_now(home, task, notice.attempt) if may_hold else (),
                    drift=world.drift_of(home, task, notice.attempt, effects),
                    overlaps=overlaps_of(
                        world.neighbours(home), task, notice.attempt, effects, in_one_tree=notice.kind == "overlap"
                    ),
                    last_words={
                        member.id: tail_text(files_of(home, member), _LAST_WORDS)
                        for member in members
                        if member.state != "succeeded"
                    },
                )
            )
    return found


def lost_text_of(lost: Sequence[ClientTask]) -> str:
    """Return a text for a model about lost commands and child sessions of clients."""
    now = utc_now()
    heads = {
        "command": "Commands that the client ran in its own background have ended. Their exit codes are not known.",
        "session": "Child sessions are lost: the client does not see them any more. Do not wait for their results.",
    }
    lines = {kind: [foreign_line(one, now) for one in lost if one.seen.kind == kind] for kind in heads}
    return "\n".join(frame(new_mark(), head, lines[kind]) for kind, head in heads.items() if lines[kind])


def notice_documents(home: Home, tellings: Sequence[Telling], told_to: Session | None) -> list[dict[str, object]]:
    """Return notices as JSON. Notices of deleted tasks are left out."""
    told = {each.notice: each for each in gather(home, tellings, told_to)}
    return [
        notice_document(home, telling, told[telling.notice.id]) for telling in tellings if telling.notice.id in told
    ]


def notice_document(home: Home, telling: Telling, told: RenderedNotice) -> dict[str, object]:
    """Return one notice as JSON."""
    notice, now = telling.notice, utc_now()
    from outlive.service.tasks.task_document import task_document  # noqa: PLC0415 - imported here, because only notices as JSON need it

    return {
        "id": notice.id,
        "kind": notice.kind,
        "task": task_document(home, told.task, now),
        "attempt": notice.attempt,
        "remaining": told.remaining,
        "session_running": told.session_running,
        "session_tasks": told.session_tasks,
        "members": [
            {"id": member.id, "state": member.state, "exit_code": member.current.exit_code} for member in told.members
        ],
        "covers": [each.id for each in telling.covers],
        "crossed_boundary": told.crossed_boundary,
        "launched_by": told.launched_by,
        "drift": drift_document(told.drift),
        "overlap": overlaps_document(told.overlaps, now),
        "delivery": {"state": notice.state, "tries": notice.tries, "last_error": notice.last_error},
        "text": tell([told], new_mark(), now),
    }


def text_of(home: Home, tellings: Sequence[Telling], told_to: Session | None, more: int = 0) -> str:
    """Return notices as a text for a model.

    `more` is the number of further notices, which the text only mentions.
    """
    told = gather(home, tellings, told_to)
    return tell(told, new_mark(), utc_now(), more) if told else ""
