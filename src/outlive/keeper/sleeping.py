"""Sleeping: what a keeper is while its task waits for its turn, or for its next attempt.

A keeper that is ready to run a command holds two megabytes that it has no use for while it waits.
So it replaces itself by an interpreter with nothing loaded, which keeps its process, its rights,
its locks and its note, sleeps in one poll(), and then becomes a keeper again: the same process
all the time, as far as anybody can see. What must not be on disk - the environment of the
command - is in the note, which is in memory.
"""

from __future__ import annotations

import marshal
import os
import sys

from outlive.bundle.attempt import Held
from outlive.bundle.kernel import signal
from outlive.bundle.processes import KEEPER_NAME
from outlive.installation import package_directories
from outlive.keeper.note import note_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from outlive.keeper.note import Note
    from outlive.keeper.plan import Plan

# Run with -I -S: nothing is imported but what is built in, and `select`. It wakes in the same interpreter:
# another one would take as long to come up as all that a keeper loads, and hundreds may be called at once.
_SLEEP = """
import sys
from posix import close, open, write
from select import POLLIN, poll
from time import monotonic
note, until, how_many, calls, doors = sys.argv[1:6]
name = open("/proc/self/comm", 1)
write(name, b"{name}")
close(name)
doors = [int(door) for door in doors.split()]
left = int(how_many)
waiting = poll()
for door in doors:
    waiting.register(door, 0)
for call in calls.split():
    waiting.register(int(call), POLLIN)
while not doors or left > 0:
    rest = float(until) - monotonic() if until else 86400.0
    ready = waiting.poll(min(max(rest, 0.0), 86400.0) * 1000)
    if any(fd not in doors for fd, _ in ready) or (until and monotonic() >= float(until)):
        break
    for door, _ in ready:
        waiting.unregister(door)
        left -= 1
for door in doors:
    close(door)
sys.path[:0] = sys.argv[6:]
from outlive.quick_import import install
install()
from outlive.service.queue import wake
wake(int(note))
""".replace("{name}", KEEPER_NAME)


def fall_asleep(
    plan: Plan, held: Held, *, doors: Sequence[int] = (), how_many: int = 0, until: float | None = None
) -> NoReturn:
    """Sleep until so many of the doors are hung up, somebody calls, or a moment (monotonic) has come.

    Wakes in `service.queue.wake`.
    """
    note = os.memfd_create("outlive-note")
    os.write(note, marshal.dumps({**note_of(plan), "held": held.__dict__}))
    signal.signal(signal.SIGIO, signal.SIG_IGN)  # of our output watch; unhandled it would end us
    owner = plan.surroundings.owner
    calls = [held.control] if owner is None else [held.control, owner]
    for fd in (*held.fds(), *calls, *doors, note):
        os.set_inheritable(fd, True)
    program = getattr(sys, "_base_executable", None) or sys.executable
    arguments = (
        *(str(note), "" if until is None else str(until)),
        *(str(how_many), " ".join(map(str, calls)), " ".join(map(str, doors))),
        *package_directories(),
    )
    os.execve(program, [program, "-I", "-S", "-c", _SLEEP, *arguments], os.environ)


def read_note(fd: int) -> tuple[Note, Held]:
    """What was held before the sleep, and where it belongs to."""
    os.lseek(fd, 0, os.SEEK_SET)
    parts = []
    while part := os.read(fd, 1 << 20):
        parts.append(part)
    os.close(fd)
    note: Note = marshal.loads(b"".join(parts))  # noqa: S302 - we wrote it ourselves
    held = Held(**note["held"])
    for kept in (*held.fds(), *(() if note["owner"] is None else (note["owner"],))):
        os.set_inheritable(kept, False)
    return note, held
