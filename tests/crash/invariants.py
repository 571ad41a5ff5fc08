"""The rules that hold for a task after any kill, and a short name for each violation.

The names do not change, because a planted bug must be reported under the name of the rule that it breaks.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from outlive.domain.tasks.lifecycle import is_terminal
from outlive.domain.tasks.task import Attempt, History
from tests.crash.life import (
    CODE,
    COMMAND,
    INTERMEDIATE,
    KEEPER,
    LAUNCHER,
    WITNESS,
    Aftermath,
)
from tests.crash.remains import Snapshot

_SIGKILL = 9


@dataclass(frozen=True)
class Point:
    """What is known about a launch in which processes were killed: which ones, and what keeper and command did."""

    dead: frozenset[str]  # the roles of the killed processes, for example keeper or command
    keeper_lived: bool = True  # whether the keeper was started and not killed; it must then settle the task
    began: bool | None = None  # whether the command was executed, or None if this is not known
    startable: bool = True  # whether the command can be executed at all


def point_of(after: Aftermath, failing: str | None, *, startable: bool) -> Point:
    """Return what is known about a launch in which a process was killed or a call failed, read from its trace."""
    trace = after.trace
    dead = frozenset(role for role, code in trace.exits.items() if code == -_SIGKILL)
    began: bool | None = after.ran[0] > 0
    if startable and COMMAND in dead and not began:
        # The command may have been killed between its exec and its first output. Only the calls of one process were
        # recorded. If this was another process, it is not known whether the command began.
        began = "execve" in trace.calls[COMMAND] if COMMAND in trace.calls else None
    return Point(
        dead=dead,
        keeper_lived=KEEPER in trace.exits and KEEPER not in dead and failing != KEEPER,
        began=began,
        startable=startable,
    )


def violations(after: Aftermath, point: Point) -> list[str]:
    """Return the names of all rules that do not hold after a launch in which a process was killed or a call failed."""
    return [
        *_of_processes(after, point),
        *(f"{text} (after the point)" for text in _of_notices(after.found)),
        *_of_notices(after.settled),
        *_of_launching(after, point),
        *_of_runs(after, point),
        *_of_endings(after, point),
        *_of_authors(after, point),
        *(f"damage: {text}" for text in after.damage),
    ]


def _of_processes(after: Aftermath, point: Point) -> Iterator[str]:
    for trace in (after.trace, after.again):
        if trace and trace.hung:
            yield f"hung: {trace.hung}"
        if trace and 70 in (trace.exits.get(LAUNCHER), trace.exits.get(INTERMEDIATE)):
            said = [a for a in after.answers if not a.startswith((" ", "id ", "orphans ", "refused "))]
            yield f"raised: {said[-1:]}"
    if after.orphans:
        yield "orphan although everybody is dead"
    if after.settled != after.untouched:
        yield "second reconcile changed something"
    if point.keeper_lived and any(len(a) > 8 for a in after.answers if a.startswith("orphans ")):
        yield "orphan although its keeper lives"


def _of_notices(snapshot: Snapshot) -> Iterator[str]:
    for task, history in snapshot:
        for attempt in task.attempts:
            told = sum(
                notice.attempt == attempt.number and notice.kind in ("ended", "lost") for notice in history.notices
            )
            if is_terminal(attempt.state):
                if told != 1:
                    yield f"{told} ending notices"
                if attempt.delete_after is None:
                    yield "ended without a retention date"
            elif told or attempt.delete_after is not None:
                yield "alive with an ending's notice or date"


def _of_launching(after: Aftermath, point: Point) -> Iterator[str]:
    rows = {task.id for task, _ in after.settled}
    for task in after.printed:
        if task not in rows:
            yield "printed id without a row"
    if len(rows) > 1:
        yield "two tasks of one key"
    # A task whose command never began is tried again. The second try reports that the command cannot be executed.
    is_told = not point.startable and after.answers[-1:] and after.answers[-1].startswith("refused not_started")
    if after.again and not after.again.hung and not after.printed and not is_told:
        yield f"refused when asked again: {after.answers[-1:]}"


def _of_runs(after: Aftermath, point: Point) -> Iterator[str]:
    before, total = after.ran
    if total > 1:
        yield f"ran {total} times"
    if before and not after.found:
        yield "ran before it was on record"
    if after.printed and not after.again and point.began is False and COMMAND not in point.dead:
        yield "printed as running although it had not begun"
    old = {(task.id, attempt.number) for task, _ in after.found for attempt in task.attempts}
    for task, history in after.settled:
        for attempt in task.attempts:
            is_old = (task.id, attempt.number) in old
            began = point.began if is_old else total > before
            evidence = [seen for number, _, seen in history.evidence if number == attempt.number]
            said = {seen.started for seen in evidence}
            if began is False and "yes" in said:
                yield "said to have begun although it had not"
            if began and "no" in said:
                yield "said never to have begun although it had"
            if began and not _was_announced(attempt, history):
                yield "ran before its row said so"
            # A command that cannot be executed fails at every try. Any other command must begin at the next try.
            causes = {seen.cause for seen in evidence}
            if after.again and attempt is task.current and said == {"no"} and not causes & {"exec", "chdir"}:
                yield "asked again, and still not begun"


def _was_announced(attempt: Attempt, history: History) -> bool:
    return any(n == attempt.number and state == "running" for n, _, state, _ in history.moves)


def _of_endings(after: Aftermath, point: Point) -> Iterator[str]:
    total = after.ran[1]
    for task, _ in after.settled:
        for attempt in task.attempts:
            if not is_terminal(attempt.state):
                yield f"still {attempt.state}"
            if attempt.exit_code not in (None, CODE):
                yield f"wrong exit code {attempt.exit_code}"
            if attempt.exit_code is not None and not total:
                yield "exit code of a command that never ran"
            if attempt.signal is not None and COMMAND not in point.dead:
                yield f"signal {attempt.signal} that nobody sent"
            if attempt.left_running:
                yield f"left running: {attempt.left_running}"
        if point.began and not {KEEPER, WITNESS} <= point.dead:
            yield from _of_a_seen_end(task.attempts[0], point)
        elif total and not point.began and task.current.exit_code != CODE:
            yield "exit code lost when asked again"


def _of_a_seen_end(attempt: Attempt, point: Point) -> Iterator[str]:
    """Yield a violation if the exit code is unknown, although keeper or witness survived."""
    expected = (None, _SIGKILL) if COMMAND in point.dead else (CODE, None)
    if (attempt.exit_code, attempt.signal) != expected:
        yield f"exit code lost: {attempt.state}, {attempt.reason}"


def _of_authors(after: Aftermath, point: Point) -> Iterator[str]:
    for task, _ in after.settled:
        first = task.attempts[0].settled_by
        if point.keeper_lived and first != "keeper":
            yield f"settled by {first} although its keeper lived"
