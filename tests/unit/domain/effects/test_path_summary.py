"""Shortening a list of many paths to directories with numbers of files."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from outlive.domain.effects.describe import summary_of
from outlive.domain.effects.effects import Effects
from outlive.domain.effects.path_summary import Summary, fold, largest
from outlive.domain.timestamps import from_micros

NAMES = st.text("ab/ \n\udcff", min_size=1, max_size=4).filter(lambda name: "//" not in f"/{name}/")
PATHS = st.lists(st.lists(NAMES, min_size=1, max_size=5).map(lambda names: "/" + "/".join(names)), unique=True)


@given(PATHS, st.integers(1, 12))
def test_fold_counts_every_path_in_exactly_one_entry(paths: list[str], most: int) -> None:
    """Each path is counted in exactly one entry of the shortened list, and the number of entries is limited."""
    found = fold(paths, most)
    assert len(found) <= most
    assert sum(entry.count for entry in found) == len(paths)
    for entry in found:
        assert entry.count > 1 or entry.path in paths
        assert entry.count == 1 or sum(path.startswith(entry.path) for path in paths) >= entry.count
        assert entry.count == 1 or entry.path.endswith("/")


def test_fold_lists_each_path_when_there_are_few() -> None:
    """If there are few paths, each path is listed."""
    assert fold(["/r/b", "/r/a"], 2) == [Summary(path="/r/a"), Summary(path="/r/b")]


def test_fold_lists_single_files_next_to_a_large_directory() -> None:
    """Next to a directory with many files, single files are still listed by name."""
    many = [f"/r/node_modules/p{number // 10}/f{number}" for number in range(2000)]
    found = fold([*many, "/r/src/a.py", "/r/src/b.py", "/r/README"], 40)
    assert [(entry.path, entry.count) for entry in found] == [
        ("/r/README", 1),
        ("/r/node_modules/", 2000),
        ("/r/src/a.py", 1),
        ("/r/src/b.py", 1),
    ]
    assert largest(found) == Summary(path="/r/node_modules/", count=2000)


def test_fold_splits_a_directory_when_its_parts_fit() -> None:
    """Two thousand files in five directories are shown as these five directories, and not as their parent."""
    found = fold([f"/r/d{number % 5}/deep/f{number}" for number in range(2000)], 20)
    assert [(entry.path, entry.count) for entry in found] == [(f"/r/d{number}/deep/", 400) for number in range(5)]
    assert largest(fold(["/a", "/b"], 5)) is None


def test_summary_names_the_largest_directory_of_removed_files_separately() -> None:
    """The summary gives number and largest directory of removed files separately from those of changed files."""
    gone = tuple(f"/r/node_modules/p/f{number}" for number in range(600))
    found = Effects(level="observed", changed=("/r/a", "/r/b", "/r/node_modules/c", *gone), gone=gone)
    words = summary_of(found, from_micros(0))
    assert words == "3 files changed; 600 files removed (600 below node_modules/p/)"
