"""When a queued attempt may begin: after others, and in its turn under names with room for few.

A *dependency* is a task that must have ended before. A *claim* is a place under a name: at most so
many attempts that claimed it run at once, first come, first served. An attempt joins the line when
its dependencies are met; its ticket, drawn then, is its place. It may begin when everybody ahead of
it has begun, and fewer of them than the name has room for have not ended. That looks only at
tickets drawn earlier, which can only become fewer: nobody is asked, and nothing is counted twice.
"""

from __future__ import annotations

from outlive.domain.errors import UserError
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.domain.task import Attempt

MOST_WAITING = 256
_LONGEST_NAME = 200
_MOST_ROOM = 10_000


class Dependency(Value):
    """A task that must have ended: well, or (`any_ending`) in whatever way."""

    task: str
    any_ending: bool = False


class Claim(Value):
    """A place under a name that has room for `room` attempts at once."""

    name: str
    room: int


class Holder(Value):
    """An attempt that others wait for."""

    task: str
    attempt: int
    has_begun: bool = True


class Obstacles(Value):
    """What the ledger knows of a queued attempt and of those it waits for."""

    attempt: Attempt
    claims: tuple[Claim, ...]
    pending: tuple[Holder, ...]
    """Dependencies that have not ended."""
    failed: tuple[tuple[str, str], ...]
    """Dependencies that ended otherwise than they had to, with the state that they are in."""
    ahead: tuple[tuple[Holder, ...], ...]
    """For each claim the attempts in line before this one."""


class Turn(Value):
    """What a queued attempt has to do now: wait for somebody to begin or to end, or something else."""

    must_begin: Holder | None = None
    """The one right before it in line."""
    must_end: tuple[Holder, ...] = ()
    how_many: int = 0
    """How many of these have to end."""
    refused: str | None = None
    """Why it will never begin."""
    should_join: bool = False
    """Its dependencies are met: it may draw its ticket, and look again."""

    @property
    def has_come(self) -> bool:
        """Whether it may begin now."""
        return not (self.must_begin or self.must_end or self.refused or self.should_join)


def plan_turn(obstacles: Obstacles) -> Turn:
    """What a queued attempt has to do next."""
    if obstacles.failed:
        task, state = obstacles.failed[0]
        return Turn(refused=f"task {task}, which it was to run after, is {state}")
    if obstacles.pending:
        # Any one: if it ended badly there is no point in waiting for the others.
        return Turn(must_end=obstacles.pending, how_many=1)
    if obstacles.claims and obstacles.attempt.ticket is None:
        return Turn(should_join=True)
    for claim, ahead in zip(obstacles.claims, obstacles.ahead, strict=True):
        if waiting := [holder for holder in ahead if not holder.has_begun]:
            return Turn(must_begin=waiting[-1])
        if len(ahead) >= claim.room:
            return Turn(must_end=ahead, how_many=len(ahead) - claim.room + 1)
    return Turn()


def slots(text: str) -> Claim:
    """The claim that `--slots NAME=N` makes."""
    name, equals, number = text.rpartition("=")
    if not equals or not number.isascii() or not number.isdecimal() or not 0 < int(number[:9]) <= _MOST_ROOM:
        raise UserError(f"--slots cannot be {text!r}", f"NAME=N, with N from 1 to {_MOST_ROOM}")
    return Claim(name="slots:" + _checked(name), room=int(number))


def lock(name: str) -> Claim:
    """The claim that `--lock NAME` makes: a name with room for one."""
    return Claim(name="lock:" + _checked(name), room=1)


def _checked(name: str) -> str:
    if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise UserError(f"{name!r} is no name for slots or a lock", f"1 to {_LONGEST_NAME} printable characters")
    return name
