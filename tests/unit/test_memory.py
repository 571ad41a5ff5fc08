"""Reading the memory of a process: what lies across two pages is read from both."""

from __future__ import annotations

import ctypes
import mmap
import os

import pytest

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
