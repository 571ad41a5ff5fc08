"""A loader of compiled modules. It does not import the packages around them.

Importing some packages also imports an event loop. The event loop would take memory in every keeper, and would delay
every command by milliseconds.
"""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder, PathFinder
from importlib.util import module_from_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def load_compiled(package: str, name: str) -> Any:
    """Return a compiled module, without entering it into `sys.modules`."""
    found = PathFinder.find_spec(package)
    for place in (found.submodule_search_locations or ()) if found is not None else ():
        spec = FileFinder(place, (ExtensionFileLoader, EXTENSION_SUFFIXES)).find_spec(name)
        if spec is not None and spec.loader is not None:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise ImportError(f"{package} has no compiled module {name}")
