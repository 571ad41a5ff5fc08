"""Settling: the one way a task ends.

A task ends in three writes that are only ever true together: its terminal state, the notice
that tells the session, and the date its record may go. This module decides all three without
touching a database; `Ledger.settle` makes them true in one transaction.
"""

from __future__ import annotations

from outlive.domain.evidence import decide
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from outlive.domain.evidence import Evidence, Intent, Verdict
    from outlive.domain.task import Launch, LeftRunning, Notify


class OutputSize(Value):
    """How much the command wrote, and what of it is gone."""

    written: int | None = None
    dropped: int = 0
    truncated: bool = False


class Settlement(Value):
    """Everything that becomes true when an attempt ends."""

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
    session: str | None
    group: str | None = None
    left_running: tuple[LeftRunning, ...]
    output: OutputSize


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
) -> Settlement:
    """What ending this attempt means, from what was seen of it."""
    verdict = decide(evidence, intent, len(left_running) if intent else 0)
    kind = "lost" if verdict.state == "lost" else "ended"
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
        session=launch.session,
        group=launch.group,
        left_running=tuple(left_running),
        output=output or OutputSize(),
    )


def told_as_retrying(settlement: Settlement, launch: Launch) -> Settlement:
    """The same, if the task is tried again by itself: the attempt has ended, the task has not.

    Only who asked to be told of everything is told of that.
    """
    return settlement.but(
        notice_id=notice_id(launch.id, settlement.attempt, "retrying"),
        notice_kind="retrying",
        notice_state="pending" if launch.notify == "all" else "dismissed",
    )


def _is_wanted(policy: Notify, state: str) -> bool:
    """Whether the launcher asked to be told of such an ending."""
    return policy in ("all", "end") or (policy == "failure" and state != "succeeded")


def notice_id(task: str, attempt: int, kind: str) -> str:
    """The stable name of a notice: whoever delivers it twice delivers the same one."""
    return f"n{task}{attempt:02d}{kind.replace('_', '')}"
