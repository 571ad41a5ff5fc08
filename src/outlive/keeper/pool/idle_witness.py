"""A witness that serves several commands, one after the other, for one keeper."""

from __future__ import annotations

import os
import time
from _socket import MSG_NOSIGNAL, socket, socketpair
from _thread import _count

from outlive.keeper import witness
from outlive.keeper.keeper import fork_witness
from outlive.keeper.process_tree import children
from outlive.linux.fd_passing import give, take
from outlive.linux.processes import close_all_but, is_stopped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_FREE = b"f"
_GLANCES, _BETWEEN_GLANCES = 20, 0.0005
_PATIENCE_S = 2.0


class IdleWitness:
    """The channel to the keeper's witness, which may wait for the next command."""

    def __init__(self, not_for_it: tuple[int, ...], marker: int) -> None:
        """Store the descriptors for a witness that is started later.

        `not_for_it` are descriptors of the keeper that every later witness must close. `marker` is a descriptor that
        marks the witness as a process of Outlive.
        """
        self._not_for_it = not_for_it
        self._marker = marker
        self._channel: socket | None = None
        self._pid = 0

    def fds(self) -> tuple[int, ...]:
        """Return the descriptor of the channel, which the keeper must keep open."""
        return () if self._channel is None else (self._channel.fileno(),)

    def start(self, start: witness.Start, not_for_it: tuple[int, ...]) -> None:
        """Let the idle witness prepare a command, or fork a new witness.

        A new witness is forked if no witness is idle. It closes the descriptors `not_for_it`, which only the keeper
        needs.
        """
        if self._gives(start):
            return
        self._channel, its_end = socketpair()
        closed = (*not_for_it, *self._not_for_it, *self.fds())
        self._pid = fork_witness(start, closed, lambda start: self._serve(start, its_end))
        its_end.close()

    def _gives(self, start: witness.Start) -> bool:
        """Send the command to the idle witness. Return whether the witness can take it."""
        if self._channel is None:
            return False
        try:
            if not is_stopped(self._pid):
                self._channel.settimeout(_PATIENCE_S)
                give(self._channel, *witness.note_of(start))
                return True
        except OSError:
            pass
        self._forget()
        return False

    def _serve(self, start: witness.Start, channel: socket) -> NoReturn:
        """Serve as the witness of one command after the other."""
        witness.become_witness()
        while witness.witness_until_recorded(start, (channel.fileno(),)) and has_one_thread():
            close_all_but((channel.fileno(), self._marker))
            try:
                channel.send(_FREE, MSG_NOSIGNAL)
            except OSError:
                break
            given = take(channel)
            if given is None:
                break
            start = witness.start_from(*given)
        os._exit(0)

    def is_only_child(self) -> bool:
        """Return whether the witness becomes idle in time, and no other child is left."""
        if self._channel is not None:
            try:
                self._channel.settimeout(_PATIENCE_S)
                if self._channel.recv(1) == _FREE:
                    return children(os.getpid()) == [self._pid]
            except OSError:
                pass
        self._forget()
        return False

    def _forget(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None


def has_one_thread() -> bool:
    """Wait briefly for other Python threads to exit. Return whether all have exited."""
    for _ in range(_GLANCES):
        if not _count():
            return True
        time.sleep(_BETWEEN_GLANCES)
    return False
