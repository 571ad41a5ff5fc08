"""The choice of a client and a model, for the first attempt and after a failure.

Later decisions depend only on the chosen model. A model that was not chosen, such as the default model of a category,
has no influence on them.
"""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from outlive.domain.agents.request import Candidate


class Wish(Value):
    """The client and the model that one source of settings asks for.

    The fields `client` and `model` may both be None.
    """

    source: str
    """The source: `option`, `project`, `category` or `default`."""
    client: str | None = None
    model: str | None = None
    is_unstable: bool = False
    """Whether the user calls the model unstable."""


class Choice(Value):
    """The chosen client and model, and the source that asked for the model."""

    client: str
    model: str | None
    model_from: str
    is_unstable: bool


def resolve(wishes: Sequence[Wish], client: str) -> Choice:
    """Choose the client and the model of an agent task.

    The wishes are in order of precedence. The first wish that names a client decides the client. If no wish names a
    client, the function uses `client`. The model of a wish for another client is not used, because a model's name is
    valid only for one client.
    """
    chosen = next((one.client for one in wishes if one.client is not None), client)
    for wish in wishes:
        if wish.model is not None and wish.client in (None, chosen):
            return Choice(client=chosen, model=wish.model, model_from=wish.source, is_unstable=wish.is_unstable)
    return Choice(client=chosen, model=None, model_from="client", is_unstable=False)


def split_name(text: str, clients: Collection[str]) -> tuple[str | None, str]:
    """Return the client and the model in a string such as `codex:gpt-5`.

    The returned client is None if the string does not begin with a known client and a colon.
    """
    client, colon, model = text.partition(":")
    return (client, model) if colon and client in clients and model else (None, text)


def next_candidate(
    candidates: Sequence[Candidate], failed: Candidate, unavailable: Collection[tuple[str, str | None]]
) -> Candidate:
    """Return the client and the model to try after `failed`.

    Candidates are tried in turn, and candidates that are known to be unavailable are left out. If all candidates are
    unavailable, the next candidate is tried nevertheless, because its model may be available again.
    """
    at = candidates.index(failed) if failed in candidates else -1
    in_turn = [candidates[(at + step) % len(candidates)] for step in range(1, len(candidates) + 1)]
    return next((one for one in in_turn if (one.client, one.model) not in unavailable), in_turn[0])
