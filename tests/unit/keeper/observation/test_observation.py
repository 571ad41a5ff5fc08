"""The steps of observing a command: if they are called in a wrong order, an error is raised at once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from outlive.bundle.attempt import AttemptFiles
from outlive.bundle.home import Home
from outlive.keeper.observation.observation import PreparedObservation
from outlive.keeper.plan import Plan, Surroundings
from tests.unit.values import launch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def observation(tmp_path: Path) -> Iterator[PreparedObservation]:
    """Prepare a comparison of the files before and after a command that runs in an empty directory."""
    home = Home(str(tmp_path / "state"))
    files = AttemptFiles(home.bundle("t7k2m9q4"), 1)
    os.makedirs(files.path)
    asked = launch(cwd=str(tmp_path), observe="compare")
    around = Surroundings(environ={}, umask=0o077)
    record = os.open(tmp_path / "record", os.O_RDWR | os.O_CREAT)
    yield PreparedObservation(Plan(home=home, launch=asked, files=files, surroundings=around), record)
    os.close(record)


def test_command_starts_only_after_the_observation_was_prepared(observation: PreparedObservation) -> None:
    """A command cannot be started before `prepare`, because the first snapshots would be missing."""
    begun: list[str] = []
    with pytest.raises(AttributeError):
        observation.start(0, lambda: begun.append("begun"))
    assert not begun


def test_observation_finishes_only_after_observe_calls(observation: PreparedObservation) -> None:
    """`finish` before `observe_calls` raises an error. Keeper and listener would wait for each other for ever."""
    observation.prepare(lambda _: None)
    running = observation.start(0, lambda: None)
    with pytest.raises(AssertionError, match="observe_calls"):
        running.finish()
    running.observe_calls()
    running.finish().wait()
