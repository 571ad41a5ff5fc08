"""Whatever is killed, and whatever call of the disk fails, a task keeps its promises."""

import time

import pytest

from tests.crash import ptrace
from tests.crash.catalogue import MUTANTS, SWEEPS, run_apart
from tests.crash.sweep import Report

UNSUPPORTED = ptrace.supported()
pytestmark = [pytest.mark.crash, pytest.mark.skipif(bool(UNSUPPORTED), reason=f"{UNSUPPORTED}")]


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    """Run every sweep once, two at a time, and print what each saw."""
    began = time.monotonic()
    found = {report.name: report for report in run_apart(SWEEPS)}
    for report in found.values():
        print(report)  # noqa: T201 - shown with -rP, and with a failure
    print(f"{_points(found)} points in {time.monotonic() - began:.0f} s")  # noqa: T201
    return found


@pytest.fixture(scope="module")
def hunts() -> dict[str, Report]:
    """Hunt every planted bug once, two at a time."""
    return {report.name: report for report in run_apart(MUTANTS)}


def _points(found: dict[str, Report]) -> int:
    return sum(report.points for report in found.values())


@pytest.mark.parametrize("name", [n for n, s in SWEEPS.items() if not s.also and not s.errno])
def test_no_single_kill_breaks_a_promise(reports: dict[str, Report], name: str) -> None:
    """Before any call of any process: one run at most, one ending, one notice, the true code.

    And told: no ending is lost, and one is told again only under its id, by whom it was not on record.
    """
    assert not reports[name].violations, str(reports[name])


@pytest.mark.parametrize("name", [n for n, s in SWEEPS.items() if s.also])
def test_no_double_kill_breaks_a_promise(reports: dict[str, Report], name: str) -> None:
    """Two at one instant: only of keeper and witness together may an ending be lost."""
    assert not reports[name].violations, str(reports[name])


@pytest.mark.parametrize("name", [n for n, s in SWEEPS.items() if s.errno])
def test_no_failing_disk_breaks_a_promise(reports: dict[str, Report], name: str) -> None:
    """A full or broken disk, for one call or from then on: a refusal is fine, a contradiction not."""
    assert not reports[name].violations, str(reports[name])


@pytest.mark.parametrize("name", SWEEPS)
def test_every_point_is_really_hit(reports: dict[str, Report], name: str) -> None:
    """A sweep that misses its points proves nothing."""
    report = reports[name]
    assert not report.missed, f"{report}\nmissed: {report.missed}"
    assert report.points >= report.expected


def test_there_are_more_than_a_thousand_points(reports: dict[str, Report]) -> None:
    """The number that the documentation may speak of."""
    assert _points(reports) >= 1000


def test_there_are_at_least_eight_planted_bugs() -> None:
    """A guard that was never seen failing is not known to guard."""
    assert len(MUTANTS) >= 8


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_caught_by_name(hunts: dict[str, Report], name: str) -> None:
    """The sweep that should see this bug does see it, as the promise that it breaks."""
    report = hunts[name]
    assert any(MUTANTS[name].caught_by in text for text in report.violations), str(report)
