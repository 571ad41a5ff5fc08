"""The adapters by name, and the functions that every reader of an attempt needs."""

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

The module of the adapter has the name of the client.
"""

# Session variables of clients without an adapter. A background agent must not inherit these variables either.
_FURTHER_VARIABLES = ("OPENCLAW_SHELL", "CURSOR_AGENT")


def adapter_of(request: AgentRequest, client: str) -> Adapter:
    """Return a new adapter for one of the clients of a request."""
    return new_adapter(client, (request.tables or {}).get(client))


def new_adapter(client: str, table: object = None) -> Adapter:
    """Return a new adapter: the client's own, or `JsonLines` for any other program."""
    settings = table if isinstance(table, dict) else {}
    name = CLIENTS.get(client)
    module = __import__(f"outlive.agents.{client if name else 'json_lines'}", fromlist=["*"])
    made: Adapter = getattr(module, name or "JsonLines")(settings if name else {**settings, "name": client})
    return made


def reader_of(
    request: AgentRequest, start: AgentStart, on_event: Callable[[Event], object] = lambda _: None
) -> StreamReader:
    """Return a reader for the output of an attempt."""
    return StreamReader(adapter_of(request, start.client), request, start, on_event)


def without_session_variables(environ: dict[str, str]) -> dict[str, str]:
    """Return an environment without the variables that name another agent's session."""
    named = {name for client in CLIENTS for name in new_adapter(client).session_variables}
    return {name: each for name, each in environ.items() if name not in named and name not in _FURTHER_VARIABLES}
