"""Launches of agents that are refused, because the client cannot do what the user wants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.agent_steps import Agents

if TYPE_CHECKING:
    from tests.support import Bench


@pytest.fixture
def agents(bench: Bench) -> Agents:
    """Create a user with two scripted clients."""
    return Agents(bench)


@pytest.mark.parametrize("client", ["codex", "gemini", "silent"])
@pytest.mark.parametrize("limit", ["--budget", "--max-tokens"])
def test_limit_is_refused_when_the_client_does_not_report_its_use(agents: Agents, client: str, limit: str) -> None:
    """`--budget` and `--max-tokens` are refused if the client does not report its cost or tokens while it runs.

    `--max-turns` needs no such report.
    """
    program = f'[agents.clients.{client}]\ncommand = ["sh"]\n'
    lines = (
        'model_arguments = ["{model}"]\n[agents.clients.silent.lines]\n'
        'answer = { when = { type = "result" }, text = "result" }\ntool = { when = { type = "call" }, name = "tool" }\n'
    )
    agents.configure(more=program + (lines if client == "silent" else ""))
    for words in (("--client", client), ("--fallback", f"{client}:m2")):
        done = agents.bench.run("agent", *words, limit, "9", "--", "answer x")
        assert done.returncode == 2, done.stdout
        assert f"the client {client} does not report" in done.stderr
        assert "--max-turns" in done.stderr
    assert agents.bench.json("list", "--all")["tasks"] == []
    agents.bench.ok("agent", "--fallback", f"{client}:m2", "--max-turns", "9", "--", "answer x")


@pytest.mark.parametrize(
    ("settings", "words", "told"),
    [
        (("", ""), ("--model", "m1"), ("use the model m1", "model_arguments")),
        (("", ""), ("--client", "bot", "--fallback", "plain:m1"), ("use the model m1", "model_arguments")),
        (("", 'model = "m1"'), (), ("use the model m1", "model_arguments")),
        (("", ""), ("--max-turns", "9"), ("does not report its turns", "plain.lines.tool")),
        (("max_turns = 9", ""), (), ("does not report its turns", "plain.lines.tool")),
        (("", ""), ("--budget", "9"), ("does not report what a run costs", "leave out --budget")),
    ],
)
def test_option_is_refused_when_the_described_program_cannot_keep_it(
    agents: Agents, settings: tuple[str, str], words: tuple[str, ...], told: tuple[str, str]
) -> None:
    """An option is refused if the user's description of the program does not say how to pass it on.

    Options are a model and a limit of turns, in the command or in the settings. `settings` are further keys of all
    agents and of the program. `told` are parts of the error and of its hint.
    """
    lines = '[agents.clients.plain.lines]\nanswer = { when = { type = "result" }, text = "result" }\n'
    agents.configure(settings[0], f'[agents.clients.plain]\ncommand = ["sh"]\n{settings[1]}\n{lines}')
    given = words if "--client" in words else ("--client", "plain", *words)
    done = agents.bench.run("agent", *given, "--", "answer x")
    assert done.returncode == 2, done.stdout
    assert all(each in done.stderr for each in told), done.stderr
    assert agents.bench.json("list", "--all")["tasks"] == []
