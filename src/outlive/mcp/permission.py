"""The check whether the MCP tool `run` may launch a task.

A client runs its shell in a sandbox or under rules, but starts this server outside of them. So a task of this server
could have more rights than the shell. Therefore `run` launches a task only if the shell is known to be unrestricted, or
if the user has allowed launches. The command `outlive run` in the shell always works, and gives the task the rights of
the shell.
"""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from outlive.domain.errors import UserError
from outlive.service.sessions.claude_restrictions import agent_files, client_above, rule_given_to, settings_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from outlive.mcp.caller import Caller

SWITCH = "OUTLIVE_MCP_RUN"
_CLAUDE = "claude-code"
# Matches the field with denied tools in the file that describes an agent. The captured group is the rest of its line
# and the indented lines below it.
_DENIED = re.compile(r"""^["']?disallowed-?tools["']?\s*:(.*(?:\n[ \t-].*)*)""", re.IGNORECASE | re.MULTILINE)


class RunRefused(UserError):
    """The error for a task that could have more rights than the client's shell."""

    code = "run_refused"


def check_may_run(caller: Caller, environ: Mapping[str, str]) -> None:
    """Raise `RunRefused` if a task could get more rights than the client's shell has.

    If OUTLIVE_MCP_RUN is set in the server's environment, only this variable decides.
    """
    switch = environ.get(SWITCH, "").lower()
    if switch == "on":
        return
    why = f"{SWITCH} is {switch!r}" if switch else why_not(caller, environ)
    if why is not None:
        raise RunRefused(
            f"this server does not launch tasks: {why}",
            f"use your shell tool: outlive run -- CMD; only the user can allow launches here, with {SWITCH}=on",
        )


def why_not(caller: Caller, environ: Mapping[str, str]) -> str | None:
    """Return why a launch is refused, or None if the caller's shell is unrestricted."""
    if caller.is_distant:
        return "over HTTP, the server does not know the limits of the client's shell"
    if caller.sandbox is not None:
        return None if caller.sandbox == "none" else f"the client's shell is sandboxed ({caller.sandbox})"
    if caller.client == _CLAUDE:
        return _why_not_claude(caller, environ)
    return "the server does not know whether the client's shell is sandboxed or restricted"


def _why_not_claude(caller: Caller, environ: Mapping[str, str]) -> str | None:
    """Return why Claude Code's shell may be restricted, or None if it is not.

    Claude Code asks the user before it calls a tool of this server, just as before it uses its shell. So this question
    is no restriction. Others are on Claude Code's command line, in its settings and in the files that describe its
    agents.
    """
    client = None if caller.process is None else client_above(caller.process)
    if client is None:
        return "the server cannot find out how the client was started"
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
    """Return why a launch is refused if an agent without a shell may be the caller.

    Returns None if every agent has a shell. Claude Code does not say which of its agents calls. An agent with a list of
    allowed tools needs no check, because it can call this server only if the list names the server's tools.
    """
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
    """Return whether an agent's description denies the agent the shell."""
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
