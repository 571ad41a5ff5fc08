"""What a task is: what was asked (`Launch`), each try at it (`Attempt`), and both together (`Task`)."""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from typing import Literal

    from outlive.domain.evidence import Evidence
    from outlive.domain.lifecycle import Condition, State
    from outlive.domain.queueing import Claim, Dependency
    from outlive.domain.sink import Delivery

    Mode = Literal["background", "foreground"]
    Notify = Literal["all", "end", "failure", "never"]
    Observe = Literal["auto", "syscalls", "watch", "compare", "off"]


class Launch(Value):
    """What was asked for. Never the environment: its values may be secrets."""

    id: str
    command: str
    argv: tuple[str, ...]
    cwd: str
    project: str
    host: str
    created_at: datetime
    description: str | None = None
    session: str | None = None
    session_project: str | None = None
    """Where the session works, if that is not where the task does."""
    parent: str | None = None
    group: str | None = None
    key: str | None = None
    mode: Mode = "background"
    engine: str = "local"
    timeout: timedelta | None = None
    idle_timeout: timedelta | None = None
    queue_timeout: timedelta | None = None
    retries: int = 0
    after: tuple[Dependency, ...] = ()
    claims: tuple[Claim, ...] = ()
    max_output: int
    notify: Notify = "end"
    observe: Observe = "auto"
    takes_input: bool = False
    """Whether anybody may send it something to read; otherwise it reads nothing."""
    touches: tuple[str, ...] = ()
    """Absolute paths that it is going to touch, as whoever launched it said."""
    retain: timedelta

    @property
    def is_queued(self) -> bool:
        """Whether it may have to wait for others before it begins."""
        return bool(self.after or self.claims)


class LeftRunning(Value):
    """A process of the tree that was alive when the command itself had ended."""

    pid: int
    command: str


class Attempt(Value):
    """One try at a task, with its ending once it has one."""

    number: int
    state: State
    created_at: datetime
    condition: Condition | None = None
    boot: str
    pid_namespace: int
    started_at: datetime | None = None
    ended_at: datetime | None = None
    settled_at: datetime | None = None
    exit_code: int | None = None
    signal: int | None = None
    reason: str | None = None
    detail: str | None = None
    settled_by: str | None = None
    delete_after: datetime | None = None
    left_running: tuple[LeftRunning, ...] = ()
    output_bytes: int | None = None
    output_dropped: int | None = None
    output_truncated: bool = False
    ticket: int | None = None
    """Its place in line, once it has one."""
    not_before: datetime | None = None
    automatic: bool = False
    """Tried again by its keeper, not by somebody who asked for it."""


class NoticeRow(Value):
    """One thing a session must be told, and what became of it."""

    id: str
    task: str
    attempt: int
    kind: str
    session: str | None
    state: str
    created_at: datetime
    tries: int = 0
    last_error: str | None = None


class Origin(Value):
    """The session that launched a task, as the ledger knows it."""

    session: int
    lineage: str
    boundary: int
    """How many boundaries the session had crossed by then."""


class Task(Value):
    """A task as it stands: its newest attempt speaks for it."""

    launch: Launch
    attempts: tuple[Attempt, ...]
    lineage: str | None = None
    """The sessions that are told of it: the one that launched it, and those that continue that."""

    @property
    def id(self) -> str:
        """Its name."""
        return self.launch.id

    @property
    def current(self) -> Attempt:
        """The newest attempt."""
        return self.attempts[-1]

    def first_try(self, number: int) -> Attempt:
        """The attempt that this one goes on from by itself, and so on; what all of these touched is told together."""
        while number > 1 and self.attempts[number - 1].automatic:
            number -= 1
        return self.attempts[number - 1]

    @property
    def state(self) -> State:
        """The newest attempt's state."""
        return self.current.state


class History(Value):
    """What the ledger remembers of a task beyond its state: for `show` and for audits."""

    moves: tuple[tuple[int, str | None, str, datetime], ...]
    evidence: tuple[tuple[int, datetime, Evidence], ...]
    notices: tuple[NoticeRow, ...]
    deliveries: tuple[Delivery, ...] = ()
