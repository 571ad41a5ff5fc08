"""The entry of every hook: reads what the client says, answers, and never stands in its way.

Whatever goes wrong, the exit code is 0 and the client goes on as if we were not there; one line on
stderr says what it was. Only a session that is to be woken sees another code, because that is how
its client is asked to wake it.
"""

from __future__ import annotations

import gc
import os
import sys
from errno import EBADF

from outlive.bundle.kernel import signal
from outlive.domain.errors import OutliveError, UserError
from outlive.domain.session_name import check_name
from outlive.domain.text import from_json, one_line, to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from outlive.bundle.home import Home
    from outlive.hooks.event import Answer, Event, Put

CLIENTS = ("claude", "codex", "gemini", "opencode", "openclaw", "cursor")
GUARDS = ("advise", "rewrite", "off")
WAKE_CODE = 2
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
    said = _Said()
    try:
        event, name, guard = _listen(words)
        said.to(event, name)
        if event.kind in _DEADLINES_S:
            _set_deadline(_DEADLINES_S[event.kind])
        _act(event, guard, said.put)
    except OutliveError as error:
        said.regret(f"{error.message}; {error.hint}")
    except Exception as error:  # noqa: BLE001 - the client must go on, whatever it was
        said.regret(f"{type(error).__name__}: {error}")
    return said.code


def _listen(words: list[str]) -> tuple[Event, str, str]:
    client, name, *rest = words if len(words) >= 2 else ("", "")
    if client not in CLIENTS or (rest and (rest[0] != "--guard" or len(rest) != 2 or rest[1] not in GUARDS)):
        raise UserError("hook takes a client and an event", f"outlive hook {'|'.join(CLIENTS)} EVENT")
    guard = rest[1] if rest else "advise"
    module: Any = __import__(f"outlive.hooks.{client}", fromlist=["read"])
    if name not in module.KINDS:
        raise UserError(f"{client} has no event {name}", f"one of: {', '.join(module.KINDS)}")
    _set_deadline(_DEADLINE_S)
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


def _set_deadline(seconds: float) -> None:
    """A disk that hangs must not hang the client, nor a stdin that it forgot to close; 0 lifts it.

    A client has no use for an answer that comes too late; on a machine that is always busy, its owner may want
    answers rather than speed.
    """

    def give_up(_: int, __: FrameType | None) -> None:
        try:
            _complain("no answer in time; going on without")
        finally:
            os._exit(0)

    try:
        given = max(0.05, float(os.environ.get("OUTLIVE_HOOK_DEADLINE_S", "")))
    except ValueError:
        given = seconds
    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, given if seconds else 0.0)


def _act(event: Event, guard: str, put: Put) -> None:
    """Each event loads what it needs, and mostly that is not much."""
    if event.kind == "tool":
        from outlive.hooks.advise import advise

        advise(event, guard, put, "" if guard == "off" else _held(event))
        return
    from outlive.bundle.home import Home, locate, open_home

    if event.kind != "begin" and not os.path.exists(Home(locate(os.environ)).ledger):
        return  # nobody has ever launched anything
    home = open_home(os.environ)
    if event.edits or event.foreign or event.foreign_are_all:
        _note(home, event)
    if event.is_sub_agent:
        return
    if event.kind in ("prompt", "results", "stop"):
        from outlive.hooks.event import POKE

        if event.text.startswith(POKE):
            from outlive.hooks.poke import hear

            hear(home, event, put, _look)
        else:
            _look(home, event, put)
    elif event.is_unheard:
        from outlive.hooks.marks import set_word

        set_word(home, event.session, "begins", event.source)
    else:
        _cross(home, event, put)


def _cross(home: Home, event: Event, put: Put) -> None:
    """A session begins, ends, forgets or sleeps."""
    from outlive.service.origin import project_of

    project = project_of(event.cwd)
    if event.kind == "begin":
        from outlive.hooks.begin import begin
        from outlive.ledger.opening import be_impatient

        be_impatient(PATIENCE_S)
        begin(home, event, project, put)
    elif event.kind == "end":
        from outlive.hooks.end import end

        end(home, event, project)
    elif event.kind == "compact":
        from outlive.hooks.compact import prepare

        prepare(home)
    else:
        from outlive.hooks.wake import wake

        wake(home, event, project, put)


def _held(event: Event) -> str:
    """What a task holds of what is about to be touched; advice needs no ledger, and is given without one."""
    from outlive.hooks.held import held

    try:
        return held(event, PATIENCE_S)
    except Exception as error:  # noqa: BLE001 - as in main
        _complain(str(error))
        return ""


def _note(home: Home, event: Event) -> None:
    """What is told in passing is worth less than what we were called for: it may fail."""
    from outlive.hooks.note import is_worth_noting, note
    from outlive.ledger.opening import be_impatient
    from outlive.service.origin import project_of

    if is_worth_noting(home, event):
        be_impatient(PATIENCE_S)
        try:
            note(home, event, project_of(event.cwd))
        except OutliveError as error:
            _complain(error.message)


def _look(home: Home, event: Event, put: Put) -> None:
    """Nearly always there is nothing to say, and nothing has been committed since that was found."""
    from outlive.hooks.marks import word
    from outlive.hooks.quiet import is_quiet, stamp_of

    begins: Any = word(home, event.session, "begins") if event.kind == "prompt" else ""
    if event.client == "gemini" and not begins:
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
        if event.client == "gemini":
            from outlive.hooks.compressed import has_been_told

            has_been_told(home, event)
    elif seen == "owed":
        from outlive.hooks.deliver import deliver

        deliver(home, event, project, put)


class _Said:
    """What was answered: at most one JSON document."""

    def __init__(self) -> None:
        self.code = 0
        self._event: Event | None = None
        self._name = ""

    def to(self, event: Event, name: str) -> None:
        """Know whom to answer, and how."""
        self._event, self._name = event, name

    def put(self, answer: Answer) -> None:
        """Write it, all of it, before anything counts as told."""
        assert self._event is not None  # noqa: S101 - whoever acts was told of an event
        # One that was closed before we began has its number taken by something else.
        if (sys.__stderr__ if answer.wake else sys.__stdout__) is None:
            raise OSError(EBADF, "nobody reads the answer")
        if answer.wake:
            _write_all(2, answer.wake.encode("utf-8", "backslashreplace") + b"\n")
            self.code = WAKE_CODE
            return
        module: Any = __import__(f"outlive.hooks.{self._event.client}", fromlist=["write"])
        if document := module.write(self._name, answer):
            _write_all(1, to_json(document).encode("ascii") + b"\n")

    def regret(self, why: str) -> None:
        """One line for whoever looks; at a beginning also for the person, since clients hide stderr."""
        self.code = 0
        line = _complain(why)
        if self._event is not None and self._event.kind == "begin":
            from outlive.hooks.event import Answer

            try:
                self.put(Answer(note=line))
            except OSError:
                pass


def _complain(why: str) -> str:
    """One line of diagnosis, which nobody has to be able to read; returns it."""
    line = f"outlive: {one_line(why, 400)}"
    try:
        _write_all(2, line.encode("utf-8", "backslashreplace") + b"\n")
    except OSError:
        pass
    return line


def _write_all(fd: int, content: bytes) -> None:
    while content:
        content = content[os.write(fd, content) :]
