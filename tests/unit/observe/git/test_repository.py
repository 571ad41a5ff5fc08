"""Finding the repository and the project of a directory. All cases are in one table."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from outlive.observe.git.repository import find_repository
from outlive.service.tasks.launch_context import project_of
from tests.git_steps import Worktree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# For each directory: its project; and of its repository the top directory, the git directory, the shared git directory,
# and the defect. All paths are relative to one directory.
CASES = {
    "plain": ("plain", None),
    "plain/file": ("plain/file", None),
    "repo": ("repo", ("repo", "repo/.git", "")),
    "repo/gone/deeper": ("repo", ("repo", "repo/.git", "")),
    "repo/file": ("repo", ("repo", "repo/.git", "")),
    "repo/.git/refs": ("repo", ("", "repo/.git", "")),
    "link-to-repo/inside": ("repo", ("repo", "repo/.git", "")),
    "repo/nested": ("repo/nested", ("repo/nested", "repo/nested/.git", "")),
    "worktree": ("worktree", ("worktree", "repo/.git/worktrees/worktree", "repo/.git")),
    "repo/sub": ("repo/sub", ("repo/sub", "repo/.git/modules/sub", "")),
    "bare": ("bare", ("", "bare", "")),
    "bare/refs": ("bare/refs", ("", "bare", "")),
    "home/work": ("home", ("home", "home/.git", "")),
    "git-elsewhere": ("git-elsewhere", ("git-elsewhere", "kept/git", "")),
    "git-is-link": ("git-is-link", ("git-is-link", "repo/.git", "")),
    "mounted": ("mounted", ("mounted", "mounted/.git", "")),
    "mounted/mount/deeper": ("mounted", None),
    "damaged/empty": ("damaged/empty", ("damaged/empty", "damaged/empty/.git", "", "no git directory")),
    "damaged/text": ("damaged/text", ("damaged/text", "damaged/text/.git", "", ".git names no directory")),
    "damaged/nowhere": (
        "damaged/nowhere",
        ("damaged/nowhere", "gone", "", ".git names a directory without a repository"),
    ),
    "damaged/worktree": (
        "damaged/worktree",
        ("damaged/worktree", "repo/.git/worktrees/worktree1", "", ".git names a directory without a repository"),
    ),
    "damaged/loop": ("damaged/loop", ("damaged/loop", "damaged/loop/.git", "", ".git cannot be read")),
    "damaged/dangling": ("damaged/dangling", None),
    "damaged/fifo": ("damaged/fifo", ("damaged/fifo", "damaged/fifo/.git", "", ".git is neither file nor directory")),
    "repo/damaged": ("repo/damaged", ("repo", "repo/.git", "")),
    "damaged/empty/whole": ("damaged/empty/whole", ("damaged/empty/whole", "damaged/empty/whole/.git", "")),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make every directory of the table. Mount a file system in one of them, if the system allows it."""
    root = tmp_path_factory.mktemp("repositories")
    for name in ("plain", "kept", "mounted/mount/deeper", "repo/damaged/.git", "damaged/empty/.git"):
        (root / name).mkdir(parents=True)
    other = Worktree(root / "other")
    other.commit(file="one\n")
    repo = Worktree(root / "repo")
    repo.git("submodule", "--quiet", "add", str(other.path), "sub")
    repo.commit(file="one\n")
    repo.git("worktree", "add", "-q", "../worktree")
    repo.git("worktree", "add", "-q", "../damaged/worktree", "-b", "damaged")
    (root / "repo/.git/worktrees/worktree1/commondir").write_text("\n")
    repo.git("clone", "-q", "--bare", ".", str(root / "bare"))
    for name in ("repo/nested", "home", "mounted", "damaged/empty/whole"):
        Worktree(root / name)
    Worktree(root / "git-elsewhere", "--separate-git-dir", str(root / "kept/git"))
    for name in ("repo/inside", "home/work", "git-is-link"):
        (root / name).mkdir()
    (root / "plain/file").touch()
    (root / "link-to-repo").symlink_to("repo")
    (root / "git-is-link/.git").symlink_to("../repo/.git")
    for name in ("text", "nowhere", "loop", "dangling", "fifo"):
        (root / "damaged" / name).mkdir()
    (root / "damaged/text/.git").write_text("some text\n")
    (root / "damaged/nowhere/.git").write_text("gitdir: ../../gone\n")
    (root / "damaged/loop/.git").symlink_to(".git")
    (root / "damaged/dangling/.git").symlink_to("gone")
    os.mkfifo(root / "damaged/fifo/.git")
    mount = root / "mounted/mount"
    is_mounted = not _call("mount", "-t", "tmpfs", "outlive-test", str(mount))
    (mount / "deeper").mkdir(exist_ok=True)
    yield root
    if is_mounted:
        _call("umount", "-l", str(mount))


def _call(*words: str) -> int:
    return subprocess.run(words, capture_output=True, check=False).returncode


@pytest.mark.parametrize("directory", CASES)
def test_repository_and_project_are_found_for_each_directory(
    root: Path, monkeypatch: pytest.MonkeyPatch, directory: str
) -> None:
    """For each directory, the repository that git would use is found, and the project.

    GIT_DIR and HOME change nothing.
    """
    if "/mount/" in directory and not os.path.ismount(root / "mounted/mount"):
        pytest.skip("cannot mount here")
    monkeypatch.setenv("GIT_DIR", str(root / "other/.git"))
    monkeypatch.setenv("HOME", str(root / "home"))
    project, repository = CASES[directory]
    path = str(root / directory)
    found = find_repository(path)
    assert project_of(path) == str(root / project)
    if found is None:
        assert repository is None
    else:
        roots = tuple(_relative(each, root) for each in found.roots)
        assert (*roots, *(() if found.broken is None else (found.broken,))) == repository


def test_linked_git_directory_keeps_its_name(root: Path) -> None:
    """A snapshot names a linked git directory by the link, through which git reads.

    Recorded changes have the link's target.
    """
    found = find_repository(str(root / "git-is-link"))
    assert found is not None
    assert found.git_dir == found.common_dir == str(root / "git-is-link/.git")


def _relative(path: str, root: Path) -> str:
    return os.path.relpath(path, root) if path else ""
