"""Options, settings and agents that may restrict the shell of Claude Code."""

from __future__ import annotations

import os

from outlive.linux.processes import stat_fields, words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MANAGED = "/etc/claude-code/managed-settings"
# If Claude Code has one of these options, its shell counts as restricted. The values of the options are not
# examined, because settings may contain any rule, and an agent may have no shell.
_RULES_BY_HAND = frozenset(
    (
        "--disallowedTools",
        "--disallowed-tools",
        "--tools",
        "--settings",
        "--managed-settings",
        "--permission-prompt-tool",
        "--agent",
        "--agents",
        "--restricted",
    )
)
_CLIENTS = ("claude", "claude.exe")
_PLACES = ("/claude-code/", "/claude/versions/")
_FARTHEST = 8


def client_above(pid: int) -> int | None:
    """Return the Claude Code process among a process and its nearest ancestors.

    Returns None if there is no such process.
    """
    for _ in range(_FARTHEST):
        if pid <= 1:
            return None
        if any(os.path.basename(word) in _CLIENTS or _is_place(word) for word in words_of(pid)[:2]):
            return pid
        fields = stat_fields(pid)
        pid = int(fields[1]) if fields else 0
    return None


def _is_place(word: str) -> bool:
    """Return whether a path is a file of an installation of Claude Code."""
    return any(place in word for place in _PLACES)


def rule_given_to(pid: int) -> str | None:
    """Return the first option of a client that may restrict its shell, or None."""
    options = (word.partition("=")[0] for word in words_of(pid)[1:])
    return next((option for option in options if option in _RULES_BY_HAND), None)


def _own(environ: Mapping[str, str]) -> str:
    return environ.get("CLAUDE_CONFIG_DIR") or os.path.join(environ.get("HOME", "/"), ".claude")


def agent_files(environ: Mapping[str, str], directory: str) -> list[str]:
    """Return the files that describe agents for a session in a directory."""
    own = _own(environ)
    above = [directory]
    while (parent := os.path.dirname(above[-1])) != above[-1]:
        above.append(parent)
    places = [os.path.dirname(MANAGED), *above]
    tops = [own + "/agents", own + "/plugins/cache", *(os.path.join(place, ".claude/agents") for place in places)]
    return [
        os.path.join(place, name)
        for top in dict.fromkeys(tops)
        for place, _, names in os.walk(top)
        for name in names
        if name.endswith(".md") and "agents" in place.split("/")
    ]


def settings_files(environ: Mapping[str, str], *directories: str) -> list[str]:
    """Return the paths of possible settings files of a session in these directories."""
    own = _own(environ)
    try:
        parts = sorted(part for part in os.listdir(MANAGED + ".d") if part.endswith(".json"))
    except FileNotFoundError:
        parts = []
    except OSError:
        parts = [""]  # the directory cannot be read, and a caller that opens this path gets the error
    places = [own, *(os.path.join(directory, ".claude") for directory in dict.fromkeys(directories))]
    return [
        MANAGED + ".json",
        *(f"{MANAGED}.d/{part}" for part in parts),
        own + "/remote-settings.json",
        *(f"{place}/{name}" for place in places for name in ("settings.json", "settings.local.json")),
    ]
