"""Which file a path means, as the kernel will resolve it for the process that names it.

Where a thread is, and that no link lies on the way to a directory, is remembered for a moment: most calls
name what lies beside what the last one named. The task's own calls that could change either are asked for
and make us forget; of what others turn meanwhile we may learn a moment late.
"""

from __future__ import annotations

import os
from errno import ENAMETOOLONG, ENOENT, ENOTDIR
from stat import S_ISLNK

from outlive.bundle.kernel import open_straight, open_within
from outlive.observe.content import ABSENT, look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.observe.content import Look

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_MOST_LINKS = 40
_SELF = ("/proc/self/", "/proc/thread-self/")
_DELETED = " (deleted)"
NO_NAME, _NO_NAMES = ("", ".", ".."), ("/", "/.", "/..")
_NOTHING_THERE = (-ENOENT, -ENOTDIR, -ENAMETOOLONG)
_MOMENT_US = 5_000


def base_of(thread: int, place: int | None) -> str:
    """The directory that a path is relative to: the current one, or that of a descriptor."""
    found = os.readlink(f"/proc/{thread}/cwd" if place is None else f"/proc/{thread}/fd/{place}")
    # The kernel says so of one that has no name any more; nothing can be made in it.
    return found.removesuffix(_DELETED) if found.endswith(_DELETED) and not os.path.lexists(found) else found


class Names:
    """What the paths of a task's calls mean."""

    def __init__(self) -> None:
        self.here: dict[int, str] = {}
        """By thread, its directory."""
        self.straight: set[str] = set()
        """Directories with no link on the way to them."""
        self._remembers = True
        self.until = 0
        """When it is time to forget what is remembered."""

    def forget(self, at: int, *, is_turning: bool) -> None:
        """Find out anew what paths mean: it has been a moment, or a call is about to turn them.

        We are not told when that has done so; after it, nothing is remembered for a moment.
        """
        self.here.clear()
        self.straight.clear()
        self._remembers = not is_turning
        self.until = at + _MOMENT_US

    def of(self, thread: int, place: int | None, text: str, follows: bool) -> tuple[str, Look | None]:
        """What a text means to a thread, relative to its directory or to that of a descriptor; see `name_of`.

        And what is there, unless it takes one more look to tell. A call that `follows` means what a link leads to
        that is its last name.
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
            return _followed(thread, path, look(path)) if follows else (path, None)
        return self._looked_up(thread, path, above, follows=follows)

    def _looked_up(self, thread: int, path: str, above: str, *, follows: bool) -> tuple[str, Look]:
        """The same of an absolute path: one look tells both, where no link lies on the way."""
        if "//" not in path and "/./" not in path and "/../" not in path and not path.endswith(_NO_NAMES):
            fd = open_straight(path.encode("utf-8", "surrogateescape"))
            if self._remembers and (fd >= 0 or fd == -ENOENT):
                self.straight.add(above)
            if fd >= 0:
                try:
                    found = os.fstat(fd)
                finally:
                    os.close(fd)
                return _followed(thread, path, found) if follows else (path, found)
            if fd in _NOTHING_THERE:
                return path, ABSENT
        path = name_of(thread, path)
        return _followed(thread, path, look(path)) if follows else (path, look(path))


def name_within(thread: int, place: int | None, text: str, *, follows: bool) -> tuple[str, Look]:
    """What a text means to a call for which a directory is the root: neither `..` nor a link leads out of it."""
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
        # The kernel will not find it either.
        return base_of(thread, place) + os.path.normpath("/" + text.lstrip("/")), ABSENT
    finally:
        os.close(root)


def name_of(thread: int, path: str) -> str:
    """An absolute path with everything but its last name resolved: that one is what most calls are about."""
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
            real = os.readlink(f"/proc/self/fd/{fd}")  # a fifth of the time that looking at every name takes
        finally:
            os.close(fd)
    except OSError:
        real = os.path.realpath(above or "/")
    if real.startswith("/proc/"):
        real = real.replace(f"/proc/{os.getpid()}/", f"/proc/{thread}/")  # its /dev/fd is not ours
    return f"{real}/{name}" if real != "/" else "/" + name


def _followed(thread: int, path: str, found: Look) -> tuple[str, Look]:
    """What a path leads to if its last name is a link; and what is there, if anything."""
    for _ in range(_MOST_LINKS):
        if isinstance(found, str) or not S_ISLNK(found.st_mode):
            break
        try:
            target = os.readlink(path)
        except OSError:
            break  # it was one a moment ago
        path = name_of(thread, os.path.join(os.path.dirname(path), target))
        found = look(path)
    return path, found
