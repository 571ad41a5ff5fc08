"""The commands of Outlive's hooks, read from a client's configuration."""

from __future__ import annotations

from outlive.domain.errors import UserError
from outlive.domain.text.sanitize import from_json
from outlive.install.clients import openclaw, opencode
from outlive.install.clients.codex import keys_of
from outlive.install.clients.registry import CLIENTS
from outlive.install.config import jsonc
from outlive.install.config.target_file import read
from outlive.install.config.toml_edit import header
from outlive.install.outlive_command import is_ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_FILES = {"claude": "settings.json", "codex": "hooks.json", "gemini": "settings.json", "cursor": "hooks.json"}
_TIMEOUT_UNITS_S = {"gemini": 0.001}
_OPENCODE_EVENTS = ("chat.message", "tool.execute.after", "session.idle", "Wake")
# The fields of a hook's reply that contain text for the model. Claude Code and similar clients, Outlive's plugin for
# OpenClaw, and Cursor use different fields.
_SAID = ("reason", "context", "block", "additional_context", "followup_message")
_MANAGED = "/etc/claude-code/managed-settings.json"


def installed_hooks(client: str, environ: Mapping[str, str]) -> dict[str, list[list[str]]]:
    """Return the commands of Outlive's hooks by event, each as a list of words.

    A command that is a single string is returned as a call of `/bin/sh`, because the client also uses a shell for it.
    """
    if client == opencode.NAME:
        words = opencode.plugin_words(read(opencode.plugin_path(environ)) or "")
        return {event: [[*words, event]] for event in _OPENCODE_EVENTS} if words else {}
    if client == openclaw.NAME:
        return _called_by_plugin(environ)
    found: dict[str, list[list[str]]] = {}
    for event, _, words in _our_entries(client, environ):
        found.setdefault(event, []).append(words)
    return found


def shortest_timeout_s(client: str, event: str, environ: Mapping[str, str]) -> float | None:
    """Return the shortest timeout of Outlive's hooks for an event.

    Return None if no timeout is set.
    """
    if client not in _FILES:
        return None
    unit = _TIMEOUT_UNITS_S.get(client, 1.0)
    entries = [hook for name, hook, words in _our_entries(client, environ) if name == event and "Wake" not in words]
    found = [hook["timeout"] * unit for hook in entries if isinstance(hook.get("timeout"), int)]
    return min(found, default=None)


def _our_entries(client: str, environ: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any], list[str]]]:
    """Yield the event, the configuration entry and the command of each Outlive hook."""
    hooks = _value(f"{CLIENTS[client].directory(environ)}/{_FILES[client]}", "hooks")
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            for hook in group.get("hooks", [group]) if isinstance(group, dict) else ():
                words = _words(hook)
                if words and is_ours(" ".join(words), client):
                    yield event, hook, words


def _called_by_plugin(environ: Mapping[str, str]) -> dict[str, list[list[str]]]:
    """Return the commands that Outlive's OpenClaw plugin calls, by event."""
    entry = _value(openclaw.configuration(environ), "plugins", "entries", "outlive")
    if not isinstance(entry, dict) or not openclaw.is_our_entry(entry):
        return {}
    command = [str(word) for word in entry["config"]["command"]]
    return {event: [[*command, "hook", "openclaw", event]] for event in openclaw.EVENTS}


def why_blocked(client: str, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Return why a client does not call Outlive's hooks, and what the user can do.

    Returns None if no reason is known.
    """
    top = CLIENTS[client].directory(environ)
    if client == "claude":
        for path in (_MANAGED, f"{top}/settings.json"):
            for name in ("allowManagedHooksOnly", "disableAllHooks"):
                if _value(path, name) is True:
                    return f"{path} sets {name}", "only the owner of that file can change it"
    if client == "codex":
        config = read(f"{top}/config.toml") or ""
        keys = keys_of(f"{top}/hooks.json", read(f"{top}/hooks.json") or "")
        missing = [key for key in keys if header("hooks", "state", key) not in config.splitlines()]
        if missing:
            return (
                f"{len(missing)} of {len(keys)} hooks are not trusted",
                "run `outlive install --client codex`, or trust them with /hooks in Codex",
            )
    if client == opencode.NAME and environ.get("OPENCODE_PURE", "").lower() in ("1", "true", "yes", "on"):
        return "OPENCODE_PURE disables all plugins", "unset this variable"
    if client == openclaw.NAME:
        return _why_openclaw_loads_no_plugin(environ)
    return None


def _why_openclaw_loads_no_plugin(environ: Mapping[str, str]) -> tuple[str, str] | None:
    path = openclaw.configuration(environ)
    plugins = _value(path, "plugins")
    found: dict[str, object] = plugins if isinstance(plugins, dict) else {}
    allow, deny = found.get("allow"), found.get("deny")
    hooks = _value(path, "plugins", "entries", "outlive", "hooks")
    allowed = hooks if isinstance(hooks, dict) else {}
    folder = f"{openclaw.directory(environ)}/extensions/outlive"
    missing = [name for name in openclaw.FILES if read(f"{folder}/{name}") is None]
    if found.get("enabled") is False or _value(path, "plugins", "entries", "outlive", "enabled") is not True:
        return f"{path} disables the plugin", "enable it there, or run `outlive install --client openclaw`"
    if (isinstance(allow, list) and "outlive" not in allow) or (isinstance(deny, list) and "outlive" in deny):
        return f"{path} does not let the plugin load", "only its owner can change plugins.allow and plugins.deny"
    if allowed.get("allowConversationAccess") is not True or allowed.get("allowPromptInjection") is False:
        return f"{path} denies the plugin the events of a turn", "see plugins.entries.outlive.hooks there"
    if missing:
        return f"{folder} lacks {', '.join(missing)}", "run `outlive install --client openclaw` to write it again"
    return None


def _value(path: str, *names: str) -> object:
    """Return the JSON value under a path of keys in a configuration file.

    Returns None if the file or the value does not exist.
    """
    text = read(path)
    if not text or not text.strip():
        return None
    try:
        node = jsonc.find(jsonc.parse(text), names)
    except UserError as error:
        raise UserError(f"{path}: {error.message}", error.hint) from error
    return None if node is None else jsonc.value_of(text, node)


def _words(hook: object) -> list[str]:
    if not isinstance(hook, dict) or not isinstance(hook.get("command"), str):
        return []
    args = hook.get("args")
    return [hook["command"], *map(str, args)] if isinstance(args, list) else ["/bin/sh", "-c", hook["command"]]


def context_of(answer: str) -> str:
    """Return the text for the model in a hook's reply, whatever the client is."""
    try:
        said = from_json(answer) if answer.strip() else {}
    except ValueError:
        return ""
    if not isinstance(said, dict):
        return ""
    specific = said.get("hookSpecificOutput")
    more = specific.get("additionalContext", "") if isinstance(specific, dict) else ""
    return " ".join([more, *(str(said[name]) for name in _SAID if said.get(name))]).strip()
