"""The parts of a task: the request (`Launch`) and its attempts (`Attempt`)."""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from typing import Literal

    from outlive.domain.agents.request import AgentRequest
    from outlive.domain.agents.result import AgentResult
    from outlive.domain.tasks.evidence import Evidence
    from outlive.domain.tasks.lifecycle import Condition, State
    from outlive.domain.tasks.queueing import Claim, Dependency
    from outlive.domain.tasks.sink_config import Delivery

    Mode = Literal["background", "foreground"]
    Kind = Literal["command", "agent"]
    KeyScope = Literal["succeeded", "ended"]
    Notify = Literal["all", "end", "output", "failure", "never"]
    Observe = Literal["auto", "syscalls", "watch", "compare", "off"]

NOTIFY: tuple[Notify, ...] = ("all", "end", "output", "failure", "never")
AWAITED: tuple[Notify, ...] = ("all", "end", "output")
"""The policies that report a success as well as a failure.

A session waits for tasks with such a policy.
"""


class Launch(Value):
    """The request of a task, without the environment, which may contain secrets."""

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
    """The project in which the session works. None if the session works in the task's project."""
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
    """Whether input can be sent to the task. Otherwise its standard input is empty."""
    touches: tuple[str, ...] = ()
    """Absolute paths that the task is going to touch, as its launcher declared."""
    retain: timedelta
    adopted_pid: int | None = None
    """The pid of the adopted process. None for a command that Outlive started."""
    adopted_output: str | None = None
    """The file from which the adopted process's output is copied. None if the output cannot be read."""
    agent: AgentRequest | None = None
    """The request of an agent task, whose `command` is the command of the first attempt. None for a command task."""

    @property
    def kind(self) -> Kind:
        """Whether the task is a command or an agent."""
        return "command" if self.agent is None else "agent"

    @property
    def automatic_attempts(self) -> int:
        """How often the task may be tried again automatically.

        The number is the sum of the retries and, for an agent, its other models.
        """
        return self.retries + (0 if self.agent is None else len(self.agent.candidates) - 1)

    @property
    def is_queued(self) -> bool:
        """Whether the task may have to wait for other tasks before it begins.

        An agent task may always have to wait, because the number of agents that use a model at once is limited.
        """
        return bool(self.after or self.claims) or self.agent is not None


class LeftRunning(Value):
    """A process that the task had started and that still ran when the command ended."""

    pid: int
    command: str
    start: int = 0
    inode: int = 0
    """A number that a later process with the same pid does not have (see `linux.processes`). 0 in older records."""


class Attempt(Value):
    """One attempt of a task. The fields about its end are set when it has ended."""

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
    """The attempt's place in the queue. None until the attempt gets its ticket."""
    not_before: datetime | None = None
    automatic: bool = False
    """Whether the attempt is an automatic retry that a keeper started."""
    claims: tuple[Claim, ...] | None = None
    """The named limits on how many agents' attempts may run at once.

    None for a command, whose limits are in the launch.
    """
    agent: AgentResult | None = None
    """The client and model of an agent, and how the attempt ended. None for a command."""


class NoticeRow(Value):
    """One notice for a session, and the state of its delivery."""

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
    """The session that launched a task, as the ledger records it."""

    session: int
    lineage: str
    boundary: int
    """How often the session had begun, resumed or compacted when it launched the task."""


class Task(Value):
    """A task with its attempts. The task has the state of its newest attempt."""

    launch: Launch
    attempts: tuple[Attempt, ...]
    lineage: str | None = None
    """The id that links the launching session with all sessions that continue it.

    These sessions get the task's notices.
    """

    @property
    def id(self) -> str:
        """The task's id."""
        return self.launch.id

    @property
    def current(self) -> Attempt:
        """The newest attempt."""
        return self.attempts[-1]

    def first_try(self, number: int) -> Attempt:
        """Return the attempt of which the attempt `number` is an automatic retry.

        Returns the attempt `number` itself if it is not an automatic retry. The effects of an attempt and its automatic
        retries are reported together.
        """
        while number > 1 and self.attempts[number - 1].automatic:
            number -= 1
        return self.attempts[number - 1]

    @property
    def state(self) -> State:
        """The state of the newest attempt."""
        return self.current.state

    @property
    def has_asked(self) -> bool:
        """Whether the newest attempt ended with a question of its agent."""
        return self.current.agent is not None and self.current.agent.agent_class == "asked"


class History(Value):
    """The changes of state, evidence, notices and deliveries of a task."""

    moves: tuple[tuple[int, str | None, str, datetime], ...]
    evidence: tuple[tuple[int, datetime, Evidence], ...]
    notices: tuple[NoticeRow, ...]
    deliveries: tuple[Delivery, ...] = ()
