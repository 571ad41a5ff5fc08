"""A reader of the memory of processes whose system calls wait for the observer.

The descriptor of a thread's /proc/TID/mem is kept open, because opening the file takes four times as long as reading
it. The descriptor belongs to the memory that the thread had when the file was opened. So the descriptor is closed at
every exec, and before the kernel gives the thread's number to another thread.
"""

from __future__ import annotations

import os

from outlive.linux.syscalls import read_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_PAGE = 4096
_LONGEST_PATH = 4096
_GUESS = 256
_MOST_OPEN, _MOST_NUMBERS = 128, 20_000
_POINTERS_AT_ONCE = 24
_LONGEST_WORD = 400
_KEPT_US = 100_000
_BORN = 19


class ProcessMemory:
    """A reader of the memory of threads, which keeps one open descriptor per thread."""

    def __init__(self, on_stranger: Callable[[int], object] = lambda _: None) -> None:
        """Start without an open descriptor.

        `on_stranger` is called with a thread number that the kernel has given to another thread.
        """
        self.opened: dict[int, int] = {}
        """The descriptor of each thread's memory."""
        self._born: dict[int, bytes] = {}
        """The start time of the last known thread with each number.

        The kernel may reuse a number after some hours.
        """
        self._on_stranger = on_stranger
        # The rest of the keeper, and the files that are read, need a part of the limit of open descriptors.
        self._most_open = min(_MOST_OPEN, os.sysconf("SC_OPEN_MAX") // 4)
        self._until = 0

    def age(self, at: int) -> None:
        """Close all descriptors from time to time.

        The kernel may give a thread's number to another thread while the memory of the old thread still exists. An old
        descriptor would then read the wrong memory.
        """
        if at > self._until:
            self.close()
            self._until = at + _KEPT_US

    def forget(self, thread: int) -> None:
        """Close the descriptor of a thread's memory.

        Call this function when the thread has got, or is about to get, another memory.
        """
        fd = self.opened.pop(thread, None)
        if fd is not None:
            os.close(fd)

    def read(self, thread: int, address: int, size: int) -> bytes:
        """Return `size` bytes of a thread's memory, or fewer bytes if the memory ends."""
        fd = self.opened.get(thread)
        if fd is not None:
            try:
                content = os.pread(fd, size, address)
            except OSError:
                content = b""
            if content:
                return content
            self.forget(thread)  # an earlier thread had this number, or there is no memory at the address
            content = os.pread(self._open(thread), size, address)
            self._on_stranger(thread)
            return content
        return os.pread(self._open(thread), size, address)

    def _open(self, thread: int) -> int:
        if len(self.opened) >= self._most_open:
            for oldest in list(self.opened)[: self._most_open // 2]:
                self.forget(oldest)
        fd = self.opened[thread] = os.open(f"/proc/{thread}/mem", os.O_RDONLY | os.O_CLOEXEC)
        born = read_small(f"/proc/{thread}/stat").rpartition(b")")[2].split()[_BORN]
        if self._born.get(thread, born) != born:
            self._on_stranger(thread)
        if len(self._born) == _MOST_NUMBERS:
            self._born.clear()
        self._born[thread] = born
        return fd

    def text(self, thread: int, address: int) -> bytes | None:
        """Return the bytes at an address of a thread's memory, up to the first zero byte.

        Returns None for a null pointer.
        """
        if not address:
            return None
        size = min(_GUESS, _PAGE - address % _PAGE)
        try:
            content = os.pread(self.opened[thread], size, address)
        except (KeyError, OSError):
            content = b""
        content = content or self.read(thread, address, size)
        end = content.find(b"\0")
        while end < 0 and content and len(content) < _LONGEST_PATH:
            more = self.read(thread, address + len(content), _PAGE - (address + len(content)) % _PAGE)
            if not more:
                break
            content += more
            end = content.find(b"\0")
        return content[:end] if end >= 0 else content

    def words(self, thread: int, address: int, width: int) -> list[bytes]:
        """Return the first arguments in an argument vector with pointers of `width` bytes."""
        wanted = _POINTERS_AT_ONCE * width
        vector = self.read(thread, address, min(wanted, _PAGE - address % _PAGE))
        if len(vector) < wanted and bytes(width) not in (
            vector[at : at + width] for at in range(0, len(vector), width)
        ):
            try:
                vector += self.read(thread, address + len(vector), wanted - len(vector))
            except OSError:
                pass  # the argument vector ends at the end of its page
        found = []
        for at in range(0, len(vector) - width + 1, width):
            pointer = int.from_bytes(vector[at : at + width], "little")
            if not pointer:
                break
            found.append((self.text(thread, pointer) or b"")[:_LONGEST_WORD])
        return found

    def close(self) -> None:
        """Close all descriptors."""
        for thread in list(self.opened):
            self.forget(thread)
