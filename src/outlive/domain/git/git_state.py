"""The parts of git's own state, such as branches, and the files that store them.

A file in a git directory belongs to at most one part.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from outlive.domain.git.snapshot import GitState


_FILES = {
    **{name: name for name in ("HEAD", "index", "config", "config.worktree", "packed-refs", "shallow")},
    **{f"info/{name}": f"info/{name}" for name in ("exclude", "attributes", "grafts", "sparse-checkout")},
    # The log of the stash has every stash entry. `refs/stash` has only the newest entry, and is not a file if git has
    # packed the refs.
    **dict.fromkeys(("refs/stash", "logs/refs/stash"), "stash"),
}
_DIRECTORIES = {
    "refs/heads/": "branch ",
    "refs/tags/": "tag ",
    "refs/remotes/": "remote branch ",
    "refs/notes/": "notes ",
    "refs/replace/": "replacement of ",
    "refs/": "ref ",
    "hooks/": "hook ",
}
_SAMPLE = ".sample"


def is_gits_own(path: str) -> bool:
    """Return whether a path is the file of a HEAD or of a stash in a git directory."""
    return name_in_git(path) is not None


def name_in_git(path: str) -> str | None:
    """Return a readable name for the file of a HEAD or a stash, or None for others."""
    names = {"/HEAD": "HEAD", "/refs/stash": "the stash"}
    return next((name for end, name in names.items() if path.endswith(end) and "/.git/" in path), None)


def part_of_git(name: str, *, is_own: bool, is_directory: bool = False) -> str | None:
    """Return the part of git's state that a path in a git directory belongs to.

    Returns None for objects, locks, all logs except the log of the stash, and directories of branches (`feature` of
    `feature/x`). The directory of a linked worktree is a part.
    """
    if name.endswith(".lock") or name.startswith("objects/") or (is_directory and name.startswith("refs/")):
        return None
    if name in ("HEAD", "index") and not is_own:
        return f"{name} of the main worktree"
    if name in _FILES:
        return _FILES[name]
    for start, what in _DIRECTORIES.items():
        if name.startswith(start):
            return None if name.endswith(_SAMPLE) else what + name.removeprefix(start)
    inside, _, rest = name.partition("/")
    if inside == "modules":
        return _part_of_submodule(rest.split("/"), is_directory=is_directory)
    return _part_of_worktree(*rest.split("/")) if inside == "worktrees" and rest else None


def of_repository(place: str) -> str:
    """Return a suffix such as ` of /repo`, which names the repository of a change."""
    return f" of {place}"


def _part_of_submodule(names: list[str], *, is_directory: bool) -> str | None:
    """Return the part of git's state that a path in `.git/modules` belongs to.

    `names` are the components of the path below `modules`. A submodule's name may have slashes. Returns None if the
    path belongs to no part.
    """
    for end in range(1, len(names)):
        if names[end] in ("objects", "logs"):
            return None
        part = part_of_git("/".join(names[end:]), is_own=True, is_directory=is_directory)
        if part is not None:
            return f"{part} of submodule {'/'.join(names[:end])}"
    return None


def _part_of_worktree(worktree: str, *names: str) -> str | None:
    """Return the part of git's state for a linked worktree, or for a path in it."""
    if not names:
        return f"worktree {worktree}"
    return f"{names[0]} of worktree {worktree}" if names in (("HEAD",), ("index",)) else None


def but_for(parts: Collection[str], then: GitState | None, now: GitState | None) -> GitState | None:
    """Return the state `now`, but with some parts as they were in the state `then`.

    These are the parts of git's state that the task itself changed.
    """
    if not parts:
        return now
    if then is None or now is None or then.identity != now.identity:
        # The repository was made, removed or replaced. The task touched a part of the repository, so the task itself
        # may have made, removed or replaced the repository. So no difference is reported.
        return then
    if "config" in parts:
        now = now.but(config=then.config)
    # To remove a packed ref, git writes only `packed-refs`. So if the task wrote this file, it may have removed refs.
    may_be_gone = "packed-refs" in parts
    of_branch = _head_part(now) in parts or (may_be_gone and not now.head)
    if "HEAD" in parts if then.branch != now.branch else of_branch:
        now = now.but(branch=then.branch, head=then.head)
    if now.refs is None or then.refs is None:
        has_moved_refs = any(each == "packed-refs" or " " in each for each in parts)
        return now.but(refs_mark=then.refs_mark) if has_moved_refs else now
    own = {name for name in (*then.refs, *now.refs) if part_of_git(name, is_own=True) in parts}
    if may_be_gone:
        own.update(name for name in then.refs if name not in now.refs)
    kept = {name: value for name, value in now.refs.items() if name not in own}
    return now.but(refs={**kept, **{name: value for name, value in then.refs.items() if name in own}})


def _head_part(git: GitState) -> str | None:
    """Return the part that changes when HEAD gets a new commit: the branch, or HEAD."""
    return part_of_git(git.branch or "HEAD", is_own=True)
