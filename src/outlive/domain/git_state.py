"""What git keeps of its own state, by the names in its directory."""

from __future__ import annotations


def part_of_git(name: str, *, is_own: bool) -> str | None:
    """What of git's own state a path of its directory is; None for its objects, locks and logs."""
    if name.endswith(".lock") or name.startswith(("objects/", "logs/")):
        return None
    if name in ("HEAD", "index") and not is_own:
        return f"{name} of the main worktree"
    if name in ("HEAD", "index", "config", "packed-refs"):
        return name
    for start, what in (("refs/heads/", "branch "), ("refs/tags/", "tag "), ("refs/remotes/", "remote branch ")):
        if name.startswith(start):
            return what + name.removeprefix(start)
    if name == "refs/stash":
        return "stash"
    return "worktree " + name.split("/")[1] if name.startswith("worktrees/") and name.count("/") == 1 else None
