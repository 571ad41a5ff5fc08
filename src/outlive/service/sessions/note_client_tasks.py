"""Commands and child sessions that clients run themselves, from clients' reports.

After a client has exited, Outlive checks whether the client's commands still run. Only the client can look for its
child sessions, so Outlive learns about them from the client's reports. Outlive itself checks only whether the process
of the client has exited, because the child sessions run in that process.
"""

from __future__ import annotations

import os

from outlive.bundle.trace import trace
from outlive.domain.sessions.client_task import Looks, judge, look_again, restarted
from outlive.domain.sessions.session_name import check_name
from outlive.domain.text.sanitize import masked
from outlive.domain.ticks import seconds_since
from outlive.domain.timestamps import from_micros, iso
from outlive.ledger.client_tasks import ClientTasks
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.foreign_process import holders_of
from outlive.linux.processes import is_held_open
from outlive.service.clock import tick, utc_now
from outlive.service.notices.find_recipients import Recipients
from outlive.service.sessions.liveness import grace_s, is_gone, is_of_another_boot, is_over

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.sessions.client_task import ClientReport, ClientTask, ForeignState, Sight
    from outlive.domain.sessions.session import Session
    from outlive.service.notices.find_recipients import OwedBy


# The tasks of these clients are sessions of sub-agents. These sessions run in the client's process and end with the
# process.
_KEEP_THEIRS_INSIDE = ("opencode", "openclaw", "cursor")


def note_foreign(
    home: Home, session: str, project: str, client: str, seen: Sequence[ClientReport], *, are_all: bool
) -> set[str]:
    """Record a client's report about the commands that it runs for a session.

    With `are_all`, the report is complete. So commands of this client process that the report does not name are
    recorded as ended. If this session replaced another session in the same process, it takes over the commands of that
    session.

    A report may name a child session that the client does not find. Such a child session stays recorded until the
    client finds it again, or until it is lost and the loss has been reported. Returns the ids of the child sessions
    that were not found and are no longer recorded as running.
    """
    check_name(session)
    closed = set()
    with SqliteLedger(home.ledger, utc_now()) as ledger, ledger.write():
        origin, _ = Sessions(ledger).heard_of(session, project, utc_now())
        known, me = ClientTasks(ledger), Sessions(ledger).get(origin)
        named = {each.id for each in seen}
        inherited = {one.seen.id: one for one in _of_replaced(ledger, me)}
        mine = known.running(origin)
        gone = [one for one in mine if one.process == me.process and one.seen.id not in named and one.reason is None]
        known.close(
            [*gone, *inherited.values()] if are_all else [inherited[one] for one in named & {*inherited}],
            "ended",
            utc_now(),
        )
        for each in seen:
            if each.sight == "present" or not known.is_known(origin, each.id):
                known.note(origin, client, _with_what_is_known(each, inherited.get(each.id)), utc_now())
            if each.sight == "present":
                continue
            still = [one for one in known.running(origin) if one.seen.id == each.id]
            for state in [_looked_for(known, one, each.sight).state for one in still]:
                trace(home, session, "child session not seen", child=each.id, sight=each.sight, state=state)
            if not still:
                closed.add(each.id)
    return closed


def _looked_for(known: ClientTasks, one: ClientTask, sight: Sight) -> ClientTask:
    """Record whether the client found a child session, and return its new state."""
    before = Looks(state=_reported_state(one), absent_since=one.absent_since, unread_since=one.unread_since)
    after = look_again(before, sight, tick(), grace_s())
    # Write only if the state has changed, because each commit makes every hook read the ledger again.
    if after != before:
        known.set_looks(one, after)
    return one.but(state=after.state, absent_since=after.absent_since, unread_since=after.unread_since)


def _reported_state(one: ClientTask) -> ForeignState:
    """Return the state of a client's command, according to the reports of the client."""
    if one.seen.kind == "command":
        return "running"
    if one.reason is not None:
        return "lost"
    return "running" if one.absent_since is None and one.unread_since is None else "unknown"


def _of_replaced(ledger: SqliteLedger, me: Session) -> list[ClientTask]:
    """Return the commands of the sessions that the session `me` has replaced.

    These sessions are over, and `me` continues them in the same client process.
    """
    if me.process is None:
        return []
    kin = Sessions(ledger).lineage(me.lineage).sessions.values()
    over = [each for each in kin if each.seq != me.seq and each.process == me.process and is_over(each)]
    theirs = [one for each in over for one in ClientTasks(ledger).running(each.seq)]
    return [one for one in theirs if one.process == me.process and one.reason is None]


def _with_what_is_known(seen: ClientReport, before: ClientTask | None) -> ClientReport:
    """Return a report with facts added from an earlier report of the same command.

    A client names the output file only in its first report after the start of a command. Without this function, a
    later report would lack the name of the file.
    """
    if before is None:
        return seen
    return seen.but(
        description=seen.description or before.seen.description,
        output=seen.output or before.seen.output,
        cwd=seen.cwd or before.seen.cwd,
    )


def foreign_of(ledger: SqliteLedger, owed: OwedBy) -> list[ClientTask]:
    """Return the commands that clients run without Outlive, to report to a session.

    These are the commands of the session's own client. Commands of a client that has exited are included if they are
    reported to no living session. A lost command is returned only once, because this call records that it was
    reported. A command whose client has exited, and whose end cannot be observed any more, is returned only once too.
    """
    own = _seen_of(ledger, _own_sessions(ledger, owed))
    left = _seen_of(ledger, _left_sessions(ledger, owed))
    unseen = [one for one in left if one.state == "unknown" and _look_for(one) == "unknown"]
    tell_lost(ledger, [*(one for one in (*own, *left) if one.state == "lost"), *unseen])
    return own + left


def _own_sessions(ledger: SqliteLedger, owed: OwedBy) -> list[Session]:
    return [Sessions(ledger).get(origin) for origin in owed.origins]


def _left_sessions(ledger: SqliteLedger, owed: OwedBy) -> list[Session]:
    """Return the sessions whose commands are reported to no living session.

    Only sessions of the same project as the session in `owed` are returned.
    """
    others = [origin for origin in ClientTasks(ledger).origins() if origin not in owed.origins]
    rule = Recipients(ledger)
    return [Sessions(ledger).get(origin) for origin in others if rule.has_nobody(origin, owed.session)]


def tell_lost(ledger: SqliteLedger, ones: Sequence[ClientTask]) -> None:
    """Record that these lost commands and child sessions have been reported."""
    ClientTasks(ledger).close(ones, "lost", utc_now())


def untold_among(ledger: SqliteLedger, ones: Sequence[ClientTask]) -> list[ClientTask]:
    """Return the lost commands and child sessions of `ones` that are not reported yet.

    Another process may have reported some of them in the meantime.
    """
    return [one for one in ones if ClientTasks(ledger).is_open(one)]


def abandoned_of(ledger: SqliteLedger, owed: OwedBy) -> list[ClientTask]:
    """Return a session's commands and child sessions whose end may stay unknown.

    They are lost, or their client has exited.
    """
    sessions = [*_own_sessions(ledger, owed), *_left_sessions(ledger, owed)]
    return [one for one in _seen_of(ledger, sessions) if one.is_abandoned or one.state == "lost"]


def child_sessions_of(ledger: SqliteLedger, origins: Sequence[int]) -> list[ClientTask]:
    """Return the child sessions of given sessions, without ended child sessions.

    Lost child sessions are included until they have been reported.
    """
    with_any = set(ClientTasks(ledger).origins()).intersection(origins)
    sessions = [Sessions(ledger).get(origin) for origin in sorted(with_any)]
    found = [one.but(session=each.id) for each in sessions for one in _seen_of(ledger, [each])]
    return [one for one in found if one.seen.kind == "session"]


def _seen_of(ledger: SqliteLedger, sessions: Sequence[Session]) -> list[ClientTask]:
    """Return the clients' commands and child sessions with their present state.

    If a command is not found, the ledger gets the time of this check.
    """
    known, found = ClientTasks(ledger), []
    for session in sessions:
        for one in known.running(session.seq):
            if known.is_adopted(one):
                continue  # the command was adopted, and is reported as a task
            if not is_over(session) and one.process == session.process:
                found.append(one.but(state=_reported_state(one)))
                continue
            sight = _look_for(one)
            if one.seen.kind == "session":
                found.append(_looked_for(known, one, sight).but(is_abandoned=True))
                continue
            now = tick()
            state = judge(sight, seconds_since(one.absent_since, now), grace_s())
            since = restarted(one.absent_since, now) if sight == "absent" else None
            # Write only if the state has changed, because each commit makes every hook read the ledger again.
            if sight != "unknown" and since != one.absent_since:
                known.set_absent(one, since)
            found.append(one.but(state=state, written_at=_written_at(one), is_abandoned=True))
    return found


def foreign_of_others(ledger: SqliteLedger, project: str, origins: Sequence[int]) -> list[ClientTask]:
    """Return the commands that clients of other living sessions run in a project."""
    sessions = Sessions(ledger)
    living = [one for one in ClientTasks(ledger).origins() if one not in origins and not is_over(sessions.get(one))]
    return [one for one in foreign_now(ledger, project, living) if one.state == "running"]


def foreign_now(ledger: SqliteLedger, project: str | None, origins: Sequence[int] | None = None) -> list[ClientTask]:
    """Return the commands that clients run without Outlive, with their present state.

    The ledger is not changed.
    """
    known, sessions = ClientTasks(ledger), Sessions(ledger)
    found = []
    for session in (sessions.get(origin) for origin in (known.origins() if origins is None else origins)):
        if project is not None and session.project != project:
            continue
        is_there = not is_over(session)
        for one in known.running(session.seq):
            if not known.is_adopted(one):
                is_kept = is_there and one.process == session.process
                state = _reported_state(one)
                if not is_kept and state == "running" and _look_for(one) != "present":
                    state = "unknown"
                found.append(one.but(state=state, written_at=None if is_kept else _written_at(one)))
    return found


def _written_at(one: ClientTask) -> datetime | None:
    try:
        return None if one.seen.output is None else from_micros(os.stat(one.seen.output).st_mtime_ns // 1000)
    except OSError:
        return None


def foreign_document(one: ClientTask) -> dict[str, object]:
    """Return a client's command as JSON."""
    return {
        "client": one.client,
        "kind": one.seen.kind,
        "id": one.seen.id,
        "command": masked(one.seen.command),
        "description": None if one.seen.description is None else masked(one.seen.description),
        "cwd": one.seen.cwd,
        "output": one.seen.output,
        "written_at": iso(one.written_at),
        "pids": [] if one.seen.output is None else holders_of(one.seen.output),
        "agent": one.seen.agent,
        "parent": one.seen.parent,
        "state": one.state,
        "reason": "unobservable" if one.seen.kind == "session" and one.state == "lost" else None,
        "seen_at": iso(one.seen_at),
    }


def _look_for(one: ClientTask) -> Sight:
    """Return whether a client's command runs, as far as this process can see.

    The command runs if a process has its output file open. A command that runs inside its client's process ends with
    the client. Returns `unknown` if neither the file nor the client's process shows the state.
    """
    if one.client in _KEEP_THEIRS_INSIDE and one.process is not None:
        return "absent" if is_gone(one.process) else "unknown"
    if one.process is not None and is_of_another_boot(one.process):
        return "absent"
    if one.seen.output is None or not os.path.exists(one.seen.output):
        return "unknown"
    return "present" if is_held_open(one.seen.output) else "absent"
