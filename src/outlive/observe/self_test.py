"""Whether observing works here: tried once per boot and sandbox, with a process of our own.

A kernel may be too old, a container's profile may forbid it, an emulated kernel may say yes and do
nothing, a security module may keep us from reading: so what is recorded is compared with the truth.
"""

from __future__ import annotations

import os
from select import POLLIN, poll

from outlive.bundle.eyes import Eyes
from outlive.bundle.kernel import signal
from outlive.bundle.seccomp import CALL, is_known_machine, let_continue, receive
from outlive.observe.calls import KINDS, Calls
from outlive.observe.tried import remember

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap

    from outlive.bundle.home import Home

_TRIED = "/outlive-self-test/there-is-no-such-directory"
_PATIENCE_MS = 2000


def can_observe(home: Home, *, keep_privileges: bool) -> bool:
    """Try it, and remember what came out."""
    works = is_known_machine() and _try(keep_privileges=keep_privileges)
    remember(home, works, keep_privileges=keep_privileges)
    return works


def _try(*, keep_privileges: bool) -> bool:
    eyes = Eyes(journal=0, wall=0, keep_privileges=keep_privileges)  # nobody will stand in, and write
    tried = os.fork()
    if tried == 0:
        try:
            eyes.open()
            os.rmdir(_TRIED)
        except OSError:
            pass
        finally:
            os._exit(0)
    eyes.promise()
    eyes.acknowledge()
    listener = None
    try:
        listener = eyes.of_keeper(tried)
        return listener is not None and _sees(listener, eyes.page())
    except OSError:
        return False
    finally:
        if listener is not None:
            os.close(listener)
        os.kill(tried, signal.SIGKILL)  # if we did not get the listener, its call is never answered
        os.waitpid(tried, 0)


def _sees(listener: int, page: mmap) -> bool:
    waiting = poll()
    waiting.register(listener, POLLIN)
    if not any(happened & POLLIN for _, happened in waiting.poll(_PATIENCE_MS)):
        return False
    calls = Calls()
    try:
        receive(listener, page)
        call, thread, _, number, machine, _, *arguments = CALL.unpack_from(page)
        _, paths = calls.understand(0, KINDS[machine, number], thread, machine, arguments)
        return let_continue(listener, call) and [path for path, _ in paths] == [_TRIED]
    except (OSError, KeyError):
        return False
    finally:
        calls.memory.close()
