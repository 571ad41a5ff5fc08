"""Poking an idle session through the socket on which Claude Code takes messages.

The message says nothing but that there is something: what it is, the prompt's own hook claims from
the inbox and puts beside it. That hook also notes our mark, which is how we know that the message has
come. Held back, repeated or late, it tells nothing twice: one that was given up on is taken back.
"""

from __future__ import annotations

import os
import time

from outlive.bundle.kernel import drain
from outlive.domain.text import to_json
from outlive.hooks import marks
from outlive.hooks.event import POKE, Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from outlive.bundle.home import Home
    from outlive.hooks.event import Event, Put

_WORDS = "] A background task of this session has ended: an automated event. What is known of it stands beside this."
_PATIENCE_S = 5.0
# Only where the user has no inotify instance left: then we look instead of being told.
_LOOK_MS = 100


def poke(home: Home, session: str, environ: Mapping[str, str]) -> bool:
    """Whether the session has taken a message of ours for a prompt."""
    from outlive.service.telling import new_mark  # noqa: PLC0415 - only now, when nobody waits

    path, mark = environ.get("CLAUDE_CODE_MESSAGING_SOCKET"), new_mark()
    if not path:
        return False
    changes = marks.listen(home, session, "heard")
    try:
        if not _send(path, environ.get("CLAUDE_CODE_MESSAGING_TOKEN"), POKE + mark + _WORDS):
            return False
        is_heard = _wait_until_heard(home, session, mark, changes)
    finally:
        if changes is not None:
            os.close(changes)
    if not is_heard:
        marks.set_word(home, session, "missed", mark)
    return is_heard


def _wait_until_heard(home: Home, session: str, mark: str, changes: int | None) -> bool:
    """Asleep until the prompt's own hook has noted our mark; False if it does not in time."""
    from select import POLLIN, poll  # noqa: PLC0415 - only now, when nobody waits

    waiting, until = poll(), time.monotonic() + _PATIENCE_S
    if changes is not None:
        waiting.register(changes, POLLIN)
    while marks.word(home, session, "heard") != mark:
        left_ms = (until - time.monotonic()) * 1000
        if left_ms <= 0:
            return False
        waiting.poll(left_ms if changes is not None else min(left_ms, _LOOK_MS))
        if changes is not None:
            drain(changes)
    return True


def hear(home: Home, event: Event, put: Put, look: Callable[[Home, Event, Put], None]) -> None:
    """A prompt that looks like a message of ours: whoever sent it may know, and it need not be answered in vain."""
    if not event.text.endswith(_WORDS):
        look(home, event, put)
        return
    mark = event.text.removeprefix(POKE).partition("]")[0]
    marks.set_word(home, event.session, "heard", mark)
    told: list[Answer] = []

    def tell(answer: Answer) -> None:
        put(answer)
        told.append(answer)

    look(home, event, tell)
    # Whoever sent it has told it otherwise. Without that, another of us may just have said it.
    if not told and marks.word(home, event.session, "missed") == mark:
        put(Answer(block="outlive: what this was about has been told already"))


def _send(path: str, token: str | None, text: str) -> bool:
    import socket  # noqa: PLC0415 - only now, when nobody waits

    message = {"type": "user", "message": {"role": "user", "content": text}}
    lines = [{"type": "auth", "token": token}, message] if token else [message]
    try:
        if os.stat(path).st_uid != os.getuid():
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            door.settimeout(_PATIENCE_S)
            door.connect(path)
            door.sendall("".join(to_json(line) + "\n" for line in lines).encode("ascii"))
    except OSError:
        return False
    return True
