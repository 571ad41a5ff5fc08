"""Run a function as a traced process tree, and kill a process or let a system call fail in it.

A process is named by its role, which follows the forks: "0" runs the function, "0.0" is its first child, and "0.0.1" is
the second child of "0.0". Process ids change from run to run, and roles do not.

A point is a number of calls of one role. Two kinds of call are not counted. Calls of the memory allocator (brk,
anonymous mmap and the like) depend on what the parent allocated before, and no other process can see them. A call that
the kernel restarts after a signal is counted once, because the time of the signal varies.
"""

import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast

from tests.crash import ptrace

T = TypeVar("T")


@dataclass(frozen=True)
class KillAt:
    """A SIGKILL for a process just before it makes its call number `call`, counted from 0.

    `role` is the name of the process. The processes named in `also` are killed at the same time.
    """

    role: str
    call: int
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class FailAt:
    """A failure of a system call, which is not made and returns an error.

    `role` is the name of the process. `call` is the number of the call, counted from 0, among the calls of this process
    whose names are in `names`.
    """

    role: str
    call: int
    names: frozenset[str]  # Only calls of these names are counted, even calls of the memory allocator.
    errno: int
    persistent: bool = False  # whether every later call in `names` fails too

    def __post_init__(self) -> None:
        """Raise `ValueError` if the name of a system call is misspelled.

        Crash tests with such a name would end at once and look complete.
        """
        if unknown := self.names - ptrace.KNOWN_NAMES:
            raise ValueError(f"unknown system calls: {', '.join(sorted(unknown))}")


@dataclass
class Trace:
    """The record of one run.

    If a kill or failure was requested, calls are recorded only for its processes, and only until it happens.
    """

    hit: bool = False  # whether the requested kill and the requested failure have happened
    killed: str | None = None  # the name of the call before which the process was killed
    victims: tuple[str, ...] = ()  # the names of the killed processes; names without a running process are left out
    failed: list[str] = field(default_factory=list)
    calls: dict[str, list[str]] = field(default_factory=dict)  # name of a process -> names of its calls
    exits: dict[str, int] = field(default_factory=dict)  # name of a process -> exit code, or -signal
    hung: dict[str, str] = field(default_factory=dict)  # name of a surviving process -> its last call


@dataclass(slots=True)
class _Process:
    pid: int
    role: str
    children: int = 0
    last_number: int = -1
    interrupted: bool = False
    error: int | None = None  # the errno of a skipped call, which is set as the call's result at its exit


class _Tracer:
    def __init__(self, kill: KillAt | None, fail: FailAt | None) -> None:
        self.trace = Trace()
        self.kill = kill
        self.fail = fail
        self.fail_seen = 0
        self.processes: dict[int, _Process] = {}
        self.watched = {point.role for point in (kill, fail) if point}  # if empty, all processes are watched

    def follow(self, root: int, timeout_s: float) -> Trace:
        """Trace the tree until all its processes have ended. After the timeout, kill the remaining processes."""
        self.processes[root] = _Process(root, "0")
        deadline = time.monotonic() + timeout_s
        while True:
            # SIGCHLD is blocked and stays pending, so a stop before this line is not missed.
            signal.sigtimedwait([signal.SIGCHLD], max(0.0, deadline - time.monotonic()))
            stops, alone = ptrace.take_stops()
            for pid, status in stops:
                # ESRCH means that the process was killed while it was stopped. Its end is reported separately.
                with suppress(ProcessLookupError):
                    self._serve(pid, status)
            # Without children, no descendant is left either: this process is a subreaper, so every living
            # descendant has a living ancestor among its children.
            if alone:
                return self.trace
            if time.monotonic() >= deadline:
                self._end_all()
                deadline = time.monotonic() + 0.1  # Kill the processes that were forked since.

    def _end_all(self) -> None:
        for process in self.processes.values():
            last = ptrace.current_call(process.pid) or ptrace.name_of(process.last_number)
            self.trace.hung.setdefault(process.role, last)
            with suppress(ProcessLookupError):  # Another thread of the process called exec, which ended this thread.
                os.kill(process.pid, signal.SIGKILL)

    def _adopt(self, pid: int, parent: _Process | None) -> None:
        role = f"{parent.role}.{parent.children}" if parent else f"?{pid}"
        self.processes[pid] = _Process(pid, role)
        if parent:
            parent.children += 1

    def _serve(self, pid: int, status: int) -> None:
        if not os.WIFSTOPPED(status):
            # A child is reported a second time if its parent leaves it as a zombie.
            if ended := self.processes.pop(pid, None):
                self.trace.exits[ended.role] = os.waitstatus_to_exitcode(status)
            return
        if pid not in self.processes:
            # The first stop of this process came before the event for its parent's fork. If the parent was killed
            # inside fork, the event never comes. So the event is not waited for.
            self._adopt(pid, self.processes.get(ptrace.parent_of(pid)))
        process = self.processes[pid]
        event, signum = status >> 16, os.WSTOPSIG(status)
        if signum == ptrace.SYSCALL_STOP:
            self._serve_call(process)
        elif event == ptrace.EVENT_STOP and signum in ptrace.STOP_SIGNALS:
            ptrace.resume(pid, ptrace.LISTEN)
        else:
            forked = event in ptrace.FORK_EVENTS
            if forked and (child := ptrace.new_child(pid)) not in self.processes:
                self._adopt(child, process)
            self._resume(process, 0 if event else signum)

    def _resume(self, process: _Process, signum: int = 0) -> None:
        fails_on = self.fail and self.fail.persistent and process.role == self.fail.role
        over = self.trace.hit and not fails_on and process.error is None
        watched = not over and (not self.watched or process.role in self.watched)
        ptrace.resume(process.pid, ptrace.SYSCALL if watched else ptrace.CONT, signum)

    def _serve_call(self, process: _Process) -> None:
        stop = ptrace.read_stop(process.pid)
        if stop.stage == ptrace.ENTRY:
            name = ptrace.name_at(process.pid, stop)
            same = stop.value == process.last_number or name == "restart_syscall"
            again, process.interrupted = process.interrupted and same, False
            if not again:
                process.last_number = stop.value
                self._fail_if_due(process, name)
                if not ptrace.is_heap_call(name, stop) and self._killed_if_due(process, name):
                    return
        else:
            process.interrupted = stop.value in ptrace.RESTARTS
            if process.error is not None:
                ptrace.set_result(process.pid, -process.error)
                process.error = None
        self._resume(process)

    def _fail_if_due(self, process: _Process, name: str) -> None:
        fail = self.fail
        if fail is None or process.role != fail.role or name not in fail.names:
            return
        if self.fail_seen == fail.call or (fail.persistent and self.fail_seen > fail.call):
            ptrace.skip_call(process.pid)
            process.error = fail.errno
            self.trace.failed.append(name)
            self.trace.hit = self.kill is None or self.trace.killed is not None
        self.fail_seen += 1

    def _killed_if_due(self, process: _Process, name: str) -> bool:
        kill, calls = self.kill, self.trace.calls.setdefault(process.role, [])
        if kill is None or process.role != kill.role or len(calls) != kill.call:
            calls.append(name)
            return False
        # The stopped process is killed last. So no process can react to the death of another one.
        victims = [other for other in self.processes.values() if other.role in kill.also]
        for victim in (*victims, process):
            os.kill(victim.pid, signal.SIGKILL)
        self.trace.killed = name
        self.trace.victims = (process.role, *(victim.role for victim in victims))
        self.trace.hit = self.fail is None or bool(self.trace.failed)
        return True


def run_traced(
    program: Callable[[], object],
    *,
    kill: KillAt | None = None,
    fail: FailAt | None = None,
    stdout: Path = Path(os.devnull),
    timeout_s: float = 20.0,
) -> Trace:
    """Run `program` in a traced child until all its descendants have exited. Call this inside `drive`.

    The exit code is the result of `program` if that is an int. If `program` raises an exception, the exception is
    printed and the exit code is 70. The output of all processes is appended to `stdout`.
    """
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        raise RuntimeError("run_traced needs a process of one thread\nhint: call it in drive()")
    ptrace.become_subreaper()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    output = os.open(stdout, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def prepare() -> None:
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        # Under a test runner, stdout and stderr may write to its capture file instead of descriptors 1 and 2.
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    try:
        root = ptrace.fork_traced(prepare, program)
        return _Tracer(kill, fail).follow(root, timeout_s)
    finally:
        os.close(output)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def drive(sweep: Callable[[], T]) -> T:
    """Call `sweep` in a separate process, in which `run_traced` works, and return its result.

    The process has one thread and no children. So waiting for any child does not reap a child of the test runner. The
    process and the processes that it traces stay on one CPU, because waking a process on another CPU takes three times
    as long. The result must be picklable.
    """
    receiver, sender = multiprocessing.Pipe(duplex=False)

    def work() -> None:
        try:
            os.sched_setaffinity(0, {ptrace.current_processor()})
            sender.send((sweep(), None))
        except BaseException:  # noqa: BLE001 - exceptions of pytest such as `Failed` are not derived from Exception
            sender.send((None, traceback.format_exc()))

    driver = multiprocessing.get_context("fork").Process(target=work)
    driver.start()
    sender.close()
    result, failure = receiver.recv()
    driver.join()
    if failure:
        raise AssertionError(f"in the driver process:\n{failure}")
    return cast("T", result)
