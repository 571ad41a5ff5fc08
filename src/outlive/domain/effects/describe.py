"""Sentences that describe the effects of a task."""

from __future__ import annotations

from outlive.domain.effects.path_summary import fold, largest, without_filled
from outlive.domain.git.git_state import name_in_git, of_repository
from outlive.domain.text.sanitize import one_line
from outlive.domain.text.units import show_duration, show_files
from outlive.domain.timestamps import timedelta

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from outlive.domain.effects.effects import Effects, Window
    from outlive.domain.effects.predicted import Declared

_WHO, _BRIEF = "nobody knows who did it", "changes of less than 0.1 s may be missing"
_MOST_NAMED = 3
_MANY = 20
_WIDEST_NAME = 80
# The phrases for written files whose content is, or may be, the same as before. All other files are called "changed".
_WRITTEN = {"rewritten": "written with the same content", "touched": "written, perhaps changed,"}


def taking_words(taking: Declared) -> str:
    """Return a phrase about a command whose text shows that it moves or removes files.

    For example: `by its text takes files away for a while (git stash)`.
    """
    by = one_line(taking.taken_away[0].by, 60)
    if taking.opens_window:
        return f"by its text takes files away for a while ({by})"
    return f"by its text takes files away and does not put them back ({by})"


def summary_of(effects: Effects, now: datetime) -> str:
    """Return one sentence that describes all effects of a task."""
    if effects.level == "unknown":
        why = _why_unknown(effects)
        return "its effects are not known" + (f": {why}" if why else "")
    if effects.level == "compared":
        return _compared(effects)
    words = [*_windows(effects, now), *_net(effects), *_rewritten(effects), *_in_further_trees(effects)]
    words += [f"git: {_few(sorted({what for _, what, _ in effects.git}))}"] * bool(effects.git)
    words += [f"{show_files(len(effects.outside))} {effects.is_outside_of}"] * bool(effects.outside)
    words += [f"connections, made or tried: {_few(effects.remotes)}"] * bool(effects.remotes)
    if effects.level == "watched":
        words += unattributed_words(effects)
        unsure = (_WHO if words else "", _BRIEF, effects.why_unseen, *effects.gaps[:1])
        said = "; ".join(words or [_nothing(effects, "no tracked file was touched")])
        return f"{said} (watched only: {'; '.join(word for word in unsure if word)})"
    words += [f"files below {effects.unreported} are not reported outside of a repository"] * bool(effects.unreported)
    said = "; ".join((*(words or ["no effects were observed"]), *unattributed_words(effects)))
    return f"{said} (a lower bound: {effects.gaps[0]})" if effects.gaps else said


def _why_unknown(effects: Effects) -> str:
    """Return why system calls were not observed, or "" if the reason is not known."""
    return effects.why_unseen or next(iter(effects.gaps), "")


def how_long(window: Window, now: datetime) -> str:
    """Return a phrase for how long the files of `window` were, or have been, changed."""
    span = window.lasted(now)
    return "an unknown time (the clock was set back)" if span is None else show_duration(span)


def window_words(window: Window, now: datetime, *, is_now: bool) -> str:
    """Return a phrase about files that a task has, or had, changed for a time.

    For example `window of 3 files, open for 12s now`. Set `is_now` only if the files were checked just now. Otherwise
    the phrase says `left open` if the task ended without restoring the files.
    """
    span = how_long(window, now)
    how = f"open for {span} now" if window.is_open else f"{span}, all restored"
    if window.is_left and not is_now:
        how = "left open"
    return f"window of {_count(window.paths)}, {how}"


def none_open(effects: Effects) -> str:
    """Return the sentence for a task without known changes that are not restored."""
    if effects.level in ("unknown", "compared"):
        why = _why_unknown(effects)
        return "not known: its changes are not observed" + (f" ({why})" if why else "")
    if effects.outside and not effects.is_in_repository:
        return "not known: files are compared only in repositories, and it works in none"
    return "no window is open now"


def few_names(paths: Sequence[str], tree: str, scopes: Mapping[str, str] = {}) -> str:
    """Return a phrase: the names of the first few paths, and how many more there are."""
    names = [one_line(_name_of(path, tree, scopes.get(path, tree)), _WIDEST_NAME) for path in paths[:_MOST_NAMED]]
    more = len(paths) - len(names)
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def _name_of(path: str, tree: str, scope: str) -> str:
    kept = name_in_git(path)
    if kept is None:
        return path.removeprefix(tree.rstrip("/") + "/")
    return kept if scope == tree else f"{kept}{of_repository(scope)}"


def unattributed_words(effects: Effects) -> Iterator[str]:
    """Yield descriptions of the changes that no process was observed to make."""
    who = "by somebody else, or unseen" if effects.is_attributed else "unseen"
    listed: dict[str, list[str]] = {}
    for each in effects.unattributed or ():
        listed.setdefault(_WRITTEN.get(each.how, "changed"), []).append(each.name)
    more = effects.unattributed_in_all - len(effects.unattributed or ())
    for what, names in listed.items():
        in_all = len(names) + (more if len(listed) == 1 else 0)
        few = [one_line(name, _WIDEST_NAME) for name in names[:_MOST_NAMED]]
        rest = f" and {in_all - len(few):,} more" if in_all > len(few) else ""
        yield f"{show_files(in_all)} {what} {who}: {', '.join(few)}{rest}"
    if more > 0 and len(listed) > 1:
        yield _more_differ(more)
    if effects.moved:
        yield f"{effects.moved}, {who}"


def _compared(effects: Effects) -> str:
    """Return a sentence about effects that were found only by comparing two snapshots."""
    found = effects.unattributed
    words = [effects.moved] if effects.moved else []
    words += [*_net(effects), *_rewritten(effects)]
    touched = sum(each.how == "touched" for each in found or ())
    words += [f"{show_files(touched)} written, perhaps changed"] * bool(touched)
    more = effects.unattributed_in_all - len(found or ())
    words += [_more_differ(more)] * (more > 0)
    unsure = ["its files were not compared" if found is None else _WHO if words else ""]
    unsure += [effects.why_unseen or "", *effects.gaps[:1]]
    words = words or [_nothing(effects, "the tracked files are as before")]
    return f"{'; '.join(words)} (compared only: {'; '.join(word for word in unsure if word) or 'by two snapshots'})"


def _more_differ(count: int) -> str:
    return f"{count:,} more {'file differs' if count == 1 else 'files differ'}"


def _nothing(effects: Effects, certain: str) -> str:
    """Return the sentence for a task without a known change.

    The caller passes `certain`, the sentence to return if the snapshots compared all files.
    """
    return "nothing is known to have changed" if effects.unattributed is None or effects.uncompared else certain


def _windows(effects: Effects, now: datetime) -> Iterator[str]:
    for window in effects.windows:
        if window.is_open:
            yield _open(window, now)
    closed = [window for window in effects.windows if window.closed_at is not None]
    were_away = {path for window in closed for path in window.paths}
    # Leave out paths that were never recorded as restored, such as a directory that was removed and created again.
    # Whether the content of this directory is restored is known from the paths in it.
    if restored := [path for path in effects.restored if path in were_away]:
        span = sum((w.closed_at - w.opened_at for w in closed if w.closed_at is not None), timedelta())
        yield f"{_count(restored)} changed and restored, window {show_duration(span)}"
    if effects.possible:
        count = sum(len(window.paths) for window in effects.possible)
        yield f"{show_files(count)} being written for a while, the same before and after"


def _open(window: Window, now: datetime) -> str:
    """Return a phrase about changed files that the task has not restored.

    The phrase has the files, the duration and the command. For an ended task, it is about the state at the task's end,
    because another process may have restored the files since.
    """
    files = show_files(len(without_filled(window.paths)))
    by = f" ({one_line(window.by, 60)})" if window.is_attributed else ""
    if not window.is_left:
        return f"{files} changed and not restored for {how_long(window, now)}{by}"
    return f"left {files} changed{by}" if window.is_attributed else f"{files} still changed at its end"


def _net(effects: Effects) -> Iterator[str]:
    left = {path for each in effects.windows if each.is_open for path in each.paths}
    # Leave out the paths that the task left changed and the removed paths, because other parts of the sentence name
    # these paths.
    changed = [path for path in effects.changed if path not in left.union(effects.gone)]
    gone = without_filled(effects.gone, effects.whole)
    for paths, what in ((changed, "changed"), (gone, "removed"), (effects.created, "created")):
        if paths:
            count = f"{len(paths):,} of these" if left.issuperset(paths) else show_files(len(paths))
            yield f"{count} {what}{_where(paths)}"


def _rewritten(effects: Effects) -> Iterator[str]:
    """Yield a phrase with the number of files that were written with the same content."""
    told = {path for window in effects.possible for path in window.paths}
    count = sum(path not in told for path in effects.rewritten)
    if count:
        yield f"{show_files(count)} written, same content"


def _in_further_trees(effects: Effects) -> Iterator[str]:
    """Yield phrases with the number of changed files in worktrees outside the project."""
    touched = {*effects.changed, *effects.created, *effects.restored, *effects.rewritten}
    for tree in effects.further:
        count = sum(path.startswith(tree) for path in touched)
        if count:
            yield f"{count:,} of these in {one_line(tree.rstrip('/'), _WIDEST_NAME)}"


def _count(paths: Sequence[str]) -> str:
    """Return a phrase with the number of files. Directories around files do not count."""
    kept = [name for path in paths if (name := name_in_git(path))]
    files = len(without_filled(paths)) - len(kept)
    return " and ".join((*([show_files(files)] if files or not kept else ()), *kept))


def _few(names: Sequence[str]) -> str:
    return ", ".join(one_line(name, _WIDEST_NAME) for name in names[:6]) + (", ..." if len(names) > 6 else "")


def _where(paths: Sequence[str]) -> str:
    """Return a phrase that names the directory with the most paths.

    Returns "" if there are only a few paths.
    """
    most = largest(fold(paths, _MANY)) if len(paths) > _MANY else None
    return "" if most is None else f" ({most.count:,} below {'/'.join(most.path.split('/')[-3:])})"
