"""Very many paths as directories and counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from outlive.domain.effects import Effects
from outlive.domain.effects_words import summary_of
from outlive.domain.folding import Fold, fold, largest
from outlive.domain.when import from_micros

NAMES = st.text("ab/ \n\udcff", min_size=1, max_size=4).filter(lambda name: "//" not in f"/{name}/")
PATHS = st.lists(st.lists(NAMES, min_size=1, max_size=5).map(lambda names: "/" + "/".join(names)), unique=True)


@given(PATHS, st.integers(1, 12))
def test_every_path_is_in_exactly_one_entry(paths: list[str], most: int) -> None:
    """None is lost, none is counted twice, and there are never more entries than asked for."""
    found = fold(paths, most)
    assert len(found) <= most
    assert sum(entry.count for entry in found) == len(paths)
    for entry in found:
        assert entry.count > 1 or entry.path in paths
        assert entry.count == 1 or sum(path.startswith(entry.path) for path in paths) >= entry.count
        assert entry.count == 1 or entry.path.endswith("/")


def test_few_paths_are_told_one_by_one() -> None:
    """Nothing is folded that has room."""
    assert fold(["/r/b", "/r/a"], 2) == [Fold(path="/r/a"), Fold(path="/r/b")]


def test_what_is_small_is_named_beside_what_is_large() -> None:
    """Sources one by one, and what an installer made as one directory."""
    many = [f"/r/node_modules/p{number // 10}/f{number}" for number in range(2000)]
    found = fold([*many, "/r/src/a.py", "/r/src/b.py", "/r/README"], 40)
    assert [(entry.path, entry.count) for entry in found] == [
        ("/r/README", 1),
        ("/r/node_modules/", 2000),
        ("/r/src/a.py", 1),
        ("/r/src/b.py", 1),
    ]
    assert largest(found) == Fold(path="/r/node_modules/", count=2000)


def test_a_directory_is_opened_where_there_is_room() -> None:
    """Two thousand files in a few directories are told by those."""
    found = fold([f"/r/d{number % 5}/deep/f{number}" for number in range(2000)], 20)
    assert [(entry.path, entry.count) for entry in found] == [(f"/r/d{number}/deep/", 400) for number in range(5)]
    assert largest(fold(["/a", "/b"], 5)) is None


def test_where_most_are_is_told_of_what_was_removed_and_of_what_is_still_there() -> None:
    """An uninstaller changes three files and removes hundreds: none of those is below what was changed."""
    gone = tuple(f"/r/node_modules/p/f{number}" for number in range(600))
    found = Effects(level="observed", changed=("/r/a", "/r/b", "/r/node_modules/c", *gone), gone=gone)
    words = summary_of(found, from_micros(0))
    assert words == "3 files changed; 600 files removed (600 below node_modules/p/)"
