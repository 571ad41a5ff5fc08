"""The data types of the user's settings for agent tasks.

This module has the defaults. `outlive.settings.schema` describes every key, and `outlive.settings.read_settings` reads
them.
"""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from outlive.domain.timestamps import timedelta


class AgentLimits(Value):
    """The limits of one agent. None means no limit."""

    budget_usd: float | None = None
    max_tokens: int | None = None
    max_turns: int | None = None


class ClientSettings(Value):
    """The settings of one client."""

    model: str | None = None
    """The client's default model. None leaves the choice to the client."""
    provider: str | None = None
    """The provider of all models of this client. None leaves the choice to the adapter."""
    at_once: int | None = None
    """How many agents may use the same model of this client at once."""
    table: Mapping[str, Any] = {}
    """The values that the client's adapter needs, as JSON.

    They name the program, its arguments, and the format of its output lines.
    """


class ModelSettings(Value):
    """The settings of one model."""

    is_unstable: bool | None = None
    at_once: int | None = None


class Preset(Value):
    """The settings of one category of agents, or of one project.

    A field is None if the category or the project does not set the field.
    """

    client: str | None = None
    model: str | None = None
    is_unstable: bool = False
    """Whether the user calls the model of this preset unstable. None if not set."""
    fallback: tuple[str, ...] | None = None
    limits: AgentLimits = AgentLimits()


class AgentSettings(Value):
    """All settings for agent tasks."""

    path: str | None = None
    """The file from which the settings were read. None if there is no such file."""
    client: str = "claude"
    depth: int = 3
    at_once: int = 5
    at_once_per_provider: int | None = None
    """How many agents may use models of one provider at once. None means that only the limit of each model counts."""
    most_calls: int = 4000
    limits: AgentLimits = AgentLimits()
    idle_timeout: timedelta | None = None
    fallback: tuple[str, ...] = ()
    clients: Mapping[str, ClientSettings] = {}
    models: Mapping[str, ModelSettings] = {}
    """The settings of each model. The key is `CLIENT:MODEL`, or `MODEL` for a model with any client."""
    categories: Mapping[str, Preset] = {}
    projects: Mapping[str, Preset] = {}
    """The settings of each project, by the resolved path of the project's directory."""

    def limits_of(self, category: str | None) -> AgentLimits:
        """Return the limits of an agent.

        A limit of the category takes precedence over the general limit.
        """
        own = self.categories.get(category or "", Preset()).limits
        return AgentLimits(
            **{name: getattr(self.limits, name) if value is None else value for name, value in own.__dict__.items()}
        )

    def project_preset(self, project: str | None) -> Preset:
        """Return the settings of the project at a path.

        If several directories with settings contain the path, the innermost directory decides. Returns an empty preset
        if no directory with settings contains the path.
        """
        within = [path for path in self.projects if project is not None and is_within(project, path)]
        return self.projects[max(within, key=len)] if within else Preset()

    def model_settings(self, client: str, model: str) -> ModelSettings:
        """Return the settings of a model.

        A setting for `CLIENT:MODEL` takes precedence over the setting for `MODEL`.
        """
        exact = self.models.get(f"{client}:{model}", ModelSettings())
        general = self.models.get(model, ModelSettings())
        return ModelSettings(
            is_unstable=general.is_unstable if exact.is_unstable is None else exact.is_unstable,
            at_once=general.at_once if exact.at_once is None else exact.at_once,
        )


def is_within(path: str, directory: str) -> bool:
    """Return whether `path` equals `directory` or lies below `directory`.

    Both paths must be resolved.
    """
    return path == directory or path.startswith(directory.rstrip("/") + "/")
