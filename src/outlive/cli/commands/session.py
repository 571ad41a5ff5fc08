"""`outlive session`: record how agent sessions begin, continue and end."""

from __future__ import annotations

import os
import sys

from outlive.cli import context
from outlive.cli.formatting import ago, print_json, table
from outlive.cli.parser import TRACE, Command, Given, option, whole_number
from outlive.domain.errors import UserError
from outlive.domain.parse_time import moment_of
from outlive.domain.sessions.session import SOURCES, SessionStart
from outlive.domain.text.nearest import did_you_mean
from outlive.domain.text.sanitize import one_line
from outlive.domain.timestamps import iso
from outlive.keeper.spawn import launch_adopter
from outlive.service.clock import utc_now
from outlive.service.notices.inbox import confirm_at_end
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
    """Run `begin`, `end`, `list` or `edited`, which is the first word after `session`."""
    verb = given.words[0] if given.words else ""
    if verb not in _VERBS:
        otherwise = "`outlive session --help` explains these words"
        raise UserError(
            f"session takes one of {', '.join(_VERBS)}; only edited takes paths", did_you_mean(verb, _VERBS, otherwise)
        )
    if verb == "edited" and len(given.words) == 1:
        raise UserError("session edited needs a path", "outlive session edited PATH...")
    if verb != "edited" and len(given.words) > 1:
        raise UserError(f"session {verb} takes no words", f"`outlive session {verb}` takes only options")
    context.begin_trace(wanted=given.trace)
    verbs = {"begin": _begin, "end": _end, "list": _list, "edited": _edited}
    return verbs[given.words[0]](context.here(), given)


def _begin(home: Home, given: Given) -> int:
    directory = context.directory(given.cwd)
    # These are notes and not errors, because a client's session must begin in any case.
    if not os.path.isdir(directory):
        print(f"note: there is no directory {one_line(directory, 200)}, so check --cwd", file=sys.stderr)
    context.note_unknown_session(home, given.continues, directory)
    project = context.project(directory)
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
    """Print the hand-off, and flush the output.

    If the program that reads the output has exited, flushing raises an error. Then no notice counts as presented.
    """
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
    name, project = context.own_session(given.session), context.project(context.directory(given.cwd))
    confirm_at_end(home, name, project)
    session, ended = end(home, name, project, given.reason, launch_adopter)
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
    summary="record that an agent session begins, ends or edits files; list sessions",
    usage="outlive session begin|end|list|edited [options] [PATH...]",
    takes=_VERBS,
    details=(
        "`begin` records that a session begins, or crosses a boundary such as a compaction. `begin` finds out from\n"
        "the given options which session this session continues. It prints the hand-off: what the session should know\n"
        "about background tasks. If there is nothing to report, it prints nothing. `end` ends the session's\n"
        "foreground tasks; its background tasks continue. If the session's process (--pid) is gone, the session is\n"
        "over, even if its end was not reported. `edited` records which files the session changed itself. If a\n"
        "task changed the same files, the report of its ending names them.\n\n"
        "`list` prints one line for each session. LINEAGE is a name that a session shares with all sessions that\n"
        "continue it. ALIVE says whether the process of the client still runs: `yes`, `gone`, `unknown` if the client\n"
        "named no process, or `ended` if the session reported its end. OWED counts the notices that the session has\n"
        "not received yet."
    ),
    options=(
        option("--session ID", "name the session, by its client's name for it (default: the current session)"),
        option("--client NAME", "begin: name the client, such as claude or codex"),
        option("--cwd DIR", "name the session's working directory (default: the current directory)", takes="directory"),
        option("--source HOW", "begin: name the kind of boundary", choices=SOURCES),
        option("--continues ID", "begin: name the session that this session continues"),
        option(
            "--pid PID", "begin: name the client's process; the session is over when this process is gone", whole_number
        ),
        option("--transcript PATH", "begin: name the file in which the client keeps the conversation"),
        option("--terminal NAME", "begin: name the terminal in which the session runs"),
        option("--at TIME", "begin: give the time at which the session began", moment_of),
        option("--reason TEXT", "end: give the reason for the end"),
        option("--all", "list: include the sessions of every project"),
        option("--limit N", "list: print at most N sessions (default 20)", whole_number),
        TRACE,
    ),
    examples=(
        (
            "outlive session begin --session s-2 --source resume --continues s-1",
            "record that s-2 continues s-1, and print the hand-off",
        ),
        ("outlive session end --session s-2", "end the foreground tasks of s-2; its background tasks continue"),
        ("outlive session edited --session s-2 src/a.py", "record that s-2 itself changed this file"),
    ),
)
