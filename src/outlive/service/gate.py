"""The gate: whether a session may stop, or go on, now.

It waits for what it launched to be told of, and for nothing else: not for servers, silent tasks or
other sessions' work, and not for what is gone. It is one look; nothing goes on behind it, unless
somebody waits at the gate, and then only as long as they do.
"""

from __future__ import annotations

import os
import time

from outlive.bundle.attempt import AttemptFiles, keeper_lives, take
from outlive.bundle.lease import is_held
from outlive.bundle.trace import trace
from outlive.domain.notice import may_be_claimed
from outlive.domain.quantity import show_duration
from outlive.domain.text import one_line
from outlive.domain.tick import seconds_since
from outlive.domain.value import Value
from outlive.domain.when import timedelta
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import tick, utc_now
from outlive.service.effects import open_windows, window_document
from outlive.service.holding import may_hold
from outlive.service.inbox import owed_to, running_for, tellings_for
from outlive.service.liveness import grace_s
from outlive.service.reconcile import is_ours_to_judge, reconcile
from outlive.service.telling import notice_documents
from outlive.service.view import task_document
from outlive.service.wait import wait_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.bundle.home import Home
    from outlive.domain.effects import Window
    from outlive.domain.notice import Telling
    from outlive.domain.session import Session
    from outlive.domain.task import Task
    from outlive.service.inbox import Owed
    from outlive.service.reconcile import Adopter

CEILING_S = 15 * 60.0
_LOOK_AGAIN = timedelta(seconds=5)
# Who is only told of failures launched a server, or something else that need not end.
_WAITED_FOR = ("all", "end")


class Answer(Value):
    """What the gate says."""

    may_stop: bool
    reason: str
    session: Session | None
    running: tuple[Task, ...] = ()
    unknown: tuple[Task, ...] = ()
    """Of those running: whose processes cannot be seen from here, and have not been for a moment."""
    lost: tuple[Task, ...] = ()
    untold: tuple[Telling, ...] = ()
    windows: tuple[tuple[str, Window], ...] = ()
    """Windows that are open on this tree now."""


def gate(home: Home, session: str, project: str, adopter: Adopter | None, ceiling: float = CEILING_S) -> Answer:
    """The answer as of now."""
    reconcile(home, utc_now(), None, adopter)
    unknown = _look_for_absent(home, session, project, adopter)
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        owed = owed_to(ledger, session, project)
        windows = open_windows(home, may_hold(ledger), project)
        waited = [] if owed is None else _waited_for(ledger, owed)
        tellings = [] if owed is None else tellings_for(ledger, owed)
        lost = [
            task for each in tellings if (task := ledger.task(each.notice.task)) is not None and task.state == "lost"
        ]
        untold = [
            each
            for each in tellings
            if may_be_claimed(each.notice, at_boundary=False, is_held=lambda name: is_held(home, name))
        ]
        blockers = {task.id for task in waited} | {notice.task for each in untold for notice in each.all}
        waiting = None if owed is None else _wait_on(ledger, owed.session, blockers)
    released = bool(blockers) and waiting is not None and waiting >= ceiling
    answer = Answer(
        may_stop=not blockers or released,
        reason=_reason(waited, unknown, lost, untold, waiting if released else None),
        session=None if owed is None else owed.session,
        running=tuple(waited),
        unknown=tuple(task for task in waited if task.id in unknown),
        lost=tuple(lost),
        untold=tuple(untold),
        windows=tuple(windows),
    )
    trace(home, session, "gate", may_stop=answer.may_stop, reason=answer.reason)
    return answer


def _wait_on(ledger: SqliteLedger, session: Session, blockers: set[str]) -> float | None:
    """Note what the session waits for now; for how many seconds it has, None if it begins to.

    Something new to wait for begins a new wait: what was waited for before is no reason to leave it.
    Of another boot, the span is not known, and begins anew, too.
    """
    now = tick()
    began, known = _read_gated(Sessions(ledger).gated(session.seq))
    waiting = seconds_since(began, now) if blockers <= known else None
    words = (began if waiting is not None and began is not None else now, *sorted(blockers))
    Sessions(ledger).set_gated(session.seq, " ".join(words) if blockers else None)
    return waiting


def wait_at_gate(home: Home, session: str, project: str, adopter: Adopter | None, ceiling: float = CEILING_S) -> Answer:
    """Block until the session may stop, or its ceiling is reached; the kernel wakes us when something ends."""
    until = time.monotonic() + ceiling
    while True:
        left = until - time.monotonic()
        answer = gate(home, session, project, adopter, ceiling if left > 0 else 0.0)
        # What is untold is for the session to read; waiting longer does not help it.
        if answer.may_stop or not answer.running:
            return answer
        patience = timedelta(seconds=max(left, 0.0))
        # Only what cannot be waited for has to be looked at now and then, and only while somebody waits.
        seen = [task.id for task in answer.running if task not in answer.unknown]
        if answer.unknown:
            patience = min(patience, _LOOK_AGAIN)
        if seen:
            wait_for(home, seen, any_one=True, timeout=patience, adopter=adopter)
        else:
            time.sleep(patience.total_seconds())


def gate_document(home: Home, answer: Answer) -> dict[str, object]:
    """The answer as JSON."""
    now = utc_now()
    return {
        "may_stop": answer.may_stop,
        "reason": answer.reason,
        "running": [task_document(home, task, now) for task in answer.running],
        "unknown": [task.id for task in answer.unknown],
        "lost": [task_document(home, task, now) for task in answer.lost],
        "untold": notice_documents(home, answer.untold, answer.session),
        "open_windows": [{"task": task, **window_document(window, now)} for task, window in answer.windows],
    }


def _read_gated(text: str | None) -> tuple[str | None, set[str]]:
    """Since when (a tick: two words) a session is asked to wait, and for which tasks."""
    words = [] if text is None else text.split(" ")
    return " ".join(words[:2]) or None, set(words[2:])


def _waited_for(ledger: SqliteLedger, owed: Owed) -> list[Task]:
    return [task for task in running_for(ledger, owed) if task.launch.notify in _WAITED_FOR]


def _look_for_absent(home: Home, session: str, project: str, adopter: Adopter | None) -> set[str]:
    """Tasks that we cannot judge and that nobody seems to keep: unknown at first, lost after a second look."""
    unknown: set[str] = set()
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        owed = owed_to(ledger, session, project)
        foreign = [t for t in _waited_for(ledger, owed) if not is_ours_to_judge(t)] if owed else []
        looks = {task.id: ledger.absent_since(task.id, task.current.number) for task in foreign}
    for task in foreign:
        seen = _probe(home, task)
        since = seconds_since(looks[task.id], tick())
        if seen == "absent" and since is not None and since >= grace_s():
            reconcile(home, utc_now(), task.id, adopter, is_absent=True)
            trace(home, session, "lost", task=task.id, why=f"out of sight for {since:.0f} s, at two looks")
            continue
        if seen != "present":
            unknown.add(task.id)
        with SqliteLedger(home.ledger, utc_now()) as ledger:
            if seen == "present":
                ledger.set_absent(task.id, task.current.number, None)
            elif seen == "absent" and since is None:
                ledger.set_absent(task.id, task.current.number, tick())
        trace(home, session, "probed", task=task.id, seen=seen)
    return unknown


def _probe(home: Home, task: Task) -> str:
    """Whether somebody keeps a task whose processes are not ours to see: `present`, `absent` or `unknown`.

    Locks are seen across PID namespaces, so a free one is a fact; but only about this machine.
    """
    if task.launch.engine != "local":
        return "unknown"
    files = AttemptFiles(home.bundle(task.id), task.current.number)
    try:
        if keeper_lives(files):
            return "present"
        lock = take(files, "lock")
    except FileNotFoundError:
        return "absent"
    except OSError:
        return "unknown"
    if lock is None:
        return "present"
    os.close(lock)
    return "absent"


def _reason(
    waited: Sequence[Task],
    unknown: set[str],
    lost: Sequence[Task],
    untold: Sequence[Telling],
    released_after: float | None,
) -> str:
    words = []
    if waited:
        names = ", ".join(f"{task.id} ({one_line(task.launch.command, 40)})" for task in waited[:5])
        more = f" and {len(waited) - 5} more" if len(waited) > 5 else ""
        words.append(f"{len(waited)} running: {names}{more}")
    if unknown:
        words.append(f"out of sight, and called lost if they stay so: {', '.join(sorted(unknown))}")
    if lost:
        names = ", ".join(task.id for task in lost[:5])
        words.append(f"lost, no ending will come for: {names}")
    if untold:
        words.append(f"{len(untold)} not told yet: outlive inbox")
    if released_after is not None:
        span = show_duration(timedelta(seconds=released_after))
        words.append(f"waited for {span}, which is long enough: go on without them")
    return "; ".join(words) or "nothing is waited for"
