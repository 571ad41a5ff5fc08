"""A server over HTTP for the tests of several subjects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.mcp_steps import MAY_RUN, HttpServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support import Bench


@pytest.fixture
def server(bench: Bench) -> Iterator[HttpServer]:
    """Yield a server over HTTP that may launch tasks."""
    found = HttpServer(bench, MAY_RUN)
    yield found
    found.end()
