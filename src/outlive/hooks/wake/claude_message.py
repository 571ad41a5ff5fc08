"""The message that wakes an idle session, and the hook that receives it.

Claude Code reads the message from a socket, and Codex from its queue, as if it were a prompt. The message contains a
random id but no notice. When the client handles the prompt, its hook adds the notices to it, and stores the id, so that
the sender knows that the message has arrived. If the message arrives late and no notice is left, the hook blocks the
prompt.
"""

from __future__ import annotations

import os

from outlive.domain.text.sanitize import to_json
from outlive.hooks.event import POKE, Answer
from outlive.hooks.state import session_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from outlive.bundle.home import Home
    from outlive.hooks.event import Event, Put

_WORDS = "] This message is automated: a background task of this session has ended. Its notice comes with this message."
_PATIENCE_S = 5.0


def message(mark: str) -> str:
    """Return the message that wakes an idle session. `mark` is a random id for it."""
    return POKE + mark + _WORDS


def poke(home: Home, session: str, environ: Mapping[str, str]) -> bool:
    """Send a wake message to Claude Code, and return whether it has arrived.

    It has arrived when the client calls the hook for a prompt.
    """
    from outlive.hooks.wake.wait_for_change import wait_until  # noqa: PLC0415 - imported here, because only a process that watches a session needs it
    from outlive.service.notices.compose import new_mark  # noqa: PLC0415

    path, mark = environ.get("CLAUDE_CODE_MESSAGING_SOCKET"), new_mark()
    if not path:
        return False
    changes = session_files.listen(home, session, "heard")
    try:
        if not _send(path, environ.get("CLAUDE_CODE_MESSAGING_TOKEN"), message(mark)):
            return False
        is_heard = wait_until(lambda: session_files.word(home, session, "heard") == mark, changes, _PATIENCE_S)
    finally:
        if changes is not None:
            os.close(changes)
    if not is_heard:
        session_files.set_word(home, session, "missed", mark)
    return is_heard


def hear(home: Home, event: Event, put: Put, deliver: Callable[[Home, Event, Put], None]) -> None:
    """Store the random id of a wake message that has arrived.

    Block the prompt if the message arrives late and no notice is left.
    """
    if not event.text.endswith(_WORDS):
        deliver(home, event, put)
        return
    mark = event.text.removeprefix(POKE).partition("]")[0]
    told: list[Answer] = []

    def tell(answer: Answer) -> None:
        put(answer)
        told.append(answer)

    deliver(home, event, tell)
    # The sender exits when it sees the stored id. So store the id only after the notices are presented. Otherwise, the
    # next process that watches the session would send another message for the same notices.
    session_files.set_word(home, event.session, "heard", mark)
    # Block the prompt only if its message may be late. It is late if the sender gave up and presented the notices
    # itself, or if it has waited in the client's queue. Otherwise, another hook may be presenting the notices at this
    # time.
    is_stale = event.keeps_messages or session_files.word(home, event.session, "missed") == mark
    if not told and is_stale:
        put(Answer(block="outlive: this session has received the notices already"))


def _send(path: str, token: str | None, text: str) -> bool:
    import socket  # noqa: PLC0415 - imported here, because only a process that watches a session needs it

    message = {"type": "user", "message": {"role": "user", "content": text}}
    lines = [{"type": "auth", "token": token}, message] if token else [message]
    try:
        if os.stat(path).st_uid != os.getuid():
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_PATIENCE_S)
            connection.connect(path)
            connection.sendall("".join(to_json(line) + "\n" for line in lines).encode("ascii"))
    except OSError:
        return False
    return True
