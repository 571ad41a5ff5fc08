"""The start of a keeper: two forks, a Unix session, and an answer to the launcher.

Only a small process with a single thread may start a keeper. This is the command line itself, or a helper process of a
larger program, called its spawner.
"""

from __future__ import annotations

import os
from select import POLLIN, poll

from outlive.keeper.plan import Plan, Surroundings
from outlive.linux.syscalls import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal, NoReturn, Self

    from outlive.bundle.attempt import AttemptFiles, HeldFiles
    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Launch
    from outlive.keeper.pool.idle_keeper import IdleKeepers

    Answer = Literal["running", "queued", "ended", "died", "silent"]
    Life = Callable[[Plan, HeldFiles, int, int], NoReturn]


_CONFIRMING_TAKES_AT_MOST_MS = 30_000
_is_detached = False
_keepers: IdleKeepers | None = None


def become_detached() -> IdleKeepers:
    """Make this detached process a parent of keepers, which it can use again."""
    global _is_detached, _keepers  # noqa: PLW0603 - these variables describe the whole process
    from outlive.keeper.pool.idle_keeper import IdleKeepers  # noqa: PLC0415 - only a process that starts many keepers needs this import

    _is_detached = True
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    _keepers = IdleKeepers()
    return _keepers


def _fork_away(life: Callable[[], NoReturn], wake: int, not_for_it: int) -> None:
    """Fork a process that has a Unix session of its own.

    If a call takes too long, a client may kill our caller with all its descendants. The new process must not be a
    descendant of the client, so it is forked from an intermediate fork, which exits. A helper process that starts many
    keepers is no descendant of the client, so there one fork is enough.
    """
    if not _is_detached:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # with SIGCHLD ignored, waitpid would find no child
        first = os.fork()
        if first:
            os.waitpid(first, 0)
            return
    elif os.fork():
        return
    try:
        os.setsid()
        os.close(not_for_it)  # with a copy of the launcher's end, the keeper would not notice the launcher's death
        if _is_detached or os.fork() == 0:
            # A new process shares the processor of its parent until the parent sleeps. A process that
            # is woken gets an idle processor. So the new process sleeps first, and is woken at once.
            os.read(wake, 1)
            life()
    finally:
        os._exit(0)


class NewKeeper:
    """A new keeper, which prepares its attempt while the launcher writes the row.

    The keeper begins the attempt when it gets a message of one byte from the launcher.

    If the keeper is dismissed or its launcher dies, the keeper starts no command. If the attempt has a row in the
    ledger, the keeper then settles it.
    """

    def __init__(self, held: HeldFiles, life: Callable[[int, int], NoReturn], give: Callable[[int, int], bool]) -> None:
        """Call `give` to send the attempt to an idle keeper, or fork a keeper.

        A keeper is forked if no keeper is idle. The forked keeper runs `life`. `held` are the open files of the
        attempt.
        """
        self._held = held
        pipes: list[int] = []
        try:
            pipes += os.pipe()
            pipes += os.pipe()
            go_read, self._go, self._answer, answer_write = pipes
            if not give(go_read, answer_write):
                _fork_away(lambda: life(go_read, answer_write), go_read, self._go)
                self._tell(b"w")
        except OSError:
            for fd in pipes:
                os.close(fd)
            raise
        os.close(go_read)
        os.close(answer_write)
        self._is_ours = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Dismiss the keeper, unless `begin` was called."""
        if self._is_ours:
            self._let_go(b"")
            os.close(self._answer)

    def begin(self, within_ms: int = _CONFIRMING_TAKES_AT_MOST_MS) -> Answer:
        """Let the keeper begin the attempt, and return the keeper's answer.

        `died` means that no process is left to finish the attempt, so the caller must find out how far the attempt
        came. `silent` means that no answer came within `within_ms`: the keeper may be stopped, or may be waiting for a
        disk.
        """
        self._let_go(b"g")
        waiting = poll()
        waiting.register(self._answer, POLLIN)
        try:
            if not waiting.poll(within_ms):
                return "silent"
            word = os.read(self._answer, 64).strip()
        finally:
            os.close(self._answer)
        answers: dict[bytes, Answer] = {b"running": "running", b"queued": "queued", b"ended": "ended"}
        return answers.get(word, "died")

    def _let_go(self, word: bytes) -> None:
        """Send a message to the keeper, and close this process's copies of its files.

        If this process kept the files of the attempt open, an attempt whose keeper has died would seem alive.
        """
        self._is_ours = False
        self._held.close()
        self._tell(word)
        os.close(self._go)

    def _tell(self, word: bytes) -> None:
        try:
            os.write(self._go, word)
        except BrokenPipeError:
            pass  # the keeper was killed, which `begin` notices when it reads the answer


def stand_by(plan: Plan, held: HeldFiles, life: Life | None = None) -> NewKeeper:
    """Return a keeper that has prepared an attempt and waits for the launcher.

    The files of the attempt must be locked. `life` is the function that the keeper runs. If `life` is None, the keeper
    begins the attempt as soon as the launcher calls `begin`.
    """
    from outlive.keeper.keeper import keep  # noqa: PLC0415 - only launches need this import

    # An idle keeper gets only the files of an attempt, and no leased ports.
    if _keepers is None or not _keepers.have_room or life is not None or held.ports or not _frees_its_keeper(plan):
        chosen = life or keep
        return NewKeeper(held, lambda go, ready: chosen(plan, held, go, ready), _give_to_none)
    return _from_pool(_keepers, plan, held)


def _give_to_none(_: int, __: int) -> bool:
    return False


def _frees_its_keeper(plan: Plan) -> bool:
    """Return whether the keeper can take another attempt after the command's end."""
    launch = plan.launch
    return plan.surroundings.owner is None and not launch.retries and not launch.takes_input


def _from_pool(keepers: IdleKeepers, plan: Plan, held: HeldFiles) -> NewKeeper:
    """Return an idle keeper, or a new keeper that can be used again."""
    from outlive.keeper.pool.idle_keeper import keep_repeatedly  # noqa: PLC0415 - this import takes little time, because the module is already loaded

    channel: list[int] = []

    def live(go: int, ready: int) -> NoReturn:
        keep_repeatedly(channel[0], plan, held, go, ready)

    def give(go: int, ready: int) -> bool:
        if keepers.give(plan, held, go, ready):
            return True
        channel.append(keepers.new_channel())
        return False

    try:
        return NewKeeper(held, live, give)
    finally:
        for fd in channel:
            os.close(fd)


def launch_adopter(home: Home, launch: Launch, files: AttemptFiles, held: HeldFiles) -> Answer:
    """Start a keeper that takes over a running attempt whose keeper has died.

    Returns the answer of the new keeper, such as `running`.
    """
    from outlive.keeper.take_over import adopt  # noqa: PLC0415 - only the takeover of a running attempt needs this import

    around = Surroundings(environ={}, umask=0o077)
    plan = Plan(home=home, launch=launch, files=files, surroundings=around)
    return NewKeeper(held, lambda go, ready: adopt(plan, held, go, ready), _give_to_none).begin()
