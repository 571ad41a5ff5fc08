"""The home directory of a user, in which the tests configure clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench

OPENCLAW = ("OPENCLAW_STATE_DIR", "OPENCLAW_CONFIG_PATH")


@pytest.fixture
def user(bench: Bench) -> Path:
    """Return the home directory of the user."""
    home = bench.root / "user"
    home.mkdir()
    bench.env["HOME"] = str(home)
    for name in (
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "GEMINI_CLI_HOME",
        "XDG_CONFIG_HOME",
        "OPENCODE_CONFIG_DIR",
        *OPENCLAW,
    ):
        bench.env.pop(name, None)
    return home
