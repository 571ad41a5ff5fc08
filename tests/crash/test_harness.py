"""Tests of the crash harness itself, on which all crash tests rely."""

import errno
import os
import signal
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash import ptrace
from tests.crash.tree import FailAt, KillAt, Trace, drive, run_traced

WRITES = frozenset({"write"})
UNSUPPORTED = ptrace.supported()
pytestmark = [pytest.mark.crash, pytest.mark.skipif(bool(UNSUPPORTED), reason=f"{UNSUPPORTED}")]


def write_file(path: Path, content: bytes) -> None:
    """Append to a file with one write, and close the file even if the write fails."""
    with path.open("ab", buffering=0) as file:
        file.write(content)


def in_child(child: Callable[[], object]) -> int:
    """Fork a process that calls `child` and exits with 0, and return its id."""
    pid = os.fork()
    if pid == 0:
        child()
        os._exit(0)
    return pid


def wait_until(is_true: Callable[[], bool]) -> bool:
    """Wait until a condition is true, and let other processes use the CPU meanwhile.

    All processes of a test run on the same CPU.
    """
    while not is_true():
        os.sched_yield()
    return True


def state_of(pid: int) -> str:
    """Return the letter of the state of a child process, which is Z if the child has exited and was not reaped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def before(name: str, program: Callable[[], object], role: str = "0") -> KillAt:
    """Return the place before the first call with this name, at which a process can be killed.

    A run without a kill finds the place.
    """
    return KillAt(role, drive(lambda: run_traced(program)).calls[role].index(name))


def family(folder: Path, heap: int = 0) -> Callable[[], None]:
    """Return a program of four processes: a parent, two children and a grandchild."""

    def middle() -> None:
        os.waitpid(in_child(lambda: write_file(folder / "grandchild", b"g")), 0)

    def program() -> None:
        write_file(folder / "parent", bytes(heap))
        os.waitpid(in_child(middle), 0)
        os.waitpid(in_child(lambda: write_file(folder / "second", b"s")), 0)

    return program


def test_sweep_kills_at_every_call_once_and_the_other_processes_run_on(tmp_path: Path) -> None:
    """A series of crash tests kills the process once at each of its system calls.

    The other processes continue to run.
    """
    program = family(tmp_path)

    def sweep() -> tuple[Trace, dict[str, list[str | None]]]:
        whole = run_traced(program)
        killed: dict[str, list[str | None]] = {role: [] for role in whole.calls}
        for role, names in killed.items():
            while (trace := run_traced(program, kill=KillAt(role, len(names)))).hit:
                assert trace.exits.pop(role) == -signal.SIGKILL
                assert not any(trace.exits.values())
                names.append(trace.killed)
        return whole, killed

    whole, killed = drive(sweep)
    assert set(killed) == {"0", "0.0", "0.0.0", "0.1"}
    assert killed == whole.calls


def test_roles_and_calls_are_the_same_in_every_run(tmp_path: Path) -> None:
    """The names of processes and the numbers of their calls are the same in every run.

    The names follow the order of forks. Calls of the memory allocator are not counted.
    """
    sizes = range(0, 4_000_000, 200_000)
    traces = drive(lambda: [run_traced(family(tmp_path, heap=size)) for size in sizes])
    assert all(trace.calls == traces[0].calls for trace in traces)
    assert all(trace.exits == dict.fromkeys(("0", "0.0", "0.0.0", "0.1"), 0) for trace in traces)


def test_call_that_the_kernel_restarts_counts_once() -> None:
    """A read that a signal interrupts and the kernel restarts is counted once.

    In this test, the death of a child causes the signal.
    """

    def program() -> None:
        parent, (reader, writer) = os.getpid(), os.pipe()
        first = in_child(lambda: wait_until(lambda: ptrace.current_call(parent) == "read"))
        in_child(lambda: wait_until(lambda: state_of(first) == "Z") and os.write(writer, b"x"))
        os.read(reader, 1)

    traces = drive(lambda: [run_traced(program) for _ in range(5)])
    assert [trace.calls["0"].count("read") for trace in traces] == [1] * 5


def test_a_killed_process_does_not_make_the_call(tmp_path: Path) -> None:
    """A process that is killed before a write does not write. The file has only the byte of the run without a kill."""
    path = tmp_path / "file"
    kill = before("write", lambda: write_file(path, b"x"))
    trace = drive(lambda: run_traced(lambda: write_file(path, b"y"), kill=kill))
    assert (trace.hit, trace.killed) == (True, "write")
    assert path.read_bytes() == b"x"


def test_double_kill_kills_both_processes_at_once(tmp_path: Path) -> None:
    """A double kill kills two processes at once, whatever the second process is doing.

    If the second process does not exist yet, only the first is killed.
    """

    def program() -> None:
        child = in_child(signal.pause)
        write_file(tmp_path / "file", b"x")
        os.kill(child, signal.SIGKILL)

    kill = replace(before("write", program), also=("0.0", "0.7"))
    trace = drive(lambda: run_traced(program, kill=kill))
    assert (trace.victims, trace.hung) == (("0", "0.0"), {})
    assert trace.exits == {"0": -signal.SIGKILL, "0.0": -signal.SIGKILL}
    assert (tmp_path / "file").read_bytes() == b"x"


@pytest.mark.parametrize("answers", ["ok ENOSPC ok", "ok ENOSPC ENOSPC"])
def test_failed_write_returns_an_error_and_writes_nothing(tmp_path: Path, answers: str) -> None:
    """If a write is set to fail, it returns an error and writes no byte. Other processes are not affected.

    The test lets only the second write fail, or the second and all later writes.
    """

    def answer(letter: bytes) -> str:
        try:
            write_file(tmp_path / "file", letter)
        except OSError as error:
            return errno.errorcode[error.errno or 0]
        return "ok"

    def program() -> None:
        # The program reports the outcome by mkdir, because a write might fail too.
        (tmp_path / " ".join(answer(letter) for letter in (b"a", b"b", b"c"))).mkdir()
        os.waitpid(in_child(lambda: write_file(tmp_path / "child", b"fine")), 0)

    fail = FailAt("0", 1, WRITES, errno.ENOSPC, persistent=not answers.endswith("ok"))
    trace = drive(lambda: run_traced(program, fail=fail))
    assert trace.failed == ["write"] * answers.count("ENOSPC")
    assert (tmp_path / answers).is_dir()
    assert (tmp_path / "file").read_bytes() == (b"a" if fail.persistent else b"ac")
    assert (tmp_path / "child").read_bytes() == b"fine"


@pytest.mark.parametrize("reached", ["kill and fail", "kill", "fail"])
def test_kill_with_a_failure_is_a_hit_only_when_both_happen(tmp_path: Path, reached: str) -> None:
    """If a kill and a failure are tried together, the try counts only if the process was killed and the call failed.

    So the series of tries ends when one of the two does not happen any more.
    """

    def program() -> None:
        with suppress(OSError):
            write_file(tmp_path / "file", b"x")
        (tmp_path / "survived").mkdir(exist_ok=True)

    kill = before("mkdir", program) if "kill" in reached else KillAt("0", 10_000)
    fail = FailAt("0", 0 if "fail" in reached else 10_000, WRITES, errno.ENOSPC)
    trace = drive(lambda: run_traced(program, kill=kill, fail=fail))
    assert trace.hit == (reached == "kill and fail")
    assert (bool(trace.killed), bool(trace.failed)) == ("kill" in reached, "fail" in reached)


def test_fail_at_refuses_the_name_of_an_unknown_call() -> None:
    """`FailAt` refuses a misspelled name of a system call.

    Otherwise, the crash tests with this name would end at once and look complete.
    """
    with pytest.raises(ValueError, match="wirte"):
        FailAt("0", 0, frozenset({"wirte"}), errno.EIO)


@pytest.mark.parametrize("killed", [False, True])
def test_a_detached_grandchild_is_followed_and_waited_for(tmp_path: Path, killed: bool) -> None:
    """A process is traced and waited for even if it is detached, has no open descriptors and outlives its parents."""

    def grandchild(driver: int) -> None:
        os.setsid()
        os.closerange(0, 1024)
        wait_until(lambda: os.getppid() == driver)
        write_file(tmp_path / "late", b"x")

    def program() -> None:
        driver = os.getppid()
        in_child(lambda: (in_child(lambda: grandchild(driver)), os.getuid()))

    kill = before("getuid", program, "0.0") if killed else None
    (tmp_path / "late").unlink(missing_ok=True)
    trace = drive(lambda: run_traced(program, kill=kill))
    assert (tmp_path / "late").read_bytes() == b"x"
    assert trace.exits == {"0": 0, "0.0": -signal.SIGKILL if killed else 0, "0.0.0": 0}


@pytest.mark.parametrize("kill", [None, KillAt("0", 1)])
def test_hanging_process_is_reported_with_its_role_and_killed(kill: KillAt | None) -> None:
    """A process that hangs is killed, and reported with its name and the call that blocks it.

    This holds even for a process that was not traced.
    """

    def program() -> None:
        in_child(signal.pause)
        os.getppid()

    trace = drive(lambda: run_traced(program, kill=kill, timeout_s=0.3))
    assert (trace.hung, trace.hit) == ({"0.0": "pause"}, kill is not None)
    assert trace.exits["0.0"] == -signal.SIGKILL


def test_signals_of_traced_processes_are_delivered() -> None:
    """Signals reach traced processes: a parent sees that its child stops, continues and exits."""

    def program() -> int:
        stopped = in_child(signal.pause)
        os.kill(stopped, signal.SIGSTOP)
        assert os.WSTOPSIG(os.waitpid(stopped, os.WUNTRACED)[1]) == signal.SIGSTOP
        assert state_of(stopped) in ("t", "T")
        os.kill(stopped, signal.SIGCONT)
        assert os.WIFCONTINUED(os.waitpid(stopped, os.WCONTINUED)[1])
        os.kill(stopped, signal.SIGTERM)
        return os.WTERMSIG(os.waitpid(stopped, 0)[1])

    trace = drive(lambda: run_traced(program))
    assert trace.exits == {"0": signal.SIGTERM, "0.0": -signal.SIGTERM}


def test_exec_spawned_programs_and_threads_work_under_the_tracer(tmp_path: Path) -> None:
    """A traced program can call exec, spawn programs and use threads.

    A process keeps its name when it executes another program, and a thread has a name of its own.
    """

    def program() -> int:
        os.write(1, b"before ")
        with ThreadPoolExecutor() as pool:
            pool.submit(os.getpid)
        return subprocess.run(["sh", "-c", "echo ran; exit 3"], check=False).returncode

    trace = drive(lambda: run_traced(program, stdout=tmp_path / "output"))
    assert (tmp_path / "output").read_text() == "before ran\n"
    assert trace.exits["0"] == trace.exits["0.1"] == 3
    assert "execve" in trace.calls["0.1"]


def test_exception_of_the_program_is_printed_and_exits_70(tmp_path: Path) -> None:
    """If the program raises an exception, it is printed, and the exit code is 70, unlike that of a killed process."""
    trace = drive(lambda: run_traced(lambda: 1 / 0, stdout=tmp_path / "output"))
    assert trace.exits == {"0": 70}
    assert "ZeroDivisionError" in (tmp_path / "output").read_text()
