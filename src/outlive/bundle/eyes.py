"""The eyes on a command: what keeper and witness share so that either of them may die.

The command-to-be filters itself, and both take a copy of its listener. The keeper receives calls into
a page that both see. The witness only waits: if the keeper dies, it answers the call that was received
last, and from then on every call, without looking at any of them.

Every launch makes these, so nothing is imported here that is not needed to make them. Where nobody may
take a descriptor of another process (Docker forbids it unless one may trace), it is sent through a socket.
"""

from __future__ import annotations

import os
import time
from errno import EMFILE
from select import POLLHUP, POLLIN, poll

from outlive.bundle.kernel import borrow_descriptor
from outlive.bundle.processes import stat_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from mmap import mmap

_PAGE = 4096
_REFUSED = b"n"
_TAKEN = b"t"
PROMISED, NOT_PROMISED = b"p", b"n"
"""Somebody can answer: without a thread for that, nobody could, and there must be no filter."""
_UNOBSERVED = "its keeper died: what it did afterwards was not seen"
_UNWRITTEN_AT, _UNWRITTEN_SIZE = 2048, 8
"""Where in the page it is told since when there is something to be written."""
_WRITING_TAKES_MS = 5
_DESCRIPTORS = ("_journal", "_page", "_keeper", "_to_keeper", "_witness", "_to_witness", "_is_taken", "_taken")


class Eyes:
    """Made before the witness is forked; then each side takes its part."""

    def __init__(self, journal: int, wall: int, *, keep_privileges: bool) -> None:
        """`journal` and `wall`: where, and by which clock, it is written down that nobody looks any more."""
        self._journal, self._wall = journal, wall
        self.keep_privileges = keep_privileges
        self._page = os.memfd_create("outlive-page")
        os.ftruncate(self._page, _PAGE)
        copy = borrow_descriptor(os.getpid(), self._page)
        self._sends = copy is None
        if copy is not None:
            os.close(copy)
        self._keeper, self._to_keeper = self._channel()
        self._witness, self._to_witness = self._channel()
        self._is_taken, taken = os.pipe()
        self._taken: int | None = taken

    def _channel(self) -> tuple[int, int]:
        """Two ends: one to read from, one through which the command-to-be says what it has."""
        if not self._sends:
            return os.pipe()
        from _socket import socketpair  # noqa: PLC0415 - few sandboxes need it

        reading, writing = socketpair()
        return reading.detach(), writing.detach()

    def page(self) -> mmap:
        """The page that calls are received into, shared by all who have these eyes."""
        from mmap import mmap  # noqa: PLC0415

        return mmap(self._page, _PAGE)

    def open(self, keeper: int | None = None) -> None:
        """In the command-to-be: be observed from now on, if both promise to answer, and the kernel lets us.

        The listener stays open until the exec, which nobody lets happen before the keeper has its
        copy; the witness says that it has one. `keeper`: where that one promises, if there is one.
        """
        from outlive.bundle.seccomp import install  # noqa: PLC0415 - the witness has loaded it

        if self._taken is not None:
            os.close(self._taken)
        promised = [os.read(each, 1) for each in (keeper, self._is_taken) if each is not None]
        is_promised = all(word == PROMISED for word in promised)
        listener = install(keep_privileges=self.keep_privileges) if is_promised else None
        for channel in (self._to_keeper, self._to_witness):
            try:
                if self._sends and listener is not None:
                    _send(channel, listener)
                else:
                    os.write(channel, _REFUSED if listener is None else b"%d" % listener)
            except OSError:
                pass  # that one is dead; the other one is not
            os.close(channel)
        if listener is not None:
            os.read(self._is_taken, 1)

    def of_keeper(self, command: int) -> int | None:
        """In the keeper: the listener, once the command-to-be has it; None if there will be none.

        OSError if there is one that we cannot have: then somebody else must answer.
        """
        for unused in (self._to_keeper, self._witness, self._to_witness, self._is_taken):
            os.close(unused)
        if self._taken is not None:
            os.close(self._taken)
        return self._listener_from(self._keeper, command)

    def as_parts(self) -> tuple[dict[str, int], tuple[int, ...]]:
        """What another process needs to have these eyes: facts, and descriptors."""
        facts = {"_wall": self._wall, "keep_privileges": self.keep_privileges, "_sends": self._sends}
        return facts, tuple(getattr(self, name) for name in _DESCRIPTORS)

    @classmethod
    def from_parts(cls, facts: dict[str, int], descriptors: Sequence[int]) -> Eyes:
        """The eyes of another process, from what it has sent."""
        eyes = cls.__new__(cls)
        eyes.__dict__.update(facts, **dict(zip(_DESCRIPTORS, descriptors, strict=True)))
        return eyes

    def stand_in(self, keeper: int) -> StandIn:
        """In the witness, before the command-to-be is forked: take over when the keeper's end of a pipe hangs up."""
        import outlive.bundle.seccomp  # noqa: F401, PLC0415 - for the command-to-be as well

        os.close(self._keeper)
        return StandIn(self, keeper)

    def note_unwritten(self, since: int) -> None:
        """In the keeper: what it saw since then is not in the journal yet, and would be lost with it; 0: nothing."""
        os.pwrite(self._page, since.to_bytes(_UNWRITTEN_SIZE, "little"), _UNWRITTEN_AT)

    def unwritten_since(self) -> int:
        """In the witness: since when there is something that the keeper saw, and has not written down; 0 if nothing."""
        return int.from_bytes(os.pread(self._page, _UNWRITTEN_SIZE, _UNWRITTEN_AT), "little")

    def note_taking_over(self) -> None:
        """In the witness: from now on nobody looks any more; and what was seen, but not written down, is lost."""
        at = self.unwritten_since() or (self._wall + time.monotonic_ns()) // 1000
        try:
            # A kill may tear what it was writing: that is ended so that nobody takes it for a line.
            os.write(self._journal, f"\0\n{at}\tunobserved\t0\t-\t{_UNOBSERVED}\n".encode("ascii"))
        except OSError:
            pass  # the disk is full; what is missing will be seen

    def take(self, command: int) -> int | None:
        """In the witness: its copy of the listener; the command-to-be may go on then."""
        for unused in (self._to_keeper, self._to_witness, self._is_taken):
            os.close(unused)
        try:
            return self._listener_from(self._witness, command)
        except OSError:
            return None  # then nobody stands in for the keeper
        finally:
            self.acknowledge()

    def _listener_from(self, channel: int, command: int) -> int | None:
        """A copy of the listener of the command-to-be; None if that got none, or died."""
        if self._sends:
            has_one, listener = _receive_from(channel)
        else:
            try:
                number = os.read(channel, 16)
            finally:
                os.close(channel)
            has_one = number.isdigit()
            listener = borrow_descriptor(command, int(number)) if has_one else None
        if has_one and listener is None and _may_ask(command):
            raise OSError(EMFILE, "the command is observed, but not by us")
        return listener

    def promise(self) -> None:
        """In the witness: it will answer if the keeper dies."""
        self._tell(PROMISED)

    def acknowledge(self) -> None:
        """Let the command-to-be go on."""
        self._tell(_TAKEN)
        if self._taken is not None:
            os.close(self._taken)
            self._taken = None

    def _tell(self, word: bytes) -> None:
        if self._taken is None:
            return
        try:
            os.write(self._taken, word)
        except OSError:
            pass


class StandIn:
    """The witness's thread that waits for the keeper's death, and lets every call continue from then on."""

    def __init__(self, eyes: Eyes, keeper: int) -> None:
        from _thread import allocate_lock  # noqa: PLC0415

        self._eyes = eyes
        self._keeper = keeper
        self._done = allocate_lock()

    def begin(self, command: int) -> None:
        """Start waiting; the command-to-be has been forked and has what it needs."""
        from _thread import start_new_thread  # noqa: PLC0415

        self._done.acquire()
        try:
            start_new_thread(self._stand_in, (command,))
        except RuntimeError:  # no process is left for it; without our promise there is nothing to answer
            self._eyes.acknowledge()
            self._done.release()
        else:
            self._eyes.promise()

    def wait(self) -> None:
        """Until nobody is left who could ask."""
        self._done.acquire()

    def _stand_in(self, command: int) -> None:
        try:
            listener = self._eyes.take(command)
            if listener is not None:
                self._watch(listener)
        finally:
            self._done.release()

    def _watch(self, listener: int) -> None:
        waiting = poll()
        waiting.register(listener, 0)
        waiting.register(self._keeper, 0)
        page, is_over = self._eyes.page(), False
        ready: dict[int, int] = {}
        while self._keeper not in ready:
            ready = dict(waiting.poll(_WRITING_TAKES_MS if is_over else None))
            if ready.get(listener, 0) & POLLHUP:
                is_over = True
                waiting.unregister(listener)
            # The keeper may die of what is left to it: then that was seen in vain.
            if is_over and not self._eyes.unwritten_since():
                return
        self._eyes.note_taking_over()
        if not is_over:
            let_continue_what_waits(listener, page)


def let_continue_what_waits(listener: int, page: mmap) -> None:
    """In the place of somebody who answers no more: the call that was received last, and every later one."""
    from outlive.bundle.seccomp import let_continue, received  # noqa: PLC0415 - they have been loaded

    # Answered already, this does nothing; received and not answered, nobody else ever would.
    let_continue(listener, received(page))
    answer_all(listener, page)


def answer_all(listener: int, page: mmap) -> None:
    """Let every call continue until nobody is left who could make one."""
    from outlive.bundle.seccomp import let_continue, receive, received  # noqa: PLC0415 - they have been loaded

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


def _may_ask(command: int) -> bool:
    """Whether the command-to-be lives, or nobody knows which process it is."""
    fields = stat_fields(command) if command else None
    return not command or (fields is not None and fields[0] not in b"ZX")


def _send(channel: int, descriptor: int) -> None:
    """Send a descriptor through a socket; both stay open."""
    from _socket import socket  # noqa: PLC0415 - few sandboxes need it

    from outlive.bundle.passing import give  # noqa: PLC0415

    through = socket(fileno=channel)
    try:
        give(through, _TAKEN, (descriptor,))
    finally:
        through.detach()


def _receive_from(channel: int) -> tuple[bool, int | None]:
    """Whether a descriptor was sent, and which one it is here; none if there was no room for it."""
    from _socket import MSG_PEEK, socket  # noqa: PLC0415 - few sandboxes need it

    from outlive.bundle.passing import take  # noqa: PLC0415

    through = socket(fileno=channel)
    if through.recv(1, MSG_PEEK) in (b"", _REFUSED):
        return False, None  # nor will there be any
    taken = take(through)
    return True, None if taken is None else taken[1][0]
