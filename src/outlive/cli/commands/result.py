"""`outlive result`: print how a task ended, and the last lines of its output."""

from __future__ import annotations

from outlive.cli import context
from outlive.cli.formatting import ending_line, lasted, print_json, tail_lines
from outlive.cli.parser import Command, Given, option
from outlive.domain.errors import Conflict
from outlive.service.clock import utc_now
from outlive.service.notices.inbox import result_was_read
from outlive.service.tasks.read import output_view

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task


def act(given: Given) -> int:
    """Print how one task ended."""
    home, task = context.one_task(given, "result")
    if task.current.settled_at is None:
        since = f" (after {lasted(task.current, utc_now())})" if task.current.started_at is not None else ""
        raise Conflict(
            f"task {task.id} is {task.state} and has no result yet{since}",
            f"`outlive wait {task.id}` waits for the result",
        )
    return print_result(home, task, context.session(given.session), given)


def print_result(
    home: Home, task: Task, session: str | None, given: Given, more: dict[str, object] | None = None
) -> int:
    """Print how a task ended and its last output, and return the exit code.

    The task's notices are acknowledged, if this session may acknowledge them. `more` has additional fields for
    `--json`.
    """
    if given.json:
        from outlive.service.tasks.task_document import task_document

        print_json({**(more or {}), **task_document(home, task, utc_now())})
    elif task.launch.agent is not None:
        _print_answer(home, task)
    else:
        print("\n".join((ending_line(task, utc_now()), *tail_lines(output_view(home, task)))))
    result_was_read(home, task, session, context.project())
    return 0 if task.state == "succeeded" else 1


def _print_answer(home: Home, task: Task) -> None:
    """Print how an agent's run ended, with its model, its cost and its whole answer."""
    from outlive.domain.notices.agent_text import agent_line, attempt_lines, result_lines
    from outlive.service.agents.agent_view import answer_of

    attempt = task.current
    print(ending_line(task, utc_now()))
    for line in attempt_lines(task.attempts[:-1]):
        print(line)
    if attempt.agent is not None:
        print(f"agent: {agent_line(attempt.agent)}")
        for line in result_lines(attempt.agent):
            print(line)
        if attempt.agent.agent_class == "asked":
            print(f"to answer: outlive agent --resume {task.id} -- ANSWER")
    if answer := answer_of(home, task):
        print(f"\n{answer}")


COMMAND = Command(
    name="result",
    summary="print how a task ended, and the end of its output or an agent's answer",
    usage="outlive result ID",
    takes="task",
    options=(option("--session ID", "count the ending as reported to this session (default: the current session)"),),
    examples=(("outlive result t7k2", "print the result; the exit code is 0 if the task succeeded, and 1 otherwise"),),
)
