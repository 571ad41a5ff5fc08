"""HEAD, refs, stash and worktrees of a repository, read from its files.

Refs in a reftable are not read. Only the result of `refs_mark` shows that these refs have changed.
"""

from __future__ import annotations

import os

from outlive.observe.git.safe_read import Unknown, identity_of, names_in, read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.observe.git.repository import Repository

_REF_BYTES = 4096
_DEEPEST = 16
_MOST_LINKS = 5
_STASH_BYTES = 1 << 20
_MOST_STASHED = 1000
_MOST_WORKTREES = 1000
_LOOKUP_BYTES = 16 << 20
_SYMBOLIC = "ref: "
_HEX = frozenset("0123456789abcdef")


def read_head(repository: Repository) -> tuple[str, str]:
    """Return the ref of HEAD, and the commit of HEAD.

    The ref is empty if HEAD is detached. The commit is empty if the branch has no commit yet.
    """
    _check_readable(repository)
    content = read_regular(repository.git_dir + "/HEAD", _REF_BYTES)
    if content is None:
        raise Unknown("the file is missing")
    text = os.fsdecode(content).rstrip()
    if not text.startswith(_SYMBOLIC):
        return "", _checked_id(text)
    branch = text.removeprefix(_SYMBOLIC).strip()
    return branch, _resolve(repository, branch)


def read_refs(repository: Repository, most: int, packed_bytes: int) -> dict[str, str]:
    """Return the refs that all worktrees share, with their values.

    The value of a symbolic ref is `ref: NAME`. Raises `Unknown` if there are more than `most` refs, or if the file of
    packed refs has more than `packed_bytes` bytes.
    """
    _check_readable(repository)
    refs = _packed(repository, packed_bytes)
    waiting = [("refs", 0)]
    while waiting:
        name, depth = waiting.pop()
        if depth > _DEEPEST:
            raise Unknown("the directories are nested too deeply")
        for entry in names_in(f"{repository.common_dir}/{name}", most):
            inner = f"{name}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                waiting.append((inner, depth + 1))
            elif entry.is_file(follow_symlinks=False) and not entry.name.endswith(".lock"):
                content = read_regular(f"{repository.common_dir}/{inner}", _REF_BYTES)
                if content:
                    refs[inner] = os.fsdecode(content).strip()
        if len(refs) + len(waiting) > most:
            raise Unknown(f"there are more than {most} refs")
    return refs


def refs_mark(repository: Repository) -> str:
    """Return a string that changes when packed refs or a reftable change."""
    return "; ".join(identity_of(f"{repository.common_dir}/{name}") for name in ("packed-refs", "reftable/tables.list"))


def read_stash(repository: Repository) -> tuple[str, ...]:
    """Return the ids of the stashed commits, newest first."""
    _check_readable(repository)
    log = read_regular(repository.common_dir + "/logs/refs/stash", _STASH_BYTES)
    if log:
        lines = os.fsdecode(log).splitlines()[-_MOST_STASHED:]
        return tuple(_checked_id(line.split(" ", 2)[1]) for line in reversed(lines) if line.count(" ") > 1)
    newest = _resolve(repository, "refs/stash")
    return (newest,) if newest else ()


def read_worktrees(repository: Repository) -> tuple[str, ...]:
    """Return the names of the linked worktrees."""
    return tuple(sorted(each.name for each in names_in(repository.common_dir + "/worktrees", _MOST_WORKTREES)))


def _resolve(repository: Repository, name: str) -> str:
    """Return the commit that a ref leads to.

    The result is an empty string if the ref does not exist yet.
    """
    for _ in range(_MOST_LINKS):
        if not name.startswith("refs/") or ".." in name or "\0" in name or "\n" in name:
            raise Unknown("not the name of a ref")
        text = _loose(repository, name)
        if not text:
            return _packed_id(repository, name)
        if not text.startswith(_SYMBOLIC):
            return _checked_id(text)
        name = text.removeprefix(_SYMBOLIC).strip()
    raise Unknown("refs that point at each other")


def _loose(repository: Repository, name: str) -> str:
    # Refs below these three names belong to one worktree. All worktrees share all other refs.
    own = name.startswith(("refs/bisect/", "refs/rewritten/", "refs/worktree/"))
    where = repository.git_dir if own else repository.common_dir
    path = f"{where}/{name}"
    # After the last branch in a directory was deleted, the empty directory may stay. For git, the directory is not a
    # ref.
    content = None if os.path.isdir(path) else read_regular(path, _REF_BYTES)
    return os.fsdecode(content or b"").strip()


def _packed_id(repository: Repository, name: str) -> str:
    content = b"\n" + (read_regular(repository.common_dir + "/packed-refs", _LOOKUP_BYTES) or b"")
    end = content.find(b" " + os.fsencode(name) + b"\n")
    return "" if end < 0 else _checked_id(os.fsdecode(content[content.rfind(b"\n", 0, end) + 1 : end]))


def _packed(repository: Repository, limit: int) -> dict[str, str]:
    content = os.fsdecode(read_regular(repository.common_dir + "/packed-refs", limit) or b"")
    refs: dict[str, str] = {}
    for line in content.split("\n"):
        target, found, name = line.partition(" ")
        if found and len(target) in (40, 64):
            refs[name] = target
    return refs


def _check_readable(repository: Repository) -> None:
    if os.path.lexists(repository.common_dir + "/reftable"):
        raise Unknown("stored in a reftable, which Outlive does not read")


def _checked_id(text: str) -> str:
    if len(text) not in (40, 64) or not _HEX.issuperset(text):
        raise Unknown("not an object id")
    return text
