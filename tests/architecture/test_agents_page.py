"""Tests of the page docs/how-to/agents.md: its commands, settings and pasted outputs."""

from __future__ import annotations

import re

from outlive.cli.main import load
from outlive.settings.read_settings import parse_agent_settings
from tests.clients.agents_page import BLOCKS, FILE, PAGE, Step, commands_of

TOML = re.compile(r"```toml\n(.*?)```\n", re.DOTALL)
ID, STATE = r"t[0-9a-z]{7}", re.escape("~/.local/state/outlive/MACHINE")


def is_command_of(step: Step, command: str) -> bool:
    """Return whether a command on the page is the command of a step. The two commands may have different task ids."""
    parts = re.split(r"(\{\w+\})", step.text)
    pattern = "".join(STATE if part == "{state}" else ID if part[:1] == "{" else re.escape(part) for part in parts)
    return re.fullmatch(pattern, command) is not None


def test_page_shows_the_commands_that_its_script_runs() -> None:
    """The page shows the same commands, in the same order, as the script that writes its outputs."""
    shown = list(commands_of(PAGE.read_text()))
    assert [name for name, _ in shown] == list(BLOCKS)
    for name, commands in shown:
        assert len(commands) == len(BLOCKS[name]), f"{name}: `make docs-agents` writes the outputs"
        for step, command in zip(BLOCKS[name], commands, strict=True):
            assert is_command_of(step, command), f"{name}: {command}: `make docs-agents` writes the outputs"


def test_outputs_of_the_page_name_no_directory_of_the_machine_that_wrote_them() -> None:
    """The outputs contain no temporary or home directory, and no id of the machine that wrote them."""
    outputs = "".join(re.findall(r"```console\n(.*?)```\n", PAGE.read_text(), re.DOTALL))
    assert "/home/u/.local/state/outlive/MACHINE/worktrees/" in outputs
    assert re.findall(r"/(?:tmp|root)/|\b[0-9a-f]{32}\b", outputs) == []


def test_settings_of_the_page_are_valid() -> None:
    """The examples of settings on the page are accepted by the parser of the settings file."""
    tables = TOML.findall(PAGE.read_text())
    assert len(tables) == 2
    for text in tables:
        parse_agent_settings(text, "config.toml")
    assert [name for name, _ in FILE.findall(PAGE.read_text())] == ["~/.config/outlive/config.toml", "reviews.jsonl"]


def test_page_names_only_options_that_exist() -> None:
    """Each option that the page names is an option of one of the commands that the page describes."""
    commands = ("agent", "run", "result", "transcript", "cancel", "wait", "list", "show", "inbox")
    known = {option.name for command in commands for option in load(command).options} | {"--json", "--help"}
    text = re.sub(r"```.*?```", "", PAGE.read_text(), flags=re.DOTALL)
    found = {name for code in re.findall(r"`((?:outlive |--)[^`]*)`", text) for name in re.findall(r"--[a-z-]+", code)}
    assert found - known == set()


def test_commands_of_the_page_are_compared_with_their_steps() -> None:
    """`is_command_of` accepts a command whose task id differs, and refuses a command with another verb."""
    step = Step("outlive result {faults}")
    assert is_command_of(step, "outlive result t7k2m9q4")
    assert not is_command_of(step, "outlive result ID")
    assert not is_command_of(step, "outlive show t7k2m9q4")
