"""The keeper: the detached process that owns one attempt from start to settlement.

The functions are in the order in which a keeper calls them. While the command runs, the keeper has no lock on the
ledger and needs no further import. The keeper ignores the signals that end an ordinary process.

A "go" is a message of one byte. The launcher's go lets the keeper begin the attempt. The keeper's go lets the witness's
child process execute the command.
"""

from __future__ import annotations

import gc
import os
import time
from select import POLLIN, poll

from outlive.domain.tasks.evidence import Evidence
from outlive.domain.value import Value
from outlive.keeper import foreground_owner, witness
from outlive.keeper.exit_watch import OrphanedCommand, OwnWitness, command_of, never_begun
from outlive.linux.processes import KEEPER_NAME, close_all_but
from outlive.linux.syscalls import become_subreaper, name_process, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from outlive.bundle.attempt import HeldFiles
    from outlive.domain.tasks.evidence import IntentKind
    from outlive.keeper.exit_watch import ExitWatch
    from outlive.keeper.observation.observation import PreparedObservation, RunningObservation
    from outlive.keeper.plan import Plan
    from outlive.keeper.supervise import Supervision

    StartWitness = Callable[[witness.Start, tuple[int, ...]], object]

_IGNORED = (
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGTERM",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGUSR1",
    "SIGUSR2",
    "SIGXCPU",  # the kernel sends it at the limit of processor time, but only the command should obey that limit
)


class Prepared(Value):
    """A command that is ready to begin: its witness has been started."""

    sight: OwnWitness
    begin: int
    """The descriptor to which the keeper writes when the command may begin."""
    observation: PreparedObservation | None


def keep(plan: Plan, held: HeldFiles, go: int, ready: int) -> NoReturn:
    """Run one attempt in this new process: start, supervise and settle it.

    `go` is the descriptor on which the launcher reports that the attempt's row in the ledger is durable. `ready` is the
    descriptor to which the keeper writes its answer. If the launcher, the keeper or the witness fails or dies before
    the launcher's report, the command does not begin.
    """
    become_keeper(plan, held, (go, ready))
    keep_until_settled(plan, held, go, ready, fork_witness)
    os._exit(0)


def keep_until_settled(plan: Plan, held: HeldFiles, go: int, ready: int, start_witness: StartWitness) -> bool:
    """Run an attempt until it is settled.

    Returns whether the witness that this keeper started saw the end of the command.
    """
    prepared = _prepare(plan, held, (go, ready), start_witness)
    called = wait_for_go(plan, held, go)
    if called is not None:
        from outlive.keeper.not_started import refuse  # noqa: PLC0415 - only an attempt that must not begin needs this import

        os.close(prepared.begin)
        refuse(plan, held, called)
        answer(ready, "ended")
        os._exit(0)
    return _see_through(plan, held, prepared, ready)


def run_now(plan: Plan, held: HeldFiles, ready: int | None) -> NoReturn:
    """Run an attempt whose turn has come, and whose row is already `running`."""
    _see_through(plan, held, _prepare(plan, held, () if ready is None else (ready,), fork_witness), ready)
    os._exit(0)


def become_keeper(plan: Plan, held: HeldFiles, channels: tuple[int, ...]) -> None:
    """Make this process a keeper: detach it, name it, and let it inherit orphans."""
    owned_by = plan.surroundings.owner
    name_process(KEEPER_NAME)
    detach((*held.fds(), *channels, *(() if owned_by is None else (owned_by,))))
    become_subreaper()
    if owned_by is not None:
        foreground_owner.remember(held.record, owned_by)


def detach(keep: tuple[int, ...]) -> None:
    """Detach this process from the launcher. Keep only the descriptors in `keep`.

    If the keeper kept an inherited pipe open, the tool call that launched the task would not return before the end of
    the task.
    """
    os.umask(0o077)
    os.chdir("/")
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    close_all_but(keep)
    for name in _IGNORED:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    # If the caller has blocked signals, the keeper would not notice the growth of the output. If the caller ignores
    # SIGCHLD, the kernel would reap our children and discard their exit status.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # A garbage collection would write to every memory page that is shared with the witness and the launcher. The kernel
    # would then copy these pages.
    gc.disable()


def _prepare(plan: Plan, held: HeldFiles, not_for_it: tuple[int, ...], start_witness: StartWitness) -> Prepared:
    """Prepare the observation, and start the witness, which prepares the command.

    `not_for_it` are descriptors of the keeper that the witness must close.
    """
    observation = _prepare_observation(plan, held)
    voice_read, voice_write = os.pipe()
    begin_read, begin_write = os.pipe()
    around, launch = plan.surroundings, plan.launch
    argv, environ, prompt = launch.argv, around.environ, None
    if launch.agent is not None:
        from outlive.keeper.agents.client_command import start_of  # noqa: PLC0415 - only agent tasks need this import

        argv, environ, prompt = start_of(plan)
    if held.ports:
        argv, environ = _with_leased_ports(plan, argv, environ)
    assert held.lock is not None  # noqa: S101 - only a keeper that took over a task has no lock, and it starts no witness
    start = witness.Start(
        lock=held.lock,
        record=held.record,
        output=held.output,
        voice=voice_write,
        begin=begin_read,
        argv=argv,
        cwd=launch.cwd,
        environ=environ,
        umask=around.umask,
        limits=around.limits,
        input=plan.files.input if launch.takes_input else None,
        prompt=prompt,
        ports=held.ports,
        shared_listener=None if observation is None else observation.shared_listener,
    )
    # The witness must close these descriptors. A copy in the witness would hide the keeper's death from three kinds of
    # processes: the launcher, which waits for an answer; the child process, which waits for the message to begin; and
    # all processes that wait for the end.
    start_witness(start, (*not_for_it, begin_write, voice_read, held.control, held.done))
    os.close(voice_write)
    os.close(begin_read)
    if observation is not None:
        observation.prepare(lambda word: _send(begin_write, word))
    sight = OwnWitness(voice_read, held.record)
    return Prepared(sight=sight, begin=begin_write, observation=observation)


def _with_leased_ports(
    plan: Plan, argv: tuple[str, ...], environ: dict[str, str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the command and the environment with the numbers of the leased ports."""
    from outlive.bundle.ports import read_ports  # noqa: PLC0415 - only tasks with ports need this import
    from outlive.domain.tasks.ports import port_variables, with_ports  # noqa: PLC0415

    ports = read_ports(plan.files)
    return tuple(with_ports(word, ports) for word in argv), {**environ, **port_variables(ports)}


def _prepare_observation(plan: Plan, held: HeldFiles) -> PreparedObservation | None:
    """Prepare the observation of the command, and return it.

    Returns None if the user has turned the observation off, or if nothing can be observed.
    """
    if plan.launch.observe == "off":
        return None
    from outlive.keeper.observation.observation import PreparedObservation  # noqa: PLC0415 - only observed commands need this import

    try:
        return PreparedObservation(plan, held.record)
    except OSError:
        return None


def fork_witness(
    start: witness.Start, not_for_it: tuple[int, ...], life: Callable[[witness.Start], NoReturn] = witness.serve
) -> int:
    """Fork a witness that runs the function `life`. Return the pid of the witness.

    `not_for_it` are descriptors of the keeper that the witness must close.
    """
    child = os.fork()
    if child == 0:
        try:
            for fd in not_for_it:
                os.close(fd)
            life(start)
        finally:
            os._exit(1)
    return child


def wait_for_go(plan: Plan, held: HeldFiles, go: int) -> IntentKind | None:
    """Wait until the launcher reports that the attempt's row is in the ledger.

    Returns None after this report. If a process requests the end of the attempt, returns the kind of the request. If
    the launcher dies or fails, this function settles the attempt as never begun and exits.
    """
    waiting = poll()
    for fd in (go, held.control):
        waiting.register(fd, POLLIN)
    while True:
        ready = [fd for fd, _ in waiting.poll()]
        # A keeper that was stopped may find both the launcher's report and a request to end the attempt. Then the
        # request decides, because the command has not begun.
        if held.control in ready:
            from outlive.keeper.not_started import read_call  # noqa: PLC0415 - only a request to end the attempt needs this import

            called = read_call(held.control)
            if called is not None:
                return called
        elif go in ready:
            word = os.read(go, 1)
            os.close(go)
            if word:
                return None
            from outlive.keeper.not_started import abandon  # noqa: PLC0415

            abandon(plan, held)
            os._exit(0)


def _see_through(plan: Plan, held: HeldFiles, prepared: Prepared, ready: int | None) -> bool:
    """Let the command begin, supervise it, and settle its attempt.

    Does not return if there is a next attempt, because the keeper hibernates until that attempt. Otherwise returns
    whether the witness that this keeper started saw the end of the command.
    """
    first, observation = _start_command(held, prepared)
    began = not isinstance(first, Evidence) or first.kind in ("exited", "signalled")
    if began:
        answer(ready, "running")
    if observation is not None:
        observation.observe_calls()
    supervision = _supervise(plan, held, prepared, observation)
    again = supervision.see_through(first)
    ended = time.monotonic()
    if not began:
        answer(ready, "ended")
    finished = None if observation is None else observation.finish()
    if again is not None:
        from outlive.keeper.hibernate import fall_asleep  # noqa: PLC0415 - only retried tasks need this import

        fall_asleep(again.plan, again.held, until=ended + again.delay_s)
    if finished is not None:
        finished.wait()
    if supervision.has_failed:
        _record_left_open(plan)
    return began and isinstance(supervision.sight, OwnWitness)


def _start_command(held: HeldFiles, prepared: Prepared) -> tuple[Evidence | ExitWatch, RunningObservation | None]:
    """Let the command begin. Return how to wait for its end, and its observation.

    The first value is the evidence of the end if the command has already ended or never began. The observation is None
    if the command is not observed.
    """
    sight = prepared.sight
    first = sight.look()
    if first is not sight:  # the witness failed or was killed, so do not let the command begin
        return first if isinstance(first, Evidence) else never_begun(), None
    observation = None
    if prepared.observation is None:
        _send(prepared.begin)
    else:
        observation = prepared.observation.start(command_of(held.record), lambda: _send(prepared.begin))
    seen = sight.look()
    if isinstance(seen, OrphanedCommand) and not seen.wait_for_begin():
        while isinstance(seen, OrphanedCommand):
            seen = seen.look()
    return seen, observation


def _supervise(plan: Plan, held: HeldFiles, prepared: Prepared, observation: RunningObservation | None) -> Supervision:
    # Import this only now, so that the launcher did not have to wait for the import. The keeper needs no further
    # import after this one, so it can supervise the command even if the installation is deleted.
    from outlive.keeper.supervise import Supervision  # noqa: PLC0415

    supervision = Supervision(plan, held, prepared.sight, "keeper", lambda: _send(prepared.begin, witness.SETTLED))
    if observation is not None:
        supervision.on_rest, supervision.on_end = observation.compare_files, observation.record_end
    return supervision


def _record_left_open(plan: Plan) -> None:
    """Record in the ledger the paths that the attempt left changed.

    Does nothing after a first attempt that was observed to change nothing.
    """
    try:
        from outlive.keeper.observation.record_left_open import changed_nothing, record_at_end  # noqa: PLC0415 - only failed tasks need this import
    except ImportError:
        return  # the installation was deleted while the task ran, and readers use the file of observed changes instead
    if not changed_nothing(plan):
        record_at_end(plan)


def _send(begin: int, word: bytes = b"g") -> None:
    """Send a message to the witness and its child process.

    The message is dropped if no process can read it any more. The keeper learns of the death of its witness from
    another pipe.
    """
    try:
        os.write(begin, word)
    except BrokenPipeError:
        pass


def answer(ready: int | None, word: str) -> None:
    """Send the launcher what has become of the attempt, such as `running` or `ended`.

    Does nothing if the launcher does not wait for this message any more.
    """
    if ready is None:
        return
    try:
        os.write(ready, word.encode("utf-8", "backslashreplace") + b"\n")
    except OSError:
        pass
    os.close(ready)
