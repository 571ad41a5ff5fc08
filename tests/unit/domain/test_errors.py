"""Errors have a fact, a hint, a code for programs, and an exit code."""

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
    "LedgerIncomplete": 3,
    "TooDeep": 2,
    "TooManyWaiting": 3,
    "Broken": 3,
    "OutliveError": 3,
    "NotStarted": 1,
}


def every_error() -> list[type[errors.OutliveError]]:
    """Return all error classes of the domain."""
    return [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.OutliveError)]


def made(kind: type[errors.OutliveError]) -> errors.OutliveError:
    """Make an error of a class."""
    if issubclass(kind, errors.NotStarted):
        return kind("the fact", "the hint", "t7k2m9q4")
    return kind("the fact", "the hint")


@pytest.mark.parametrize("kind", every_error())
def test_every_error_has_the_exit_code_of_the_interface(kind: type[errors.OutliveError]) -> None:
    """Each error has the exit code of the interface: 1 for no start, 2 for a wrong call, 3 for other faults."""
    assert kind.exit_code == EXIT_CODES[kind.__name__]


@pytest.mark.parametrize("kind", every_error())
def test_an_error_states_the_fact_and_a_hint(kind: type[errors.OutliveError]) -> None:
    """Each error has a fact and a hint, and the text of the exception is the fact alone."""
    error = made(kind)
    assert (str(error), error.message, error.hint) == ("the fact", "the fact", "the hint")


def test_every_error_has_a_code_of_its_own() -> None:
    """Each error has a code of its own, so that a program need not read the English text."""
    codes = [kind.code for kind in every_error()]
    assert len(codes) == len(set(codes))
    assert all(code.replace("_", "").isalpha() and code.islower() for code in codes)


def test_every_error_has_exactly_one_of_the_four_base_classes() -> None:
    """Every error but `NotStarted` has exactly one of the four base classes, which say what the caller can do."""
    for kind in set(every_error()) - {errors.OutliveError, errors.NotStarted}:
        assert sum(issubclass(kind, root) for root in ROOTS) == 1


def test_not_started_names_the_task() -> None:
    """`NotStarted` names the task, which is in the ledger although its command never started."""
    assert errors.NotStarted("the fact", "the hint", "t7k2m9q4").task == "t7k2m9q4"
