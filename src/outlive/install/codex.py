"""Codex: hooks in a file of their own, trusted in its configuration, a skill, and the MCP server where there is one.

Codex runs a hook only if its configuration has the hash of that very hook. It tells the hash itself
(`hooks/list` of its app-server), so it is asked, with the new file in a directory of its own.
"""

from __future__ import annotations

import os

from outlive.domain.errors import UserError
from outlive.domain.value import Value
from outlive.install import toml_text
from outlive.install.claude import add_groups, is_our_hook, strip_groups
from outlive.install.program import hook_text
from outlive.install.skill import skill_target
from outlive.install.target import Target, edited, read

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
_SERVER, _STATE = ("mcp_servers", "outlive"), ("hooks", "state")


class Trusted(Value):
    """What Codex calls a hook, and the hash by which it knows that nobody has changed it."""

    key: str
    hash: str


def directory(environ: Mapping[str, str]) -> str:
    """Where its configuration lies."""
    return environ.get("CODEX_HOME") or os.path.join(environ.get("HOME", "/"), ".codex")


def groups(guard: str) -> dict[str, list[dict[str, object]]]:
    """The groups of hooks of each event."""
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
    """Every file that is changed; `trust` tells what Codex calls the hooks of a text at a path."""
    top = directory(environ)
    config, hooks = f"{top}/config.toml", f"{top}/hooks.json"

    def add_trust(text: str) -> str:
        toml_text.parse(text)
        planned = edited(hooks, lambda there: add_groups(strip_groups(there, NAME), groups(guard)), read(hooks) or "")
        trusted = {each.key: each.hash for each in (trust(planned, hooks) if trust is not None else ())}
        # A key is a place in the file: what stood there before is not what stands there now.
        text = toml_text.without_tables(text, lambda names, _: names[:2] == _STATE and names[-1] in trusted)
        for key, value in trusted.items():
            text = toml_text.with_table(text, toml_text.header(*_STATE, key), {"trusted_hash": value})
        return text if server is None or _why_no_server(text, config) else _with_server(text, server)

    def strip_trust(text: str) -> str:
        there = read(hooks) or ""
        theirs, moved = (keys_of(hooks, each, are_ours=False) for each in (there, strip_groups(there, NAME)))
        has_server = any(_is_our_server(names, "".join(lines)) for names, lines in toml_text.tables(text))

        are_here = has_server or bool(keys_of(hooks, there))

        def is_ours_here(names: tuple[str, ...], table: str) -> bool:
            if names[:2] == _STATE and len(names) == 3:
                # Where we are, also what is about no hook at all: ours stood there once.
                return are_here and names[2].startswith(f"{hooks}:") and names[2] not in theirs
            return _is_our_server(names, table) or (has_server and names[:2] == _SERVER and len(names) > 2)

        # What its user trusts moves up when ours goes from before it, and is trusted there as well.
        places: dict[tuple[str, ...], tuple[str, ...]] = {
            (*_STATE, old): (*_STATE, new) for old, new in zip(theirs, moved, strict=True) if old != new
        }
        return toml_text.renamed(toml_text.without_tables(text, is_ours_here), places)

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
    return toml_text.with_table(text, toml_text.header(*_SERVER), values)


def _carry_server(there: str, text: str) -> str:
    """The configuration with what somebody has added to our server; ours is its last table."""
    try:
        old, new = _server_in(there), _server_in(text)
    except UserError:
        return text  # what is there was no TOML, and now it is
    if not new or not old.keys() - new.keys():
        return text
    shorter = toml_text.without_tables(text, _is_our_server)
    return toml_text.with_table(
        shorter, toml_text.header(*_SERVER), {**new, **{key: old[key] for key in old if key not in new}}
    )


def _why_no_server(text: str, path: str) -> str:
    """What to say if our server cannot be there, because of one with its name or of how others are written."""
    if _server_in(text):
        return f"{path} has another MCP server named outlive, which is left alone; ours is not added"
    try:
        _with_server(text, ["outlive"])
    except UserError:
        return f"{path} has its MCP servers in a form that takes no more of them; ours is not added"
    return ""


def _is_our_server(names: tuple[str, ...], table: str) -> bool:
    """Whether a table is the one that we wrote, of this or another version."""
    if names != _SERVER:
        return False
    try:
        return _server_in(table).get("args") == ["-I", "-m", "outlive", "mcp"]
    except UserError:
        return False


def _server_in(text: str) -> dict[str, object]:
    """What a text says of the server with our name; empty if nothing."""
    servers = toml_text.parse(text).get("mcp_servers")
    found = servers.get("outlive") if isinstance(servers, dict) else None
    return found if isinstance(found, dict) else {}


def keys_of(path: str, text: str, *, are_ours: bool = True) -> list[str]:
    """What Codex calls our hooks in a file, or all others: the path, the event, and where they stand."""
    from outlive.install import jsonc  # noqa: PLC0415 - seldom asked

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
