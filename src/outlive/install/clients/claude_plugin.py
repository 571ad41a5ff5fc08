"""Outlive as a plugin of Claude Code: a folder that people can load or share."""

from __future__ import annotations

from importlib.metadata import version

from outlive.install.clients.claude import groups
from outlive.install.clients.skill import skill_target
from outlive.install.config.jsonc import set_member
from outlive.install.config.target_file import Target, begins_like, whole
from outlive.install.outlive_command import mcp_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def targets(folder: str, guard: str) -> list[Target]:
    """Return the files of the plugin's folder, with the texts to write."""
    about = {
        "name": "outlive",
        "version": version("outlive"),
        "description": "Background tasks that outlive the session that started them",
        "author": {"name": "Outlive"},
    }
    hooks = {"description": about["description"], "hooks": groups(guard)}
    found = [
        _whole(f"{folder}/.claude-plugin/plugin.json", about),
        _whole(f"{folder}/hooks/hooks.json", hooks),
        skill_target(folder),
    ]
    if (words := mcp_words()) is not None:
        servers = {"outlive": {"command": words[0], "args": words[1:], "alwaysLoad": True}}
        found.append(_whole(f"{folder}/.mcp.json", {"mcpServers": servers}, known_by=3))
    return found


def _whole(path: str, value: Mapping[str, object], known_by: int = 2) -> Target:
    text = ""
    for key, each in value.items():
        text = set_member(text, (key,), each)
    return whole(path, text, begins_like(text, known_by))
