"""The children of a process, as the kernel lists them: by the thread that made them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING
from unittest.mock import Mock

from outlive.keeper import tree

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


def test_threads_that_end_meanwhile_hide_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """And it is not necessary to ask every process of the machine."""
    asked = Mock(side_effect=tree._all_pids)
    monkeypatch.setattr(tree, "_all_pids", asked)
    program = subprocess.Popen([sys.executable, "-c", _RESTLESS], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    child = int(program.stdout.readline())
    try:
        assert all(tree.children(program.pid) == [child] for _ in range(500))
        assert asked.call_count < 50
    finally:
        os.kill(child, 9)
        program.wait(timeout=20)
        program.stdout.close()


def test_who_is_gone_has_none_and_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its children are another process's."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    monkeypatch.setattr(tree, "_all_pids", lambda: 1 / 0)
    assert tree.children(gone.pid) == []


def test_a_kernel_that_does_not_list_them_is_asked_for_parents(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been built without that."""

    def missing(path: str) -> bytes:
        raise FileNotFoundError(path)

    monkeypatch.setattr(tree, "read_proc", missing)
    monkeypatch.setattr(os.path, "exists", lambda path: "children" not in path)
    child = subprocess.Popen(["sleep", "60"])
    try:
        assert child.pid in tree.children(os.getpid())
    finally:
        child.kill()
        child.wait()
