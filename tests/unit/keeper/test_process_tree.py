"""Listing the children of a process. The kernel lists them for each thread."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING
from unittest.mock import Mock

from outlive.keeper import process_tree

if TYPE_CHECKING:
    import pytest

_RESTLESS = """
import subprocess, threading
child = subprocess.Popen(["sleep", "60"])
print(child.pid, flush=True)
while child.poll() is None:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
"""


def test_children_are_complete_when_threads_end_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of children is complete, even if threads end meanwhile.

    A search through all processes is rarely needed.
    """
    asked = Mock(side_effect=process_tree._all_pids)
    monkeypatch.setattr(process_tree, "_all_pids", asked)
    program = subprocess.Popen([sys.executable, "-c", _RESTLESS], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    child = int(program.stdout.readline())
    try:
        assert all(process_tree.children(program.pid) == [child] for _ in range(500))
        assert asked.call_count < 50
    finally:
        os.kill(child, 9)
        program.wait(timeout=20)
        program.stdout.close()


def test_children_of_an_ended_process_are_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ended process has no children. They are not searched for, because they have another parent then."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    monkeypatch.setattr(process_tree, "_all_pids", lambda: 1 / 0)
    assert process_tree.children(gone.pid) == []


def test_children_are_found_by_their_parent_when_the_kernel_lists_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the kernel does not list children in /proc/*/task/*/children, they are found by their parent."""

    def missing(path: str) -> bytes:
        raise FileNotFoundError(path)

    monkeypatch.setattr(process_tree, "read_proc", missing)
    monkeypatch.setattr(os.path, "exists", lambda path: "children" not in path)
    child = subprocess.Popen(["sleep", "60"])
    try:
        assert child.pid in process_tree.children(os.getpid())
    finally:
        child.kill()
        child.wait()
