"""The choice of the clients and models that an agent task tries.

The first of these that names a model decides: an option, the project's settings, the category's settings, and the
client's default. A setting about a model applies only to that model. For example, if a category calls its model
unstable, but another model runs, that other model does not count as unstable.
"""

from __future__ import annotations

from outlive.agents.find_adapter import CLIENTS, new_adapter
from outlive.domain.agents.agent_settings import ClientSettings, Preset
from outlive.domain.agents.choice import Wish, resolve, split_name
from outlive.domain.agents.request import Candidate
from outlive.domain.errors import UserError
from outlive.domain.text.nearest import did_you_mean, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from outlive.domain.agents.agent_settings import AgentSettings
    from outlive.domain.agents.choice import Choice

    Name = tuple[str, str | None]


def known_clients(settings: AgentSettings) -> tuple[str, ...]:
    """Return the names of all clients: with an adapter or in the user's settings."""
    return tuple(dict.fromkeys((*CLIENTS, *settings.clients)))


def choose(
    settings: AgentSettings,
    *,
    client: str | None,
    model: str | None,
    fallback: Sequence[str] | None,
    category: str | None,
    project: str | None,
) -> tuple[Candidate, ...]:
    """Return the clients and models that an agent task tries, in this order.

    `client`, `model`, `fallback` and `category` are options. They are None if they are not given. `project` is the path
    of the task's project without symbolic links. Raises `UserError` for a wrong name.
    """
    choice = choice_of(settings, client=client, model=model, category=category, project=project)
    presets = _presets(settings, category, project)
    names: list[Name] = [(choice.client, choice.model)]
    if fallback is None:
        # If the chosen model is also a fallback in the settings, this is not a mistake of the user. So leave out the
        # second one without an error.
        names += [name for name in _set_fallback(settings, presets) if name != names[0]]
    else:
        names += [_fallback_name(text, choice.client, known_clients(settings)) for text in fallback]
        check_unique(names, "the models to try")
    return tuple(_candidate(settings, name, presets) for name in names)


def choice_of(
    settings: AgentSettings, *, client: str | None, model: str | None, category: str | None, project: str | None
) -> Choice:
    """Return the client and model that are tried first, and where the model was named."""
    known = known_clients(settings)
    if client is not None:
        check_client(client, known)
    found, model = (client, None) if model is None else model_name(model, known, client)
    presets = _presets(settings, category, project)
    wishes = [Wish(source="option", client=found, model=model)]
    for source, preset in zip(("project", "category"), presets, strict=True):
        chosen, own = own_name(preset, settings)
        wishes.append(Wish(source=source, client=chosen, model=own))
    wishes.append(Wish(source="default", client=settings.client))
    for name, each in settings.clients.items():
        if each.model is not None:
            wishes.append(Wish(source="default", client=name, model=model_name(each.model, known, name)[1]))
    choice = resolve(wishes, settings.client)
    return choice.but(is_unstable=_is_unstable(settings, (choice.client, choice.model), presets))


def tables_of(settings: AgentSettings, candidates: Iterable[Candidate]) -> Mapping[str, Any]:
    """Return the user's settings for the clients in `candidates`, by client."""
    used = dict.fromkeys(one.client for one in candidates)
    return {name: dict(settings.clients[name].table) for name in used if name in settings.clients}


def check_client(client: str, known: Collection[str]) -> None:
    """Raise `UserError` for an unknown client."""
    if client not in known:
        otherwise = f"the clients are {', '.join(known)}; to add a client, write a table [agents.clients.NAME]"
        hint = did_you_mean(client, known, otherwise)
        raise UserError(f"there is no client {client[:60]!r}", hint)


def model_name(text: str, known: Collection[str], client: str | None = None) -> tuple[str | None, str]:
    """Return the client and the model in a text such as `MODEL` or `CLIENT:MODEL`.

    If the text names no client, the result has the argument `client`. Raises `UserError` if the text names another
    client than `client`, or if its first part looks like a misspelled client.
    """
    prefix, colon, rest = text.partition(":")
    if not text.strip() or (colon and prefix in known and not rest.strip()):
        raise UserError(f"{text[:60]!r} names no model", "write MODEL or CLIENT:MODEL")
    found, model = split_name(text, known)
    if model.startswith("-"):
        hint = "remove the '-', because the client would take the model for an option"
        raise UserError(f"the model {text[:60]!r} begins with '-'", hint)
    if found is not None and client is not None and found != client:
        raise UserError(
            f"{text[:60]!r} is a model of {found}, not of {client}", f"name a model of {client}, or leave out {client}"
        )
    if found is None and client is None and colon and (close := nearest(prefix, known)) is not None:
        hint = f"did you mean {close}:{rest}? If the colon belongs to the model's name, write CLIENT:{text}"
        raise UserError(f"there is no client {prefix[:60]!r}", hint)
    return found or client, model


def own_name(preset: Preset, settings: AgentSettings) -> tuple[str | None, str | None]:
    """Return the client and the model that a project's or a category's settings name.

    If they name a model without a client, it is a model of the default client.
    """
    if preset.model is None:
        return preset.client, None
    client, model = model_name(preset.model, known_clients(settings), preset.client)
    return client or settings.client, model


def preset_fallback(preset: Preset, settings: AgentSettings) -> list[Name]:
    """Return the fallback models that a project's or a category's settings name.

    A model without a client belongs to the client of these settings.
    """
    client = own_name(preset, settings)[0] or settings.client
    return [_fallback_name(text, client, known_clients(settings)) for text in preset.fallback or ()]


def check_unique(names: Sequence[Name], of: str) -> None:
    """Raise `UserError` if a model is named twice.

    After the last model, the first one is tried again. So naming a model twice has no effect.
    """
    for at, name in enumerate(names):
        if name in names[:at]:
            shown = ":".join(part for part in name if part is not None)
            raise UserError(
                f"{shown} is twice among {of}", "name each model once; after the last model, the first is tried again"
            )


def _fallback_name(text: str, client: str, known: Collection[str]) -> Name:
    found, model = model_name(text, known)
    return found or client, model


def _presets(settings: AgentSettings, category: str | None, project: str | None) -> tuple[Preset, Preset]:
    """Return the settings of the project and those of the category."""
    if category is not None and category not in settings.categories:
        otherwise = f"describe it in [agents.categories.NAME] of {settings.path or 'your settings file'}"
        hint = did_you_mean(category, settings.categories, otherwise)
        raise UserError(f"there is no category {category[:60]!r} in your settings", hint)
    return settings.project_preset(project), settings.categories.get(category or "", Preset())


def _set_fallback(settings: AgentSettings, presets: Iterable[Preset]) -> Iterator[Name]:
    """Yield the first list of fallback models that is set.

    The settings of the project and of the category are searched in this order. If neither has such a list, the general
    one is used.
    """
    for preset in presets:
        if preset.fallback is not None:
            yield from preset_fallback(preset, settings)
            return
    yield from preset_fallback(Preset(fallback=settings.fallback), settings)


def _candidate(settings: AgentSettings, name: Name, presets: Iterable[Preset]) -> Candidate:
    client, model = name
    table = settings.clients.get(client, ClientSettings())
    of_model = None if model is None else settings.model_settings(client, model).at_once
    provider = table.provider or new_adapter(client, dict(table.table)).provider_of(model)
    plain = Candidate(client=client, model=model, is_unstable=_is_unstable(settings, name, presets))
    claims: tuple[tuple[str, int], ...] = (
        (f"agent-model:{plain.name}", of_model or table.at_once or settings.at_once),
    )
    if settings.at_once_per_provider is not None:
        claims += ((f"agent-provider:{provider}", settings.at_once_per_provider),)
    return plain.but(claims=claims)


def _is_unstable(settings: AgentSettings, name: Name, presets: Iterable[Preset]) -> bool:
    """Return whether the user's settings call a model unstable.

    The settings of the model decide first. If they do not say it, those of the project and the category decide, but
    only for the model that they name.
    """
    client, model = name
    if model is None:
        return False
    of_model = settings.model_settings(client, model).is_unstable
    if of_model is not None:
        return of_model
    return any(preset.is_unstable and own_name(preset, settings) == name for preset in presets)
