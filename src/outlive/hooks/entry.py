"""The entry of every hook: reads what the client says, answers, and never stands in its way.

Whatever goes wrong, the exit code is 0 and the client goes on as if we were not there; one line on
stderr says what it was. Only a session that is to be woken sees another code, because that is how
its client is asked to wake it.
"""

from __future__ import annotations

import gc
import os

from outlive.bundle.kernel import signal
from outlive.domain.errors import OutliveError, Unavailable, UserError
from outlive.domain.session_name import check_name
from outlive.domain.text import from_json
from outlive.hooks.said import Said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from outlive.bundle.home import Home
    from outlive.hooks.event import Event, Put

CLIENTS = ("claude", "codex", "gemini", "opencode", "openclaw", "cursor")
GUARDS = ("advise", "rewrite", "off")
# Enough for the largest result of a tool that a client tells of. No deadline ends the reading of JSON, so that more
# would take longer than a client should wait, if it is nothing but brackets.
_LONGEST_PAYLOAD = 4 << 20
_LONGEST_PATH = 4096  # the kernel's own limit
# A client waits for us. What only waits for somebody else's lock has less (PATIENCE_S), and whoever has something to
# tell has longer; nobody waits for the one that wakes.
_DEADLINE_S, _TELLING_S = 0.45, 4.0
_DEADLINES_S = {"begin": 5.0, "wake": 0.0}
PATIENCE_S = 0.25


def main(words: list[str]) -> int:
    """`outlive hook CLIENT EVENT [--guard HOW]`: JSON in, JSON out, exit code 0."""
    said = Said()
    try:
        event, name, guard = _listen(words, said)
        said.to(event, name)
        if event.kind in _DEADLINES_S:
            _set_deadline(_DEADLINES_S[event.kind], said)
        _act(event, guard, said)
    except OutliveError as error:
        said.regret(f"{error.message}; {error.hint}")
    except Exception as error:  # noqa: BLE001 - the client must go on, whatever it was
        said.regret(f"{type(error).__name__}: {error}")
    return said.code


def _listen(words: list[str], said: Said) -> tuple[Event, str, str]:
    client, name, *rest = words if len(words) >= 2 else ("", "")
    if client not in CLIENTS or (rest and (rest[0] != "--guard" or len(rest) != 2 or rest[1] not in GUARDS)):
        raise UserError("hook takes a client and an event", f"outlive hook {'|'.join(CLIENTS)} EVENT")
    guard = rest[1] if rest else "advise"
    module: Any = __import__(f"outlive.hooks.{client}", fromlist=["read"])
    if name not in module.KINDS:
        raise UserError(f"{client} has no event {name}", f"one of: {', '.join(module.KINDS)}")
    _set_deadline(_DEADLINE_S, said)
    payload = _parse(_read_payload())
    if not isinstance(payload, dict):
        raise UserError("the payload is no JSON object", "a client gives it on stdin")
    event: Event = module.read(name, payload, os.environ)
    check_name(event.session)
    if len(event.cwd) > _LONGEST_PATH:
        raise UserError("the cwd is longer than a path can be", f"at most {_LONGEST_PATH} characters")
    return event, name, guard


def _read_payload() -> str:
    """All of it, also if it is too long: whoever writes it must not be left with a broken pipe."""
    parts, length = [], 0
    while part := os.read(0, 1 << 20):
        length += len(part)
        if length <= _LONGEST_PAYLOAD:
            parts.append(part)
    if length > _LONGEST_PAYLOAD:
        raise UserError("the payload is longer than 4 MB", "what it tells of is not noted")
    return b"".join(parts).decode("utf-8", "surrogateescape")


def _parse(text: str) -> object:
    """The payload; nobody looks for garbage in what is only just being made, which would take longer than making it."""
    gc.disable()
    try:
        return from_json(text)
    finally:
        gc.freeze()
        gc.enable()


def _set_deadline(seconds: float, said: Said) -> None:
    """A disk that hangs must not hang the client, nor a stdin that it forgot to close; 0 lifts it.

    A client has no use for an answer that comes too late; on a machine that is always busy, its owner may want
    answers rather than speed.
    """

    def give_up(_: int, __: FrameType | None) -> None:
        try:
            said.complain("no answer in time; going on without")
        finally:
            os._exit(0)

    try:
        given = max(0.05, float(os.environ.get("OUTLIVE_HOOK_DEADLINE_S", "")))
    except ValueError:
        given = seconds
    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, given if seconds else 0.0)


def _act(event: Event, guard: str, said: Said) -> None:
    """Do what the event asks for; a disk that is full is told of also if nothing had to be written just now."""
    from outlive.bundle.home import Home, locate
    from outlive.hooks.usable import check_room, has_ledger

    home = Home(locate(os.environ))
    if event.kind == "tool":
        from outlive.hooks.advise import advise

        advise(event, guard, said.put, _held(home, event, guard, said))
    elif event.kind != "begin" and not has_ledger(home):
        return  # nobody has ever launched anything
    else:
        _attend(event, said)
    if not said.code:
        check_room(home)


def _attend(event: Event, said: Said) -> None:
    """Each event loads what it needs, and mostly that is not much."""
    from outlive.bundle.home import open_home

    home = open_home(os.environ)
    if event.is_sub_agent:
        from outlive.hooks.usable import check_readable

        check_readable(home, event.session, PATIENCE_S)
    if event.edits or event.foreign or event.foreign_are_all:
        _note(home, event, said)
    if event.is_sub_agent:
        return
    if event.kind in ("prompt", "results", "stop"):
        from outlive.hooks.event import POKE

        if event.text.startswith(POKE):
            from outlive.hooks.poke import hear

            hear(home, event, said.put, _look)
        else:
            _look(home, event, said.put)
    elif event.is_unheard:
        from outlive.hooks.marks import set_word

        set_word(home, event.session, "begins", event.source)
    else:
        _cross(home, event, said)


def _cross(home: Home, event: Event, said: Said) -> None:
    """A session begins, ends, forgets or sleeps."""
    from outlive.service.origin import project_of

    project = project_of(event.cwd)
    if event.kind == "begin":
        from outlive.hooks.begin import begin
        from outlive.ledger.opening import be_impatient

        be_impatient(PATIENCE_S)
        begin(home, event, project, said.put)
    elif event.kind == "wake":
        from outlive.hooks.wake import wake

        wake(home, event, project, said.put)
    else:
        _leave_behind(home, event, project, said)


def _leave_behind(home: Home, event: Event, project: str, said: Said) -> None:
    """What goes on when nobody reads us any more: what would keep it from its work is said now."""
    from outlive.hooks.usable import check_writable

    try:
        check_writable(home, PATIENCE_S)
    except Unavailable as error:
        said.regret(error.message)  # it waits longer than the client would
    if event.kind == "end":
        from outlive.hooks.end import end

        end(home, event, project)
    else:
        from outlive.hooks.compact import prepare

        prepare(home)


def _held(home: Home, event: Event, guard: str, said: Said) -> str:
    """What a task holds of what is about to be touched; advice needs no ledger, and is given without one."""
    try:
        if guard == "off" or (event.command is None and not event.edits and not event.reads):
            from outlive.hooks.usable import check_readable

            check_readable(home, event.session, PATIENCE_S)
            return ""
        from outlive.hooks.held import held

        return held(home, event, PATIENCE_S)
    except Exception as error:  # noqa: BLE001 - as in main
        said.regret(str(error))
        return ""


def _note(home: Home, event: Event, said: Said) -> None:
    """What is told in passing is worth less than what we were called for: it may fail."""
    from outlive.hooks.note import is_worth_noting, note
    from outlive.ledger.opening import be_impatient
    from outlive.service.origin import project_of

    if is_worth_noting(home, event):
        be_impatient(PATIENCE_S)
        try:
            note(home, event, project_of(event.cwd))
        except OutliveError as error:
            said.regret(error.message)
        except Exception as error:  # noqa: BLE001 - as in main
            said.regret(f"{type(error).__name__}: {error}")


def _look(home: Home, event: Event, put: Put) -> None:
    """Nearly always there is nothing to say, and nothing has been committed since that was found."""
    from outlive.hooks.marks import word
    from outlive.hooks.quiet import is_quiet, stamp_of

    begins: Any = word(home, event.session, "begins") if event.kind == "prompt" else ""
    if event.summary_mark and not begins:
        from outlive.hooks.compressed import has_compressed

        begins = "compact" if has_compressed(home, event) else ""
    stamp = stamp_of(home)
    if not begins and is_quiet(home, event.session, stamp):
        return
    from outlive.hooks.look import look
    from outlive.ledger.opening import be_impatient
    from outlive.service.origin import project_of

    be_impatient(PATIENCE_S)
    project = project_of(event.cwd)
    seen = "unbegun" if begins else look(home, event, project, stamp)
    if seen != "nothing":
        # The ledger can be read and there is something to say: that may take its time, and is worth it.
        signal.setitimer(signal.ITIMER_REAL, _TELLING_S)
    if event.kind == "stop" and seen != "nothing":
        from outlive.hooks.stop import stop

        stop(home, event, project, put)
    elif seen == "unbegun":
        from outlive.hooks.begin import begin

        begin(home, event.but(source=begins or event.source), project, put)
        if event.summary_mark:
            from outlive.hooks.compressed import has_been_told

            has_been_told(home, event)
    elif seen == "owed":
        from outlive.hooks.deliver import deliver

        deliver(home, event, project, put)
