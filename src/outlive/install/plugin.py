"""Claude Code again, as a plugin: a folder that can be given to it, shared, or thrown away."""

from __future__ import annotations

from importlib.metadata import version

from outlive.install.claude import groups
from outlive.install.jsonc import set_member
from outlive.install.program import mcp_words
from outlive.install.skill import skill_target
from outlive.install.target import Target, begins_like, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def targets(folder: str, guard: str) -> list[Target]:
    """Every file of the folder."""
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
