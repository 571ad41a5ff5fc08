"""Conversion between Python values and the columns of the ledger's tables."""

from __future__ import annotations

from outlive.domain.tasks.evidence import Evidence
from outlive.domain.tasks.task import Attempt, Launch, LeftRunning, NoticeRow
from outlive.domain.text.sanitize import from_json, to_json
from outlive.domain.timestamps import from_micros, timedelta, to_micros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from typing import Any

    from outlive.domain.agents.request import AgentRequest
    from outlive.domain.agents.result import AgentResult
    from outlive.domain.tasks.queueing import Claim, Dependency

    Cell = str | bytes | int | float | None
    Row = tuple[Any, ...]

TASK_COLUMNS = (
    "id, command, argv, cwd, project, host, created_at, description, session, parent, grp, key, "
    "mode, engine, timeout, max_output, notify, retain, after, claims, idle_timeout, queue_timeout, retries, "
    "observe, takes_input, touches, adopted_pid, adopted_output, kind, agent"
)
ATTEMPT_COLUMNS = (
    "number, state, condition, boot, pid_namespace, created_at, started_at, ended_at, settled_at, exit_code, "
    "signal, reason, detail, settled_by, delete_after, left_running, output_bytes, output_dropped, output_truncated, "
    "ticket, not_before, automatic, claims, agent"
)


def text(given: str | None) -> str | bytes | None:
    """Return free text as a value for a column, or as bytes if it is not valid UTF-8."""
    if given is None:
        return None
    try:
        given.encode("utf-8")
    except UnicodeEncodeError:
        return given.encode("utf-8", "surrogateescape")
    return given


def sentence(given: str | None) -> str | None:
    """Return a sentence as a value for a column.

    Bytes that are not valid UTF-8 are written as escapes. Such bytes occur in names within the sentence.
    """
    return given if given is None else given.encode("utf-8", "backslashreplace").decode("utf-8")


def from_text(cell: str | bytes) -> str:
    """Return the free text that a column contains."""
    return cell.decode("utf-8", "surrogateescape") if isinstance(cell, bytes) else cell


def optional(cell: str | bytes | None) -> str | None:
    """Return the free text that a column contains, or None if the column is NULL."""
    return None if cell is None else from_text(cell)


def micros(moment: datetime | None) -> int | None:
    """Return a time as a value for a column, in microseconds."""
    return None if moment is None else to_micros(moment)


def moment(cell: int | None) -> datetime | None:
    """Return the time that a column contains, or None if the column is NULL."""
    return None if cell is None else from_micros(cell)


def span(length: timedelta | None) -> int | None:
    """Return a duration as a value for a column."""
    return None if length is None else length // timedelta(microseconds=1)


def _length(cell: int | None) -> timedelta | None:
    return None if cell is None else timedelta(microseconds=cell)


def launch_row(launch: Launch) -> tuple[Cell, ...]:
    """Return the data of a task's launch as a row in the order of `TASK_COLUMNS`."""
    return (
        launch.id,
        text(launch.command),
        to_json(launch.argv),
        text(launch.cwd),
        text(launch.project),
        launch.host,
        to_micros(launch.created_at),
        text(launch.description),
        text(launch.session),
        launch.parent,
        text(launch.group),
        text(launch.key),
        launch.mode,
        launch.engine,
        span(launch.timeout),
        launch.max_output,
        launch.notify,
        span(launch.retain),
        to_json([[each.task, each.any_ending] for each in launch.after]),
        claims_cell(launch.claims),
        span(launch.idle_timeout),
        span(launch.queue_timeout),
        launch.retries,
        launch.observe,
        launch.takes_input,
        to_json(launch.touches),
        launch.adopted_pid,
        text(launch.adopted_output),
        launch.kind,
        _request_cell(launch),
    )


def _request_cell(launch: Launch) -> str | None:
    if launch.agent is None:
        return None
    from outlive.domain.agents.request import request_json  # noqa: PLC0415 - only agent tasks need this import

    return to_json(request_json(launch.agent))


def _request(cell: str | None) -> AgentRequest | None:
    if cell is None:
        return None
    from outlive.domain.agents.request import request_from  # noqa: PLC0415 - only agent tasks need this import

    found = from_json(cell)
    return request_from(found) if isinstance(found, dict) else None


def agent_cell(result: AgentResult | None) -> str | None:
    """Return the result of an agent's attempt as a value for a column."""
    if result is None:
        return None
    from outlive.domain.agents.result import result_json  # noqa: PLC0415 - only agent tasks need this import

    return to_json(result_json(result))


def agent_from(cell: str | None) -> AgentResult | None:
    """Return the result of an agent's attempt from a column.

    Returns None for an attempt that ran a command.
    """
    if cell is None:
        return None
    from outlive.domain.agents.result import result_from  # noqa: PLC0415 - only agent tasks need this import

    found = from_json(cell)
    return result_from(found) if isinstance(found, dict) else None


def claims_cell(claims: Iterable[Claim] | None) -> str | None:
    """Return an attempt's limits on parallel attempts as a value for a column.

    None means that the limits of the task apply.
    """
    return None if claims is None else to_json([[each.name, each.room] for each in claims])


def launch_from(row: Row) -> Launch:
    """Return the data of a task's launch from a row in the order of `TASK_COLUMNS`."""
    (
        id_,
        command,
        argv,
        cwd,
        project,
        host,
        created,
        description,
        session,
        parent,
        group,
        key,
        *rest,
    ) = row
    mode, engine, timeout, max_output, notify, retain, after, claims, idle_timeout, queue_timeout, *last = rest
    retries, observe, takes_input, touches, adopted_pid, adopted_output, _, agent = last
    return Launch(
        id=id_,
        command=from_text(command),
        argv=tuple(str(word) for word in _array(argv)),
        cwd=from_text(cwd),
        project=from_text(project),
        host=host,
        created_at=from_micros(created),
        description=optional(description),
        session=optional(session),
        parent=parent,
        group=optional(group),
        key=optional(key),
        mode=mode,
        engine=engine,
        timeout=_length(timeout),
        idle_timeout=_length(idle_timeout),
        queue_timeout=_length(queue_timeout),
        retries=retries,
        observe=observe,
        takes_input=bool(takes_input),
        touches=tuple(str(path) for path in _array(touches)),
        after=_dependencies(after),
        claims=_claims(claims),
        max_output=max_output,
        notify=notify,
        retain=timedelta(microseconds=retain),
        adopted_pid=adopted_pid,
        adopted_output=optional(adopted_output),
        agent=_request(agent),
    )


def _dependencies(cell: str) -> tuple[Dependency, ...]:
    if cell == "[]":
        return ()
    from outlive.domain.tasks.queueing import Dependency  # noqa: PLC0415 - only tasks with a dependency need this import

    return tuple(Dependency(task=task, any_ending=any_ending) for task, any_ending in _array(cell))


def _claims(cell: str) -> tuple[Claim, ...]:
    if cell == "[]":
        return ()
    from outlive.domain.tasks.queueing import Claim  # noqa: PLC0415 - only tasks with a limit on parallel attempts need this import

    return tuple(Claim(name=name, room=room) for name, room in _array(cell))


def attempt_from(row: Row) -> Attempt:
    """Return the attempt that a row in the order of `ATTEMPT_COLUMNS` describes."""
    (
        number,
        state,
        condition,
        boot,
        namespace,
        created,
        started,
        ended,
        settled,
        code,
        signal,
        *rest,
    ) = row
    reason, detail, settled_by, delete_after, left, size, dropped, truncated, *last = rest
    ticket, not_before, automatic, claims, agent = last
    return Attempt(
        number=number,
        state=state,
        condition=condition,
        boot=boot,
        pid_namespace=namespace,
        created_at=from_micros(created),
        started_at=moment(started),
        ended_at=moment(ended),
        settled_at=moment(settled),
        exit_code=code,
        signal=signal,
        reason=reason,
        detail=detail,
        settled_by=settled_by,
        delete_after=moment(delete_after),
        left_running=tuple(_left_running(cells) for cells in _array(left)),
        output_bytes=size,
        output_dropped=dropped,
        output_truncated=bool(truncated),
        ticket=ticket,
        not_before=moment(not_before),
        automatic=bool(automatic),
        claims=None if claims is None else _claims(claims),
        agent=agent_from(agent),
    )


def left_running_text(left: Iterable[LeftRunning]) -> str:
    """Return the processes that outlived their command, as a value for a column."""
    return to_json([[process.pid, process.command, process.start, process.inode] for process in left])


def _left_running(cells: list[Any]) -> LeftRunning:
    """Return the record of a process that kept running after its command had ended.

    Records of older versions lack the process's start time and inode.
    """
    pid, command, start, inode = (*cells, 0, 0)[:4]
    return LeftRunning(pid=pid, command=command, start=start, inode=inode)


def evidence_row(evidence: Evidence) -> tuple[Cell, ...]:
    """Return how an attempt ended, as a row of the evidence table."""
    return (
        evidence.kind,
        evidence.seen_by,
        evidence.exit_code,
        evidence.signal,
        evidence.started,
        evidence.cause,
        sentence(evidence.detail),
        micros(evidence.at),
    )


def evidence_from(row: Row) -> Evidence:
    """Return how an attempt ended, read from a row of the evidence table.

    The columns have the order of the fields of `Evidence`.
    """
    found = dict(zip(Evidence._fields, row, strict=True))
    return Evidence(**{**found, "at": moment(found["at"])})


def notice_from(row: Row) -> NoticeRow:
    """Return the notice that a row describes."""
    id_, task, attempt, kind, session, state, created, tries, error = row
    return NoticeRow(
        id=id_,
        task=task,
        attempt=attempt,
        kind=kind,
        session=optional(session),
        state=state,
        created_at=from_micros(created),
        tries=tries,
        last_error=error,
    )


def _array(cell: str) -> list[Any]:
    # Usually the array is empty. Then it is not parsed, because parsing would import `json`, which is slow.
    if cell == "[]":
        return []
    parsed = from_json(cell)
    return parsed if isinstance(parsed, list) else []
