"""Programs that supervise calls by seccomp themselves, and what they lose while we do.

A process has one listener, and it is ours. A verdict of ours outranks one that would ask a tracer, and
after our answer that one is not asked any more: what it would have refused happens. So whoever asks for
one of these is named. Filters that allow, refuse or kill, as most sandboxes have, lose nothing.
"""

from __future__ import annotations

import os

from outlive.bundle.processes import KEEPER_NAME, WITNESS_NAME, name_of
from outlive.bundle.seccomp import (
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

    from outlive.observe.foreseeing import Foreseen
    from outlive.observe.memory import Memory

_I386 = 0x40000003
_MOST_INSTRUCTIONS = 4096  # the kernel takes no more
_VERDICT = 0xFFFF0000
_KEEPS = "--observe compare lets it"
_STRICT = f"%s was refused seccomp's strict mode; {_KEEPS}"
_LISTENER = f"%s was refused to be told of system calls, for we are; {_KEEPS}"
_TRACER = f"%s traces system calls by seccomp, and was not asked about those that we look at; {_KEEPS}"
_KNOWN = frozenset({"proot", "--seccomp-bpf"})
"""The second one is what strace needs to be told to do so."""
_RECORDING = "record"
"""What rr does then, unlike replaying."""
_MOSTLY_SOMETHING_ELSE = frozenset(
    {*("python", "perl", "ruby", "node", "java", "php", "sh", "bash", "dash", "zsh", "busybox"), "strace"}
)


def would_miss_supervising(foreseen: Foreseen, met_before: Iterable[str] = ()) -> bool:
    """Whether the command names, or a script that it names does, a program that supervises calls itself."""
    names = _KNOWN | frozenset(met_before)
    for text in foreseen.texts():
        if not text.may_name((*names, _RECORDING)):
            continue
        last = [word.rpartition("/")[2] for word in text.words]
        if not names.isdisjoint(last) or ("rr" in last and _RECORDING in last[last.index("rr") :]):
            return True
    return False


def loss_of(memory: Memory, thread: int, machine: int, name: str, arguments: Sequence[int]) -> tuple[str, str]:
    """What a call to filter calls loses because of us, in words, and the program that makes it; mostly nothing."""
    if name == "prctl":  # the mode is one more than the operation, and there are no flags
        operation, flags, address = arguments[1] - 1, 0, arguments[2]
    else:
        operation, flags, address = arguments[:3]
    if operation == SET_MODE_STRICT:
        # With more than that it is invalid: so libraries find out whether there is such a call at all.
        lost = "" if name == "seccomp" and (flags or address) else _STRICT
    elif operation != SET_MODE_FILTER:
        lost = ""
    else:
        lost = _lost_by_filter(_program(memory, thread, machine, address), flags)
    if not lost or name_of(thread) in (KEEPER_NAME, WITNESS_NAME):
        return "", ""  # a task in a task says itself that it cannot be observed
    path = os.readlink(f"/proc/{thread}/exe")
    return lost % path, path


def name_to_remember(path: str) -> str | None:
    """By which a text tells that it runs such a program; none, where others do something else with it."""
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


def _program(memory: Memory, thread: int, machine: int, address: int) -> bytes:
    """The filter that is to be installed; nothing, if nothing is: so libraries find out which flags there are."""
    if not address:
        return b""
    width = 4 if machine == _I386 else 8
    described = memory.read(thread, address, 2 * width)
    length = int.from_bytes(described[:2], "little")
    if not 0 < length <= _MOST_INSTRUCTIONS:
        return b""
    return memory.read(thread, int.from_bytes(described[width:], "little"), length * INSTRUCTION.size)
