"""The ledgers that must keep the contract. Every conformance test runs with each ledger.

A new kind of ledger needs one entry in `STORES`: a function that creates a store in an empty directory. This function
returns another function, which opens the store.
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
    """A function that opens the same store anew at each call, like another process."""

    def __call__(self) -> Ledger:
        """Open the store."""


class StoreFactory(Protocol):
    """A function that creates a new store at each call."""

    def __call__(self) -> LedgerFactory:
        """Create a store, and return the function that opens it."""


def sqlite_store(directory: Path) -> LedgerFactory:
    """Return a function that opens a SQLite ledger in the directory."""
    return lambda: SqliteLedger(str(directory / "ledger.sqlite"), NOW)


STORES: dict[str, Callable[[Path], LedgerFactory]] = {"sqlite": sqlite_store}


@pytest.fixture(params=sorted(STORES))
def store_factory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> StoreFactory:
    """Return a function that creates new stores of one kind."""
    return lambda: STORES[request.param](tmp_path_factory.mktemp("store"))


@pytest.fixture
def ledger_factory(store_factory: StoreFactory) -> LedgerFactory:
    """Return a function that opens the same store at each call."""
    return store_factory()


@pytest.fixture
def ledger(ledger_factory: LedgerFactory) -> Iterator[Ledger]:
    """Open an empty ledger."""
    with ledger_factory() as opened:
        yield opened
