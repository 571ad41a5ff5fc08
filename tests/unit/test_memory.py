"""Reading the memory of a process: what lies across two pages is read from both, and whose it is."""

from __future__ import annotations

import ctypes
import mmap
import os

import pytest

from outlive.observe.calls import KINDS, Calls
from outlive.observe.memory import Memory


@pytest.mark.parametrize("before", [8, 16, 4096])
def test_words_are_read_across_the_end_of_a_page(before: int) -> None:
    """A vector of three words that begins so many bytes before the end of its page."""
    words = [ctypes.create_string_buffer(word) for word in (b"git", b"stash", b"push")]
    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    vector = (ctypes.c_void_p * 4).from_buffer(pages, mmap.PAGESIZE - before)
    vector[:3] = [ctypes.addressof(word) for word in words]
    memory = Memory()
    assert memory.words(os.getpid(), ctypes.addressof(vector), 8) == [b"git", b"stash", b"push"]
    memory.close()
    del vector
    pages.close()


def test_a_number_that_a_thread_of_another_process_had_is_read_anew() -> None:
    """The other one lives on, and has the same address: nothing but time says that it is not the one who asks."""
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
