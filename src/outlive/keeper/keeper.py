"""The keeper: the detached process that owns one attempt from its start to its settlement.

This is how it comes to life: it cuts its ties, claims the attempt, lets the witness start the
command, and supervises it. It holds no ledger while the command runs, imports nothing after it
started, and ignores what would end an ordinary process.
"""

from __future__ import annotations

import gc
import os

from outlive.bundle.kernel import become_subreaper, name_process, signal
from outlive.bundle.processes import KEEPER_NAME
from outlive.domain.errors import OutliveError
from outlive.domain.evidence import Evidence
from outlive.domain.when import UTC, datetime
from outlive.keeper import owner, witness
from outlive.keeper.sight import OwnWitness, never_begun
from outlive.keeper.supervision import Supervision
from outlive.ledger.sqlite import SqliteLedger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from outlive.bundle.attempt import Held
    from outlive.keeper.plan import Plan

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
)


def detach(keep: tuple[int, ...]) -> None:
    """Cut every tie to the launcher but the descriptors we were given.

    An inherited pipe would keep the caller's tool call waiting for as long as the task runs.
    """
    os.umask(0o077)
    os.chdir("/")
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd > 2 and fd not in keep:
            try:
                os.close(fd)
            except OSError:
                continue  # the descriptor of the listing itself
    for name in _IGNORED:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    # A caller may have blocked signals, which would hide the growth of the output from us, or
    # ignored SIGCHLD, for which the kernel would reap our children and forget how they ended.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # A collection would touch, and so copy, every page that we share with witness and launcher.
    gc.disable()


def keep(plan: Plan, held: Held, ready: int) -> NoReturn:
    """Run one attempt: claim it, start it, see it through, settle it.

    The witness prepares the command while we write the row; the command begins when both are
    done, and not at all if one of them failed.
    """
    owned_by = plan.surroundings.owner
    name_process(KEEPER_NAME)
    detach((*held.fds(), ready, *(() if owned_by is None else (owned_by,))))
    become_subreaper()
    if owned_by is not None:
        owner.remember(held.record, owned_by)
    sight, go = _prepare_witness(plan, held, ready)
    try:
        with SqliteLedger(plan.home.ledger, _now(), create=False) as ledger:
            mine = ledger.start(plan.launch.id, plan.files.number, _now())
    except OutliveError as error:
        _answer(ready, f"error {error.message}")
        os._exit(3)  # and with us goes the other end of `go`
    if not mine:
        _answer(ready, "ended")
        os._exit(0)
    first = sight.look()
    if first is sight:
        _give(go)
        first = sight.look()
    elif not isinstance(first, Evidence):
        first = never_begun()  # the witness was killed before the go, which now nobody will give
    os.close(go)
    began = not isinstance(first, Evidence) or first.kind in ("exited", "signalled")
    if began:
        _answer(ready, "running")
    Supervision(plan, held, sight, "keeper").see_through(first)
    if not began:
        _answer(ready, "ended")
    os._exit(0)


def _give(go: int) -> None:
    """Let the command begin. It may have been killed while it waited; its witness will tell."""
    try:
        os.write(go, b"g")
    except BrokenPipeError:
        pass


def _prepare_witness(plan: Plan, held: Held, ready: int) -> tuple[OwnWitness, int]:
    """Fork the witness; returns its sight, and the descriptor that lets the command begin."""
    voice_read, voice_write = os.pipe()
    go_read, go_write = os.pipe()
    if os.fork() == 0:
        try:
            # A copy of ours in the witness would hide the keeper's death: from the launcher, which waits
            # for an answer, and from the command-to-be, which waits for its go.
            for fd in (ready, go_write, voice_read):
                os.close(fd)
            around, launch = plan.surroundings, plan.launch
            start = witness.Start(
                argv=launch.argv,
                cwd=launch.cwd,
                environ=around.environ,
                umask=around.umask,
                limits=around.limits,
            )
            witness.serve(held, voice_write, go_read, start)
        finally:
            os._exit(1)
    os.close(voice_write)
    os.close(go_read)
    return OwnWitness(voice_read, held.record), go_write


def _answer(ready: int, word: str) -> None:
    """Tell the launcher; it may have been killed, and that is its problem alone."""
    try:
        os.write(ready, word.encode("utf-8", "backslashreplace") + b"\n")
    except OSError:
        pass
    os.close(ready)


def _now() -> datetime:
    return datetime.now(UTC)
