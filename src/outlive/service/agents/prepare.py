"""The files and the worktree of an agent task, and the start of its attempts."""

from __future__ import annotations

import os

from outlive.agents.find_adapter import adapter_of
from outlive.agents.read_attempt import read_attempt, result_of_attempt
from outlive.bundle.agent_files import read_prompt, read_start, trace_decision, write_prompt, write_start
from outlive.bundle.attempt import AttemptFiles
from outlive.domain.agents.result import AgentResult
from outlive.domain.errors import Conflict
from outlive.domain.tasks.evidence import Evidence
from outlive.domain.text.sanitize import one_line
from outlive.keeper.agents.end_worktree import is_in_use
from outlive.keeper.agents.next_start import first_start, next_start, trace_next_attempt, unavailable_models
from outlive.keeper.agents.worktree import add, add_again, has_changed, remove
from outlive.ledger.agent_attempts import AgentAttempts
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from outlive.bundle.home import Home
    from outlive.domain.agents.request import AgentRequest, AgentStart
    from outlive.domain.tasks.task import Launch, Task


def placed(home: Home, launch: Launch) -> Launch:
    """Return the launch of an agent, changed so that the agent runs in its worktree.

    A new worktree and its branch are named after the id of the task. If the agent continues a session, it gets the
    worktree of the ended task. A launch without a worktree is returned unchanged.
    """
    agent = launch.agent
    if agent is None or agent.worktree is None:
        return launch
    worktree = agent.worktree
    if not worktree.path:
        worktree = worktree.but(path=f"{home.worktrees}/{launch.id}", branch=_branch_of(launch))
    below = os.path.relpath(launch.cwd, worktree.repository)
    return launch.but(cwd=os.path.normpath(os.path.join(worktree.path, below)), agent=agent.but(worktree=worktree))


def _branch_of(launch: Launch) -> str:
    """Return the branch of a worktree that is made for this task."""
    return f"outlive/{launch.id}"


def prepare_agent(launch: Launch, files: AttemptFiles, prompt: str, environ: Mapping[str, str]) -> AgentStart:
    """Write an agent's prompt, make its worktree, and return how it begins.

    The returned value has the client, the model and the session of the first attempt. Raises OSError if a file cannot
    be written, and `Unavailable` if git cannot make the worktree.
    """
    request = launch.agent
    assert request is not None  # noqa: S101 - the caller calls this function only for agent tasks
    write_prompt(files.bundle, prompt)
    start = first_start(request)
    if request.worktree is not None:
        if request.worktree.branch == _branch_of(launch):
            add(request.worktree, environ)
        else:
            add_again(request.worktree, environ)
    trace_decision(
        files.bundle,
        request,
        "launch",
        client=start.client,
        model=start.model,
        resume=request.resume,
        candidates=[one.name for one in request.candidates],
        why=request.why,
    )
    return start


def discard_worktree(home: Home, launch: Launch, environ: Mapping[str, str]) -> None:
    """Remove the worktree of a task whose launch has failed or was not needed.

    The worktree of an earlier task is kept if it has changed, or if another task works in it.
    """
    if launch.agent is None or launch.agent.worktree is None:
        return
    worktree = launch.agent.worktree
    is_new = worktree.branch == _branch_of(launch)
    if is_new or not (has_changed(worktree, environ) or is_in_use(home, launch)):
        remove(worktree, environ)


def check_session_is_free(ledger: SqliteLedger, launch: Launch, start: AgentStart) -> None:
    """Raise `Conflict` if another task works in the session of a new attempt.

    Most clients would write the runs of both tasks to one transcript. The caller calls this function in the transaction
    that adds the attempt, so that only one of two simultaneous launches succeeds.
    """
    if not start.is_resumed or start.session is None:
        return
    other = AgentAttempts(ledger).task_in_session(start.client, start.session, launch.id)
    if other is not None:
        raise session_is_taken(other, start.session)


def used_by_session(home: Home, client: str, session: str) -> tuple[float | None, tuple[int, int] | None]:
    """Return the cost and tokens of a session after its newest run.

    A run that was killed has not reported its cost and tokens. If the newest run was killed, the function returns the
    cost and tokens from before that run. The next run reports a total, from which the caller subtracts this value. So
    the cost of the killed run is counted with the next run, and no cost is counted twice.
    """
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        found = AgentAttempts(ledger).newest_in_session(client, session)
        task = None if found is None else ledger.task(found[0])
    if found is None or task is None or task.launch.agent is None:
        return None, None
    files = AttemptFiles(home.bundle(task.id), found[1])
    start, reader = read_start(files), read_attempt(files, task.launch.agent)
    if start is None or reader is None:
        return None, None
    cost, tokens = reader.session_cost_usd, reader.session_tokens
    return start.cost_before_usd if cost is None else cost, start.tokens_before if tokens is None else tokens


def session_is_taken(task: str, session: str) -> Conflict:
    """Return the error for a session in which another task works."""
    return Conflict(
        f"task {task} works in the session {one_line(session, 60)} at this moment",
        f"`outlive wait {task}` waits for the end, `outlive cancel {task}` ends the task",
    )


def begin_again(home: Home, task: Task, files: AttemptFiles, environ: Mapping[str, str]) -> AgentStart:
    """Write and return how the next attempt of an ended agent begins.

    If the worktree of the agent was removed, the worktree is made again. Raises OSError if the files cannot be
    written, and `Conflict` if the last attempt ended with a question.
    """
    request = task.launch.agent
    assert request is not None  # noqa: S101 - the caller calls this function only for agent tasks
    last = AttemptFiles(files.bundle, task.current.number)
    result, unavailable = _last_result(task, last), unavailable_models(home)
    if result.agent_class == "asked":  # `task.has_asked` is not enough, because the result may have been read only now
        raise _waits_for_answer(task, request, result)
    was_interrupted = result.agent_class != "refused" and (
        # An attempt that reached a limit has the state `failed`. If the user ended the attempt, its state is a
        # different one.
        result.agent_class != "stopped" or task.state in ("cancelled", "timed_out")
    )
    start, prompt = next_start(task.launch, last, result, unavailable, was_interrupted=was_interrupted)
    if start.is_resumed and start.session is not None:
        cost, tokens = used_by_session(home, start.client, start.session)
        start = start.but(cost_before_usd=cost, tokens_before=tokens)
    if request.worktree is not None:
        add_again(request.worktree, environ)
    write_start(files, start, prompt)
    trace_next_attempt(files, request, result, start, unavailable, cause="retry")
    return start


def _waits_for_answer(task: Task, request: AgentRequest, result: AgentResult) -> Conflict:
    """Return the error for a retry of an agent that waits for the user's answer.

    A new attempt would have to go on without the answer, or would ask the same question.
    """
    can_resume = result.session is not None and adapter_of(request, result.client).can_resume
    return Conflict(
        f"the agent of task {task.id} asked a question, and a new attempt would not have the answer",
        f"`outlive agent --resume {task.id} -- ANSWER` answers, `outlive result {task.id}` shows the question"
        if can_resume
        else f"launch a new agent with the answer in its prompt; `outlive result {task.id}` shows the question",
    )


def _last_result(task: Task, files: AttemptFiles) -> AgentResult:
    request, known = task.launch.agent, task.current.agent
    if known is None and request is not None:
        seen = Evidence(kind="vanished", seen_by="reconciler", started="unknown")
        known = result_of_attempt(files, request, seen)
    return known or AgentResult(client=request.candidates[0].client if request else "")


def asks_the_same(home: Home, task: Task, request: AgentRequest | None, prompt: str, cwd: str) -> bool:
    """Return whether a task has the same prompt, models and directory as a request."""
    before = task.launch.agent
    if before is None or request is None:
        return False
    try:
        is_same_prompt = read_prompt(home.bundle(task.id)) == prompt
    except OSError:
        return False
    is_same_place = task.launch.cwd == cwd if before.worktree is None else request.worktree is not None
    models = [(one.client, one.model) for one in before.candidates]
    return (
        is_same_prompt
        and is_same_place
        and sorted(models, key=str) == sorted(((one.client, one.model) for one in request.candidates), key=str)
    )
