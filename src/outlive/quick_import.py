"""A fast finder of Outlive's modules, for processes that run only briefly.

Python's own finders need three times as long to find the forty small modules of a launch. Python's finders are still
used for modules whose bytecode is missing or out of date. Only the command line and Outlive's own processes install
this finder (ADR 0004).
"""

from __future__ import annotations

import sys
from _frozen_importlib_external import MAGIC_NUMBER
from marshal import loads
from posix import O_CLOEXEC, O_RDONLY, close, fstat, open, read, stat  # noqa: A004 - this module does not use the built-in `open`

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
else:
    ModuleSpec = type(sys.__spec__)

_HEADER = 16
_TAG = f".{sys.implementation.cache_tag}.pyc"


class QuickFinder:
    """A finder of the modules of `outlive` whose bytecode is up to date."""

    def find_spec(self, name: str, path: Sequence[str] | None, _: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a module, or None to let other finders look for the module."""
        if not path or not name.startswith("outlive."):
            return None
        directory, last = path[0], name.rpartition(".")[2]
        found = fresh_code(directory, last)
        is_package = found is None
        if is_package:
            directory = f"{directory}/{last}"
            last = "__init__"
            found = fresh_code(directory, last)
        if found is None:
            return None
        spec = ModuleSpec(name, self, origin=f"{directory}/{last}.py", is_package=is_package)  # type: ignore[arg-type]
        spec.has_location = True
        spec.cached = f"{directory}/__pycache__/{last}{_TAG}"  # computing this path would take the import system longer
        spec.loader_state = found
        if is_package:
            spec.submodule_search_locations = [directory]
        return spec

    def create_module(self, _: ModuleSpec) -> None:
        """Leave the creation of the module to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the code of a module, which `find_spec` attached to the module's spec."""
        spec = module.__spec__
        if spec is not None:
            code = loads(spec.loader_state)  # noqa: S302 - the import system loads all bytecode with `loads`, too
            spec.loader_state = None  # the module keeps its spec, so the code would stay in memory twice
            exec(code, module.__dict__)  # noqa: S102


class FormerNames:
    """The last finder, which finds modules that only the first version had."""

    def find_spec(self, name: str, _: Sequence[str] | None, __: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a module that only the first version had, or None."""
        if not name.startswith("outlive.") or name in ("outlive.former_modules", "outlive.entry_points"):
            return None
        try:
            from outlive.former_modules import find_former_module  # noqa: PLC0415 - this import is needed only if all other finders have failed
        except ImportError:
            return None  # the installation was deleted, and the import error must name the requested module
        return find_former_module(name)


def fresh_code(directory: str, name: str) -> bytes | None:
    """Return the marshalled code of a module.

    Returns None if the module's bytecode is missing or out of date.
    """
    try:
        source = stat(f"{directory}/{name}.py")
        fd = open(f"{directory}/__pycache__/{name}{_TAG}", O_RDONLY | O_CLOEXEC)
    except OSError:
        return None
    try:
        content = read(fd, fstat(fd).st_size)
    finally:
        close(fd)
    stamp = int(source.st_mtime).to_bytes(4, "little") + (source.st_size & 0xFFFFFFFF).to_bytes(4, "little")
    if content[:_HEADER] != MAGIC_NUMBER + bytes(4) + stamp:
        return None
    return content[_HEADER:]


def install() -> None:
    """Put `QuickFinder` before all other finders, and `FormerNames` after them."""
    sys.meta_path.insert(0, QuickFinder())
    sys.meta_path.append(FormerNames())
