"""Files that are replaced as a whole, even if several threads write one file at once."""

from __future__ import annotations

import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from outlive.bundle import home
from outlive.bundle.atomic_file import temporary_name, write_whole

SRC = Path(__file__).resolve().parents[3] / "src" / "outlive"
THREADS = 16


def test_state_directory_opens_when_threads_use_it_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state directory opens without an error even if several threads write its first file at the same time."""
    together = Barrier(THREADS)

    def wait_then_punch(*_: int) -> bool:
        together.wait()
        return True

    monkeypatch.setattr(home, "punch_hole", wait_then_punch)
    with ThreadPoolExecutor(THREADS) as threads:
        opened = threads.map(home.open_home, [{"OUTLIVE_HOME": str(tmp_path / "state")}] * THREADS)
        assert len({each.path for each in opened}) == 1


def test_file_is_whole_when_threads_write_it_at_once(tmp_path: Path) -> None:
    """The file has the content and mode of the last write, and no temporary file is left."""
    path, together = tmp_path / "file", Barrier(THREADS)
    contents = [bytes([number]) * 100_000 for number in range(THREADS)]

    def write(content: bytes) -> None:
        together.wait()
        write_whole(str(path), content, mode=0o640)

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(write, contents))
    assert path.read_bytes() in contents
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """If a file cannot be replaced, it keeps its old content, and no temporary file is left."""
    (tmp_path / "file").mkdir()
    with pytest.raises(OSError, match="file"):
        write_whole(str(tmp_path / "file"), b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_only_one_function_makes_temporary_names() -> None:
    """Only one function builds names of temporary files.

    Other code might use the process id, which is the same in all threads of a process.
    """
    assert temporary_name("a") != temporary_name("a")
    pattern = re.compile(r'f".*\{os\.getpid\(\)\}.*"')
    found = [
        f"{path.relative_to(SRC)}: {line.strip()}"
        for path in SRC.rglob("*.py")
        for line in path.read_text().splitlines()
        if pattern.search(line) and path.name != "atomic_file.py" and "/proc/" not in line
    ]
    assert found == []
