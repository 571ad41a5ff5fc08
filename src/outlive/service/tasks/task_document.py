"""Tasks as JSON documents, with their effects as they are now.

The documents also have the changes since a task ended, and what other tasks did meanwhile.
"""

from __future__ import annotations

from outlive.domain.tasks.task_json import history_json, task_json
from outlive.service.effects.effects import effects_document, effects_of, git_document
from outlive.service.effects.find_drift import World, drift_document
from outlive.service.effects.overlaps import Neighbours, overlaps_document, overlaps_of
from outlive.service.tasks.read import history_of, output_view, ports_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.effects.drift import Drift
    from outlive.domain.effects.effects import Effects
    from outlive.domain.effects.overlap import Overlap
    from outlive.domain.tasks.task import Task


def task_document(home: Home, task: Task, now: datetime, effects: Effects | None = None) -> dict[str, object]:
    """Return a task as JSON.

    `effects` are the effects of the task's newest attempt, if the caller has computed them before.
    """
    found = effects_document(effects_of(home, task) if effects is None else effects, now)
    document = task_json(task, output_view(home, task), now, found)
    if task.launch.agent is not None:
        from outlive.service.agents.agent_view import agent_document  # noqa: PLC0415 - imported here, because only agent tasks need it

        document["agent"] = agent_document(home, task)
    return {
        **document,
        "git": git_document(home, task),
        "waiting_for": _waiting(home, task),
        "ports": ports_of(home, task),
    }


def _waiting(home: Home, task: Task) -> dict[str, object] | None:
    """Return as JSON what a queued task waits for, or None for any other task."""
    if task.state != "queued":
        return None
    from outlive.service.tasks.queue_reason import waiting_json  # noqa: PLC0415 - imported here, because only a queued task needs it

    return waiting_json(home, task)


def full_document(home: Home, task: Task, now: datetime) -> dict[str, object]:
    """Return a task as JSON with its history.

    The JSON also has the changes since the task ended (drift), and what other tasks did while it ran (overlaps).
    """
    effects = effects_of(home, task)
    drift = drift_document(drift_now(home, task, effects))
    overlaps = overlaps_document(overlaps_now(home, task, effects), now)
    return {
        **task_document(home, task, now, effects),
        **history_json(history_of(home, task)),
        "drift": drift,
        "overlap": overlaps,
    }


def overlaps_now(home: Home, task: Task, effects: Effects) -> tuple[Overlap, ...]:
    """Return what other tasks did while a task's newest attempt ran.

    The effects of the attempt are given.
    """
    began = task.first_try(task.current.number).started_at
    return overlaps_of(Neighbours(home, began), task, task.current.number, effects)


def drift_now(home: Home, task: Task, effects: Effects) -> Drift | None:
    """Return what has changed since a task's newest attempt ended.

    Returns None if the attempt has not ended, or if no snapshot was taken at its end.
    """
    if task.current.settled_at is None:
        return None
    return World().drift_of(home, task, task.current.number, effects)
