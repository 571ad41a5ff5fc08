"""Reading git's index: it is read as git wrote it, or reported as unknown if it is damaged."""

from __future__ import annotations

import os
from hashlib import sha1
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive.observe.git.index import Index, parse_index, read_index
from outlive.observe.git.safe_read import Unknown
from tests.git_steps import Worktree

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [
    b"a",
    b"b/c/d",
    b"b/c/e",
    b"b-c/x",
    b"new\nline",
    b"not\xffutf8",
    b"\xc3\xa4",
    b"deep/" * 20 + b"f",
    b"n" * 255,
]
FORMATS = [("sha1", 2), ("sha1", 4), ("sha256", 2), ("sha256", 4)]


def listed(tree: Worktree) -> dict[bytes, tuple[int, bytes]]:
    """Return the entries that `git ls-files` prints."""
    lines = tree.git("ls-files", "--stage", "-z").split(b"\0")[:-1]
    found = {}
    for line in lines:
        facts, _, path = line.partition(b"\t")
        mode, content, _ = facts.split(b" ")
        found[path] = (int(mode, 8), bytes.fromhex(content.decode()))
    return found


def read(tree: Worktree) -> Index:
    """Read the index of a repository with Outlive's reader."""
    return read_index(str(tree.path / ".git" / "index"))


def filled(path: Path, kind: str = "sha1", version: int = 2) -> Worktree:
    """Create a repository with names of every sort in its index."""
    tree = Worktree(path, f"--object-format={kind}")
    for number, name in enumerate(NAMES):
        tree.write(name, b"%d\n" % number)
    tree.write("run.sh", "true\n").chmod(0o755)
    (tree.path / "link").symlink_to("nowhere")
    tree.git("add", "-A")
    tree.git("update-index", f"--index-version={version}")
    return tree


@pytest.mark.parametrize(("kind", "version"), FORMATS)
def test_index_has_the_entries_that_git_lists(tmp_path: Path, kind: str, version: int) -> None:
    """The index has the modes, ids and paths that `git ls-files` prints, for both hashes and all versions."""
    tree = filled(tmp_path / "r", kind, version)
    index = read(tree)
    assert index.version == version
    assert {path: (index.entry(path).mode, index.entry(path).content) for path in index.entries} == listed(tree)


def test_entry_has_the_stamp_of_its_file(tmp_path: Path) -> None:
    """An entry of an unchanged file has the times, the inode and the size of the file."""
    tree = filled(tmp_path / "r")
    index = read(tree)
    for path in index.entries:
        found, entry = os.lstat(tree.path / os.fsdecode(path)), index.entry(path)
        assert entry.written_at_ns == found.st_mtime_ns
        assert entry.changed_at_ns == found.st_ctime_ns
        assert (entry.inode, entry.size) == (found.st_ino & 0xFFFFFFFF, found.st_size)


def test_index_flags_are_read(tmp_path: Path) -> None:
    """The flags skip-worktree, intent-to-add and assume-unchanged are read from the index."""
    tree = filled(tmp_path / "r")
    tree.git("update-index", "--skip-worktree", "a")
    tree.git("update-index", "--assume-unchanged", "b/c/d")
    tree.write("later")
    tree.git("add", "-N", "later")
    index = read(tree)
    assert index.version == 3
    assert index.entry(b"a").skip_worktree
    assert index.entry(b"b/c/d").assume_unchanged
    assert index.entry(b"later").intent_to_add
    assert set(index.entries) == set(listed(tree))
    plain = index.entry(b"b/c/e")
    assert (plain.skip_worktree, plain.assume_unchanged, plain.intent_to_add) == (False, False, False)


def test_entry_of_an_unmerged_path_has_a_stage(tmp_path: Path) -> None:
    """A path with a merge conflict appears once, with a stage above 0."""
    tree = Worktree(tmp_path / "r")
    tree.commit(a="1\n")
    tree.git("checkout", "-q", "-b", "other")
    tree.commit(a="2\n")
    tree.git("checkout", "-q", "main")
    tree.commit(a="3\n")
    with pytest.raises(Exception, match="merge"):
        tree.git("merge", "other")
    assert read(tree).entry(b"a").stage > 0


def test_index_has_very_long_paths(tmp_path: Path) -> None:
    """A path that is too long for the length field of its entry is read whole."""
    tree = Worktree(tmp_path / "r")
    content = tree.git("hash-object", "-w", "--stdin").decode().strip()
    name = "/".join(["x" * 200] * 25)
    tree.git("update-index", "--add", "--cacheinfo", f"100644,{content},{name}")
    tree.git("update-index", "--add", "--cacheinfo", f"100644,{content},zz")
    for version in ("2", "4"):
        tree.git("update-index", "--index-version", version)
        assert set(read(tree).entries) == {name.encode(), b"zz"}


def test_a_missing_index_is_empty(tmp_path: Path) -> None:
    """If a repository has no index file yet, the index is empty."""
    assert read(Worktree(tmp_path / "r")).entries == {}


def test_index_without_a_checksum_is_read(tmp_path: Path) -> None:
    """An index without a checksum, as `index.skipHash` writes it, can be read."""
    content = (filled(tmp_path / "r").path / ".git" / "index").read_bytes()
    assert parse_index(content[:-20] + bytes(20)) == parse_index(content)


def test_a_split_index_is_unknown(tmp_path: Path) -> None:
    """A split index raises `Unknown`, because other entries are in a second file."""
    tree = filled(tmp_path / "r")
    tree.git("update-index", "--split-index")
    with pytest.raises(Unknown, match="split"):
        read(tree)


@pytest.mark.parametrize("what", ["empty", "cut", "flipped", "a directory", "a link", "a pipe", "huge"])
def test_damaged_index_is_unknown(tmp_path: Path, what: str) -> None:
    """A damaged or replaced index raises `Unknown` at once."""
    tree = filled(tmp_path / "r")
    path = tree.path / ".git" / "index"
    content = path.read_bytes()
    path.unlink()
    if what == "a directory":
        path.mkdir()
    elif what == "a link":
        path.symlink_to(path)
    elif what == "a pipe":
        os.mkfifo(path)
    elif what == "huge":
        with path.open("wb") as file:
            file.truncate(2 << 30)
    else:
        path.write_bytes({"empty": b"", "cut": content[:-30], "flipped": content[:100] + b"!" + content[101:]}[what])
    with pytest.raises(Unknown):
        read(tree)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[int, bytes]:
    """Return the bytes of an index of each version, without the checksum."""
    place = tmp_path_factory.mktemp("index")
    return {
        version: (filled(place / str(version), "sha1", version).path / ".git" / "index").read_bytes()[:-20]
        for version in (2, 4)
    }


@settings(max_examples=60, deadline=None)
@given(version=st.sampled_from([2, 4]), cut=st.integers(0, 4000), at=st.integers(0, 4000), byte=st.integers(0, 255))
def test_parse_index_raises_only_unknown_for_wrong_bytes(
    whole: dict[int, bytes], version: int, cut: int, at: int, byte: int
) -> None:
    """`parse_index` parses wrong bytes or raises `Unknown`, and raises no other error."""
    content = bytearray(whole[version])
    if at < len(content):
        content[at] = byte
    spoilt = bytes(content[: max(12, len(content) - cut)])
    try:
        parse_index(spoilt + sha1(spoilt, usedforsecurity=False).digest())
    except Unknown:
        pass
