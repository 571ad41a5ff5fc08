"""Drift: what moved in the world between a task's run and now.

A notice may be read long after its task ran. "The tests passed" is news only if what they tested
is still what lies there; this module says whether it is, in one sentence and then in full.

Nobody knows which files a task read. So every tracked file of its repository counts, and is told as
that; files that are not tracked, and those elsewhere, count only if it was seen to change them.
"""

from __future__ import annotations

from outlive.domain.comparison import compare_refs
from outlive.domain.snapshot import (
    GITLINK,
    GONE,
    UNSEEN,
    as_text,
    changed_at_ns,
    content_of,
    dirty_paths,
    inode_of,
    kind_of,
    mode_of,
    present_id,
    size_of,
    stamp_of,
)
from outlive.domain.text import one_line
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.domain.snapshot import GitState, Snapshot, Tree

_MOST_NAMED = 3
_WIDEST_NAME = 80
STILL = "HEAD, all tracked files and what it touched in the project are as they were"
STILL_OUTSIDE = (
    "what it touched beside temporary files is as it was; it ran in no repository, and what it read is not known"
)


class Distance(Value):
    """How two commits lie to each other."""

    ahead: int
    """Commits that only the later of the two snapshots has."""
    behind: int
    """Commits that only the earlier one has."""


class Drift(Value):
    """What moved: None if nothing is known to have, and something could not be compared."""

    moved: bool | None
    summary: str
    """One sentence; the weightiest if there are more."""
    details: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def drift(
    then: Snapshot,
    now: Snapshot,
    distance: Distance | None = None,
    *,
    taken_ns: int | None = None,
    ended_ns: int | None = None,
) -> Drift:
    """What moved since `then`; `distance` is that of the two HEADs, if somebody counted.

    Files by name need `files` in both; all tracked files need `tree` now, `dirty` then, and by the clock of the
    file system when that was `taken`, a little after the task had `ended`.
    """
    found: list[str] = []
    unknown = list(dict.fromkeys((*then.unknown, *now.unknown)))
    if then.is_present and not now.is_present:
        found.append("the directory it ran in is gone")
    if then.git is not None:
        if now.git is None or not now.git.identity:
            found.append("the repository it ran in is gone")
        elif (then.git.git_dir, then.git.identity) != (now.git.git_dir, now.git.identity):
            found.append("another repository lies where it ran")
        else:
            found += _git_drift(then.git, now.git, distance)
            found += _settings_drift(then, now, unknown)
            found += _tracked_drift(then, now, taken_ns, ended_ns, unknown) or _names_drift(then, now, unknown)
    elif now.git is not None:
        found.append("there was no repository where it ran, and now there is one")
    found += _file_drift(then, now, unknown)
    if found:
        return Drift(moved=True, summary=found[0], details=tuple(found), unknown=tuple(unknown))
    if unknown:
        return Drift(
            moved=None,
            summary=f"whether anything moved since it ran is unknown ({one_line(unknown[0], _WIDEST_NAME)})",
            unknown=tuple(unknown),
        )
    return Drift(moved=False, summary=STILL_OUTSIDE if then.git is None else STILL)


def _git_drift(then: GitState, now: GitState, distance: Distance | None) -> list[str]:
    found = []
    if then.head is not None and now.head is not None and then.head != now.head:
        found.append(_head_drift(then.head, now.head, distance))
    if then.branch is not None and now.branch is not None and then.branch != now.branch:
        found.append(f"it ran on {_branch(then.branch)}; HEAD is now {_at(now.branch)}")
    moves, count = compare_refs(then, now, 20_000)
    remote = [move.name.removeprefix("refs/remotes/") for move in moves if move.name.startswith("refs/remotes/")]
    if remote:
        moved = "1 remote-tracking ref" if len(remote) == 1 else f"{len(remote)} remote-tracking refs"
        found.append(f"{moved} moved since it ran ({_named(remote)})")
    elif count and (then.refs is None or now.refs is None):
        found.append("refs moved since it ran; which ones cannot be read")
    if then.config is not None and now.config is not None and then.config != now.config:
        found.append("the repository's configuration changed since it ran")
    return found


def _settings_drift(then: Snapshot, now: Snapshot, unknown: list[str]) -> list[str]:
    """The configuration that git reads beside the repository's own: included, the user's, the system's."""
    if then.settings is None or now.settings is None:
        return []
    changed = []
    for path, was in then.settings.items():
        if path in (then.files or ()):
            continue  # told as a file it touched
        answer = _is_changed(was, now.settings.get(path, UNSEEN))
        if answer:
            changed.append(path)
        elif answer is None:
            unknown.append(f"configuration: {one_line(path, _WIDEST_NAME)} could not be compared")
    return [f"git's configuration changed since it ran ({_named(changed)})"] if changed else []


def _head_drift(then: str, now: str, distance: Distance | None) -> str:
    ids = f"({then[:7] or 'no commit'} -> {now[:7] or 'no commit'})"
    if distance is None or (not distance.ahead and not distance.behind):
        return f"HEAD moved since it ran {ids}"
    if not distance.behind:
        return f"HEAD moved {_commits(distance.ahead)} since it ran {ids}"
    if not distance.ahead:
        return f"HEAD went back {_commits(distance.behind)} since it ran {ids}"
    return f"HEAD lost {_commits(distance.behind)} and gained {distance.ahead} since it ran {ids}"


def _file_drift(then: Snapshot, now: Snapshot, unknown: list[str]) -> list[str]:
    if then.files is None or now.files is None:
        return []
    changed, unsure = [], 0
    own = "" if then.git is None else then.git.common_dir + "/"
    for path, was in then.files.items():
        if own and path.startswith(own + "refs/"):
            answer = _is_ref_changed(then, now, path.removeprefix(own))
        else:
            answer = _is_changed(was, now.files.get(path, UNSEEN))
        if answer:
            changed.append(path)
        unsure += answer is None
    if unsure:
        unknown.append(f"files it touched: {unsure} could not be compared")
    if not changed:
        return []
    files = "1 file it touched" if len(changed) == 1 else f"{len(changed)} files it touched"
    return [f"{files} changed since ({_named(changed)})"]


def _tracked_drift(
    then: Snapshot, now: Snapshot, taken_ns: int | None, ended_ns: int | None, unknown: list[str]
) -> list[str]:
    """The tracked files that changed, but for those that are told as files it touched."""
    if then.git is None or now.git is None or (then.dirty is None and now.tree is None):
        return []
    if now.tree is None:
        unknown.append("files: nobody looked at them now")
        return []
    top = (then.git.top or "").rstrip("/")
    same_index = then.git.staged is not None and then.git.staged == now.git.staged
    changed, unsure = [], 0
    dirty = dirty_paths(now.tree)
    for path in sorted(now.tree.tracked if then.dirty is None else {*then.dirty, *dirty}):
        name = as_text(path)
        if then.files is not None and f"{top}/{name}" in then.files:
            continue
        was, is_now = (then.dirty or {}).get(path), now.tree.tracked.get(path, UNSEEN)
        if then.dirty is None:
            answer = _is_written(is_now, ended_ns, is_dirty=path in dirty)
        elif was is not None and ended_ns is not None and stamp_of(was) and changed_at_ns(stamp_of(was)) >= ended_ns:
            answer = path in dirty or None  # written when the task was over already, before anybody looked
        elif was is None:
            answer = _is_dirtied(is_now, taken_ns, same_index=same_index)
        else:
            answer = _is_rewritten(was, is_now, now.tree)
        if answer:
            changed.append(name)
        unsure += answer is None
    if unsure:
        unknown.append(f"files: {unsure} could not be compared")
    files = "1 tracked file" if len(changed) == 1 else f"{len(changed)} tracked files"
    return [f"{files} changed since it ran, read by it or not: {_named(changed)}"] if changed else []


def _names_drift(then: Snapshot, now: Snapshot, unknown: list[str]) -> list[str]:
    """What `git rm`, `git mv` and `git add` did: a file that is tracked no longer is in no list of files now."""
    if then.git is None or now.git is None or now.tree is None or then.git.head != now.git.head:
        return []  # a commit is told as that
    if then.present is None:
        if then.git.index != now.git.index:
            unknown.append("index: written since, and nobody knows which files were tracked then")
        return []
    is_other = present_id(now.tree) not in {then.present, None}
    return ["tracked files were added, moved or removed since it ran"] if is_other else []


def _is_written(is_now: bytes, ended_ns: int | None, *, is_dirty: bool) -> bool | None:
    """Whether a file changed of which nobody knows what it was when the task ended."""
    stamp = stamp_of(is_now)
    if not stamp or ended_ns is None:
        return None
    if not any(stamp):  # a submodule: that another commit is checked out there says nothing of when
        return None if is_dirty else False
    return False if changed_at_ns(stamp) < ended_ns else is_dirty or None


def _is_dirtied(is_now: bytes, taken_ns: int | None, *, same_index: bool) -> bool | None:
    """Whether a file changed that was as the index said, and now is not: that, or the index, must have."""
    if same_index:
        return True
    stamp = stamp_of(is_now)
    return None if not stamp or taken_ns is None else changed_at_ns(stamp) >= taken_ns


def _is_rewritten(was: bytes, is_now: bytes, tree: Tree) -> bool | None:
    """Whether a file changed that was not as the index said."""
    if tree.converts and kind_of(was) != kind_of(is_now) and GONE not in {was, is_now}:
        # One id by git and one of bytes that git would have converted first measure different things.
        return False if stamp_of(was) == stamp_of(is_now) else None
    return _is_changed(was, is_now)


def _is_changed(was: bytes, is_now: bytes) -> bool | None:
    if was == is_now:
        return False if was != UNSEEN else None
    if UNSEEN in {kind_of(was), kind_of(is_now)}:
        return None
    if GONE in {was, is_now}:
        return True
    stamp, stamp_now = stamp_of(was), stamp_of(is_now)
    if size_of(stamp) != size_of(stamp_now) or mode_of(stamp) != mode_of(stamp_now):
        return True
    if content_of(was) and len(content_of(was)) == len(content_of(is_now)):
        return content_of(was) != content_of(is_now)
    # Names come and go in a directory; those that it touched are compared, and every git writes into its own.
    is_directory = mode_of(stamp) == GITLINK and inode_of(stamp) == inode_of(stamp_now)
    return False if stamp == stamp_now or is_directory else None


def _is_ref_changed(then: Snapshot, now: Snapshot, name: str) -> bool | None:
    """Whether a ref moved; its file proves nothing, for git packs refs into another one at will."""
    if then.git is None or now.git is None or then.git.refs is None or now.git.refs is None:
        return None
    return then.git.refs.get(name) != now.git.refs.get(name)


def _commits(count: int) -> str:
    return "1 commit" if count == 1 else f"{count} commits"


def _branch(ref: str) -> str:
    return one_line(ref.removeprefix("refs/heads/"), _WIDEST_NAME) or "a detached HEAD"


def _at(ref: str) -> str:
    return f"at {_branch(ref)}" if ref else "detached"


def _named(names: list[str]) -> str:
    shown = ", ".join(one_line(name, _WIDEST_NAME) for name in names[:_MOST_NAMED])
    return shown if len(names) <= _MOST_NAMED else f"{shown} and {len(names) - _MOST_NAMED} more"
