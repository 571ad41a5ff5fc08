"""What a task touched, as anybody may see it: read from its journal, and from the world if it still runs."""

from __future__ import annotations

import os
import time

from outlive.bundle.attempt import AttemptFiles
from outlive.domain.attribution import with_comparisons
from outlive.domain.effects_words import summary_of
from outlive.domain.folding import fold
from outlive.domain.overlap import Overlap, by_hand, changed_paths, in_both, lie_in, shared_span, shared_tree
from outlive.domain.redaction import redact
from outlive.domain.replay import Replay
from outlive.domain.snapshot_json import from_json
from outlive.domain.text import one_line
from outlive.domain.when import iso, timedelta, to_micros
from outlive.observe.content import changed_at_ns, moments_of, state_like
from outlive.observe.journal import read_journal
from outlive.observe.place import place_of
from outlive.service.clock import utc_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.comparison import Comparison
    from outlive.domain.declared import Declared
    from outlive.domain.effects import Effects, Window
    from outlive.domain.overlap import Edit
    from outlive.domain.snapshot import Snapshot
    from outlive.domain.task import Task

# Of what a task touched, this much is shown everywhere; `outlive effects` shows all of it.
_MOST_PATHS = 20
_WIDEST_BY = 200
_COMPARED_WITHIN, _PATIENCE_S = timedelta(seconds=2), 0.5


def effects_of(home: Home, task: Task, attempt: int | None = None) -> Effects:
    """What an attempt touched, by default the newest; one that was made by itself goes on where the last one ended."""
    files = AttemptFiles(home.bundle(task.id), attempt or task.current.number)
    replay = _replayed(home, task, files.number)
    before = snapshot_of(files.before)
    is_in_repository = before is not None and before.git is not None
    if is_in_repository and not replay.is_observed:
        wait_for_comparison(files, task.attempts[files.number - 1].settled_at)
        replay = _replayed(home, task, files.number)
    after = snapshot_of(files.after) if is_in_repository else None
    found = with_comparisons(
        replay.effects(state_like),
        comparisons_of(files),
        None if before is None or after is None else (before, after),
    )
    further = tuple(tree for tree in replay.trees if shared_tree(tree, task.launch.project) is None)
    return found.but(
        windows=_as_left(task, files.number, found.windows),
        further=further,
        is_in_repository=is_in_repository or bool(replay.trees),
    )


def _replayed(home: Home, task: Task, last: int) -> Replay:
    replay = Replay(home.path)
    for number in range(task.first_try(last).number, last + 1):
        replay.read(read_journal(AttemptFiles(home.bundle(task.id), number).effects))
    ended_at = task.attempts[last - 1].ended_at
    replay.end(None if ended_at is None else to_micros(ended_at), lambda path: changed_at_ns(path) // 1000)
    return replay


def wait_for_comparison(files: AttemptFiles, settled_at: datetime | None, patience_s: float = _PATIENCE_S) -> None:
    """Right after an end, files are still being compared: that is worth a moment to who knows nothing else of them."""
    if settled_at is None or utc_now() - settled_at > _COMPARED_WITHIN:
        return
    until = time.monotonic() + patience_s
    while not os.path.exists(files.compared) and time.monotonic() < until:
        time.sleep(0.01)


def git_document(home: Home, task: Task) -> dict[str, object] | None:
    """Where the repository stood before and after, as JSON; None outside of one."""
    files = AttemptFiles(home.bundle(task.id), task.current.number)
    before, after = snapshot_of(files.before), snapshot_of(files.after)
    if before is None or before.git is None:
        return None
    return {
        "repo": before.git.top,
        "branch": (before.git.branch or "").removeprefix("refs/heads/") or None,
        "head_before": before.git.head,
        "head_after": after.git.head if after is not None and after.git is not None else None,
    }


def snapshot_of(path: str) -> Snapshot | None:
    """The snapshot of its directory that was kept; None if there is none, or it cannot be read."""
    return next(iter(snapshots_of(path)), None)


def snapshots_of(path: str) -> Iterator[Snapshot | None]:
    """The snapshots that were kept, that of its directory first."""
    return map(from_json, _lines_of(path))


def comparisons_of(files: AttemptFiles) -> list[Comparison]:
    """The comparisons that were kept, one for each repository; none if nobody compared, or not yet."""
    lines = _lines_of(files.compared)
    if not lines:
        return []
    from outlive.domain.comparison_json import from_json as comparison_from_json  # noqa: PLC0415 - a short task has none

    return [found for line in lines if (found := comparison_from_json(line)) is not None]


def _lines_of(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().splitlines()
    except OSError:
        return []


def effects_document(effects: Effects, now: datetime, *, whole: bool = False) -> dict[str, object]:
    """The effects as JSON; bounded, unless the whole is asked for."""
    most = None if whole else _MOST_PATHS
    return {
        "level": effects.level,
        "shared": not effects.is_empty,
        "summary": redact(summary_of(effects, now)),
        "windows": [window_document(window, now, most) for window in effects.windows[:most]],
        "windows_in_all": len(effects.windows),
        "possible_windows": [window_document(window, now, most) for window in effects.possible[:most]],
        "paths_changed": len(effects.changed) + len(effects.created),
        "paths_restored": len(effects.restored),
        **_paths("changed", effects.changed, most),
        **_paths("gone", effects.gone, most),
        **_paths("created", effects.created, most),
        **_paths("restored", effects.restored, most),
        **_paths("rewritten", effects.rewritten, most),
        "git": [{"at": iso(at), "what": what, "by": _by(by, most)} for at, what, by in effects.git[:most]],
        "git_in_all": len(effects.git),
        **_paths("outside", effects.outside, most),
        "remotes": list(effects.remotes[:most]),
        "remotes_in_all": len(effects.remotes),
        "unattributed": None
        if effects.unattributed is None
        else [{"path": each.path, "how": each.how} for each in effects.unattributed[:most]],
        "unattributed_in_all": None if effects.unattributed is None else effects.unattributed_in_all,
        "moved": effects.moved,
        "gaps": list(effects.gaps[:most]),
        "uncompared": list(effects.uncompared),
        "unobserved_since": iso(effects.unobserved_since),
        "why_unseen": effects.why_unseen,
    }


def _paths(name: str, paths: Sequence[str], most: int | None, scope: str = "") -> dict[str, object]:
    """The paths; where there are more than `most`, directories stand for those of which only the number is told.

    What lies below a scope, which ends with a slash, is told from there on.
    """
    if most is None or len(paths) <= most:
        return {name: [path.removeprefix(scope) for path in paths]}
    found = fold(paths, most)
    return {
        name: [entry.path.removeprefix(scope) for entry in found if entry.count == 1],
        f"{name}_below": {entry.path.removeprefix(scope) or scope: entry.count for entry in found if entry.count > 1},
    }


def _by(line: str, most: int | None) -> str:
    """The command that did it; one that was given very many words by its beginning, unless the whole is asked for."""
    return redact(line) if most is None else one_line(line, _WIDEST_BY)


def window_document(window: Window, now: datetime, most: int | None = _MOST_PATHS) -> dict[str, object]:
    """One window as JSON; bounded, unless all of its paths are asked for."""
    span = window.lasted(now)
    return {
        "scope": window.scope,
        **_paths("paths", window.paths, most, window.scope.rstrip("/") + "/"),
        "paths_in_all": len(window.paths),
        "opened_at": iso(window.opened_at),
        "closed_at": iso(window.closed_at),
        "duration_s": None if span is None else round(span.total_seconds(), 3),
        "restored": None if window.is_open else True,
        "left": window.is_left,
        "by": _by(window.by, most),
    }


def open_now(home: Home, task: Task, attempt: int | None = None, *, with_stashes: bool = False) -> tuple[Window, ...]:
    """The windows of an attempt that are open at this moment, whether it runs or has left them open."""
    number = attempt or task.current.number
    replay = _replayed(home, task, number)
    found = replay.open_now(state_like, lambda path: moments_of(path)[0], with_stashes=with_stashes)
    return _as_left(task, number, found)


def _as_left(task: Task, attempt: int, windows: tuple[Window, ...]) -> tuple[Window, ...]:
    """The windows; those that are open as left by the task, if the attempt is over."""
    if task.attempts[attempt - 1].settled_at is None:
        return windows
    return tuple(window.but(is_left=window.is_open) for window in windows)


def open_windows(home: Home, tasks: Iterable[Task], project: str) -> list[tuple[str, Window]]:
    """The windows that tasks hold, or have left, open on a project's tree now."""
    each = {task.id: task for task in tasks}
    return [(task.id, window) for task in each.values() for window in open_now(home, task) if _is_in(project, window)]


def _is_in(project: str, window: Window) -> bool:
    """Whether a window is one of this tree, or of one around it and holds something in this one: a submodule, say."""
    if is_of_inner_worktree(window, project):
        return False
    below, scope = project.rstrip("/") + "/", window.scope.rstrip("/") + "/"
    return scope.startswith(below) or any(path.startswith(below) for path in window.paths)


def is_of_inner_worktree(window: Window, project: str) -> bool:
    """Whether a window is one of a further worktree that lies in this tree, as clients make them: another project."""
    is_inside = window.scope.startswith(project.rstrip("/") + "/")
    return is_inside and place_of(window.scope).common_directory is not None


def overlaps_of(
    home: Home, task: Task, own: Effects, others: Iterable[Task], edits: Iterable[Edit], *, in_one_tree: bool = False
) -> list[Overlap]:
    """Who changed the same paths while a task with these effects ran: other tasks, and sessions by their own edits.

    With `in_one_tree` also tasks of its project that changed other files there.
    """
    mine = changed_paths(own)
    if not mine:
        return []
    found = by_hand(mine, edits)
    for other in others:
        span = None if other.id == task.id else shared_span(task, other)
        if span is None:
            continue
        beside = effects_of(home, other)
        theirs = changed_paths(beside)
        paths = in_both(changed_paths(own, span), changed_paths(beside, span))
        tree = shared_tree(task.launch.project, other.launch.project) if in_one_tree else None
        if paths or (tree is not None and lie_in(tree, mine) and lie_in(tree, theirs)):
            found.append(Overlap(task=other.id, paths=paths, since=span[0], until=span[1]))
    return found


def declared_of(task: Task) -> Declared:
    """What its launcher and the text of its command say that a task is going to touch; loaded late, for it is dear."""
    from outlive.domain.declared import Touch  # noqa: PLC0415
    from outlive.observe.declared import declare  # noqa: PLC0415

    declared = declare(task.launch.argv, task.launch.cwd)
    said = tuple(Touch(kind="path", what=path, by="--touches") for path in task.launch.touches)
    return declared.but(touches=(*said, *declared.touches))


def declared_document(declared: Declared) -> dict[str, object]:
    """It as JSON."""
    return {
        "level": declared.level,
        "touches": [
            {"kind": t.kind, "what": redact(t.what), "by": redact(t.by)} for t in declared.touches[:_MOST_PATHS]
        ],
        "opens_window": declared.opens_window,
        "needs_privileges": declared.needs_privileges,
    }


def may_open_window(task: Task) -> bool:
    """Whether its text says that it takes something shared away for a while; read only if it could."""
    from outlive.observe.window import may_open  # noqa: PLC0415 - only of what runs

    return may_open(" ".join(task.launch.argv)) and declared_of(task).opens_window
