"""The listener of a command's system calls, shared by keeper and witness.

The listener is the descriptor through which the system calls are read and answered (see `seccomp.py`). The witness
forks a child that will execute the command. Until then, the child is called the command-to-be. The command-to-be
installs the filter of `seccomp.py` in itself. The keeper and the witness both get a copy of the listener, so that one
of them can answer calls after the other one has died. The keeper receives calls into a memory page that the keeper
shares with the witness. If the keeper dies, the witness lets every call continue without inspection.

Every launch makes a `SharedListener`, so this module imports little. If a process may not copy a descriptor of another
process, the listener is sent through a socket. Docker, for example, forbids this copy if the process has no right to
trace others.
"""

from __future__ import annotations

import os
import time
from errno import ECHILD, EMFILE
from select import POLLHUP, POLLIN, poll

from outlive.linux.processes import stat_fields
from outlive.linux.syscalls import borrow_descriptor, die_with, live_without_parent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from mmap import mmap

_PAGE = 4096
_REFUSED = b"n"
_TAKEN = b"t"
PROMISED, NOT_PROMISED = b"p", b"n"
"""The two messages that say whether a process has a thread that answers calls.

Without this thread, observed system calls would hang. So no seccomp filter is installed then.
"""
_UNOBSERVED = "its keeper died: later changes were not observed"
_UNWRITTEN_AT, _UNWRITTEN_SIZE = 2048, 8
"""Where the shared page has the time of the first observation not yet written.

The values are an offset and a size. The keeper sets this time.
"""
_WRITING_TAKES_MS = 5
_DESCRIPTORS = ("_journal", "_page", "_keeper", "_to_keeper", "_witness", "_to_witness", "_is_taken", "_taken")


class SharedListener:
    """The means by which keeper and witness share the listener of system calls.

    The listener is the descriptor from which the calls are read. The channels and the memory page are made before the
    witness is forked.
    """

    def __init__(self, journal: int, wall: int, *, keep_privileges: bool) -> None:
        """Open the shared memory page and the channels to the keeper and the witness.

        `journal` is the open file in which observed changes are recorded. The witness records the end of the
        observation in this file. `wall` is the difference between the clock of this file and the monotonic clock.
        `keep_privileges` means that the command must still be able to gain privileges when it executes programs.
        """
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
        """Open a channel for the listener, or for the number of its descriptor.

        The listener receives the observed system calls. The number is enough if a process may copy a descriptor of
        another process. Returns the reading end and the writing end.
        """
        if not self._sends:
            return os.pipe()
        from _socket import socketpair  # noqa: PLC0415 - this module is only needed where descriptors cannot be copied

        reading, writing = socketpair()
        return reading.detach(), writing.detach()

    def page(self) -> mmap:
        """Map the shared memory page into which system calls are received."""
        from mmap import mmap  # noqa: PLC0415

        return mmap(self._page, _PAGE)

    def open(self, parent: int, keeper: int | None = None) -> int | None:
        """Install the seccomp filter, if keeper and witness both promise to answer calls.

        The process that will execute the command calls this function. It is a child of `parent`. The keeper's promise
        comes through the descriptor `keeper`. Returns the descriptor that receives the reported calls, or None if the
        command is not observed. From now on, the kernel kills this process if its parent dies. Otherwise, a reported
        call that no process answers would block it forever. `let_go` ends this rule before the exec.
        """
        from outlive.linux.seccomp import install  # noqa: PLC0415 - this import costs nothing, because the witness has loaded the module already

        if not die_with(parent):
            raise ChildProcessError(ECHILD, "the parent is dead")
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
                pass  # the keeper or the witness is dead, but the other one may still run
            os.close(channel)
        if listener is not None:
            os.read(self._is_taken, 1)
        return listener

    @staticmethod
    def let_go(listener: int | None) -> None:
        """Close this process's own copy of the listener, right before its exec.

        The listener is the descriptor that receives the observed system calls. If the keeper and the witness have died,
        an observed call must fail and not wait. It fails only if no process has the listener open. `let_go` also ends
        the rule that the kernel kills this process when its parent dies.
        """
        if listener is not None:
            os.close(listener)
        live_without_parent()

    def of_keeper(self, command: int) -> int | None:
        """Return the keeper's copy of the listener, or None if no filter is installed.

        The listener is the descriptor that receives the observed system calls. The keeper calls this function. Raises
        OSError if the keeper cannot get the listener. Then the witness must answer the calls. `command` is the pid of
        the process that will execute the command.
        """
        for unused in (self._to_keeper, self._witness, self._to_witness, self._is_taken):
            os.close(unused)
        if self._taken is not None:
            os.close(self._taken)
        return self._listener_from(self._keeper, command)

    def as_parts(self) -> tuple[dict[str, int], tuple[int, ...]]:
        """Return values and descriptors from which another process rebuilds the object."""
        facts = {"_wall": self._wall, "keep_privileges": self.keep_privileges, "_sends": self._sends}
        return facts, tuple(getattr(self, name) for name in _DESCRIPTORS)

    @classmethod
    def from_parts(cls, facts: dict[str, int], descriptors: Sequence[int]) -> SharedListener:
        """Build the object from the values and descriptors that `as_parts` returned.

        `as_parts` was called in another process.
        """
        shared_listener = cls.__new__(cls)
        shared_listener.__dict__.update(facts, **dict(zip(_DESCRIPTORS, descriptors, strict=True)))
        return shared_listener

    def stand_in(self, keeper: int) -> ListenerFallback:
        """Return the object that answers system calls after the keeper has died.

        The witness calls this function before it forks the process that will execute the command. The pipe `keeper`
        hangs up when the keeper dies.
        """
        import outlive.linux.seccomp  # noqa: F401, PLC0415 - loaded before the fork, because the process that will execute the command inherits it

        os.close(self._keeper)
        return ListenerFallback(self, keeper)

    def note_unwritten(self, since: int) -> None:
        """Write the time of the first unwritten observation, or 0, into the page.

        The keeper calls this function. If the keeper dies, the observations since this time are lost.
        """
        os.pwrite(self._page, since.to_bytes(_UNWRITTEN_SIZE, "little"), _UNWRITTEN_AT)

    def unwritten_since(self) -> int:
        """Return the time of the keeper's first unwritten observation, or 0.

        The witness calls this function.
        """
        return int.from_bytes(os.pread(self._page, _UNWRITTEN_SIZE, _UNWRITTEN_AT), "little")

    def note_taking_over(self) -> None:
        """Write into the file of observed changes that calls are no longer observed.

        The witness calls this function. If the dead keeper lost observations, the line in the file has the time of the
        first lost observation.
        """
        at = self.unwritten_since() or (self._wall + time.monotonic_ns()) // 1000
        try:
            # If the keeper was killed while it wrote a line, this line is incomplete. The NUL makes the incomplete line
            # invalid, so that it is not taken for a complete line.
            os.write(self._journal, f"\0\n{at}\tunobserved\t0\t-\t{_UNOBSERVED}\n".encode("ascii"))
        except OSError:
            pass  # the disk is full

    def take(self, command: int) -> int | None:
        """Return the witness's copy of the listener, or None if there is no copy.

        The listener is the descriptor that receives the observed system calls. The process `command`, which will
        execute the command, waits until this function returns.
        """
        for unused in (self._to_keeper, self._to_witness, self._is_taken):
            os.close(unused)
        try:
            return self._listener_from(self._witness, command)
        except OSError:
            return None  # without the listener, the witness cannot answer system calls for the keeper
        finally:
            self.acknowledge()

    def _listener_from(self, channel: int, command: int) -> int | None:
        """Return a copy of the listener that the process `command` has made.

        The listener is the descriptor that receives this process's system calls. Returns None if the process has no
        listener, or has died. Raises OSError if there is a listener, but it cannot be copied.
        """
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
            raise OSError(EMFILE, "the command is observed, but this process did not get the listener")
        return listener

    def promise(self) -> None:
        """Promise, in the witness, to answer system calls if the keeper dies."""
        self._tell(PROMISED)

    def acknowledge(self) -> None:
        """Let the process that will execute the command continue."""
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


class ListenerFallback:
    """The witness's thread that answers every system call after the keeper's death."""

    def __init__(self, shared_listener: SharedListener, keeper: int) -> None:
        from _thread import allocate_lock  # noqa: PLC0415

        self._shared_listener = shared_listener
        self._keeper = keeper
        self._done = allocate_lock()

    def begin(self, command: int) -> None:
        """Start the thread. Promise to answer system calls only if it has started.

        `command` is the pid of the process that will execute the command.
        """
        from _thread import start_new_thread  # noqa: PLC0415

        self._done.acquire()
        try:
            start_new_thread(self._stand_in, (command,))
        except RuntimeError:  # there may be no further thread, so no promise is made and no call is observed
            self._shared_listener.acknowledge()
            self._done.release()
        else:
            self._shared_listener.promise()

    def wait(self) -> None:
        """Wait until the last observed process has exited."""
        self._done.acquire()

    def _stand_in(self, command: int) -> None:
        try:
            listener = self._shared_listener.take(command)
            if listener is not None:
                self._watch(listener)
        finally:
            self._done.release()

    def _watch(self, listener: int) -> None:
        waiting = poll()
        waiting.register(listener, 0)
        waiting.register(self._keeper, 0)
        page, is_over = self._shared_listener.page(), False
        ready: dict[int, int] = {}
        while self._keeper not in ready:
            ready = dict(waiting.poll(_WRITING_TAKES_MS if is_over else None))
            if ready.get(listener, 0) & POLLHUP:
                is_over = True
                waiting.unregister(listener)
            # After the last observed process has exited, wait until the keeper has written its last observations. If
            # the keeper dies before, these observations are missing in the file of observed changes.
            if is_over and not self._shared_listener.unwritten_since():
                return
        self._shared_listener.note_taking_over()
        if not is_over:
            let_continue_what_waits(listener, page)


def let_continue_what_waits(listener: int, page: mmap) -> None:
    """Let the last system call and every later one continue, after the keeper's death.

    `page` contains the last call that the keeper received.
    """
    from outlive.linux.seccomp import let_continue, received  # noqa: PLC0415 - this import costs nothing, because this process has loaded the module already

    # If the last received call was answered already, a second answer has no effect. If the call was not answered, only
    # this process can answer it.
    let_continue(listener, received(page))
    answer_all(listener, page)


def answer_all(listener: int, page: mmap) -> None:
    """Let every system call continue until the last observed process has exited."""
    from outlive.linux.seccomp import let_continue, receive, received  # noqa: PLC0415 - this import costs nothing, because this process has loaded the module already

    waiting = poll()
    waiting.register(listener, POLLIN)
    while True:
        (_, happened), *_ = waiting.poll()
        if not happened & POLLIN:
            return
        try:
            receive(listener, page)
        except OSError:
            continue  # the calling process was killed meanwhile
        let_continue(listener, received(page))


def _may_ask(command: int) -> bool:
    """Return whether the process that will execute the command may be alive.

    Returns True if its pid is unknown.
    """
    fields = stat_fields(command) if command else None
    return not command or (fields is not None and fields[0] not in b"ZX")


def _send(channel: int, descriptor: int) -> None:
    """Send a descriptor through a socket. The descriptor and the socket stay open."""
    from _socket import socket  # noqa: PLC0415 - this module is only needed where descriptors cannot be copied

    from outlive.linux.fd_passing import give  # noqa: PLC0415

    through = socket(fileno=channel)
    try:
        give(through, _TAKEN, (descriptor,))
    finally:
        through.detach()


def _receive_from(channel: int) -> tuple[bool, int | None]:
    """Return whether a descriptor was sent, and its number in this process.

    The number is None if this process had no free descriptor.
    """
    from _socket import MSG_PEEK, socket  # noqa: PLC0415 - this module is only needed where descriptors cannot be copied

    from outlive.linux.fd_passing import take  # noqa: PLC0415

    through = socket(fileno=channel)
    if through.recv(1, MSG_PEEK) in (b"", _REFUSED):
        return False, None  # the process that will execute the command has no listener, or is dead
    taken = take(through)
    return True, None if taken is None else taken[1][0]
