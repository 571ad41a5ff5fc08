"""Fixtures of all tests."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from outlive.domain.effects.temporary_paths import TEMPORARY
from tests.outsider import Outsider
from tests.session_steps import Clients
from tests.support import Bench

if TYPE_CHECKING:
    from collections.abc import Iterator

# By default, pytest explains failed assertions in test files only. These modules of steps have assertions, too.
pytest.register_assert_rewrite("tests.hook_steps")

# The settings of Hypothesis for nightly runs, which take too long for a developer. They are chosen with
# OUTLIVE_PROFILE=nightly, or with pytest's own --hypothesis-profile=nightly.
settings.register_profile("nightly", max_examples=2000, deadline=None)
if chosen := os.environ.get("OUTLIVE_PROFILE"):
    settings.load_profile(chosen)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Create a state directory and a project for one test.

    Keepers and witnesses that the test leaves behind are killed.
    """
    place = Bench(tmp_path)
    yield place
    place.clean()


@pytest.fixture
def lasting() -> Iterator[Path]:
    """Create an empty directory outside of the directories that Outlive treats as temporary."""
    tops = (Path.home(), Path("/var/lib"), Path("/srv"))
    usable = [top for top in tops if not f"{top.resolve()}/".startswith(TEMPORARY) and os.access(top, os.W_OK)]
    if not usable:
        pytest.skip("every place that we may write to is a temporary one")
    with tempfile.TemporaryDirectory(prefix=".outlive-test-", dir=usable[0]) as name:
        yield Path(name).resolve()


@pytest.fixture
def clients() -> Iterator[Clients]:
    """Yield an object that starts processes that play the clients of agents. They are killed after the test."""
    started = Clients()
    yield started
    started.kill_all()


@pytest.fixture
def outsider() -> Iterator[Outsider]:
    """Create a user without privileges.

    The test is skipped if this user cannot run Outlive with the system's Python.
    """
    root = Path(tempfile.mkdtemp(prefix="outlive-test-"))
    root.chmod(0o755)
    other = Outsider(root)
    probe = other.call("list")
    if probe.returncode != 0:
        shutil.rmtree(root)
        pytest.skip(f"the system's Python cannot run it: {probe.stderr.strip()[-80:]}")
    yield other
    shutil.rmtree(root)


@pytest.fixture(autouse=True)
def _skip_without_root(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("root") and os.geteuid() != 0:
        pytest.skip("needs root")
