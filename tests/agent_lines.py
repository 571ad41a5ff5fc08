"""Steps for tests of agent tasks: scripted agents that print JSON Lines, and functions that launch them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from outlive.domain.agents.request import AgentRequest, Candidate

if TYPE_CHECKING:
    from tests.support import Bench

LINES = {
    "answer": {"when": {"type": "answer"}, "text": "text"},
    "text": {"when": {"type": "text"}, "text": "text"},
    "tool": {"when": {"type": "call"}, "name": "tool", "input": "input", "id": "id"},
    "result": {"when": {"type": "result"}, "text": "text", "id": "id"},
    "error": {"when": {"type": "error"}, "text": "text"},
    "question": {"when": {"type": "ask"}, "text": "text"},
}
"""How the lines of a scripted agent are read (see `outlive.agents.json_lines`)."""


def agent_request(command: list[str] | None = None) -> AgentRequest:
    """Return the request for a scripted agent, called `bot`."""
    table = {"command": command or ["bot"], "session": "session", "lines": LINES}
    return AgentRequest(candidates=(Candidate(client="bot", model="m1"),), tables={"bot": table})


def line(kind: str, text: str = "", **fields: Any) -> str:
    """Return a line that a scripted agent prints."""
    return json.dumps({"type": kind, "text": text, **fields})


def launch_agent(bench: Bench, shell: str, prompt: str = "do it", *options: str) -> str:
    """Launch an agent task whose client is replaced by a shell command line, and return the id of the task."""
    settings = bench.root / "settings" / "outlive" / "config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    table = {"command": ["sh", "-c", shell], "session": "session", "model_arguments": ["{model}"]}
    lines = [f"{name} = {json.dumps(each)}" for name, each in table.items()]
    rules = [f"{name} = {_inline(rule)}" for name, rule in LINES.items()]
    settings.write_text("\n".join(["[agents.clients.bot]", *lines, "[agents.clients.bot.lines]", *rules]))
    place = {"XDG_CONFIG_HOME": str(bench.root / "settings")}
    return bench.ok("agent", "--client", "bot", "--model", "m1", *options, "--", prompt, env=place)


def _inline(value: object) -> str:
    """Return a value in TOML's notation, without a line break."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_inline(each)}" for key, each in value.items()) + " }"
    return json.dumps(value)
