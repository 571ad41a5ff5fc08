"""Steps of tests that look at what a task touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support import wait_until

if TYPE_CHECKING:
    from tests.support import Bench


def paths(bench: Bench, *names: str) -> list[str]:
    """The names as paths of the project."""
    return [str(bench.project / name) for name in names]


def window_on(bench: Bench, task: str, *names: str) -> Any:
    """The open window of a task, once it holds all of these: git takes one file after the other away."""

    def found() -> Any:
        windows = bench.json("effects", task, "--open")["windows"]
        return next((each for each in windows if set(names) <= set(each["paths"])), None)

    return wait_until(found, f"the window on {', '.join(names)}")
