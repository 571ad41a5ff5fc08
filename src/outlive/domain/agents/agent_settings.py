"""The user's settings for agent tasks, as values.

The defaults are here. `outlive.settings.schema` describes every key, and `outlive.settings.read_settings` reads them.
"""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from outlive.domain.timestamps import timedelta


class AgentLimits(Value):
    """The ceilings of one agent. None means no ceiling."""

    budget_usd: float | None = None
    max_tokens: int | None = None
    max_turns: int | None = None


class ClientSettings(Value):
    """The settings of one client."""

    model: str | None = None
    """The client's default model. None leaves the choice to the client."""
    provider: str | None = None
    """The provider of all models of this client. None leaves it to the adapter."""
    at_once: int | None = None
    """How many agents of each of its models run at once."""
    table: Mapping[str, Any] = {}
    """What the client's adapter reads: its program, its arguments, how its lines are read. JSON values."""


class ModelSettings(Value):
    """The settings of one model."""

    is_unstable: bool | None = None
    at_once: int | None = None


class Preset(Value):
    """What a category, or a project, sets. None means that it has no say."""

    client: str | None = None
    model: str | None = None
    is_unstable: bool = False
    """Whether the preset calls its own model unstable. It says nothing about other models."""
    fallback: tuple[str, ...] | None = None
    limits: AgentLimits = AgentLimits()


class AgentSettings(Value):
    """All settings for agent tasks."""

    path: str | None = None
    """The file that they were read from. None if there is none."""
    client: str = "claude"
    depth: int = 3
    at_once: int = 5
    at_once_per_provider: int | None = None
    """None means that only the number of agents of each model is limited."""
    most_calls: int = 4000
    limits: AgentLimits = AgentLimits()
    idle_timeout: timedelta | None = None
    fallback: tuple[str, ...] = ()
    clients: Mapping[str, ClientSettings] = {}
    models: Mapping[str, ModelSettings] = {}
    """By `CLIENT:MODEL`, or by `MODEL` for that model with any client."""
    categories: Mapping[str, Preset] = {}
    projects: Mapping[str, Preset] = {}
    """By the resolved path of a directory."""

    def limits_of(self, category: str | None) -> AgentLimits:
        """Return the ceilings of an agent: those of its category, else the general ones."""
        own = self.categories.get(category or "", Preset()).limits
        return AgentLimits(
            **{name: getattr(self.limits, name) if value is None else value for name, value in own.__dict__.items()}
        )

    def project_preset(self, project: str | None) -> Preset:
        """Return the preset of the longest path around a project, or an empty preset."""
        within = [path for path in self.projects if project is not None and is_within(project, path)]
        return self.projects[max(within, key=len)] if within else Preset()

    def model_settings(self, client: str, model: str) -> ModelSettings:
        """Return the settings of a model.

        Those of `CLIENT:MODEL` go before those of `MODEL`.
        """
        exact = self.models.get(f"{client}:{model}", ModelSettings())
        general = self.models.get(model, ModelSettings())
        return ModelSettings(
            is_unstable=general.is_unstable if exact.is_unstable is None else exact.is_unstable,
            at_once=general.at_once if exact.at_once is None else exact.at_once,
        )


def is_within(path: str, directory: str) -> bool:
    """Return whether a path is a directory or lies below it; both are resolved."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")
