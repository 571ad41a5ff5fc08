"""What any ledger promises. Every sentence here has a test in `tests/conformance`."""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import Protocol, Self

    from outlive.domain.evidence import Evidence
    from outlive.domain.lifecycle import Condition
    from outlive.domain.settlement import Settlement
    from outlive.domain.task import Attempt, History, Launch, Task
else:
    Protocol = object


class Selection(Value):
    """Which tasks are meant; every field that is given narrows."""

    project: str | None = None
    session: str | None = None
    origin: int | None = None
    """The number of the session that launched them: its name may be another one's in another project."""
    group: str | None = None
    states: tuple[str, ...] = ()
    since: datetime | None = None
    limit: int | None = None


class Ledger(Protocol):
    """The durable record. Speaks domain verbs; every write is one transaction, or nothing.

    Whatever a method returned without raising is durable. A method that raises may still have
    written: read again before trying again.
    """

    def enqueue(self, launch: Launch, attempt: Attempt) -> Task:
        """Record a new task as queued, with its first attempt; and as running, if that has a start.

        Both are moves of their own in its history, whether or not they were made in one step.
        If the project already has a task of this key, nothing is written and that task is
        returned: of any number of callers racing with one key, exactly one gets its own id back.
        An attempt with claims joins their line in the order of recording, unless it depends on
        others. `TooManyWaiting` if as many as may are queued already.
        """

    def add_attempt(self, task: str, attempt: Attempt) -> bool:
        """Record a further attempt of a task whose newest attempt has ended.

        Returns False, and writes nothing, if that attempt is still alive or is not the one
        before this: somebody else's retry came first.
        """

    def start(self, task: str, attempt: int, now: datetime) -> bool:
        """Move an attempt from queued to running; False if it is not queued any more."""

    def set_condition(self, task: str, attempt: int, condition: Condition | None) -> None:
        """Say something of an attempt that has not ended; an ended one is left as it is."""

    def settle(self, settlement: Settlement, again: Attempt | None = None) -> bool:
        """End an attempt: state, notice and retention, or none of them.

        With the next attempt, `again`, in the same step: at no moment does the task look ended.

        Returns False if the attempt had already ended or a newer one has started; then only the
        evidence is kept, beside what was there. Losing that race is normal - a late keeper, a
        second reconciler - so it is an answer, not an exception.
        """

    def add_evidence(self, task: str, attempt: int, evidence: Evidence, now: datetime) -> None:
        """Keep something that was seen, without any consequence."""

    def task(self, task: str) -> Task | None:
        """A task by its whole id."""

    def matching(self, prefix: str, limit: int) -> Sequence[str]:
        """Ids that begin with a prefix, newest first."""

    def with_key(self, project: str, key: str) -> Task | None:
        """The task that holds a key in a project."""

    def tasks(self, selection: Selection) -> Sequence[Task]:
        """The selected tasks, newest first by the order of their recording, not by any clock."""

    def children(self, parents: Sequence[str]) -> Sequence[str]:
        """Ids of the tasks that were launched from inside these."""

    def unsettled(self) -> Sequence[Task]:
        """Every task whose newest attempt has not ended."""

    def history(self, task: str) -> History:
        """Moves, evidence and notices of a task, oldest first."""

    def close(self) -> None:
        """Let go of it."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...
