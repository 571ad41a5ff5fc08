"""`outlive session`: record how agent sessions begin, continue and end."""

from __future__ import annotations

import os
import sys

from outlive.cli import context
from outlive.cli.formatting import ago, print_json, table
from outlive.cli.parser import Command, Given, Option, whole_number
from outlive.domain.errors import UserError
from outlive.domain.parse_time import moment_of
from outlive.domain.sessions.session import SOURCES, SessionStart
from outlive.domain.text.sanitize import one_line
from outlive.domain.timestamps import iso
from outlive.keeper.spawn import launch_adopter
from outlive.service.clock import utc_now
from outlive.service.sessions.hand_off import hand_off_document
from outlive.service.sessions.lineage import SessionStatus, end, note_edits, standings
from outlive.service.sessions.liveness import mark_of
from outlive.service.sessions.start import cross_boundary
from outlive.service.tasks.launch_context import parent_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.domain.sessions.session import Session
    from outlive.service.sessions.hand_off import HandOff
    from outlive.service.sessions.lineage import StartRequest

_VERBS = ("begin", "end", "list", "edited")


def act(given: Given) -> int:
    """Run `begin`, `end`, `list` or `edited`, as the first word says."""
    verb = given.words[0] if given.words else ""
    if verb not in _VERBS or (len(given.words) > 1) != (verb == "edited"):
        raise UserError(
            f"session takes one of {', '.join(_VERBS)}, the last with paths",
            "`outlive session --help` shows what each takes",
        )
    context.begin_trace(wanted=given.trace)
    verbs = {"begin": _begin, "end": _end, "list": _list, "edited": _edited}
    return verbs[given.words[0]](context.here(), given)


def _begin(home: Home, given: Given) -> int:
    project = context.project(context.directory(given.cwd))
    begun = SessionStart(
        id=context.own_session(given.session),
        project=project,
        source=given.source or "startup",
        client=given.client,
        continues=given.continues,
        process=None if given.pid is None else mark_of(given.pid),
        transcript=given.transcript,
        terminal=given.terminal,
        at=given.at,
        parent=parent_of(os.environ),
    )
    cross_boundary(home, begun, launch_adopter, lambda began, handed: _put(home, began, handed, given))
    return 0


def _put(home: Home, began: StartRequest, handed: HandOff | None, given: Given) -> None:
    """Print and flush the hand-off, so that no notice is marked if the reader is gone."""
    if given.json:
        print_json(
            {
                "session": _session_json(began.session),
                "continues": None if began.continues is None else began.continues.id,
                "evidence": began.evidence,
                "repeated": began.is_repeated,
                "hand_off": None if handed is None else hand_off_document(home, handed),
            }
        )
    elif handed is not None and handed.text:
        print(handed.text)
    sys.stdout.flush()


def _end(home: Home, given: Given) -> int:
    session, ended = end(
        home,
        context.own_session(given.session),
        context.project(context.directory(given.cwd)),
        given.reason,
        launch_adopter,
    )
    alive = [task for task in ended if task.state != "cancelled" and task.current.reason != "session_ended"]
    if given.json:
        print_json({"session": _session_json(session), "ended": [task.id for task in ended]})
    for task in alive:
        print(f"{task.id} is {task.state} ({task.current.reason or 'ended by itself'})", file=sys.stderr)
    return 5 if any((task.current.reason or "").endswith("_incomplete") for task in ended) else 0


def _edited(home: Home, given: Given) -> int:
    directory = context.directory(given.cwd)
    noted = note_edits(home, context.own_session(given.session), context.project(directory), directory, given.words[1:])
    if given.json:
        print_json({"edited": noted})
    return 0


def _list(home: Home, given: Given) -> int:
    found = standings(home, None if given.all else context.project(context.directory(given.cwd)), given.limit or 20)
    if given.json:
        print_json({"sessions": [_standing_json(each) for each in found]})
        return 0
    now = utc_now()
    rows = [
        (
            each.session.lineage,
            _alive(each),
            ago(each.session.begun_at or each.session.created_at, now),
            str(each.running),
            str(each.owed),
            each.session.client or "-",
            one_line(each.session.id, 60),
        )
        for each in found
    ]
    if not rows:
        print("no sessions; `outlive session begin` records one")
        return 0
    heads = ("LINEAGE", "ALIVE", "SINCE", "RUNNING", "OWED", "CLIENT", "SESSION")
    print("\n".join(table(heads, rows, may_go=("CLIENT", "SINCE", "LINEAGE"))))
    return 0


def _alive(standing: SessionStatus) -> str:
    if standing.session.ended_at is not None:
        return "ended"
    return "unknown" if standing.lives is None else "yes" if standing.lives else "gone"


def _standing_json(standing: SessionStatus) -> dict[str, object]:
    return {
        **_session_json(standing.session),
        "alive": standing.lives,
        "running": standing.running,
        "owed": standing.owed,
    }


def _session_json(session: Session) -> dict[str, object]:
    return {
        "id": session.id,
        "lineage": session.lineage,
        "project": session.project,
        "client": session.client,
        "source": session.source,
        "boundary": session.boundary,
        "begun_at": iso(session.begun_at),
        "ended_at": iso(session.ended_at),
        "end_reason": session.end_reason,
    }


COMMAND = Command(
    name="session",
    summary="record agent sessions: begin (prints the hand-off), end, list, edited",
    usage="outlive session begin|end|list|edited [options] [PATH...]",
    takes=_VERBS,
    details=(
        "`begin` records that a session starts or reaches a boundary. It finds the session that this one\n"
        "continues, from what the client says, and prints the hand-off if there is anything to say. `end`\n"
        "ends the session's foreground tasks. Background tasks go on.\n\n"
        "A session is also over when its process (--pid) is gone. `edited` records files that the session\n"
        "itself changed. A task that changes one of them names it in its notice."
    ),
    options=(
        Option(name="--session", metavar="ID", help="the client's id of the session (default: this session)"),
        Option(name="--client", metavar="NAME", help="begin: the client, such as claude or codex"),
        Option(
            name="--cwd",
            metavar="DIR",
            takes="directory",
            help="the directory of the session (default: the current one)",
        ),
        Option(name="--source", metavar="HOW", help="begin: the kind of boundary", choices=SOURCES),
        Option(
            name="--continues", metavar="ID", help="begin: the session that this one continues, if the client says so"
        ),
        Option(
            name="--pid",
            metavar="PID",
            help="begin: the client's process, which lives as long as it",
            parse=whole_number,
        ),
        Option(name="--transcript", metavar="PATH", help="begin: where the client keeps the conversation"),
        Option(name="--terminal", metavar="NAME", help="begin: the terminal that it runs in"),
        Option(name="--at", metavar="TIME", help="begin: when, if the client says so", parse=moment_of),
        Option(name="--reason", metavar="TEXT", help="end: why it ends"),
        Option(name="--all", help="list: the sessions of every project"),
        Option(name="--limit", metavar="N", help="list: at most so many (default 20)", parse=whole_number),
        Option(name="--trace", help="write every decision to a file (see `outlive help`)"),
    ),
    examples=(
        (
            "outlive session begin --session s-2 --source resume --continues s-1",
            "s-2 gets the notices that s-1 is owed",
        ),
        ("outlive session end --session s-2", "ends the foreground tasks of s-2; its other tasks go on"),
        ("outlive session edited --session s-2 src/a.py", "a task that also changes this file names it"),
    ),
    act=act,
)
