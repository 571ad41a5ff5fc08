"""The tool `run`: launch a task that outlives this session."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from outlive.client.sdk import Outlive, adopt
from outlive.domain.errors import UserError
from outlive.domain.quantity import parse_duration
from outlive.domain.queueing import slots
from outlive.mcp.permission import check_may_run
from outlive.mcp.tools.result import result_of
from outlive.mcp.tools.scope import own_tasks
from outlive.mcp.tools.tool import Arguments, Call, Tool
from outlive.mcp.words import Answer
from outlive.service.clock import utc_now
from outlive.service.run import DEFAULT_RETENTION
from outlive.service.view import find, task_document
from outlive.service.wait import wait_for

if TYPE_CHECKING:
    from outlive.domain.task import Task

MOST_INLINE = timedelta(seconds=45)
Span = Annotated[str | None, Field(description="such as 90s, 15m, 2h")]


class Run(Arguments):
    """What `run` takes."""

    command: Annotated[str | list[str], Field(description="a line of shell, or a program with its arguments")]
    description: Annotated[str | None, Field(description="what it is for, in a few words")] = None
    cwd: Annotated[str | None, Field(description="directory; default: the project's")] = None
    env: Annotated[dict[str, str], Field(description="variables to add")] = {}
    group: Annotated[str | None, Field(description="a name to list, wait for and cancel it with others")] = None
    key: Annotated[str | None, Field(description="same key, same task: launching twice starts it once")] = None
    timeout: Span = None
    idle_timeout: Span = None
    after: Annotated[list[str], Field(description="begin when these tasks have succeeded")] = []
    after_any: Annotated[list[str], Field(description="begin when these tasks have ended in any way")] = []
    slots: Annotated[dict[str, int], Field(description="at most N at once under a name")] = {}
    lock: Annotated[list[str], Field(description="one at a time under these names")] = []
    retries: Annotated[int, Field(ge=0, le=100)] = 0
    stdin: Annotated[bool, Field(description="let it be sent input by `send`; without this it reads nothing")] = False
    wait: Annotated[str | None, Field(description="answer with the result if it ends within this, at most 45s")] = None


def launch(call: Call, given: Run, keep: timedelta | None = None) -> str:
    """Launch it, if this server may; returns its id, for which there is a durable record."""
    check_may_run(call.caller, call.environ)
    for name, room in given.slots.items():
        slots(f"{name}={room}")  # refuses what the spawner would, before anything is sent
    if wrong := [name for name in given.env if "=" in name]:
        raise UserError(f"{wrong[0][:40]!r} is no name of a variable", "without `=`")
    own_tasks(call, [*given.after, *given.after_any])  # others are not there
    retain = None if keep is None else max(keep, DEFAULT_RETENTION)
    outlive = Outlive(session=call.caller.session, project=call.caller.project)
    task = outlive.run(
        given.command,
        cwd=os.path.join(call.caller.directory, given.cwd or ""),
        env=given.env,
        description=given.description,
        group=given.group,
        key=given.key,
        timeout=_span(given.timeout),
        idle_timeout=_span(given.idle_timeout),
        retries=given.retries,
        after=given.after,
        after_any=given.after_any,
        slots=given.slots,
        locks=given.lock,
        stdin=given.stdin,
        retain=retain,
    )
    return task.id


def run(call: Call, given: Run) -> Answer:
    """Launch, then answer at once, or with the ending if that was waited for."""
    patience = _span(given.wait)
    if patience is not None and patience > MOST_INLINE:
        raise UserError(f"wait is {given.wait}, and clients cut a call off before that", "at most 45s; then `wait`")
    task = find(call.home, [launch(call, given)], adopt)[0]
    if patience is None or not wait_for(call.home, [task.id], timeout=patience, adopter=adopt):
        return _launched(call, find(call.home, [task.id], adopt)[0])
    return result_of(call, find(call.home, [task.id], adopt)[0])


def _launched(call: Call, task: Task) -> Answer:
    head = f"Task {task.id} is {task.state}. Go on with other work; its ending is kept, `wait` and `inbox` tell it."
    return Answer(text=head, document=task_document(call.home, task, utc_now()))


def _span(text: str | None) -> timedelta | None:
    return None if text is None else parse_duration(text)


TOOL = Tool(
    name="run",
    title="Launch a background task",
    description=(
        "Launch a command as a background task that outlives this session: builds, test suites, servers, anything that"
        " takes longer than a minute. Returns its id at once; output, exit code and what it touched are kept. Do not"
        " use `&` or nohup instead. Where the client's shell is sandboxed or restricted this tool refuses: then call"
        " `outlive run -- CMD` through the shell."
    ),
    takes=Run,
    act=run,
    launch=launch,
    task_support="optional",
    is_patient=True,
    reads_only=False,
    destroys=True,
)
