"""Snapshots of intact and damaged repositories. Each result is correct or marked as unknown, and comes in time."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from hashlib import sha1
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive.domain.git.comparison import Comparison, compare
from outlive.domain.git.snapshot import (
    GONE,
    HASHED,
    UNHASHED,
    UNSEEN,
    Snapshot,
    Tree,
    content_of,
    dirty_paths,
    kind_of,
    stamp_of,
)
from outlive.domain.git.snapshot_json import from_json, to_json
from outlive.observe.git.index import read_index
from outlive.observe.git.object_ids import stamp_from
from outlive.observe.git.repository import find_repository
from outlive.observe.git.take_snapshot import take_full, take_quick
from tests.git_steps import ENVIRON, Worktree

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tree(tmp_path: Path) -> Worktree:
    """Make a repository with a commit, whose index is newer than the files."""
    made = Worktree(tmp_path / "r")
    made.write("src/a.py", "a = 1\n")
    made.write("src/b.py", "b = 1\n")
    made.commit(top="top\n")
    made.settle_index()
    return made


@pytest.fixture(autouse=True)
def _no_configuration_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, ENVIRON["HOME"])


def full(tree: Worktree, before: Snapshot | None = None) -> Snapshot:
    """Take a full snapshot with a budget of 30 seconds."""
    return take_full(str(tree.path), 30, before=before)


def files(snapshot: Snapshot) -> Tree:
    """Return the files of a snapshot. The test fails if the snapshot could not read them."""
    assert snapshot.tree is not None, snapshot.unknown
    return snapshot.tree


def how(comparison: Comparison) -> dict[str, str]:
    """Return how each path has changed, according to the comparison."""
    return {change.path: change.how for change in comparison.paths}


def how_all(snapshot: Snapshot) -> list[str]:
    """Return how each tracked file that existed has changed, by its name."""
    return [os.fsdecode(path) for path, seen in files(snapshot).tracked.items() if len(seen) > 1]


# --- what a snapshot reads ------------------------------------------------------------------------


def test_quick_snapshot_reads_the_same_refs_as_git(tree: Worktree) -> None:
    """A quick snapshot has the HEAD, branch, refs, tags and stash that git reports, even if the refs are packed."""
    tree.git("tag", "-a", "-m", "one", "v1")
    tree.git("branch", "deep/er/name")
    for content in ("stashed\n", "stashed again\n"):
        tree.write("top", content)
        tree.git("stash", "push", "-q")
    tree.git("update-ref", "refs/remotes/origin/main", tree.head())
    tree.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    for pack in (False, True):
        if pack:
            tree.git("pack-refs", "--all", "--prune")
        git = take_quick(str(tree.path / "src")).git
        assert git is not None
        assert (git.head, git.branch) == (tree.head(), "refs/heads/main")
        listed = tree.git("for-each-ref", "--format=%(refname) %(objectname)").decode().split("\n")[:-1]
        told = dict(line.split(" ") for line in listed)
        assert git.refs is not None
        assert git.refs["refs/remotes/origin/HEAD"] == "ref: refs/remotes/origin/main"
        assert {**git.refs, "refs/remotes/origin/HEAD": tree.head()} == told
        assert git.stash == tuple(tree.git("stash", "list", "--format=%H").decode().split())
        assert git.top == str(tree.path)


def test_full_snapshot_does_not_read_clean_files(tree: Worktree) -> None:
    """A file that has the same stat data as in git's index is not opened, and does not count as changed."""
    before = os.stat(tree.path / "top").st_atime_ns
    seen = files(full(tree))
    assert not dirty_paths(seen)
    assert set(seen.tracked) == {b"src/a.py", b"src/b.py", b"top"}
    assert os.stat(tree.path / "top").st_atime_ns == before


def test_full_snapshot_finds_the_dirty_files_with_the_ids_of_git(tree: Worktree) -> None:
    """The changed paths are those of `git status`, and the ids of their contents are those of `git hash-object`."""
    tree.write("src/a.py", "a = 2\n")
    (tree.path / "src" / "b.py").unlink()
    os.utime(tree.path / "top")
    dirty = dirty_paths(files(full(tree)))
    assert {path: kind_of(seen) for path, seen in dirty.items()} == {b"src/a.py": HASHED, b"src/b.py": GONE}
    assert content_of(dirty[b"src/a.py"]).hex() == tree.git("hash-object", "src/a.py").decode().strip()


def test_full_snapshot_finds_a_change_in_the_same_clock_tick_as_the_index(tree: Worktree) -> None:
    """A file that is as new as git's index is read, even if its stat data equals that in the index."""
    index, top = tree.path / ".git" / "index", tree.write("top", "one\n")
    tree.git("add", "top")
    indexed = read_index(str(index)).entries[b"top"][0]
    top.write_text("two\n")
    found = top.stat()
    # Simulate a second write in the same clock tick: the index gets the file's present times.
    content = index.read_bytes()[:-20].replace(indexed[:16], stamp_from(found)[:16])
    index.write_bytes(content + sha1(content, usedforsecurity=False).digest())
    for index_written, is_dirty in ((found.st_mtime_ns, True), (found.st_mtime_ns + 1, False)):
        os.utime(index, ns=(index_written, index_written))
        assert (b"top" in dirty_paths(files(full(tree)))) is is_dirty


def test_full_snapshot_reads_sha256_repositories(tmp_path: Path) -> None:
    """In a SHA-256 repository, the ids of commits and contents have the length of SHA-256."""
    tree = Worktree(tmp_path / "r", "--object-format=sha256")
    tree.commit(a="1\n")
    tree.write("a", "2\n")
    seen = full(tree)
    assert seen.git is not None
    assert seen.git.head == tree.head()
    assert content_of(files(seen).tracked[b"a"]).hex() == tree.git("hash-object", "a").decode().strip()


def test_quick_snapshot_reads_no_tracked_files(tree: Worktree) -> None:
    """A quick snapshot has HEAD, the refs and the index, but reads no tracked file."""
    seen = take_quick(str(tree.path))
    assert seen.tree is None
    assert seen.git is not None
    assert seen.git.index
    assert seen.unknown == ()


# --- which repository is found --------------------------------------------------------------------


def test_worktrees_and_submodules_are_separate_repositories(tree: Worktree, tmp_path: Path) -> None:
    """A linked worktree and a submodule are repositories of their own, with their own HEAD, index and refs."""
    tree.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "w"))
    side = Worktree(tmp_path / "w", new=False)
    commit = side.commit(only_here="1\n")
    seen = full(side)
    assert seen.git is not None
    assert (seen.git.head, seen.git.branch, seen.git.top) == (commit, "refs/heads/side", str(side.path))
    assert seen.git.worktrees == ("w",)
    assert b"only_here" in files(seen).tracked

    tree.git("submodule", "--quiet", "add", str(tmp_path / "w"), "sub")
    tree.commit()
    inner = Worktree(tree.path / "sub", new=False)
    inside = full(inner)
    assert inside.git is not None
    assert (inside.git.head, inside.git.top) == (inner.head(), str(inner.path))
    assert b"only_here" in files(inside).tracked
    before = full(tree)
    assert not dirty_paths(files(before))
    inner.git("checkout", "-q", "--detach")
    inner.commit(more="1\n")
    assert how(compare(before, full(tree, before))) == {"sub": "changed"}


def test_snapshot_of_a_bare_repository_has_no_tree(tree: Worktree, tmp_path: Path) -> None:
    """A snapshot of a bare repository has the refs, but no files."""
    tree.git("clone", "-q", "--bare", ".", str(tmp_path / "b.git"))
    seen = take_full(str(tmp_path / "b.git"))
    assert seen.git is not None
    assert (seen.git.top, seen.git.head, seen.tree) == (None, tree.head(), None)


def test_repository_search_ignores_git_dir_in_the_environment(
    tree: Worktree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot is of the repository around the directory, even if GIT_DIR names another one."""
    other = Worktree(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    found = find_repository(str(tree.path / "src"))
    assert found is not None
    assert found.git_dir == str(tree.path / ".git")


def test_snapshot_without_a_repository_or_directory_is_empty(tmp_path: Path) -> None:
    """A snapshot of a missing directory says that there is nothing, and marks nothing as unknown."""
    assert take_full(str(tmp_path)).git is None
    gone = take_full(str(tmp_path / "gone"))
    assert (gone.is_present, gone.git, gone.unknown) == (False, None, ())
    assert not take_quick("/nowhere\0else").is_present
    assert not take_quick("\udcff\ud800").is_present


def test_comparison_reports_a_gone_or_replaced_repository(tree: Worktree, tmp_path: Path) -> None:
    """A repository that was moved away is reported as `gone`. If another one is in its place, it is `replaced`."""
    before = full(tree)
    tree.path.rename(tmp_path / "moved")
    assert compare(before, full(tree)).repository == "gone"
    assert compare(before, full(tree)).directory_gone
    Worktree(tree.path).commit(x="1\n")
    assert compare(before, full(tree)).repository == "replaced"


def test_linked_worktree_is_unknown_when_its_repository_is_gone(tree: Worktree, tmp_path: Path) -> None:
    """If a linked worktree's repository is gone, the snapshot says that `.git` names no repository."""
    tree.git("worktree", "add", "-q", str(tmp_path / "w"))
    shutil.rmtree(tree.path)
    seen = take_full(str(tmp_path / "w"))
    assert seen.unknown == ("repository: .git names a directory without a repository",)


def test_refs_are_unknown_when_they_are_kept_in_a_reftable(tree: Worktree) -> None:
    """Refs in a reftable are unknown, because Outlive cannot read it. Moved refs are still reported."""
    (tree.path / ".git" / "HEAD").write_text("ref: refs/heads/.invalid\n")
    tables = tree.path / ".git" / "reftable"
    tables.mkdir()
    (tables / "tables.list").write_text("0x1.ref\n")
    before = full(tree)
    assert before.git is not None
    assert (before.git.head, before.git.refs, before.git.stash) == (None, None, None)
    assert "HEAD: stored in a reftable, which Outlive does not read" in before.unknown
    (tables / "tables.list").write_text("0x1.ref\n0x2.ref\n")
    assert compare(before, full(tree)).refs_moved == 1


# --- damaged repositories -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["HEAD", "index", "config", "packed-refs", "refs/heads/main", "logs/refs/stash"])
@pytest.mark.parametrize("what", ["garbage", "pipe", "loop", "directory", "huge", "gone", "up"])
def test_snapshot_of_a_damaged_repository_returns_in_time(tree: Worktree, name: str, what: str) -> None:
    """A snapshot returns in time, even if a git file is replaced by garbage, a FIFO, a loop or a huge file."""
    path = tree.path / ".git" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if what in {"garbage", "up"}:
        path.write_bytes(b"\xff\0garbage\n" * 99 if what == "garbage" else b"ref: refs/../../../../etc/passwd\n")
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "loop":
        path.symlink_to(path)
    elif what == "directory":
        path.mkdir()
    elif what == "huge":
        with path.open("wb") as file:
            file.truncate(2 << 30)
    began = time.monotonic()
    for seen in (take_quick(str(tree.path)), full(tree)):
        assert from_json(to_json(seen)) == seen
        if name == "HEAD":
            assert seen.git is None or seen.git.head is None
        elif what in {"pipe", "loop", "huge"} and name != "refs/heads/main":
            assert seen.unknown or name == "index"
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("what", ["pipe", "loop", "empty", "elsewhere", "socket"])
def test_snapshot_is_unknown_when_dot_git_is_no_repository(tmp_path: Path, what: str) -> None:
    """If `.git` is a FIFO, a loop, a socket or empty, the snapshot has no files and gives the reason."""
    path = tmp_path / ".git"
    if what == "pipe":
        os.mkfifo(path)
    elif what == "loop":
        path.symlink_to(path)
    elif what == "empty":
        path.mkdir()
    elif what == "elsewhere":
        path.write_bytes(b"gitdir: /nowhere/\xff\n")
    else:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
    seen = take_full(str(tmp_path))
    assert seen.unknown
    assert seen.tree is None


def test_full_snapshot_opens_no_special_files_in_place_of_tracked_ones(tree: Worktree) -> None:
    """If a tracked file was replaced by a FIFO, device, socket, directory or link, the snapshot does not open it."""
    elsewhere = tree.path.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "inside").write_text("hidden/inside")
    names = ["pipe", "device", "socket", "link", "directory", "hidden/inside", "loop/inside", "large"]
    for name in names:
        tree.write(name, name)
    tree.commit()
    for name in names[:5] + names[7:]:
        (tree.path / name).unlink()
    shutil.rmtree(tree.path / "hidden")
    shutil.rmtree(tree.path / "loop")
    os.mkfifo(tree.path / "pipe")
    if os.geteuid() == 0:
        os.mknod(tree.path / "device", 0o020600, os.makedev(5, 0))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(tree.path / "socket"))
    (tree.path / "link").symlink_to("/etc/passwd")
    (tree.path / "directory").mkdir()
    (tree.path / "hidden").symlink_to(elsewhere)
    (tree.path / "loop").symlink_to("loop")
    with (tree.path / "large").open("wb") as file:
        file.truncate(2 << 30)
    began = time.monotonic()
    dirty = dirty_paths(files(full(tree)))
    assert time.monotonic() - began < 5
    kinds = {name: kind_of(dirty[name.encode()]) for name in names if name != "device"}
    assert kinds == {
        "pipe": UNHASHED,
        "socket": UNHASHED,
        "link": HASHED,
        "directory": UNHASHED,
        "hidden/inside": GONE,
        "loop/inside": GONE,
        "large": UNHASHED,
    }
    assert content_of(dirty[b"link"]) == sha1(b"blob 11\0/etc/passwd", usedforsecurity=False).digest()


def test_full_snapshot_ignores_index_paths_outside_the_worktree(tree: Worktree) -> None:
    """A path outside of the worktree, which a damaged index may contain, is not read. An example is `../passwd`."""
    index = tree.path / ".git" / "index"
    tree.write("aa/passwd")
    tree.git("add", "-A")
    content = index.read_bytes()[:-20].replace(b"aa/passwd", b"../passwd")
    index.write_bytes(content + sha1(content, usedforsecurity=False).digest())
    assert files(full(tree)).tracked[b"../passwd"] == UNSEEN


def test_snapshot_keeps_file_names_of_any_bytes(tree: Worktree) -> None:
    """File names with newlines or invalid UTF-8 are the same after a snapshot was stored as JSON and compared."""
    names = [b"new\nline", b"not\xffutf8", b'quo"te\\', b"\xed\xa0\x80", b"\x1b[31m"]
    for name in names:
        tree.write(b"odd/" + name)
    tree.commit()
    tree.settle_index()
    before = full(tree)
    for name in names:
        tree.write(b"odd/" + name, b"changed")
    tree.write(b"beside\xfe\n")
    kept = from_json(to_json(before))
    assert kept == before
    found = how(compare(kept, full(tree, kept)))
    assert {os.fsencode(path): each for path, each in found.items()} == {
        b"beside\xfe\n": "appeared",
        **{b"odd/" + name: "changed" for name in names},
    }


# --- limits of time and number --------------------------------------------------------------------


def test_full_snapshot_without_a_time_budget_reads_no_files(tree: Worktree) -> None:
    """With a time budget of zero, a snapshot reads no file, and says that its time was up."""
    tree.write("top", "changed\n")
    seen = take_full(str(tree.path), 0)
    assert seen.git is not None
    assert seen.git.head == tree.head()
    assert any("time was up" in reason for reason in seen.unknown)
    assert seen.tree is None or set(files(seen).tracked.values()) <= {UNSEEN}
    assert how(compare(seen, full(tree, seen))) == {}


def test_full_snapshot_of_many_changed_files_keeps_its_time_budget(tmp_path: Path) -> None:
    """With 100,000 changed files, a snapshot ends in time, and says which part is unknown."""
    tree = Worktree(tmp_path / "r")
    content = tree.git("hash-object", "-w", "--stdin").decode().strip()
    names = [f"d{number // 1000}/f{number}" for number in range(100_000)]
    listed = "".join(f"100644 {content}\t{name}\n" for name in names)
    subprocess.run(
        ["git", "update-index", "--index-info"], cwd=tree.path, env=ENVIRON, input=listed.encode(), check=True
    )
    for number in range(100):
        (tree.path / f"d{number}").mkdir()
    for name in names:
        os.close(os.open(tree.path / name, os.O_CREAT | os.O_WRONLY))
    began = time.monotonic()
    seen = take_full(str(tree.path), 1.0)
    took = time.monotonic() - began
    assert took < 5
    assert len(files(seen).tracked if seen.tree else names) == 100_000
    assert seen.unknown
    comparison = compare(seen, take_full(str(tree.path), 0.5, before=seen))
    assert len(comparison.paths) <= 1000
    assert len(to_json(seen)) < 4 << 20


def test_full_snapshot_lists_a_limited_number_of_untracked_files(tree: Worktree) -> None:
    """Of 2,500 untracked files, a snapshot lists 2,000, and says that there are more."""
    for number in range(2500):
        tree.write(f"out{number}")
    seen = files(full(tree))
    assert len(seen.untracked) == 2000
    assert not seen.all_untracked


def test_comparison_finds_a_change_with_any_file_time(tree: Worktree) -> None:
    """A comparison finds a changed file, whatever its time is: before 1970, after 2106 or older than before."""
    before = full(tree)
    for when in (-(10**18), 5 * 10**18, 10**18 - 1):
        tree.write("top", "new\n")
        os.utime(tree.path / "top", ns=(when, when))
        assert how(compare(before, full(tree, before))) == {"top": "changed"}


# --- comparisons of two snapshots -----------------------------------------------------------------


def test_comparison_reports_files_that_a_popped_stash_rewrote(tree: Worktree) -> None:
    """After `git stash` and `git stash pop`, files are reported as rewritten with equal content. Git reports none."""
    tree.write("src/a.py", "a = 2\n")
    before = full(tree)
    tree.git("stash", "push", "-q")
    during = compare(before, full(tree, before))
    assert how(during) == {"src/a.py": "changed"}
    assert during.stash is not None
    assert during.stash_depth == (0, 1)
    tree.git("stash", "pop", "-q")
    found = compare(before, full(tree, before))
    assert how(found) == {"src/a.py": "rewritten"}
    assert found.stash is None
    assert found.paths[0].written_at_ns == os.stat(tree.path / "src" / "a.py").st_mtime_ns


def test_comparison_reports_every_kind_of_change(tree: Worktree, tmp_path: Path) -> None:
    """The comparison reports changes of HEAD, branch, tag, config, index, worktrees and files."""
    before = full(tree)
    same = compare(before, full(tree, before))
    assert same.is_empty
    assert same.index_changed is False
    tree.git("checkout", "-q", "-b", "other")
    (tree.path / "src" / "b.py").unlink()
    commit = tree.commit(fresh="1\n", top="new\n")
    tree.git("tag", "v2")
    tree.git("config", "user.nickname", "n")
    tree.git("worktree", "add", "-q", str(tmp_path / "w"))
    (tree.path / "new").mkdir()
    tree.write("log", "1")
    found = compare(before, full(tree, before))
    assert found.head is not None
    assert found.head.after == commit
    assert found.branch is not None
    assert found.branch.after == "refs/heads/other"
    assert [move.name for move in found.refs] == ["refs/heads/other", "refs/heads/w", "refs/tags/v2"]
    assert found.config_changed
    assert found.index_changed
    assert [move.after for move in found.worktrees] == ["w"]
    assert how(found) == {
        "fresh": "appeared",
        "log": "appeared",
        "new/": "appeared",
        "src/b.py": "gone",
        "top": "changed",
    }


def test_comparison_ignores_an_index_that_git_only_refreshed(tree: Worktree) -> None:
    """After `git status`, which rewrites the index without staging anything, the index is not changed."""
    before = full(tree)
    os.utime(tree.path / "top")
    tree.git("status")
    found = compare(before, full(tree, before))
    assert found.index_changed is False
    assert how(found) == {"top": "rewritten"}


def test_comparison_does_not_call_converted_contents_changed(tmp_path: Path) -> None:
    """A file whose line endings git converts is not changed, although git's id differs from that of its bytes."""
    tree = Worktree(tmp_path / "r")
    tree.write(".gitattributes", "*.txt text eol=crlf\n")
    tree.write("a.txt", b"one\r\n")
    tree.commit()
    tree.settle_index()
    before = full(tree)
    assert not dirty_paths(files(before))
    os.utime(tree.path / "a.txt")
    assert how(compare(before, full(tree, before))) == {"a.txt": "touched"}
    tree.write("a.txt", b"three\r\n")
    assert how(compare(before, full(tree, before))) == {"a.txt": "changed"}


def test_late_snapshot_does_not_show_the_state_at_the_start(tree: Worktree) -> None:
    """If the first snapshot was late, a file that had changed before it counts only as touched."""
    tree.commit(a="old\n", b="old\n", left="old\n", same="old\n")
    tree.settle_index()
    since_ns = time.time_ns() - 10**9
    os.utime(tree.path / "same")
    tree.write("a", "broken\n")
    tree.write("made", "for a while\n")
    (tree.path / "b").rename(tree.path.parent / "b")
    (tree.path / "left").unlink()
    late = full(tree).but(late=True)
    tree.write("a", "old\n")
    (tree.path / "made").unlink()
    (tree.path.parent / "b").rename(tree.path / "b")
    tree.write("new", "new\n")
    found = how(compare(late, full(tree, late), since_ns=since_ns))
    assert {name: found.get(name) for name in ("a", "b", "left", "made", "new", "same")} == {
        "a": "touched", "b": "touched", "left": None, "made": "touched", "new": "appeared", "same": "touched",
    }  # fmt: skip


def test_file_has_appeared_when_its_directory_was_away_during_a_late_snapshot(tree: Worktree) -> None:
    """If a directory was away during a late first snapshot, its files count as new, in spite of their old times."""
    tree.write("kept/a", "old\n")
    tree.commit()
    tree.settle_index()
    since_ns = max(os.stat(tree.path / "kept/a").st_ctime_ns + 1, time.time_ns() - 10**7)
    (tree.path / "kept").rename(tree.path.parent / "kept")
    late = full(tree).but(late=True)
    (tree.path.parent / "kept").rename(tree.path / "kept")
    assert how(compare(late, full(tree, late), since_ns=since_ns)).get("kept/a") == "appeared"


def test_full_snapshot_does_not_call_files_outside_a_sparse_checkout_gone(tree: Worktree) -> None:
    """A file that a sparse checkout leaves out does not count as changed."""
    tree.git("sparse-checkout", "set", "--no-cone", "/top")
    assert not (tree.path / "src").exists()
    assert not dirty_paths(files(full(tree)))


def test_comparison_reports_files_that_a_sparse_checkout_removes_and_adds(tree: Worktree) -> None:
    """If a sparse checkout removes and adds files of one commit, they are reported as `gone` and `appeared`."""
    tree.write("more/x", "x\n")
    tree.commit()
    tree.git("sparse-checkout", "set", "--no-cone", "/top", "/src")
    before = full(tree)
    names = [name for name in how_all(before) if name.startswith("src/")]
    tree.git("sparse-checkout", "set", "--no-cone", "/top", "/more")
    found = how(compare(before, full(tree, before)))
    assert found == {"more/x": "appeared", **dict.fromkeys(names, "gone")}
    assert names


def test_comparison_reports_no_file_change_when_a_directory_is_untracked(tree: Worktree) -> None:
    """After `git rm --cached` and `git add` of a directory, only the index is reported as changed."""
    tree.write("src/log", "1")
    before = full(tree)
    tree.git("rm", "-q", "-r", "--cached", "src")
    found = compare(before, full(tree, before))
    assert how(found) == {}
    assert found.index_changed
    after = full(tree)
    tree.git("add", "src")
    assert how(compare(after, full(tree, after))) == {}


@settings(max_examples=40, deadline=None)
@given(
    tracked=st.dictionaries(st.binary(min_size=1, max_size=40), st.binary(min_size=1, max_size=60)),
    untracked=st.dictionaries(st.binary(min_size=1, max_size=40), st.binary(min_size=1, max_size=60)),
    directory=st.text(),
)
def test_snapshot_is_the_same_after_json(
    tracked: dict[bytes, bytes], untracked: dict[bytes, bytes], directory: str
) -> None:
    """A snapshot that is written as JSON and read again is the same, whatever bytes its names and contents have."""
    seen = Snapshot(
        directory=directory, is_present=True, tree=Tree(tracked=tracked, untracked=untracked), files={"x": b"\xff"}
    )
    assert from_json(to_json(seen)) == seen


@given(cut=st.integers(0, 400), at=st.integers(0, 400))
@settings(max_examples=40, deadline=None)
def test_damaged_snapshot_json_is_read_as_none_or_as_a_snapshot(cut: int, at: int) -> None:
    """If the JSON of a snapshot is cut off or lacks a byte, it is read as None or as a snapshot. No error is raised."""
    kept = to_json(Snapshot(directory="/", is_present=True, tree=Tree(tracked={b"a": b"i"}, untracked={})))
    torn = kept[: max(0, len(kept) - cut)]
    torn = torn[:at] + torn[at + 1 :]
    assert from_json(torn) is None or isinstance(from_json(torn), Snapshot)


def test_stamp_of_reads_the_stat_part_of_an_entry() -> None:
    """`stamp_of` returns the 36 bytes of stat data in an entry, between its kind and its content id."""
    assert stamp_of(b"c" + bytes(36) + b"id") == bytes(36)
