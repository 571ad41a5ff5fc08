"""Programs of which the hooks assume that they read only the files that their arguments name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from outlive.hooks.guard.known_windows import PLAIN_READERS, names_all_it_reads
from outlive.service.effects.wanted_paths import read_command

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("program", sorted(PLAIN_READERS))
def test_rules_agree_that_a_plain_reader_reads_only_the_files_it_names(program: str, tmp_path: Path) -> None:
    """The rules agree with the hooks: such a program reads only the files that its arguments name."""
    assert names_all_it_reads(f"{program} x.py | head -5")
    wanted = read_command((program, "x.py"), str(tmp_path))
    assert (wanted.trees, wanted.unread) == ({}, {})
    assert set(wanted.paths) <= {f"{tmp_path}/x.py"}


@pytest.mark.parametrize(
    "command", ["cat *.py", "cat $X", "cat x; git status", "cd /y && cat x", "cat <x", "ls", "X=1"]
)
def test_command_that_may_read_more_is_left_to_the_rules(command: str) -> None:
    """For a command that may read more, such as one with shell expansions, the hooks use the rules."""
    assert not names_all_it_reads(command)
