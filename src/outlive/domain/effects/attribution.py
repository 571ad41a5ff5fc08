"""The attribution of changes: which changes a task itself made during its run.

Outlive records the system calls of a task. A comparison of two snapshots may show a change without a recorded call.
Such a change is reported as unattributed, because another process made it, or the task made it without being observed.
"""

from __future__ import annotations

from outlive.domain.effects.drift import drift
from outlive.domain.effects.effects import Unattributed
from outlive.domain.git.comparison import compare_refs
from outlive.domain.git.git_state import but_for, of_repository, part_of_git
from outlive.domain.text.sanitize import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from outlive.domain.effects.effects import Effects
    from outlive.domain.git.comparison import Comparison, Move
    from outlive.domain.git.snapshot import GitState, Snapshot

LATE = "changes in its first moments"
_MOST_NAMED, _WIDEST_NAME = 6, 80


def with_comparisons(
    effects: Effects, comparisons: Sequence[Comparison], quick: tuple[Snapshot, Snapshot] | None
) -> Effects:
    """Add the changes that were found only by comparing snapshots to `effects`.

    `effects` are the observed effects of a task. `quick` has the snapshots from the task's beginning and end.
    """
    snapshots = None if quick is None else _but_for_its_own(effects, *quick)
    known = None if quick is None or quick[0].git is None or quick[1].git is None else quick[0].git.top
    further = [each for each in comparisons if known is None or each.top != known]
    meanwhile = () if snapshots is None else drift(*snapshots, is_meanwhile=True).details
    moves = (*meanwhile, *_moves(effects, snapshots))
    shared = () if known is None or quick is None else _refs_moved(quick)
    for there in further:
        drifted, others = _moves_of_further(there, _Seen(_seen_in(effects), there.top or "", known), shared)
        meanwhile, moves = (*meanwhile, *drifted), (*moves, *drifted, *others)
    effects = effects.but(moved="; ".join(moves) or None, meanwhile=meanwhile)
    if comparisons:
        effects = effects.but(uncompared=_uncompared(comparisons))
    if any(each.has_files for each in comparisons):
        # Leave out paths that the observed system calls attribute to the task. The comparison may show such a path as
        # changed, because a process that the task left running can change the path after the comparison has begun.
        seen = frozenset((*effects.changed, *effects.created, *effects.restored, *effects.rewritten))
        # If the task moved a directory, the paths in the directory have moved with it.
        away = frozenset((*effects.changed, *effects.restored))
        found = [each for comparison in comparisons for each in _unattributed(comparison)]
        unseen = tuple(each for each in found if each.path not in seen and not _came_along(each, away))
        in_all = sum(count for each in comparisons for count in each.counts.values())
        effects = effects.but(
            unattributed=(*(effects.unattributed or ()), *unseen),
            unattributed_in_all=effects.unattributed_in_all + in_all - len(found) + len(unseen),
        )
    if effects.unattributed:
        effects = effects.but(unattributed=tuple(_as_called_in(known, each) for each in effects.unattributed))
    if effects.level != "unknown" or (quick is None and not comparisons):
        return effects
    by_how: dict[str, list[str]] = {}
    for each in effects.unattributed or ():
        by_how.setdefault(each.how, []).append(each.path)
    return effects.but(
        level="compared",
        changed=tuple(sorted((*by_how.get("changed", ()), *by_how.get("gone", ())))),
        gone=tuple(by_how.get("gone", ())),
        created=tuple(by_how.get("appeared", ())),
        rewritten=tuple(by_how.get("rewritten", ())),
    )


def _as_called_in(project: str | None, change: Unattributed) -> Unattributed:
    """Return a change with the name under which it is reported.

    The name is the path relative to the project `project`, or the whole path if the path lies outside of the project.
    """
    is_own = project is not None and change.path == f"{project.rstrip('/')}/{change.name}"
    return change if is_own else change.but(name=change.path)


def _came_along(change: Unattributed, directories: frozenset[str]) -> bool:
    """Return whether a path appeared or vanished because the task moved its directory."""
    return change.how in ("appeared", "gone") and _lies_in(change.path.rpartition("/")[0], directories)


def _lies_in(path: str, directories: Collection[str]) -> bool:
    """Return whether a path is one of the directories, or lies below one of them."""
    while path and path not in directories:
        path = path.rpartition("/")[0]
    return bool(path)


def _but_for_its_own(effects: Effects, before: Snapshot, after: Snapshot) -> tuple[Snapshot, Snapshot]:
    """Return the two snapshots without the task's own changes of git's state.

    Git's state means branches, the stash and similar data.
    """
    # If the task moved the repository, no changes of git's state were recorded. Then git's state counts as unchanged,
    # because otherwise the task's own changes would be reported as changes by others.
    took_along = _took_along(before.git, effects.changed)
    git = before.git if took_along else but_for(_seen_in(effects), before.git, after.git)
    after = after.but(git=git, files=None, dirty=None)
    if _lies_in(before.directory, effects.gone):
        after = after.but(is_present=before.is_present)
    return before, after


def _seen_in(effects: Effects) -> frozenset[str]:
    return frozenset(what for _, what, _ in effects.git)


def _moves(effects: Effects, snapshots: tuple[Snapshot, Snapshot] | None) -> Iterator[str]:
    """Yield sentences about changes of git's state that do not make a result outdated.

    For example, a moved tag does not change the files that a task has tested.
    """
    then, now = (None, None) if snapshots is None else (snapshots[0].git, snapshots[1].git)
    if then is not None and now is not None and then.identity == now.identity:
        yield from _moves_of_git(then, now, _seen_in(effects))


class _Seen:
    """The parts of another repository's git state that the task itself changed.

    A part is for example a branch or the stash. Only observed changes are included.
    """

    def __init__(self, parts: Collection[str], top: str, known: str | None) -> None:
        self._parts = parts
        self.of = of_repository(top)
        # A repository inside the task's own repository may be a submodule or a worktree. Its git directory then lies
        # in the git directory of the task's repository. So the recorded names of its changes contain the name of the
        # submodule or the worktree.
        is_inside = known is not None and top.startswith(known.rstrip("/") + "/")
        self._ends = (of_repository(top), *([""] if known is None else ()))
        self._begins = (" of submodule ", " of worktree ") if is_inside else (" of worktree ",)

    def __contains__(self, part: str) -> bool:
        names = {f"{part}{end}" for end in self._ends}
        begins = tuple(f"{part}{begin}" for begin in self._begins)
        return any(each in names or each.startswith(begins) for each in self._parts)


def _refs_moved(quick: tuple[Snapshot, Snapshot]) -> Collection[Move]:
    """Return the refs of the task's repository that moved while the task ran.

    All worktrees of the repository share these refs.
    """
    then, now = quick[0].git, quick[1].git
    return () if then is None or now is None else compare_refs(then, now)[0]


def _moves_of_further(found: Comparison, seen: _Seen, shared: Collection[Move]) -> tuple[list[str], list[str]]:
    """Return two lists of sentences about changes in another repository.

    The changes in the first list may make the task's result outdated, such as a new commit at HEAD. The second list
    has the other changes.
    """
    refs = [each for each in found.refs if each not in shared]
    # If HEAD points to a branch, a new commit moves HEAD and the branch. A detached HEAD moves without a branch.
    is_detached = found.head is not None and all(each.after != found.head.after for each in found.refs)
    parts = {"HEAD": True} if found.branch is not None or is_detached else {}
    for each in refs:
        if (part := _part_of(each, seen)) is not None:
            is_heads = found.head is not None and each.after == found.head.after and part.startswith("branch ")
            parts[part] = is_heads or part.startswith("remote branch ")
    parts |= {"config": True} if found.config_changed else {}
    told = {part: is_drift for part, is_drift in parts.items() if part not in seen}
    moved = [f"{_named(tuple(told))}{seen.of} moved while it ran"] * bool(told)
    is_stash_told = found.stash is not None and "stash" not in seen
    stash = [_stash_moved(*depth, seen.of) for depth in (found.stash_depth,) if is_stash_told and depth is not None]
    return (moved, stash) if any(told.values()) else ([], moved + stash)


def _part_of(ref: Move, seen: _Seen) -> str | None:
    """Return the name under which a moved ref is reported.

    Returns None if the ref is not reported, such as the ref of the stash.
    """
    part = part_of_git(ref.name, is_own=True)
    return None if part == "stash" or (not ref.after and "packed-refs" in seen) else part


def _moves_of_git(then: GitState, now: GitState, seen: Collection[str]) -> Iterator[str]:
    """Yield sentences about changes of refs, worktrees and the stash.

    A change of HEAD's commit or of a remote branch is left out, because other sentences report it.
    """
    refs = [each.name for each in compare_refs(then, now)[0] if then.head == now.head or each.name != now.branch]
    known = (part_of_git(name, is_own=True) for name in refs)
    parts = [part for part in known if part is not None and not part.startswith(("remote branch ", "stash"))]
    if then.worktrees is not None and now.worktrees is not None:
        others = sorted({*then.worktrees} ^ {*now.worktrees})
        parts += [part for name in others if (part := f"worktree {name}") not in seen]
    if parts:
        yield f"{_named(parts)} moved while it ran"
    if then.stash is not None and now.stash is not None and then.stash != now.stash and "stash" not in seen:
        yield _stash_moved(len(then.stash), len(now.stash))


def _named(parts: Sequence[str]) -> str:
    more = f" and {len(parts) - _MOST_NAMED} more" if len(parts) > _MOST_NAMED else ""
    return ", ".join(one_line(part, _WIDEST_NAME) for part in parts[:_MOST_NAMED]) + more


def _stash_moved(then: int, now: int, of: str = "") -> str:
    return f"the stash{of} went from {then} to {now}"


def _took_along(git: GitState | None, changed: Collection[str]) -> bool:
    """Return whether a repository moved with a directory that the task moved."""
    return git is not None and any(_lies_in(place, changed) for place in (git.git_dir, f"{git.top or ''}/.git"))


def _unattributed(comparison: Comparison) -> list[Unattributed]:
    """Return the changes in a comparison as changes whose cause is not known.

    Changes of tracked files come first, because a sentence names only the first few changes.
    """
    top = (comparison.top or "").rstrip("/")
    ordered = sorted(comparison.paths, key=lambda change: not change.was_tracked)
    return [
        Unattributed(path=f"{top}/{each.path}", name=each.path, how=each.how, was_tracked=each.was_tracked)
        for each in ordered
    ]


def _uncompared(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    late = (LATE,) if any(each.late for each in comparisons) else ()
    lost = [f"repository: {each.repository}" for each in comparisons if each.repository != "same"]
    return tuple(dict.fromkeys((*late, *lost, *(why for each in comparisons for why in each.unknown))))
