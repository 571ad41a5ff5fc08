"""Hibernation of a keeper while its task waits for its turn or its next attempt.

A waiting keeper would use two megabytes of memory that it does not need. So the keeper replaces itself with a bare
interpreter, which sleeps in one poll() and then becomes a keeper again. The process keeps its pid, its rights and its
locks. The keeper's data are kept in a file in memory, called the note, because the environment of the command must not
be on disk.

The installation may be upgraded or deleted meanwhile, so the keeper takes a copy of its code along. If neither the copy
nor the installed code can be imported, the interpreter writes into the exit record that the command never began, and
why it never began. The next reader of the ledger settles the attempt from this record.
"""

from __future__ import annotations

import marshal
import os
import sys
from errno import ENOENT

from outlive.bundle.attempt import HeldFiles
from outlive.bundle.record import text_of_slot
from outlive.code_copy import carried_fds, carry
from outlive.linux.processes import KEEPER_NAME
from outlive.linux.syscalls import signal
from outlive.package_paths import package_directories

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from outlive.code_copy import CodeCopy
    from outlive.keeper.plan import Note, Plan

# This program runs with -I -S, so that only built-in modules and `select` are imported. After the sleep, the same
# interpreter loads the keeper's code. Starting a second interpreter would take about as long as loading the code, and
# hundreds of keepers may wake at once.
_SLEEP = """
import sys
from marshal import loads
from posix import _exit, close, fdatasync, fstat, open, pread, pwrite, write
from select import POLLIN, poll
from time import monotonic
note, until, how_many, calls, doors, record = sys.argv[1:7]
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
sys.path[:0] = sys.argv[7:]
try:
    told = loads(pread(int(note), fstat(int(note)).st_size, 0))
    if told["copy"] is not None:
        finder = type(sys)("outlive.code_copy")
        finder.__file__ = told["copy"]["directory"] + "/code_copy.py"
        exec(loads(told["finder"]), finder.__dict__)
        sys.modules["outlive.code_copy"] = finder
        try:
            finder.install(told["copy"])
        except OSError:
            del sys.modules["outlive.code_copy"]
    from outlive.entry_points import load_keeper
    wake = load_keeper()
except BaseException:
    told = loads(pread(int(note), fstat(int(note)).st_size, 0))
    pwrite(int(record), told["never_begun"], 0)
    fdatasync(int(record))
    _exit(1)
wake(int(note))
""".replace("{name}", KEEPER_NAME)


def fall_asleep(
    plan: Plan,
    held: HeldFiles,
    *,
    doors: Sequence[int] = (),
    how_many: int = 0,
    until: float | None = None,
    is_outdated: bool = False,
) -> NoReturn:
    """Sleep until other tasks let this task go on, a message comes, or time is up.

    `doors` are descriptors of the FIFOs of the tasks for which this task waits. A FIFO hangs up when this task need not
    wait for the FIFO's task any more. The sleep ends when `how_many` of these FIFOs have hung up. It also ends at the
    monotonic time `until`.

    After the sleep, the process continues in `service.tasks.wait_turn.wake`, with the copy of the code. With
    `is_outdated`, no copy is made, and the process continues with the installed code.
    """
    copy = None if is_outdated else carry(plan.home.path)
    note = os.memfd_create("outlive-note")
    os.write(note, marshal.dumps({**plan.note(), "held": held.__dict__, **_copy_in_note(copy)}))
    signal.signal(signal.SIGIO, signal.SIG_IGN)  # the watch of the output sends SIGIO, which would kill this process
    owner = plan.surroundings.owner
    calls = [held.control] if owner is None else [held.control, owner]
    for fd in (*held.fds(), *calls, *doors, note, *(() if copy is None else copy.fds())):
        os.set_inheritable(fd, True)
    program = getattr(sys, "_base_executable", None) or sys.executable
    arguments = (
        *(str(note), "" if until is None else str(until)),
        *(str(how_many), " ".join(map(str, calls)), " ".join(map(str, doors)), str(held.record)),
        *package_directories(),
    )
    try:
        os.execve(program, [program, "-I", "-S", "-c", _SLEEP, *arguments], os.environ)
    except OSError:
        # The interpreter was deleted, or there is too little memory to start it. So sleep in the present interpreter,
        # although this takes more memory.
        sys.argv = ["-c", *arguments]
        exec(_SLEEP, {})  # noqa: S102 - the program is a constant of this module
        os._exit(1)


def _copy_in_note(copy: CodeCopy | None) -> dict[str, object]:
    """Return what a sleeping keeper must know about the copy of its code.

    The field `never_begun` is the exit record that is written if neither the copy nor the installed code can be
    imported.
    """
    never_begun = text_of_slot("exit", what="wake", error=ENOENT)
    try:
        finder = b"" if copy is None else copy.own_code()
    except OSError:
        copy, finder = None, b""
    return {"never_begun": never_begun, "copy": None if copy is None else copy.note, "finder": finder}


def read_note(fd: int) -> tuple[Note, HeldFiles]:
    """Return the data and the open files that a keeper stored before it slept.

    `fd` is the file in memory that contains the data.
    """
    os.lseek(fd, 0, os.SEEK_SET)
    parts = []
    while part := os.read(fd, 1 << 20):
        parts.append(part)
    os.close(fd)
    note: Note = marshal.loads(b"".join(parts))  # noqa: S302 - a keeper wrote these data into a file in memory
    held = HeldFiles(**note["held"])
    for kept in (*held.fds(), *carried_fds(), *(() if note["owner"] is None else (note["owner"],))):
        os.set_inheritable(kept, False)
    return note, held
