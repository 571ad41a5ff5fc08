"""Bringing a keeper to life: two forks, a session of its own, and one word back.

Only a single-threaded, lean process may do this: the CLI, or the spawner of a larger program.
"""

from __future__ import annotations

import os

from outlive.bundle.kernel import signal
from outlive.domain.errors import Unavailable
from outlive.keeper.keeper import keep
from outlive.keeper.plan import Plan, Surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal, NoReturn

    from outlive.bundle.attempt import AttemptFiles, Held
    from outlive.bundle.home import Home
    from outlive.domain.task import Launch

    Answer = Literal["running", "ended", "died"]


def launch_keeper(home: Home, launch: Launch, files: AttemptFiles, held: Held, surroundings: Surroundings) -> Answer:
    """Hand a held attempt to a new keeper; returns once that has said how it went.

    `died` means that nobody is left who could finish it: reconcile will tell how far it came.
    """
    plan = Plan(home=home, launch=launch, files=files, surroundings=surroundings)
    return _in_a_session_of_its_own(lambda ready: keep(plan, held, ready), held)


def launch_adopter(home: Home, launch: Launch, files: AttemptFiles, held: Held) -> Answer:
    """Hand a living attempt, whose keeper is dead, to a new keeper."""
    from outlive.keeper.adoption import adopt  # noqa: PLC0415 - no launch should pay for it

    around = Surroundings(environ={}, umask=0o077)
    plan = Plan(home=home, launch=launch, files=files, surroundings=around)
    return _in_a_session_of_its_own(lambda ready: adopt(plan, held, ready), held)


def _in_a_session_of_its_own(life: Callable[[int], NoReturn], held: Held) -> Answer:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would take our own child from us
    answer_read, answer_write = os.pipe()
    first = os.fork()
    if first == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                life(answer_write)
        finally:
            os._exit(0)
    # Our copies would keep the attempt alive after the death of everybody who can finish it.
    held.close()
    os.close(answer_write)
    os.waitpid(first, 0)
    try:
        word = os.read(answer_read, 4096).decode("utf-8", "replace").strip()
    finally:
        os.close(answer_read)
    if word.startswith("error "):
        raise Unavailable(
            f"the task was recorded but could not be started: {word.removeprefix('error ')}",
            "`outlive list` shows it; mend the cause and run it again",
        )
    if word == "running":
        return "running"
    return "ended" if word == "ended" else "died"
