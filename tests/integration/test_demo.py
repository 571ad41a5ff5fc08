"""The demo, run as a new user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support import Bench

DEMO = Path(__file__).parents[2] / "demo" / "demo.py"


def test_demo_reports_a_lower_bound_when_it_kills_a_keeper(bench: Bench) -> None:
    """After the demo has killed a keeper, it reports effects as a lower bound, and nothing known as unknown."""
    done = subprocess.run(
        [sys.executable, str(DEMO)], cwd=bench.project, env=bench.env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not known" not in done.stdout
    assert "unknown" not in done.stdout
    assert "a lower bound: its keeper died: later changes were not observed" in done.stdout
    assert "  NO " not in done.stdout
