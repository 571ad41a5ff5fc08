"""Fixtures of the tests with real clients: they run by `make test-clients` only."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pytest

from tests.clients.model import Model
from tests.clients.rig import Claude, Codex, Gemini, OpenClaw, OpenCode, Rig, program
from tests.support import Bench

if TYPE_CHECKING:
    from collections.abc import Iterator


T = TypeVar("T", bound=Rig)


@pytest.fixture
def model() -> Iterator[Model]:
    """A model that says what the test scripts."""
    with Model() as running:
        yield running


def _rig(kind: type[T], bench: Bench, model: Model) -> Iterator[T]:
    if not program(kind.name).exists():
        pytest.skip(f"{kind.name} is not installed: `make test-clients` does it")
    rig = kind(bench, model)
    yield rig
    rig.clean()


@pytest.fixture(params=(Claude, Codex, Gemini), ids=lambda kind: kind.name)
def rig(request: pytest.FixtureRequest, bench: Bench, model: Model) -> Iterator[Rig]:
    """Each client in turn, in a home of its own."""
    yield from _rig(request.param, bench, model)


@pytest.fixture(params=(Claude, Codex, Gemini, OpenCode), ids=lambda kind: kind.name)
def answering(request: pytest.FixtureRequest, bench: Bench, model: Model) -> Iterator[Rig]:
    """Each client that answers one prompt and ends, in a home of its own."""
    yield from _rig(request.param, bench, model)


@pytest.fixture(params=(Claude, Codex, Gemini, OpenCode, OpenClaw), ids=lambda kind: kind.name)
def configured(request: pytest.FixtureRequest, bench: Bench, model: Model) -> Iterator[Rig]:
    """Every client, also those that live by plugins, configured by its user and with Outlive, and not started yet."""
    for rig in _rig(request.param, bench, model):
        rig.configure()
        rig.install()
        yield rig


@pytest.fixture
def claude(bench: Bench, model: Model) -> Iterator[Claude]:
    """Claude Code, in a home of its own."""
    yield from _rig(Claude, bench, model)


@pytest.fixture
def codex(bench: Bench, model: Model) -> Iterator[Codex]:
    """Codex, in a home of its own."""
    yield from _rig(Codex, bench, model)


@pytest.fixture
def gemini(bench: Bench, model: Model) -> Iterator[Gemini]:
    """Gemini CLI, in a home of its own."""
    yield from _rig(Gemini, bench, model)


@pytest.fixture
def opencode(bench: Bench, model: Model) -> Iterator[OpenCode]:
    """OpenCode, in a home of its own."""
    yield from _rig(OpenCode, bench, model)


@pytest.fixture(scope="module")
def openclaw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenClaw]:
    """OpenClaw with Outlive installed and its gateway up: one for all tests, because that takes long."""
    bench = Bench(tmp_path_factory.mktemp("openclaw"))
    with Model() as model:
        for rig in _rig(OpenClaw, bench, model):
            rig.configure()
            rig.install()
            rig.serve()
            yield rig
    bench.clean()
