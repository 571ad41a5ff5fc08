"""Settling: the only way in which a task ends.

A task ends with three facts, which must be recorded together: its terminal state, the notice for its session, and the
date from which its record may be deleted. This module decides all three facts without a database. `Ledger.settle`
writes them in one transaction.
"""

from __future__ import annotations

from outlive.domain.tasks.evidence import LINGERED, decide
from outlive.domain.tasks.task import AWAITED
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from outlive.domain.agents.result import AgentClass, AgentResult
    from outlive.domain.tasks.evidence import Evidence, Intent, Verdict
    from outlive.domain.tasks.task import Launch, LeftRunning, Notify


class OutputSize(Value):
    """The number of bytes that the command wrote, and the number of dropped bytes."""

    written: int | None = None
    dropped: int = 0
    truncated: bool = False


class Settlement(Value):
    """What is recorded when an attempt ends: its state, its notice, and related facts."""

    task: str
    attempt: int
    verdict: Verdict
    evidence: Evidence
    settled_at: datetime
    settled_by: str
    delete_after: datetime
    notice_id: str
    notice_kind: str
    notice_state: str
    is_quiet: bool = False
    """Whether the notice waits for the session's next turn and does not wake the session."""
    session: str | None
    group: str | None = None
    left_running: tuple[LeftRunning, ...]
    output: OutputSize
    agent: AgentResult | None = None
    """The result that the client's adapter read from an agent's output. None for a command."""


def plan_settlement(
    launch: Launch,
    attempt: int,
    evidence: Evidence,
    intent: Intent | None,
    *,
    now: datetime,
    settled_by: str,
    left_running: Sequence[LeftRunning] = (),
    output: OutputSize | None = None,
    agent: AgentResult | None = None,
) -> Settlement:
    """Return the settlement of an attempt, from the evidence of its end.

    `agent` is the result that the client's adapter read from an agent's output.
    """
    if agent is not None:
        agent = agent.but(agent_class=_class_of(agent, evidence, intent))
        if intent is not None and intent.kind != LINGERED:
            agent = agent.but(error=evidence.detail)  # the intent ended the attempt, and not the client's last error
    verdict = decide(evidence, intent, len(left_running) if intent else 0, agent)
    kind = "lost" if verdict.state == "lost" else "ended"
    output = output or OutputSize()
    return Settlement(
        task=launch.id,
        attempt=attempt,
        verdict=verdict,
        evidence=evidence,
        settled_at=now,
        settled_by=settled_by,
        delete_after=now + launch.retain,
        notice_id=notice_id(launch.id, attempt, kind),
        notice_kind=kind,
        notice_state="pending" if _is_wanted(launch.notify, verdict.state) else "dismissed",
        is_quiet=_is_quiet(launch.notify, verdict.state, output),
        session=launch.session,
        group=launch.group,
        left_running=tuple(left_running),
        output=output,
        agent=agent,
    )


def _class_of(agent: AgentResult, evidence: Evidence, intent: Intent | None) -> AgentClass | None:
    """Return the class of an agent's result, given why the agent's attempt ended.

    An agent that was ended after a long silence counts as unavailable, because its model may be unavailable. If no
    process observed the end of the attempt, only the classes `answered` and `asked` are certain.
    """
    if evidence.kind == "vanished":
        return agent.agent_class if agent.agent_class in ("answered", "asked") else None
    if intent is None or intent.kind == LINGERED:
        return agent.agent_class
    return "unavailable" if intent.kind == "idle_timeout" else "stopped"


def told_as_retrying(settlement: Settlement, launch: Launch) -> Settlement:
    """Return the settlement of an attempt whose task is retried automatically.

    The task has not ended, so the notice is normally delivered only with the launcher's policy `all`. For an agent,
    the other policies in `AWAITED` also deliver a notice, at the session's next turn. The notice names the next model.
    """
    is_wanted = launch.notify == "all" or (launch.agent is not None and launch.notify in AWAITED)
    return settlement.but(
        notice_id=notice_id(launch.id, settlement.attempt, "retrying"),
        notice_kind="retrying",
        notice_state="pending" if is_wanted else "dismissed",
        is_quiet=launch.notify != "all",
    )


def _is_wanted(policy: Notify, state: str) -> bool:
    """Return whether the launcher's policy asks for a notice about this final state."""
    return policy in AWAITED or (policy == "failure" and state != "succeeded")


def _is_quiet(policy: Notify, state: str, output: OutputSize) -> bool:
    """Return whether a notice waits for the session's next turn.

    With the policy `output`, the notice of a success waits only if the task is known to have no output.
    """
    return policy == "output" and state == "succeeded" and output.written == 0


def notice_id(task: str, attempt: int, kind: str) -> str:
    """Return the id of a notice. Every delivery of the notice has the same id."""
    return f"n{task}{attempt:02d}{kind.replace('_', '')}"
