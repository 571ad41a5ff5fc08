"""Evidence of an attempt's end, and the verdict that follows from the evidence.

Evidence is what an Outlive process observed of the command: the command exited, was ended by a signal, never started or
vanished. An intent is an earlier decision to end the attempt, for example a cancel. A verdict is the final state of the
attempt with its reason. The verdict depends only on the arguments of `decide`. So a keeper, the reconciler and a person
who reads the record reach the same verdict.
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
"""A value of `cause` and `reason`: a queued task could not start.

Its keeper found no installation of Outlive, so the task failed.
"""
KILLED_AT_START = "killed_at_start"
"""A value of `cause` and `reason`: a process was killed before the command began.

Then the task is lost.
"""
LAUNCHER_KILLED = "launcher_killed"
"""A value of `cause` and `reason`: the launcher was killed too early.

It was killed before it allowed the command to begin, so the task is lost.
"""
EXIT_UNKNOWN = "exit_unknown"
"""A value of `cause` and `reason`: the end was seen, but not the exit code.

Then the task counts as failed.
"""


UNANSWERED = (
    "its keeper and its witness were killed while it ran: it was not observed from then on, and calls of it that"
    " change files may have failed"
)
"""The `detail` of an attempt whose keeper and witness were killed before its end.

The keeper and the witness are the processes that observe the command.
"""


class Evidence(Value):
    """What a process has observed of an attempt's end. Unknown fields are None."""

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
"""The decision to end a client that has answered but does not exit.

This decision does not change the verdict on the attempt.
"""
INTENTS: tuple[IntentKind, ...] = (*_WHEN_INTENDED, LINGERED)


def refused(intent: Intent, seen_by: str, detail: str | None = None) -> Evidence:
    """Return the evidence of an attempt that was ended before its command began."""
    return Evidence(kind="not_started", seen_by=seen_by, started="no", cause=intent.kind, detail=detail, at=intent.at)


def decide(evidence: Evidence, intent: Intent | None, survivors: int = 0, agent: AgentResult | None = None) -> Verdict:
    """Return the verdict on an attempt: its final state and the reason.

    `survivors` is the number of the attempt's processes that were still running after Outlive had ended the attempt.
    If this number is not 0, the attempt counts as failed, and the reason gets the suffix `_incomplete`.

    For an agent, the class of its result decides, and not the exit code. Clients may exit with 0 after a failure, and
    with another code after an answer.
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
