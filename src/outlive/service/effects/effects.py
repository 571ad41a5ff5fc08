"""The effects of a task, from recorded changes and from the present disk.

The observer of an attempt records its changes in a file, the journal.
"""

from __future__ import annotations

import os
import time

from outlive.bundle.attempt import AttemptFiles
from outlive.domain.effects.attribution import with_comparisons
from outlive.domain.effects.describe import summary_of
from outlive.domain.effects.overlap import shared_tree
from outlive.domain.effects.path_summary import fold
from outlive.domain.effects.predicted import may_take_away
from outlive.domain.effects.temporary_paths import temporary_root
from outlive.domain.git.snapshot_json import from_json
from outlive.domain.text.sanitize import masked, one_line
from outlive.domain.timestamps import iso, timedelta
from outlive.observe.git.repository import find_repository
from outlive.observe.path_state import moments_of, state_like
from outlive.observe.replay_journal import replay_of
from outlive.service.clock import utc_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.effects.effects import Effects, Window
    from outlive.domain.effects.predicted import Declared
    from outlive.domain.git.comparison import Comparison
    from outlive.domain.git.snapshot import Snapshot
    from outlive.domain.tasks.task import Task

# At most this many paths are shown. Only `outlive effects` shows all paths.
_MOST_PATHS = 20
_WIDEST_BY = 200
_COMPARED_WITHIN, _PATIENCE_S = timedelta(seconds=2), 0.5


def effects_of(home: Home, task: Task, attempt: int | None = None) -> Effects:
    """Return the effects of an attempt, by default of the newest attempt.

    If the attempt is an automatic retry, the effects include those of the attempt before it, because the retry
    continues its work.
    """
    files = AttemptFiles(home.bundle(task.id), attempt or task.current.number)
    replay = replay_of(home, task, files.number)
    before = snapshot_of(files.before)
    is_in_repository = before is not None and before.git is not None
    if is_in_repository and not replay.is_observed:
        wait_for_comparison(files, task.attempts[files.number - 1].settled_at)
        replay = replay_of(home, task, files.number)
    after = snapshot_of(files.after) if is_in_repository else None
    found = with_comparisons(
        replay.effects(state_like),
        comparisons_of(files),
        None if before is None or after is None else (before, after),
    )
    further = tuple(tree for tree in replay.trees if shared_tree(tree, task.launch.project) is None)
    is_in_repository = is_in_repository or bool(replay.trees)
    return found.but(
        windows=_as_left(task, files.number, found.windows),
        further=further,
        is_in_repository=is_in_repository,
        unreported=None if is_in_repository else temporary_root(task.launch.cwd),
    )


def wait_for_comparison(files: AttemptFiles, settled_at: datetime | None, patience_s: float = _PATIENCE_S) -> None:
    """Wait until the keeper has compared the files from before and after an attempt.

    The keeper compares the files when the attempt has ended. If the attempt was not observed, only this comparison
    shows what the attempt changed. The wait lasts at most `patience_s` seconds. If the attempt ended more than two
    seconds ago, there is no wait.
    """
    if settled_at is None or utc_now() - settled_at > _COMPARED_WITHIN:
        return
    until = time.monotonic() + patience_s
    while not os.path.exists(files.compared) and time.monotonic() < until:
        time.sleep(0.01)


def git_document(home: Home, task: Task) -> dict[str, object] | None:
    """Return the state of the git repository before and after a task.

    Returns None if the task did not run in a repository.
    """
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
    """Return the snapshot of the task's directory that is stored at `path`.

    Returns None if the snapshot is missing or unreadable.
    """
    return next(iter(snapshots_of(path)), None)


def snapshots_of(path: str) -> Iterator[Snapshot | None]:
    """Return the snapshots that are stored at `path`.

    The first snapshot is of the task's directory. None stands for an unreadable snapshot.
    """
    return map(from_json, _lines_of(path))


def comparisons_of(files: AttemptFiles) -> list[Comparison]:
    """Return the stored comparisons of an attempt's files, one for each repository."""
    lines = _lines_of(files.compared)
    if not lines:
        return []
    from outlive.domain.git.comparison_json import from_json as comparison_from_json  # noqa: PLC0415 - imported here, because only attempts with a stored comparison need it

    return [found for line in lines if (found := comparison_from_json(line)) is not None]


def _lines_of(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().splitlines()
    except OSError:
        return []


def effects_document(
    effects: Effects, now: datetime, *, whole: bool = False, declared: Declared | None = None
) -> dict[str, object]:
    """Return effects as JSON.

    Lists are shortened unless `whole` is set. If `declared` is given, the expected changes are added.
    """
    most = None if whole else _MOST_PATHS
    return {
        "level": effects.level,
        "shared": not effects.is_empty,
        "summary": masked(summary_of(effects, now)),
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
        **({} if declared is None else {"declared": _declared_document(declared)}),
    }


def _paths(name: str, paths: Sequence[str], most: int | None, scope: str = "") -> dict[str, object]:
    """Return paths as JSON, relative to `scope`.

    If there are more than `most` paths, they are counted per directory.
    """
    if most is None or len(paths) <= most:
        return {name: [path.removeprefix(scope) for path in paths]}
    found = fold(paths, most)
    return {
        name: [entry.path.removeprefix(scope) for entry in found if entry.count == 1],
        f"{name}_below": {entry.path.removeprefix(scope) or scope: entry.count for entry in found if entry.count > 1},
    }


def _by(line: str, most: int | None) -> str:
    """Return the command that made a change, shortened unless `most` is None."""
    return masked(line) if most is None else one_line(line, _WIDEST_BY)


def window_document(window: Window, now: datetime, most: int | None = _MOST_PATHS) -> dict[str, object]:
    """Return a group of files that a task had changed at one time, as JSON.

    At most `most` of the files are included. If `most` is None, all files are included.
    """
    span = window.lasted(now)
    return {
        "scope": window.scope,
        **_paths("paths", window.paths, most, window.scope.rstrip("/") + "/"),
        "paths_in_all": len(window.paths),
        "paths_uncompared": window.uncompared,
        "opened_at": iso(window.opened_at),
        "closed_at": iso(window.closed_at),
        "duration_s": None if span is None else round(span.total_seconds(), 3),
        "restored": None if window.is_open else True,
        "left": window.is_left,
        "by": _by(window.by, most),
    }


def open_now(home: Home, task: Task, attempt: int | None = None, *, with_stashes: bool = False) -> tuple[Window, ...]:
    """Return the changes of an attempt that are not restored now.

    They are grouped by time and worktree. Files may still be changed after the attempt has ended.
    """
    number = attempt or task.current.number
    replay = replay_of(home, task, number)
    found = replay.open_now(state_like, lambda path: moments_of(path)[0], with_stashes=with_stashes)
    return _as_left(task, number, found)


def _as_left(task: Task, attempt: int, windows: tuple[Window, ...]) -> tuple[Window, ...]:
    """Return the changes, marked as left open if the attempt has ended.

    Changes that were restored are not marked.
    """
    if task.attempts[attempt - 1].settled_at is None:
        return windows
    return tuple(window.but(is_left=window.is_open) for window in windows)


def is_in(project: str, window: Window) -> bool:
    """Return whether a group of changed files concerns a project.

    If the project is a git submodule, the files may belong to the repository around the submodule. Files of a linked
    git worktree inside the project do not count.
    """
    if is_inner_worktree(window.scope, project):
        return False
    below, scope = project.rstrip("/") + "/", window.scope.rstrip("/") + "/"
    return scope.startswith(below) or any(path.startswith(below) for path in window.paths)


def is_inner_worktree(scope: str, project: str) -> bool:
    """Return whether the directory `scope` is a linked git worktree in the project.

    Such a worktree is a project of its own.
    """
    if not scope.startswith(project.rstrip("/") + "/"):
        return False
    found = find_repository(scope)
    return found is not None and found.is_linked


def declared_of(task: Task) -> Declared:
    """Return the changes that a task is expected to make.

    They come from its option `--touches` and from the text of its command.
    """
    from outlive.domain.effects.predicted import Touch  # noqa: PLC0415 - imported here, because importing the parser of commands is slow
    from outlive.observe.predict.predict import declare  # noqa: PLC0415 - imported here, because importing the parser of commands is slow

    declared = declare(task.launch.argv, task.launch.cwd)
    said = tuple(Touch(kind="path", what=path, by="--touches") for path in task.launch.touches)
    return declared.but(touches=(*said, *declared.touches))


def _declared_document(declared: Declared) -> dict[str, object]:
    """Return the changes that a command is expected to make as JSON."""
    return {
        "level": declared.level,
        "touches": [
            {"kind": t.kind, "what": masked(t.what), "by": masked(t.by)} for t in declared.touches[:_MOST_PATHS]
        ],
        "opens_window": declared.opens_window,
        "takes_away": [masked(each.by) for each in declared.taken_away[:_MOST_PATHS]],
        "needs_privileges": declared.needs_privileges,
    }


def taking_away(task: Task) -> Declared | None:
    """Return the expected changes of a task whose command takes files away.

    A command takes files away if it changes files that it did not write, as `git stash` does. Returns None for every
    other task. The command is first searched for certain strings, because parsing every command would be slow.
    """
    if not may_take_away(" ".join(task.launch.argv)):
        return None
    declared = declared_of(task)
    return declared if declared.taken_away else None
