"""What an agent task was asked to do: models to try, limits, a worktree."""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Candidate(Value):
    """A client with a model that may answer the prompt."""

    client: str
    model: str | None = None
    """The model's name for this client. None leaves the choice to the client."""
    is_unstable: bool = False
    """Whether the user's configuration calls this model unstable, so that its silence is not waited for as long."""
    claims: tuple[tuple[str, int], ...] = ()
    """Names with a limit: at most so many attempts with the same name run at once."""

    @property
    def name(self) -> str:
        """The client and the model, such as `claude:opus`."""
        return self.client if self.model is None else f"{self.client}:{self.model}"


class Worktree(Value):
    """The git worktree that was made for an agent task."""

    path: str
    repository: str
    """The top of the worktree from which the task was launched."""
    branch: str
    base: str
    """The commit that the branch began with."""


class AgentRequest(Value):
    """The request of an agent task. The prompt is in a file of the bundle."""

    candidates: tuple[Candidate, ...]
    """The first one is tried first. The others follow in order if a model is unavailable."""
    category: str | None = None
    resume: str | None = None
    """The client's own session that the agent continues."""
    resumed_cost_usd: float | None = None
    """What the resumed session had cost before the task, if that is known."""
    resumed_tokens: tuple[int, int] | None = None
    """The input and output tokens of the resumed session before the task, if they are known."""
    budget_usd: float | None = None
    max_tokens: int | None = None
    max_turns: int | None = None
    most_calls: int = 4000
    """The number of tool calls after which the agent is taken for a runaway."""
    worktree: Worktree | None = None
    tables: Mapping[str, Any] | None = None
    """The user's settings for each client of this request: its program, its arguments, how its lines are read."""
    is_traced: bool = False
    why: str | None = None
    """Why the first candidate was chosen, for the trace and for people."""

    def candidate(self, client: str, model: str | None) -> Candidate:
        """Return the candidate with this client and model, or the first one."""
        found = (one for one in self.candidates if (one.client, one.model) == (client, model))
        return next(found, self.candidates[0])


class AgentStart(Value):
    """How one attempt of an agent task begins."""

    client: str
    model: str | None = None
    session: str | None = None
    """The client's session: the one to resume, or the id that a new session is to get. None if the client decides."""
    is_resumed: bool = False
    cost_before_usd: float | None = None
    """What earlier runs of the resumed session have cost, if they are known."""
    tokens_before: tuple[int, int] | None = None
    """The input and output tokens of earlier runs of the resumed session, if they are known."""
    spent_usd: float = 0.0
    """What earlier attempts of the task have cost. They count for its limits."""
    spent_tokens: int = 0
    spent_turns: int = 0


def request_json(request: AgentRequest) -> dict[str, Any]:
    """Return a request as JSON values."""
    document = dict(request.__dict__)
    document["candidates"] = [dict(one.__dict__) for one in request.candidates]
    document["worktree"] = None if request.worktree is None else dict(request.worktree.__dict__)
    return document


def request_from(document: Mapping[str, Any]) -> AgentRequest:
    """Return the request that `request_json` described.

    Fields of a newer Outlive are left out.
    """
    known = {name: value for name, value in document.items() if name in AgentRequest._fields}
    known["candidates"] = tuple(_candidate(one) for one in known["candidates"])
    if known.get("worktree") is not None:
        known["worktree"] = Worktree(**known["worktree"])
    if known.get("resumed_tokens") is not None:
        known["resumed_tokens"] = tuple(known["resumed_tokens"])
    return AgentRequest(**known)


def _candidate(document: Mapping[str, Any]) -> Candidate:
    fields = {name: value for name, value in document.items() if name in Candidate._fields}
    fields["claims"] = tuple((str(name), int(room)) for name, room in fields.get("claims", ()))
    return Candidate(**fields)
