"""The methods that every ledger must have, and what each method guarantees.

Each sentence has a test in `tests/conformance`.
"""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import Protocol, Self

    from outlive.domain.tasks.evidence import Evidence
    from outlive.domain.tasks.lifecycle import Condition
    from outlive.domain.tasks.settlement import Settlement
    from outlive.domain.tasks.task import Attempt, History, Launch, Task
else:
    Protocol = object


class Selection(Value):
    """A selection of tasks: the tasks that match every given field."""

    project: str | None = None
    session: str | None = None
    origin: int | None = None
    """The number of the session that launched the tasks.

    Two projects may have sessions of the same name, so the name is not enough.
    """
    group: str | None = None
    states: tuple[str, ...] = ()
    since: datetime | None = None
    limit: int | None = None


class Within(Value):
    """The tasks of a project, and those of a chain of sessions in any project."""

    project: str
    lineage: str | None
    """The name of the chain of sessions that continue each other, or None."""


class Ledger(Protocol):
    """The durable record of tasks.

    Every write is one transaction, which is durable when the method returns. A method that raises may still have
    written, so the caller must read again before it tries again.
    """

    def enqueue(self, launch: Launch, attempt: Attempt) -> Task:
        """Record a new task as queued, with its first attempt.

        An attempt with a start time is recorded as queued and then as running, and the history has both changes. If the
        project already has a task with this idempotency key, this method writes nothing and returns that task. So if
        several callers use the same key at once, exactly one of them gets its own id back. Attempts that wait for a
        limit on parallel attempts join the queue in the order of recording, except if the task depends on other tasks.
        Raises `TooManyWaiting` if the maximum number of tasks is queued already.
        """

    def add_attempt(self, task: str, attempt: Attempt) -> bool:
        """Record a further attempt of a task whose newest attempt has ended.

        Returns False, and writes nothing, if the newest attempt has not ended. Also returns False if the number of the
        new attempt is not the next number, because then another process has retried the task first.
        """

    def start(self, task: str, attempt: int, now: datetime) -> bool:
        """Move an attempt from queued to running. Return False if it is not queued."""

    def set_condition(self, task: str, attempt: int, condition: Condition | None) -> None:
        """Set or clear the condition of an attempt, such as stalled or orphaned.

        An ended attempt is not changed.
        """

    def settle(self, settlement: Settlement, again: Attempt | None = None) -> bool:
        """End an attempt: write its state, notice and deletion date in one transaction.

        `again` is the next attempt of a retried task. The same transaction records this attempt, so that the task never
        looks ended. If the attempt had already ended or a newer attempt has started, only the evidence is recorded, and
        the result is False. This is normal, for example if a keeper is late. So it is not an exception.
        """

    def add_evidence(self, task: str, attempt: int, evidence: Evidence, now: datetime) -> None:
        """Record how an attempt ended, as one process saw it. Do not change the attempt."""

    def task(self, task: str) -> Task | None:
        """Return the task with exactly this id, or None."""

    def matching(self, prefix: str, limit: int, within: Within | None = None) -> Sequence[str]:
        """Return the ids of tasks that begin with a prefix, newest first.

        With `within`, only tasks of that project and of that chain of sessions are returned.
        """

    def with_key(self, project: str, key: str) -> Task | None:
        """Return the task that was launched with this idempotency key, or None.

        Keys belong to a project.
        """

    def running_copies(self, launch: Launch) -> Sequence[str]:
        """Return the ids of the running tasks with a launch's command, newest first.

        The tasks also have the directory and the project of the launch. The task of the launch itself, and agents, are
        left out.
        """

    def tasks(self, selection: Selection) -> Sequence[Task]:
        """Return the selected tasks.

        The task that was recorded last comes first, whatever the clocks showed.
        """

    def newest(self, limit: int, project: str | None, ran_after: datetime) -> Sequence[Task]:
        """Return the newest `limit` tasks, except tasks that ended before `ran_after`.

        If `project` is given, only tasks of this project are considered. A task that ended at an unknown time is
        returned too.
        """

    def children(self, parents: Sequence[str]) -> Sequence[str]:
        """Return the ids of the tasks that were launched inside these tasks."""

    def unsettled(self) -> Sequence[Task]:
        """Return every task whose newest attempt has not ended."""

    def history(self, task: str) -> History:
        """Return the moves (state changes), evidence and notices of a task, oldest first."""

    def close(self) -> None:
        """Close the ledger."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...
