"""What clients run in the background by themselves: noted as they tell it, looked for when they are gone."""

from __future__ import annotations

import os

from outlive.bundle.processes import is_held_open
from outlive.domain.foreign import judge
from outlive.domain.redaction import redact
from outlive.domain.session_name import check_name
from outlive.domain.tick import seconds_since
from outlive.domain.when import iso
from outlive.ledger.foreign import ForeignTasks
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import tick, utc_now
from outlive.service.liveness import grace_s, is_gone, is_over

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.bundle.home import Home
    from outlive.domain.foreign import Foreign, Seen, Sight
    from outlive.domain.session import Session


# Their tasks are sessions of sub-agents, which live in the client's own process and end with it.
_KEEP_THEIRS_INSIDE = ("opencode", "openclaw", "cursor")


def note_foreign(home: Home, session: str, project: str, client: str, seen: Sequence[Seen], *, are_all: bool) -> None:
    """A client says what it runs itself for a session; if those are all of them, the others have ended.

    Of what it ran in another process before, it knows nothing. What it ran for a session that this one has replaced, it
    speaks of here from now on.
    """
    check_name(session)
    with SqliteLedger(home.ledger, utc_now()) as ledger, ledger.write():
        origin, _ = Sessions(ledger).heard_of(session, project, utc_now())
        known, me = ForeignTasks(ledger), Sessions(ledger).get(origin)
        named = {each.id for each in seen}
        inherited = {one.seen.id: one for one in _of_replaced(ledger, me)}
        gone = [one for one in known.running(origin) if one.process == me.process and one.seen.id not in named]
        known.close(
            [*gone, *inherited.values()] if are_all else [inherited[one] for one in named & {*inherited}], "ended"
        )
        for each in seen:
            known.note(origin, client, _with_what_is_known(each, inherited.get(each.id)), utc_now())


def _of_replaced(ledger: SqliteLedger, me: Session) -> list[Foreign]:
    """What the same process ran for sessions that are over since this one began."""
    if me.process is None:
        return []
    kin = Sessions(ledger).lineage(me.lineage).sessions.values()
    over = [each for each in kin if each.seq != me.seq and each.process == me.process and is_over(each)]
    return [one for each in over for one in ForeignTasks(ledger).running(each.seq) if one.process == me.process]


def _with_what_is_known(seen: Seen, before: Foreign | None) -> Seen:
    """A client says where the output is only when it starts one."""
    if before is None:
        return seen
    return seen.but(description=seen.description or before.seen.description, output=seen.output or before.seen.output)


def foreign_of(ledger: SqliteLedger, sessions: Sequence[Session]) -> list[Foreign]:
    """What the clients of these sessions run, or ran when they were last heard of, as far as can be seen now.

    One that is lost is told of once.
    """
    known, found = ForeignTasks(ledger), []
    for session in sessions:
        for one in known.running(session.seq):
            if not is_over(session) and one.process == session.process:
                found.append(one)
                continue
            sight = _look_for(one)
            state = judge(sight, seconds_since(one.absent_since, tick()), grace_s())
            if state == "lost":
                known.close([one], "lost")
            elif sight == "present" or one.absent_since is None:
                known.set_absent(one, tick() if sight == "absent" else None)
            found.append(one.but(state=state))
    return found


def foreign_document(one: Foreign) -> dict[str, object]:
    """One of them as JSON."""
    return {
        "client": one.client,
        "id": one.seen.id,
        "command": redact(one.seen.command),
        "description": None if one.seen.description is None else redact(one.seen.description),
        "output": one.seen.output,
        "state": one.state,
        "seen_at": iso(one.seen_at),
    }


def _look_for(one: Foreign) -> Sight:
    """Whoever runs it has its output open, and nobody else would; what runs inside of its client ends with that."""
    if one.client in _KEEP_THEIRS_INSIDE and one.process is not None:
        return "absent" if is_gone(one.process) else "unknown"
    if one.seen.output is None or not os.path.exists(one.seen.output):
        return "unknown"
    return "present" if is_held_open(one.seen.output) else "absent"
