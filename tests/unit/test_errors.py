"""Errors: a fact, a hint, a code for programs, and the exit code of the interface."""

from __future__ import annotations

import pytest

from outlive.domain import errors

ROOTS = (errors.UserError, errors.Conflict, errors.Unavailable, errors.Broken)
EXIT_CODES = {
    "UserError": 2,
    "UnknownTask": 2,
    "AmbiguousId": 2,
    "Conflict": 2,
    "KeyTaken": 2,
    "TriedAgain": 2,
    "Unavailable": 3,
    "NewerLedger": 3,
    "DiskFull": 3,
    "TooDeep": 2,
    "TooManyWaiting": 3,
    "Broken": 3,
    "OutliveError": 3,
    "NotStarted": 1,
}


def every_error() -> list[type[errors.OutliveError]]:
    """Every error that the domain knows."""
    return [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.OutliveError)]


def made(kind: type[errors.OutliveError]) -> errors.OutliveError:
    """One of its kind."""
    if issubclass(kind, errors.NotStarted):
        return kind("the fact", "the hint", "t7k2m9q4")
    return kind("the fact", "the hint")


@pytest.mark.parametrize("kind", every_error())
def test_every_error_has_the_exit_code_of_the_interface(kind: type[errors.OutliveError]) -> None:
    """2: mend the call; 3: the world or we; 1: the command could not be started."""
    assert kind.exit_code == EXIT_CODES[kind.__name__]


@pytest.mark.parametrize("kind", every_error())
def test_an_error_states_the_fact_and_a_hint(kind: type[errors.OutliveError]) -> None:
    """Two lines for a person; the message alone is what the exception says."""
    error = made(kind)
    assert (str(error), error.message, error.hint) == ("the fact", "the fact", "the hint")


def test_every_error_has_a_code_of_its_own() -> None:
    """A program can tell them apart without reading English."""
    codes = [kind.code for kind in every_error()]
    assert len(codes) == len(set(codes))
    assert all(code.replace("_", "").isalpha() and code.islower() for code in codes)


def test_every_error_belongs_to_one_root() -> None:
    """What the caller can do is decided by the root; only a failed start stands alone."""
    for kind in set(every_error()) - {errors.OutliveError, errors.NotStarted}:
        assert sum(issubclass(kind, root) for root in ROOTS) == 1


def test_a_command_that_never_started_still_has_a_record() -> None:
    """Its error names the task."""
    assert errors.NotStarted("the fact", "the hint", "t7k2m9q4").task == "t7k2m9q4"
