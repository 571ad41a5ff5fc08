"""Comparison of all files of a task's repositories before and after the task.

The first snapshot is taken while the command already runs. The first snapshot may have many megabytes, so it is stored
in an unnamed file. The bundle keeps the comparison, the files that differ from the git index at the end, and digests of
the contents of all files.
"""

from __future__ import annotations

import marshal
import os
import time

from outlive.domain.git.comparison import compare
from outlive.domain.git.comparison_json import to_json
from outlive.domain.git.content_digest import contents_of, without_touched
from outlive.domain.git.snapshot import GONE, UNSEEN, GitState, Snapshot, Tree, as_text, dirty_paths, is_changed_between
from outlive.domain.git.snapshot_json import to_json as snapshot_to_json
from outlive.observe.git.take_snapshot import DEFAULT_BUDGET_S, take_full
from outlive.observe.path_state import changed_at_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

MOST_DIRTY = 2000
_MOST_OF_A_KIND = 500


def keep_first(
    fd: int, directories: Sequence[str], outside: Collection[str], baseline: int | None, since_ns: int
) -> None:
    """Store a full snapshot of each directory's repository in a file.

    `fd` is the file. `outside` lists the directories that were not in a repository before the command. For such a
    directory, an empty snapshot is stored, so a repository that is found there later counts as new.

    `baseline` is another open file or None. The baseline file gets the states of the files that were not written since
    `since_ns`.
    """
    until = time.monotonic() + DEFAULT_BUDGET_S
    found = [
        Snapshot(directory=directory, is_present=True, late=True)
        if directory in outside
        else take_full(directory, max(0.0, until - time.monotonic()), late=True)
        for directory in directories
    ]
    if baseline is not None:
        from outlive.observe.watch.baseline import write_baseline  # noqa: PLC0415 - only tasks whose files are watched need this import

        write_baseline(baseline, found, since_ns)
    with open(fd, "wb", closefd=False) as file:
        marshal.dump([_plain(each) for each in found], file)


def compare_with_first(
    fd: int,
    quick: Sequence[Snapshot],
    *,
    since_ns: int | None,
    until_ns: int,
    seen: Collection[str],
    ignored: str,
    worktrees: str,
) -> tuple[str, str]:
    """Return the comparisons and the last snapshots, as two strings for the bundle.

    `fd` is the file with the first snapshots. `quick` are small snapshots that were taken at the end of the task. If
    `since_ns` is given, the command was already running when the first snapshot was taken.

    The comparisons leave out the paths in `seen`, whose changes were observed, and the directory `ignored`, to which
    Outlive writes. But a repository in `worktrees`, where agents work, is compared as a whole.

    Changes after `until_ns`, the end of the task, are only counted. A process that waited for the task may have made
    these changes.
    """
    comparisons, last, trees = [], [], []
    known, until = _with_parents(seen), time.monotonic() + DEFAULT_BUDGET_S
    for first, now in zip(_first(fd), quick, strict=True):
        then = first.but(late=since_ns is not None)
        after = take_full(now.directory, max(0.0, until - time.monotonic()), before=then)
        top = "" if after.git is None else (after.git.top or "").rstrip("/")
        wanted = _Wanted(top, known, None if top.startswith(f"{worktrees}/") else f"{ignored}/", until_ns)
        comparison = compare(
            then, _with_git_of(now, after), _MOST_OF_A_KIND, since_ns=since_ns, is_wanted=wanted.is_wanted
        )
        if wanted.later:
            words = f"files: {wanted.later} changed after the task's end, before they were compared"
            comparison = comparison.but(unknown=(*comparison.unknown, words))
        if comparison.repository != "none":
            comparisons.append(comparison)
        last.append(_with_dirty(now, after, then, until_ns, quick[0].files or ()))
        trees.append(after)
    if last and last[0].unfollowed:
        last[0] = last[0].but(unfollowed=_unfollowed(seen, last[0].files or (), trees))
    return "".join(to_json(each) + "\n" for each in comparisons), kept_snapshots(last)


def kept_snapshots(snapshots: Sequence[Snapshot]) -> str:
    """Return snapshots as lines of JSON.

    The first line is the snapshot of the task's own directory.
    """
    return "".join(snapshot_to_json(each) + "\n" for each in snapshots)


class _Wanted:
    """A filter for the changed paths below a directory, for a comparison.

    The filter leaves out and counts the changes after `until_ns`.
    """

    def __init__(self, top: str, known: Collection[str], ignored: str | None, until_ns: int) -> None:
        self._top, self._known, self._ignored, self._until_ns = top, known, ignored, until_ns
        self.later = 0

    def is_wanted(self, name: str) -> bool:
        """Return whether a changed path belongs in the comparison.

        The name of a directory ends in a slash.
        """
        path = f"{self._top}/{name}"
        if path.rstrip("/") in self._known or self._is_ignored(path):
            return False
        is_later = changed_at_ns(path) > self._until_ns
        self.later += is_later
        return not is_later

    def _is_ignored(self, path: str) -> bool:
        return self._ignored is not None and (self._ignored.startswith(path) or path.startswith(self._ignored))


def _with_parents(paths: Collection[str]) -> set[str]:
    """Return the paths, and all directories above the paths.

    If a path changes, the times of these directories may change, too.
    """
    found: set[str] = set()
    for path in paths:
        above = path
        while above and above not in found:
            found.add(above)
            above = above.rpartition("/")[0]
    return found


def _with_git_of(quick: Snapshot, full: Snapshot) -> Snapshot:
    """Return the full snapshot with the git state of the quick snapshot.

    The quick snapshot, which has no files of the worktree, was taken at the end of the task. The full snapshot was
    taken later.
    """
    if quick.git is None or full.git is None or quick.git.identity != full.git.identity:
        return full
    return full.but(git=quick.git.but(staged=full.git.staged))


def _with_dirty(quick: Snapshot, full: Snapshot, first: Snapshot, until_ns: int, named: Collection[str]) -> Snapshot:
    """Add the changed files and the digests of all files to the quick snapshot.

    Files that changed after `until_ns` are added too, because their state at `until_ns` is unknown. The digests leave
    out the paths in `named`. If some files were not inspected, or too many have changed, nothing is added.
    """
    if full.tree is None or full.tree.stopped is not None or full.git is None:
        return quick
    tracked = without_touched(full.tree.tracked, full.git.top, named)
    kept = dirty_paths(full.tree) | dict(_changed_later(tracked, full.git.top or "", first.tree, until_ns))
    if len(kept) > MOST_DIRTY or quick.git is None:
        return quick
    return quick.but(dirty=kept, contents=contents_of(tracked), git=quick.git.but(staged=full.git.staged))


def _unfollowed(seen: Collection[str], files: Collection[str], snapshots: Sequence[Snapshot]) -> int:
    """Return how many observed paths have no stored state and are not tracked by git.

    `seen` are the observed paths, and `files` the paths with a stored state.
    """
    left = {path for path in seen if path not in files}
    for each in snapshots:
        if each.git is not None and each.tree is not None and each.tree.stopped is None:
            top = (each.git.top or "").rstrip("/")
            left.difference_update(f"{top}/{as_text(path)}" for path in each.tree.tracked)
    # Git's own files do not count. The refs and the index are compared with the snapshot, and other files of git, such
    # as ORIG_HEAD, do not matter.
    gits = tuple(f"{place}/" for each in snapshots if each.git for place in (each.git.git_dir, each.git.common_dir))
    return sum(not path.startswith(gits) for path in left)


def _changed_later(
    tracked: Mapping[bytes, bytes], top: str, first: Tree | None, until_ns: int
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the tracked files that changed after `until_ns`, with their states.

    A missing file is included if it may have existed in the first snapshot, and if its directory changed after
    `until_ns`.
    """
    now_ns = time.time_ns()
    for path, seen in tracked.items():
        if seen == GONE:
            was_there = first is None or first.tracked.get(path) != GONE
            if was_there and changed_at_ns(f"{top.rstrip('/')}/{as_text(path)}") > until_ns:
                yield path, UNSEEN
        elif is_changed_between(seen, until_ns, now_ns):
            yield path, seen


def _first(fd: int) -> list[Snapshot]:
    os.lseek(fd, 0, os.SEEK_SET)
    with open(fd, "rb", closefd=False) as file:
        return [_snapshot(*parts) for parts in marshal.load(file)]  # noqa: S302 - this process wrote the data, to an unnamed file


def _plain(snapshot: Snapshot) -> tuple[dict[str, object], dict[str, object] | None, dict[str, object] | None]:
    """Return the fields of a snapshot in types that marshal can write."""
    git, tree = snapshot.git, snapshot.tree
    rest = {name: each for name, each in vars(snapshot).items() if name not in ("git", "tree")}
    return rest, None if git is None else vars(git), None if tree is None else vars(tree)


def _snapshot(rest: dict[str, object], git: dict[str, object] | None, tree: dict[str, object] | None) -> Snapshot:
    return Snapshot(
        **rest,  # type: ignore[arg-type]
        git=None if git is None else GitState(**git),  # type: ignore[arg-type]
        tree=None if tree is None else Tree(**tree),  # type: ignore[arg-type]
    )
