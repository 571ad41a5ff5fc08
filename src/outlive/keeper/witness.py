"""The witness: the command's direct parent, which writes down how it ended.

It knows the bundle and nothing else: no ledger, no network, no configuration, so that nothing
but a SIGKILL can keep it from writing the exit record. It looks at the dead command without
reaping it (WNOWAIT), records what it saw, and only then reaps: if it is killed in between, the
keeper inherits the zombie and reads the same status again.
"""

from __future__ import annotations

import os
import time
from errno import EACCES, ECHILD, EIO, ENOENT, ENOTDIR
from marshal import dumps, loads
from select import POLLIN, poll

from outlive.bundle import record
from outlive.bundle.kernel import become_subreaper, name_process, signal
from outlive.bundle.processes import WITNESS_NAME, identify, name_of
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from outlive.bundle.eyes import Eyes, StandIn

_SHELL_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_OOM_PREFERENCE = 300
_SETTLING_TAKES_MS = 100
_GLANCES, _BETWEEN_GLANCES = 20, 0.0005
SETTLED = b"s"
_DESCRIPTORS = ("lock", "record", "output", "voice", "begin")
_PLAIN = ("argv", "cwd", "environ", "umask", "limits", "input")


class Start(Value):
    """How the command is to be started, and what is held meanwhile."""

    lock: int
    record: int
    output: int
    voice: int
    """Through which we speak to the keeper."""
    begin: int
    """Through which the keeper says when, and that it lives."""
    argv: tuple[str, ...]
    cwd: str
    environ: dict[str, str]
    umask: int
    limits: tuple[tuple[int, tuple[int, int]], ...]
    input: str | None = None
    """The FIFO that it is to read, if it reads anything."""
    eyes: Eyes | None = None
    """If it is to be observed."""


def note_of(start: Start) -> tuple[bytes, tuple[int, ...]]:
    """What another process needs to start it: a note, and the descriptors that it speaks of."""
    eyes = start.eyes
    seen, fds = (None, ()) if eyes is None else eyes.as_parts()
    fields = {name: getattr(start, name) for name in _PLAIN}
    return dumps((fields, seen)), (*(getattr(start, name) for name in _DESCRIPTORS), *fds)


def start_from(note: bytes, descriptors: list[int]) -> Start:
    """How it is to be started, from what another process has sent."""
    fields, seen = loads(note)  # noqa: S302 - our own keeper wrote it
    own = len(_DESCRIPTORS)
    fields.update(zip(_DESCRIPTORS, descriptors[:own], strict=True))
    eyes = None
    if seen is not None:
        from outlive.bundle.eyes import Eyes  # noqa: PLC0415 - not everybody is observed

        eyes = Eyes.from_parts(seen, descriptors[own:])
    return Start(**fields, eyes=eyes)


def serve(start: Start) -> NoReturn:
    """Be the witness of one command. Never returns."""
    become_witness()
    witness_until_recorded(start)
    os._exit(0)


def become_witness() -> None:
    """What others know us by."""
    become_subreaper()
    name_process(WITNESS_NAME)


def witness_until_recorded(start: Start, own: tuple[int, ...] = ()) -> bool:
    """Prepare the command, let it begin at the keeper's go, watch it, record its end.

    Speaks to the keeper through `voice`: `ready` once the command could begin, `started` or
    `failed`, `exited`. The keeper may be dead by any line of this; then nobody hears the voice,
    and the work is done all the same. Returns whether nothing and nobody of it is left. `own` are
    descriptors of ours that the command-to-be has no use for.
    """
    voice, begin = start.voice, start.begin
    if start.input is not None:
        _open_input(start.input)
    failure_read, failure_write = os.pipe()
    stand_in = None if start.eyes is None else start.eyes.stand_in(begin)
    try:
        command = os.fork()
    except OSError as error:
        record.write_slot(start.record, "exit", error=error.errno, what="fork", at=_now())
        _say(voice, b"failed\n")
        return False
    if command == 0:
        for fd in (voice, *own):  # or the keeper, which listens for our word, would not notice our death
            os.close(fd)
        _become_command(failure_write, start)
    os.close(failure_write)
    if stand_in is not None:
        stand_in.begin(command)
    process = _identities(command)
    record.write_slot(start.record, "process", durable=False, **process, started="unknown")
    _say(voice, b"ready\n")
    failure = os.read(failure_read, 64).decode("ascii")  # nothing, if the exec closed the other end
    os.close(failure_read)
    if failure:
        os.waitpid(command, 0)
        if record.read_slot(start.record, "exit") is None:  # it was not able to write it itself
            step, _, number = failure.partition(" ")
            record.write_slot(start.record, "exit", error=number, what=step, at=_now())
        _say(voice, b"failed\n")
    else:
        process["monotonic"] = time.monotonic_ns()  # its time runs from now on, and not while it waited for the go
        record.write_slot(start.record, "process", durable=False, **process, started="yes")
        _say(voice, b"started\n")
        _watch(start.record, command, voice, begin)
    if stand_in is not None:
        _linger(start, stand_in)
    return _is_alone()


def _is_alone() -> bool:
    """Whether we have no child, of whoever it was. One that nobody filters any more may be dying still."""
    for _ in range(_GLANCES):
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return True
        time.sleep(_BETWEEN_GLANCES)
    return False


def _open_input(path: str) -> None:
    """Make the command's input, and hold it open: what several send one after the other is one input.

    Whoever means that there will be no more tells us by a signal (see `bundle.feeding`).
    """
    os.mkfifo(path, 0o600)
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)

    def end(*_: object) -> None:
        nonlocal fd
        if fd >= 0:
            os.unlink(path)
            os.close(fd)
            fd = -1

    signal.signal(signal.SIGUSR1, end)


def _linger(start: Start, stand_in: StandIn) -> None:
    """Stay for those that the command left behind: filtered as they are, they need somebody who can answer."""
    for fd in (start.lock, start.record, start.output):
        os.close(fd)  # nobody may think that the attempt is not over
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    stand_in.wait()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _watch(record_fd: int, command: int, voice: int, keeper: int) -> None:
    """Wait for the command, reaping the orphans that come our way meanwhile.

    The keeper is told as soon as the end is on record, and makes it durable in the ledger; nobody
    else is told before. If it takes too long, or is dead, we make the record durable instead.
    """
    while True:
        seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        if seen is None:
            continue
        if seen.si_pid == command:
            write_exit(record_fd, command, seen.si_code, seen.si_status, durable=False)
            _say(voice, b"exited\n")
            if not _has_settled(keeper):
                os.fdatasync(record_fd)
        os.waitpid(seen.si_pid, 0)
        if seen.si_pid == command:
            return


def write_exit(record_fd: int, command: int, how: int, status: int, *, durable: bool = True) -> None:
    """Make the end of the command durable: exactly what the kernel said of it.

    Killed while it was still a fork of ours, it may not have begun: its name is the first thing
    that an exec changes, and it can be read as long as the dead process is not reaped.
    """
    if how == os.CLD_EXITED:
        record.write_slot(record_fd, "exit", durable=durable, code=status, at=_now())
    else:
        began = "unknown" if name_of(command) == WITNESS_NAME else "yes"
        record.write_slot(record_fd, "exit", durable=durable, signal=status, began=began, at=_now())


def _identities(command: int) -> dict[str, object]:
    """Who command and witness are, so that they can be found - and never confused - after us.

    It is not synced: after a power cut it means nothing, because the processes are gone too.
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


def _become_command(failure: int, start: Start) -> NoReturn:
    """Turn this fork into the command, but not before the keeper says so.

    Until then everything is prepared beside the keeper's own work: the attempt's row becomes
    `running` in the meantime, and nothing runs before it is.
    """
    step = "exec"
    try:
        os.setsid()
        # What is handled becomes the default by the exec; what is ignored would stay ignored.
        for number in range(1, signal.NSIG):
            if signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        _prefer_for_oom()
        for standard in (1, 2):  # 0 is /dev/null already
            os.dup2(start.output, standard)
        if start.input is not None:
            # Only to be read: with a writing end of its own it would wait for itself at the end of its input.
            fd = os.open(start.input, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.set_blocking(fd, True)
            os.dup2(fd, 0)
        os.umask(start.umask)
        if start.limits:
            from resource import setrlimit  # noqa: PLC0415 - only a spawner's launches carry limits, and it has it

            for which, bounds in start.limits:
                setrlimit(which, bounds)
        step = "chdir"
        os.chdir(start.cwd)
        if start.eyes is not None:
            start.eyes.open(start.begin)
        step = "go"
        if os.read(start.begin, 1) != b"g":
            raise ChildProcessError(ECHILD, "nobody is left who would learn how we end")
        step = "exec"
        _execute(start.argv, start.environ)
    except BaseException as error:  # noqa: BLE001 - whatever it was, it must be known that nothing ran
        number = error.errno if isinstance(error, OSError) and error.errno else EIO
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        try:
            # Written here first: the witness may be dead, and the 127 below is nobody's exit code.
            record.write_slot(start.record, "exit", error=number, what=step, at=_now())
        finally:
            os.write(failure, f"{step} {number}".encode("ascii"))
    finally:
        os._exit(127)


def _execute(argv: tuple[str, ...], environ: dict[str, str]) -> NoReturn:
    """Replace this process, searching PATH as a shell does; `os.execvpe` would import a lot."""
    name = argv[0]
    if "/" in name:
        os.execve(name, argv, environ)
    failure = ENOENT
    for directory in environ.get("PATH", _SHELL_DEFAULT_PATH).split(":"):
        path = f"{directory or '.'}/{name}"
        if not os.access(path, os.F_OK):
            continue  # not even tried: each try is a call that may be observed
        try:
            os.execve(path, argv, environ)
        except OSError as error:
            if error.errno == EACCES:
                failure = EACCES
            elif error.errno not in (ENOENT, ENOTDIR):
                raise
    raise OSError(failure, os.strerror(failure))


def _prefer_for_oom() -> None:
    """If memory runs out, the kernel should take the command and leave its witness."""
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
    """Wait for the keeper's word that the end is durable, but not for long; False if it does not come."""
    waiting = poll()
    waiting.register(keeper, POLLIN)
    return bool(waiting.poll(_SETTLING_TAKES_MS)) and os.read(keeper, 1) == SETTLED


def _say(voice: int, word: bytes) -> None:
    try:
        os.write(voice, word)
    except OSError:
        pass  # the keeper is gone; the record speaks for us


def _now() -> int:
    return time.time_ns() // 1000
