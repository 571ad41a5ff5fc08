"""The start of an agent's next attempt: its client, its model and its prompt."""

from __future__ import annotations

import os

from outlive.agents.find_adapter import adapter_of
from outlive.bundle.agent_files import read_prompt, read_start, trace_decision, write_start
from outlive.domain.agents.choice import next_candidate
from outlive.domain.agents.request import AgentStart
from outlive.domain.agents.result import AgentResult
from outlive.domain.errors import OutliveError
from outlive.domain.ids import uuid_of
from outlive.domain.tasks.queueing import Claim
from outlive.domain.timestamps import UTC, datetime, timedelta
from outlive.ledger.agent_attempts import AgentAttempts
from outlive.ledger.sqlite import SqliteLedger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Literal

    from outlive.bundle.attempt import AttemptFiles
    from outlive.bundle.home import Home
    from outlive.domain.agents.request import AgentRequest, Candidate
    from outlive.domain.tasks.task import Attempt, Launch
    from outlive.keeper.plan import Plan

_LONGEST_PAUSE_S = 3600.0


def begin_next(plan: Plan, files: AttemptFiles, result: AgentResult, row: Attempt) -> Attempt:
    """Write the files of an agent's next attempt. Return its row for the ledger.

    `result` is the result of the failed attempt. If the same model is tried again, the next attempt waits for as long
    as the provider asked for, but at most one hour. The limits of the task apply to all its attempts together. So the
    files contain the cost, tokens and turns of all earlier attempts. Raises OSError if the files cannot be written.
    """
    request = plan.launch.agent
    assert request is not None  # noqa: S101 - this function is called only for agent tasks, which have a request
    unavailable = unavailable_models(plan.home)
    start, prompt = next_start(plan.launch, plan.files, result, unavailable)
    start = _with_spent(start, read_start(plan.files), result)
    write_start(files, start, prompt)
    is_same = (start.client, start.model) == (result.client, result.asked)
    if is_same and result.retry_after_s and row.not_before is not None:
        pause = timedelta(seconds=min(result.retry_after_s, _LONGEST_PAUSE_S))
        row = row.but(not_before=max(row.not_before, row.created_at + pause))
    trace_next_attempt(files, request, result, start, unavailable, cause="automatic")
    return row.but(claims=claims_of(plan.launch, start), agent=known_at_start(request, start))


def trace_next_attempt(
    files: AttemptFiles,
    request: AgentRequest,
    result: AgentResult,
    start: AgentStart,
    unavailable: Collection[tuple[str, str | None]],
    *,
    cause: Literal["automatic", "retry"],
) -> None:
    """Log which client and model the next attempt has, and why.

    The log is the debugging log of the session, which is called the trace. `result` is the result of the previous
    attempt.
    """
    trace_decision(
        files.bundle,
        request,
        "next_attempt",
        attempt=files.number,
        cause=cause,
        after={"client": result.client, "model": result.asked, "class": result.agent_class, "error": result.error},
        unavailable=[one.name for one in request.candidates if (one.client, one.model) in unavailable],
        client=start.client,
        model=start.model,
        is_resumed=start.is_resumed,
    )


def unavailable_models(home: Home) -> set[tuple[str, str | None]]:
    """Return the clients and models that were recently found to be unavailable.

    Returns an empty set if the ledger cannot be read.
    """
    now = datetime.now(UTC)
    try:
        with SqliteLedger(home.ledger, now, create=False) as ledger:
            return AgentAttempts(ledger).unavailable(now)
    except OutliveError:
        return set()


def has_forgotten_session(files: AttemptFiles, result: AgentResult) -> bool:
    """Return whether the client did not find the session that it had to continue.

    The session may be missing because an earlier client was killed before it had saved the session. Returns True only
    if Outlive chose the session. If the user named the session, the error is reported to the user instead.
    """
    start = read_start(files)
    has_begun = result.turns > 0 or result.calls > 0
    is_ours = files.number > 1 and start is not None and start.is_resumed
    return is_ours and not has_begun and result.agent_class in ("refused", "broken")


def first_start(request: AgentRequest) -> AgentStart:
    """Return the client, the model and the session of the first attempt.

    The client and the model are the first ones that the request names. The session is new, or the one that the user
    resumes.
    """
    return _begun_anew(request, request.candidates[0])


def _begun_anew(request: AgentRequest, candidate: Candidate) -> AgentStart:
    """Return the client, the model and a new session, without any earlier attempt."""
    if request.resume is not None and candidate.client == request.candidates[0].client:
        return AgentStart(
            client=candidate.client,
            model=candidate.model,
            session=request.resume,
            is_resumed=True,
            cost_before_usd=request.resumed_cost_usd,
            tokens_before=request.resumed_tokens,
        )
    return _new_session(request, candidate)


def next_start(
    launch: Launch,
    last: AttemptFiles,
    result: AgentResult,
    unavailable: Collection[tuple[str, str | None]],
    *,
    was_interrupted: bool = True,
) -> tuple[AgentStart, str]:
    """Return the client, model and session of the next attempt, and its prompt.

    If the model was unavailable, the next client and model of the request are tried. Otherwise the same ones are tried
    again. If the failed attempt has called tools, the next attempt continues this work: the same client also continues
    the session, and a different client begins a new session with a prompt that mentions the failed attempt.

    If the last attempt has printed a final answer, the next attempt begins as the first attempt began.
    `was_interrupted` is False if a limit or a refused request ended the last attempt.
    """
    request, before = launch.agent, read_start(last)
    assert request is not None  # noqa: S101 - this function is called only for agent tasks, which have a request
    failed = request.candidate(result.client, result.asked)
    chosen = failed
    if result.agent_class == "unavailable":
        chosen = next_candidate(request.candidates, failed, unavailable)
    prompt = read_prompt(last.bundle)
    if result.agent_class == "answered":
        return _begun_anew(request, chosen), prompt
    session = result.session or (before.session if before else None)
    has_worked = result.calls > 0
    is_forgotten = has_forgotten_session(last, result)
    how = "was interrupted" if was_interrupted else "ended without an answer"
    is_known = chosen.client == result.client and not is_forgotten
    if is_known and session is not None and (has_worked or (before and before.is_resumed)):
        # An attempt that has called tools has read its prompt. Otherwise the prompt is sent again, because the session
        # may not contain it.
        again = f"The previous attempt {how}. Continue where it stopped." if has_worked else read_prompt(last.path)
        return _continued(chosen, session, before, result), again
    note = ""
    if has_worked or is_forgotten:
        note = (
            f"\n\n(An earlier attempt at this, by {failed.name}, {how}."
            f" `outlive transcript {launch.id} --tools` shows what it has done.)"
        )
    return _new_session(request, chosen), prompt + note


def _continued(chosen: Candidate, session: str, before: AgentStart | None, result: AgentResult) -> AgentStart:
    """Return the start data of an attempt that continues the previous session.

    The data contain the cost and the tokens that the session has used so far.
    """
    cost, tokens = (None, None) if before is None else (before.cost_before_usd, before.tokens_before)
    used = (result.input_tokens or 0, result.output_tokens or 0)
    return AgentStart(
        client=chosen.client,
        model=chosen.model,
        session=session,
        is_resumed=True,
        cost_before_usd=(cost or 0.0) + (result.cost_usd or 0.0),
        tokens_before=used if tokens is None else (tokens[0] + used[0], tokens[1] + used[1]),
    )


def _with_spent(start: AgentStart, before: AgentStart | None, result: AgentResult) -> AgentStart:
    """Add the cost, tokens and turns of all earlier attempts to the next start's data."""
    cost, tokens, turns = (0.0, 0, 0) if before is None else (before.spent_usd, before.spent_tokens, before.spent_turns)
    return start.but(
        spent_usd=cost + (result.cost_usd or 0.0),
        spent_tokens=tokens + (result.input_tokens or 0) + (result.output_tokens or 0),
        spent_turns=turns + result.turns,
    )


def known_at_start(request: AgentRequest, start: AgentStart) -> AgentResult:
    """Return the result to store for an attempt that has not begun.

    Only the client, the model and the session are known at this time.
    """
    return AgentResult(
        client=start.client,
        model=start.model,
        asked=start.model,
        session=start.session,
        is_unstable=request.candidate(start.client, start.model).is_unstable,
    )


def claims_of(launch: Launch, start: AgentStart) -> tuple[Claim, ...]:
    """Return the limits on parallel attempts that apply to an attempt.

    Such a limit is called a claim: a name, and how many attempts with this name may run at once. Some claims come from
    the task, and some from its model.
    """
    request = launch.agent
    assert request is not None  # noqa: S101 - this function is called only for agent tasks, which have a request
    models = request.candidate(start.client, start.model).claims
    return (*launch.claims, *(Claim(name=name, room=room) for name, room in models))


def _new_session(request: AgentRequest, candidate: Candidate) -> AgentStart:
    assigns = adapter_of(request, candidate.client).assigns_session
    return AgentStart(
        client=candidate.client, model=candidate.model, session=uuid_of(os.urandom(16)) if assigns else None
    )
