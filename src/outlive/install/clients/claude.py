"""Claude Code: Outlive's hooks, its skill and its MCP server in the user's files."""

from __future__ import annotations

import os

from outlive.install.clients.skill import skill_target
from outlive.install.config import jsonc
from outlive.install.config.target_file import Target
from outlive.install.outlive_command import hook_words, is_ours, names_us

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME = "claude"
_DAY_S = 86400
# The tools before which Claude Code calls the hook that gives advice and warnings.
_GUARDED = "Bash|Edit|MultiEdit|Write|NotebookEdit|Read|Grep|Glob"


def directory(environ: Mapping[str, str]) -> str:
    """Return the directory of Claude Code's configuration."""
    return environ.get("CLAUDE_CONFIG_DIR") or os.path.join(environ.get("HOME", "/"), ".claude")


def groups(guard: str) -> dict[str, list[dict[str, object]]]:
    """Return Outlive's hooks in the form of Claude Code's settings, by event."""
    waking = {**_hook("Wake", timeout=_DAY_S), "asyncRewake": True}
    found: dict[str, list[dict[str, object]]] = {
        # A session that was resumed or cleared may be idle before its first turn. So the process that wakes an idle
        # session is needed from the beginning.
        "SessionStart": [{"hooks": [waking, _hook("SessionStart", timeout=10)]}],
        "SessionEnd": [{"hooks": [_hook("SessionEnd", timeout=3)]}],
        "UserPromptSubmit": [{"hooks": [_hook("UserPromptSubmit", timeout=5)]}],
        "PostToolBatch": [{"hooks": [_hook("PostToolBatch", timeout=5)]}],
        "PreCompact": [{"hooks": [_hook("PreCompact", timeout=5)]}],
        # In a session without a user, this hook sleeps until no task runs. In other sessions, it replies at once.
        "Stop": [{"hooks": [waking, _hook("Stop", timeout=_DAY_S)]}],
    }
    if guard != "off":
        more = () if guard == "advise" else ("--guard", guard)
        found["PreToolUse"] = [{"matcher": _GUARDED, "hooks": [_hook("PreToolUse", *more, timeout=5)]}]
    return found


def _hook(event: str, *more: str, timeout: int) -> dict[str, object]:
    command, *args = hook_words(NAME, event, *more)
    return {"type": "command", "command": command, "args": args, "timeout": timeout}


def targets(environ: Mapping[str, str], guard: str, server: Sequence[str] | None) -> list[Target]:
    """Return the files of Claude Code that an installation changes.

    `server` is the command of Outlive's MCP server, or None if the server is not to be added.
    """
    top = directory(environ)
    # Claude Code reads the user's MCP servers from its state file, and not from the settings.
    memory = os.path.join(environ.get("CLAUDE_CONFIG_DIR") or environ.get("HOME", "/"), ".claude.json")
    return [
        Target(path=f"{top}/settings.json", add=lambda text: add_groups(text, groups(guard)), strip=strip_groups),
        skill_target(top),
        Target(
            path=memory,
            add=lambda text: with_server(text, server, alwaysLoad=True),
            strip=without_server,
            left_out=lambda text: why_no_server(text, memory, server),
            carry=carry_server,
        ),
    ]


def with_server(
    text: str, words: Sequence[str] | None, under: tuple[str, ...] = ("mcpServers",), **more: object
) -> str:
    """Return the text of a configuration file, with Outlive's MCP server added.

    The text stays the same if `words` (the server's command) is None, or if another server is called `outlive`.
    """
    path = (*under, "outlive")
    if words is None or (text.strip() and jsonc.find(jsonc.parse(text), path) is not None):
        return text
    return jsonc.set_member(text, path, {"command": words[0], "args": list(words[1:]), **more})


def why_no_server(text: str, path: str, words: Sequence[str] | None, under: tuple[str, ...] = ("mcpServers",)) -> str:
    """Return a message if another MCP server is called `outlive`, or an empty string."""
    if words is None or not text.strip() or jsonc.find(jsonc.parse(text), (*under, "outlive")) is None:
        return ""
    return f"{path} has another MCP server named outlive, which is kept; Outlive's server is not added"


def carry_server(there: str, text: str) -> str:
    """Copy what a user has added to the entry of Outlive's MCP server.

    `there` is the text with the additions, and `text` the text to which they are copied.
    """
    return jsonc.carry(there, text, ("mcpServers", "outlive"))


def without_server(text: str, under: tuple[str, ...] = ("mcpServers",)) -> str:
    """Return the text of a configuration file without Outlive's MCP server."""
    node = jsonc.find_to_edit(text, (*under, "outlive")) if names_us(text) else None
    is_there = node is not None and _is_our_server(jsonc.value_of(text, node))
    shorter = jsonc.cut_key(text, (*under, "outlive")) if is_there else text
    return jsonc.cut_empty(shorter, under) if shorter != text else text


def _is_our_server(value: object) -> bool:
    return _words(value)[1:] == ["-I", "-m", "outlive", "mcp"]


def add_groups(text: str, wanted: Mapping[str, Sequence[object]]) -> str:
    """Add Outlive's hooks behind the existing hooks of each event."""
    for event, ours in wanted.items():
        for group in ours:
            text = jsonc.append(text, ("hooks", event), group)
    return text


def strip_groups(text: str, client: str = NAME) -> str:
    """Remove Outlive's hooks, and then lists and objects that became empty."""
    if not names_us(text):
        return text
    before = text
    hooks = jsonc.find_to_edit(text, ("hooks",))
    for event in [member.key for member in hooks.members] if hooks is not None else ():
        shorter = jsonc.cut(text, ("hooks", event), lambda group: _is_our_group(group, client))
        # A group may also contain hooks of other programs, so remove only Outlive's.
        groups_left = jsonc.find(jsonc.parse(shorter), ("hooks", event))
        for index in range(len(groups_left.members) if groups_left is not None else 0):
            shorter = jsonc.cut(shorter, ("hooks", event, index, "hooks"), lambda hook: is_our_hook(hook, client))
        text = jsonc.cut_empty(shorter, ("hooks", event)) if shorter != text else text
    return jsonc.cut_empty(text, ("hooks",)) if text != before else text


def _is_our_group(group: object, client: str) -> bool:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    if not isinstance(hooks, list) or not hooks:
        return False
    return all(is_our_hook(each, client) for each in hooks)


def is_our_hook(hook: object, client: str) -> bool:
    """Return whether any version of Outlive wrote an entry in a list of hooks."""
    return is_ours(_words(hook), client)


def _words(entry: object) -> list[object]:
    """Return the command of a hook or an MCP server, as a list of words.

    The list is empty if the entry does not have the form that Outlive writes.
    """
    args = entry.get("args", []) if isinstance(entry, dict) else None
    return [entry.get("command"), *args] if isinstance(entry, dict) and isinstance(args, list) else []
