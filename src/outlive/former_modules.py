"""Modules that exist only for running processes of the first version.

After an upgrade, a sleeping keeper of the first version, or a program that uses the SDK of that version, imports these
modules by name. Processes of later versions import only `entry_points.py`.
"""

from __future__ import annotations

import sys

from outlive.entry_points import load_keeper, serve_spawner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, NoReturn
else:
    ModuleSpec = type(sys.__spec__)


def find_former_module(name: str) -> ModuleSpec | None:
    """Return the spec of a module that only the first version had, or None."""
    if name not in _FUNCTIONS:
        return None
    return ModuleSpec(name, FormerModule(), is_package=not _FUNCTIONS[name])  # type: ignore[arg-type]


class FormerModule:
    """The loader for modules that only the first version had.

    It fills such a module with its functions from `_FUNCTIONS`.
    """

    def create_module(self, _: ModuleSpec) -> None:
        """Leave the creation of the module to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        """Add the functions that `_FUNCTIONS` lists for a module to this module."""
        module.__dict__.update(_FUNCTIONS[module.__name__])


def _wake(note: int) -> NoReturn:
    load_keeper()(note)


_FUNCTIONS: dict[str, dict[str, Callable[[int], Any]]] = {
    "outlive.service.queue": {"wake": _wake},
    "outlive.client": {},
    "outlive.client.spawner": {"serve": serve_spawner},
}
