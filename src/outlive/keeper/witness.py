"""The witness: the command's direct parent, which records how the command ended.

The witness uses only the bundle. It does not use the ledger, the network or the configuration. So only a SIGKILL can
keep it from writing the exit record. It records the status of the dead command before reaping it (WNOWAIT). If the
witness is killed between these two steps, the keeper inherits the zombie and reads the same status again.

The witness forks a child process. The child executes the command when the keeper sends a message of one byte, which is
called the go.
"""

from __future__ import annotations

import os
import time
from errno import EACCES, ECHILD, EIO, ENOENT, ENOSYS, ENOTDIR
from marshal import dumps, loads
from select import POLLIN, poll

from outlive.bundle import record
from outlive.domain.value import Value
from outlive.linux.processes import WITNESS_NAME, has_executed, identify
from outlive.linux.syscalls import become_subreaper, name_process, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from outlive.linux.shared_listener import ListenerFallback, SharedListener

_SHELL_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_OOM_PREFERENCE = 300
_SETTLING_TAKES_MS = 100
_GLANCES, _BETWEEN_GLANCES = 20, 0.0005
SETTLED = b"s"
# SIGPIPE would kill the child process when it writes to a dead process. SIGXFSZ would kill it when the record exceeds
# the command's own limit of file sizes.
_IGNORED_UNTIL_EXEC = (signal.SIGPIPE, signal.SIGXFSZ)
_DESCRIPTORS = ("lock", "record", "output", "voice", "begin")
_PLAIN = ("argv", "cwd", "environ", "umask", "limits", "input", "prompt")


class Start(Value):
    """The data and the descriptors that are needed to start the command."""

    lock: int
    record: int
    output: int
    voice: int
    """The pipe through which the witness sends messages to the keeper."""
    begin: int
    """The pipe through which the keeper lets the command begin.

    It hangs up when the keeper dies.
    """
    argv: tuple[str, ...]
    cwd: str
    environ: dict[str, str]
    umask: int
    limits: tuple[tuple[int, tuple[int, int]], ...]
    input: str | None = None
    """The FIFO that the command reads as its input. None if the command takes no input."""
    prompt: str | None = None
    """The file that an agent's client reads as its whole input.

    None if the command is not an agent's client.
    """
    ports: tuple[int, ...] = ()
    """The sockets of leased ports, which the witness has inherited from the keeper."""
    shared_listener: SharedListener | None = None
    """The channel for the descriptor that reports the command's system calls.

    None if the calls are not observed.
    """


def note_of(start: Start) -> tuple[bytes, tuple[int, ...]]:
    """Return bytes and descriptors from which another process can start the command."""
    shared_listener = start.shared_listener
    seen, fds = (None, ()) if shared_listener is None else shared_listener.as_parts()
    fields = {name: getattr(start, name) for name in _PLAIN}
    return dumps((fields, seen)), (*(getattr(start, name) for name in _DESCRIPTORS), *fds)


def start_from(note: bytes, descriptors: list[int]) -> Start:
    """Return the `Start` that another process has sent as bytes and descriptors.

    `note` are these bytes.
    """
    fields, seen = loads(note)  # noqa: S302 - the keeper of this witness wrote these bytes
    own = len(_DESCRIPTORS)
    fields.update(zip(_DESCRIPTORS, descriptors[:own], strict=True))
    shared_listener = None
    if seen is not None:
        from outlive.linux.shared_listener import SharedListener  # noqa: PLC0415 - only observed commands need this import

        shared_listener = SharedListener.from_parts(seen, descriptors[own:])
    return Start(**fields, shared_listener=shared_listener)


def serve(start: Start) -> NoReturn:
    """Serve as the witness of one command, then exit."""
    become_witness()
    witness_until_recorded(start)
    os._exit(0)


def become_witness() -> None:
    """Make this process a witness: let it inherit orphans, and set its name."""
    become_subreaper()
    name_process(WITNESS_NAME)


def witness_until_recorded(start: Start, own: tuple[int, ...] = ()) -> bool:
    """Prepare the command, let it begin when the keeper says so, and record its end.

    The witness sends messages to the keeper through the pipe `start.voice`: first `ready`, then `started` or `failed`,
    and `exited` at the end of a started command. The witness continues if the keeper dies. `own` are descriptors of the
    witness that the child process closes. Returns whether no process of the attempt is left.
    """
    voice, begin = start.voice, start.begin
    if start.input is not None:
        _open_input(start.input)
    failure_read, failure_write = os.pipe()
    stand_in = None if start.shared_listener is None else start.shared_listener.stand_in(begin)
    try:
        witness, command = os.getpid(), os.fork()
    except OSError as error:
        record.write_slot(start.record, "exit", error=error.errno, what="fork", at=_now())
        _say(voice, b"failed\n")
        return False
    if command == 0:
        for fd in (voice, *own):  # an open copy in this child would hide the witness's death from the keeper
            os.close(fd)
        _become_command(failure_write, start, witness)
    os.close(failure_write)
    if stand_in is not None:
        stand_in.begin(command)
    process = _identities(command)
    record.write_slot(start.record, "process", durable=False, **process, started="unknown")
    _say(voice, b"ready\n")
    failure = os.read(failure_read, 64).decode("ascii")  # empty if the child's exec or death has closed the pipe
    os.close(failure_read)
    if failure or has_executed(command) is False:
        _record_failure(start.record, command, failure)
        _say(voice, b"failed\n")
    else:
        process["monotonic"] = time.monotonic_ns()  # the timeout does not count the wait for the keeper
        record.write_slot(start.record, "process", durable=False, **process, started="yes")
        _say(voice, b"started\n")
        _watch(start.record, command, voice, begin)
    if stand_in is not None:
        _linger(start, stand_in)
    return _is_alone()


def _record_failure(record_fd: int, command: int, failure: str) -> None:
    """Wait for a child process that could not execute the command. Record the reason.

    `failure` is the reason. It is empty if the child process died without giving one.
    """
    seen = os.waitid(os.P_PID, command, os.WEXITED | os.WNOWAIT)
    if failure and record.read_slot(record_fd, "exit") is None:  # the child process could not write the record itself
        step, _, number = failure.partition(" ")
        record.write_slot(record_fd, "exit", error=number, what=step, at=_now())
    elif seen is not None:
        write_unbegun(record_fd, seen.si_code, seen.si_status)
    os.waitpid(command, 0)


def _is_alone() -> bool:
    """Wait briefly for the children to exit. Return whether no child is left."""
    for _ in range(_GLANCES):
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return True
        time.sleep(_BETWEEN_GLANCES)
    return False


def _open_input(path: str) -> None:
    """Create the input FIFO, and keep it open, so that several senders can use it."""
    os.mkfifo(path, 0o600)
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)

    def end(*_: object) -> None:
        nonlocal fd
        if fd >= 0:
            os.unlink(path)
            os.close(fd)
            fd = -1

    signal.signal(signal.SIGUSR1, end)


def _linger(start: Start, stand_in: ListenerFallback) -> None:
    """Wait until no observed process is alive.

    If the keeper dies, the witness answers the observed calls through `stand_in`.
    """
    for fd in (start.lock, start.record, start.output, *start.ports):
        os.close(fd)  # as long as a process has the lock file open, the attempt counts as running
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    stand_in.wait()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _watch(record_fd: int, command: int, voice: int, keeper: int) -> None:
    """Wait for the command, and reap the orphans that this process inherits meanwhile.

    When the end is in the exit record, the witness notifies the keeper through `voice`. The keeper makes the end
    durable before it notifies any other process. If the keeper is dead or takes too long, the witness makes the record
    durable.
    """
    while True:
        seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        if seen is None:
            continue
        if seen.si_pid == command:
            write_exit(record_fd, seen.si_code, seen.si_status, durable=False)
            _say(voice, b"exited\n")
            if not _has_settled(keeper):
                os.fdatasync(record_fd)
        os.waitpid(seen.si_pid, 0)
        if seen.si_pid == command:
            return


def write_exit(record_fd: int, how: int, status: int, *, durable: bool = True) -> None:
    """Record the end of the command, exactly as the kernel reported it."""
    if how == os.CLD_EXITED:
        record.write_slot(record_fd, "exit", durable=durable, code=status, at=_now())
    else:
        record.write_slot(record_fd, "exit", durable=durable, signal=status, began="yes", at=_now())


def write_unbegun(record_fd: int, how: int, status: int) -> None:
    """Record that the child process ended before its exec.

    Does nothing if the child process has already recorded the reason.
    """
    if record.read_slot(record_fd, "exit") is not None:
        return
    if how == os.CLD_EXITED:
        record.write_slot(record_fd, "exit", error=ECHILD, what="go", at=_now())
    else:
        record.write_slot(record_fd, "exit", error=ECHILD, what="go", signal=status, at=_now())


def _identities(command: int) -> dict[str, object]:
    """Return pid, inode and start time of the command and of the witness.

    Other processes use these values to find the two. The caller need not sync the values to disk, because after a power
    cut the processes are gone.
    """
    child, me = identify(command), identify(os.getpid())
    return {
        "pid": child.pid,
        "inode": child.inode,
        "start": child.start,
        "witness": me.pid,
        "witness_inode": me.inode,
        "witness_start": me.start,
        "boot": child.boot,
        "namespace": child.namespace,
        "monotonic": time.monotonic_ns(),
    }


def _become_command(failure: int, start: Start, witness: int) -> NoReturn:
    """Prepare this fork, wait until the command may begin, and execute the command.

    If a step fails, the reason is written to the pipe `failure`. `witness` is the pid of the witness.
    """
    step, listener = "exec", None
    try:
        _prepare(start)
        step = "chdir"
        os.chdir(start.cwd)
        step = "go"
        if start.shared_listener is not None:
            listener = start.shared_listener.open(witness, start.begin)
        if os.read(start.begin, 1) != b"g":
            raise ChildProcessError(ECHILD, "the keeper is gone")
        step = "exec"
        if start.shared_listener is not None:
            start.shared_listener.let_go(listener)
        for each in _IGNORED_UNTIL_EXEC:
            signal.signal(each, signal.SIG_DFL)
        _execute(start.argv, start.environ)
    except BaseException as error:  # noqa: BLE001 - after any error, the record must show that the command did not run
        number = error.errno if isinstance(error, OSError) and error.errno else EIO
        # The keeper and the witness died while the exec waited for their answer. So the command itself did not fail.
        is_unanswered = listener is not None and number == ENOSYS
        _report(failure, start.record, "go" if is_unanswered else step, number)
    finally:
        os._exit(127)


def _prepare(start: Start) -> None:
    """Give this fork all properties that the command needs, except its directory."""
    os.setsid()
    # The exec resets a signal that has a handler. An ignored signal would stay ignored, so it is reset here.
    for number in range(1, signal.NSIG):
        if signal.getsignal(number) == signal.SIG_IGN and number not in _IGNORED_UNTIL_EXEC:
            signal.signal(number, signal.SIG_DFL)
    for number in _IGNORED_UNTIL_EXEC:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _prefer_for_oom()
    for standard in (1, 2):  # descriptor 0 is /dev/null already
        os.dup2(start.output, standard)
    if start.input is not None:
        # Open the FIFO only for reading. With a writing end of its own, the command would never see the input's end.
        fd = os.open(start.input, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(fd, True)
        os.dup2(fd, 0)
    if start.prompt is not None:
        os.dup2(os.open(start.prompt, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), 0)
    os.umask(start.umask)
    if start.limits:
        from resource import setrlimit  # noqa: PLC0415 - only a process that starts many keepers sets limits, and it has already loaded the imported module

        for which, bounds in start.limits:
            setrlimit(which, bounds)


def _report(failure: int, record_fd: int, step: str, number: int) -> None:
    """Record why the command was not executed, and report it to the witness.

    `failure` is the pipe to the witness. `step` is the failed step, and `number` its error number.
    """
    for each in _IGNORED_UNTIL_EXEC:
        signal.signal(each, signal.SIG_IGN)
    try:
        # Write the record here, because the witness may be dead. This fork's exit code 127 is not the command's.
        record.write_slot(record_fd, "exit", error=number, what=step, at=_now())
    finally:
        os.write(failure, f"{step} {number}".encode("ascii"))


def _execute(argv: tuple[str, ...], environ: dict[str, str]) -> NoReturn:
    """Replace this process as `os.execvpe` would, without importing many modules."""
    name = argv[0]
    if "/" in name:
        os.execve(name, argv, environ)
    failure = ENOENT
    for directory in environ.get("PATH", _SHELL_DEFAULT_PATH).split(":"):
        path = f"{directory or '.'}/{name}"
        if not os.access(path, os.F_OK):
            continue  # skip a missing file, because each exec is a system call that costs time if it is observed
        try:
            os.execve(path, argv, environ)
        except OSError as error:
            if error.errno == EACCES:
                failure = EACCES
            elif error.errno not in (ENOENT, ENOTDIR):
                raise
    raise OSError(failure, os.strerror(failure))


def _prefer_for_oom() -> None:
    """Make the kernel kill the command before its witness if memory runs out."""
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    try:
        score = min(int(os.read(fd, 16)) + _OOM_PREFERENCE, 1000)
        os.pwrite(fd, b"%d" % score, 0)
    except (OSError, ValueError):
        pass
    finally:
        os.close(fd)


def _has_settled(keeper: int) -> bool:
    """Return whether the keeper reports in time that the exit record is durable."""
    waiting = poll()
    waiting.register(keeper, POLLIN)
    return bool(waiting.poll(_SETTLING_TAKES_MS)) and os.read(keeper, 1) == SETTLED


def _say(voice: int, word: bytes) -> None:
    try:
        os.write(voice, word)
    except OSError:
        pass  # the keeper is gone, and a later reader will find the exit record


def _now() -> int:
    return time.time_ns() // 1000
