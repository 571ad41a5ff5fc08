"""A copy of Outlive's code for sleeping processes. Upgrades do not change it.

While a process sleeps, an upgrade may replace the installed modules, or an uninstall may delete them. So the process
calls `carry` before it sleeps. From then on, the process imports each further module of Outlive from the copy. All
processes of one version share one file in the state directory. A process that cannot write this file keeps the copy in
anonymous memory. Each process keeps the file open, so a process can still read the copy after the file was deleted.

The process keeps an index in its own memory. The index has a digest of every module. So a program that may write to the
state directory, such as a command in a sandbox, cannot change the code that a process outside the sandbox runs.

`keeper.hibernate` runs this module in a new interpreter before that interpreter can import any other module of Outlive.
So the top level of this module imports no other module of Outlive.
"""

from __future__ import annotations

import os
import sys
from _blake2 import blake2b  # importing `hashlib` would also load OpenSSL
from _frozen_importlib_external import MAGIC_NUMBER, ExtensionFileLoader
from marshal import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    Entry = tuple[int, int, bytes, bool, bool]
    Note = dict[str, object]
else:
    ModuleSpec = type(sys.__spec__)

_DIGEST = 16
_FEWEST_DESCRIPTORS = 64  # if the limit of open files is lower, no copy is made, because tasks need the descriptors
_NOT_COPIED = ("__pycache__", "install", "mcp")  # no sleeping process needs modules of these directories
_carried: CodeCopy | None = None


class CodeCopy:
    """A finder of Outlive's modules, which are all in one open file.

    An index lists the modules. For each module, the index has the offset, the length and the digest of the content,
    whether the module is a package, and whether the content is source text.
    """

    def __init__(self, note: Note) -> None:
        """Use the descriptors in `note`, which describes the copy of the code.

        They must be open in this process.
        """
        self.note = note
        self._index: dict[str, Entry] = note["index"]  # type: ignore[assignment]
        self._directory = str(note["directory"])
        self._fd: int = note["fd"]  # type: ignore[assignment]
        self._inode = os.fstat(self._fd).st_ino
        self._apsw: tuple[int, str] | None = note["apsw"]  # type: ignore[assignment]

    def fds(self) -> tuple[int, ...]:
        """Return the descriptors of the copy, which a forked process must not close."""
        return (self._fd,) if self._apsw is None else (self._fd, self._apsw[0])

    def is_open(self) -> bool:
        """Return whether the descriptor of the copied code is still open in this process."""
        try:
            return os.fstat(self._fd).st_ino == self._inode
        except OSError:
            return False

    def find_spec(self, name: str, _: Sequence[str] | None = None, __: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a module, or None to let other finders look for the module."""
        if name == "apsw":
            return self._spec_of_apsw()
        entry = self._index.get(name)
        content = None if entry is None else self._read(entry)
        if entry is None or content is None:
            return None
        path = "/".join((self._directory, *name.split(".")[1:]))
        origin = f"{path}/__init__.py" if entry[3] else f"{path}.py"
        spec = ModuleSpec(name, self, origin=origin, is_package=entry[3])  # type: ignore[arg-type]
        spec.has_location = True
        spec.loader_state = content
        if entry[3]:
            spec.submodule_search_locations = [path]
        return spec

    def create_module(self, _: ModuleSpec) -> None:
        """Leave the creation of the module to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the code of a module, which `find_spec` attached to the module's spec."""
        spec = module.__spec__
        if spec is not None:
            content, spec.loader_state = spec.loader_state, None
            is_source = self._index[spec.name][4]
            code = compile(content, str(spec.origin), "exec") if is_source else loads(content)  # noqa: S302 - `_read` checked the digest of the bytecode
            exec(code, module.__dict__)  # noqa: S102

    def own_code(self) -> bytes:
        """Return the bytecode of `code_copy` itself, read from the copy.

        Raises OSError if the copy was changed.
        """
        entry = self._index[__name__]
        content = self._read(entry)
        if content is None:
            raise OSError("the copy of the code was changed")
        return dumps(compile(content, __name__, "exec")) if entry[4] else content

    def _read(self, entry: Entry) -> bytes | None:
        try:
            content = os.pread(self._fd, entry[1], entry[0])
        except OSError:
            return None
        return content if blake2b(content, digest_size=_DIGEST).digest() == entry[2] else None

    def _spec_of_apsw(self) -> ModuleSpec | None:
        if self._apsw is None:
            return None
        link = f"/proc/self/fd/{self._apsw[0]}"
        if not os.path.exists(link):
            return None
        spec = ModuleSpec("apsw", _ApswLoader(self._apsw[1], link), origin=link)
        spec.has_location = True
        spec.submodule_search_locations = [os.path.dirname(self._apsw[1])]
        return spec


class _ApswLoader(ExtensionFileLoader):
    """A loader of apsw, the SQLite library, from a descriptor of its shared object.

    The module's `__file__` is the path of the original file.
    """

    def __init__(self, path: str, link: str) -> None:
        super().__init__("apsw", link)
        self._real = path

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        module.__file__ = self._real


def carry(home: str) -> CodeCopy | None:
    """Make this process import Outlive's modules from a copy from now on.

    `home` is the state directory, in which the copy is stored. Returns None if no copy can be made.
    """
    global _carried  # noqa: PLW0603 - a process uses at most one copy
    if _carried is None or not _carried.is_open():
        if os.sysconf("SC_OPEN_MAX") < _FEWEST_DESCRIPTORS:
            return None
        try:
            _carried = install(_copy(home))
        except OSError:
            return None
    return _carried


def carry_in_own_process(home: str) -> None:
    """Call `carry`, unless this process is a program that uses Outlive's SDK."""
    from outlive.quick_import import QuickFinder  # noqa: PLC0415 - the top level must not import other modules of Outlive

    if any(isinstance(finder, QuickFinder) for finder in sys.meta_path):
        carry(home)


def is_carried() -> bool:
    """Return whether this process imports Outlive's modules from a copy."""
    return _carried is not None


def carried_fds() -> tuple[int, ...]:
    """Return the descriptors of the copy of the code from which this process imports.

    The result is empty if there is no copy.
    """
    return () if _carried is None else _carried.fds()


def install(note: Note) -> CodeCopy:
    """Make this process import Outlive's modules from the copy that `note` describes.

    Raises OSError if a Python of another version made the copy.
    """
    global _carried  # noqa: PLW0603 - a process uses at most one copy
    if note["magic"] != MAGIC_NUMBER:
        raise OSError("the interpreter was replaced by one of another version")
    sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, CodeCopy)]
    _carried = CodeCopy(note)
    sys.meta_path.insert(0, _carried)
    return _carried


def _copy(home: str) -> Note:
    """Copy the code of every module of Outlive. Return a description of the copy.

    The description contains descriptors that are open in this process. `home` is the state directory.
    """
    directory = os.path.dirname(os.path.abspath(__file__))
    index: dict[str, Entry] = {}
    parts: list[bytes] = []
    _gather(directory, "outlive", index, parts)
    apsw = _open_apsw()
    try:
        fd = _open_file(home, b"".join(parts))
    except OSError:
        if apsw is not None:
            os.close(apsw[0])
        raise
    return {"index": index, "directory": directory, "fd": fd, "apsw": apsw, "magic": MAGIC_NUMBER}


def _gather(directory: str, package: str, index: dict[str, Entry], parts: list[bytes]) -> None:
    """Read the bytecode of every module of a directory.

    The content is added to `parts`, and its place to `index`. If a module's bytecode is missing or out of date, the
    source of the module is read instead.
    """
    from outlive.quick_import import fresh_code  # noqa: PLC0415 - the top level must not import other modules of Outlive

    start = sum(map(len, parts))
    for name in sorted(os.listdir(directory)):
        last, is_module = name.removesuffix(".py"), name.endswith(".py")
        if not is_module:
            if name not in _NOT_COPIED and os.path.exists(f"{directory}/{name}/__init__.py"):
                _gather(f"{directory}/{name}", f"{package}.{name}", index, parts)
                start = sum(map(len, parts))
            continue
        content = fresh_code(directory, last)
        is_source = content is None
        if content is None:
            with open(f"{directory}/{name}", "rb") as file:
                content = file.read()
        full = package if last == "__init__" else f"{package}.{last}"
        digest = blake2b(content, digest_size=_DIGEST).digest()
        index[full] = (start, len(content), digest, last == "__init__", is_source)
        parts.append(content)
        start += len(content)


def _open_apsw() -> tuple[int, str] | None:
    """Open the shared object file of apsw. Return None if apsw has no such file."""
    path = getattr(sys.modules.get("apsw"), "__file__", None)
    if path is None or not path.endswith(".so"):
        return None
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC), path


def _open_file(home: str, content: bytes) -> int:
    """Return a descriptor of the shared file, and write the file if necessary.

    `content` is the copied code, and `home` the state directory. If the shared file cannot be written, a descriptor of
    anonymous memory with the same content is returned.
    """
    try:
        return _open_shared(f"{home}/code", content)
    except OSError:
        fd = os.memfd_create("outlive-code")
        os.write(fd, content)
        return fd


def _open_shared(directory: str, content: bytes) -> int:
    from outlive.bundle.atomic_file import write_whole  # noqa: PLC0415 - the top level must not import other modules of Outlive

    name = blake2b(content, digest_size=_DIGEST).hexdigest()
    path = f"{directory}/{name}"
    fd = _opened_if(path, content)
    if fd is not None:
        return fd
    if not os.path.isdir(directory):
        os.makedirs(directory, 0o700, exist_ok=True)
    try:
        write_whole(path, content)
        for other in os.listdir(directory):
            if other != name:
                os.unlink(f"{directory}/{other}")  # the copy of another version, whose processes keep the file open
    except FileNotFoundError:
        pass  # another process of this version wrote the file and deleted the other copies at the same time
    fd = _opened_if(path, content)
    if fd is None:
        raise OSError("the copy of the code was changed")
    return fd


def _opened_if(path: str, content: bytes) -> int | None:
    """Open a file if it exists and has the given content. Otherwise return None."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    if os.fstat(fd).st_size == len(content) and os.pread(fd, len(content), 0) == content:
        return fd
    os.close(fd)
    return None
