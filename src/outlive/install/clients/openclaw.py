"""OpenClaw: Outlive's plugin, its skill and its MCP server in the user's files.

The configuration is JSON5. The plugin wakes sessions through OpenClaw's gateway, without a webhook or a token.
"""

from __future__ import annotations

import os

from outlive.install.clients.claude import why_no_server, with_server, without_server
from outlive.install.clients.skill import skill_target
from outlive.install.config import jsonc
from outlive.install.config.target_file import Target, begins_like, whole
from outlive.install.outlive_command import names_us, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME = "openclaw"
# The events at which the plugin calls a hook.
EVENTS = (
    "session_start",
    "session_end",
    "before_prompt_build",
    "before_tool_call",
    "after_tool_call",
    "before_agent_finalize",
    "agent_end",
    "before_compaction",
    "subagent_spawned",
    "subagent_ended",
    "wake",
)
FILES = ("openclaw.plugin.json", "package.json", "index.js")
_SHIPPED = os.path.join(os.path.dirname(__file__), "openclaw_plugin")
_ENTRIES, _ALLOWED, _SERVERS = ("plugins", "entries"), ("plugins", "allow"), ("mcp", "servers")


def directory(environ: Mapping[str, str]) -> str:
    """Return the directory of OpenClaw's configuration and plugins."""
    return environ.get("OPENCLAW_STATE_DIR") or os.path.join(environ.get("HOME", "/"), ".openclaw")


def configuration(environ: Mapping[str, str]) -> str:
    """Return the path of OpenClaw's configuration file."""
    return environ.get("OPENCLAW_CONFIG_PATH") or f"{directory(environ)}/openclaw.json"


def targets(environ: Mapping[str, str], guard: str, server: Sequence[str] | None) -> list[Target]:
    """Return the files of OpenClaw that an installation changes.

    `server` is the command of Outlive's MCP server, or None if the server is not to be added.
    """
    top = directory(environ)
    # OpenClaw does not pass its environment to MCP servers. So the server's entry contains the environment variables
    # that determine the state directory.
    known = {name: environ[name] for name in ("OUTLIVE_HOME", "XDG_STATE_HOME") if environ.get(name)}
    more = {"env": known} if known else {}
    return [
        Target(
            path=configuration(environ),
            add=lambda text: with_server(add_plugin(text, guard), server, under=_SERVERS, **more),
            strip=strip_plugin,
            is_nothing=lambda text: text.strip() == "{}",
            left_out=lambda text: why_no_server(text, configuration(environ), server, under=_SERVERS),
        ),
        *(_shipped(f"{top}/extensions/outlive", name) for name in FILES),
        skill_target(top),
    ]


def _shipped(folder: str, name: str) -> Target:
    # Outlive recognizes its own files by their first lines. So these lines must be the same in all versions of Outlive.
    with open(f"{_SHIPPED}/{name}", encoding="utf-8") as file:
        text = file.read()
    return whole(f"{folder}/{name}", text, begins_like(text, 1 if name.endswith(".js") else 2))


def add_plugin(text: str, guard: str) -> str:
    """Enable Outlive's plugin, and allow it if there is a list of allowed plugins."""
    entry = {
        "enabled": True,
        # Without this permission, OpenClaw does not tell the plugin about the events of a turn.
        "hooks": {"allowConversationAccess": True},
        "config": {"command": program(), "guard": "off" if guard == "off" else "advise"},
    }
    if not text.strip() or jsonc.find(jsonc.parse(text), (*_ENTRIES, "outlive")) is None:
        text = jsonc.set_member(text, (*_ENTRIES, "outlive"), entry)
    allowed = jsonc.find(jsonc.parse(text), _ALLOWED)
    if allowed is not None and "outlive" not in _list(text, allowed):
        text = jsonc.append(text, _ALLOWED, "outlive")
    return text


def _list(text: str, node: jsonc.Node) -> list[object]:
    found = jsonc.value_of(text, node)
    return found if isinstance(found, list) else []


def strip_plugin(text: str) -> str:
    """Remove Outlive's plugin and MCP server, and then objects that became empty."""
    if not names_us(text):
        return text
    before = text
    text = jsonc.cut(text, _ENTRIES, is_our_entry)
    if text != before:
        text = jsonc.cut(text, _ALLOWED, lambda value: value == "outlive")
        text = jsonc.cut_empty(jsonc.cut_empty(text, _ENTRIES), ("plugins",))
    shorter = without_server(text, under=_SERVERS)
    return jsonc.cut_empty(shorter, ("mcp",)) if shorter != text else text


def is_our_entry(value: object) -> bool:
    """Return whether Outlive wrote the configuration entry of a plugin."""
    config = value.get("config") if isinstance(value, dict) else None
    command = config.get("command") if isinstance(config, dict) else None
    return isinstance(command, list) and command[1:2] == ["-I"] and "outlive" in " ".join(map(str, command))
