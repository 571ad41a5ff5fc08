"""The tool `agent`: launch a background agent that outlives this session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from outlive.mcp.answer import Answer, task_answer
from outlive.mcp.permission import check_may_run
from outlive.mcp.tools.run import After, Description, Directory, Group, Key, Notified, Retries, sdk_arguments
from outlive.mcp.tools.tool import Arguments, Call, LaunchTool
from outlive.mcp.tools.visible_tasks import own_task, own_tasks
from outlive.sdk.outlive import Outlive, adopt
from outlive.service.tasks.read import find

if TYPE_CHECKING:
    from datetime import timedelta


class Agent(Arguments):
    """The arguments of `agent`."""

    prompt: Annotated[str, Field(description="what the agent has to do; it does not know this session")]
    client: Annotated[str | None, Field(description="claude, codex, opencode, gemini, or a client of the settings")] = (
        None
    )
    model: Annotated[str | None, Field(description="the model, by the client's name for it")] = None
    fallback: Annotated[
        list[str] | None, Field(description="models to try if a model is unavailable: M or CLIENT:M")
    ] = None
    category: Annotated[str | None, Field(description="a category of the user's settings, with model and limits")] = (
        None
    )
    resume: Annotated[str | None, Field(description="the agent task to continue; the prompt is your answer to it")] = (
        None
    )
    budget: Annotated[
        float | None, Field(gt=0, description="end the agent when it has cost more than this, in US dollars")
    ] = None
    max_tokens: Annotated[
        int | None, Field(ge=1, description="end the agent when it has used more tokens than this")
    ] = None
    max_turns: Annotated[int | None, Field(ge=1, description="end the agent when it begins turn N+1")] = None
    worktree: Annotated[bool, Field(description="give the agent its own git worktree and branch")] = False
    description: Description = None
    cwd: Directory = None
    group: Group = None
    key: Key = None
    timeout: Annotated[str | None, Field(description="end the agent after this time, such as 90s, 15m, 2h")] = None
    idle_timeout: Annotated[
        str | None, Field(description="end the attempt if it has no progress (text, tool calls) for this time")
    ] = None
    after: After = []
    retries: Retries = 0
    notify: Notified = "end"


def launch(call: Call, given: Agent, keep: timedelta | None = None) -> str:
    """Launch a background agent, and return the id of its task.

    Raises `RunRefused` if this server may not launch tasks.
    """
    check_may_run(call.caller, call.environ)
    # own_tasks() raises an error if the caller may not see one of the tasks. The launch gets complete ids, because a
    # shortened id may be that of a task that the caller may not see.
    after = [each.id for each in own_tasks(call, given.after)]
    resumed = None if given.resume is None else own_task(call, given.resume)
    outlive = Outlive(session=call.caller.session, project=call.caller.project)
    return outlive.agent(
        given.prompt,
        resume=None if resumed is None else resumed.id,
        **sdk_arguments(call, given.model_copy(update={"after": after}), keep, without={"prompt", "resume"}),
    ).id


def agent(call: Call, given: Agent) -> Answer:
    """Launch a background agent, and reply at once."""
    task = find(call.home, [launch(call, given)], adopt)[0]
    head = f"Agent {task.id} ({task.launch.command.partition(': ')[0]}) is {task.state}. Go on with other work."
    more = "`wait`, `inbox` and `result` return its answer, and `transcript` returns what it said and did."
    return task_answer(call.home, task, f"{head} {more}")


TOOL = LaunchTool(
    name="agent",
    title="Launch a background agent",
    description=(
        "Launch a coding agent (claude, codex, opencode, gemini) in the background, for work that needs a model:"
        " a review, a fix, a search. The agent outlives this session, asks nothing while it works, and changes to"
        " another model if its model is unavailable. Returns the id of its task at once. This tool refuses in the same"
        " cases as `run`. Then call `outlive agent -- PROMPT` through the shell."
    ),
    takes=Agent,
    act=agent,
    launch=launch,
)
