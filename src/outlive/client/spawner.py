"""The spawner: a lean child of a large program, which forks keepers on its behalf.

A program that uses the SDK may be big and have threads; forking it would copy both, with every
lock in whatever state it is. The spawner is small and has one thread. It has the program's rights,
because it is its child, and it is gone when the program's end of the socket closes.
"""

from __future__ import annotations

import marshal
import os
import resource  # noqa: F401 - the witness needs it for the limits a request carries
from select import POLLIN, poll

from outlive.bundle.home import Home
from outlive.bundle.kernel import keep_freed_memory, signal
from outlive.bundle.passing import read_exactly
from outlive.bundle.processes import wear_badge
from outlive.domain.command import Command
from outlive.domain.errors import OutliveError
from outlive.domain.queueing import lock, slots
from outlive.domain.when import timedelta
from outlive.keeper.launching import become_detached
from outlive.keeper.observation import load
from outlive.keeper.plan import Surroundings
from outlive.ledger.resting import RestingLedger
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.lookup import resolve
from outlive.service.reconcile import reconcile
from outlive.service.retry import retry
from outlive.service.run import Request, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from outlive.keeper.recycling import Keepers

_LENGTH = 8
_THEY_WAIT_MS = 2000


def frame(message: dict[str, Any]) -> bytes:
    """A message with its length. Both ends run the same interpreter, so `marshal` fits, and is free."""
    content = marshal.dumps(message)
    return len(content).to_bytes(_LENGTH, "big") + content


def _send(fd: int, message: dict[str, Any]) -> None:
    left = memoryview(frame(message))
    while left:
        left = left[os.write(fd, left) :]


def receive(fd: int) -> dict[str, Any] | None:
    """One message, or None if the other end is gone."""
    head = read_exactly(fd, _LENGTH)
    content = None if head is None else read_exactly(fd, int.from_bytes(head, "big"))
    return None if content is None else marshal.loads(content)  # noqa: S302 - our own parent wrote it


def serve(fd: int) -> None:
    """Answer requests until the program that started us has gone."""
    if os.fork():
        os._exit(0)  # so that whoever kills the program with its descendants does not find our keepers
    _detach(fd)
    wear_badge()
    keepers = become_detached()
    keep_freed_memory()
    load()
    at_hand = _AtHand(keepers)
    while (request := _next_request(fd, at_hand)) is not None:
        try:
            answer: dict[str, Any] = {"task": _act(request, at_hand)}
        except OutliveError as error:
            answer = {"error": type(error).__name__, "message": error.message, "hint": error.hint}
            answer["task"] = getattr(error, "task", None)
        except Exception as error:  # noqa: BLE001 - the program must hear of it, and we go on
            answer = {
                "error": "Broken",
                "message": f"the spawner failed: {error!r}",
                "hint": "please report it",
            }
        try:
            _send(fd, answer)
        except OSError:
            return


class _AtHand:
    """What is kept for the next launch, if that comes soon: keepers, and the ledger of the last one."""

    def __init__(self, keepers: Keepers) -> None:
        self._keepers = keepers
        self._ledger: RestingLedger | None = None

    def __bool__(self) -> bool:
        return self._keepers.are_there or self._ledger is not None

    def ledger_of(self, home: Home) -> RestingLedger:
        """The ledger of this home, which may be open already."""
        if self._ledger is None or self._ledger.path != home.ledger:
            self._close()
            self._ledger = RestingLedger(home.ledger)
        return self._ledger

    def let_go(self) -> None:
        """Nothing has been launched for a while."""
        self._keepers.dismiss()
        self._close()

    def _close(self) -> None:
        if self._ledger is not None:
            self._ledger.close()
            self._ledger = None


def _next_request(fd: int, at_hand: _AtHand) -> dict[str, Any] | None:
    """What is asked next. What is at hand for it is let go if that takes long."""
    if at_hand:
        waiting = poll()
        waiting.register(fd, POLLIN)
        if not waiting.poll(_THEY_WAIT_MS):
            at_hand.let_go()
    return receive(fd)


def _act(request: dict[str, Any], at_hand: _AtHand) -> str:
    if request["verb"] == "who":
        return str(os.getpid())
    home = Home(request["home"], can_punch=request["can_punch"])
    if request["verb"] == "reconcile":
        reconcile(home, utc_now(), request["task"])
        return str(request["task"])
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
            return retry(home, task, around, utc_now())
        fields = dict(request["fields"])
        for name in ("timeout", "idle_timeout", "queue_timeout", "retain"):
            if fields.get(name) is not None:
                fields[name] = timedelta(seconds=fields[name])
        fields["after"], fields["after_any"] = tuple(fields["after"]), tuple(fields["after_any"])
        fields["touches"] = tuple(fields["touches"])
        fields["claims"] = (*map(slots, fields.pop("slots")), *map(lock, fields.pop("locks")))
        command = Command(argv=tuple(request["argv"]), text=request["text"])
        return run(
            home,
            Request(command=command, cwd=request["cwd"], surroundings=around, **fields),
            utc_now(),
            at_hand.ledger_of(home),
        )
    finally:
        if around.owner is not None:
            os.close(around.owner)


def _detach(fd: int) -> None:
    """Hold nothing of the program but the socket, and outlive what is meant for it alone."""
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
