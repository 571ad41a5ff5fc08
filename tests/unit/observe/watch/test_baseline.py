"""The baseline: the content that files had before a task, by path."""

from __future__ import annotations

import os
from tempfile import TemporaryFile

from hypothesis import given
from hypothesis import strategies as st

from outlive.domain.git.snapshot import AS_INDEXED, GONE, HASHED, UNHASHED, GitState, Snapshot, Tree
from outlive.observe.watch.baseline import MOST_DIRECTORIES, Baseline, write_baseline

SINCE = 10 * 10**9
NAMES = st.binary(min_size=1, max_size=6).filter(lambda name: b"\0" not in name and b"/" not in name)


def seen(kind: bytes = HASHED, content: bytes = b"1" * 20, *, at: int = 1, mode: int = 0o100644) -> bytes:
    """Return a file as a snapshot records it."""
    fields = (at, 0, at, 0, 1, mode, 0, 0, 1)
    return kind + b"".join(each.to_bytes(4, "big") for each in fields) + content


def kept(
    tracked: dict[bytes, bytes], untracked: dict[bytes, bytes] | None = None, *, is_late: bool = False, **more: object
) -> Baseline:
    """Write the recorded contents of one repository, and open them for reading."""
    tree = Tree(tracked=tracked, untracked=untracked or {}).but(**more)
    git = GitState(top="/r", git_dir="/r/.git", common_dir="/r/.git", identity="1")
    with TemporaryFile() as file:
        write_baseline(file.fileno(), [Snapshot(directory="/r", is_present=True, git=git, tree=tree)], SINCE)
        return Baseline(file.fileno(), is_late=is_late)


@given(st.dictionaries(st.lists(NAMES, min_size=1, max_size=3).map(b"/".join), st.binary(min_size=20, max_size=20)))
def test_baseline_finds_every_path_and_no_other(contents: dict[bytes, bytes]) -> None:
    """Every recorded path is found, and no other path, whatever bytes the names have."""
    baseline = kept({path: seen(content=content) for path, content in contents.items()})
    for path, content in contents.items():
        text = "/r/" + os.fsdecode(path)
        assert baseline.state(text) == "f" + content.hex()
        for other in (text + "x", text[:-1], text + "/x"):
            assert os.fsencode(other.removeprefix("/r/")) in contents or baseline.state(other) == "0"
    for directory in {path.partition(b"/")[0] for path in contents}:
        below = {path for path in contents if path.startswith(directory + b"/")}
        assert {os.fsencode(path)[3:] for path in baseline.below("/r/" + os.fsdecode(directory))} == below


def test_baseline_is_unknown_for_files_whose_content_was_not_read() -> None:
    """A file whose content was not read has the state `?`, for example a link or a file that git converts."""
    known, unknown = "f" + "31" * 20, "?"
    for file, state, converts in (
        (seen(), known, False),
        (seen(AS_INDEXED), known, False),
        (seen(AS_INDEXED), unknown, True),
        (seen(HASHED), known, True),
        (seen(at=10), unknown, False),
        (seen(mode=0o120000), unknown, False),
        (seen(UNHASHED, b""), unknown, False),
        (seen(content=b"1" * 32), "f" + "31" * 32, False),
        (GONE, "0", False),
    ):
        assert kept({b"x": file}, converts=converts).state("/r/x") == state
    beside = kept({b"x": seen()}, {b"y": seen(UNHASHED), b"d/": seen(UNHASHED)})
    assert [beside.state(f"/r/{name}") for name in "ydz"] == ["?", "d", "0"]
    assert kept({b"x": seen()}, all_untracked=False).state("/r/z") == "?"


def test_missing_file_is_unknown_when_the_snapshot_was_late() -> None:
    """If the snapshot was late, a missing file is unknown. The command may have removed it before the snapshot."""
    late = kept({b"x": GONE, b"y": seen()}, is_late=True)
    assert [late.state(f"/r/{name}") for name in "xyz"] == ["?", "f" + "31" * 20, "0"]


def test_baseline_watches_directories_from_the_top_down_to_the_limit() -> None:
    """The directories of tracked files, of git's HEAD and of its refs are watched, from the top down to the limit."""
    watched = kept({b"a/b/x": seen(), b"c/x": seen(), b"x": seen()}).watched
    assert set(watched.directories) == {"/r", "/r/.git", "/r/a", "/r/a/b", "/r/c"}
    assert (watched.places, watched.is_whole) == (("/r", "/r/.git", ""), True)
    many = kept({b"d%d/x" % number: seen() for number in range(MOST_DIRECTORIES)}).watched
    assert (len(many.directories), many.is_whole) == (MOST_DIRECTORIES, False)
