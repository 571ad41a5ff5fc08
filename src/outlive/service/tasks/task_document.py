"""Tasks as JSON documents, with their effects, drift and overlaps as they are now."""

from __future__ import annotations

from outlive.domain.tasks.task_json import history_json, task_json
from outlive.service.effects.effects import effects_document, effects_of, git_document
from outlive.service.effects.find_drift import World, drift_document
from outlive.service.effects.overlaps import Neighbours, overlaps_document, overlaps_of
from outlive.service.tasks.queue_reason import waiting_json
from outlive.service.tasks.read import history_of, output_view

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.effects.drift import Drift
    from outlive.domain.effects.overlap import Overlap
    from outlive.domain.tasks.task import Task


def task_document(home: Home, task: Task, now: datetime) -> dict[str, object]:
    """Return a task as JSON."""
    effects = effects_document(effects_of(home, task), now)
    document = task_json(task, output_view(home, task), now, effects)
    return {**document, "git": git_document(home, task), "waiting_for": waiting_json(home, task)}


def full_document(home: Home, task: Task, now: datetime) -> dict[str, object]:
    """Return a task as JSON with its history, drift and overlaps."""
    drift = drift_document(drift_now(home, task))
    overlaps = overlaps_document(overlaps_now(home, task), now)
    return {
        **task_document(home, task, now),
        **history_json(history_of(home, task)),
        "drift": drift,
        "overlap": overlaps,
    }


def overlaps_now(home: Home, task: Task) -> tuple[Overlap, ...]:
    """Return the overlaps of a task's newest attempt."""
    return overlaps_of(Neighbours(home), task, task.current.number, effects_of(home, task))


def drift_now(home: Home, task: Task) -> Drift | None:
    """Return what changed since the newest attempt ended; None without a snapshot."""
    if task.current.settled_at is None:
        return None
    return World().drift_of(home, task, task.current.number, effects_of(home, task))
