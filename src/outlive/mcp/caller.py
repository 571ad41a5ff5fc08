"""The caller of an MCP request: its session, project, client and shell sandbox.

Only this module reads how clients describe themselves. They do this by environment variables, by fields that they add
to a call, or by roots, which are directories that a client names.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import mcp_types as types
from anyio import Lock
from mcp.shared.exceptions import MCPError

from outlive.domain.value import Value
from outlive.mcp.threads import cross
from outlive.service.tasks.launch_context import SESSION_VARIABLES, own_session_of, project_of, session_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession

CODEX_TURN = "x-codex-turn-metadata"
# Codex sends this field only to servers that have declared it.
CODEX_SANDBOX = "codex/sandbox-state-meta"
# OpenCode and OpenClaw do not tell an MCP server which session calls. So Outlive's plugins for them add the session and
# its directory to the arguments of each call. The directory is needed, because OpenClaw starts all servers in the
# directory of its gateway, and not in that of the session.
_GIVEN_SESSION, _GIVEN_PLACE = "outlive_session", "outlive_directory"
_CLIENTS_WITH_PLUGIN = ("opencode", "openclaw-bundle-mcp")
_ROOTS_TIMEOUT_S = 5.0
# If a tool returns text and JSON, Claude Code 2.1.325 and Codex 0.166.0 give only the JSON to the model, and OpenClaw
# 2026.9.6 puts the JSON first. The JSON is long, and does not mark the text that comes from tasks. So these clients get
# only the text.
_TEXT_ONLY = ("claude-code", "codex-mcp-client", "openclaw-bundle-mcp")
# If the result of a task is an error, Claude Code 2.1.327 joins all lines of its text into one.
_ERRORS_IN_ONE_LINE = ("claude-code",)


class Caller(Value):
    """What is known about the caller of a request."""

    session: str | None
    directory: str
    project: str
    task_session: str | None = None
    """The session of the task in which the client runs. It is used only if the caller's own session is not known."""
    client: str | None = None
    """The name that the client has given itself."""
    sandbox: str | None = None
    """The client's description of its shell's sandbox, or None if the client sent none."""
    process: int | None = None
    """The client's process id, if the client started this server. Otherwise None."""
    is_distant: bool = False
    """Whether the call came over HTTP. Then the environment variables of this server say nothing about the caller."""

    @property
    def wants_documents(self) -> bool:
        """Whether the client gets JSON, too. Some clients show a model only the JSON."""
        return self.client not in _TEXT_ONLY

    @property
    def takes_errors(self) -> bool:
        """Whether the client keeps the line breaks in a task's result if it is an error."""
        return self.client not in _ERRORS_IN_ONE_LINE


class Callers:
    """The callers of one MCP server."""

    def __init__(self, environ: Mapping[str, str], directory: str, *, is_distant: bool) -> None:
        # With HTTP, only Outlive's own variables are used. The server may have been started inside a session that is
        # not the caller's.
        self._environ = {name: environ[name] for name in SESSION_VARIABLES if name in environ}
        self._environ = self._environ if is_distant else dict(environ)
        self._directory = directory
        self._is_distant = is_distant
        self._process = os.getppid()
        self._roots: list[str] | None = None
        self._asking = Lock()

    async def of(self, ctx: ServerRequestContext[Any, Any], given: Mapping[str, Any] | None = None) -> Caller:
        """Return the caller of a request. `given` are the arguments of a tool call."""
        meta: Mapping[str, Any] = ctx.meta or {}
        turn, sandbox = _mapping(meta.get(CODEX_TURN)), _mapping(meta.get(CODEX_SANDBOX))
        client = ctx.session.client_params
        name = None if client is None else client.client_info.name
        added = (given or {}) if name in _CLIENTS_WITH_PLUGIN else {}
        session = _text(added.get(_GIVEN_SESSION)) or own_session_of(self._environ, _text(turn.get("session_id")))
        directory = (
            _directory(_text(added.get(_GIVEN_PLACE)))
            or _directory(_text(sandbox.get("sandboxCwd")))
            or _directory(self._environ.get("CLAUDE_PROJECT_DIR"))
            or await self._root(ctx.session)
            or self._directory
        )
        return Caller(
            session=session,
            task_session=session_of(self._environ),
            directory=directory,
            project=await cross(project_of, directory),
            client=name,
            sandbox=_text(turn.get("sandbox")),
            process=None if self._is_distant else self._process,
            is_distant=self._is_distant,
        )

    async def _root(self, session: ServerSession) -> str | None:
        """Return the directory (root) of the client that contains the server's directory.

        If no root contains it, return the first root. Return None if the client has no roots or cannot be asked for
        them.
        """
        declared = session.client_capabilities
        if self._is_distant or declared is None or declared.roots is None or not session.can_send_request:
            return None
        async with self._asking:
            if self._roots is None:
                self._roots = await _ask_for_roots(session)
        around = [root for root in self._roots if f"{self._directory}/".startswith(f"{root.rstrip('/')}/")]
        return next(iter(around or self._roots), None)

    async def roots_changed(self, *_: object) -> None:
        """Forget the client's roots (its directories), so that they are asked for again."""
        self._roots = None


def without_session(caller: Caller, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a tool's arguments without those that Outlive's plugin has added."""
    ours = (_GIVEN_SESSION, _GIVEN_PLACE) if caller.client in _CLIENTS_WITH_PLUGIN else ()
    return {name: each for name, each in (given or {}).items() if name not in ours}


async def _ask_for_roots(session: ServerSession) -> list[str]:
    try:
        answer = await session.send_request(
            types.ListRootsRequest(), types.ListRootsResult, request_read_timeout_seconds=_ROOTS_TIMEOUT_S
        )
    except (MCPError, TimeoutError):
        return []
    return [found for root in answer.roots if (found := _directory(str(root.uri)))]


def _directory(text: str | None) -> str | None:
    """Return the directory that a path or a file URI names, or None if there is none."""
    if text is None:
        return None
    path = unquote(urlsplit(text).path) if text.startswith("file:") else text
    return os.path.normpath(path) if path.startswith("/") and os.path.isdir(path) else None


def _mapping(found: object) -> Mapping[str, Any]:
    return found if isinstance(found, dict) else {}


def _text(found: object) -> str | None:
    return found if isinstance(found, str) and found else None
