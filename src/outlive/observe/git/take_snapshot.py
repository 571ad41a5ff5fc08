"""Quick and full snapshots of a directory and its repository.

A launch waits for a quick snapshot, so a quick snapshot makes only a few small reads. A full snapshot adds the files of
the worktree, within a time budget. Taking a snapshot starts no process, writes no file and raises no exception. Parts
that cannot be read are named in `unknown`.
"""

from __future__ import annotations

import os
import time

from outlive.domain.git.snapshot import GITLINK, UNSEEN, GitState, Snapshot, mode_of, stamp_of
from outlive.domain.value import Value
from outlive.observe.git.refs import read_head, read_refs, read_stash, read_worktrees, refs_mark
from outlive.observe.git.repository import Repository, find_repository, read_config, read_settings
from outlive.observe.git.safe_read import Unknown, identity_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeVar

    from outlive.domain.git.snapshot import Tree
    from outlive.observe.git.index import Index

    T = TypeVar("T")

DEFAULT_BUDGET_S = 2.0
_MOST_FILES = 2000


class _Limits(Value):
    """Limits for reading refs. If a repository exceeds a limit, its refs are unknown."""

    refs: int
    packed_bytes: int


_QUICK = _Limits(refs=2000, packed_bytes=128 << 10)
_FULL = _Limits(refs=20_000, packed_bytes=4 << 20)


def take_quick(directory: str, paths: Iterable[str] = (), budget_s: float = DEFAULT_BUDGET_S) -> Snapshot:
    """Take a quick snapshot: HEAD, refs, the index's identity and the given paths.

    The snapshot takes at most about `budget_s` seconds.
    """
    quick = _take(directory, _QUICK)[0]
    return quick.but(files=look_at_paths(paths, time.monotonic() + budget_s)) if paths else quick


def with_settings(snapshot: Snapshot, budget_s: float = DEFAULT_BUDGET_S) -> Snapshot:
    """Return the snapshot with the states of git's configuration files added.

    Only configuration files outside of the repository are added.
    """
    if snapshot.git is None or not snapshot.git.identity:
        return snapshot
    try:
        from outlive.observe.git.git_config import configuration_around  # noqa: PLC0415 - a launch does not need this import
    except ImportError:
        return snapshot  # the installation was removed while this process ran: keep the rest of the snapshot
    paths = configuration_around(snapshot.git, os.environ)
    return snapshot.but(settings=look_at_paths(paths, time.monotonic() + budget_s))


def as_left(snapshot: Snapshot, until_ns: int) -> Snapshot:
    """Return the snapshot, with files that changed after `until_ns` marked as unseen."""
    from outlive.observe.path_state import changed_at_ns  # noqa: PLC0415 - a launch does not need this import

    files = dict(snapshot.files or ())
    for path, seen in files.items():
        # Leave out submodules. A submodule is a directory, and the time of a directory changes with its entries.
        if mode_of(stamp_of(seen)) != GITLINK and changed_at_ns(path) > until_ns:
            files[path] = UNSEEN
    return snapshot.but(files=files) if files else snapshot


def take_full(
    directory: str,
    budget_s: float = DEFAULT_BUDGET_S,
    *,
    before: Snapshot | None = None,
    paths: Iterable[str] = (),
    untracked: bool = True,
    late: bool = False,
) -> Snapshot:
    """Take a quick snapshot, and add the states of the files of the worktree.

    `before` is an earlier snapshot. Files that were tracked then, but are not in the index now, are inspected, too. The
    files in `paths` may lie outside the worktree. `untracked` and `late` say whether untracked files are listed, and
    whether the command was already running. Files that cannot be inspected in time are marked as unseen.
    """
    until = time.monotonic() + budget_s
    quick, repository, settings = _take(directory, _FULL)
    unknown = list(quick.unknown)
    tree, staged = None, None
    if repository is not None and repository.broken is None and repository.top is not None:
        inside = _known(unknown, "files", lambda: _look_inside(repository, settings, until, before, untracked))
        tree, staged = inside or (None, None)
    if tree is not None and tree.stopped:
        unknown.append(f"files: {tree.stopped}")
    return quick.but(
        git=None if quick.git is None else quick.git.but(staged=staged),
        tree=tree,
        files=look_at_paths(paths, until) if paths else None,
        late=late,
        unknown=tuple(unknown),
    )


def look_at_paths(paths: Iterable[str], until: float) -> dict[str, bytes]:
    """Return the states of the first 2000 paths.

    Paths that are not inspected before the time `until` are marked as unseen.
    """
    from outlive.observe.git.object_ids import look_at  # noqa: PLC0415 - a launch does not need this import

    seen: dict[str, bytes] = {}
    for path in paths:
        if len(seen) >= _MOST_FILES:
            break
        seen[path] = look_at(path) if time.monotonic() < until else UNSEEN
    return seen


def _take(directory: str, limits: _Limits) -> tuple[Snapshot, Repository | None, Mapping[str, str]]:
    unknown: list[str] = []
    repository = find_repository(directory)
    is_present = os.path.isdir(directory) if "\0" not in directory else False
    if repository is None:
        return Snapshot(directory=directory, is_present=is_present), None, {}
    if repository.broken is not None:
        unknown.append(f"repository: {repository.broken}")
        state = GitState(
            top=repository.top,
            git_dir=repository.git_dir,
            common_dir=repository.common_dir,
            identity=repository.identity,
        )
        return Snapshot(directory=directory, is_present=is_present, git=state, unknown=tuple(unknown)), repository, {}
    branch, head = _known(unknown, "HEAD", lambda: read_head(repository)) or (None, None)
    config, settings = _known(unknown, "configuration", lambda: read_config(repository)) or (None, {})
    state = GitState(
        top=repository.top,
        git_dir=repository.git_dir,
        common_dir=repository.common_dir,
        identity=repository.identity,
        head=head,
        branch=branch,
        refs=_known(unknown, "refs", lambda: read_refs(repository, limits.refs, limits.packed_bytes)),
        refs_mark=_known(unknown, "refs", lambda: refs_mark(repository)),
        stash=_known(unknown, "stash", lambda: read_stash(repository)),
        worktrees=_known(unknown, "worktrees", lambda: read_worktrees(repository)),
        config=config,
        index=_known(unknown, "index", lambda: identity_of(repository.git_dir + "/index")),
    )
    snapshot = Snapshot(directory=directory, is_present=is_present, git=state, unknown=tuple(unknown))
    return snapshot, repository, settings


def _known(unknown: list[str], what: str, read: Callable[[], T]) -> T | None:
    """Return the result of `read`, or None if `read` fails.

    `what` names the part of the snapshot. The name and the reason of a failure are added to `unknown`.
    """
    try:
        return read()
    except Unknown as reason:
        unknown.append(f"{what}: {reason}")
    except (OSError, ValueError):
        unknown.append(f"{what}: unreadable")
    return None


def _look_inside(
    repository: Repository, settings: Mapping[str, str], until: float, before: Snapshot | None, untracked: bool
) -> tuple[Tree, str]:
    try:
        from outlive.observe.git.index import read_index  # noqa: PLC0415 - only a full snapshot needs this import
        from outlive.observe.git.worktree_files import TreeReader  # noqa: PLC0415
    except ImportError as error:
        # A background process takes this snapshot. The installation may have been removed since this process started.
        raise Unknown("the installation of Outlive was removed meanwhile") from error

    top = repository.top or ""
    elsewhere = settings.get("core.worktree")
    if elsewhere and os.path.realpath(os.path.join(repository.git_dir, elsewhere)) != top:
        raise Unknown("core.worktree names another directory")
    path = repository.git_dir + "/index"
    # Read the index's time before its content. If the index is replaced in between, this time is too early. The only
    # effect is that more files are hashed.
    written = os.lstat(path).st_mtime_ns if os.path.lexists(path) else 0
    index = read_index(path, 32 if settings.get("extensions.objectformat", "").lower() == "sha256" else 20, until)
    also = before.tree.tracked if before and before.tree and before.git and before.git.top == top else ()
    tree = TreeReader(top, index, written, until).look(also, untracked=untracked)
    return tree.but(converts=tree.converts or _converts(repository, settings)), _staged(index)


def _converts(repository: Repository, settings: Mapping[str, str]) -> bool:
    """Return whether git may convert the contents of files.

    Settings, or attribute files that git does not track, can make git convert contents.
    """
    home = os.environ.get("HOME", "")
    own = os.environ.get("XDG_CONFIG_HOME") or home + "/.config"
    configured = [settings, *map(read_settings, ("/etc/gitconfig", own + "/git/config", home + "/.gitconfig"))]
    return (
        any(name in each for each in configured for name in ("core.autocrlf", "core.eol", "core.attributesfile"))
        or os.path.lexists(repository.common_dir + "/info/attributes")
        or any(os.path.lexists(place) for place in (own + "/git/attributes", "/etc/gitattributes"))
    )


def _staged(index: Index) -> str:
    """Return an id that changes when the entries of a git index change.

    The stat fields of entries do not count, because git also refreshes them in unchanged entries.
    """
    from _blake2 import blake2b  # noqa: PLC0415

    from outlive.observe.git.index import INTENT_TO_ADD, SKIP_WORKTREE, STAGE  # noqa: PLC0415

    mask = STAGE | SKIP_WORKTREE | INTENT_TO_ADD
    digest = blake2b(digest_size=16)
    for path, (stamp, content, flags) in index.entries.items():
        digest.update(b"%b\0%b%b%d " % (path, stamp[20:24], content, flags & mask))
    return digest.hexdigest()
