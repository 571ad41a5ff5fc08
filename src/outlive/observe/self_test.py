"""Whether observing works here: tried once per boot, with a process of our own.

A kernel may be too old, a container's profile may forbid it, an emulated kernel may say yes and do
nothing, a security module may keep us from reading: so what is recorded is compared with the truth.
"""

from __future__ import annotations

import os
from select import POLLIN, poll

from outlive.bundle.eyes import Eyes
from outlive.bundle.kernel import boot_id, read_small
from outlive.bundle.seccomp import CALL, is_known_machine, let_continue, receive
from outlive.observe.calls import KINDS, Calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap

    from outlive.bundle.home import Home

_TRIED = "/outlive-self-test/there-is-no-such-directory"
_PATIENCE_MS = 2000


def can_observe(home: Home, *, keep_privileges: bool) -> bool:
    """What was found out in this boot, or is found out now."""
    if not is_known_machine():
        return False
    path, how = home.path + "/observing", "with" if keep_privileges else "without"
    try:
        boot, *found = read_small(path).decode("ascii").split()
        if boot == boot_id() and f"{how}:yes" in found:
            return True
        if boot == boot_id() and f"{how}:no" in found:
            return False
    except (OSError, ValueError):
        pass
    works = _try(keep_privileges=keep_privileges)
    fresh = f"{path}.{os.getpid()}"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, f"{boot_id()} {how}:{'yes' if works else 'no'}\n".encode("ascii"))
    finally:
        os.close(fd)
    os.rename(fresh, path)
    return works


def _try(*, keep_privileges: bool) -> bool:
    eyes = Eyes(keep_privileges=keep_privileges)
    tried = os.fork()
    if tried == 0:
        try:
            eyes.open()
            os.rmdir(_TRIED)
        except OSError:
            pass
        finally:
            os._exit(0)
    eyes.acknowledge()
    listener = eyes.of_keeper(tried)
    try:
        return listener is not None and _sees(listener, eyes.page())
    finally:
        if listener is not None:
            os.close(listener)
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
        _, paths = calls.understand(KINDS[machine, number], thread, machine, arguments)
        return let_continue(listener, call) and list(paths) == [_TRIED]
    except (OSError, KeyError):
        return False
    finally:
        calls.memory.close()
