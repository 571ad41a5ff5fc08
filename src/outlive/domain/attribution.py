"""Whose doing it was: what was seen of a task, beside all that changed while it ran.

A comparison tells what changed and never who did it. What has no event in the task's journal was
done by somebody else, or unseen: it is told, and told as that.
"""

from __future__ import annotations

from outlive.domain.effects import Unattributed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from outlive.domain.comparison import Comparison
    from outlive.domain.drift import Drift
    from outlive.domain.effects import Effects

LATE = "what happened in its first moments"


def with_comparisons(effects: Effects, comparisons: Sequence[Comparison], git: Drift | None) -> Effects:
    """The effects with what changed unseen; `git` is what moved between the quick snapshots.

    Where nothing was seen at all, the comparison is all that there is.
    """
    if not effects.git:
        effects = effects.but(moved="; ".join(_moves(comparisons, git)) or None)
    if comparisons:
        effects = effects.but(uncompared=_uncompared(comparisons))
    if any(each.has_files for each in comparisons):
        # Whoever was left behind may have been seen at it after the comparison was begun.
        seen = frozenset((*effects.changed, *effects.created, *effects.restored, *effects.rewritten))
        away = frozenset((*effects.changed, *effects.restored))  # a directory among them took along what is in it
        found = [each for comparison in comparisons for each in _unattributed(comparison)]
        unseen = tuple(each for each in found if each.path not in seen and not _came_along(each, away))
        in_all = sum(count for each in comparisons for count in each.counts.values())
        effects = effects.but(
            unattributed=unseen,
            unattributed_in_all=in_all - len(found) + len(unseen),
        )
    if effects.level != "unknown" or (git is None and not comparisons):
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


def _came_along(change: Unattributed, directories: frozenset[str]) -> bool:
    """Whether it came or went with a directory that the task was seen moving."""
    above = change.path.rpartition("/")[0] if change.how in ("appeared", "gone") else ""
    while above and above not in directories:
        above = above.rpartition("/")[0]
    return bool(above)


def _moves(comparisons: Sequence[Comparison], git: Drift | None) -> Iterator[str]:
    if git is not None and git.moved:
        yield git.summary.replace("since it ran", "while it ran")
    for each in comparisons:
        if each.stash is not None and each.stash_depth is not None:
            yield f"the stash went from {each.stash_depth[0]} to {each.stash_depth[1]}"


def _unattributed(comparison: Comparison) -> list[Unattributed]:
    """Tracked files first: what lies beside them is more often nobody's concern."""
    top = (comparison.top or "").rstrip("/")
    ordered = sorted(comparison.paths, key=lambda change: not change.was_tracked)
    return [Unattributed(path=f"{top}/{each.path}", name=each.path, how=each.how) for each in ordered]


def _uncompared(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    late = (LATE,) if any(each.late for each in comparisons) else ()
    lost = [f"repository: {each.repository}" for each in comparisons if each.repository != "same"]
    return tuple(dict.fromkeys((*late, *lost, *(why for each in comparisons for why in each.unknown))))
