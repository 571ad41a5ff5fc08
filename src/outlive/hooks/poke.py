"""Poking an idle session: through the socket on which Claude Code takes messages, or by what Codex has queued.

The message says nothing but that there is something: what it is, the prompt's own hook claims from
the inbox and puts beside it. That hook also notes our mark, which is how we know that the message has
come. Held back, repeated or late, it tells nothing twice: one that was given up on is taken back.
"""

from __future__ import annotations

import os

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


def message(mark: str) -> str:
    """What an idle session is sent."""
    return POKE + mark + _WORDS


def poke(home: Home, session: str, environ: Mapping[str, str]) -> bool:
    """Whether the session has taken a message of ours for a prompt."""
    from outlive.hooks.hearing import wait_until  # noqa: PLC0415 - only now, when nobody waits
    from outlive.service.telling import new_mark  # noqa: PLC0415

    path, mark = environ.get("CLAUDE_CODE_MESSAGING_SOCKET"), new_mark()
    if not path:
        return False
    changes = marks.listen(home, session, "heard")
    try:
        if not _send(path, environ.get("CLAUDE_CODE_MESSAGING_TOKEN"), message(mark)):
            return False
        is_heard = wait_until(lambda: marks.word(home, session, "heard") == mark, changes, _PATIENCE_S)
    finally:
        if changes is not None:
            os.close(changes)
    if not is_heard:
        marks.set_word(home, session, "missed", mark)
    return is_heard


def hear(home: Home, event: Event, put: Put, look: Callable[[Home, Event, Put], None]) -> None:
    """A prompt that looks like a message of ours: whoever sent it may know, and it need not be answered in vain."""
    if not event.text.endswith(_WORDS):
        look(home, event, put)
        return
    mark = event.text.removeprefix(POKE).partition("]")[0]
    told: list[Answer] = []

    def tell(answer: Answer) -> None:
        put(answer)
        told.append(answer)

    look(home, event, tell)
    # Not before: whoever sent it leaves then, and the next who watches would take it for untold.
    marks.set_word(home, event.session, "heard", mark)
    # Whoever sent it has told it otherwise, or it was kept until then. Without that, another of us may just have said
    # it.
    is_stale = event.keeps_messages or marks.word(home, event.session, "missed") == mark
    if not told and is_stale:
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
