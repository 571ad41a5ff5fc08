"""The witness of a keeper that is used again: it is used again, too."""

from __future__ import annotations

import os
import time
from _socket import MSG_NOSIGNAL, socket, socketpair
from _thread import _count

from outlive.bundle.passing import give, take
from outlive.bundle.processes import close_all_but, is_stopped
from outlive.keeper import witness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_FREE = b"f"
_GLANCES, _BETWEEN_GLANCES = 20, 0.0005
_PATIENCE_S = 2.0


class WitnessAtHand:
    """A channel to a witness that has nothing to do, or to nobody."""

    def __init__(self, not_for_it: tuple[int, ...], badge: int) -> None:
        """`not_for_it`: descriptors of the keeper's that a witness must not have; the `badge` is for both."""
        self.not_for_it = not_for_it
        self._badge = badge
        self._channel: socket | None = None
        self._its: socket | None = None
        self.pid = 0

    def fds(self) -> tuple[int, ...]:
        """What is open here."""
        return () if self._channel is None else (self._channel.fileno(),)

    def give(self, start: witness.Start) -> bool:
        """Let it witness the next one; False if there is no such witness."""
        if self._channel is None:
            return False
        try:
            if not is_stopped(self.pid):
                self._channel.settimeout(_PATIENCE_S)
                give(self._channel, *witness.note_of(start))
                return True
        except OSError:
            pass
        self._forget()
        return False

    def make_room(self) -> None:
        """Before a witness is forked: a channel for it."""
        self._channel, self._its = socketpair()

    def made(self, pid: int) -> None:
        """In the keeper: it has been forked."""
        self.pid = pid
        if self._its is not None:
            self._its.close()
            self._its = None

    def serve(self, start: witness.Start) -> NoReturn:
        """In the witness: this one, and the next if we are asked to."""
        assert self._channel is not None  # noqa: S101 - room was made
        assert self._its is not None  # noqa: S101
        self._channel.close()
        channel = self._its
        witness.become_witness()
        while witness.witness_until_recorded(start, (channel.fileno(),)) and has_one_thread():
            close_all_but((channel.fileno(), self._badge))
            try:
                channel.send(_FREE, MSG_NOSIGNAL)
            except OSError:
                break
            given = take(channel)
            if given is None:
                break
            start = witness.start_from(*given)
        os._exit(0)

    def has_finished(self) -> bool:
        """Wait until it has nothing to do any more; False if it is gone."""
        if self._channel is not None:
            try:
                self._channel.settimeout(_PATIENCE_S)
                if self._channel.recv(1) == _FREE:
                    return True
            except OSError:
                pass
        self._forget()
        return False

    def _forget(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None


def has_one_thread() -> bool:
    """Whether nothing else goes on in this process. A thread that has said its last word may need a moment more."""
    for _ in range(_GLANCES):
        if not _count():
            return True
        time.sleep(_BETWEEN_GLANCES)
    return False
