"""A task keeps its guarantees if any process is killed or any disk call fails."""

import time

import pytest

from tests.crash import ptrace
from tests.crash.catalogue import MUTANTS, SWEEPS, run_apart
from tests.crash.sweep import Report

UNSUPPORTED = ptrace.supported()
pytestmark = [pytest.mark.crash, pytest.mark.skipif(bool(UNSUPPORTED), reason=f"{UNSUPPORTED}")]


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    """Run all series of crash tests once, two at a time, print the reports and return them."""
    began = time.monotonic()
    found = {report.name: report for report in run_apart(SWEEPS)}
    for report in found.values():
        print(report)  # noqa: T201 - pytest shows the report with -rP, and if a test fails
    print(f"{_points(found)} points in {time.monotonic() - began:.0f} s")  # noqa: T201
    return found


@pytest.fixture(scope="module")
def hunts() -> dict[str, Report]:
    """Search once for every planted bug, two searches at a time, and return the reports."""
    return {report.name: report for report in run_apart(MUTANTS)}


def _points(found: dict[str, Report]) -> int:
    return sum(report.points for report in found.values())


@pytest.mark.parametrize("name", [n for n, s in SWEEPS.items() if not s.also and not s.errno])
def test_no_single_kill_breaks_a_promise(reports: dict[str, Report], name: str) -> None:
    """If one process is killed before any of its calls, no guarantee is broken.

    The command runs at most once, and its task has one ending, one notice and the true exit code. Every ending is
    reported. It is reported twice only under one notice id, and only if the first report was not recorded.
    """
    assert not reports[name].violations, str(reports[name])


@pytest.mark.parametrize("name", [n for n, s in SWEEPS.items() if s.also])
def test_no_double_kill_breaks_a_promise(reports: dict[str, Report], name: str) -> None:
    """If two processes are killed at once, no guarantee is broken.

    The exit code may be lost only if keeper and witness are killed together.
    """
    assert not reports[name].violations, str(reports[name])


@pytest.mark.parametrize("name", [n for n, s in SWEEPS.items() if s.errno])
def test_no_failing_disk_breaks_a_promise(reports: dict[str, Report], name: str) -> None:
    """If one disk call fails, or all calls from one on, no guarantee is broken.

    Outlive may refuse a request, but must not contradict itself.
    """
    assert not reports[name].violations, str(reports[name])


@pytest.mark.parametrize("name", SWEEPS)
def test_sweep_hits_every_point(reports: dict[str, Report], name: str) -> None:
    """Each kill and failure that the crash tests try takes place. Otherwise they would prove nothing about it."""
    report = reports[name]
    assert not report.missed, f"{report}\nmissed: {report.missed}"
    assert report.points >= report.expected


def test_sweeps_have_at_least_a_thousand_points(reports: dict[str, Report]) -> None:
    """All crash tests together try at least a thousand kills and failures. The documentation states this number."""
    assert _points(reports) >= 1000


def test_there_are_at_least_eight_planted_bugs() -> None:
    """There are at least eight planted bugs, which show that the crash tests can find a bug."""
    assert len(MUTANTS) >= 8


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_caught_by_name(hunts: dict[str, Report], name: str) -> None:
    """The crash tests find each planted bug, and name the guarantee that the bug breaks."""
    report = hunts[name]
    assert any(MUTANTS[name].caught_by in text for text in report.violations), str(report)
