"""The queue: the rules for when a queued attempt may begin.

A *dependency* is a task that must end before another task begins. A *claim* is a name with a limit: at most `room`
attempts with this claim run at once, in the order of their tickets. A ticket is a number that an attempt gets when its
dependencies are met. Each ticket is higher than all earlier tickets. So an attempt waits only for attempts with lower
tickets, and no later attempt can overtake it.
"""

from __future__ import annotations

from outlive.domain.errors import UserError
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.domain.tasks.task import Attempt

MOST_WAITING = 256
_LONGEST_NAME = 200
_MOST_ROOM = 10_000


class Dependency(Value):
    """A task that must succeed before another task begins.

    With `any_ending`, it is enough that the task ends.
    """

    task: str
    any_ending: bool = False


class Claim(Value):
    """A name with a limit: at most `room` attempts with this name run at once."""

    name: str
    room: int


class Holder(Value):
    """An attempt for which other attempts wait."""

    task: str
    attempt: int
    has_begun: bool = True


class Obstacles(Value):
    """A queued attempt, and what it waits for, according to the ledger."""

    attempt: Attempt
    claims: tuple[Claim, ...]
    pending: tuple[Holder, ...]
    """The dependencies that have not ended."""
    failed: tuple[tuple[str, str], ...]
    """The dependencies that ended without the required success, each with its state."""
    ahead: tuple[tuple[Holder, ...], ...]
    """For each limited name (claim), the unfinished attempts with lower tickets."""


class Turn(Value):
    """The next step of a queued attempt: to wait, to join the queue, or to end."""

    must_begin: Holder | None = None
    """The attempt that must begin before this attempt.

    It is the last attempt with a lower ticket that has not begun yet.
    """
    must_end: tuple[Holder, ...] = ()
    """The attempts that this attempt waits for.

    `how_many` of them must end before this attempt begins.
    """
    how_many: int = 0
    refused: str | None = None
    """The reason why the attempt will never begin."""
    should_join: bool = False
    """Whether the attempt can now get its ticket (its place in the queue).

    Its dependencies are met. After the attempt has got its ticket, the caller calls `plan_turn` again.
    """

    @property
    def has_come(self) -> bool:
        """Whether the attempt may begin now."""
        return not (self.must_begin or self.must_end or self.refused or self.should_join)


def plan_turn(obstacles: Obstacles) -> Turn:
    """Return the next step of a queued attempt: to wait, to join the queue, or to end."""
    if obstacles.failed:
        task, state = obstacles.failed[0]
        return Turn(refused=f"it was to run after task {task}, which is {state}")
    if obstacles.pending:
        # Wait until any one of the dependencies has ended, and then plan again. If this dependency failed, the attempt
        # will never begin, and need not wait for the other dependencies.
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
    """Return the limit that `--slots NAME=N` sets.

    At most N tasks with this name run at once. Raises `UserError` if the text is not valid.
    """
    name, equals, number = text.rpartition("=")
    if not equals or not number.isascii() or not number.isdecimal() or not 0 < int(number[:9]) <= _MOST_ROOM:
        raise UserError(f"--slots cannot be {text!r}", f"write NAME=N, with N from 1 to {_MOST_ROOM}")
    return Claim(name="slots:" + _checked(name), room=int(number))


def lock(name: str) -> Claim:
    """Return the limit that `--lock NAME` sets: one task with this name at a time."""
    return Claim(name="lock:" + _checked(name), room=1)


def _checked(name: str) -> str:
    if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise UserError(
            f"{name!r} is not a valid name for slots or a lock", f"use 1 to {_LONGEST_NAME} printable characters"
        )
    return name
