"""The tool `agent`: launch a background agent that outlives this session."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from outlive.domain.tasks.task import NOTIFY
from outlive.mcp.answer import Answer
from outlive.mcp.permission import check_may_run
from outlive.mcp.tools.run import Span, span_of, told_notify
from outlive.mcp.tools.tool import Arguments, Call, Tool
from outlive.mcp.tools.visible_tasks import own_task, own_tasks
from outlive.sdk.outlive import Outlive, adopt
from outlive.service.clock import utc_now
from outlive.service.tasks.read import find
from outlive.service.tasks.run import DEFAULT_RETENTION
from outlive.service.tasks.task_document import task_document

if TYPE_CHECKING:
    from datetime import timedelta

    from outlive.domain.tasks.task import Notify
else:
    # Type checkers read the type from the domain module. At run time only the list of its values exists.
    Notify = Literal[NOTIFY]

_Limit = Annotated[int | None, Field(ge=1)]


class Agent(Arguments):
    """The arguments of `agent`."""

    prompt: Annotated[str, Field(description="what the agent has to do; it knows nothing of this session")]
    client: Annotated[str | None, Field(description="claude, codex, opencode, gemini, or one of the settings")] = None
    model: Annotated[str | None, Field(description="as the client names it")] = None
    fallback: Annotated[list[str] | None, Field(description="models to try if one is unavailable: M or CLIENT:M")] = (
        None
    )
    category: Annotated[str | None, Field(description="a category of the user's settings")] = None
    resume: Annotated[str | None, Field(description="continue the agent of this task; the prompt is your answer")] = (
        None
    )
    budget: Annotated[float | None, Field(gt=0, description="US dollars")] = None
    max_tokens: _Limit = None
    max_turns: _Limit = None
    worktree: Annotated[bool, Field(description="give it a git worktree and a branch of its own")] = False
    description: Annotated[str | None, Field(description="what it is for, in a few words")] = None
    cwd: Annotated[str | None, Field(description="directory; default: the project's")] = None
    group: Annotated[str | None, Field(description="a name to list, wait for and cancel it with others")] = None
    key: Annotated[str | None, Field(description="same key, same task: again only if it ended without success")] = None
    timeout: Span = None
    idle_timeout: Span = None
    after: Annotated[list[str], Field(description="begin when these tasks have succeeded")] = []
    retries: Annotated[int, Field(ge=0, le=100)] = 0
    notify: Annotated[Notify, Field(description=told_notify)] = "end"


def launch(call: Call, given: Agent, keep: timedelta | None = None) -> str:
    """Launch an agent, and return the id of its task.

    Raises `RunRefused` if this server may not launch tasks.
    """
    check_may_run(call.caller, call.environ)
    own_tasks(call, given.after)  # raises UnknownTask for tasks that the caller may not see
    resumed = None if given.resume is None else own_task(call, given.resume)
    outlive = Outlive(session=call.caller.session, project=call.caller.project)
    return outlive.agent(
        given.prompt,
        client=given.client,
        model=given.model,
        fallback=given.fallback,
        category=given.category,
        resume=None if resumed is None else resumed.id,
        budget=given.budget,
        max_tokens=given.max_tokens,
        max_turns=given.max_turns,
        worktree=given.worktree,
        description=given.description,
        cwd=os.path.join(call.caller.directory, given.cwd or ""),
        group=given.group,
        key=given.key,
        timeout=span_of(given.timeout),
        idle_timeout=span_of(given.idle_timeout),
        after=given.after,
        retries=given.retries,
        notify=given.notify,
        retain=None if keep is None else max(keep, DEFAULT_RETENTION),
    ).id


def agent(call: Call, given: Agent) -> Answer:
    """Launch an agent, and answer at once."""
    task = find(call.home, [launch(call, given)], adopt)[0]
    head = f"Agent {task.id} ({task.launch.command.partition(': ')[0]}) is {task.state}. Go on with other work."
    return Answer(
        text=f"{head} Its answer is kept: `wait`, `inbox` and `result` tell it, `transcript` what it did.",
        document=task_document(call.home, task, utc_now()),
    )


TOOL = Tool(
    name="agent",
    title="Launch a background agent",
    description=(
        "Launch a coding agent (claude, codex, opencode, gemini) in the background, for work that needs a model:"
        " a review, a fix, a search. It outlives this session, works without questions, and takes another model if"
        " its own is unavailable. Returns its id at once. Refuses where `run` does: then call `outlive agent --"
        " PROMPT` through the shell."
    ),
    takes=Agent,
    act=agent,
    launch=launch,
    task_support="optional",
    is_patient=True,
    reads_only=False,
    destroys=True,
)
