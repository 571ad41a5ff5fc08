"""The request of an agent task: the models to try, the limits and the worktree."""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Candidate(Value):
    """A client and a model with which an agent task may be tried."""

    client: str
    model: str | None = None
    """The model's name for this client. None leaves the choice to the client."""
    is_unstable: bool = False
    """Whether the user's settings call this model unstable.

    If such a model writes no output, its attempt is ended sooner than with other models.
    """
    claims: tuple[tuple[str, int], ...] = ()
    """Named limits of parallel attempts.

    For each name, the number says how many attempts with this name may run at once.
    """

    @property
    def name(self) -> str:
        """The client and the model, such as `claude:opus`."""
        return self.client if self.model is None else f"{self.client}:{self.model}"


class Worktree(Value):
    """The git worktree that was made for an agent task."""

    path: str
    repository: str
    """The top directory of the worktree from which the task was launched."""
    branch: str
    base: str
    """The commit from which the branch of the worktree was created."""


class AgentRequest(Value):
    """The request of an agent task. The prompt is in a file of the bundle."""

    candidates: tuple[Candidate, ...]
    """The candidates in the order in which they are tried. If a model is unavailable, the next candidate is tried."""
    category: str | None = None
    resume: str | None = None
    """The client's own session that the agent continues."""
    resumed_cost_usd: float | None = None
    """The cost of the resumed session before the task. None if it is not known."""
    resumed_tokens: tuple[int, int] | None = None
    """The input and output tokens of the resumed session before the task. None if they are not known."""
    budget_usd: float | None = None
    max_tokens: int | None = None
    max_turns: int | None = None
    most_calls: int = 4000
    """The number of tool calls after which the agent counts as a runaway and is ended."""
    worktree: Worktree | None = None
    tables: Mapping[str, Any] | None = None
    """The settings of each client in this request.

    They name the program, its arguments, and the format of its output lines.
    """
    is_traced: bool = False
    why: str | None = None
    """Why the first candidate was chosen, as a phrase for people and for debugging."""

    def candidate(self, client: str, model: str | None) -> Candidate:
        """Return the candidate with this client and model, or the first candidate."""
        found = (one for one in self.candidates if (one.client, one.model) == (client, model))
        return next(found, self.candidates[0])


class AgentStart(Value):
    """The data with which one attempt of an agent task begins."""

    client: str
    model: str | None = None
    session: str | None = None
    """The id of the session to resume, or the id for a new session. None if the client chooses the id."""
    is_resumed: bool = False
    cost_before_usd: float | None = None
    """The cost of earlier runs of the resumed session. None if it is not known."""
    tokens_before: tuple[int, int] | None = None
    """The input and output tokens of earlier runs of the resumed session. None if they are not known."""
    spent_usd: float = 0.0
    """The cost of the task's earlier attempts.

    This cost, and the next two fields, count towards the task's limits.
    """
    spent_tokens: int = 0
    spent_turns: int = 0


def request_json(request: AgentRequest) -> dict[str, Any]:
    """Return a request as JSON values."""
    document = dict(request.__dict__)
    document["candidates"] = [dict(one.__dict__) for one in request.candidates]
    document["worktree"] = None if request.worktree is None else dict(request.worktree.__dict__)
    return document


def request_from(document: Mapping[str, Any]) -> AgentRequest:
    """Return the request from the JSON values that `request_json` returned.

    Fields that only a newer version of Outlive knows are left out.
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
