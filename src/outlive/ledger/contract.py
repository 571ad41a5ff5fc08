"""The contract of every ledger; each sentence has a test in `tests/conformance`."""

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
    """A selection of tasks: those that match every given field."""

    project: str | None = None
    session: str | None = None
    origin: int | None = None
    """The number of the session that launched the tasks; names repeat across projects."""
    group: str | None = None
    states: tuple[str, ...] = ()
    since: datetime | None = None
    limit: int | None = None


class Ledger(Protocol):
    """The durable record of tasks. Its methods are domain verbs.

    Every write is one transaction, durable when the method returns. A method that raises may still have written, so the
    caller must read again before trying again.
    """

    def enqueue(self, launch: Launch, attempt: Attempt) -> Task:
        """Record a new task as queued, with its first attempt.

        An attempt with a start time is recorded as running as well, and the history has both moves. If the project
        already has a task with this key, nothing is written and that task is returned: of several callers that race,
        exactly one gets its own id back. An attempt with claims joins the queue in the order of recording, unless its
        task depends on other tasks. Raises `TooManyWaiting` if the maximum number of tasks is queued already.
        """

    def add_attempt(self, task: str, attempt: Attempt) -> bool:
        """Record a further attempt of a task whose newest attempt has ended.

        Returns False, and writes nothing, if the newest attempt has not ended, or if its number is not the one before
        the new attempt's. In the second case another process was first to retry the task.
        """

    def start(self, task: str, attempt: int, now: datetime) -> bool:
        """Move an attempt from queued to running; return False if it is not queued."""

    def set_condition(self, task: str, attempt: int, condition: Condition | None) -> None:
        """Set or clear the condition of an attempt; an ended attempt is unchanged."""

    def settle(self, settlement: Settlement, again: Attempt | None = None) -> bool:
        """End an attempt: state, notice and retention, or none of them.

        `again` is the next attempt of a retried task. The same transaction records it, so that the task never looks
        ended. Returns False, and only adds the evidence to the record, if the attempt had already ended or a newer one
        has started. Losing that race is normal (a late keeper, a second reconciler), so it is an answer, not an
        exception.
        """

    def add_evidence(self, task: str, attempt: int, evidence: Evidence, now: datetime) -> None:
        """Record evidence of an attempt, without changing the attempt."""

    def task(self, task: str) -> Task | None:
        """Return the task with exactly this id; None if no task has it."""

    def matching(self, prefix: str, limit: int) -> Sequence[str]:
        """Return the ids of tasks that begin with a prefix, newest first."""

    def with_key(self, project: str, key: str) -> Task | None:
        """Return the task that has this key in a project; None if no task has it."""

    def tasks(self, selection: Selection) -> Sequence[Task]:
        """Return the selected tasks, the last recorded first, whatever the clocks said."""

    def children(self, parents: Sequence[str]) -> Sequence[str]:
        """Return the ids of the tasks that were launched from inside these tasks."""

    def unsettled(self) -> Sequence[Task]:
        """Return every task whose newest attempt has not ended."""

    def history(self, task: str) -> History:
        """Return the moves (state changes), evidence and notices of a task, oldest first."""

    def close(self) -> None:
        """Close the ledger."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...
