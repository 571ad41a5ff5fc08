"""Who calls: which session, in which project, through which client, and what that says of its shell.

A client tells its server little, each in its own way: by the environment that it starts it with, by
what it adds to a call, by its roots. All of it is read here, and nowhere else.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import mcp_types as types
from anyio import Lock
from mcp.shared.exceptions import MCPError

from outlive.domain.value import Value
from outlive.mcp.crossing import cross
from outlive.service.origin import project_of, session_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession

CODEX_TURN = "x-codex-turn-metadata"
# Codex tells this only to servers that say they want it.
CODEX_SANDBOX = "codex/sandbox-state-meta"
# OpenCode and OpenClaw tell their servers nothing; our plugins in them add these to what our tools are given. The
# latter starts them all where its gateway was started, whatever a session works on.
_GIVEN_SESSION, _GIVEN_PLACE = "outlive_session", "outlive_directory"
_TOLD_BY_PLUGIN = ("opencode", "openclaw-bundle-mcp")
_PATIENCE_WITH_ROOTS_S = 5.0
# Seen with Claude Code 2.1.325 and Codex 0.166.0: of an answer with both, the model gets the JSON only; OpenClaw
# 2026.9.6 puts it first. That is long, and what tasks say in it has no frame around it.
_WORDS_ONLY = ("claude-code", "codex-mcp-client", "openclaw-bundle-mcp")


class Caller(Value):
    """One caller, as far as it is known."""

    session: str | None
    directory: str
    project: str
    client: str | None = None
    """The client's name for itself."""
    sandbox: str | None = None
    """What the client says of the sandbox of its shell; None if it says nothing."""
    process: int | None = None
    """The client's process, which started us; None if it did not."""
    is_distant: bool = False
    """It came over HTTP: our environment is not its environment."""

    @property
    def wants_documents(self) -> bool:
        """Whether it is sent the JSON beside the words; some clients would show their model that instead of them."""
        return self.client not in _WORDS_ONLY


class Callers:
    """Tells who calls. One for each server."""

    def __init__(self, environ: Mapping[str, str], directory: str, *, is_distant: bool) -> None:
        # Over HTTP only what was said explicitly counts: we may have been started from inside any session.
        self._environ = {name: environ[name] for name in ("OUTLIVE_SESSION",) if name in environ}
        self._environ = self._environ if is_distant else dict(environ)
        self._directory = directory
        self._is_distant = is_distant
        self._process = os.getppid()
        self._roots: list[str] | None = None
        self._asking = Lock()

    async def of(self, ctx: ServerRequestContext[Any, Any], given: Mapping[str, Any] | None = None) -> Caller:
        """Who sent this request, which may be a call of a tool that is given something."""
        meta: Mapping[str, Any] = ctx.meta or {}
        turn, sandbox = _mapping(meta.get(CODEX_TURN)), _mapping(meta.get(CODEX_SANDBOX))
        client = ctx.session.client_params
        name = None if client is None else client.client_info.name
        told = (given or {}) if name in _TOLD_BY_PLUGIN else {}
        session = (
            _text(told.get(_GIVEN_SESSION))
            or self._environ.get("OUTLIVE_SESSION")
            or _text(turn.get("session_id"))
            or session_of(self._environ)
        )
        directory = (
            _directory(_text(told.get(_GIVEN_PLACE)))
            or _directory(_text(sandbox.get("sandboxCwd")))
            or _directory(self._environ.get("CLAUDE_PROJECT_DIR"))
            or await self._root(ctx.session)
            or self._directory
        )
        return Caller(
            session=session,
            directory=directory,
            project=await cross(project_of, directory),
            client=name,
            sandbox=_text(turn.get("sandbox")),
            process=None if self._is_distant else self._process,
            is_distant=self._is_distant,
        )

    async def _root(self, session: ServerSession) -> str | None:
        """The client's root that we were started in, else its first; asked for once, where that can be asked."""
        declared = session.client_capabilities
        if self._is_distant or declared is None or declared.roots is None or not session.can_send_request:
            return None
        async with self._asking:
            if self._roots is None:
                self._roots = await _ask_for_roots(session)
        around = [root for root in self._roots if f"{self._directory}/".startswith(f"{root.rstrip('/')}/")]
        return next(iter(around or self._roots), None)

    async def roots_changed(self, *_: object) -> None:
        """The client has other roots now: they are asked for anew."""
        self._roots = None


def without_session(caller: Caller, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a tool was given by the model, and not by our plugin."""
    ours = (_GIVEN_SESSION, _GIVEN_PLACE) if caller.client in _TOLD_BY_PLUGIN else ()
    return {name: each for name, each in (given or {}).items() if name not in ours}


async def _ask_for_roots(session: ServerSession) -> list[str]:
    try:
        answer = await session.send_request(
            types.ListRootsRequest(), types.ListRootsResult, request_read_timeout_seconds=_PATIENCE_WITH_ROOTS_S
        )
    except (MCPError, TimeoutError):
        return []
    return [found for root in answer.roots if (found := _directory(str(root.uri)))]


def _directory(text: str | None) -> str | None:
    """A directory that exists, given as a path or as a file URI."""
    if text is None:
        return None
    path = unquote(urlsplit(text).path) if text.startswith("file:") else text
    return os.path.normpath(path) if path.startswith("/") and os.path.isdir(path) else None


def _mapping(found: object) -> Mapping[str, Any]:
    return found if isinstance(found, dict) else {}


def _text(found: object) -> str | None:
    return found if isinstance(found, str) and found else None
