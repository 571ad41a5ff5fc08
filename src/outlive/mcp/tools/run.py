"""The tool `run`: launch a task that outlives this session."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from outlive.domain.errors import UserError
from outlive.domain.tasks.lifecycle import is_terminal
from outlive.domain.tasks.queueing import slots
from outlive.domain.tasks.task import NOTIFY
from outlive.domain.text.units import parse_duration
from outlive.mcp.answer import Answer, task_answer
from outlive.mcp.permission import check_may_run
from outlive.mcp.tools.result import result_of
from outlive.mcp.tools.tool import Arguments, Call, LaunchTool
from outlive.mcp.tools.visible_tasks import own_tasks
from outlive.sdk.outlive import Outlive, adopt
from outlive.service.tasks.read import find
from outlive.service.tasks.run import DEFAULT_RETENTION
from outlive.service.tasks.wait import wait_for

if TYPE_CHECKING:
    from outlive.domain.tasks.task import Notify, Task
    from outlive.sdk import outlive as sdk
else:
    # Type checkers read the type `Notify` from the domain module. When the program runs, that module has only the list
    # of the type's values.
    Notify = Literal[NOTIFY]

MOST_INLINE = timedelta(seconds=45)
# The arguments of `run` that `agent` has too.
Description = Annotated[str | None, Field(description="describe the task in a few words")]
Directory = Annotated[str | None, Field(description="the working directory; default: the project's")]
Group = Annotated[str | None, Field(description="a name to list, wait for and cancel tasks together")]
Key = Annotated[str | None, Field(description="start nothing if a task with this key runs or succeeded; else retry it")]
After = Annotated[list[str], Field(description="begin when these tasks have succeeded")]
Retries = Annotated[int, Field(ge=0, le=100, description="retry up to N times if the task fails")]
Notified = Annotated[
    Notify,
    Field(
        description="which endings are reported; `output` delays a success without output until the next turn; `never`"
        " is for servers"
    ),
]


class Run(Arguments):
    """The arguments of `run`."""

    command: Annotated[str | list[str], Field(description="a line of shell, or a program with its arguments")]
    description: Description = None
    cwd: Directory = None
    env: Annotated[dict[str, str], Field(description="variables to add to the environment")] = {}
    group: Group = None
    key: Key = None
    timeout: Annotated[str | None, Field(description="end the task after this time, such as 90s, 15m, 2h")] = None
    idle_timeout: Annotated[
        str | None, Field(description="end the task if it prints nothing and hardly uses the processor for this time")
    ] = None
    after: After = []
    after_any: Annotated[list[str], Field(description="begin when these tasks have ended in any way")] = []
    slots: Annotated[dict[str, int], Field(description="for each name, run at most this many tasks at a time")] = {}
    lock: Annotated[list[str], Field(description="for each name, run only one task at a time")] = []
    retries: Retries = 0
    ports: Annotated[
        list[str],
        Field(description="lease a free port for each name; the command gets it as $PORT_NAME and as {port:NAME}"),
    ] = []
    again: Annotated[
        bool, Field(description="start it although the same server or watcher runs in this directory already")
    ] = False
    stdin: Annotated[bool, Field(description="let `send` send input; without this, the task has no input")] = False
    notify: Notified = "end"
    wait: Annotated[str | None, Field(description="wait this long for the result, at most 45s")] = None


def launch(call: Call, given: Run, keep: timedelta | None = None) -> str:
    """Launch a task, and return its id. By then, the task is recorded on disk.

    Raises `RunRefused` if this server may not launch tasks.
    """
    return _launch(call, given, keep).id


def _launch(call: Call, given: Run, keep: timedelta | None = None) -> sdk.Task:
    check_may_run(call.caller, call.environ)
    for name, room in given.slots.items():
        slots(f"{name}={room}")  # raises an error for a wrong value early, before the spawner is asked to launch
    if wrong := [name for name in given.env if "=" in name]:
        raise UserError(f"{wrong[0][:40]!r} is not a name of a variable", "give a name without `=`")
    # own_tasks() raises an error if the caller may not see one of the tasks. The launch gets complete ids, because a
    # shortened id may be that of a task that the caller may not see.
    awaited = {name: [each.id for each in own_tasks(call, getattr(given, name))] for name in ("after", "after_any")}
    given = given.model_copy(update=awaited)
    outlive = Outlive(session=call.caller.session, project=call.caller.project)
    return outlive.run(
        given.command, locks=given.lock, **sdk_arguments(call, given, keep, without={"command", "lock", "wait"})
    )


def sdk_arguments(call: Call, given: Arguments, keep: timedelta | None, *, without: set[str]) -> dict[str, Any]:
    """Return the arguments of a launch that have the same names in the SDK.

    `without` has the names of all other arguments.
    """
    told = given.model_dump(exclude=without)
    return {
        **told,
        "cwd": os.path.join(call.caller.directory, told["cwd"] or ""),
        "timeout": span_of(told["timeout"]),
        "idle_timeout": span_of(told["idle_timeout"]),
        "retain": None if keep is None else max(keep, DEFAULT_RETENTION),
    }


def run(call: Call, given: Run) -> Answer:
    """Launch a task, and reply at once.

    With `wait`, the reply says how the task ended, if it ends in time.
    """
    patience = span_of(given.wait)
    if patience is not None and patience > MOST_INLINE:
        raise UserError(
            f"wait is {given.wait}, but clients cut a call off earlier",
            "give at most 45s, and then call the tool `wait`",
        )
    launched = _launch(call, given)
    if patience is None or not wait_for(call.home, [launched.id], timeout=patience, adopter=adopt):
        answer = _launched(call, find(call.home, [launched.id], adopt)[0])
    else:
        answer = result_of(call, find(call.home, [launched.id], adopt)[0])
    there = "" if launched.was_started else "Nothing was started, because this task has the key. "
    return answer.but(text=there + answer.text, document={**answer.document, "started": launched.was_started})


def _launched(call: Call, task: Task) -> Answer:
    if is_terminal(task.state):
        head = f"Task {task.id} is {task.state}; `result` shows how it ended."
    else:
        head = f"Task {task.id} is {task.state}. Go on with other work; `wait` and `inbox` report its ending."
    return task_answer(call.home, task, head)


def span_of(text: str | None) -> timedelta | None:
    """Return the duration that a text such as `15m` stands for.

    Raises `UserError` if the text is not a duration.
    """
    return None if text is None else parse_duration(text)


TOOL = LaunchTool(
    name="run",
    title="Launch a background task",
    description=(
        "Launch a command as a background task that outlives this session: builds, test suites, servers, and all"
        " commands that take longer than a minute. Returns the task's id at once. The output, the exit code and what"
        " the command touched are kept. Do not use `&` or nohup instead. If the client's shell is sandboxed or"
        " restricted, this tool refuses. Then call `outlive run -- CMD` through the shell."
    ),
    takes=Run,
    act=run,
    launch=launch,
)
