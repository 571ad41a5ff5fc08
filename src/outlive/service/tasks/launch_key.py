"""Launching a task with a key: a project has at most one task with this key."""

from __future__ import annotations

from outlive.domain.errors import KeyTaken, TriedAgain
from outlive.service.tasks.launch_context import project_of
from outlive.service.tasks.run import Launched
from outlive.service.tasks.start_attempt import open_ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task
    from outlive.service.tasks.run import Request


def holder_of_key(home: Home, request: Request, now: datetime) -> Launched | None:
    """Return the task with the requested key, after a retry if one is necessary.

    Returns None if no task has the key.
    """
    with open_ledger(home, now) as ledger:
        task = ledger.with_key(project_of(request.cwd), request.key or "")
    if task is None:
        return None
    if task.current.settled_at is None:
        from outlive.service.maintenance.reconcile import reconcile  # noqa: PLC0415 - imported here, because it is seldom needed

        reconcile(home, now, task.id)
    with open_ledger(home, now) as ledger:
        task = ledger.task(task.id) or task
        starts = task.current.settled_at is not None and task.state != "succeeded"
        if starts and request.key_scope == "ended":
            # A retry is allowed if the command never began, because the command then still runs only once.
            from outlive.service.tasks.retry import never_began  # noqa: PLC0415 - imported here, because it is seldom needed

            starts = task.state == "lost" and never_began(ledger, task)
    check_same_command(home, task, request)
    if not starts:
        return Launched(task=task.id, started=False)
    from outlive.service.tasks.retry import retry  # noqa: PLC0415 - imported here, because it is seldom needed

    try:
        place = request.session_project
        return Launched(
            task=retry(home, task, request.surroundings, now, session=request.session, session_project=place)
        )
    except TriedAgain:
        return Launched(task=task.id, started=False)  # another caller with this key has started the attempt


def check_same_command(home: Home, task: Task, request: Request) -> None:
    """Raise `KeyTaken` if a task has the requested key, but another command."""
    is_same = task.launch.argv == request.command.argv and task.launch.cwd == request.cwd
    if task.launch.agent is not None or request.agent is not None:
        from outlive.service.agents.prepare import asks_the_same  # noqa: PLC0415 - imported here, because only agent tasks need it

        is_same = asks_the_same(home, task, request.agent, request.prompt, request.cwd)
    if not is_same:
        raise KeyTaken(
            f"the key {request.key!r} belongs to task {task.id}, which runs another command",
            f"`outlive show {task.id}` shows that task; use another key",
        )
