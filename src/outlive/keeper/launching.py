"""Bringing a keeper to life: two forks, a session of its own, and one word back.

Only a single-threaded, lean process may do this: the CLI, or the spawner of a larger program.
"""

from __future__ import annotations

import os

from outlive.bundle.kernel import signal
from outlive.keeper.keeper import keep
from outlive.keeper.plan import Plan, Surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal, NoReturn, Self

    from outlive.bundle.attempt import AttemptFiles, Held
    from outlive.bundle.home import Home
    from outlive.domain.task import Launch
    from outlive.keeper.recycling import Keepers

    Answer = Literal["running", "queued", "ended", "died"]
    Life = Callable[[Plan, Held, int, int], NoReturn]


_is_detached = False
_keepers: Keepers | None = None


def become_detached() -> Keepers:
    """Say that this process is nobody's child, and will not wait for its own: keepers need no other parent.

    Returns those that it will have made, which are used again.
    """
    global _is_detached, _keepers  # noqa: PLW0603 - facts about this process
    from outlive.keeper.recycling import Keepers  # noqa: PLC0415 - who launches one task needs none

    _is_detached = True
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    _keepers = Keepers()
    return _keepers


def _fork_away(life: Callable[[], NoReturn], wake: int, not_for_it: int) -> None:
    """A process in a session of its own that is not our child, or that of a process nobody looks at.

    Whoever kills our caller with all its descendants, as clients do when a call takes too long,
    must not find it among them.
    """
    if not _is_detached:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would take our own child from us
        first = os.fork()
        if first:
            os.waitpid(first, 0)
            return
    elif os.fork():
        return
    try:
        os.setsid()
        os.close(not_for_it)  # a copy of it in the keeper would hide our death from it
        if _is_detached or os.fork() == 0:
            # A new process shares its parent's processor until that sleeps; one that is woken
            # gets an idle processor. So it sleeps first, and is woken at once.
            os.read(wake, 1)
            life()
    finally:
        os._exit(0)


class NewKeeper:
    """A keeper that prepares itself while its row is being written, and begins when told so.

    Dismissed, or left alone by the death of its launcher, it begins nothing; if there is a row all
    the same, it settles that, and goes.
    """

    def __init__(self, held: Held, life: Callable[[int, int], NoReturn], give: Callable[[int, int], bool]) -> None:
        """Whoever `give` finds for it, or else a new process that has this life."""
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
        """Dismiss it, unless it was told to begin."""
        if self._is_ours:
            self._let_go(b"")
            os.close(self._answer)

    def begin(self) -> Answer:
        """Tell it to begin; returns once it has said how it went.

        `died` means that nobody is left who could finish it: reconcile will tell how far it came.
        """
        self._let_go(b"g")
        try:
            word = os.read(self._answer, 64).strip()
        finally:
            os.close(self._answer)
        answers: dict[bytes, Answer] = {b"running": "running", b"queued": "queued", b"ended": "ended"}
        return answers.get(word, "died")

    def _let_go(self, word: bytes) -> None:
        """Our copies would keep the attempt alive after the death of everybody who can finish it."""
        self._is_ours = False
        self._held.close()
        self._tell(word)
        os.close(self._go)

    def _tell(self, word: bytes) -> None:
        try:
            os.write(self._go, word)
        except BrokenPipeError:
            pass  # it was killed; the answer, or its absence, will tell


def stand_by(plan: Plan, held: Held, life: Life = keep) -> NewKeeper:
    """A new keeper for a held attempt, to begin its life once the attempt has its row."""
    if _keepers is None or not _keepers.have_room or life is not keep or not _frees_its_keeper(plan):
        return NewKeeper(held, lambda go, ready: life(plan, held, go, ready), _nobody)
    return _one_of(_keepers, plan, held)


def _nobody(_: int, __: int) -> bool:
    return False


def _frees_its_keeper(plan: Plan) -> bool:
    """Whether its keeper may be used again: nothing but the command itself decides when its attempt is over."""
    launch = plan.launch
    return plan.surroundings.owner is None and not launch.retries and not launch.takes_input


def _one_of(keepers: Keepers, plan: Plan, held: Held) -> NewKeeper:
    """Somebody who has time, or a new one that will have."""
    from outlive.keeper.recycling import keep_one_after_the_other  # noqa: PLC0415 - it has been loaded

    channel: list[int] = []

    def live(go: int, ready: int) -> NoReturn:
        keep_one_after_the_other(channel[0], plan, held, go, ready)

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


def launch_adopter(home: Home, launch: Launch, files: AttemptFiles, held: Held) -> Answer:
    """Hand a living attempt, whose keeper is dead, to a new keeper."""
    from outlive.keeper.adoption import adopt  # noqa: PLC0415 - no launch should pay for it

    around = Surroundings(environ={}, umask=0o077)
    plan = Plan(home=home, launch=launch, files=files, surroundings=around)
    return NewKeeper(held, lambda go, ready: adopt(plan, held, go, ready), _nobody).begin()
