"""Codex: Outlive's hooks, the trust in them, its skill and its MCP server.

The hooks are in a file of their own. Codex runs a hook only if its configuration contains the hook's hash. `codex
app-server` reports this hash.
"""

from __future__ import annotations

import os

from outlive.domain.errors import UserError
from outlive.domain.value import Value
from outlive.install.clients.claude import add_groups, is_our_hook, strip_groups
from outlive.install.clients.skill import skill_target
from outlive.install.config import toml_edit
from outlive.install.config.target_file import Target, edited, read
from outlive.install.outlive_command import hook_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NAME = "codex"
_TIMEOUTS_S = {
    "SessionStart": 10,
    "SessionEnd": 3,
    "UserPromptSubmit": 5,
    "PostToolUse": 5,
    "PreCompact": 5,
    # In a session without a user, this hook sleeps until no task runs. In other sessions, it replies at once.
    "Stop": 86_400,
}
# Codex passes only few environment variables to MCP servers. Without the following ones, Outlive's server would use
# another state directory than the shell, and would know neither its session nor the task that it runs in.
_PASSED_ON = (
    "OUTLIVE_HOME",
    "XDG_STATE_HOME",
    "OUTLIVE_SESSION",
    "OUTLIVE_TASK",
    "OUTLIVE_DEPTH",
    "OUTLIVE_INHERITED_SESSIONS",
    "OUTLIVE_MCP_RUN",
    "OUTLIVE_TRACE",
)
_SERVER, _STATE = ("mcp_servers", "outlive"), ("hooks", "state")


class Trusted(Value):
    """Codex's name for a hook, and the hash by which Codex trusts the hook."""

    key: str
    hash: str


def directory(environ: Mapping[str, str]) -> str:
    """Return the directory of Codex's configuration."""
    return environ.get("CODEX_HOME") or os.path.join(environ.get("HOME", "/"), ".codex")


def groups(guard: str) -> dict[str, list[dict[str, object]]]:
    """Return Outlive's hooks in the form of Codex's `hooks.json`, by event."""
    found: dict[str, list[dict[str, object]]] = {
        event: [{"hooks": [_hook(event, timeout=timeout)]}] for event, timeout in _TIMEOUTS_S.items()
    }
    if guard != "off":
        found["PreToolUse"] = [{"matcher": "Bash|apply_patch", "hooks": [_hook("PreToolUse", timeout=5)]}]
    return found


def _hook(event: str, timeout: int) -> dict[str, object]:
    return {"type": "command", "command": hook_text(NAME, event), "timeout": timeout}


def targets(
    environ: Mapping[str, str],
    guard: str,
    server: Sequence[str] | None,
    trust: Callable[[str, str], list[Trusted]] | None = None,
) -> list[Target]:
    """Return the files of Codex that an installation changes.

    `server` is the command of Outlive's MCP server, or None if the server is not to be added. `trust` is a function
    that returns Codex's names and hashes for the hooks in a `hooks.json`. Without `trust`, the hooks stay untrusted.
    """
    top = directory(environ)
    config, hooks = f"{top}/config.toml", f"{top}/hooks.json"

    def add_trust(text: str) -> str:
        toml_edit.parse(text)
        planned = edited(hooks, lambda there: add_groups(strip_groups(there, NAME), groups(guard)), read(hooks) or "")
        trusted = {each.key: each.hash for each in (trust(planned, hooks) if trust is not None else ())}
        # Codex names a hook after its position in `hooks.json`. If there is an entry with such a name already, it
        # belongs to a hook that had this position before. So remove it.
        text = toml_edit.without_tables(text, lambda names, _: names[:2] == _STATE and names[-1] in trusted)
        for key, value in trusted.items():
            text = toml_edit.with_table(text, toml_edit.header(*_STATE, key), {"trusted_hash": value})
        return text if server is None or _why_no_server(text, config) else _with_server(text, server)

    def strip_trust(text: str) -> str:
        there = read(hooks) or ""
        theirs, moved = (keys_of(hooks, each, are_ours=False) for each in (there, strip_groups(there, NAME)))
        has_server = any(_is_our_server(names, "".join(lines)) for names, lines in toml_edit.tables(text))

        are_here = has_server or bool(keys_of(hooks, there))

        def is_ours_here(names: tuple[str, ...], table: str) -> bool:
            if names[:2] == _STATE and len(names) == 3:
                # If Outlive is in the files, remove each entry that names a position where no hook of another program
                # is. Outlive's hooks are in these positions, or were there before.
                return are_here and names[2].startswith(f"{hooks}:") and names[2] not in theirs
            return _is_our_server(names, table) or (has_server and names[:2] == _SERVER and len(names) > 2)

        # Removing Outlive's hooks changes the positions of the user's hooks behind them. Rename the entries of these
        # hooks, so that Codex still trusts them.
        places: dict[tuple[str, ...], tuple[str, ...]] = {
            (*_STATE, old): (*_STATE, new) for old, new in zip(theirs, moved, strict=True) if old != new
        }
        return toml_edit.renamed(toml_edit.without_tables(text, is_ours_here), places)

    return [
        Target(
            path=config,
            add=add_trust,
            strip=strip_trust,
            left_out=lambda text: _why_no_server(text, config) if server is not None else "",
            carry=_carry_server,
        ),
        Target(
            path=hooks,
            add=lambda text: add_groups(text, groups(guard)),
            strip=lambda text: strip_groups(text, NAME),
            is_nothing=lambda text: text.strip() == "{}",
        ),
        skill_target(top),
    ]


def _with_server(text: str, words: Sequence[str]) -> str:
    values = {"command": words[0], "args": list(words[1:]), "env_vars": list(_PASSED_ON)}
    return toml_edit.with_table(text, toml_edit.header(*_SERVER), values)


def _carry_server(there: str, text: str) -> str:
    """Copy the settings that a user has added to Outlive's server in the text `there`.

    They are copied to the server's table in `text`.
    """
    try:
        old, new = _server_in(there), _server_in(text)
    except UserError:
        return text  # the current file is not TOML, so no settings can be copied from it
    if not new or not old.keys() - new.keys():
        return text
    shorter = toml_edit.without_tables(text, _is_our_server)
    return toml_edit.with_table(
        shorter, toml_edit.header(*_SERVER), {**new, **{key: old[key] for key in old if key not in new}}
    )


def _why_no_server(text: str, path: str) -> str:
    """Return why Outlive's server cannot be added, or an empty string if it can."""
    if _server_in(text):
        return f"{path} has another MCP server named outlive, which is kept; Outlive's server is not added"
    try:
        _with_server(text, ["outlive"])
    except UserError:
        return f"{path} lists its MCP servers in a form that cannot be extended; Outlive's server is not added"
    return ""


def _is_our_server(names: tuple[str, ...], table: str) -> bool:
    """Return whether a TOML table is an entry that some version of Outlive wrote.

    The entry is that of Outlive's MCP server.
    """
    if names != _SERVER:
        return False
    try:
        return _server_in(table).get("args") == ["-I", "-m", "outlive", "mcp"]
    except UserError:
        return False


def _server_in(text: str) -> dict[str, object]:
    """Return the settings of the MCP server called `outlive`, or an empty dictionary."""
    servers = toml_edit.parse(text).get("mcp_servers")
    found = servers.get("outlive") if isinstance(servers, dict) else None
    return found if isinstance(found, dict) else {}


def keys_of(path: str, text: str, *, are_ours: bool = True) -> list[str]:
    """Return Codex's names of Outlive's hooks, or of all other hooks.

    A name consists of the file's path, the event and the hook's position.
    """
    from outlive.install.config import jsonc  # noqa: PLC0415 - imported here, because only installing and the doctor need it

    if not text.strip():
        return []
    hooks = jsonc.find(jsonc.parse(text), ("hooks",))
    found = []
    for event in hooks.members if hooks is not None else ():
        for group, each in enumerate(event.node.members):
            value = jsonc.value_of(text, each.node)
            entries = value.get("hooks") if isinstance(value, dict) else None
            for index, entry in enumerate(entries if isinstance(entries, list) else ()):
                if isinstance(entry, dict) and is_our_hook(entry, NAME) == are_ours:
                    found.append(f"{path}:{_snake(event.key)}:{group}:{index}")
    return found


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
