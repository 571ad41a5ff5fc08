"""The input of a running command: sending bytes, and ending the input."""

from __future__ import annotations

import os
import time
from errno import ENXIO
from select import POLLOUT, poll

from outlive.linux.processes import Identity, open_verified
from outlive.linux.syscalls import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.attempt import AttemptFiles


def feed(files: AttemptFiles, content: bytes, patience_s: float) -> int:
    """Send bytes to the command's input. Return how many bytes were sent.

    Not all bytes are sent if the pipe stays full for `patience_s` seconds, or if the command closes its input. Raises
    FileNotFoundError if the command takes no input, or if its input has ended.
    """
    try:
        fd = os.open(files.input, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == ENXIO:  # the FIFO exists, but no process reads from it any more
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
                time.sleep(0.01)  # the pipe has some space, but less than this write needs
                if time.monotonic() > until:
                    break
            except BrokenPipeError:
                break
    finally:
        os.close(fd)
    return len(content) - len(left)


def end_input(witness: Identity) -> bool:
    """End the command's input after the bytes that were sent.

    The input ends when the witness closes it, so this function asks the witness to close it. Returns False if the
    witness has exited.
    """
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
