"""`outlive show`: print all that is known about one task."""

from __future__ import annotations

from outlive.cli import context
from outlive.cli.formatting import ago, coloured, ending, lasted, print_json, tail_lines
from outlive.cli.parser import Command, Given
from outlive.domain.effects.describe import summary_of, window_words
from outlive.domain.effects.path_summary import without_filled
from outlive.domain.text.sanitize import one_line, shown
from outlive.domain.text.units import show_size
from outlive.domain.timestamps import iso
from outlive.service.clock import utc_now
from outlive.service.effects.effects import effects_of
from outlive.service.tasks.read import history_of, output_view, ports_of
from outlive.service.tasks.task_document import drift_now, full_document, overlaps_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.effects.effects import Effects
    from outlive.domain.tasks.task import Attempt, Launch, LeftRunning, Task

_MOST_WINDOWS, _MOST_NAMED = 3, 5


def act(given: Given) -> int:
    """Print all that is known about one task."""
    home, task = context.one_task(given, "show", context.here_for_reading)
    now = utc_now()
    if given.json:
        print_json(full_document(home, task, now))
    else:
        print("\n".join(_lines(home, task, now)))
    return 0


def _lines(home: Home, task: Task, now: datetime) -> Iterator[str]:
    launch, attempt = task.launch, task.current
    output = output_view(home, task)
    yield f"task      {task.id}  {coloured(attempt.state)}  {ending(attempt)}"
    if launch.description:
        yield f"what      {one_line(launch.description, 200)}"
    yield from _launched(launch, now)
    yield from _agent(home, task)
    yield from _ports(home, task)
    yield f"took      {lasted(attempt, now)}"
    yield from _why(home, task)
    if attempt.settled_at:
        yield f"settled   {iso(attempt.settled_at)} by the {attempt.settled_by}; kept until {iso(attempt.delete_after)}"
    for left in attempt.left_running:
        yield f"left      process {left.pid} {_left(attempt, left)}: {one_line(left.command, 120)}"
    for each in task.attempts[:-1]:
        yield f"attempt {each.number} {each.state}  {ending(each)}  {lasted(each, now)}{_model(each)}"
    effects = effects_of(home, task)
    if attempt.started_at is None and len(task.attempts) == 1 and attempt.state in ("queued", "cancelled"):
        yield "touched   nothing, because the task has not begun"
    else:
        yield f"touched   {effects.level}: {one_line(summary_of(effects, now), 300)}"
    yield from _windows(effects, now)
    yield from _overlaps(home, task, effects)
    drift = drift_now(home, task, effects)
    if drift is not None and drift.later:
        yield f"since     {one_line('; '.join(drift.later), 300)}"
    history = history_of(home, task)
    for number, seen_at, seen in history.evidence:
        known = ", ".join(
            f"{name} {fact}"
            for name, fact in (
                ("exit", seen.exit_code),
                ("signal", seen.signal),
                ("started", seen.started),
                ("cause", seen.cause),
            )
            if fact is not None
        )
        yield f"evidence  {iso(seen_at)} attempt {number}: {seen.kind} ({known}), seen by the {seen.seen_by}"
    for notice in history.notices:
        yield f"notice    {notice.id} {notice.state}"
    for delivery in history.deliveries:
        why = f" ({delivery.last_error})" if delivery.last_error else ""
        tries = "1 try" if delivery.tries == 1 else f"{delivery.tries} tries"
        yield f"sink      {delivery.sink}: {delivery.state} after {tries}{why}"
    yield f"output    {show_size(output.size)}  {shown(output.path)}"
    yield from (f"  | {line}" for line in tail_lines(output)[-15:])


def _left(attempt: Attempt, left: LeftRunning) -> str:
    """Return a phrase that says whether a process that the task left still runs."""
    from outlive.service.tasks.cancel import is_still_running

    return {True: "is still running", False: "was still running, and has ended since", None: "was still running"}[
        is_still_running(attempt, left)
    ]


def _launched(launch: Launch, now: datetime) -> Iterator[str]:
    """Yield lines with a task's command, directory, launch time and session."""
    yield f"command   {shown(launch.command)}"
    yield f"in        {shown(launch.cwd)}"
    yield f"launched  {iso(launch.created_at)} ({ago(launch.created_at, now)} ago)"
    if launch.adopted_pid is not None:
        from outlive.domain.notices.notice_text import adopted_line

        yield adopted_line(launch).replace("adopted:", "adopted  ", 1)
    yield f"session   {shown(launch.session or '-')}"


def _ports(home: Home, task: Task) -> Iterator[str]:
    """Yield a line with the names and numbers of the leased ports, if there are any."""
    ports = ports_of(home, task)
    if ports:
        yield f"ports     {', '.join(f'{name} {number}' for name, number in ports.items())}"


def _agent(home: Home, task: Task) -> Iterator[str]:
    """Yield lines with an agent's model, its error or question, and its trace file."""
    request = task.launch.agent
    if request is None:
        return
    from outlive.bundle.agent_files import decisions_file
    from outlive.domain.notices.agent_text import agent_line, result_lines
    from outlive.service.agents.agent_view import known_of

    known = known_of(home, task)
    if known is None:
        return
    yield f"agent     {agent_line(known)}"
    if len(request.candidates) > 1:
        yield f"models    {', '.join(one_line(one.name, 60) for one in request.candidates)}"
    for line in result_lines(known):
        name, _, rest = line.partition(": ")
        yield f"{name:<9} {rest}"
    if request.is_traced:
        yield f"trace     {shown(decisions_file(home.bundle(task.id)))}"


def _model(attempt: Attempt) -> str:
    """Return the model of an agent's attempt, with two spaces before it.

    Return an empty string if the task is not an agent.
    """
    if attempt.agent is None:
        return ""
    from outlive.domain.notices.agent_text import model_name

    return f"  {model_name(attempt.agent)}"


def _overlaps(home: Home, task: Task, effects: Effects) -> Iterator[str]:
    """Yield lines about changes in the task's directories that the task did not make.

    Other tasks, sessions or clients made these changes while the task ran.
    """
    found = overlaps_now(home, task, effects)
    if found:
        from outlive.domain.notices.notice_text import overlap_lines

        yield from (f"overlap   {line}" for line in overlap_lines(found, task.launch.project))


def _why(home: Home, task: Task) -> Iterator[str]:
    """Yield lines that say why the task waits, was lost or ended."""
    attempt = task.current
    if attempt.state == "queued":
        from outlive.service.tasks.queue_reason import waiting_for

        if (waiting := waiting_for(home, task)) is not None:
            yield f"waiting   {waiting.text}"
    if attempt.state == "lost":
        from outlive.domain.tasks.lost_meaning import lost_clause, lost_hint

        yield f"lost      {lost_clause(attempt)}; {lost_hint(task)}"
    if attempt.detail:
        yield f"because   {shown(attempt.detail)}"


def _windows(effects: Effects, now: datetime) -> Iterator[str]:
    """Yield lines for the first windows of a task.

    A window is a time span in which a file differed from what the task found. Paths are shown relative to the directory
    that the window is about.
    """
    for window in effects.windows[:_MOST_WINDOWS]:
        paths = without_filled(window.paths)
        names = ", ".join(one_line(path.removeprefix(window.scope + "/"), 80) for path in paths[:_MOST_NAMED])
        more = f" and {len(paths) - _MOST_NAMED:,} more" if len(paths) > _MOST_NAMED else ""
        words = window_words(window, now, is_now=False).removeprefix("window ")
        yield f"window    {words}, by {one_line(window.by, 80)}: {names}{more}"
    if (left_out := len(effects.windows) - _MOST_WINDOWS) > 0:
        yield f"window    and {left_out:,} more: outlive effects ID"


COMMAND = Command(
    name="show",
    summary="print everything about one task: attempts, evidence, effects, notices, output",
    usage="outlive show ID",
    takes="task",
    examples=(("outlive show t7k", "print this task; any unique prefix of an id works"),),
)
