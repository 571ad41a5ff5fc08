"""The adapters by client name, and the functions that read an attempt's output."""

from __future__ import annotations

from outlive.agents.stream import StreamReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive.agents.adapter import Adapter
    from outlive.agents.stream_event import Event
    from outlive.domain.agents.request import AgentRequest, AgentStart

CLIENTS: dict[str, str] = {"claude": "Claude", "codex": "Codex", "gemini": "Gemini", "opencode": "OpenCode"}
"""The clients that have their own adapter, each with the class of its adapter.

The adapter's module has the name of the client.
"""

# The environment variables that name a session in clients without an adapter. A background agent must not inherit these
# variables either.
_FURTHER_VARIABLES = ("OPENCLAW_SHELL", "CURSOR_AGENT")


def adapter_of(request: AgentRequest, client: str) -> Adapter:
    """Return a new adapter for a client, with the settings in the launch request."""
    return new_adapter(client, (request.tables or {}).get(client))


def new_adapter(client: str, table: object = None) -> Adapter:
    """Return a new adapter for a client.

    A client without its own adapter gets `JsonLines`, which reads the output as the user's settings describe.
    """
    settings = table if isinstance(table, dict) else {}
    name = CLIENTS.get(client)
    module = __import__(f"outlive.agents.{client if name else 'json_lines'}", fromlist=["*"])
    made: Adapter = getattr(module, name or "JsonLines")(settings if name else {**settings, "name": client})
    return made


def reader_of(
    request: AgentRequest, start: AgentStart, on_event: Callable[[Event], object] = lambda _: None
) -> StreamReader:
    """Return a reader that turns the output of an attempt into events and a result."""
    return StreamReader(adapter_of(request, start.client), request, start, on_event)


def without_session_variables(environ: dict[str, str]) -> dict[str, str]:
    """Return a copy of an environment, without variables that name an agent's session."""
    named = {name for client in CLIENTS for name in new_adapter(client).session_variables}
    return {name: each for name, each in environ.items() if name not in named and name not in _FURTHER_VARIABLES}
