"""The eyes on a command: what keeper and witness share so that either of them may die.

The command-to-be filters itself and gives the listener to both. The keeper receives calls into a
page that both see. The witness only waits: if the keeper dies, it answers the call that was
received last, and from then on every call, without looking at any of them.
"""

from __future__ import annotations

import os
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socketpair
from _struct import Struct
from _thread import allocate_lock, start_new_thread
from mmap import mmap
from select import POLLHUP, POLLIN, poll

from outlive.bundle.seccomp import PAGE, install, let_continue, receive, received

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable

_DESCRIPTOR = Struct("i")
_REFUSED = b"n"


class Eyes:
    """Made before the witness is forked; then each side takes its part."""

    def __init__(self, *, keep_privileges: bool) -> None:
        self.page = mmap(-1, PAGE)
        self.keep_privileges = keep_privileges
        self._keeper, self._to_keeper = socketpair(AF_UNIX, SOCK_STREAM, 0)
        self._witness, self._to_witness = socketpair(AF_UNIX, SOCK_STREAM, 0)

    def open(self) -> None:
        """In the command-to-be: be observed from now on, if the kernel lets us."""
        listener = install(keep_privileges=self.keep_privileges)
        for channel in (self._to_keeper, self._to_witness):
            try:
                if listener is None:
                    channel.send(_REFUSED)
                else:
                    channel.sendmsg([b"l"], [(SOL_SOCKET, SCM_RIGHTS, _DESCRIPTOR.pack(listener))])
            except OSError:
                pass  # that one is dead; the other one is not
        if listener is not None:
            os.close(listener)

    def of_keeper(self) -> int | None:
        """In the keeper: the listener, once the command-to-be has it; None if there will be none."""
        for unused in (self._to_keeper, self._witness, self._to_witness):
            unused.close()
        return _listener_from(self._keeper)

    def stand_in(self, keeper: int, on_taking_over: Callable[[], None]) -> StandIn:
        """In the witness: take over when the keeper's end of a pipe hangs up."""
        self._keeper.close()
        return StandIn(self._witness, (self._to_keeper, self._to_witness), self.page, keeper, on_taking_over)

    def close(self) -> None:
        """Nobody will be observed after all."""
        for each in (self._keeper, self._to_keeper, self._witness, self._to_witness):
            each.close()


class StandIn:
    """The witness's thread that waits for the keeper's death, and lets every call continue from then on."""

    def __init__(
        self,
        channel: socket,
        of_the_command: tuple[socket, ...],
        page: mmap,
        keeper: int,
        on_taking_over: Callable[[], None],
    ) -> None:
        self._channel = channel
        self._of_the_command = of_the_command
        self._page = page
        self._keeper = keeper
        self._on_taking_over = on_taking_over
        self._done = allocate_lock()

    def begin(self) -> None:
        """Start waiting; the command-to-be has been forked and has what it needs."""
        for channel in self._of_the_command:
            channel.close()
        self._done.acquire()
        start_new_thread(self._stand_in, ())

    def wait(self) -> None:
        """Until nobody is left who could ask."""
        self._done.acquire()

    def _stand_in(self) -> None:
        try:
            listener = _listener_from(self._channel)
            if listener is not None:
                self._watch(listener)
        finally:
            self._done.release()

    def _watch(self, listener: int) -> None:
        waiting = poll()
        waiting.register(listener, 0)
        waiting.register(self._keeper, 0)
        while True:
            ready = dict(waiting.poll())
            if ready.get(listener, 0) & POLLHUP:
                return
            if self._keeper in ready:
                break
        # Answered already, this does nothing; received and not answered, nobody else ever would.
        let_continue(listener, received(self._page))
        self._on_taking_over()
        answer_all(listener, self._page)


def answer_all(listener: int, page: mmap) -> None:
    """Let every call continue until nobody is left who could make one."""
    waiting = poll()
    waiting.register(listener, POLLIN)
    while True:
        (_, happened), *_ = waiting.poll()
        if not happened & POLLIN:
            return
        try:
            receive(listener, page)
        except OSError:
            continue  # whoever asked was killed meanwhile
        let_continue(listener, received(page))


def _listener_from(channel: socket) -> int | None:
    """The listener that comes through a channel; None if the command-to-be got none, or died."""
    try:
        word, attached, _, _ = channel.recvmsg(1, 64)
    except OSError:
        return None
    finally:
        channel.close()
    if word in (b"", _REFUSED) or not attached:
        return None
    (listener,) = _DESCRIPTOR.unpack(attached[0][2][: _DESCRIPTOR.size])
    os.set_inheritable(listener, False)
    return int(listener)
