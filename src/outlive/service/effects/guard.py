"""The guard: whether a task has changed paths that the caller is about to use.

A task holds a path if it has changed the path and not restored it. The guard names the tasks that hold a wanted path,
and blocks no command.
"""

from __future__ import annotations

import os

from outlive.bundle.attempt import AttemptFiles
from outlive.domain.effects.describe import taking_words
from outlive.domain.effects.predicted import may_take_away
from outlive.domain.notices.hand_off_text import maybe_held_line
from outlive.domain.tasks.command import from_shell_text
from outlive.domain.text.sanitize import masked
from outlive.domain.value import Value
from outlive.ledger.sqlite import SqliteLedger
from outlive.observe.journal import is_observed
from outlive.service.clock import utc_now
from outlive.service.effects.effects import taking_away, window_document
from outlive.service.effects.open_windows import OpenWindows
from outlive.service.effects.resolve_links import places_on_the_way
from outlive.service.effects.wanted_paths import read_command
from outlive.service.effects.window_holders import Found, find_holders, key_of
from outlive.service.sessions.note_client_tasks import foreign_now
from outlive.service.tasks.launch_context import parent_of, project_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.effects.predicted import Declared, Touch
    from outlive.domain.tasks.task import Task
    from outlive.service.effects.wanted_paths import Wanted
    from outlive.service.effects.window_holders import Holder, Unsure


class Announced(Value):
    """A task that has not ended and whose command takes files away.

    A command takes files away if it changes files that it did not write, as `git stash` does.
    """

    task: str
    state: str
    observe: str
    """How the changes of the task are observed.

    `unseen` means that the task should be observed but is not.
    """
    taking: Declared
    client: str | None = None
    """The client that runs the command in the background, without Outlive.

    Then `task` is the client's id of the command. None for a task of Outlive.
    """
    project: str = ""
    """The project in which the client runs the command. Empty for a task of Outlive."""

    def words(self) -> str:
        """Return a clause that names the task and says what its command takes away."""
        who = f"task {self.task}" if self.client is None else f"{self.task}, kept by {self.client} itself,"
        return f"{who} ({self.state}) {taking_words(self.taking)}"


class Answer(Value):
    """The result of the guard: tasks that concern the paths a caller wants to use.

    A task has changed such a path and not restored it, may have done so, or may do so later.
    """

    holders: tuple[Holder, ...] = ()
    unknown: tuple[Announced, ...] = ()
    """Running tasks that are not observed.

    So it is unknown whether they have taken the files away already.
    """
    coming: tuple[Announced, ...] = ()
    """Tasks whose commands will take the files away, but have not done so yet."""
    unsure: tuple[Unsure, ...] = ()
    """Tasks that changed more paths than the guard could compare with the disk.

    None of the compared paths is still changed.
    """

    @property
    def is_clear(self) -> bool:
        """Whether it is certain that all the paths are unchanged or restored now."""
        return not self.holders and not self.unknown and not self.unsure


_MOST_UNREAD = 3


def guard_paths(home: Home, paths: Iterable[str], environ: Mapping[str, str]) -> Answer:
    """Return the tasks that have changed one of these paths and not restored it.

    A directory stands for all files in it. If the caller runs inside a task, that task does not count.
    """
    paths = list(paths)
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        answer = answer_for_paths(home, OpenWindows(home, ledger, parent_of(environ)), paths)
        return with_foreign_paths(ledger, answer, paths)


def guard_command(home: Home, argv: tuple[str, ...], directory: str, environ: Mapping[str, str]) -> Answer:
    """Return the tasks that have changed files a command is about to use.

    Only changes that are not restored count, and the task in which the caller runs is left out. Only the command's
    text is examined. A command of git, a test or a build counts as using the whole directory tree.

    A word with an unknown part, such as `src/$NAME`, may name any file in `src`. An unknown program may use any file
    of the project. In these two cases, the result also has the words of the command that are not understood.
    """
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        answer = answer_for_command(home, OpenWindows(home, ledger, parent_of(environ)), argv, directory)
        return with_foreign_command(ledger, answer, argv, directory)


def answer_for_paths(home: Home, held: OpenWindows, paths: Iterable[str]) -> Answer:
    """Return the result of `guard_paths`, from the changes that the caller passes.

    These are the changes that tasks have not restored.
    """
    paths = list(paths)
    found = find_holders(held, paths) if held.may_be_open() else Found()
    wanted = {place for path in paths for place in places_on_the_way(path)}
    return _with_announced(home, held, found, wanted)


def answer_for_command(home: Home, held: OpenWindows, argv: tuple[str, ...], directory: str) -> Answer:
    """Return the result of `guard_command`, from the changes that the caller passes.

    These are the changes that tasks have not restored.
    """
    if not held.may_be_open() and not any(map(is_announced, held.replayed)):
        return Answer()
    wanted = read_command(argv, directory)
    found = _find_holders_of(held, wanted) if held.may_be_open() else Found()
    return _with_announced(home, held, found, wanted.places())


def is_announced(task: Task) -> bool:
    """Return whether a task has not ended and its command may take files away.

    The text of the command is only searched for certain strings.
    """
    return task.current.settled_at is None and may_take_away(" ".join(task.launch.argv))


def _with_announced(home: Home, held: OpenWindows, found: Found, wanted: set[str]) -> Answer:
    """Add live tasks whose commands take these paths away to the guard's result."""
    known = {each.task for each in found.holders}
    unknown, coming = [], []
    for task in filter(is_announced, held.replayed):
        taking = None if task.id in known else taking_away(task)
        if taking is None or not any(is_in_one_tree(tree_of(each), wanted) for each in taking.taken_away):
            continue
        files = AttemptFiles(home.bundle(task.id), task.current.number)
        if task.state == "queued" or is_observed(files.effects):
            if not held.has_opened(task):
                coming.append(Announced(task=task.id, state=task.state, observe=task.launch.observe, taking=taking))
        else:
            how = task.launch.observe if task.launch.observe in {"off", "compare", "watch"} else "unseen"
            unknown.append(Announced(task=task.id, state=task.state, observe=how, taking=taking))
    return Answer(holders=found.holders, unknown=tuple(unknown), coming=tuple(coming), unsure=found.unsure)


def with_foreign_paths(ledger: SqliteLedger, answer: Answer, paths: Sequence[str]) -> Answer:
    """Add commands that clients run without Outlive to the guard's result.

    Only commands that may take one of the paths away are added.
    """
    return _with_foreign(ledger, answer, lambda: {place for path in paths for place in places_on_the_way(path)})


def with_foreign_command(ledger: SqliteLedger, answer: Answer, argv: tuple[str, ...], directory: str) -> Answer:
    """Add commands that clients run without Outlive to the guard's result.

    A command is added only if it may take away files that `argv` is about to use.
    """
    return _with_foreign(ledger, answer, lambda: read_command(argv, directory).places())


def _with_foreign(ledger: SqliteLedger, answer: Answer, wanted: Callable[[], set[str]]) -> Answer:
    """Add commands that clients run without Outlive to the guard's result.

    Only commands that take a wanted path away are added. Outlive does not observe these commands, so they are added to
    the field `unknown`.
    """
    unknown = []
    for one in foreign_now(ledger, None):
        if one.seen.cwd is None or not may_take_away(one.seen.command):
            continue
        from outlive.observe.predict.predict import declare  # noqa: PLC0415 - imported here, because only few commands of clients take files away

        taking = declare(from_shell_text(one.seen.command).argv, one.seen.cwd)
        if any(is_in_one_tree(tree_of(each), wanted()) for each in taking.taken_away):
            announced = Announced(
                task=one.seen.id,
                state="running" if one.state == "running" else "unknown",
                observe="off",
                taking=taking,
                client=one.client,
                project=project_of(one.seen.cwd),
            )
            unknown.append(announced)
    return answer.but(unknown=(*answer.unknown, *unknown))


def _find_holders_of(held: OpenWindows, wanted: Wanted) -> Found:
    """Return the tasks that have, or may have, changed files that a command will use.

    Only changes that are not restored count.
    """
    named = find_holders(held, wanted.paths, expands=True)
    found, unsure = list(named.holders), list(named.unsure)
    for tree in wanted.trees:
        inside = find_holders(held, [tree], is_tree=True)
        found += [each for each in inside.holders if each not in found]
        unsure += inside.unsure
    known = {key_of(each) for each in found}
    words = tuple(wanted.unread)[:_MOST_UNREAD]
    unread = find_holders(held, wanted.unread.values()) if wanted.unread else Found()
    maybe = [each.but(unread=words) for each in unread.holders]
    found += [each for each in maybe if key_of(each) not in known]
    named_already = {each.task for each in found}
    unsure += unread.unsure
    most = {each.task: each for each in sorted(unsure, key=lambda each: each.paths) if each.task not in named_already}
    return Found(holders=tuple(found), unsure=tuple(most.values()))


def tree_of(taken: Touch) -> str:
    """Return the directory tree in which a command changes files it did not write."""
    return project_of(taken.what) if taken.kind == "git" else os.path.realpath(taken.what)


def is_in_one_tree(tree: str, wanted: Iterable[str]) -> bool:
    """Return whether a wanted path lies in a directory tree, or contains the tree."""
    top = tree.rstrip("/") + "/"
    return any(f"{place}/".startswith(top) or top.startswith(place.rstrip("/") + "/") for place in wanted)


def answer_lines(answer: Answer, now: datetime, tree: str) -> list[str]:
    """Return a line of text for each task that has changed a path the caller wants.

    Tasks that only may have changed such a path get a line too.
    """
    lines = [maybe_held_line(each.task, each.window, each.unread, now, tree, each.unchecked) for each in answer.holders]
    lines += [each.words() for each in answer.unsure]
    return lines + [
        f"cannot tell whether a path is held: the command is not observed ({each.observe}), and {each.words()}"
        for each in answer.unknown
    ]


def coming_lines(answer: Answer) -> list[str]:
    """Return a line for each task that will take files away but has not done so yet."""
    return [f"soon: {each.words()}" for each in answer.coming]


def answer_document(answer: Answer, now: datetime) -> dict[str, object]:
    """Return the guard's result as JSON."""
    holders = [
        {"task": each.task, **window_document(each.window, now), "unread": list(each.unread)} for each in answer.holders
    ]
    unknown, coming = (
        [
            {
                "task": each.task,
                "client": each.client,
                "state": each.state,
                "observe": each.observe,
                "by": masked(each.taking.taken_away[0].by),
                "restores": each.taking.opens_window,
            }
            for each in found
        ]
        for found in (answer.unknown, answer.coming)
    )
    return {"clear": answer.is_clear, "holders": holders, "unknown": unknown, "coming": coming}
