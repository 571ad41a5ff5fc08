"""Fixtures of all tests."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.session_steps import Clients
from tests.support import Bench

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Longer than anybody waits for: OUTLIVE_PROFILE=nightly, or pytest's own --hypothesis-profile=nightly.
settings.register_profile("nightly", max_examples=2000, deadline=None)
if chosen := os.environ.get("OUTLIVE_PROFILE"):
    settings.load_profile(chosen)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A state directory and a project of its own; nothing of it is left running."""
    place = Bench(tmp_path)
    yield place
    place.clean()


@pytest.fixture
def clients() -> Iterator[Clients]:
    """Processes that stand for agents' clients, and do not outlive the test."""
    started = Clients()
    yield started
    started.kill_all()


@pytest.fixture(autouse=True)
def _skip_without_root(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("root") and os.geteuid() != 0:
        pytest.skip("needs root")
