"""Importing our own modules in a third of the time, for processes that live a few milliseconds.

A launch imports some forty small modules, and the general machinery spends more on finding each
of them than on running it. Ours are where our package is, compiled, or this steps aside and the
general machinery does it. Installed by the command line and the spawner only; see ADR 0004.
"""

from __future__ import annotations

import sys
from _frozen_importlib_external import MAGIC_NUMBER
from marshal import loads
from posix import O_CLOEXEC, O_RDONLY, close, fstat, open, read, stat  # noqa: A004 - `os` wraps what is needed here

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
    """Finds `outlive.*` beside its parent package, if its bytecode is fresh."""

    def find_spec(self, name: str, path: Sequence[str] | None, _: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of one of our modules with its code attached; None leaves it to the others."""
        if path is None or not name.startswith("outlive."):
            return None
        directory, last = path[0], name.rpartition(".")[2]
        found = _fresh_code(directory, last)
        is_package = found is None
        if is_package:
            directory = f"{directory}/{last}"
            last = "__init__"
            found = _fresh_code(directory, last)
        if found is None:
            return None
        spec = ModuleSpec(name, self, origin=f"{directory}/{last}.py", is_package=is_package)  # type: ignore[arg-type]
        spec.has_location = True
        spec.loader_state = found
        if is_package:
            spec.submodule_search_locations = [directory]
        return spec

    def create_module(self, _: ModuleSpec) -> None:
        """An ordinary module will do."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the code that was found."""
        spec = module.__spec__
        if spec is not None:
            code = loads(spec.loader_state)  # noqa: S302 - as every import does
            spec.loader_state = None  # the module keeps its spec, and a keeper would keep a second copy of all its code
            exec(code, module.__dict__)  # noqa: S102


def _fresh_code(directory: str, name: str) -> bytes | None:
    """The marshalled code of a module, if its bytecode belongs to its source as it is now."""
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
    """Look here first from now on."""
    sys.meta_path.insert(0, QuickFinder())
