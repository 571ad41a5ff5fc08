"""Real git repositories for tests, which ignore the git configuration of the user."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ENVIRON = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "c",
    "GIT_COMMITTER_EMAIL": "c@example.org",
}


class Worktree:
    """A worktree with methods that run git in it."""

    def __init__(self, path: Path, *options: str, new: bool = True) -> None:
        self.path = path
        if new:
            path.mkdir(parents=True, exist_ok=True)
            self.git("init", "-q", "-b", "main", *options)

    def git(self, *words: str | bytes) -> bytes:
        """Run git in this worktree and return its output."""
        given = ["git", "-c", "protocol.file.allow=always", *words]
        return subprocess.run(given, cwd=self.path, env=ENVIRON, check=True, capture_output=True, timeout=60).stdout

    def write(self, name: str | bytes, content: bytes | str = b"x\n") -> Path:
        """Write a file, and create its directories."""
        path = self.path / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def commit(self, **files: str) -> str:
        """Write these files, commit all changes, and return the id of the new commit."""
        for name, content in files.items():
            self.write(name, content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "a change")
        return self.head()

    def head(self) -> str:
        """Return the commit that HEAD refers to."""
        return self.git("rev-parse", "HEAD").decode().strip()

    def settle_index(self) -> None:
        """Set the time of every file to a time before that of git's index.

        Git then trusts the times that the index has recorded, as it does shortly after a checkout.
        """
        for path in self.path.rglob("*"):
            if ".git" not in path.parts and path.is_file() and not path.is_symlink():
                os.utime(path, ns=(10**18, 10**18))
        self.git("update-index", "--refresh")
