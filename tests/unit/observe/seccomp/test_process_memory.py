"""Reading the memory of another process, across pages, and after a thread id was used again."""

from __future__ import annotations

import ctypes
import mmap
import os

import pytest

from outlive.observe.seccomp.calls import KINDS, Calls
from outlive.observe.seccomp.process_memory import ProcessMemory


@pytest.mark.parametrize("before", [8, 16, 4096])
def test_words_are_read_across_the_end_of_a_page(before: int) -> None:
    """Three words are read completely if they cross the end of a page."""
    words = [ctypes.create_string_buffer(word) for word in (b"git", b"stash", b"push")]
    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    vector = (ctypes.c_void_p * 4).from_buffer(pages, mmap.PAGESIZE - before)
    vector[:3] = [ctypes.addressof(word) for word in words]
    memory = ProcessMemory()
    assert memory.words(os.getpid(), ctypes.addressof(vector), 8) == [b"git", b"stash", b"push"]
    memory.close()
    del vector
    pages.close()


def test_memory_file_is_opened_again_when_its_thread_id_belonged_to_another_process() -> None:
    """If the memory of a process was opened long ago, it is opened again, even if its thread id still exists.

    The thread id may belong to another process now. In this test, the other process is a fork, in which the same
    address is valid. So only the time shows that the open file is too old.
    """
    text = ctypes.create_string_buffer(b"/theirs")
    wait, end = os.pipe()
    other = os.fork()
    if not other:
        os.close(end)
        os.read(wait, 1)
        os._exit(0)
    text.value = b"/ours"
    me, calls = os.getpid(), Calls()
    kind = next(kind for kind in KINDS.values() if kind.name == "unlinkat")
    arguments = (0xFFFFFF9C, ctypes.addressof(text), 0, 0, 0, 0)
    try:
        calls.understand(1_000_000, kind, me, 0, arguments)
        calls.memory.forget(me)
        calls.memory.opened[me] = os.open(f"/proc/{other}/mem", os.O_RDONLY)
        _, ((path, _),) = calls.understand(2_000_000, kind, me, 0, arguments)
    finally:
        calls.memory.close()
        os.close(end)
        os.waitpid(other, 0)
        os.close(wait)
    assert path == "/ours"
