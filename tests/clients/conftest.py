"""Fixtures of the tests with real clients: they run by `make test-clients` only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.model import Model
from tests.clients.rig import Claude, Codex, Gemini, OpenClaw, OpenCode, Rig, program
from tests.support import Bench

if TYPE_CHECKING:
    from collections.abc import Iterator


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


@pytest.fixture(scope="module")
def openclaw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenClaw]:
    """OpenClaw with Outlive installed and its gateway up: one for all tests, because that takes long."""
    bench = Bench(tmp_path_factory.mktemp("openclaw"))
    with Model() as model:
        rig = _rig(OpenClaw, bench, model)
        assert isinstance(rig, OpenClaw)
        rig.configure()
        rig.install()
        rig.serve()
        yield rig
        rig.clean()
    bench.clean()
