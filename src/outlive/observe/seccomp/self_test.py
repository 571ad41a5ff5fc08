"""A self-test of observation with a child process, once per boot and sandbox.

An old kernel, a container or a security module may forbid observation. An emulated kernel may accept the filter, but
report no call. So the test compares the observed call with the call that the child made.
"""

from __future__ import annotations

import os
from select import POLLIN, poll

from outlive.linux.processes import close_all_but
from outlive.linux.seccomp import CALL, is_known_machine, let_continue, receive
from outlive.linux.shared_listener import SharedListener
from outlive.linux.syscalls import signal
from outlive.observe.seccomp.calls import KINDS, Calls
from outlive.observe.seccomp.self_test_cache import remember

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap

    from outlive.bundle.home import Home

_CHILDS_PATH = "/outlive-self-test/there-is-no-such-directory"
_PATIENCE_MS = 2000


def can_observe(home: Home, *, keep_privileges: bool) -> bool:
    """Run the self-test and remember its result. Return whether observation works.

    `keep_privileges` means that observed programs must still be able to gain privileges when they are executed.
    """
    works = is_known_machine() and _try(keep_privileges=keep_privileges)
    remember(home, works, keep_privileges=keep_privileges)
    return works


def _try(*, keep_privileges: bool) -> bool:
    shared = SharedListener(journal=0, wall=0, keep_privileges=keep_privileges)  # no changes are recorded
    parent, child = os.getpid(), os.fork()
    if child == 0:
        try:
            # The child must close the descriptors of its parent, such as the lock of an attempt.
            close_all_but(shared.as_parts()[1])
            shared.open(parent)
            os.rmdir(_CHILDS_PATH)
        except OSError:
            pass
        finally:
            os._exit(0)
    shared.promise()
    shared.acknowledge()
    listener = None
    try:
        listener = shared.of_keeper(child)
        return listener is not None and _sees(listener, shared.page())
    except OSError:
        return False
    finally:
        if listener is not None:
            os.close(listener)
        os.kill(child, signal.SIGKILL)  # no process answers the child's system call any more, so the child would hang
        os.waitpid(child, 0)


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
        return let_continue(listener, call) and [path for path, _ in paths] == [_CHILDS_PATH]
    except (OSError, KeyError):
        return False
    finally:
        calls.memory.close()
