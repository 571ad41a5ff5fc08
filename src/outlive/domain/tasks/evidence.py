"""Evidence of an attempt's end, and the verdict that follows from the evidence.

Evidence is the observation of a process: the command exited, was ended by a signal, never started or vanished. An
intent is an earlier decision, for example to cancel the attempt. The verdict depends only on the evidence and the
intent. So a keeper, the reconciler and a person who reads the record all reach the same verdict.
"""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Literal

    from outlive.domain.agents.result import AgentResult
    from outlive.domain.tasks.lifecycle import State

    EvidenceKind = Literal["exited", "signalled", "not_started", "vanished"]
    IntentKind = Literal[
        "cancel",
        "timeout",
        "idle_timeout",
        "queue_timeout",
        "dependency",
        "output_limit",
        "session_ended",
        "runaway",
        "cost_limit",
        "token_limit",
        "turn_limit",
        "lingered",
    ]
    Started = Literal["yes", "no", "unknown"]


INSTALLATION_GONE = "installation_gone"
"""The cause of evidence and the reason of a failure: the keeper of a queued task found no installation of Outlive."""
KILLED_AT_START = "killed_at_start"
"""The cause of evidence and the reason of a loss: a process was killed, so the command never began."""
LAUNCHER_KILLED = "launcher_killed"
"""The cause of evidence and the reason of a loss: without its launcher's go, the command never began."""
EXIT_UNKNOWN = "exit_unknown"
"""The cause of evidence and the reason of a failure: the end was observed, but the exit code is not known."""


UNANSWERED = (
    "its keeper and its witness were killed while it ran: it was not observed from then on, and calls of it that"
    " change files may have failed"
)
"""The detail of an ending, if keeper and witness of an observed command died before the command ended."""


class Evidence(Value):
    """The observation of an attempt's end by a process. Unknown fields are None."""

    kind: EvidenceKind
    seen_by: str
    exit_code: int | None = None
    signal: int | None = None
    started: Started = "yes"
    cause: str | None = None
    detail: str | None = None
    at: datetime | None = None


class Intent(Value):
    """A decision to end an attempt, made before the attempt's end was observed."""

    kind: IntentKind
    at: datetime


class Verdict(Value):
    """How an attempt ended. `reason` is for programs, and `detail` is for people."""

    state: State
    exit_code: int | None
    signal: int | None
    reason: str | None
    detail: str | None


_WHEN_INTENDED: dict[IntentKind, tuple[State, str]] = {
    "cancel": ("cancelled", "requested"),
    "session_ended": ("cancelled", "session_ended"),
    "timeout": ("timed_out", "timeout"),
    "idle_timeout": ("timed_out", "idle_timeout"),
    "queue_timeout": ("timed_out", "queue_timeout"),
    "dependency": ("cancelled", "dependency_failed"),
    "output_limit": ("failed", "output_limit"),
    "runaway": ("failed", "runaway"),
    "cost_limit": ("failed", "cost_limit"),
    "token_limit": ("failed", "token_limit"),
    "turn_limit": ("failed", "turn_limit"),
}
LINGERED: IntentKind = "lingered"
"""The intent to end a client that has answered and does not exit. It says nothing about the answer."""
INTENTS: tuple[IntentKind, ...] = (*_WHEN_INTENDED, LINGERED)


def refused(intent: Intent, seen_by: str, detail: str | None = None) -> Evidence:
    """Return the evidence of an attempt that an intent ended before it began."""
    return Evidence(kind="not_started", seen_by=seen_by, started="no", cause=intent.kind, detail=detail, at=intent.at)


def decide(evidence: Evidence, intent: Intent | None, survivors: int = 0, agent: AgentResult | None = None) -> Verdict:
    """Return the verdict on an attempt.

    `survivors` is the number of the attempt's processes that were still alive after an intended end. If there are any,
    the attempt counts as failed, and the reason is the intent's kind with the suffix `_incomplete`.

    For an agent, its class decides, because clients exit with 0 after failures and with other codes after answers.
    """
    if evidence.kind == "vanished":
        return _verdict(evidence, "lost", evidence.cause or "unknown")
    if evidence.kind == "not_started" and intent is None:
        return _verdict(evidence, "failed", INSTALLATION_GONE if evidence.cause == INSTALLATION_GONE else "not_started")
    if agent is not None and evidence.kind != "not_started" and (intent is None or intent.kind == LINGERED):
        seen = evidence.but(detail=evidence.detail or agent.question or agent.error)
        if agent.agent_class == "answered":
            return _verdict(seen, "succeeded", None)
        return _verdict(seen, "failed", agent.limit or agent.agent_class)
    if evidence.kind == "exited" and evidence.exit_code is None and intent is None:
        return _verdict(evidence, "failed", EXIT_UNKNOWN)
    if intent is not None:
        if survivors:
            return _verdict(evidence, "failed", f"{intent.kind}_incomplete")
        state, reason = _WHEN_INTENDED[intent.kind]
        return _verdict(evidence, state, reason)
    return _verdict(evidence, "succeeded" if evidence.exit_code == 0 else "failed", None)


def _verdict(evidence: Evidence, state: State, reason: str | None) -> Verdict:
    return Verdict(
        state=state,
        exit_code=evidence.exit_code,
        signal=evidence.signal,
        reason=reason,
        detail=evidence.detail,
    )
