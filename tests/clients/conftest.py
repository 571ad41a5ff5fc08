"""Fixtures of the tests with real clients, which only `make test-clients` runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pytest

from tests.clients.model import Model
from tests.clients.rig import Rig, program
from tests.clients.rigs.claude import Claude
from tests.clients.rigs.codex import Codex
from tests.clients.rigs.gemini import Gemini
from tests.clients.rigs.openclaw import OpenClaw
from tests.clients.rigs.opencode import OpenCode
from tests.support import Bench

if TYPE_CHECKING:
    from collections.abc import Iterator


T = TypeVar("T", bound=Rig)


@pytest.fixture
def model() -> Iterator[Model]:
    """Start a scripted model, whose replies the test sets."""
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
    """Return each client in turn. Each client has a home directory of its own."""
    yield from _rig(request.param, bench, model)


@pytest.fixture(params=(Claude, Codex, Gemini, OpenCode), ids=lambda kind: kind.name)
def answering(request: pytest.FixtureRequest, bench: Bench, model: Model) -> Iterator[Rig]:
    """Return, in turn, each client that can answer one prompt and exit.

    Each client has a home directory of its own.
    """
    yield from _rig(request.param, bench, model)


@pytest.fixture(params=(Claude, Codex, Gemini, OpenCode, OpenClaw), ids=lambda kind: kind.name)
def configured(request: pytest.FixtureRequest, bench: Bench, model: Model) -> Iterator[Rig]:
    """Return each client in turn, configured by its user and with Outlive installed.

    The client has not been started yet. Clients that use plugins instead of hooks are included.
    """
    for rig in _rig(request.param, bench, model):
        rig.configure()
        rig.install()
        yield rig


@pytest.fixture
def claude(bench: Bench, model: Model) -> Iterator[Claude]:
    """Return Claude Code, in a home directory of its own."""
    yield from _rig(Claude, bench, model)


@pytest.fixture
def codex(bench: Bench, model: Model) -> Iterator[Codex]:
    """Return Codex, in a home directory of its own."""
    yield from _rig(Codex, bench, model)


@pytest.fixture
def gemini(bench: Bench, model: Model) -> Iterator[Gemini]:
    """Return Gemini CLI, in a home directory of its own."""
    yield from _rig(Gemini, bench, model)


@pytest.fixture
def opencode(bench: Bench, model: Model) -> Iterator[OpenCode]:
    """Return OpenCode, in a home directory of its own."""
    yield from _rig(OpenCode, bench, model)


@pytest.fixture(scope="module")
def openclaw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenClaw]:
    """Return OpenClaw with Outlive installed and its gateway running.

    All tests of a module use this instance, because a gateway takes long to start.
    """
    bench = Bench(tmp_path_factory.mktemp("openclaw"))
    with Model() as model:
        for rig in _rig(OpenClaw, bench, model):
            rig.configure()
            rig.install()
            rig.serve()
            yield rig
    bench.clean()
