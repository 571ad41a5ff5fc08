"""Codex: hooks in a file of their own, trusted in its configuration, a skill, and the MCP server where there is one.

Codex runs a hook only if its configuration has the hash of that very hook. It tells the hash itself
(`hooks/list` of its app-server), so it is asked, with the new file in a directory of its own.
"""

from __future__ import annotations

import os

from outlive.domain.value import Value
from outlive.install import toml_text
from outlive.install.claude import add_groups, strip_groups
from outlive.install.program import hook_text, is_ours
from outlive.install.skill import skill_target
from outlive.install.target import Target, read

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
    "Stop": 10,
}
# Codex tells its servers little of its environment; without these one would keep its tasks in another place than the
# shell does, and forget what it is inside of.
_PASSED_ON = (
    "OUTLIVE_HOME",
    "XDG_STATE_HOME",
    "OUTLIVE_SESSION",
    "OUTLIVE_TASK",
    "OUTLIVE_DEPTH",
    "OUTLIVE_MCP_RUN",
    "OUTLIVE_TRACE",
)


class Trusted(Value):
    """What Codex calls a hook, and the hash by which it knows that nobody has changed it."""

    key: str
    hash: str


def directory(environ: Mapping[str, str]) -> str:
    """Where its configuration lies."""
    return environ.get("CODEX_HOME") or os.path.join(environ.get("HOME", "/"), ".codex")


def groups(guard: str) -> dict[str, dict[str, object]]:
    """One group of hooks for each event."""
    found: dict[str, dict[str, object]] = {
        event: {"hooks": [_hook(event, timeout=timeout)]} for event, timeout in _TIMEOUTS_S.items()
    }
    if guard != "off":
        found["PreToolUse"] = {"matcher": "Bash|apply_patch", "hooks": [_hook("PreToolUse", timeout=5)]}
    return found


def _hook(event: str, timeout: int) -> dict[str, object]:
    return {"type": "command", "command": hook_text(NAME, event), "timeout": timeout}


def targets(
    environ: Mapping[str, str],
    guard: str,
    server: Sequence[str] | None,
    trust: Callable[[str, str], list[Trusted]] | None = None,
) -> list[Target]:
    """Every file that is changed; `trust` tells what Codex calls the hooks of a text at a path."""
    top = directory(environ)
    hooks = f"{top}/hooks.json"

    def add_trust(text: str) -> str:
        planned = add_groups(strip_groups(read(hooks) or "", NAME), groups(guard))
        for each in trust(planned, hooks) if trust is not None else ():
            text = toml_text.with_table(text, toml_text.header("hooks", "state", each.key), {"trusted_hash": each.hash})
        head = toml_text.header("mcp_servers", "outlive")
        if server is not None and head not in text.splitlines():
            words = {"command": server[0], "args": list(server[1:]), "env_vars": list(_PASSED_ON)}
            text = toml_text.with_table(text, head, words)
        return text

    def strip_trust(text: str) -> str:
        # Which of the keys are ours is known by the file that they are about, as long as that is there.
        ours = {toml_text.header("mcp_servers", "outlive")}
        ours |= {toml_text.header("hooks", "state", key) for key in keys_of(hooks)}
        return toml_text.without_tables(text, lambda head: head in ours)

    return [
        Target(path=f"{top}/config.toml", add=add_trust, strip=strip_trust),
        Target(
            path=hooks,
            add=lambda text: add_groups(text, groups(guard)),
            strip=_strip_hooks,
        ),
        skill_target(top),
    ]


def _strip_hooks(text: str) -> str:
    """The file without our hooks; no file if it holds nothing any more."""
    shorter = strip_groups(text, NAME)
    return "" if shorter != text and shorter.strip() == "{}" else shorter


def keys_of(path: str) -> list[str]:
    """What Codex calls our hooks in a file: the path, the event, and where they stand."""
    from outlive.install import jsonc  # noqa: PLC0415 - seldom asked

    text = read(path)
    if not text or not text.strip():
        return []
    hooks = jsonc.find(jsonc.parse(text), ("hooks",))
    found = []
    for event in hooks.members if hooks is not None else ():
        for group, each in enumerate(event.node.members):
            value = jsonc.value_of(text, each.node)
            entries = value.get("hooks") if isinstance(value, dict) else None
            for index, entry in enumerate(entries if isinstance(entries, list) else ()):
                if isinstance(entry, dict) and is_ours(entry.get("command", ""), NAME):
                    found.append(f"{path}:{_snake(event.key)}:{group}:{index}")
    return found


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
