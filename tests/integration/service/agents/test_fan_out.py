"""Background agents that are launched together, from a list of prompts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.agent_steps import Agents

if TYPE_CHECKING:
    from tests.support import Bench


@pytest.fixture
def agents(bench: Bench) -> Agents:
    """Create a user with two scripted clients."""
    return Agents(bench)


def test_fan_out_launches_a_list_as_one_group_with_one_notice(agents: Agents) -> None:
    """All agents of a list form one group, whose end is reported by one notice.

    Each line of the list is a prompt or a JSON object. Row 27 of the acceptance scenarios.
    """
    lines = ["answer one", json.dumps({"prompt": "answer two", "model": "m2"}), json.dumps({"prompt": "exit 3"})]
    listed = agents.bench.root / "list"
    listed.write_text("\n".join(lines) + "\n\n")
    document = agents.bench.json("agent", "--fan-out", str(listed), "--session", "s-1")
    assert len(document["tasks"]) == 3
    assert agents.bench.run("wait", "--group", document["group"]).returncode == 1
    kinds = [each["kind"] for each in agents.bench.json("inbox", "--session", "s-1")["notices"]]
    assert kinds.count("group_ended") == 1
    models = {agents.bench.show(one)["agent"]["model"] for one in document["tasks"]}
    assert models == {None, "m2"}


@pytest.mark.parametrize(
    ("content", "answers"),
    [
        ('\ufeff{"prompt": "answer a"}\r\nanswer b\r\n', ["a", "b"]),
        ('{"prompt": "answer a\u2028b\x85c"}\n', ["a\u2028b\x85c"]),
        ("answer a\x0cb\x1cc\n", ["a\x0cb\x1cc"]),
    ],
    ids=["byte order mark and CRLF", "line separators in JSON", "form feed in a prompt"],
)
def test_list_is_split_only_at_line_feeds(agents: Agents, content: str, answers: list[str]) -> None:
    """A list of prompts is split only at line feeds.

    Other separators stay in the prompt. A byte order mark is ignored.
    """
    listed = agents.bench.root / "list"
    listed.write_bytes(content.encode())
    tasks = agents.bench.json("agent", "--fan-out", str(listed))["tasks"]
    prompts = [(Path(agents.bench.home.bundle(task)) / "prompt").read_bytes().decode() for task in tasks]
    assert prompts == [f"answer {each}" for each in answers]


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ('{"prompt": 3}', "prompt has the wrong type"),
        ('{"prompt": "x", "modle": "y"}', "unknown field modle"),
        ('{"prompt": "x", "max_turns": 0}', "must be more than 0"),
        ('{"prompt"', "is not JSON"),
        ("", "has no lines"),
    ],
)
def test_wrong_line_of_a_list_launches_nothing(agents: Agents, line: str, fact: str) -> None:
    """If any line of the list is invalid, no agent is launched."""
    listed = agents.bench.root / "list"
    listed.write_text(("answer one\n" if line else "") + line)
    done = agents.bench.run("agent", "--fan-out", str(listed))
    assert done.returncode == 2
    assert fact in done.stderr
    assert agents.bench.json("list", "--all")["tasks"] == []
