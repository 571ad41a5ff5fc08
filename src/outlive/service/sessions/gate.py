"""The gate: the decision whether a session may stop now.

A session may stop when three conditions are true. Every notice has been presented, no task runs that the session waits
for (`sessions/awaited_tasks.py`), and the client sees no child session at work. The session does not wait for lost
tasks and lost child sessions. `gate` checks once and returns. `wait_at_gate` blocks its caller until the session may
stop or only has notices to read, and starts no process.
"""

from __future__ import annotations

import time

from outlive.bundle.lease import is_held
from outlive.bundle.trace import trace
from outlive.domain.notices.hand_off_text import held_line, unsure_line
from outlive.domain.notices.notice import may_be_claimed
from outlive.domain.text.sanitize import one_line
from outlive.domain.text.units import show_duration
from outlive.domain.ticks import seconds_since
from outlive.domain.timestamps import timedelta
from outlive.domain.value import Value
from outlive.ledger.notices import Notices
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.reader_gone import has_departed, wait_for_departure
from outlive.service.clock import tick, utc_now
from outlive.service.effects.effects import window_document
from outlive.service.effects.open_windows import MOST_COMPARED, OpenInProject, OpenWindows
from outlive.service.maintenance.reconcile import is_in_sight, may_settle, reconcile
from outlive.service.notices.compose import notice_documents
from outlive.service.notices.inbox import MOST_AT_ONCE, confirm, count_more, owed_to, running_for, tellings_for
from outlive.service.sessions.ask_client import request_look
from outlive.service.sessions.awaited_tasks import awaited, servers_among
from outlive.service.sessions.note_client_tasks import child_sessions_of, foreign_document
from outlive.service.tasks.wait import wait_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from outlive.bundle.home import Home
    from outlive.domain.notices.notice import Telling
    from outlive.domain.sessions.client_task import ClientTask
    from outlive.domain.sessions.session import Session
    from outlive.domain.tasks.task import Task
    from outlive.service.maintenance.reconcile import Adopter
    from outlive.service.notices.find_recipients import OwedBy

CEILING_S = 15 * 60.0
_LOOK_AGAIN = timedelta(seconds=5)
_CHILDREN_WORDS = (
    ("running", "child sessions at work in the client"),
    ("unknown", "child sessions that the client does not see now"),
    ("lost", "lost child sessions, which will return no result"),
)


class Answer(Value):
    """The gate's decision: whether a session may stop, and why it may not."""

    may_stop: bool
    reason: str
    session: Session | None
    running: tuple[Task, ...] = ()
    unknown: tuple[Task, ...] = ()
    """Those tasks in `running` whose processes this process cannot see.

    It is unknown whether these tasks still run.
    """
    lost: tuple[Task, ...] = ()
    untold: tuple[Telling, ...] = ()
    """The first notices that the session has not read. Notices that can wait for its next turn are left out."""
    untold_more: int = 0
    """The number of further notices that the session has not read."""
    windows: OpenInProject = OpenInProject()
    """The files of the project that tasks have changed and not restored."""
    servers: tuple[tuple[str, int], ...] = ()
    """Tasks that listen on a port and print nothing, each with its port. The gate does not wait for them."""
    children: tuple[ClientTask, ...] = ()
    """The child sessions that the client reported and that have not ended. The gate does not wait for lost sessions."""

    @property
    def awaited_children(self) -> tuple[ClientTask, ...]:
        """The child sessions for which the gate waits."""
        return tuple(each for each in self.children if each.state != "lost")


def gate(home: Home, session: str, project: str, adopter: Adopter | None, ceiling: float = CEILING_S) -> Answer:
    """Return whether a session may stop now, and why.

    A session that has waited for `ceiling` seconds for the same tasks and notices may stop. The session acknowledges
    the notices that were presented to it before.
    """
    answer = _check(home, session, project, adopter, ceiling)
    confirm(home, session, project)
    return answer


def _check(home: Home, session: str, project: str, adopter: Adopter | None, ceiling: float) -> Answer:
    """Return the gate's answer for this moment."""
    reconcile(home, utc_now(), None, adopter)
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        owed = owed_to(ledger, session, project)
        windows = OpenWindows(home, ledger, most=MOST_COMPARED).in_project(project)
        waited = [] if owed is None else _waited_for(ledger, owed)
        servers = servers_among(home, waited)
        waited = [task for task in waited if task.id not in servers]
        unknown = [task for task in waited if _is_out_of_sight(task)]
        tellings = [] if owed is None else tellings_for(ledger, owed, "wake")
        lost = [] if owed is None else _lost_for(ledger, owed)
        more = 0 if owed is None else count_more(ledger, owed, tellings, "wake")
        untold = [
            each
            for each in tellings
            if may_be_claimed(each.notice, at_boundary=False, is_held=lambda name: is_held(home, name))
        ]
        children = () if owed is None else _children_of(home, ledger, owed)
        blockers = {task.id for task in waited} | {notice.task for each in untold for notice in each.all}
        blockers |= {f"child-session-{each.seq}" for each in children if each.state != "lost"}
        waiting = None if owed is None else _wait_on(ledger, owed.session, blockers)
    released = bool(blockers) and waiting is not None and waiting >= ceiling
    answer = Answer(
        may_stop=not blockers or released,
        reason=_reason(
            waited,
            unknown,
            lost,
            len(untold) + more,
            servers=servers,
            children=children,
            released_after=waiting if released else None,
        ),
        session=None if owed is None else owed.session,
        running=tuple(waited),
        unknown=tuple(unknown),
        lost=tuple(lost),
        untold=tuple(untold),
        untold_more=more,
        windows=windows,
        servers=tuple(servers.items()),
        children=tuple(children),
    )
    trace(home, session, "gate", may_stop=answer.may_stop, reason=answer.reason)
    return answer


def _children_of(home: Home, ledger: SqliteLedger, owed: OwedBy) -> Sequence[ClientTask]:
    """Return a session's child sessions, and ask the client to look for them.

    The client is asked only if the gate waits for one of the child sessions.
    """
    found = child_sessions_of(ledger, owed.origins)
    for name in {each.session for each in found if each.state != "lost" and not each.is_abandoned} - {None}:
        request_look(home, str(name))
    return found


def _lost_for(ledger: SqliteLedger, owed: OwedBy) -> list[Task]:
    """Return the first lost tasks whose notices a session has not acknowledged."""
    notices = Notices(ledger).owed(owed.origins, owed.tasks, kind="lost", limit=MOST_AT_ONCE)
    found = (ledger.task(notice.task) for notice in notices)
    return [task for task in found if task is not None and task.state == "lost"]


def _wait_on(ledger: SqliteLedger, session: Session, blockers: set[str]) -> float | None:
    """Record what a session waits for, and return for how many seconds it has waited.

    Returns None if a new wait begins now. This is so if a task or notice was not waited for before, or if the machine
    was rebooted, because monotonic times of two boots cannot be compared.
    """
    now = tick()
    began, known = _read_gated(Sessions(ledger).gated(session.seq))
    waiting = seconds_since(began, now) if blockers <= known else None
    words = (began if waiting is not None and began is not None else now, *sorted(blockers))
    Sessions(ledger).set_gated(session.seq, " ".join(words) if blockers else None)
    return waiting


def wait_at_gate(  # noqa: PLR0917 - the function has the parameters of `gate` and also `departures`
    home: Home,
    session: str,
    project: str,
    adopter: Adopter | None,
    ceiling: float = CEILING_S,
    departures: int | None = None,
) -> Answer:
    """Block until a session may stop or has notices to read, or the time is over.

    The time is over after `ceiling` seconds. Tasks that this process cannot see are checked every few seconds. The wait
    also ends when the descriptor `departures` becomes readable, because the caller's reader has gone away.
    """
    until = time.monotonic() + ceiling
    # Only the first check acknowledges notices. Another process may present notices during the wait, and this call does
    # not show that the session has got them.
    answer = gate(home, session, project, adopter, max(ceiling, 0.0))
    # If no task and no child session is left to wait for, only unread notices are left. The session must read these
    # notices, so a longer wait does not help.
    while not answer.may_stop and (answer.running or answer.awaited_children) and not has_departed(departures):
        patience = timedelta(seconds=max(until - time.monotonic(), 0.0))
        # The kernel does not wake this process for a task in another PID namespace or on another machine, nor for a
        # child session in a client's own store. So check these tasks and child sessions at intervals.
        seen = [task.id for task in answer.running if task not in answer.unknown]
        if answer.unknown or answer.awaited_children:
            patience = min(patience, _LOOK_AGAIN)
        if seen:
            wait_for(home, seen, any_one=True, timeout=patience, adopter=adopter, departures=departures)
        else:
            wait_for_departure(departures, patience.total_seconds())
        is_over = time.monotonic() >= until
        answer = _check(home, session, project, adopter, 0.0 if is_over else ceiling)
    return answer


def gate_document(home: Home, answer: Answer) -> dict[str, object]:
    """Return the gate's decision as JSON."""
    from outlive.service.tasks.task_document import task_document  # noqa: PLC0415 - imported here, because only a decision as JSON needs it

    now = utc_now()
    return {
        "may_stop": answer.may_stop,
        "reason": answer.reason,
        "running": [task_document(home, task, now) for task in answer.running],
        "unknown": [task.id for task in answer.unknown],
        "lost": [task_document(home, task, now) for task in answer.lost],
        "untold": notice_documents(home, answer.untold, answer.session),
        "untold_more": answer.untold_more,
        "children": [foreign_document(each) for each in answer.children],
        "servers": [{"task": task, "port": port} for task, port in answer.servers],
        "open_windows": [{"task": task, **window_document(window, now)} for task, window in answer.windows.windows],
        "open_windows_more": answer.windows.more,
        "open_windows_unknown": list(answer.windows.unsure),
    }


def window_lines(answer: Answer, tree: str) -> list[str]:
    """Return lines about files that tasks have changed and not restored in a project.

    Files that may be changed are included.
    """
    now, found = utc_now(), answer.windows
    lines = [held_line(task, window, now, tree) for task, window in found.windows]
    lines += [unsure_line(task) for task in found.unsure]
    more = f"and {found.more} more ended tasks left files changed here, and these files were not compared"
    return [*lines, more] if found.more else lines


def _read_gated(text: str | None) -> tuple[str | None, set[str]]:
    """Return when a session began to wait, and for which tasks and notices.

    `text` is what `_wait_on` has stored about the wait.
    """
    words = [] if text is None else text.split(" ")
    return " ".join(words[:2]) or None, set(words[2:])


def _waited_for(ledger: SqliteLedger, owed: OwedBy) -> list[Task]:
    return awaited(running_for(ledger, owed))


def _is_out_of_sight(task: Task) -> bool:
    """Return whether this process cannot check if the processes of a task still run."""
    return not may_settle(task) or (task.current.condition == "orphaned" and not is_in_sight(task))


def _child_name(one: ClientTask) -> str:
    return f"{one_line(one.seen.id, 40)} ({one_line(one.seen.command, 40)})"


def _reason(
    waited: Sequence[Task],
    unknown: Sequence[Task],
    lost: Sequence[Task],
    untold: int,
    *,
    servers: Mapping[str, int],
    children: Sequence[ClientTask],
    released_after: float | None,
) -> str:
    words = []
    if waited:
        names = ", ".join(f"{task.id} ({one_line(task.launch.command, 40)})" for task in waited[:5])
        more = f" and {len(waited) - 5} more" if len(waited) > 5 else ""
        words.append(f"{len(waited)} running: {names}{more}")
    if unknown:
        words.append(f"in another PID namespace, perhaps no longer running: {', '.join(task.id for task in unknown)}")
    if lost:
        names = ", ".join(task.id for task in lost[:5])
        words.append(f"lost, so do not wait for their endings: {names}")
    for state, said in _CHILDREN_WORDS:
        if found := [_child_name(each) for each in children if each.state == state]:
            words.append(f"{said}: {', '.join(found[:5])}" + (f" and {len(found) - 5} more" if found[5:] else ""))
    if untold:
        words.append(f"notices not reported yet: {untold} (`outlive inbox` prints them)")
    if servers:
        named = ", ".join(f"{task} (port {port})" for task, port in list(servers.items())[:5])
        words.append(f"not waited for, because they look like servers: {named}")
    if released_after is not None:
        span = show_duration(timedelta(seconds=released_after))
        words.append(f"the session has waited for {span}, which is the limit: stop without waiting longer")
    return "; ".join(words) or "nothing is waited for"
