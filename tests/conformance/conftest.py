"""Every ledger that must keep the contract, each as a parameter of the same tests.

A new kind of ledger joins by one line in `STORES`: a function that, given an empty directory,
makes a store and returns what opens it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from outlive.ledger.sqlite import SqliteLedger
from tests.unit.values import NOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from outlive.ledger.contract import Ledger


class LedgerFactory(Protocol):
    """Opens one and the same store, each time anew, as another process would."""

    def __call__(self) -> Ledger:
        """Open it."""


class StoreFactory(Protocol):
    """Makes a store that nobody else has."""

    def __call__(self) -> LedgerFactory:
        """Make one."""


def sqlite_store(directory: Path) -> LedgerFactory:
    """A ledger file in the directory."""
    return lambda: SqliteLedger(str(directory / "ledger.sqlite"), NOW)


STORES: dict[str, Callable[[Path], LedgerFactory]] = {"sqlite": sqlite_store}


@pytest.fixture(params=sorted(STORES))
def store_factory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> StoreFactory:
    """Make fresh stores of one implementation."""
    return lambda: STORES[request.param](tmp_path_factory.mktemp("store"))


@pytest.fixture
def ledger_factory(store_factory: StoreFactory) -> LedgerFactory:
    """Open one store as often as a test likes."""
    return store_factory()


@pytest.fixture
def ledger(ledger_factory: LedgerFactory) -> Iterator[Ledger]:
    """Open an empty ledger."""
    with ledger_factory() as opened:
        yield opened
