"""The hand-off: a summary of running, ended and lost tasks for a session.

A session gets the hand-off when it begins, and after each compaction of its history.
"""

from __future__ import annotations

from outlive.domain.notices.hand_off_text import HandOffText, Line, named_in, running_beside, write_digest
from outlive.domain.notices.notice import TOLD_LATELY
from outlive.domain.value import Value
from outlive.ledger.notices import Notices
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.effects.open_windows import MOST_COMPARED, OpenWindows
from outlive.service.notices.find_recipients import Recipients
from outlive.service.notices.inbox import MOST_AT_ONCE
from outlive.service.notices.tell_unheard import peek_at_earlier
from outlive.service.sessions.note_client_tasks import foreign_document, foreign_of, foreign_of_others

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.bundle.home import Home
    from outlive.domain.notices.notice import Telling
    from outlive.service.effects.open_windows import OpenInProject
    from outlive.service.notices.find_recipients import OwedBy
    from outlive.service.notices.tell_unheard import UnheardOfProject

# The number of ended tasks whose files are compared with the present state. It is small because the client waits for
# the hand-off.
_MOST_COMPARED = 8
# A hand-off names at most this many tasks, because its text has a limited size.
_MOST_RUNNING, _MOST_BESIDE = 50, 50
_MOST_TOLD = 8
_ENDINGS = ("ended", "lost", "group_ended")


class HandOff(Value):
    """A hand-off: its text, the notices in it, and the tasks that it names."""

    digest: HandOffText
    text: str
    told: tuple[Telling, ...]
    shown: tuple[str, ...]
    """The running tasks of other sessions of the project that the text names."""


def hand_off(
    home: Home, owed: OwedBy, tellings: Sequence[Telling], earlier: UnheardOfProject, *, after_summary: bool = False
) -> HandOff:
    """Return the hand-off of a session, from its own and earlier sessions' notices.

    When a client summarises the history of a session, earlier notices may be missing in the summary. So with
    `after_summary`, the hand-off names the tasks that ended in the last hour again.
    """
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        digest = _digest(home, ledger, owed, tellings, earlier)
        if after_summary:
            digest = digest.but(told=_told_lately(ledger, owed, digest))
        beside = [task for task in running_beside(digest) if _runs_for_another_session(ledger, task, owed)]
    if digest.is_empty:
        return HandOff(digest=digest, text="", told=(), shown=())
    from outlive.service.notices.compose import new_mark  # noqa: PLC0415 - imported here, because an empty hand-off does not need it

    # Close the ledger first, because comparing the tasks' files with the disk may take long and may start git.
    digest = _compared(home, digest)
    named = named_in(digest)
    # The hand-off reports only the end of a task's newest attempt. So a notice of an older attempt is not presented.
    told = {(line.task.id, line.task.current.number) for line in (*digest.ended, *digest.lost) if line.task.id in named}
    return HandOff(
        digest=digest,
        text=write_digest(digest, new_mark(), utc_now()),
        told=tuple(
            each
            for each in tellings
            if all(one.kind in _ENDINGS and (one.task, one.attempt) in told for one in each.all)
        ),
        shown=(*(line.task.id for line in digest.running if line.earlier and line.task.id in named), *beside),
    )


def hand_off_again(home: Home, owed: OwedBy, tellings: Sequence[Telling]) -> HandOff:
    """Return the hand-off for a session that asks for it. The notices stay unread.

    The hand-off may name tasks of other sessions. These tasks are recorded, so that this session is notified when they
    end.
    """
    handed = hand_off(home, owed, tellings, peek_at_earlier(home, owed))
    if handed.shown:
        with SqliteLedger(home.ledger, utc_now()) as ledger:
            Notices(ledger).note_shown(handed.shown, owed.session.seq)
    return handed


def hand_off_document(home: Home, handed: HandOff) -> dict[str, object]:
    """Return a hand-off as JSON."""
    from outlive.service.effects.effects import window_document  # noqa: PLC0415 - imported here, because only a hand-off as JSON needs it
    from outlive.service.effects.find_drift import drift_document  # noqa: PLC0415
    from outlive.service.effects.overlaps import overlaps_document  # noqa: PLC0415
    from outlive.service.tasks.task_document import task_document  # noqa: PLC0415

    now = utc_now()
    digest = handed.digest
    earlier = {
        is_lost: [line for line in digest.earlier if (line.task.state == "lost") == is_lost]
        for is_lost in (True, False)
    }
    parts = {
        "running": digest.running,
        "ended": (*digest.ended, *earlier[False]),
        "lost": (*digest.lost, *earlier[True]),
    }
    return {
        **{
            name: [
                {
                    "earlier_session": line.earlier,
                    **task_document(home, line.task, now),
                    "drift": drift_document(line.drift),
                    "overlap": overlaps_document(line.overlaps, now),
                }
                for line in lines
            ]
            for name, lines in parts.items()
        },
        "earlier_more": digest.earlier_more,
        "told_lately": [line.task.id for line in digest.told],
        "elsewhere": digest.elsewhere,
        "foreign": [foreign_document(one) for one in digest.foreign],
        "foreign_elsewhere": [foreign_document(one) for one in digest.foreign_elsewhere],
        "open_windows": [{"task": task, **window_document(window, now)} for task, window in digest.windows],
        "open_windows_more": digest.windows_more,
        "open_windows_unknown": list(digest.windows_unsure),
        "text": handed.text,
    }


def nothing_handed() -> dict[str, object]:
    """Return the JSON of a hand-off with nothing to report: every field is empty."""
    parts = ("running", "ended", "lost", "foreign", "foreign_elsewhere", "open_windows", "open_windows_unknown")
    counts = ("earlier_more", "elsewhere", "open_windows_more")
    return {**{name: [] for name in parts}, **dict.fromkeys(counts, 0), "told_lately": [], "text": ""}


def _digest(
    home: Home, ledger: SqliteLedger, owed: OwedBy, tellings: Sequence[Telling], earlier: UnheardOfProject
) -> HandOffText:
    ids = dict.fromkeys(notice.task for each in tellings for notice in each.all)
    ended = [Line(task=task) for one in ids if (task := ledger.task(one)) and task.current.settled_at is not None]
    left = [Line(task=task, earlier=True) for task in earlier.tasks if task.id not in ids]
    rule = Recipients(ledger)
    running: list[tuple[str, int | None]] = []
    elsewhere: list[tuple[str, int | None]] = []
    for one, origin in ledger.running_in(owed.session.project, owed.origins):
        is_theirs = origin not in owed.origins and (origin is None or not rule.has_nobody(origin, owed.session))
        (elsewhere if is_theirs else running).append((one, origin))
    origins = dict(running)
    lost = [line for line in ended if line.task.state == "lost"]
    counts = Notices(ledger).count(owed.origins, owed.tasks, "boundary") if len(tellings) >= MOST_AT_ONCE else {}
    others = _lines(ledger, [one for one, _ in elsewhere[-_MOST_BESIDE:]])
    held = _windows(home, ledger, (*ended, *left), owed.session.project)
    return HandOffText(
        running=tuple(
            _with_progress(home, line).but(earlier=origins[line.task.id] not in owed.origins)
            for line in _lines(ledger, [one for one, _ in running[:_MOST_RUNNING]])
        ),
        more_running=max(0, len(running) - _MOST_RUNNING),
        ended=tuple(line for line in ended if line.task.state != "lost"),
        more_ended=max(0, counts.get("ended", 0) - len(ended) + len(lost)),
        lost=tuple(lost),
        more_lost=max(0, counts.get("lost", 0) - len(lost)),
        elsewhere=len(elsewhere),
        beside=tuple(line for line in others if line.taking is not None or line.task.launch.touches),
        foreign_elsewhere=tuple(foreign_of_others(ledger, owed.session.project, owed.origins)),
        foreign=tuple(foreign_of(ledger, owed)),
        tree=owed.session.project,
        earlier=tuple(left),
        earlier_more=earlier.more,
        earlier_more_failed=earlier.more_failed,
        windows=held.windows,
        windows_more=held.more,
        windows_unsure=held.unsure,
    )


def _with_progress(home: Home, line: Line) -> Line:
    """Return the line about a running task, with the task's last output or progress."""
    from outlive.service.tasks.read import last_line  # noqa: PLC0415 - imported here, because it is needed only while tasks run

    line = line.but(last_line=last_line(home, line.task))
    if line.task.launch.agent is None:
        return line
    from outlive.service.agents.agent_view import known_of  # noqa: PLC0415 - imported here, because only agent tasks need it

    return line.but(agent=known_of(home, line.task))


def _told_lately(ledger: SqliteLedger, owed: OwedBy, digest: HandOffText) -> tuple[Line, ...]:
    """Return the tasks whose end was presented to the session in the last hour.

    Tasks that the hand-off `digest` names are left out.
    """
    anew = {line.task.id for line in (*digest.ended, *digest.lost, *digest.running)}
    kin = Sessions(ledger).lineage(owed.session.lineage).sessions
    told = Notices(ledger).told_since(owed.origins, kin, utc_now() - TOLD_LATELY, _MOST_TOLD)
    return tuple(_lines(ledger, [one for one in told if one not in anew]))


def _lines(ledger: SqliteLedger, tasks: Sequence[str]) -> list[Line]:
    if not tasks:
        return []
    from outlive.service.effects.effects import taking_away  # noqa: PLC0415 - imported here, because it is needed only while tasks run

    found = [ledger.task(one) for one in tasks]
    return [Line(task=task, taking=taking_away(task)) for task in found if task is not None]


def _runs_for_another_session(ledger: SqliteLedger, task: str, owed: OwedBy) -> bool:
    """Return whether a task runs and was launched by another session of this project."""
    found, origin = ledger.task(task), Notices(ledger).origin_of(task)
    if found is None or found.current.settled_at is not None or origin is None or origin.session in owed.origins:
        return False
    return Sessions(ledger).get(origin.session).project == owed.session.project


def _windows(home: Home, ledger: SqliteLedger, ended: Sequence[Line], project: str) -> OpenInProject:
    """Return the files of a project that tasks have changed and not restored.

    Files that ended tasks left changed are included.
    """
    held = OpenWindows(home, ledger, most=MOST_COMPARED)
    held.ask_also(line.task for line in ended)
    return held.in_project(project)


def _compared(home: Home, digest: HandOffText) -> HandOffText:
    """Return the hand-off with details about the first ended tasks.

    The details are the effects of a task, what other tasks did while it ran, and the changes since it ended.
    """
    if not digest.ended and not digest.earlier:
        return digest
    from outlive.service.effects.effects import effects_of  # noqa: PLC0415 - imported here, because only a hand-off with ended tasks needs it
    from outlive.service.effects.find_drift import World  # noqa: PLC0415
    from outlive.service.effects.overlaps import overlaps_of  # noqa: PLC0415

    world, left = World(), _MOST_COMPARED
    compared = {}
    for name in ("ended", "earlier"):
        lines = list(getattr(digest, name))
        for number, line in enumerate(lines[:left]):
            world.wait_for(home, line.task, line.task.current.number)
            effects = effects_of(home, line.task)
            drift = world.drift_of(home, line.task, line.task.current.number, effects)
            overlaps = overlaps_of(world.neighbours(home), line.task, line.task.current.number, effects)
            lines[number] = line.but(drift=drift, effects=effects, overlaps=overlaps)
        left = max(0, left - len(lines))
        compared[name] = tuple(lines)
    return digest.but(**compared)
