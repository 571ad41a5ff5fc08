"""The stage that counts the model requests of a client's session with one task.

The clients are the real programs. The stage runs `tests/clients/test_waiting.py`, which counts the requests. If the
clients are not installed (`make test-clients` installs them), nothing is counted.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_TOP = Path(__file__).parents[2]
_TESTS = "tests/clients/test_waiting.py"
MOST = {"short": 3, "long": 3, "never": 2}
TASKS = {"short": "of 5 s", "long": "of 60 s", "never": "that does not end"}


class Session(NamedTuple):
    """The number of requests to the model in one session, and their total characters."""

    client: str
    mode: str
    task: str
    requests: int
    characters: int


def requests(place: Path, say: Callable[[str], None]) -> list[Session]:
    """Count the model requests for every client and mode.

    The result is empty if no client is installed.
    """
    if find_spec("pytest") is None or not (_TOP / "tests/clients/.clients").exists():
        say("model requests: not counted, `make test-clients` installs the clients")
        return []
    say("model requests of every client and mode: about ten minutes")
    found = place / "requests"
    found.touch()
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", _TESTS],
        cwd=_TOP,
        env={**os.environ, "OUTLIVE_TEST_REQUESTS": str(found)},
        stdout=subprocess.DEVNULL,
        check=False,  # a session with too many requests fails the test, but is wanted in the table
    )
    lines = [line.split() for line in found.read_text().splitlines()]
    return [Session(client, mode, task, int(count), int(length)) for client, mode, task, count, length in lines]
