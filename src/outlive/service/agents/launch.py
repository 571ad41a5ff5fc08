"""Launching a background agent: its client, model, session and limits."""

from __future__ import annotations

import os
from shutil import which

from outlive.agents.find_adapter import CLIENTS, new_adapter
from outlive.bundle.agent_files import read_progress
from outlive.bundle.attempt import AttemptFiles
from outlive.domain.agents.request import AgentRequest, AgentStart, Worktree
from outlive.domain.errors import Conflict, TooDeep, UserError
from outlive.domain.tasks.command import from_argv
from outlive.domain.text.sanitize import is_encodable, one_line
from outlive.domain.value import Value
from outlive.keeper.agents.next_start import unavailable_models
from outlive.keeper.agents.worktree import head_commit
from outlive.ledger.agent_attempts import AgentAttempts
from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.processes import KEEPER_NAME, name_of, stat_fields
from outlive.service.agents.prepare import session_is_taken, used_by_session
from outlive.service.clock import utc_now
from outlive.service.sessions.lineage import is_open
from outlive.service.tasks.find import resolve
from outlive.service.tasks.launch_context import parent_of, project_of
from outlive.service.tasks.run import run
from outlive.settings.agent_choice import choice_of, choose, tables_of
from outlive.settings.read_settings import read_agent_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import Any

    from outlive.agents.adapter import Adapter
    from outlive.bundle.home import Home
    from outlive.domain.agents.agent_settings import AgentSettings
    from outlive.domain.agents.request import Candidate
    from outlive.domain.tasks.command import Command
    from outlive.domain.tasks.task import Task
    from outlive.service.tasks.run import Launched, Request

LONGEST_PROMPT = 4 << 20
_SHOWN_PROMPT = 200


class WantedAgent(Value):
    """The properties that a caller wants for a new agent.

    Properties that every task has are not included. For a property that is None, the user's settings decide.
    """

    prompt: str
    client: str | None = None
    model: str | None = None
    fallback: tuple[str, ...] | None = None
    category: str | None = None
    resume: str | None = None
    """The task or the session of a client that the agent continues. None for a new session."""
    budget_usd: float | None = None
    max_tokens: int | None = None
    max_turns: int | None = None
    has_worktree: bool = False
    is_traced: bool = False


class _Resumed(Value):
    """The client's session that a new agent continues, and its cost until now."""

    session: str
    client: str | None = None
    model: str | None = None
    cwd: str | None = None
    cost_usd: float | None = None
    tokens: tuple[int, int] | None = None
    worktree: Worktree | None = None
    """The worktree of the task that used the session. The new agent works in it again."""


def launch_agent(home: Home, wanted: WantedAgent, request: Request, now: datetime) -> Launched:
    """Launch a background agent, and return when it runs or is queued.

    `request` has the properties that every task has. The command in `request` is replaced by the client's command.
    """
    return run(home, plan_agent(home, wanted, request), now)


def plan_agent(home: Home, wanted: WantedAgent, request: Request) -> Request:
    """Return the request with the agent's client, models, limits and prompt added.

    Raises `UserError` if the agent cannot be launched as wanted, for example because its client is not installed.
    """
    check_prompt(wanted.prompt)
    environ = request.surroundings.environ
    _check_lineage(environ)
    settings = read_agent_settings(environ, project_of(request.cwd))
    resumed = None if wanted.resume is None else _find_resumed(home, wanted.resume)
    if resumed is not None:
        _check_not_running(home, resumed.session)
        client = _client_of_resumed(wanted, resumed)
        _check_not_open(home, resumed.session, client, project_of(request.cwd))
        wanted = wanted.but(client=client, model=wanted.model or resumed.model)
        request = request.but(cwd=_cwd_of_resumed(request.cwd, resumed))
    candidates, why = _candidates(home, settings, wanted, request, is_resumed=resumed is not None)
    limits = settings.limits_of(wanted.category)
    agent = AgentRequest(
        candidates=candidates,
        category=wanted.category,
        resume=None if resumed is None else resumed.session,
        resumed_cost_usd=None if resumed is None else resumed.cost_usd,
        resumed_tokens=None if resumed is None else resumed.tokens,
        budget_usd=limits.budget_usd if wanted.budget_usd is None else wanted.budget_usd,
        max_tokens=limits.max_tokens if wanted.max_tokens is None else wanted.max_tokens,
        max_turns=limits.max_turns if wanted.max_turns is None else wanted.max_turns,
        most_calls=settings.most_calls,
        worktree=_worktree(wanted, request, resumed),
        tables=tables_of(settings, candidates),
        is_traced=wanted.is_traced,
        why=why,
    )
    _check_clients(agent, request, wanted.prompt)
    return request.but(
        agent=agent,
        prompt=wanted.prompt,
        command=_command(agent, wanted.prompt, environ),
        idle_timeout=request.idle_timeout or settings.idle_timeout,
        deepest=settings.depth,
    )


def check_prompt(prompt: str) -> None:
    """Raise `UserError` if a prompt is empty, too long or not valid text."""
    if not prompt.strip():
        raise UserError("the prompt is empty", "give a prompt, for example: outlive agent -- 'Review the last commit'")
    if "\0" in prompt or not is_encodable(prompt):
        raise UserError("the prompt is not usable", "give UTF-8 text without NUL bytes")
    if len(prompt.encode()) > LONGEST_PROMPT:
        raise UserError(
            f"the prompt has more than {LONGEST_PROMPT >> 20} MiB",
            "write the text to a file, and name the file in the prompt",
        )


def _check_lineage(environ: dict[str, str]) -> None:
    """Raise `TooDeep` if this process runs inside a task, but OUTLIVE_TASK is not set.

    Without this variable, it is not known how many nested tasks are around this process.
    """
    if parent_of(environ) is not None:
        return  # `run` checks how deeply tasks are nested
    pid = os.getppid()
    while pid > 1:
        if name_of(pid) == KEEPER_NAME:
            raise TooDeep(
                "this runs inside a task, but OUTLIVE_TASK is not set, so the depth of nested tasks is not known",
                "pass on OUTLIVE_TASK and OUTLIVE_DEPTH in the environment",
            )
        fields = stat_fields(pid)
        pid = int(fields[1]) if fields else 0


def _candidates(
    home: Home, settings: AgentSettings, wanted: WantedAgent, request: Request, *, is_resumed: bool
) -> tuple[tuple[Candidate, ...], str]:
    """Return the clients and models to try, and why the first one is first.

    A client that is not installed is left out, unless no client is installed. A client and model that were unavailable
    recently come last. If the agent continues a session, all stay in their order.
    """
    client, model, category, project = wanted.client, wanted.model, wanted.category, project_of(request.cwd)
    choice = choice_of(settings, client=client, model=model, category=category, project=project)
    found = choose(settings, client=client, model=model, fallback=wanted.fallback, category=category, project=project)
    unavailable = unavailable_models(home)
    # A session can be continued only by its own client, so the session's model is tried first even if it was
    # unavailable recently.
    if is_resumed:
        return found, f"{found[0].name}, by the {choice.model_from}"
    tables = tables_of(settings, found)
    installed = tuple(one for one in found if _find_program(one.client, tables, request)[1])
    if installed and found[0] not in installed:
        return installed, f"{installed[0].name}, because {found[0].client} is not installed"
    found = installed or found
    reachable = [one for one in found if (one.client, one.model) not in unavailable]
    if not reachable or found[0] in reachable:
        return found, f"{found[0].name}, by the {choice.model_from}"
    passed = [one for one in found if one not in reachable]
    return (*reachable, *passed), f"{reachable[0].name}, because {found[0].name} was unavailable lately"


def _find_resumed(home: Home, text: str) -> _Resumed:
    """Return the session that a new agent continues.

    `text` is the id of an agent task, or of a session in a client.
    """
    task = _task_of(home, text)
    if task is None:
        if text.startswith("-"):
            raise UserError(
                f"the session {text[:60]!r} begins with '-'",
                "the client would read this name as an option; give the id of a task or session",
            )
        return _Resumed(session=text)
    request, attempt = task.launch.agent, task.current
    if request is None or attempt.agent is None:
        raise UserError(
            f"task {task.id} is a command, and only an agent can be continued",
            f"`outlive retry {task.id}` runs the command again",
        )
    if attempt.settled_at is None:
        raise Conflict(
            f"task {task.id} is {task.state}, and its session can be continued only after the task has ended",
            f"`outlive wait {task.id}` waits for the end, `outlive cancel {task.id}` ends the task",
        )
    if attempt.agent.session is None:
        raise UserError(
            f"task {task.id} has no session: the task ended before its client had begun a session",
            "launch a new agent with the answer in its prompt"
            if task.has_asked
            else f"`outlive retry {task.id}` runs the agent again",
        )
    cost, tokens = used_by_session(home, attempt.agent.client, attempt.agent.session)
    return _Resumed(
        session=attempt.agent.session,
        client=attempt.agent.client,
        model=attempt.agent.asked,
        cwd=task.launch.cwd,
        cost_usd=cost,
        tokens=tokens,
        worktree=request.worktree,
    )


def _task_of(home: Home, text: str) -> Task | None:
    """Return the task with the id `text`, or the newest task that used this session.

    Returns None if there is no such task. Then `text` can only be the id of a client's session that no task has used.
    """
    try:
        with SqliteLedger(home.ledger, utc_now()) as ledger:
            found = AgentAttempts(ledger).task_of_session(text)
            return resolve(ledger, text) if found is None else ledger.task(found)
    except UserError:
        return None


def _check_not_running(home: Home, session: str) -> None:
    """Raise `Conflict` if a running task works in a client's session.

    The session of a running task is read from the progress that its keeper records, or else from the task's row in the
    ledger.
    """
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        running = [task for task in ledger.unsettled() if task.launch.agent is not None]
    for task in running:
        known = read_progress(AttemptFiles(home.bundle(task.id), task.current.number)) or task.current.agent
        if known is not None and known.session == session:
            raise session_is_taken(task.id, session)


def _check_not_open(home: Home, session: str, client: str, project: str) -> None:
    """Raise `Conflict` if a running client has a session open.

    The user may be working in that session, or the session may be the one that launches this agent.
    """
    if is_open(home, session, client, project):
        raise Conflict(
            f"{client} has the session {one_line(session, 60)} open at this moment",
            "end the session first, because both clients would write to one transcript, or leave out --resume",
        )


def _client_of_resumed(wanted: WantedAgent, resumed: _Resumed) -> str:
    """Return the client of the session that a new agent continues.

    Raises `UserError` if the caller wants another client, or if the client of the session is not known.
    """
    if wanted.client is not None and resumed.client not in (None, wanted.client):
        raise UserError(
            f"the session belongs to {resumed.client}, and {wanted.client} cannot continue it", "leave out --client"
        )
    client = wanted.client or resumed.client
    if client is None:
        raise UserError(
            f"no task has used the session {one_line(resumed.session, 60)}, so its client is not known",
            f"name the client with --client, one of: {', '.join(CLIENTS)}",
        )
    return client


def _cwd_of_resumed(cwd: str, resumed: _Resumed) -> str:
    """Return the directory in which an agent that continues a session is launched.

    Some clients find a session only from the directory in which the session began. If the earlier task had a worktree,
    the function returns the same directory of the user's own checkout, so that the new task belongs to the user's
    project. `placed` later replaces it by the directory in the worktree.
    """
    if resumed.worktree is not None and resumed.cwd is not None:
        below = os.path.relpath(resumed.cwd, resumed.worktree.path)
        return os.path.normpath(os.path.join(resumed.worktree.repository, below))
    return cwd if resumed.cwd is None or not os.path.isdir(resumed.cwd) else resumed.cwd


def _worktree(wanted: WantedAgent, request: Request, resumed: _Resumed | None) -> Worktree | None:
    """Return the worktree of the continued session, or a new worktree.

    A new worktree has no path and no branch yet, because they are named after the id of the task.
    """
    if not wanted.has_worktree:
        return None if resumed is None else resumed.worktree
    if resumed is not None:
        raise UserError(
            "an agent that continues a session works in the directory of that session",
            "leave out --worktree or --resume",
        )
    repository, base = head_commit(request.cwd, request.surroundings.environ)
    return Worktree(path="", repository=repository, branch="", base=base)


def _check_clients(agent: AgentRequest, request: Request, prompt: str) -> None:
    """Raise `UserError` if a client is not installed or cannot do what the user wants."""
    for one in {each.client: each for each in agent.candidates}.values():
        adapter = new_adapter(one.client, (agent.tables or {}).get(one.client))
        program, is_installed = _find_program(one.client, agent.tables or {}, request)
        if not is_installed:
            raise UserError(
                f"the client {one.client} is not installed: there is no program {one_line(program, 60)}",
                f"install it, name another one (--client), or set agents.clients.{one.client}.command in the settings",
            )
        if adapter.takes_prompt_as_argument and prompt.startswith("-"):
            raise UserError(
                f"the prompt begins with '-', and the client {one.client} gets the prompt as an argument",
                "begin the prompt with a word, because the client would read it as an option",
            )
        _check_model(agent, one.client, adapter)
        _check_limits(agent, one.client, adapter)
        if agent.resume is not None and not adapter.can_resume:
            raise UserError(f"the client {one.client} cannot continue a session", "leave out --resume")


def _find_program(client: str, tables: Mapping[str, Any], request: Request) -> tuple[str, bool]:
    """Return the program that starts a client, and whether the program is installed."""
    program = new_adapter(client, tables.get(client)).words()[0]
    path = request.surroundings.environ.get("PATH", os.defpath)
    return program, which(program if "/" not in program else os.path.join(request.cwd, program), path=path) is not None


def _check_model(agent: AgentRequest, client: str, adapter: Adapter) -> None:
    """Raise `UserError` if a client has a model, but no argument to name it."""
    model = next((one.model for one in agent.candidates if one.client == client and one.model is not None), None)
    if model is not None and not adapter.takes_model:
        raise UserError(
            f"the client {client} cannot be told to use the model {one_line(model, 60)}: it has no model_arguments",
            f"leave out the model (an option or a setting), or set agents.clients.{client}.model_arguments",
        )


def _check_limits(agent: AgentRequest, client: str, adapter: Adapter) -> None:
    """Raise `UserError` if a limit needs a number that the client does not report.

    For example, a cost limit needs a client that reports its cost.
    """
    instead = "give --max-turns instead of" if adapter.counts_turns else "leave out"
    if agent.budget_usd is not None and not adapter.reports_cost:
        raise UserError(
            f"the client {client} does not report what a run costs, so a budget cannot be enforced",
            f"{instead} --budget (in the settings: budget_usd)",
        )
    if agent.max_tokens is not None and not adapter.reports_tokens:
        raise UserError(
            f"the client {client} does not report its tokens before its end, so no limit can be enforced",
            f"{instead} --max-tokens (in the settings: max_tokens)",
        )
    if agent.max_turns is not None and not adapter.counts_turns:
        raise UserError(
            f"the client {client} does not report its turns, so a limit of turns cannot be enforced",
            f"leave out --max-turns (in the settings: max_turns), or describe agents.clients.{client}.lines.tool",
        )


def _command(agent: AgentRequest, prompt: str, environ: Mapping[str, str]) -> Command:
    """Return the command of the first attempt.

    The command does not contain the id of a new session, which is chosen later. The text of the command names the
    client and the prompt, for people who list tasks.
    """
    first = agent.candidates[0]
    start = AgentStart(
        client=first.client, model=first.model, session=agent.resume, is_resumed=agent.resume is not None
    )
    argv = new_adapter(first.client, (agent.tables or {}).get(first.client)).command(agent, start, prompt, environ).argv
    return from_argv(argv).but(text=f"{first.name}: {_first_line(prompt)}")


def _first_line(prompt: str) -> str:
    return one_line(next(line for line in prompt.splitlines() if line.strip()), _SHOWN_PROMPT)
