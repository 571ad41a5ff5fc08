"""The search for tracked files that changed since a task ended.

The snapshot at the task's end has the content ids of the files that differed from git's index at that time. All other
files are compared by the digests of `content_digest`. So the result does not depend on later changes of the index.
"""

from __future__ import annotations

from outlive.domain.git.content_digest import contents_of, mark_of, marks_that_differ, without_touched
from outlive.domain.git.snapshot import (
    AS_INDEXED,
    GONE,
    UNSEEN,
    as_text,
    changed_at_ns,
    is_changed,
    kind_of,
    stamp_of,
)
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from outlive.domain.git.snapshot import Snapshot, Tree

KERNELS_CLOCK_LAGS_NS = 20_000_000


class TrackedDrift(Value):
    """The tracked files that have changed or may have changed."""

    changed: tuple[str, ...] = ()
    more: int = 0
    """The number of groups of files (see `content_digest`) in which a file changed, but it is not known which file."""
    unsure: int = 0
    """The number of files that may have changed."""
    is_other: bool = False
    """Whether tracked files were added, moved or removed."""


def compare_tracked(
    then: Snapshot, now: Tree, ended_ns: int | None, *, same_index: bool, same_head: bool
) -> TrackedDrift:
    """Return how the tracked files differ from those of a stored snapshot.

    Files that the task touched, and files whose change was committed, are left out, because other functions report
    them.
    """
    top = None if then.git is None else then.git.top
    tracked = without_touched(now.tracked, top, then.files)
    if then.dirty is None or then.contents is None:
        return _told(_by_times(tracked, ended_ns))
    was_dirty = without_touched(then.dirty, top, then.files)
    answers = {
        path: _is_dirty_changed(was, tracked.get(path, UNSEEN), now, ended_ns) for path, was in was_dirty.items()
    }
    clean = {path: seen for path, seen in tracked.items() if path not in was_dirty}
    if same_index or now.stopped is not None:
        # If the index has not changed, a file that was equal to the index and now differs from it has changed.
        return _told(answers | {path: True if same_index else None for path, seen in clean.items() if _is_dirty(seen)})
    differ = marks_that_differ(then.contents, contents_of({**clean, **was_dirty}))
    suspects: dict[int, list[bytes]] = {mark: [] for mark in differ}
    for path, seen in clean.items():
        if (mark := mark_of(path)) in differ and _may_have_changed(seen, ended_ns, same_head=same_head):
            suspects[mark].append(path)
    if not same_head:
        return _told(answers | {path: True for paths in suspects.values() for path in paths})
    found = _told(answers | {paths[0]: True for paths in suspects.values() if len(paths) == 1})
    return found.but(
        more=sum(len(paths) > 1 for paths in suspects.values()), is_other=any(not paths for paths in suspects.values())
    )


def changed_by_time(then: Snapshot, now: Snapshot, ended_ns: int) -> dict[bytes, int]:
    """Return the tracked files that count as changed only because of their times.

    The result has the time of each file's last change. The result is empty if all files were read after the task's end,
    because then their contents are compared.
    """
    if then.git is None or now.tree is None or (then.dirty is not None and then.contents is not None):
        return {}
    tracked = without_touched(now.tree.tracked, then.git.top, then.files)
    return {path: changed_at_ns(stamp_of(seen)) for path, seen in tracked.items() if _is_written(seen, ended_ns)}


def _told(answers: Mapping[bytes, bool | None]) -> TrackedDrift:
    changed = tuple(as_text(path) for path in sorted(answers) if answers[path])
    return TrackedDrift(changed=changed, unsure=sum(answer is None for answer in answers.values()))


def _may_have_changed(seen: bytes, ended_ns: int | None, *, same_head: bool) -> bool:
    """Return whether a file that was equal to the index may have changed."""
    stamp = stamp_of(seen)
    is_recent = not any(stamp) or ended_ns is None or changed_at_ns(stamp) >= ended_ns - KERNELS_CLOCK_LAGS_NS
    if not same_head:
        return is_recent and _is_dirty(seen)
    # Old times alone do not prove that a file is unchanged: a file that was moved here with its directory keeps its
    # times.
    return (is_recent or _is_dirty(seen)) and seen != UNSEEN


def _by_times(tracked: Mapping[bytes, bytes], ended_ns: int | None) -> dict[bytes, bool | None]:
    """Return for each file whether its time shows a change, or None if unknown."""
    return {path: _is_written(seen, ended_ns) for path, seen in tracked.items()}


def _is_written(is_now: bytes, ended_ns: int | None) -> bool | None:
    stamp = stamp_of(is_now)
    if not stamp or ended_ns is None:
        return None
    if not any(stamp):  # this is a submodule, and its state has no time of the last change
        return None if _is_dirty(is_now) else False
    return False if changed_at_ns(stamp) < ended_ns else _is_dirty(is_now) or None


def _is_dirty_changed(was: bytes, is_now: bytes, tree: Tree, ended_ns: int | None) -> bool | None:
    """Return whether a file that differed from the index has changed.

    Returns None if this is not known.
    """
    stamp = stamp_of(was)
    if was == UNSEEN or (stamp and ended_ns is not None and changed_at_ns(stamp) >= ended_ns):
        return _is_dirty(is_now) or None  # the file changed between the task's end and the snapshot
    if tree.converts and kind_of(was) != kind_of(is_now) and GONE not in {was, is_now}:
        # Git may convert a file (for example its line ends) before it computes the id. Such an id cannot be compared
        # with an id of the file's bytes.
        return False if stamp == stamp_of(is_now) else None
    return is_changed(was, is_now)


def _is_dirty(seen: bytes) -> bool:
    return kind_of(seen) not in (AS_INDEXED, UNSEEN)
