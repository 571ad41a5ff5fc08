"""Sending a command something to read, and telling it that there will be no more."""

from __future__ import annotations

import os
import time
from errno import ENXIO
from select import POLLOUT, poll

from outlive.bundle.kernel import signal
from outlive.bundle.processes import Identity, open_verified

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.attempt import AttemptFiles


def feed(files: AttemptFiles, content: bytes, patience_s: float) -> int:
    """How many bytes of it were taken: all of them, unless the command does not read for so long.

    `FileNotFoundError` if it takes no input, or no more.
    """
    try:
        fd = os.open(files.input, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == ENXIO:  # a name that nobody reads from any more
            raise FileNotFoundError(error.errno, error.strerror, files.input) from error
        raise
    waiting = poll()
    waiting.register(fd, POLLOUT)
    left, until = memoryview(content), time.monotonic() + patience_s
    try:
        while left and waiting.poll(max(0.0, until - time.monotonic()) * 1000):
            try:
                left = left[os.write(fd, left) :]
            except BlockingIOError:
                time.sleep(0.01)  # there is room, but not for as much as has to be written at once
                if time.monotonic() > until:
                    break
            except BrokenPipeError:
                break
    finally:
        os.close(fd)
    return len(content) - len(left)


def end_input(witness: Identity) -> bool:
    """Let the command see the end of its input, once it has read what was sent; False if nobody is left to do so."""
    fd = open_verified(witness)
    if fd is None:
        return False
    try:
        signal.pidfd_send_signal(fd, signal.SIGUSR1)
    except ProcessLookupError:
        return False
    finally:
        os.close(fd)
    return True
