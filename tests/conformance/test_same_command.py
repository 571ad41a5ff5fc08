"""`running_copies`: the search for running tasks with the same command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance.steps import ended, enqueued, running
from tests.unit.values import launch

if TYPE_CHECKING:
    from outlive.ledger.contract import Ledger


def test_only_running_tasks_with_the_same_words_and_place_are_found(ledger: Ledger) -> None:
    """Other words, another directory or project, queued and ended tasks, and the launch itself are left out."""
    words = ("sh", "-c", "caf\udce9 é")
    for id_ in ("tbbbbbb2", "tccccc22", "tddddd22"):
        running(ledger, id_, argv=words)
    running(ledger, "teeeee22", argv=(*words, "x"))
    running(ledger, "tfffff22", argv=words, cwd="/home/u/repo/sub")
    running(ledger, "tgggggg2", argv=words, project="/home/u")
    enqueued(ledger, "thhhhh22", argv=words)
    ended(ledger, "tjjjjj22", argv=words)
    assert ledger.running_copies(launch(id="tccccc22", argv=words)) == ["tddddd22", "tbbbbbb2"]
    assert ledger.running_copies(launch(argv=("make",))) == []
