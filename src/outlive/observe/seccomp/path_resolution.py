"""Resolution of a path to a file, as the kernel does it for the calling process.

Two facts are cached for a few milliseconds: the current directory of each thread, and the directories that are reached
without a symbolic link. Calls of the task that could change these facts clear the cache. A change by another process
may be noticed a few milliseconds late.
"""

from __future__ import annotations

import os
from errno import ENAMETOOLONG, ENOENT, ENOTDIR
from stat import S_ISLNK

from outlive.linux.syscalls import open_straight, open_within
from outlive.observe.path_state import ABSENT, look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.observe.path_state import Look

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_MOST_LINKS = 40
_SELF = ("/proc/self/", "/proc/thread-self/")
_DELETED = " (deleted)"
NO_NAME, _NO_NAMES = ("", ".", ".."), ("/", "/.", "/..")
_NOTHING_THERE = (-ENOENT, -ENOTDIR, -ENAMETOOLONG)
_MOMENT_US = 5_000


def base_of(thread: int, place: int | None) -> str:
    """Return a thread's current directory, or the directory of its descriptor `place`."""
    found = os.readlink(f"/proc/{thread}/cwd" if place is None else f"/proc/{thread}/fd/{place}")
    # The kernel appends this mark to the path of a removed directory, in which nothing can be created.
    return found.removesuffix(_DELETED) if found.endswith(_DELETED) and not os.path.lexists(found) else found


class PathResolver:
    """The resolution of the paths in a task's system calls to absolute paths."""

    def __init__(self) -> None:
        self.here: dict[int, str] = {}
        """The current directory of each thread."""
        self.straight: set[str] = set()
        """Directories that are reached without a symbolic link."""
        self._remembers = True
        self.until = 0
        """The time at which the cache expires."""

    def forget(self, at: int, *, is_turning: bool) -> None:
        """Clear the cached directories, because they may be wrong from now on.

        `at` is the present time. `is_turning` means that a call may change where paths lead. The end of such a call is
        not seen, so no directory is cached for a few milliseconds.
        """
        self.here.clear()
        self.straight.clear()
        self._remembers = not is_turning
        self.until = at + _MOMENT_US

    def of(self, thread: int, place: int | None, text: str, follows: bool) -> tuple[str, Look | None]:
        """Return the absolute path for a path in a call, and its `lstat` result.

        A relative path `text` starts at the directory of the thread's descriptor `place`, or at the thread's current
        directory. The `lstat` result is None if the path was not inspected. `follows` means that a symbolic link as the
        last name is resolved.
        """
        if text[:1] == "/":
            path = text
        else:
            base = self.here.get(thread) if place is None else None
            if base is None:
                base = base_of(thread, place)
                if place is None and self._remembers:
                    self.here[thread] = base
            path = f"{base}/{text}" if text else base
        above, _, name = path.rpartition("/")
        if above in self.straight and name not in NO_NAME:
            return _follow_link(thread, path, look(path)) if follows else (path, None)
        return self._look_up(thread, path, above, follows=follows)

    def _look_up(self, thread: int, path: str, above: str, *, follows: bool) -> tuple[str, Look]:
        """Return a path without links in its directories, and its `lstat` result.

        The path is absolute, and `above` is its directory. `follows` means that a symbolic link as the last name is
        resolved.
        """
        if "//" not in path and "/./" not in path and "/../" not in path and not path.endswith(_NO_NAMES):
            fd = open_straight(path.encode("utf-8", "surrogateescape"))
            if self._remembers and (fd >= 0 or fd == -ENOENT):
                self.straight.add(above)
            if fd >= 0:
                try:
                    found = os.fstat(fd)
                finally:
                    os.close(fd)
                return _follow_link(thread, path, found) if follows else (path, found)
            if fd in _NOTHING_THERE:
                return path, ABSENT
        path = name_of(thread, path)
        return _follow_link(thread, path, look(path)) if follows else (path, look(path))


def name_within(thread: int, place: int | None, text: str, *, follows: bool) -> tuple[str, Look]:
    """Return a path and its `lstat` result, for a call that sets its own root.

    The root is the directory from which the path starts. Neither `..` nor a symbolic link leads out of this directory.
    """
    root = os.open(f"/proc/{thread}/cwd" if place is None else f"/proc/{thread}/fd/{place}", _DIRECTORY)
    try:
        for _ in range(_MOST_LINKS):
            above, _, name = text.rpartition("/")
            if name in NO_NAME:
                above, name = text, ""
            fd = open_within(root, (above or "/").encode("utf-8", "surrogateescape"))
            if fd < 0:
                break
            try:
                path = os.path.join(os.readlink(f"/proc/self/fd/{fd}"), name)
            finally:
                os.close(fd)
            found = look(path)
            if not follows or isinstance(found, str) or not S_ISLNK(found.st_mode):
                return path, found
            text = os.path.join(above, os.readlink(path))
        # The path does not exist or has too many links, so the call will fail.
        return base_of(thread, place) + os.path.normpath("/" + text.lstrip("/")), ABSENT
    finally:
        os.close(root)


def name_of(thread: int, path: str) -> str:
    """Resolve the symbolic links in an absolute path, but not in its last name.

    Most calls act on the last name itself, even if it is a symbolic link.
    """
    if path.startswith("/proc/"):
        for start in _SELF:
            if path.startswith(start):
                path = f"/proc/{thread}/{path.removeprefix(start)}"
    path = path.rstrip("/") or "/"
    above, _, name = path.rpartition("/")
    if name in (".", ".."):
        return os.path.realpath(path)
    try:
        fd = os.open(above or "/", _DIRECTORY)
        try:
            real = os.readlink(f"/proc/self/fd/{fd}")  # this takes a fifth of the time of `realpath`
        finally:
            os.close(fd)
    except OSError:
        real = os.path.realpath(above or "/")
    if real.startswith("/proc/"):
        real = real.replace(f"/proc/{os.getpid()}/", f"/proc/{thread}/")  # `/dev/fd` led to this process
    return f"{real}/{name}" if real != "/" else "/" + name


def _follow_link(thread: int, path: str, found: Look) -> tuple[str, Look]:
    """Return the path that a symbolic link leads to, and its `lstat` result."""
    for _ in range(_MOST_LINKS):
        if isinstance(found, str) or not S_ISLNK(found.st_mode):
            break
        try:
            target = os.readlink(path)
        except OSError:
            break  # the link was removed after the check
        path = name_of(thread, os.path.join(os.path.dirname(path), target))
        found = look(path)
    return path, found
