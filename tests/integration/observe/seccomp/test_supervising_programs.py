"""Programs that supervise the system calls of other programs.

If such a program cannot work while it is observed, Outlive reports this, and does not observe the program the next
time.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.git_steps import Worktree

if TYPE_CHECKING:
    from tests.support import Bench

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of calls are those of x86-64")
SUPERVISES = (
    "it may observe system calls itself, which fails while Outlive observes them "
    "(to observe it anyway: --observe syscalls)"
)
# A program that installs a filter with one verdict for getppid, and prints whether the kernel accepts the filter.
ASKING = """
import ctypes, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
steps = ((0x20, 0, 0, 0), (0x15, 0, 1, 110), (0x06, 0, 0, int(sys.argv[1], 16)), (0x06, 0, 0, 0x7FFF0000))
code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("@HQ", len(steps), ctypes.addressof(code)))
libc.prctl(38, 1, 0, 0, 0)
print(libc.syscall(317, 1, int(sys.argv[2]), program) >= 0)
"""
# A program that probes for seccomp as libraries do: which flags are known, and whether the system call exists.
PROBING = """
import ctypes
libc = ctypes.CDLL(None)
print(libc.syscall(317, 1, 8, None), libc.syscall(317, 0, 1, None), libc.prctl(22, 2, None, 0, 0))
libc.prctl(38, 0, 0, 0, 0)
"""
STRICT = "import ctypes; print(ctypes.CDLL(None).prctl(22, 1))"
TRACE, NOTIFY, REFUSE, TRAP, LISTENER = "7FF00000", "7FC00000", "00050001", "00030000", "8"


def done(bench: Bench, *words: str) -> Any:
    """Run a task to its end, and return its JSON document."""
    return json.loads(bench.run("run", "--wait", "20s", "--json", *words).stdout)


def python(bench: Bench, program: str, *words: str) -> Any:
    """Run a Python program as a task, and return the task's JSON document."""
    (bench.project / "program.py").write_text(program)
    return done(bench, "--", sys.executable, "-B", "program.py", *words)


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_tracer_that_lost_its_calls_is_reported_and_not_observed_the_next_time(bench: Bench) -> None:
    """If a program cannot trace its children because it is observed, the effects say so.

    The next time, the same command is not observed.
    """
    Worktree(bench.project)
    shutil.copy(shutil.which("strace") or "", bench.project / "tracer")
    hidden = (
        "x=bpf; ./tracer -f -o trace --seccomp-$x -e trace=mkdir,mkdirat mkdir made; grep -c made trace; rmdir made"
    )
    first = done(bench, hidden)
    assert first["output"]["tail"].splitlines()[-1] == "0"
    assert first["effects"]["level"] == "partial"
    assert f"{bench.project}/tracer traces system calls by seccomp" in first["effects"]["summary"]
    assert "use --observe compare for this program" in first["effects"]["summary"]
    second = done(bench, hidden)
    assert (second["output"]["tail"], second["effects"]["why_unseen"]) == ("1\n", SUPERVISES)


@pytest.mark.parametrize(
    ("program", "words", "lost"),
    [
        (ASKING, (NOTIFY, LISTENER), "could not observe system calls"),
        (ASKING, (TRACE, "0"), "traces system calls by seccomp"),
        (STRICT, (), "was refused seccomp's strict mode"),
        (ASKING, (REFUSE, "0"), None),
        (ASKING, (TRAP, "0"), None),
        (PROBING, (), None),
    ],
    ids=["a listener", "a tracer", "strict mode", "one that refuses", "one that traps", "only asking what there is"],
)
def test_effects_report_which_filters_of_a_program_do_not_work(
    bench: Bench, program: str, words: tuple[str, ...], lost: str | None
) -> None:
    """The effects name a program's own listener, tracer or strict mode, which do not work in an observed command.

    They do not name a filter that only refuses calls or raises a signal. A command with such a program is not observed
    the next time, but other commands of the same interpreter are.
    """
    Worktree(bench.project)
    for more in ((), ("again",)):
        found = python(bench, program, *words, *more)["effects"]
        assert found["level"] == ("observed" if lost is None else "partial"), found
        assert [lost in gap for gap in found["gaps"] if lost is not None] == [True] * (lost is not None)
    assert python(bench, program, *words)["effects"]["why_unseen"] == (None if lost is None else SUPERVISES)


@pytest.mark.parametrize(
    "text", ["proot -r / true", "rr record ./x", "/opt/rr/bin/rr -M record x", "strace -f --seccomp-bpf -e %file ls"]
)
def test_programs_known_to_supervise_are_not_observed(bench: Bench, text: str) -> None:
    """Programs such as proot and rr are observed only with `--observe syscalls`, even for root."""
    assert done(bench, f"{text} || true")["effects"]["why_unseen"] == SUPERVISES
    assert done(bench, "--observe", "syscalls", f"{text} || true")["effects"]["why_unseen"] is None
