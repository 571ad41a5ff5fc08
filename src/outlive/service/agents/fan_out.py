"""Launching several agents as one group, from a file with one agent per line."""

from __future__ import annotations

import os

from outlive.domain.errors import OutliveError, UserError
from outlive.domain.ids import letters
from outlive.domain.text.sanitize import from_json, one_line
from outlive.service.agents.launch import WantedAgent, check_prompt, plan_agent
from outlive.service.clock import utc_now
from outlive.service.tasks.run import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import Any

    from outlive.bundle.home import Home
    from outlive.service.tasks.run import Request

MOST_AGENTS = 500
_LARGEST_FILE = 64 << 20
# The fields that a line of the file may contain. For each field, the table has the name of the field in `WantedAgent`
# and the type of the value.
_FIELDS: dict[str, tuple[str, type | tuple[type, ...]]] = {
    "prompt": ("prompt", str),
    "client": ("client", str),
    "model": ("model", str),
    "category": ("category", str),
    "budget": ("budget_usd", (int, float)),
    "max_tokens": ("max_tokens", int),
    "max_turns": ("max_turns", int),
    "worktree": ("has_worktree", bool),
    "fallback": ("fallback", list),
    "description": ("description", str),
}
_EXAMPLE = 'a line such as {"prompt": "Review a.py", "model": "opus", "fallback": ["codex:gpt-5"]}'


class ListedAgent:
    """An agent that one line of the file describes."""

    def __init__(self, wanted: WantedAgent, description: str | None) -> None:
        self.wanted = wanted
        self.description = description


def read_list(path: str, common: WantedAgent) -> list[ListedAgent]:
    """Return the agents that a file lists.

    If a line names no client, model or limit, the value from the command line options is used. Raises `UserError` for
    the first wrong line, before any agent is launched.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(_LARGEST_FILE + 1)
        # `splitlines` would also split at characters that JSON allows inside a string, such as U+2028.
        lines = content.decode("utf-8-sig").split("\n")
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {error.strerror}", "write one agent per line: a prompt or a JSON object"
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8", "write one agent per line: a prompt or a JSON object") from error
    found = [_listed(f"{path}, line {number}", line, common) for number, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise UserError(f"{path} has no lines with agents", "write one agent per line: a prompt or a JSON object")
    if len(found) > MOST_AGENTS or len(content) > _LARGEST_FILE:
        raise UserError(f"{path} has more than {MOST_AGENTS} agents or 64 MiB", "split the file into several files")
    return found


def launch_all(home: Home, listed: Sequence[ListedAgent], request: Request, now: datetime) -> tuple[str, list[str]]:
    """Launch all agents as one group, and return the group's name and the task ids.

    All agents are checked before the first agent is launched. If a launch fails nevertheless, the error's hint names
    the group, which has the agents that were already launched.
    """
    group = request.group or f"agents-{letters(os.urandom(8), 6)}"
    planned = [
        plan_agent(home, one.wanted, request.but(group=group, description=one.description or request.description))
        for one in listed
    ]
    tasks: list[str] = []
    for one in planned:
        try:
            tasks.append(run(home, one, utc_now() if tasks else now).task)
        except OutliveError as error:
            if tasks:
                error.hint = (
                    f"{len(tasks)} of {len(planned)} agents were launched; `outlive list --group {group}` shows them"
                )
            raise
    return group, tasks


def _listed(where: str, line: str, common: WantedAgent) -> ListedAgent:
    """Return the agent that a line describes.

    The line is a prompt or a JSON object.
    """
    if not line.lstrip().startswith("{"):
        check_prompt(line.strip())
        return ListedAgent(common.but(prompt=line.strip()), None)
    try:
        given: Any = from_json(line)
    except ValueError as error:
        raise UserError(f"{where} is not JSON: {one_line(str(error), 100)}", _EXAMPLE) from error
    fields = {_FIELDS[name][0]: _checked(where, name, value) for name, value in given.items() if _is_known(where, name)}
    description = fields.pop("description", None)
    check_prompt(fields.get("prompt", ""))
    return ListedAgent(common.but(**fields), description)


def _is_known(where: str, name: str) -> bool:
    if name not in _FIELDS:
        raise UserError(
            f"{where} has the unknown field {one_line(name, 40)}", f"use one of these fields: {', '.join(_FIELDS)}"
        )
    return True


def _checked(where: str, name: str, value: Any) -> Any:
    """Return the value of a field, after a check of its type.

    Raises `UserError` if the value has the wrong type, or if a number is not more than 0.
    """
    kind = _FIELDS[name][1]
    is_right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if name == "fallback":
        is_right = is_right and all(isinstance(one, str) for one in value)
    if not is_right:
        raise UserError(f"{where}: {name} has the wrong type", _EXAMPLE)
    if isinstance(value, (int, float)) and kind is not bool and value <= 0:
        raise UserError(f"{where}: {name} must be more than 0", "leave out the field if there is no limit")
    return tuple(value) if name == "fallback" else value
