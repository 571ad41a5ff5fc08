"""Whether the tool `run` may launch here.

A server of a client runs outside the sandbox of that client's shell, and is asked for past the
rules of that shell. So `run` launches only where it is known that the shell is neither sandboxed
nor restricted, or where the user has said so. What is not known is not allowed: `outlive run`
through the shell is always there, and has exactly the rights that the shell has.
"""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from outlive.domain.errors import UserError
from outlive.service.claude_rules import agent_files, client_above, rule_given_to, settings_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from outlive.mcp.sessions import Caller

SWITCH = "OUTLIVE_MCP_RUN"
_CLAUDE = "claude-code"
# The tools that an agent has not: on the line that names them, and on those below that belong to it.
_DENIED = re.compile(r"""^["']?disallowed-?tools["']?\s*:(.*(?:\n[ \t-].*)*)""", re.IGNORECASE | re.MULTILINE)


class RunRefused(UserError):
    """A launch through this server could have more rights than the client's own shell."""

    code = "run_refused"


def check_may_run(caller: Caller, environ: Mapping[str, str]) -> None:
    """Refuse a launch that is not known to have no more rights than the caller's own shell."""
    said = environ.get(SWITCH, "").lower()
    if said == "on":
        return
    why = f"{SWITCH} is {said!r}" if said else why_not(caller, environ)
    if why is not None:
        raise RunRefused(
            f"this server does not launch tasks: {why}",
            f"use your shell tool: outlive run -- CMD; only the user can change this, with {SWITCH}=on",
        )


def why_not(caller: Caller, environ: Mapping[str, str]) -> str | None:
    """What speaks against it; None if the shell of this caller is known to be free."""
    if caller.is_distant:
        return "over HTTP it cannot know what the client's shell may do"
    if caller.sandbox is not None:
        return None if caller.sandbox == "none" else f"the client's shell is sandboxed ({caller.sandbox})"
    if caller.client == _CLAUDE:
        return _why_not_claude(caller, environ)
    return "it does not know whether the client's shell is sandboxed or restricted"


def _why_not_claude(caller: Caller, environ: Mapping[str, str]) -> str | None:
    """Claude Code asks before a tool of ours as it asks before its shell; what it may add is in its settings."""
    client = None if caller.process is None else client_above(caller.process)
    if client is None:
        return "it cannot see how the client was started"
    if rule := rule_given_to(client):
        return f"the client was started with {rule}, which may restrict its shell"
    for path in settings_files(environ, caller.directory, caller.project):
        try:
            with open(path, encoding="utf-8") as file:
                settings = json.load(file)
        except FileNotFoundError:
            continue
        except (OSError, ValueError):
            return f"the settings in {path} cannot be read"
        if _at(settings, "sandbox", "enabled"):
            return f"the client's shell is sandboxed ({path})"
        rules = [*_rules(settings, "deny"), *_rules(settings, "ask")]
        if any(fnmatchcase("Bash", rule.partition("(")[0].strip()) for rule in rules):
            return f"the client's shell is restricted ({path})"
    return _why_not_its_agents(caller, environ)


def _why_not_its_agents(caller: Caller, environ: Mapping[str, str]) -> str | None:
    """It does not say which of its agents calls. Those with a list of tools have ours only if they name it."""
    for path in agent_files(environ, caller.directory):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            return f"the agent in {path} cannot be read"
        if _is_denied_the_shell(text):
            return f"an agent that has no shell may be calling ({path})"
    return None


def _is_denied_the_shell(agent: str) -> bool:
    """Whether what stands before an agent's prompt keeps the shell from it."""
    head = agent.partition("\n---")[0]
    denied = (tool for block in _DENIED.findall(head) for tool in re.findall(r"[\w*?]+", block))
    return any(fnmatchcase("Bash", tool) for tool in denied)


def _at(settings: object, *names: str) -> Any:
    for name in names:
        settings = settings.get(name) if isinstance(settings, dict) else None
    return settings


def _rules(settings: object, kind: str) -> list[str]:
    found = _at(settings, "permissions", kind)
    return [rule for rule in found if isinstance(rule, str)] if isinstance(found, list) else []
