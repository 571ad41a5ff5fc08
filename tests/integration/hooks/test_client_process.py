"""The process of a client: how it was started, and whether it has a terminal."""

from __future__ import annotations

import os
import subprocess

import pytest

from outlive.hooks.client_process import lacks_terminal
from outlive.hooks.clients import codex


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("exec --json do", "exec"),
        ("-c model=x --json e", "e"),
        ("--profile review", ""),
        ("--profile review exec", "exec"),
        ("--profile=review fix exec", "fix"),
        ("-i one.png two.png -m gpt exec", "exec"),
        ("-i exec", ""),
        ("", ""),
    ],
)
def test_command_of_finds_the_subcommand_of_codex_by_its_place(words: str, command: str) -> None:
    """`command_of` finds the subcommand of Codex.

    It is misled neither by the value of an option nor by a later word.
    """
    assert codex.command_of(words.split()) == command


def test_client_lacks_a_terminal_unless_stdin_and_stdout_are_terminals() -> None:
    """`lacks_terminal` returns True if stdin or stdout is not a terminal, and False for an ended process."""
    main, side = os.openpty()
    found, gone = [], 0
    for stdin, stdout in ((side, side), (side, subprocess.DEVNULL), (subprocess.PIPE, side)):
        with subprocess.Popen(["sleep", "600"], stdin=stdin, stdout=stdout) as client:
            found.append(lacks_terminal(client.pid))
            client.kill()
        gone = client.pid
    os.close(main)
    os.close(side)
    assert found == [False, True, True]
    assert lacks_terminal(gone) is False
