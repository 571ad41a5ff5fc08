"""The check that the clients, models and fallbacks in the settings are known."""

from __future__ import annotations

from outlive.agents.find_adapter import CLIENTS
from outlive.domain.agents.agent_settings import Preset
from outlive.domain.errors import UserError
from outlive.domain.text.nearest import did_you_mean
from outlive.settings.agent_choice import (
    check_client,
    check_unique,
    known_clients,
    model_name,
    own_name,
    preset_fallback,
)
from outlive.settings.check_values import BadKey, dotted
from outlive.settings.schema import DESCRIBED_ONLY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive.domain.agents.agent_settings import AgentSettings, ClientSettings
    from outlive.settings.check_values import Where


def check_names(settings: AgentSettings) -> None:
    """Raise `BadKey` for the first name that is unknown, or not allowed for its key."""
    known = known_clients(settings)
    for name, client in settings.clients.items():
        where = ("agents", "clients", name)
        _check_described(name, client, where)
        if client.model is not None:
            _check((*where, "model"), model_name, client.model, known, name)
    _check(("agents", "client"), check_client, settings.client, known)
    for text in settings.models:
        _check(("agents", "models", text), model_name, text, known)
    _check_preset(Preset(fallback=settings.fallback), settings, ("agents",))
    for table, presets in (("categories", settings.categories), ("projects", settings.projects)):
        for name, preset in presets.items():
            _check_preset(preset, settings, ("agents", table, name))


def _check(where: Where, check: Callable[..., object], *arguments: object) -> None:
    """Call a function that checks a value. If it fails, raise `BadKey` with the key."""
    try:
        check(*arguments)
    except UserError as error:
        raise BadKey(where, f"{dotted(where)}: {error.message}", error.hint) from error


def _check_described(name: str, client: ClientSettings, where: Where) -> None:
    """Raise `BadKey` if a client's settings lack a needed key or have a forbidden one."""
    if ":" in name or "," in name:
        fact = f"{dotted(where)} has a colon or a comma in its name"
        raise BadKey(where, fact, "choose a name without colons and commas")
    if name in CLIENTS:
        for key in DESCRIBED_ONLY:
            if key in client.table:
                here = (*where, key)
                fact = f"{dotted(here)} is only for programs that Outlive does not know"
                raise BadKey(here, fact, "remove the key, or rename the table")
        return
    if "command" not in client.table:
        hint = did_you_mean(name, CLIENTS, f'add command = ["PROGRAM", ...] to [{dotted(where)}]')
        raise BadKey(where, f"{dotted(where)} is no client that Outlive knows, and its table has no command", hint)
    lines = client.table.get("lines", {})
    for sign, rule in lines.items():
        if "when" not in rule:
            here = (*where, "lines", sign)
            fact = f"{dotted(here)} needs `when`, because without this key it matches no line"
            raise BadKey(here, fact, 'add for instance when = { type = "result" }')
    if "answer" not in lines:
        fact = f"{dotted(where)} needs lines.answer, because otherwise no agent of this client would have an answer"
        raise BadKey(where, fact, 'add for instance lines.answer = { when = { type = "result" }, text = "result" }')


def _check_preset(preset: Preset, settings: AgentSettings, where: Where) -> None:
    """Raise `BadKey` for wrong settings of a project or category.

    The client, the model, the fallbacks and the key `unstable` are checked.
    """
    if preset.client is not None:
        _check((*where, "client"), check_client, preset.client, known_clients(settings))
    _check((*where, "model"), own_name, preset, settings)
    if preset.is_unstable and preset.model is None:
        here = (*where, "unstable")
        fact = f"{dotted(here)} is about the model of its table, but the table has no model"
        raise BadKey(here, fact, "add `model` to the table, or remove `unstable`")
    _check((*where, "fallback"), _check_fallback, preset, settings)


def _check_fallback(preset: Preset, settings: AgentSettings) -> None:
    client, model = own_name(preset, settings)
    own = [] if client is None or model is None else [(client, model)]
    check_unique([*own, *preset_fallback(preset, settings)], "the models to try")
