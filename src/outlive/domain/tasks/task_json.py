"""The JSON of a task. Users' scripts depend on the names of its fields."""

from __future__ import annotations

from outlive.domain.text.redact import redact_words
from outlive.domain.text.sanitize import masked
from outlive.domain.timestamps import iso
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from outlive.domain.agents.result import AgentResult
    from outlive.domain.tasks.sink_config import Delivery
    from outlive.domain.tasks.task import Attempt, History, Task

_CLOCKS_DIFFER_BY_AT_MOST_S = 1


class OutputView(Value):
    """The output of an attempt as it can be read now."""

    path: str
    size: int
    dropped: int
    truncated: bool
    tail: str


def task_json(
    task: Task, output: OutputView, now: datetime, effects: dict[str, object] | None = None
) -> dict[str, object]:
    """Return a task as JSON values.

    The caller must add the values of the keys `git` and `agent`.
    """
    launch, attempt = task.launch, task.current
    return {
        "id": launch.id,
        "kind": launch.kind,
        "description": None if launch.description is None else masked(launch.description),
        "command": masked(launch.command),
        "argv": redact_words(launch.argv),
        "cwd": launch.cwd,
        "state": attempt.state,
        "exit_code": attempt.exit_code,
        "signal": attempt.signal,
        "reason": attempt.reason,
        "detail": None if attempt.detail is None else masked(attempt.detail),
        "condition": attempt.condition,
        "session": launch.session,
        "lineage": task.lineage,
        "project": launch.project,
        "group": launch.group,
        "parent": launch.parent,
        "key": launch.key,
        "mode": launch.mode,
        "engine": launch.engine,
        "host": launch.host,
        "attempt": attempt.number,
        "attempts": [_attempt_json(each, now) for each in task.attempts],
        "created_at": iso(launch.created_at),
        "started_at": iso(attempt.started_at),
        "ended_at": iso(attempt.ended_at),
        "settled_at": iso(attempt.settled_at),
        "duration_s": duration_s(attempt, now),
        "delete_after": iso(attempt.delete_after),
        "output": {
            "path": output.path,
            "bytes": output.size,
            "dropped_bytes": output.dropped,
            "truncated": output.truncated,
            "tail": output.tail,
        },
        "git": None,
        "agent": None,
        "effects": effects,
        "left_running": [{"pid": left.pid, "command": masked(left.command)} for left in attempt.left_running],
        "settled_by": attempt.settled_by,
        "adopted": None if launch.adopted_pid is None else {"pid": launch.adopted_pid, "output": launch.adopted_output},
    }


def _attempt_json(attempt: Attempt, now: datetime) -> dict[str, object]:
    return {
        "number": attempt.number,
        "state": attempt.state,
        "exit_code": attempt.exit_code,
        "signal": attempt.signal,
        "reason": attempt.reason,
        "started_at": iso(attempt.started_at),
        "settled_at": iso(attempt.settled_at),
        "duration_s": duration_s(attempt, now),
        "settled_by": attempt.settled_by,
        "agent": None if attempt.agent is None else _attempt_of_agent(attempt.agent),
    }


def _attempt_of_agent(agent: AgentResult) -> dict[str, object]:
    """Return the result of an agent's attempt as JSON values, without the answer."""
    return {
        "client": agent.client,
        "model": agent.model,
        "session": agent.session,
        "class": agent.agent_class,
        "error": None if agent.error is None else masked(agent.error),
        "turns": agent.turns,
        "cost_usd": agent.cost_usd,
    }


def duration_s(attempt: Attempt, now: datetime) -> float | None:
    """Return how many seconds an attempt ran until its end or until now.

    Returns None if the start or the end is not known.
    """
    end = attempt.ended_at if attempt.settled_at is not None else now
    if attempt.started_at is None or end is None:
        return None
    seconds = round((end - attempt.started_at).total_seconds(), 3)
    return None if seconds < -_CLOCKS_DIFFER_BY_AT_MOST_S else max(0.0, seconds)


def history_json(history: History) -> dict[str, object]:
    """Return a task's changes of state, evidence and notices as JSON values."""
    return {
        "moves": [
            {"attempt": number, "from": before, "to": after, "at": iso(at)}
            for number, before, after, at in history.moves
        ],
        "evidence": [
            {
                "attempt": number,
                "seen_at": iso(seen_at),
                "kind": seen.kind,
                "seen_by": seen.seen_by,
                "started": seen.started,
                "exit_code": seen.exit_code,
                "signal": seen.signal,
                "cause": seen.cause,
                "detail": None if seen.detail is None else masked(seen.detail),
                "at": iso(seen.at),
            }
            for number, seen_at, seen in history.evidence
        ],
        "notices": [
            {
                "id": notice.id,
                "kind": notice.kind,
                "session": notice.session,
                "state": notice.state,
                "tries": notice.tries,
                "last_error": notice.last_error,
                "sinks": [_delivery_json(each) for each in history.deliveries if each.notice == notice.id],
            }
            for notice in history.notices
        ],
    }


def _delivery_json(delivery: Delivery) -> dict[str, object]:
    return {
        "sink": delivery.sink,
        "state": delivery.state,
        "tries": delivery.tries,
        "last_error": delivery.last_error,
    }
