"""Programs that supervise system calls by seccomp, and fail under observation.

A process can have only one listener, a descriptor that receives the process's system calls. Under observation, the
observer has this listener. When the observer allows a call, the kernel executes it without asking a tracer, even if the
tracer would have refused this call. Each program that requests a listener or a tracer is recorded. A filter that only
allows calls, refuses calls or kills processes works as without observation.
"""

from __future__ import annotations

import os

from outlive.domain.tasks.shells_and_wrappers import SHELLS
from outlive.linux.processes import KEEPER_NAME, WITNESS_NAME, name_of
from outlive.linux.seccomp import (
    INSTRUCTION,
    NEW_LISTENER,
    RET_ASK,
    RET_TRACE,
    RETURN,
    SET_MODE_FILTER,
    SET_MODE_STRICT,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from outlive.observe.seccomp.process_memory import ProcessMemory
    from outlive.observe.shell.program_scan import ProgramScan

_I386 = 0x40000003
_MOST_INSTRUCTIONS = 4096  # the kernel refuses a seccomp filter with more instructions
_VERDICT = 0xFFFF0000
_KEEPS = "use --observe compare for this program"
_STRICT = f"%s was refused seccomp's strict mode; {_KEEPS}"
_LISTENER = f"%s could not observe system calls, because Outlive observes them; {_KEEPS}"
_TRACER = f"%s traces system calls by seccomp, but did not get the calls that Outlive observes; {_KEEPS}"
_KNOWN = frozenset({"proot", "--seccomp-bpf"})
"""`--seccomp-bpf` is the option that makes strace install a seccomp filter."""
_RECORDING = "record"
"""The subcommand of rr that installs a seccomp filter. Replaying installs none."""
_MOSTLY_SOMETHING_ELSE = frozenset({*SHELLS, *("busybox", "python", "perl", "ruby", "node", "java", "php", "strace")})


def would_miss_supervising(foreseen: ProgramScan, met_before: Iterable[str] = ()) -> bool:
    """Return whether a command runs a program that supervises system calls.

    The scripts that the command names are searched for such programs, too. `met_before` are names of programs that
    failed under observation in earlier tasks.
    """
    names = _KNOWN | frozenset(met_before)
    for text in foreseen.texts():
        if not text.may_name((*names, _RECORDING)):
            continue
        last = [word.rpartition("/")[2] for word in text.words]
        if not names.isdisjoint(last) or ("rr" in last and _RECORDING in last[last.index("rr") :]):
            return True
    return False


def loss_of(memory: ProcessMemory, thread: int, machine: int, name: str, arguments: Sequence[int]) -> tuple[str, str]:
    """Return what a program's new seccomp filter cannot do under observation.

    Returns a sentence and the path of the program. Both are empty if the filter works. `name` and `arguments` are those
    of the call that installs the filter.
    """
    if name == "prctl":  # `prctl` passes no flags, and its mode number is the number of the operation plus one
        operation, flags, address = arguments[1] - 1, 0, arguments[2]
    else:
        operation, flags, address = arguments[:3]
    if operation == SET_MODE_STRICT:
        # With flags or an address, the call is invalid. Libraries make an invalid call to find out whether the kernel
        # has seccomp, so such a call works as without observation.
        lost = "" if name == "seccomp" and (flags or address) else _STRICT
    elif operation != SET_MODE_FILTER:
        lost = ""
    else:
        lost = _lost_by_filter(_program(memory, thread, machine, address), flags)
    if not lost or name_of(thread) in (KEEPER_NAME, WITNESS_NAME):
        return "", ""  # this process starts another task of Outlive, which records by itself that it cannot be observed
    path = os.readlink(f"/proc/{thread}/exe")
    return lost % path, path


def name_to_remember(path: str) -> str | None:
    """Return the name by which the texts of later commands are searched for a program.

    Returns None if the program mostly does something else, like a shell or Python.
    """
    name = path.rpartition("/")[2]
    return None if name.rstrip("0123456789.") in _MOSTLY_SOMETHING_ELSE else name


def _lost_by_filter(program: bytes, flags: int) -> str:
    verdicts = {
        verdict & _VERDICT
        for code, _, _, verdict in INSTRUCTION.iter_unpack(program[: len(program) // 8 * 8])
        if code == RETURN
    }
    if program and (flags & NEW_LISTENER or RET_ASK in verdicts):
        return _LISTENER
    return _TRACER if RET_TRACE in verdicts else ""


def _program(memory: ProcessMemory, thread: int, machine: int, address: int) -> bytes:
    """Return the seccomp filter that a call would install.

    Returns no bytes if the call is invalid.
    """
    if not address:
        return b""
    width = 4 if machine == _I386 else 8
    described = memory.read(thread, address, 2 * width)
    length = int.from_bytes(described[:2], "little")
    if not 0 < length <= _MOST_INSTRUCTIONS:
        return b""
    return memory.read(thread, int.from_bytes(described[width:], "little"), length * INSTRUCTION.size)
