"""The operation that a system call is about to do, and the paths that it names."""

from __future__ import annotations

import _socket as socket
import os
from errno import EFAULT
from stat import S_ISLNK

from outlive.linux.seccomp import CALLS, CHANGING_FLAGS, SOCKETCALL, SOCKETCALL_CONNECT
from outlive.observe.path_state import ABSENT, look
from outlive.observe.seccomp.path_resolution import NO_NAME, PathResolver, name_within
from outlive.observe.seccomp.process_memory import ProcessMemory
from outlive.observe.seccomp.tracer_conflicts import loss_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from outlive.observe.path_state import Look

    Places = tuple[tuple[int | None, int], ...]
    Paths = Sequence[tuple[str, Look | None]]
    """Each path with the result of `look`, or None if `look` was not called yet."""

HERE = 0xFFFFFF9C  # AT_FDCWD: the current directory
FRESH = os.O_CREAT | os.O_EXCL
_I386 = 0x40000003
_NEW_MOUNTS = 0x20000  # CLONE_NEWNS: a new mount namespace
_IN_ROOT = 16  # RESOLVE_IN_ROOT: a directory is the root of the path
_LONGEST_ADDRESS = 128
_PAGE, _LONGEST_BESIDE = 4096, 256

# The arguments with paths, as pairs: the number of the argument with the directory of the path (None for the current
# directory), and the number of the argument with the path.
_PATHS: dict[str, Places] = {
    **dict.fromkeys(("open", "creat", "truncate", "truncate64", "unlink", "rmdir", "mkdir", "mknod"), ((None, 0),)),
    **dict.fromkeys(("openat", "openat2", "unlinkat", "mkdirat", "mknodat", "execveat"), ((0, 1),)),
    **dict.fromkeys(("rename", "link"), ((None, 0), (None, 1))),
    **dict.fromkeys(("renameat", "renameat2", "linkat"), ((0, 1), (2, 3))),
    "symlink": ((None, 1),),
    "symlinkat": ((1, 2),),
    "execve": ((None, 0),),
}
_OPERATIONS = {
    **dict.fromkeys(("open", "openat", "openat2", "creat", "truncate", "truncate64"), "write"),
    **dict.fromkeys(("rename", "renameat", "renameat2"), "rename"),
    **dict.fromkeys(("unlink", "unlinkat", "rmdir"), "remove"),
    **dict.fromkeys(("mkdir", "mkdirat"), "mkdir"),
    **dict.fromkeys(("link", "linkat", "symlink", "symlinkat", "mknod", "mknodat", "bind", SOCKETCALL), "make"),
    **dict.fromkeys(("execve", "execveat"), "exec"),
    **dict.fromkeys(("chdir", "fchdir"), "turn"),
    "connect": "connect",
}
_DECIDING = "fanotify_init"
# Calls whose effects cannot be followed. The file of observed changes then says that changes may be missing.
_GAPS = {
    _DECIDING: "it decides which processes may open files (fanotify)",
    "io_uring_setup": "it used io_uring, whose changes are not seen",
    "open_by_handle_at": "it opened files by handle, without a name",
    **{
        name: f"it changed where paths lead ({name})"
        for name in ("mount", "umount2", "move_mount", "pivot_root", "chroot", "setns")
    },
}
_OF_NAMES = frozenset(("rename", "remove", "mkdir", "make"))
_TURNING = frozenset(("chdir", "fchdir", "rename", "renameat", "renameat2", "symlink", "symlinkat", *_GAPS))


class Kind:
    """The facts about one kind of system call. Calls of one kind share one object."""

    __slots__ = (
        *("decides", "flags_at", "gap", "is_of_names", "is_plain", "links", "name", "operation", "places"),
        *("supervises", "told_as", "turns"),
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.operation = _OPERATIONS.get(name, "gap")
        self.told_as = "connect" if name == SOCKETCALL else self.operation
        """The operation in the recorded line, if this line has a text instead of paths."""
        self.places = _PATHS.get(name, ())
        self.gap = _GAPS.get(name, "")
        self.flags_at = {"open": 1, "openat": 2}.get(name)
        self.is_of_names = self.operation in _OF_NAMES
        self.is_plain = bool(self.places) and self.operation != "exec" and name != "openat2"
        """Whether its paths (and the flags of an open) show what the call does."""
        self.turns = name in _TURNING
        """Whether the call may change to which file a path leads, as a rename can."""
        self.links = name in ("link", "linkat")
        """Whether the call makes a hard link.

        Only a hard link to a symbolic link can change where paths lead. So only such a link clears the cache of
        resolved paths. Git makes a hard link for every object, and clearing the cache each time would be slow.
        """
        self.supervises = name in ("seccomp", "prctl")
        """Whether the call may install a seccomp filter."""
        self.decides = name == _DECIDING
        """Whether the call lets the task delay other processes that open files.

        The observer is such a process, so it then stops opening files.
        """


def _is_link(path: str, there: Look | None) -> bool:
    """Return whether a symbolic link is at a path."""
    found = look(path) if there is None else there
    return not isinstance(found, str) and S_ISLNK(found.st_mode)


KINDS = {(machine, number): Kind(name) for machine, known in CALLS.items() for name, number in known.items()}
OPENATS = frozenset((machine, known["openat"]) for machine, known in CALLS.items())


class Calls:
    """A reader of system calls, with a cache for the threads that make them."""

    def __init__(self, on_stranger: Callable[[int], object] = lambda _: None) -> None:
        self.memory = ProcessMemory(on_stranger)
        self._names = PathResolver()

    def replace(self, at: int, thread: int) -> None:
        """Clear what is cached about a process that is about to execute a program.

        `at` is the time of the call.
        """
        self.memory.forget(thread)
        self._names.forget(at, is_turning=True)

    def beside(self, at: int, thread: int, address: int) -> str | None:
        """Read a relative path from a thread's memory, and return the absolute path.

        `address` is the place of the path in the memory. Returns None if the directory of the path is not cached.
        """
        names = self._names
        if at > names.until:
            return None
        try:
            here = names.here[thread]
            text = os.pread(self.memory.opened[thread], min(_LONGEST_BESIDE, _PAGE - address % _PAGE), address)
        except (KeyError, OSError):
            return None
        end = text.find(b"\0")
        if end < 0:
            return None
        path = f"{here}/{text[:end].decode('utf-8', 'surrogateescape')}"
        above, _, name = path.rpartition("/")
        return path if above in names.straight and name not in NO_NAME else None

    def understand(self, at: int, kind: Kind, thread: int, machine: int, arguments: Sequence[int]) -> tuple[str, Paths]:
        """Return the text to record for a system call, and the call's paths.

        The text is empty for a call that is recorded by its paths. Both results are empty for a call that is not
        recorded. `at` is the time of the call in microseconds, by any clock. `machine` is the processor type, such as
        that of x86-64.
        """
        if kind.turns or at > self._names.until:
            self._names.forget(at, is_turning=kind.turns)
            self.memory.age(at)
        if kind.is_plain:
            paths = self._paths(kind, thread, arguments, 0 if kind.flags_at is None else arguments[kind.flags_at])
            if kind.links and _is_link(*paths[0]):
                self._names.forget(at, is_turning=True)
            return "", paths
        if kind.gap or kind.operation == "turn":
            # If the kind of namespace is 0, the call setns may enter a mount namespace, in which paths lead to other
            # files.
            is_other = kind.name == "setns" and arguments[1] and not arguments[1] & _NEW_MOUNTS
            return "" if is_other else kind.gap, ()
        if kind.operation == "connect":
            return self._address(thread, arguments), ()
        if kind.supervises:
            words, program = loss_of(self.memory, thread, machine, kind.name, arguments)
            return words, ((program, None),)[: bool(words)]
        if kind.name == "bind":
            return "", self._socket_path(thread, arguments)
        if kind.name == SOCKETCALL:
            return self._socketcall(thread, arguments)
        if kind.operation == "exec":
            paths = self._paths(kind, thread, arguments, 0)
            return self._words(kind, thread, machine, arguments), paths
        return "", self._openat2(kind, thread, arguments)

    def _openat2(self, kind: Kind, thread: int, arguments: Sequence[int]) -> Paths:
        """Return the path of an `openat2` call, or nothing if the call only reads.

        The kernel's filter reports all `openat2` calls, because it cannot check their flags: the flags are in the
        memory of the process.
        """
        how = self.memory.read(thread, arguments[2], 24)
        flags, resolve = int.from_bytes(how[:8], "little"), int.from_bytes(how[16:], "little")
        if not flags & CHANGING_FLAGS:
            return ()
        text = self.memory.text(thread, arguments[1]) if resolve & _IN_ROOT else None
        if text is None:
            return self._paths(kind, thread, arguments, flags)
        where, name = arguments[0] & 0xFFFFFFFF, text.decode("utf-8", "surrogateescape")
        follows = not flags & os.O_NOFOLLOW and flags & FRESH != FRESH
        return (name_within(thread, None if where == HERE else where, name, follows=follows),)

    def _paths(self, kind: Kind, thread: int, arguments: Sequence[int], flags: int) -> Paths:
        """Return the paths that a system call names.

        The flags of the call decide whether symbolic links are followed.
        """
        found: list[tuple[str, Look | None]] = []
        writes_to_what_is_there = kind.operation == "write" and flags & FRESH != FRESH
        follows = writes_to_what_is_there and not flags & os.O_NOFOLLOW
        for place, at in kind.places:
            where = None if place is None else arguments[place] & 0xFFFFFFFF
            text = self.memory.text(thread, arguments[at])
            if text is None:
                raise OSError(EFAULT, "no path")
            name = text.decode("utf-8", "surrogateescape")
            path, there = self._names.of(thread, None if where == HERE else where, name, follows)
            # The stat result of a written file is needed even if its content is not recorded: the file may have further
            # hard links.
            found.append((path, look(path) if there is None and writes_to_what_is_there else there))
        return found

    def _words(self, kind: Kind, thread: int, machine: int, arguments: Sequence[int]) -> str:
        """Return the command line of an exec call, cut to a limit."""
        found = self.memory.words(thread, arguments[2 if kind.name == "execveat" else 1], 4 if machine == _I386 else 8)
        self.memory.forget(thread)
        return " ".join(map(os.fsdecode, found)) or "?"

    def _socketcall(self, thread: int, arguments: Sequence[int]) -> tuple[str, Paths]:
        """Return the text or the path of a bind or connect made by `socketcall`.

        The text is for a connect, and the path for a bind.
        """
        content = self.memory.read(thread, arguments[1], 12)
        inner = [int.from_bytes(content[at : at + 4], "little") for at in (0, 4, 8)]
        if arguments[0] == SOCKETCALL_CONNECT:
            return self._address(thread, inner), ()
        return "", self._socket_path(thread, inner)

    def _address(self, thread: int, arguments: Sequence[int]) -> str:
        """Return the address to which a `connect` call connects, as text.

        The text is empty if the call ends a connection, or names a missing socket file.
        """
        content = self.memory.read(thread, arguments[1], min(arguments[2] & 0xFFFFFFFF, _LONGEST_ADDRESS))
        family = int.from_bytes(content[:2], "little")
        port = int.from_bytes(content[2:4], "big")
        if family == socket.AF_INET:
            return f"{socket.inet_ntop(family, content[4:8])}:{port}"
        if family == socket.AF_INET6:
            return f"[{socket.inet_ntop(family, content[8:24])}]:{port}"
        if family == socket.AF_UNIX:
            if content[2:3] == b"\0":
                return "unix:" + os.fsdecode(b"@" + content[3:])
            name = content[2:].split(b"\0")[0].decode("utf-8", "surrogateescape")
            return "" if self._names.of(thread, None, name, True)[1] == ABSENT else f"unix:{name}"
        return "" if family == socket.AF_UNSPEC else f"family {family}"

    def _socket_path(self, thread: int, arguments: Sequence[int]) -> Paths:
        """Return the path of the socket file that a `bind` call creates.

        A port or an abstract socket has no path.
        """
        content = self.memory.read(thread, arguments[1], min(arguments[2] & 0xFFFFFFFF, _LONGEST_ADDRESS))
        name = content[2:].split(b"\0")[0]
        if int.from_bytes(content[:2], "little") != socket.AF_UNIX or not name:
            return ()
        return (self._names.of(thread, None, name.decode("utf-8", "surrogateescape"), False),)
