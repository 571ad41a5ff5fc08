"""Fixtures of the tests with real programs, which only `make test-programs` runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name(".programs")


@pytest.fixture
def vite() -> str:
    """Return the path of vite. The test is skipped if vite or Node.js is not installed."""
    found = PROGRAMS / "vite/node_modules/.bin/vite"
    if not found.exists() or shutil.which("node") is None:
        pytest.skip("vite is not installed: `make test-programs` does it")
    return str(found)
