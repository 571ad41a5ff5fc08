"""The choice of a client and a model, first and after a failure.

The model that was resolved decides everything later. A category's default that was overridden has no say.
"""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from outlive.domain.agents.request import Candidate


class Wish(Value):
    """A wish for a client or a model, from one source. Both fields may be None."""

    source: str
    """Where the wish comes from: `option`, `project`, `category` or `default`."""
    client: str | None = None
    model: str | None = None
    is_unstable: bool = False
    """Whether the source calls its own model unstable."""


class Choice(Value):
    """A resolved client and model, and where each came from."""

    client: str
    model: str | None
    model_from: str
    is_unstable: bool


def resolve(wishes: Sequence[Wish], client: str) -> Choice:
    """Return the client and model of the first wishes that name them.

    The wishes are in order of precedence.
    A model is a name of one client. So a wish with a model but another client than the chosen one is passed over.
    `client` is chosen if no wish names one.
    """
    chosen = next((one.client for one in wishes if one.client is not None), client)
    for wish in wishes:
        if wish.model is not None and wish.client in (None, chosen):
            return Choice(client=chosen, model=wish.model, model_from=wish.source, is_unstable=wish.is_unstable)
    return Choice(client=chosen, model=None, model_from="client", is_unstable=False)


def split_name(text: str, clients: Collection[str]) -> tuple[str | None, str]:
    """Return client and model of a text such as `codex:gpt-5`.

    The client is None if the text has no known prefix.
    """
    client, colon, model = text.partition(":")
    return (client, model) if colon and client in clients and model else (None, text)


def next_candidate(
    candidates: Sequence[Candidate], failed: Candidate, unavailable: Collection[tuple[str, str | None]]
) -> Candidate:
    """Return the candidate to try after one that failed.

    Candidates are taken in turn, and those known to be unavailable are passed over. If all others are unavailable, the
    next one in turn is tried all the same, because it may be back.
    """
    at = candidates.index(failed) if failed in candidates else -1
    in_turn = [candidates[(at + step) % len(candidates)] for step in range(1, len(candidates) + 1)]
    return next((one for one in in_turn if (one.client, one.model) not in unavailable), in_turn[0])
