"""The entry point of every hook: reads the client's input and prints the reply.

A failure of the hook never stops the client. The exit code is still 0, and one line on stderr reports the cause.
"""

from __future__ import annotations

import gc
import os

from outlive.domain.errors import Broken, LedgerIncomplete, OutliveError, Unavailable, UserError
from outlive.domain.sessions.session_name import check_name
from outlive.domain.text.sanitize import from_json
from outlive.hooks.response import Response
from outlive.linux.syscalls import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from outlive.bundle.home import Home
    from outlive.hooks.event import Event, Put

CLIENTS = ("claude", "codex", "gemini", "opencode", "openclaw", "cursor")
GUARDS = ("advise", "rewrite", "off")
# Longer input is refused. No client sends a tool result of this size. The limit is needed, because the deadline of the
# hook cannot interrupt the JSON parser. The parser would need too long for an input that consists of brackets.
_LONGEST_PAYLOAD = 4 << 20
_LONGEST_PATH = 4096  # the kernel refuses longer paths
# A client waits for its hook, so a hook exits without a reply after _DEADLINE_S seconds. A hook waits at most
# PATIENCE_S seconds for a lock, which is shorter. A hook that has notices to deliver has the longer deadline
# _TELLING_S. The hook that watches an idle session (`wake`) has no deadline, because the client does not wait for it.
_DEADLINE_S, _TELLING_S = 0.45, 4.0
_DEADLINES_S = {"begin": 5.0, "wake": 0.0}
# A hook restores the records of a lost ledger for at most this time. The next hook continues with the other records.
_RESTORING_S = 2.0
PATIENCE_S = 0.25
# If a command contains none of these strings, there is no advice about it (see `guard/advice.py`), and it does not call
# `outlive`.
_SIGNS = ("&", "sleep", "kill", "nohup", "setsid", "disown", "outlive")


def main(words: list[str]) -> int:
    """Run `outlive hook CLIENT EVENT [--guard HOW]` and return the exit code.

    The exit code is `WAKE_CODE` if the client must start a turn for the idle session. Otherwise it is 0.
    """
    response, event = Response(), None
    try:
        event, name, guard = _listen(words, response)
        response.set_event(event, name)
        if event.kind in _DEADLINES_S:
            _set_deadline(_DEADLINES_S[event.kind], response)
        _act(event, guard, response)
    except OutliveError as error:
        response.report_failure(f"{error.message}; {error.hint}")
        if isinstance(error, (LedgerIncomplete, Broken)) and event is not None:
            _keep_from_stopping(event, response)
    except Exception as error:  # noqa: BLE001 - a failure of this hook must not stop the client
        response.report_failure(f"{type(error).__name__}: {error}")
    return response.code


def _listen(words: list[str], response: Response) -> tuple[Event, str, str]:
    client, name, *rest = words if len(words) >= 2 else ("", "")
    if client not in CLIENTS or (rest and (rest[0] != "--guard" or len(rest) != 2 or rest[1] not in GUARDS)):
        raise UserError("`outlive hook` needs a client and an event", f"write: outlive hook {'|'.join(CLIENTS)} EVENT")
    guard = rest[1] if rest else "advise"
    module: Any = __import__(f"outlive.hooks.clients.{client}", fromlist=["read"])
    if name not in module.KINDS:
        raise UserError(f"{client} has no event {name}", f"give one of: {', '.join(module.KINDS)}")
    _set_deadline(_DEADLINE_S, response)
    told = _read_payload()
    try:
        payload = _parse(told)
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        raise UserError("the payload is not a JSON object", "a client must send a JSON object on stdin")
    event: Event = module.read(name, payload, os.environ)
    check_name(event.session)
    if len(event.cwd) > _LONGEST_PATH:
        raise UserError("the cwd is too long for a path", f"give at most {_LONGEST_PATH} characters")
    return event, name, guard


def _read_payload() -> str:
    """Return the client's input from stdin.

    Raises `UserError` if the input is too long. Even then, it is read to its end, because otherwise the client would
    get a broken pipe.
    """
    parts, length = [], 0
    while part := os.read(0, 1 << 20):
        length += len(part)
        if length <= _LONGEST_PAYLOAD:
            parts.append(part)
    if length > _LONGEST_PAYLOAD:
        raise UserError("the payload is longer than 4 MB", "the event is not recorded")
    return b"".join(parts).decode("utf-8", "surrogateescape")


def _parse(text: str) -> object:
    """Return the client's input as a dictionary, parsed from JSON.

    Garbage collection is switched off for this, because it would take longer than the parsing.
    """
    gc.disable()
    try:
        return from_json(text)
    finally:
        gc.freeze()
        gc.enable()


def _set_deadline(seconds: float, response: Response) -> None:
    """Set the number of seconds after which this process exits without a reply.

    0 means that there is no deadline. A deadline protects the client: a disk that hangs or a stdin that stays open
    would block the hook, and the client waits for the hook.
    """

    def give_up(_: int, __: FrameType | None) -> None:
        try:
            response.report("the hook had no answer in time; the client continues without an answer")
        finally:
            os._exit(0)

    try:
        given = max(0.05, float(os.environ.get("OUTLIVE_HOOK_DEADLINE_S", "")))
    except ValueError:
        given = seconds
    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, given if seconds else 0.0)


def _keep_from_stopping(event: Event, response: Response) -> None:
    """Do not let the session stop while records of tasks are missing in the ledger.

    If the session stopped now, it could miss the end of tasks whose records are not restored yet.
    """
    if event.kind != "stop" or event.is_again or event.is_sub_agent:
        return
    from outlive.hooks.event import Answer

    try:
        response.put(
            Answer(
                block="The records of this session's background tasks are being restored, because their ledger was "
                "lost. Before you stop, run `outlive list`, which restores the rest."
            )
        )
    except OSError:
        pass


def _restore_within_time(event: Event, response: Response) -> None:
    """Let this hook restore missing records in the ledger, for a limited time.

    Two kinds of hooks do not restore records: the hook before a tool call, because the tool would have to wait, and the
    hooks of a sub-agent.
    """
    if event.kind == "tool" or event.is_sub_agent:
        return
    from outlive.ledger.completeness import restore_by

    def restore(ledger: str) -> None:
        import time

        from outlive.service.maintenance.rebuild import restore_incomplete, restored_sentences

        until = None
        if signal.getitimer(signal.ITIMER_REAL)[0]:  # without a deadline, no client waits for this hook
            _set_deadline(_TELLING_S, response)
            until = time.monotonic() + _RESTORING_S
        if restored := restore_incomplete(ledger, until):
            response.report("; ".join(restored_sentences(restored)))

    restore_by(restore)


def _act(event: Event, guard: str, response: Response) -> None:
    """Handle the event, and then report a full disk.

    The disk is checked even if this hook has written nothing.
    """
    from outlive.bundle.home import Home, locate
    from outlive.hooks.state.ledger_check import check_room, has_ledger

    home = Home(locate(os.environ))
    _restore_within_time(event, response)
    if event.kind == "tool":
        warning = _find_warning(home, event, guard, response)
        if warning or _may_need_advice(event):
            from outlive.hooks.guard.advice import advise

            advise(event, guard, response.put, warning)
    elif event.kind != "begin" and not has_ledger(home):
        return  # no ledger was ever created, so there is nothing to report
    else:
        _handle_session_event(event, response)
    if not response.code:
        check_room(home)


def _may_need_advice(event: Event) -> bool:
    """Return whether a command contains a word that may lead to advice.

    The module `advice` is slow to import, so it is imported only if this function returns True.
    """
    text = (event.command or "").replace("&&", "").replace(">&", "")
    return event.is_background or any(sign in text for sign in _SIGNS)


def _handle_session_event(event: Event, response: Response) -> None:
    """Handle an event that is not a tool call.

    Only the modules that this event needs are imported.
    """
    from outlive.bundle.home import open_home

    home = open_home(os.environ)
    if event.is_sub_agent:
        from outlive.hooks.state.ledger_check import check_readable

        check_readable(home, event.session, PATIENCE_S)
    if event.edits or event.foreign or event.foreign_are_all:
        _record_activity(home, event, response)
    if event.is_sub_agent:
        return
    if event.kind in ("prompt", "results", "stop"):
        from outlive.hooks.event import POKE

        if event.text.startswith(POKE):
            from outlive.hooks.wake.claude_message import hear

            hear(home, event, response.put, _deliver_pending)
        else:
            _deliver_pending(home, event, response.put)
    elif event.is_unheard:
        from outlive.hooks.state.session_files import set_word

        set_word(home, event.session, "begins", event.source)
    else:
        _handle_boundary(home, event, response)


def _handle_boundary(home: Home, event: Event, response: Response) -> None:
    """Handle an event of the kinds `begin`, `end`, `compact` and `wake`."""
    from outlive.service.tasks.launch_context import project_of

    project = project_of(event.cwd)
    if event.kind == "begin":
        from outlive.hooks.events.session_start import begin
        from outlive.ledger.connection import hurry

        hurry(PATIENCE_S)
        begin(home, event, project, response.put)
    elif event.kind == "wake":
        from outlive.hooks.wake.wake import wake

        wake(home, event, project, response.put)
    else:
        _start_detached_work(home, event, project, response)


def _start_detached_work(home: Home, event: Event, project: str, response: Response) -> None:
    """Start a process that works on after the end of a session or before a compaction.

    This hook checks the ledger first, because the new process cannot report an error to the client.
    """
    from outlive.hooks.state.ledger_check import check_writable

    try:
        check_writable(home, PATIENCE_S)
    except Unavailable as error:
        # If the ledger is locked, the lock may be short. So the new process is started anyway. It can wait for the lock
        # for longer than a client waits for its hook.
        response.report_failure(error.message)
    if event.kind == "end":
        from outlive.hooks.events.session_end import end

        end(home, event, project)
    else:
        from outlive.hooks.events.pre_compact import prepare

        prepare(home)


def _find_warning(home: Home, event: Event, guard: str, response: Response) -> str:
    """Return the warning about files that a task has changed and not restored.

    A failure is printed on stderr and not raised, because the hook can still give advice without the ledger.
    """
    try:
        if guard == "off" or (event.command is None and not event.edits and not event.reads):
            from outlive.hooks.state.ledger_check import check_readable

            check_readable(home, event.session, PATIENCE_S)
            return ""
        from outlive.hooks.guard.open_window_warning import held

        return held(home, event, PATIENCE_S)
    except Exception as error:  # noqa: BLE001 - a failure of this hook must not stop the client
        response.report_failure(str(error))
        return ""


def _record_activity(home: Home, event: Event, response: Response) -> None:
    """Record the files that the client edited, and its background tasks.

    A failure is printed on stderr and not raised.
    """
    from outlive.hooks.events.record_activity import is_worth_noting, note
    from outlive.ledger.connection import hurry
    from outlive.service.tasks.launch_context import project_of

    if is_worth_noting(home, event):
        hurry(PATIENCE_S)
        try:
            note(home, event, project_of(event.cwd), response.put)
        except OutliveError as error:
            response.report_failure(error.message)
        except Exception as error:  # noqa: BLE001 - a failure of this hook must not stop the client
            response.report_failure(f"{type(error).__name__}: {error}")


def _deliver_pending(home: Home, event: Event, put: Put) -> None:
    """Deliver the session's notices, unless there are certainly none.

    There are none if an earlier check found none and the ledger has not changed since.
    """
    from outlive.hooks.state.session_files import word
    from outlive.hooks.state.unchanged import is_quiet, stamp_of

    begins: Any = word(home, event.session, "begins") if event.kind == "prompt" else ""
    if event.summary_mark and not begins:
        from outlive.hooks.state.compaction import has_compressed

        begins = "compact" if has_compressed(home, event) else ""
    stamp = stamp_of(home)
    if not begins and is_quiet(home, event.session, stamp):
        return
    from outlive.hooks.state.pending import find_pending
    from outlive.ledger.connection import hurry
    from outlive.service.tasks.launch_context import project_of

    hurry(PATIENCE_S)
    project = project_of(event.cwd)
    seen = "unbegun" if begins else find_pending(home, event, project, stamp)
    if seen != "nothing":
        # The session may have notices, and delivering them takes longer. So extend the deadline of this hook.
        signal.setitimer(signal.ITIMER_REAL, _TELLING_S)
    if event.kind == "stop" and seen != "nothing":
        from outlive.hooks.events.stop import stop

        stop(home, event, project, put)
    elif seen == "unbegun":
        from outlive.hooks.events.session_start import begin

        begin(home, event.but(source=begins or event.source), project, put)
        if event.summary_mark:
            from outlive.hooks.state.compaction import remember_answered

            remember_answered(home, event)
    elif seen == "owed":
        from outlive.hooks.events.tool_results import deliver

        deliver(home, event, project, put)
