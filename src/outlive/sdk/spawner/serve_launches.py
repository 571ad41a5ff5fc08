"""The spawner: a small process that launches tasks for a large program.

A program that uses the SDK may be large and have threads. A fork of the program would copy its memory, and also the
locks that other threads have at this time. The spawner is small and has one thread. It has the program's rights,
because it descends from the program. The program sends requests through a socket. When the program closes its end of
the socket, the spawner exits.
"""

from __future__ import annotations

import marshal
import os
import resource  # noqa: F401 - imported before the forks, because each witness needs it to limit its task
from select import POLLIN, poll

from outlive.bundle.home import Home
from outlive.code_copy import carry
from outlive.domain.errors import OutliveError
from outlive.domain.tasks.command import Command
from outlive.domain.tasks.queueing import lock, slots
from outlive.domain.timestamps import timedelta
from outlive.keeper.observation.observation import load
from outlive.keeper.plan import Surroundings
from outlive.keeper.spawn import become_detached
from outlive.ledger.completeness import restore_by
from outlive.ledger.kept_open import KeptOpenLedger
from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.fd_passing import read_exactly
from outlive.linux.processes import open_marker
from outlive.linux.syscalls import keep_freed_memory, signal
from outlive.service.clock import utc_now
from outlive.service.maintenance.reconcile import reconcile
from outlive.service.tasks.find import resolve
from outlive.service.tasks.retry import retry
from outlive.service.tasks.run import Launched, Request, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from outlive.keeper.pool.idle_keeper import IdleKeepers

_LENGTH = 8
_IDLE_MS = 2000


def frame(message: dict[str, Any]) -> bytes:
    """Return a message as bytes that begin with its length.

    The message is encoded with `marshal`, because importing another encoder would need more memory. Both ends of the
    socket run the same interpreter, so they use the same version of `marshal`.
    """
    content = marshal.dumps(message)
    return len(content).to_bytes(_LENGTH, "big") + content


def _send(fd: int, message: dict[str, Any]) -> None:
    left = memoryview(frame(message))
    while left:
        left = left[os.write(fd, left) :]


def receive(fd: int) -> dict[str, Any] | None:
    """Return the next message, or None if the other end of the socket was closed."""
    head = read_exactly(fd, _LENGTH)
    content = None if head is None else read_exactly(fd, int.from_bytes(head, "big"))
    return None if content is None else marshal.loads(content)  # noqa: S302 - only the program and its spawner can write to this socket


def serve(fd: int) -> None:
    """Reply to requests until the program that started this spawner has exited."""
    if os.fork():
        # The spawner gets another parent. So if all child processes of the program are killed, the keepers keep
        # running.
        os._exit(0)
    _detach(fd)
    open_marker()
    keepers = become_detached()
    keep_freed_memory()
    load()
    idle = _IdleResources(keepers)
    restore_by(_restore)
    while (request := _next_request(fd, idle)) is not None:
        try:
            launched = _act(request, idle)
            answer: dict[str, Any] = {"task": launched.task, "started": launched.started}
        except OutliveError as error:
            answer = {"error": type(error).__name__, "message": error.message, "hint": error.hint}
            answer["task"] = getattr(error, "task", None)
        except Exception as error:  # noqa: BLE001 - the program is told the error, and the spawner goes on
            answer = {
                "error": "Broken",
                "message": f"the spawner failed: {error!r}",
                "hint": "please report this defect of Outlive",
            }
        try:
            _send(fd, answer)
        except OSError:
            return
        if "home" in request:
            # After the first launch, the spawner imports modules from a copy of Outlive's code, so that an upgrade of
            # Outlive does not disturb it. Making the copy takes time, so it is made after the reply.
            carry(request["home"])


def _restore(ledger: str) -> None:
    """Restore the records of a ledger that was replaced after the program's check.

    This function reports nothing, because the program reports that the ledger was restored.
    """
    from outlive.service.maintenance.rebuild import restore_incomplete  # noqa: PLC0415 - imported here, because it is rarely needed: a ledger is seldom restored

    restore_incomplete(ledger)


class _IdleResources:
    """The idle keepers and the open ledger of the spawner.

    They are kept for a short time, because the next launch may come soon.
    """

    def __init__(self, keepers: IdleKeepers) -> None:
        self._keepers = keepers
        self._ledger: KeptOpenLedger | None = None

    def __bool__(self) -> bool:
        return self._keepers.are_there or self._ledger is not None

    def ledger_of(self, home: Home) -> KeptOpenLedger:
        """Return the ledger of a state directory. It stays open for the next call."""
        if self._ledger is None or self._ledger.path != home.ledger:
            self._close()
            self._ledger = KeptOpenLedger(home.ledger)
        return self._ledger

    def let_go(self) -> None:
        """End the idle keepers and close the ledger.

        This is done when no request has come for a while.
        """
        self._keepers.dismiss()
        self._close()

    def _close(self) -> None:
        if self._ledger is not None:
            self._ledger.close()
            self._ledger = None


def _next_request(fd: int, idle: _IdleResources) -> dict[str, Any] | None:
    """Return the next request, or None if the program has closed the socket.

    If no request comes within two seconds, the idle keepers are ended and the ledger is closed.
    """
    if idle:
        waiting = poll()
        waiting.register(fd, POLLIN)
        if not waiting.poll(_IDLE_MS):
            idle.let_go()
    return receive(fd)


def _act(request: dict[str, Any], idle: _IdleResources) -> Launched:
    if request["verb"] == "who":
        return Launched(task=str(os.getpid()))
    home = Home(request["home"], can_punch=request["can_punch"])
    if request["verb"] == "reconcile":
        reconcile(home, utc_now(), request["task"])
        return Launched(task=request["task"])
    around = Surroundings(
        environ=request["environ"],
        umask=request["umask"],
        limits=request["limits"],
        owner=os.pidfd_open(request["owner"]) if request["owner"] else None,
    )
    try:
        if request["verb"] == "retry":
            with SqliteLedger(home.ledger, utc_now()) as ledger:
                task = resolve(ledger, request["task"])
            session, place = request["session"], request["session_project"]
            return Launched(task=retry(home, task, around, utc_now(), session=session, session_project=place))
        fields = dict(request["fields"])
        for name in ("timeout", "idle_timeout", "queue_timeout", "retain"):
            if fields.get(name) is not None:
                fields[name] = timedelta(seconds=fields[name])
        fields["after"], fields["after_any"] = tuple(fields["after"]), tuple(fields["after_any"])
        fields["touches"] = tuple(fields["touches"])
        fields["claims"] = (*map(slots, fields.pop("slots")), *map(lock, fields.pop("locks")))
        command = Command(argv=tuple(request["argv"]), text=request["text"])
        wanted = Request(command=command, cwd=request["cwd"], surroundings=around, **fields)
        if "agent" in request:
            from outlive.service.agents.launch import WantedAgent, plan_agent  # noqa: PLC0415 - imported here, because only agent tasks need it

            wanted = plan_agent(home, WantedAgent(**request["agent"]), wanted)
        return run(home, wanted, utc_now(), idle.ledger_of(home))
    finally:
        if around.owner is not None:
            os.close(around.owner)


def _detach(fd: int) -> None:
    """Close all inherited descriptors except the socket, and ignore signals.

    The signals SIGINT, SIGTERM, SIGHUP and SIGQUIT do not end the spawner afterwards.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != fd:
            try:
                os.close(int(name))
            except OSError:
                continue
    os.set_inheritable(fd, False)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.chdir("/")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
