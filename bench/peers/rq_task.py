"""The function that RQ calls for each submitted command."""

from __future__ import annotations

import subprocess


def run_command(argv: list[str]) -> tuple[int, str]:
    """Run a command and return its exit code and output."""
    ran = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return ran.returncode, ran.stdout
