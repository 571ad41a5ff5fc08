"""The comparison of two snapshots: the net effect of all changes between them.

A comparison never shows which process made a change. A file with new stat fields (stamp) is reported even if its
content is the same, because such a file was rewritten or restored. Lists may be shortened, but counts are complete.
"""

from __future__ import annotations

from outlive.domain.git.snapshot import (
    GONE,
    UNSEEN,
    as_text,
    changed_at_ns,
    content_of,
    kind_of,
    mode_of,
    size_of,
    stamp_of,
    written_at_ns,
)
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Literal

    from outlive.domain.git.snapshot import GitState, Snapshot, Tree

    How = Literal["changed", "rewritten", "touched", "appeared", "gone"]
    Fate = Literal["same", "appeared", "gone", "replaced", "none", "unknown"]

MOST_LISTED = 200


class Move(Value):
    """A ref, HEAD, stash or worktree that moved.

    `before` is empty if `name` did not exist before. `after` is empty if `name` does not exist any more.
    """

    name: str
    before: str
    after: str


class PathChange(Value):
    """One path that has changed or was written."""

    path: str
    how: How
    """`rewritten`: the content is the same as before. `touched`: it is not known whether the content is the same."""
    written_at_ns: int | None = None
    """The time of the file's last write, by the clock of its file system."""
    was_tracked: bool = True


class Comparison(Value):
    """The differences between two snapshots.

    `unknown` names the parts that were not compared.
    """

    directory_gone: bool
    repository: Fate
    top: str | None = None
    """The directory that the paths are relative to."""
    head: Move | None = None
    branch: Move | None = None
    refs: tuple[Move, ...] = ()
    """The moved branches, tags, remote-tracking refs and other refs. The list may be shortened."""
    refs_moved: int = 0
    stash: Move | None = None
    """The newest stash entry in each snapshot.

    The field is also set if only older entries of the stash were removed.
    """
    stash_depth: tuple[int, int] | None = None
    worktrees: tuple[Move, ...] = ()
    index_changed: bool | None = None
    config_changed: bool | None = None
    has_files: bool = False
    """Whether files were compared. If not, `paths` and `counts` are empty."""
    paths: tuple[PathChange, ...] = ()
    counts: Mapping[str, int] = {}
    late: bool = False
    """Whether the command began before the first snapshot was complete.

    Then changes that the command made before the snapshot may be missing.
    """
    unknown: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no change is known. Parts that were not compared may still have changed."""
        moves = self.head or self.branch or self.refs_moved or self.stash or self.worktrees
        other = self.index_changed or self.config_changed or self.paths or self.directory_gone
        return not moves and not other and self.repository in {"same", "none"}


def compare(
    before: Snapshot,
    after: Snapshot,
    most: int = MOST_LISTED,
    *,
    since_ns: int | None = None,
    is_wanted: Callable[[str], bool] = lambda _: True,
) -> Comparison:
    """Return the differences between two snapshots, for the wanted paths.

    `since_ns` is a time before the `before` snapshot was taken, or None. Files that were written between this time and
    the snapshot are reported too. Their content at `since_ns` is not known. If the `before` snapshot lacks a tracked
    file, it is also not known whether the file existed at `since_ns`.
    """
    fate = _fate(before, after)
    unknown = [f"before: {each}" for each in before.unknown] + [f"after: {each}" for each in after.unknown]
    found = Comparison(
        directory_gone=before.is_present and not after.is_present,
        repository=fate,
        top=None if after.git is None else after.git.top,
        late=before.late,
        unknown=tuple(unknown),
    )
    if fate != "same" or before.git is None or after.git is None:
        return found
    found = found.but(**_compare_git(before.git, after.git, most))
    if before.tree is None or after.tree is None:
        return found.but(unknown=(*unknown, "files: not in both snapshots"))
    if not (before.tree.all_untracked and after.tree.all_untracked):
        unknown.append("untracked files: not all were read")
    if before.tree.has_submodules or after.tree.has_submodules:
        unknown.append("submodules: the files in them were not read")
    counts: dict[str, int] = {}
    listed: list[PathChange] = []
    for change in _compare_files(before.tree, after.tree, since_ns):
        if not is_wanted(change.path):
            continue
        counts[change.how] = counts.get(change.how, 0) + 1
        if counts[change.how] <= most:
            listed.append(change)
    return found.but(has_files=True, unknown=tuple(unknown), paths=tuple(listed), counts=counts)


def _fate(before: Snapshot, after: Snapshot) -> Fate:
    then, now = before.git, after.git
    if then is None or now is None:
        return "none" if then is now else "appeared" if then is None else "gone"
    if not then.identity or not now.identity:
        return "gone" if then.identity else "unknown"
    return "same" if (then.git_dir, then.identity) == (now.git_dir, now.identity) else "replaced"


def _compare_git(then: GitState, now: GitState, most: int) -> dict[str, object]:
    moves, count = compare_refs(then, now, most)
    staged = _differ(then.staged, now.staged)
    return {
        "head": _move("HEAD", then.head, now.head),
        "branch": _move("branch", then.branch, now.branch),
        "refs": moves,
        "refs_moved": count,
        "stash": _stash(then.stash, now.stash),
        "stash_depth": None if then.stash is None or now.stash is None else (len(then.stash), len(now.stash)),
        "worktrees": _worktrees(then.worktrees, now.worktrees),
        # Git rewrites the index file whenever it refreshes the files' stat fields in it. So a new index file does not
        # prove a change. An unchanged index file proves that no change was staged.
        "index_changed": False if then.index is not None and then.index == now.index else staged,
        "config_changed": _differ(then.config, now.config),
    }


def compare_refs(then: GitState, now: GitState, most: int = MOST_LISTED) -> tuple[tuple[Move, ...], int]:
    """Return the first moved refs, sorted by name, and the number of all moved refs."""
    if then.refs is None or now.refs is None:
        moved = then.refs_mark is not None and now.refs_mark is not None and then.refs_mark != now.refs_mark
        return ((Move(name="refs", before="", after=""),), 1) if moved else ((), 0)
    names = sorted(name for name in {*then.refs, *now.refs} if then.refs.get(name) != now.refs.get(name))
    moves = (Move(name=name, before=then.refs.get(name, ""), after=now.refs.get(name, "")) for name in names[:most])
    return tuple(moves), len(names)


def _move(name: str, then: str | None, now: str | None) -> Move | None:
    if then is None or now is None or then == now:
        return None
    return Move(name=name, before=then, after=now)


def _differ(then: str | None, now: str | None) -> bool | None:
    return None if then is None or now is None else then != now


def _stash(then: tuple[str, ...] | None, now: tuple[str, ...] | None) -> Move | None:
    if then is None or now is None or then == now:
        return None
    return Move(name="stash", before=then[0] if then else "", after=now[0] if now else "")


def _worktrees(then: tuple[str, ...] | None, now: tuple[str, ...] | None) -> tuple[Move, ...]:
    if then is None or now is None:
        return ()
    gone = (Move(name=name, before=name, after="") for name in then if name not in now)
    return (*gone, *(Move(name=name, before="", after=name) for name in now if name not in then))


def _compare_files(before: Tree, after: Tree, since_ns: int | None) -> Iterable[PathChange]:
    then, now = {**before.untracked, **before.tracked}, {**after.untracked, **after.tracked}
    full_then, full_now = _directories(before), _directories(after)
    for path in sorted({*then, *now}):
        was, is_now = then.get(path, b""), now.get(path, b"")
        if UNSEEN in {kind_of(was), kind_of(is_now)}:
            continue
        if since_ns is not None and _is_too_late(was, since_ns) and was + is_now != GONE + GONE:
            # If the file was missing in the first snapshot, and its last change is older than that snapshot, its
            # directory was moved here.
            came = was == GONE and any(stamp := stamp_of(is_now)) and changed_at_ns(stamp) < since_ns
            yield _change(path, "appeared" if came else "touched", stamp_of(is_now), before)
            continue
        if was == is_now:
            continue
        if (not was and not _is_absent(before, full_then, path)) or (
            not is_now and not _is_absent(after, full_now, path)
        ):
            continue
        how = _how(was, is_now, converts=before.converts or after.converts)
        if how is not None:
            yield _change(path, how, stamp_of(is_now), before)


def _is_too_late(was: bytes, since_ns: int) -> bool:
    """Return whether a path may have changed between `since_ns` and its reading."""
    stamp = stamp_of(was)
    return was == GONE or (any(stamp) and changed_at_ns(stamp) >= since_ns)


def _change(path: bytes, how: How, stamp: bytes, before: Tree) -> PathChange:
    return PathChange(
        path=as_text(path),
        how=how,
        written_at_ns=written_at_ns(stamp) if any(stamp) else None,
        was_tracked=path in before.tracked,
    )


def _directories(tree: Tree) -> set[bytes]:
    """Return the directories with tracked files, each with a slash at its end."""
    found: set[bytes] = set()
    for path in tree.tracked:
        above = path.rpartition(b"/")[0]
        while above and above + b"/" not in found:
            found.add(above + b"/")
            above = above.rpartition(b"/")[0]
    return found


def _is_absent(tree: Tree, directories: set[bytes], path: bytes) -> bool:
    """Return whether a path that is not in a snapshot is known to be absent.

    Returns False if the snapshot does not list the entries of a directory around the path.
    """
    if not tree.all_untracked or path in directories:
        return False
    above = path.rstrip(b"/").rpartition(b"/")[0]
    while above:
        if above + b"/" in tree.untracked:
            return False
        above = above.rpartition(b"/")[0]
    return True


def _how(was: bytes, is_now: bytes, *, converts: bool) -> How | None:
    there, here = was[:1] not in (b"", GONE), is_now[:1] not in (b"", GONE)
    if not there or not here:
        return "appeared" if here else "gone" if there else None
    stamp, stamp_now = stamp_of(was), stamp_of(is_now)
    content, content_now = content_of(was), content_of(is_now)
    if content and content_now:
        if content == content_now and mode_of(stamp) == mode_of(stamp_now):
            return None if stamp == stamp_now else "rewritten"
        # Git may convert a file (for example its line ends) before it computes the id. Such an id cannot be compared
        # with an id of the file's bytes.
        if kind_of(was) == kind_of(is_now) or not converts:
            return "changed"
    if stamp == stamp_now:
        return None
    if size_of(stamp) != size_of(stamp_now) or mode_of(stamp) != mode_of(stamp_now):
        return "changed"
    return "touched"
