"""Claude Code: hooks in the user's settings, a skill, and the MCP server where there is one."""

from __future__ import annotations

import os

from outlive.install import jsonc
from outlive.install.program import hook_words, is_ours, names_us
from outlive.install.skill import skill_target
from outlive.install.target import Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME = "claude"
_DAY_S = 86400
# The tools that the guard is asked about.
_GUARDED = "Bash|Edit|MultiEdit|Write|NotebookEdit|Read|Grep|Glob"


def directory(environ: Mapping[str, str]) -> str:
    """Where its configuration lies."""
    return environ.get("CLAUDE_CONFIG_DIR") or os.path.join(environ.get("HOME", "/"), ".claude")


def groups(guard: str) -> dict[str, list[dict[str, object]]]:
    """The groups of hooks of each event."""
    waking = {**_hook("Wake", timeout=_DAY_S), "asyncRewake": True}
    found: dict[str, list[dict[str, object]]] = {
        # Resumed or cleared, a session may be idle before its first turn.
        "SessionStart": [{"hooks": [waking, _hook("SessionStart", timeout=10)]}],
        "SessionEnd": [{"hooks": [_hook("SessionEnd", timeout=3)]}],
        "UserPromptSubmit": [{"hooks": [_hook("UserPromptSubmit", timeout=5)]}],
        "PostToolBatch": [{"hooks": [_hook("PostToolBatch", timeout=5)]}],
        "PreCompact": [{"hooks": [_hook("PreCompact", timeout=5)]}],
        # The client starts both at once: the gate lets an idle session be if the watcher is there.
        "Stop": [{"hooks": [waking, _hook("Stop", timeout=10)]}],
    }
    if guard != "off":
        more = () if guard == "advise" else ("--guard", guard)
        found["PreToolUse"] = [{"matcher": _GUARDED, "hooks": [_hook("PreToolUse", *more, timeout=5)]}]
    return found


def _hook(event: str, *more: str, timeout: int) -> dict[str, object]:
    command, *args = hook_words(NAME, event, *more)
    return {"type": "command", "command": command, "args": args, "timeout": timeout}


def targets(environ: Mapping[str, str], guard: str, server: Sequence[str] | None) -> list[Target]:
    """Every file that is changed; `server` are the words that start our MCP server, if there is one."""
    top = directory(environ)
    # Servers of the user are kept beside what Claude Code remembers, and not in the settings.
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
    """The configuration with our MCP server, if there is one and nobody has given its name to another."""
    path = (*under, "outlive")
    if words is None or (text.strip() and jsonc.find(jsonc.parse(text), path) is not None):
        return text
    return jsonc.set_member(text, path, {"command": words[0], "args": list(words[1:]), **more})


def why_no_server(text: str, path: str, words: Sequence[str] | None, under: tuple[str, ...] = ("mcpServers",)) -> str:
    """What to say of a server with our name that somebody else has configured."""
    if words is None or not text.strip() or jsonc.find(jsonc.parse(text), (*under, "outlive")) is None:
        return ""
    return f"{path} has another MCP server named outlive, which is left alone; ours is not added"


def carry_server(there: str, text: str) -> str:
    """The configuration with what somebody has added to our MCP server."""
    return jsonc.carry(there, text, ("mcpServers", "outlive"))


def without_server(text: str, under: tuple[str, ...] = ("mcpServers",)) -> str:
    """The configuration without our MCP server."""
    node = jsonc.find_to_edit(text, (*under, "outlive")) if names_us(text) else None
    is_there = node is not None and _is_our_server(jsonc.value_of(text, node))
    shorter = jsonc.cut_key(text, (*under, "outlive")) if is_there else text
    return jsonc.cut_empty(shorter, under) if shorter != text else text


def _is_our_server(value: object) -> bool:
    return _words(value)[1:] == ["-I", "-m", "outlive", "mcp"]


def add_groups(text: str, wanted: Mapping[str, Sequence[object]]) -> str:
    """The settings with our groups after whatever is there."""
    for event, ours in wanted.items():
        for group in ours:
            text = jsonc.append(text, ("hooks", event), group)
    return text


def strip_groups(text: str, client: str = NAME) -> str:
    """The settings without our hooks, wherever they stand, and without what is empty then."""
    if not names_us(text):
        return text
    before = text
    hooks = jsonc.find_to_edit(text, ("hooks",))
    for event in [member.key for member in hooks.members] if hooks is not None else ():
        shorter = jsonc.cut(text, ("hooks", event), lambda group: _is_our_group(group, client))
        # Somebody may have put another beside ours.
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
    """Whether an entry is one that we wrote, by this Outlive or an earlier one."""
    return is_ours(_words(hook), client)


def _words(entry: object) -> list[object]:
    """What a hook or a server of somebody's calls; empty if it is written in another way than ours."""
    args = entry.get("args", []) if isinstance(entry, dict) else None
    return [entry.get("command"), *args] if isinstance(entry, dict) and isinstance(args, list) else []
