"""Fixtures of the tests with real clients: they run by `make test-clients` only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.model import Model
from tests.clients.rig import Claude, Codex, Gemini, OpenCode, Rig, program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support import Bench


@pytest.fixture
def model() -> Iterator[Model]:
    """A model that says what the test scripts."""
    with Model() as running:
        yield running


def _rig(kind: type[Rig], bench: Bench, model: Model) -> Rig:
    if not program(kind.name).exists():
        pytest.skip(f"{kind.name} is not installed: `make test-clients` does it")
    return kind(bench, model)


@pytest.fixture
def claude(bench: Bench, model: Model) -> Iterator[Claude]:
    """Claude Code, in a home of its own."""
    rig = _rig(Claude, bench, model)
    assert isinstance(rig, Claude)
    yield rig
    rig.clean()


@pytest.fixture
def codex(bench: Bench, model: Model) -> Iterator[Codex]:
    """Codex, in a home of its own."""
    rig = _rig(Codex, bench, model)
    assert isinstance(rig, Codex)
    yield rig
    rig.clean()


@pytest.fixture
def gemini(bench: Bench, model: Model) -> Iterator[Gemini]:
    """Gemini CLI, in a home of its own."""
    rig = _rig(Gemini, bench, model)
    assert isinstance(rig, Gemini)
    yield rig
    rig.clean()


@pytest.fixture
def opencode(bench: Bench, model: Model) -> Iterator[OpenCode]:
    """OpenCode, in a home of its own."""
    rig = _rig(OpenCode, bench, model)
    assert isinstance(rig, OpenCode)
    yield rig
    rig.clean()
