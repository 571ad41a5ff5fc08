"""Drift: the changes between a task's run and now.

A session may read a notice long after its task ran. Then "the tests passed" is useful only if the tested files are
still the same. Outlive does not know which files a task read. So a change of any tracked file in the task's
repositories counts as drift. A change of an untracked file counts only if the task itself was observed to change it.
"""

from __future__ import annotations

from outlive.domain.git.changed_since import compare_tracked
from outlive.domain.git.comparison import compare_refs
from outlive.domain.git.git_state import part_of_git
from outlive.domain.git.snapshot import UNSEEN, is_changed
from outlive.domain.text.sanitize import one_line
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.domain.effects.effects import Effects
    from outlive.domain.git.snapshot import GitState, Snapshot

_MOST_NAMED = 3
_WIDEST_NAME = 80
STILL = "HEAD, all tracked files and what it touched in the project are as they were"
STILL_OUTSIDE = (
    "the files that it touched, except temporary ones, are as they were; it ran in no repository, and the files that it"
    " read are not known"
)


class Distance(Value):
    """The distance between two commits."""

    ahead: int
    """The number of commits that only the later HEAD has."""
    behind: int
    """The number of commits that only the earlier HEAD has."""


class Drift(Value):
    """The drift of one task: what has changed since the task ran.

    `moved` says whether something has changed. It is None if this is not known.
    """

    moved: bool | None
    summary: str
    """One sentence about the most important change."""
    details: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    meanwhile: tuple[str, ...] = ()
    """The details about changes before the task's end.

    The description of the task's effects also lists these changes.
    """

    @property
    def later(self) -> tuple[str, ...]:
        """The details about changes after the task's end.

        If no change is known, but some parts could not be compared with the earlier state, this is a sentence about
        these parts.
        """
        found = tuple(each for each in self.details if each not in self.meanwhile)
        return found or ((_not_known(self.unknown),) if self.unknown else ())


def drift(
    then: Snapshot,
    now: Snapshot,
    distance: Distance | None = None,
    *,
    ended_ns: int | None = None,
    is_own: bool = True,
    is_meanwhile: bool = False,
) -> Drift:
    """Return what changed between the snapshots `then` and `now`.

    `distance` is the number of commits between the two HEADs, if they were counted. `is_own` says whether the task ran
    in this repository. With `is_meanwhile`, the snapshots are from the task's beginning and end.

    All tracked files are compared only if `now` has `tree` and `then` has `dirty` and `contents`. The fields `dirty`
    and `contents` were read shortly after the task's end (`ended_ns`).
    """
    found: list[str] = []
    unknown = list(dict.fromkeys((*then.unknown, *now.unknown)))
    if then.is_present and not now.is_present:
        found.append("the directory it ran in is gone" if is_own else "the directory is gone")
    if then.git is not None:
        if now.git is None or not now.git.identity:
            found.append("the repository it ran in is gone" if is_own else "the repository is gone")
        elif (then.git.git_dir, then.git.identity) != (now.git.git_dir, now.git.identity):
            found.append(f"there is another repository {'where it ran' if is_own else 'in its place'}")
        else:
            found += _git_drift(then.git, now.git, distance, is_own=is_own, is_meanwhile=is_meanwhile)
            found += _settings_drift(then, now, unknown)
            found += _tracked_drift(then, now, ended_ns, unknown)
    elif now.git is not None:
        found.append("there was no repository where it ran, and now there is one")
    found += _file_drift(then, now, unknown)
    if is_meanwhile:
        found = [each.replace("since it ran", "while it ran") for each in found]
    return _summed_up(tuple(found), tuple(unknown), STILL_OUTSIDE if then.git is None else STILL)


def with_further(own: Drift, further: Sequence[tuple[str, Drift]]) -> Drift:
    """Join the drift of the task's own repository and of other repositories.

    Drift is what has changed since the task ran.
    """
    places = [(f"in {one_line(top, _WIDEST_NAME)}: ", found) for top, found in further]
    details = (f"{place}{each}" for place, found in places for each in found.details)
    unknown = (f"{place}{each}" for place, found in places for each in found.unknown)
    return _summed_up((*own.details, *details), (*own.unknown, *unknown), own.summary)


def with_meanwhile(own: Drift, effects: Effects) -> Drift:
    """Add the unattributed changes during the task's run to the changes in `own`.

    `own` lists what has changed since the task ended. It is not known which process made an unattributed change. If
    another process made it, the task may have read the file before the change, so that its result is outdated.
    """
    if not effects.is_attributed:
        return own
    tracked = (each for each in effects.unattributed or () if each.was_tracked)
    changed = [each.name for each in tracked if each.how in ("changed", "gone")]
    found = list(effects.meanwhile)
    if changed:
        files = "1 tracked file" if len(changed) == 1 else f"{len(changed)} tracked files"
        least = "at least " if effects.unattributed_in_all > len(effects.unattributed or ()) else ""
        found.append(f"{least}{files} changed while it ran, read by it or not: {named(changed)}")
    if not found:
        return own
    return _summed_up((*own.details, *found), own.unknown, own.summary).but(meanwhile=tuple(found))


def _summed_up(found: tuple[str, ...], unknown: tuple[str, ...], still: str) -> Drift:
    if found:
        return Drift(moved=True, summary=found[0], details=found, unknown=unknown)
    if unknown:
        return Drift(moved=None, summary=_not_known(unknown), unknown=unknown)
    return Drift(moved=False, summary=still)


def _not_known(why: tuple[str, ...]) -> str:
    return f"whether anything moved since it ran is unknown ({one_line(why[0], _WIDEST_NAME)})"


def _git_drift(
    then: GitState, now: GitState, distance: Distance | None, *, is_own: bool, is_meanwhile: bool
) -> list[str]:
    found = []
    if then.head is not None and now.head is not None and then.head != now.head:
        found.append(_head_drift(then.head, now.head, distance))
    if then.branch is not None and now.branch is not None and then.branch != now.branch:
        was = f"it ran on {_branch(then.branch)}; HEAD" if is_own else f"HEAD was {_at(then.branch)} and"
        went = f"HEAD went from {_branch(then.branch)} to {_branch(now.branch)} while it ran"
        found.append(went if is_meanwhile else f"{was} is now {_at(now.branch)}")
    moves, count = compare_refs(then, now, 20_000)
    remote = [move.name.removeprefix("refs/remotes/") for move in moves if move.name.startswith("refs/remotes/")]
    if remote:
        moved = "1 remote-tracking ref" if len(remote) == 1 else f"{len(remote)} remote-tracking refs"
        found.append(f"{moved} moved since it ran ({named(remote)})")
    elif count and (then.refs is None or now.refs is None):
        found.append("refs moved since it ran; which ones cannot be read")
    if then.config is not None and now.config is not None and then.config != now.config:
        found.append("the repository's configuration changed since it ran")
    return found


def _settings_drift(then: Snapshot, now: Snapshot, unknown: list[str]) -> list[str]:
    """Return which configuration files outside of the repository have changed."""
    if then.settings is None or now.settings is None:
        return []
    changed = []
    for path, was in then.settings.items():
        if path in (then.files or ()):
            continue  # `_file_drift` reports this file, because the task touched it
        answer = is_changed(was, now.settings.get(path, UNSEEN))
        if answer:
            changed.append(path)
        elif answer is None:
            unknown.append(f"configuration: {one_line(path, _WIDEST_NAME)} could not be compared")
    return [f"git's configuration changed since it ran ({named(changed)})"] if changed else []


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
    """Return which of the files and refs that the task touched have changed since.

    The branch that HEAD was on is left out, because `_git_drift` reports changes of HEAD.
    """
    if then.files is None or now.files is None:
        return []
    changed, refs, unsure = [], [], 0
    own = "" if then.git is None else then.git.common_dir + "/"
    for path, was in then.files.items():
        name = path.removeprefix(own) if own and path.startswith(own + "refs/") else None
        if name is not None and then.git is not None and name == then.git.branch:
            continue
        answer = is_changed(was, now.files.get(path, UNSEEN)) if name is None else _is_ref_changed(then, now, name)
        if answer and name is not None:
            refs.append(part_of_git(name, is_own=True) or name)
        elif answer:
            changed.append(path)
        unsure += answer is None
    if unsure:
        unknown.append(f"files it touched: {unsure} could not be compared")
    if then.unfollowed:
        unknown.append(f"files it touched: {then.unfollowed} were too many to be followed")
    told = [f"{named(refs)}, which it moved, moved again since"] if refs else []
    if changed:
        files = "1 file it touched" if len(changed) == 1 else f"{len(changed)} files it touched"
        least = "at least " if unsure or then.touched > len(then.files) else ""
        told.append(f"{least}{files} changed since ({named(changed)})")
    return told


def _tracked_drift(then: Snapshot, now: Snapshot, ended_ns: int | None, unknown: list[str]) -> list[str]:
    """Return which tracked files have changed, except files that the task touched."""
    if then.git is None or now.git is None or (then.dirty is None and now.tree is None):
        return []
    if now.tree is None:
        unknown.append("files: they were not read now")
        return []
    same_index = then.git.staged is not None and then.git.staged == now.git.staged
    same_head = then.git.head == now.git.head
    found = compare_tracked(then, now.tree, ended_ns, same_index=same_index, same_head=same_head)
    if found.unsure:
        unknown.append(f"files: {found.unsure} could not be compared")
    if then.contents is None and same_head and then.git.index != now.git.index:
        unknown.append("index: written since, so the files that were tracked then are not known")
    told = []
    if count := len(found.changed) + found.more:
        files = "1 tracked file" if count == 1 else f"{count} tracked files"
        names = f": {named(list(found.changed))}" if found.changed else ""
        least = "at least " if found.more or found.unsure else ""
        told.append(f"{least}{files} changed since it ran, read by it or not{names}")
    if found.is_other:
        told.append("tracked files were added, moved or removed since it ran")
    return told


def _is_ref_changed(then: Snapshot, now: Snapshot, name: str) -> bool | None:
    """Return whether a ref moved, or None if the refs are not known.

    The file of the ref may be missing although the ref exists, because git may move refs into `packed-refs` at any
    time.
    """
    if then.git is None or now.git is None or then.git.refs is None or now.git.refs is None:
        return None
    return then.git.refs.get(name) != now.git.refs.get(name)


def _commits(count: int) -> str:
    return "1 commit" if count == 1 else f"{count} commits"


def _branch(ref: str) -> str:
    return one_line(ref.removeprefix("refs/heads/"), _WIDEST_NAME) or "a detached HEAD"


def _at(ref: str) -> str:
    return f"at {_branch(ref)}" if ref else "detached"


def named(names: list[str]) -> str:
    """Return a phrase with the first few names and the number of further names."""
    shown = ", ".join(one_line(name, _WIDEST_NAME) for name in names[:_MOST_NAMED])
    return shown if len(names) <= _MOST_NAMED else f"{shown} and {len(names) - _MOST_NAMED} more"
