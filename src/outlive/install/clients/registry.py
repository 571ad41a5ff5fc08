"""The list of the agent clients into which Outlive can be installed."""

from __future__ import annotations

import os
import shutil

from outlive.domain.errors import UserError
from outlive.install.clients import claude, codex, cursor, gemini, openclaw, opencode
from outlive.install.outlive_command import mcp_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from outlive.install.config.target_file import Target

CLIENTS = {
    "claude": claude,
    "codex": codex,
    "gemini": gemini,
    "opencode": opencode,
    "openclaw": openclaw,
    "cursor": cursor,
}


def chosen(name: str, environ: Mapping[str, str]) -> list[str]:
    """Return the client with this name, or for `auto` all clients that this user has."""
    if name != "auto":
        return [name]
    found = present(environ)
    if not found:
        raise UserError("no client was found", f"name a client: --client {'|'.join(CLIENTS)}")
    return found


def present(environ: Mapping[str, str]) -> list[str]:
    """Return the clients that have a configuration directory or a program on the PATH."""
    return [
        each
        for each, module in CLIENTS.items()
        if os.path.isdir(module.directory(environ)) or shutil.which(each, path=environ.get("PATH"))
    ]


def targets_of(name: str, environ: Mapping[str, str], guard: str, *, is_trusted: bool) -> list[Target]:
    """Return the files of a client that installing and uninstalling change."""
    if name == "codex":
        from outlive.install.clients.codex_trust import ask_codex  # noqa: PLC0415 - imported here, because only Codex needs it

        return codex.targets(environ, guard, mcp_words(), ask_codex if is_trusted else None)
    found: list[Target] = CLIENTS[name].targets(environ, guard, mcp_words())
    return found
