"""Steps that tests of a task's effects share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support import wait_until

if TYPE_CHECKING:
    from tests.support import Bench


def paths(bench: Bench, *names: str) -> list[str]:
    """Return the names as absolute paths in the project."""
    return [str(bench.project / name) for name in names]


def window_on(bench: Bench, task: str, *names: str) -> Any:
    """Return the open window of a task once it contains all of these paths.

    Git removes one file after the other, so the window may contain only some of them at first.
    """

    def found() -> Any:
        windows = bench.json("effects", task, "--open")["windows"]
        return next((each for each in windows if set(names) <= set(each["paths"])), None)

    return wait_until(found, f"the window on {', '.join(names)}")
