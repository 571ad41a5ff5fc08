"""The tracked files that changed since a task ended, whether git was told of it or not.

A file that was not as the index said then is kept with what it held. All others were: what they held is known by the
marks that all contents left, whatever the index says now.
"""

from __future__ import annotations

from outlive.domain.contents import contents_of, mark_of, marks_that_differ, without_touched
from outlive.domain.snapshot import (
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

    from outlive.domain.snapshot import Snapshot, Tree

_KERNELS_CLOCK_LAGS_NS = 20_000_000


class TrackedDrift(Value):
    """What is known of the tracked files."""

    changed: tuple[str, ...] = ()
    more: int = 0
    """So many times at least one of several changed, and nobody knows which."""
    unsure: int = 0
    """Files of which it is not known whether they changed."""
    is_other: bool = False
    """Whether names are tracked, and there, that were not, or the other way round."""


def compare_tracked(
    then: Snapshot, now: Tree, ended_ns: int | None, *, same_index: bool, same_head: bool
) -> TrackedDrift:
    """How they differ, but for those that the task was seen to touch. A commit is told as that, not by its files."""
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
        # Not as the index says, which says what it did: then it must have changed.
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


def _told(answers: Mapping[bytes, bool | None]) -> TrackedDrift:
    changed = tuple(as_text(path) for path in sorted(answers) if answers[path])
    return TrackedDrift(changed=changed, unsure=sum(answer is None for answer in answers.values()))


def _may_have_changed(seen: bytes, ended_ns: int | None, *, same_head: bool) -> bool:
    """Whether it may be this file that changed, which was as the index said."""
    stamp = stamp_of(seen)
    is_recent = not any(stamp) or ended_ns is None or changed_at_ns(stamp) >= ended_ns - _KERNELS_CLOCK_LAGS_NS
    if not same_head:
        return is_recent and _is_dirty(seen)
    # What came with its whole directory has the times that it had elsewhere.
    return (is_recent or _is_dirty(seen)) and seen != UNSEEN


def _by_times(tracked: Mapping[bytes, bytes], ended_ns: int | None) -> dict[bytes, bool | None]:
    """Whether files changed of which nobody knows what they were when the task ended."""
    return {path: _is_written(seen, ended_ns) for path, seen in tracked.items()}


def _is_written(is_now: bytes, ended_ns: int | None) -> bool | None:
    stamp = stamp_of(is_now)
    if not stamp or ended_ns is None:
        return None
    if not any(stamp):  # a submodule: that another commit is checked out there says nothing of when
        return None if _is_dirty(is_now) else False
    return False if changed_at_ns(stamp) < ended_ns else _is_dirty(is_now) or None


def _is_dirty_changed(was: bytes, is_now: bytes, tree: Tree, ended_ns: int | None) -> bool | None:
    """Whether a file changed that was not as the index said, or of which nobody knows whether it was."""
    stamp = stamp_of(was)
    if was == UNSEEN or (stamp and ended_ns is not None and changed_at_ns(stamp) >= ended_ns):
        return _is_dirty(is_now) or None  # changed when the task was over already, before anybody looked
    if tree.converts and kind_of(was) != kind_of(is_now) and GONE not in {was, is_now}:
        # One id by git and one of bytes that git would have converted first measure different things.
        return False if stamp == stamp_of(is_now) else None
    return is_changed(was, is_now)


def _is_dirty(seen: bytes) -> bool:
    return kind_of(seen) not in (AS_INDEXED, UNSEEN)
