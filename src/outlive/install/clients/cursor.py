"""Cursor: Outlive's hooks and its MCP server in the user's files.

This module follows the documentation of Cursor, and was never tried with Cursor.
"""

from __future__ import annotations

import os

from outlive.install.clients.claude import carry_server, why_no_server, with_server, without_server
from outlive.install.config import jsonc
from outlive.install.config.target_file import Target
from outlive.install.outlive_command import hook_text, is_ours, names_us

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME = "cursor"
# How many messages in a row may continue a turn. This is Cursor's default, but it is written into the configuration, so
# that another default of a later version has no effect.
LOOP_LIMIT = 5
_TIMEOUTS_S = {"sessionStart": 10, "sessionEnd": 5, "preCompact": 5, "subagentStart": 5}


def directory(environ: Mapping[str, str]) -> str:
    """Return the directory of Cursor's configuration."""
    return os.path.join(environ.get("HOME", "/"), ".cursor")


def groups(guard: str) -> dict[str, list[dict[str, object]]]:
    """Return Outlive's hooks in the form of Cursor's configuration, by event.

    Advice is given after a tool call, because the reply to a hook before the call does not reach the model.
    """
    found = {event: [_hook(event, timeout=timeout)] for event, timeout in _TIMEOUTS_S.items()}
    found["preToolUse"] = [_hook("preToolUse", "--guard", "off", timeout=5, matcher="Shell")]
    found["postToolUse"] = [_hook("postToolUse", timeout=5)]
    if guard != "off":
        found["postToolUse"].append(_hook("advise", timeout=5, matcher="Shell"))
    found["stop"] = [_hook("stop", timeout=10, loop_limit=LOOP_LIMIT)]
    return found


def _hook(event: str, *more: str, **fields: object) -> dict[str, object]:
    return {"command": hook_text(NAME, event, *more), **fields}


def targets(environ: Mapping[str, str], guard: str, server: Sequence[str] | None) -> list[Target]:
    """Return the files of Cursor that an installation changes.

    `server` is the command of Outlive's MCP server, or None if the server is not to be added.
    """
    top = directory(environ)
    return [
        Target(
            path=f"{top}/hooks.json",
            add=lambda text: add_hooks(text, guard),
            strip=strip_hooks,
            give_back=without_our_version,
            is_nothing=lambda text: jsonc.value_of(text, jsonc.parse(text)) in ({}, {"version": 1}),
        ),
        Target(
            path=f"{top}/mcp.json",
            add=lambda text: with_server(text, server),
            strip=without_server,
            is_nothing=lambda text: text.strip() == "{}",
            left_out=lambda text: why_no_server(text, f"{top}/mcp.json", server),
            carry=carry_server,
        ),
    ]


def add_hooks(text: str, guard: str) -> str:
    """Add Outlive's hooks behind the existing hooks of each event."""
    if not text.strip() or jsonc.find(jsonc.parse(text), ("version",)) is None:
        text = jsonc.set_member(text, ("version",), 1)
    for event, hooks in groups(guard).items():
        for hook in hooks:
            text = jsonc.append(text, ("hooks", event), hook)
    return text


def strip_hooks(text: str) -> str:
    """Remove Outlive's hooks, and then lists and objects that became empty."""
    if not names_us(text):
        return text
    before = text
    hooks = jsonc.find_to_edit(text, ("hooks",))
    for event in [member.key for member in hooks.members] if hooks is not None else ():
        shorter = jsonc.cut(text, ("hooks", event), _is_our_hook)
        text = jsonc.cut_empty(shorter, ("hooks", event)) if shorter != text else text
    return jsonc.cut_empty(text, ("hooks",)) if text != before else text


def without_our_version(text: str, before: str) -> str:
    """Remove the field `version` that Outlive added, unless other hooks may need it."""
    then, now = (_value(each) for each in (before, text))
    is_needed = now.get("hooks") not in (None, {}, then.get("hooks"))
    if "version" in then or now.get("version") != 1 or is_needed:
        return text
    return jsonc.cut_key(text, ("version",))


def _value(text: str) -> dict[str, object]:
    found = jsonc.value_of(text, jsonc.parse(text)) if text.strip() else {}
    return found if isinstance(found, dict) else {}


def _is_our_hook(value: object) -> bool:
    return isinstance(value, dict) and is_ours(value.get("command", ""), NAME)
