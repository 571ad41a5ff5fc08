"""OpenCode: Outlive's plugin, its skill and its MCP server in the user's files."""

from __future__ import annotations

import os

from outlive.domain.text.sanitize import from_json, to_json
from outlive.install.clients.claude import why_no_server
from outlive.install.clients.skill import skill_target
from outlive.install.config import jsonc
from outlive.install.config.target_file import Target, read, whole
from outlive.install.outlive_command import hook_words, names_us

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME = "opencode"
_SCHEMA = "https://opencode.ai/config.json"
_SOURCE = os.path.join(os.path.dirname(__file__), "opencode_plugin.js")
_FIRST_WORDS = "// Outlive in OpenCode:"
_COMMAND, _GUARD = "const COMMAND = ", "const GUARD = "
# By default, OpenCode waits 30 s for a tool. One call of the tool `wait` of Outlive may take longer.
_TIMEOUT_MS = 60_000


def directory(environ: Mapping[str, str]) -> str:
    """Return the directory of OpenCode's configuration."""
    above = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME", "/"), ".config")
    return environ.get("OPENCODE_CONFIG_DIR") or os.path.join(above, "opencode")


def plugin_path(environ: Mapping[str, str]) -> str:
    """Return the path of Outlive's plugin in OpenCode's configuration."""
    return f"{directory(environ)}/plugin/outlive.js"


def plugin_text(guard: str) -> str:
    """Return the text of Outlive's plugin, which contains the command that it calls."""
    words = {_COMMAND: to_json(hook_words(NAME, "")[:-1]), _GUARD: to_json(guard)}
    with open(_SOURCE, encoding="utf-8") as file:
        lines = file.read().splitlines(keepends=True)
    for index, line in enumerate(lines):
        for head, value in words.items():
            if line.startswith(head):
                lines[index] = f"{head}{value}\n"
    return "".join(lines)


def plugin_words(text: str) -> list[str]:
    """Return the command that Outlive's plugin calls, read from the plugin's text.

    The result is empty if the text is not that of Outlive's plugin.
    """
    line = next((line for line in text.splitlines() if line.startswith(_COMMAND)), "")
    try:
        words = from_json(line.removeprefix(_COMMAND)) if is_plugin(text) else []
    except ValueError:
        return []
    return [str(word) for word in words] if isinstance(words, list) else []


def is_plugin(text: str) -> bool:
    """Return whether a text is that of a plugin that some version of Outlive wrote."""
    return text.startswith(_FIRST_WORDS)


def targets(environ: Mapping[str, str], guard: str, server: Sequence[str] | None) -> list[Target]:
    """Return the files of OpenCode that an installation changes.

    `server` is the command of Outlive's MCP server, or None if the server is not to be added.
    """
    top = directory(environ)
    # OpenCode reads `opencode.json` and `opencode.jsonc`. If both have a setting, the second file decides. If there is
    # neither file, OpenCode creates the second one.
    plain, commented = f"{top}/opencode.json", f"{top}/opencode.jsonc"
    chosen = plain if read(plain) is not None and read(commented) is None else commented
    return [
        whole(plugin_path(environ), plugin_text(guard), is_plugin),
        skill_target(top),
        *(
            Target(
                path=path,
                add=(lambda text: _with_server(text, server)) if path == chosen else (lambda text: text),
                strip=_without_server,
                give_back=_without_our_schema,
                is_nothing=lambda text: text.strip() in ("", "{}"),
                left_out=lambda text, path=path: (  # type: ignore[misc]
                    why_no_server(text, path, server, under=("mcp",)) if path == chosen else ""
                ),
                carry=lambda there, text: jsonc.carry(there, text, ("mcp", "outlive")),
            )
            for path in (plain, commented)
        ),
    ]


def _with_server(text: str, words: Sequence[str] | None) -> str:
    """Return the text of a configuration file, with Outlive's MCP server added.

    The text stays the same if `words` (the server's command) is None, or if another server is called `outlive`.
    """
    path = ("mcp", "outlive")
    if words is None or (text.strip() and jsonc.find(jsonc.parse(text), path) is not None):
        return text
    if not text.strip():
        text = jsonc.set_member("", ("$schema",), _SCHEMA)  # OpenCode would otherwise add this field later
    entry = {"type": "local", "command": list(words), "enabled": True, "timeout": _TIMEOUT_MS}
    return jsonc.set_member(text, path, entry)


def _without_server(text: str) -> str:
    shorter = jsonc.cut(text, ("mcp",), _is_our_server) if names_us(text) else text
    return jsonc.cut_empty(shorter, ("mcp",)) if shorter != text else text


def _without_our_schema(text: str, before: str) -> str:
    """Remove the field `$schema` that Outlive added, if the file has no other content.

    In a file with entries of the user, it stays, because OpenCode would add it again.
    """
    is_ours = not before.strip() and jsonc.value_of(text, jsonc.parse(text)) == {"$schema": _SCHEMA}
    return jsonc.cut_key(text, ("$schema",)) if is_ours else text


def _is_our_server(value: object) -> bool:
    words = value.get("command") if isinstance(value, dict) else None
    return isinstance(words, list) and words[1:] == ["-I", "-m", "outlive", "mcp"]
