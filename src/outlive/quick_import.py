"""A fast finder for our own modules, for processes that live a few milliseconds.

The standard machinery spends three times as long on finding the forty small modules of a launch. Modules without fresh
bytecode are left to the standard machinery. Only the command line and processes of our own install this finder (ADR
0004).
"""

from __future__ import annotations

import sys
from _frozen_importlib_external import MAGIC_NUMBER
from marshal import loads
from posix import O_CLOEXEC, O_RDONLY, close, fstat, open, read, stat  # noqa: A004 - `os` would wrap these functions

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
    """A finder of the modules of `outlive` that have fresh bytecode."""

    def find_spec(self, name: str, path: Sequence[str] | None, _: ModuleType | None = None) -> ModuleSpec | None:
        """Return a module's spec and code, or None to leave it to other finders."""
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
        spec.cached = f"{directory}/__pycache__/{last}{_TAG}"  # the import system would compute the same text slowly
        spec.loader_state = found
        if is_package:
            spec.submodule_search_locations = [directory]
        return spec

    def create_module(self, _: ModuleSpec) -> None:
        """Leave the creation of the module to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the code that `find_spec` attached."""
        spec = module.__spec__
        if spec is not None:
            code = loads(spec.loader_state)  # noqa: S302 - as every import does
            spec.loader_state = None  # the module keeps its spec, so a keeper would hold all its code in memory twice
            exec(code, module.__dict__)  # noqa: S102


class FormerNames:
    """The last finder, for modules of `outlive` that only the first version had."""

    def find_spec(self, name: str, _: Sequence[str] | None, __: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a former module, or None."""
        if not name.startswith("outlive.") or name in ("outlive.former_modules", "outlive.entry_points"):
            return None
        try:
            from outlive.former_modules import find_former_module  # noqa: PLC0415 - usually every module is found before
        except ImportError:
            return None  # the installation was deleted, and the error must name the module that was asked for
        return find_former_module(name)


def fresh_code(directory: str, name: str) -> bytes | None:
    """Return the marshalled code of a module, or None without fresh bytecode."""
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
