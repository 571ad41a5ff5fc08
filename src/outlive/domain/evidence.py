"""From what was seen to what it means.

Evidence is what a process saw: an exit, a signal, a command that never started, one that
vanished. An intent is what somebody had decided before the end: to cancel it, or that its time
was up. The verdict follows from the two and from nothing else, so that a keeper, the reconciler
and a person reading the record all come to the same one.
"""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Literal

    from outlive.domain.lifecycle import State

    EvidenceKind = Literal["exited", "signalled", "not_started", "vanished"]
    IntentKind = Literal[
        "cancel", "timeout", "idle_timeout", "queue_timeout", "dependency", "output_limit", "session_ended"
    ]
    Started = Literal["yes", "no", "unknown"]


class Evidence(Value):
    """What was seen of an attempt's end. Unknown stays None: no default exit code, no guessed time."""

    kind: EvidenceKind
    seen_by: str
    exit_code: int | None = None
    signal: int | None = None
    started: Started = "yes"
    cause: str | None = None
    detail: str | None = None
    at: datetime | None = None


class Intent(Value):
    """Somebody decided, before the end was seen, that this attempt must end."""

    kind: IntentKind
    at: datetime


class Verdict(Value):
    """How an attempt ended. `reason` is a word for programs, `detail` a sentence for people."""

    state: State
    exit_code: int | None
    signal: int | None
    reason: str | None
    detail: str | None


_WHEN_INTENDED: dict[str, tuple[State, str]] = {
    "cancel": ("cancelled", "requested"),
    "session_ended": ("cancelled", "session_ended"),
    "timeout": ("timed_out", "timeout"),
    "idle_timeout": ("timed_out", "idle_timeout"),
    "queue_timeout": ("timed_out", "queue_timeout"),
    "dependency": ("cancelled", "dependency_failed"),
    "output_limit": ("failed", "output_limit"),
}


def decide(evidence: Evidence, intent: Intent | None, survivors: int = 0) -> Verdict:
    """The verdict on an attempt.

    `survivors` counts processes of the tree that outlived an intended end. A cancel that left
    something alive is not a cancel, so it is called a failure that says so.
    """
    if evidence.kind == "vanished":
        return _verdict(evidence, "lost", evidence.cause or "unknown")
    if evidence.kind == "not_started" and intent is None:
        return _verdict(evidence, "failed", "not_started")
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
