"""The warning before a tool call that uses files that a task has changed.

A warning is given if the task has not restored the files. An index file usually shows that there are none, so that the
hook need not open the ledger. Outlive does not observe the background commands that a client itself runs. For them, the
warning is based on the text of the command.
"""

from __future__ import annotations

import os

from outlive.hooks.state import session_files
from outlive.hooks.state.ledger_check import has_ledger
from outlive.hooks.state.left_paths import read_left_paths
from outlive.hooks.state.unchanged import stamp_of
from outlive.linux.syscalls import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task
    from outlive.hooks.event import Event
    from outlive.hooks.guard.known_windows import KnownWindows
    from outlive.hooks.state.left_paths import LeftPathsIndex
    from outlive.ledger.sqlite import SqliteLedger
    from outlive.service.effects.guard import Answer
    from outlive.service.effects.open_windows import OpenWindows

_MOST = 3
# The hook's deadline when a warning is likely. The hook needs so much time only on a busy machine. Clients wait five
# seconds for the hook.
_ANSWERING_S = 3.0


def held(home: Home, event: Event, patience_s: float) -> str:
    """Return the warning about files that an event uses and a task has changed.

    Return an empty string if there is no such file.
    """
    stamp = stamp_of(home)
    if not has_ledger(home):
        return ""
    known = read_left_paths(home, stamp)
    if known is not None and not _may_concern(known, home, event):
        return ""
    from outlive.ledger.connection import hurry  # noqa: PLC0415 - imported here, because it is rarely needed: usually no ended task has left a file changed
    from outlive.ledger.sqlite import SqliteLedger  # noqa: PLC0415
    from outlive.service.clock import utc_now  # noqa: PLC0415
    from outlive.service.effects.open_windows import MOST_COMPARED, OpenWindows  # noqa: PLC0415
    from outlive.service.tasks.launch_context import parent_of  # noqa: PLC0415

    hurry(patience_s)
    with SqliteLedger(home.ledger, utc_now(), create=False) as ledger:
        ledger.check_complete()
        windows = OpenWindows(home, ledger, parent_of(os.environ), MOST_COMPARED)
        takes_foreign = _takes_foreign(ledger)
        if stamp and known is None and not takes_foreign:
            _index(home, ledger, stamp, windows)
            known = read_left_paths(home, stamp)
            # Each write to the ledger makes the index file outdated, so a new one was just written. If it shows that
            # the event uses no changed file, the slow analysis below is not needed.
            if known is not None and not _may_concern(known, home, event):
                return ""
        if not takes_foreign and not windows.recorded and not any(_may_matter(home, task) for task in windows.replayed):
            return ""
        _take_time()
        answer = _answer(home, windows, event)
        if takes_foreign:
            answer = _with_foreign(ledger, answer, event)
    if known is not None and event.command is not None and any(each.window.is_left for each in answer.holders):
        session_files.set_word(home, event.session, _told(event), known.name)
    return " ".join(filter(None, (_words(answer, event.cwd), _news(home, event, answer))))


def _take_time() -> None:
    """Extend the deadline of this hook. A late warning is better than none."""
    if 0 < signal.getitimer(signal.ITIMER_REAL)[0] < _ANSWERING_S:
        signal.setitimer(signal.ITIMER_REAL, _ANSWERING_S)


def _paths(event: Event) -> list[str]:
    return [os.path.join(event.cwd, path) for path in (*event.edits, *event.reads)]


def _may_concern(known: LeftPathsIndex, home: Home, event: Event) -> bool:
    """Return whether the event may use a changed file, which needs the slow check.

    A command may also read files that it does not name. For such a command, the changes of ended tasks count only until
    the session was warned of them, because ended tasks change no more files.
    """
    if known.is_empty and not known.running:
        return False
    from outlive.hooks.guard.known_windows import KnownWindows, named_in, names_all_it_reads  # noqa: PLC0415
    from outlive.service.effects.resolve_links import places_on_the_way  # noqa: PLC0415 - imported here, because it is rarely needed: usually no ended task has left a file changed

    windows = KnownWindows(known, home, _own_task() if known.running else None)
    paths = _paths(event) if event.command is None else list(named_in(event.command, event.cwd))
    if windows.may_concern(place for path in paths for place in (path, *places_on_the_way(path))):
        return True
    if event.command is None or names_all_it_reads(event.command):
        return False
    from outlive.service.tasks.launch_context import project_of  # noqa: PLC0415

    project, told = [project_of(event.cwd)], session_files.word(home, event.session, _told(event))
    is_news = told != known.name and known.may_concern(project)
    return (is_news or windows.is_running_in(project)) and _may_touch(windows, event)


def _own_task() -> str | None:
    from outlive.service.tasks.launch_context import parent_of  # noqa: PLC0415 - imported here, because it is rarely needed: usually no task runs

    return parent_of(os.environ)


def _may_touch(windows: KnownWindows, event: Event) -> bool:
    """Return whether a command's text names a path that a task may have changed."""
    from outlive.domain.tasks.command import from_shell_text  # noqa: PLC0415 - imported here, because it is rarely needed: usually no task has changed files
    from outlive.hooks.guard.known_windows import up_to_wild  # noqa: PLC0415
    from outlive.service.effects.wanted_paths import read_command  # noqa: PLC0415

    wanted = read_command(from_shell_text(str(event.command)).argv, event.cwd)
    return windows.may_concern({up_to_wild(place) or event.cwd for place in wanted.places()})


def _told(event: Event) -> str:
    return "left_told_below" if event.is_sub_agent else "left_told"


def _index(home: Home, ledger: SqliteLedger, stamp: str, windows: OpenWindows) -> None:
    """Write the index file of changed paths.

    The index is not written if it could miss changes. This is the case if a task is running that may soon change
    existing files, or if a task has ended whose changes are not in the ledger yet.
    """
    running = ledger.unsettled()
    if any(each.current.settled_at is not None for each in windows.replayed) or any(map(_may_take_away, running)):
        return
    from outlive.hooks.state.left_paths import Running, write_left_paths  # noqa: PLC0415 - imported here, because it is rarely needed: usually the index file exists already
    from outlive.ledger.left_open_paths import LeftOpenPaths  # noqa: PLC0415

    tasks = (
        Running(task=each.id, first=each.first_try(each.current.number).number, last=each.current.number)
        for each in running
    )
    write_left_paths(home, stamp, LeftOpenPaths(ledger).names() if windows.recorded else (), tasks)


def _may_take_away(task: Task) -> bool:
    from outlive.domain.effects.predicted import may_take_away  # noqa: PLC0415 - imported here, because it is rarely needed: usually no task runs

    return may_take_away(" ".join(task.launch.argv))


def _may_matter(home: Home, task: Task) -> bool:
    """Return whether a task may have changed files, or may soon change existing ones."""
    if task.current.settled_at is None and _may_take_away(task):
        return True
    from outlive.bundle.attempt import AttemptFiles  # noqa: PLC0415 - imported here, because it is rarely needed: usually no task runs
    from outlive.observe.journal import is_bare  # noqa: PLC0415

    tries = (AttemptFiles(home.bundle(task.id), attempt.number) for attempt in task.attempts)
    return any(os.path.exists(files.compared) or not is_bare(files.effects) for files in tries)


def _takes_foreign(ledger: SqliteLedger) -> bool:
    """Return whether a background command of a client may change existing files."""
    from outlive.domain.effects.predicted import may_take_away  # noqa: PLC0415 - imported here, because it is rarely needed: the index file usually shows that no task has left a file changed
    from outlive.ledger.client_tasks import ClientTasks  # noqa: PLC0415

    return any(map(may_take_away, ClientTasks(ledger).commands()))


def _with_foreign(ledger: SqliteLedger, answer: Answer, event: Event) -> Answer:
    """Add the client's background commands that may change the files to the answer."""
    from outlive.domain.tasks.command import from_shell_text  # noqa: PLC0415 - imported here, because it is rarely needed: background commands of clients rarely change existing files
    from outlive.service.effects.guard import with_foreign_command, with_foreign_paths  # noqa: PLC0415

    if event.command is not None:
        return with_foreign_command(ledger, answer, from_shell_text(event.command).argv, event.cwd)
    return with_foreign_paths(ledger, answer, _paths(event))


def _answer(home: Home, windows: OpenWindows, event: Event) -> Answer:
    from outlive.domain.tasks.command import from_shell_text  # noqa: PLC0415 - imported here, because it is rarely needed: usually no task has changed files
    from outlive.service.effects.guard import answer_for_command, answer_for_paths  # noqa: PLC0415

    if event.command is not None:
        return answer_for_command(home, windows, from_shell_text(event.command).argv, event.cwd)
    return answer_for_paths(home, windows, _paths(event))


def _news(home: Home, event: Event, answer: Answer) -> str:
    """Return the warning about tasks that will soon change the files of an event.

    A session gets this warning once for each task.
    """
    kind = "coming_below" if event.is_sub_agent else "coming"
    told = session_files.word(home, event.session, kind).split()
    coming = [each for each in answer.coming if each.task not in told]
    if not coming:
        return ""
    session_files.set_word(home, event.session, kind, " ".join((*told, *(each.task for each in coming))))
    said = "; ".join(each.words() for each in coming[:_MOST])
    return f"Soon: {said}. Save and commit what you need before that, or wait for the task (`outlive wait ID`)."


def _words(answer: Answer, directory: str) -> str:
    if answer.is_clear:
        return ""
    from outlive.service.clock import utc_now  # noqa: PLC0415 - imported here, because it is rarely needed: usually there is no warning
    from outlive.service.effects.guard import answer_lines  # noqa: PLC0415
    from outlive.service.tasks.launch_context import project_of  # noqa: PLC0415

    lines = answer_lines(answer, utc_now(), project_of(directory))
    more = f" and {len(lines) - _MOST} more tasks" if len(lines) > _MOST else ""
    advice = (
        "The task has changed the files and may restore them. Wait for the task (`outlive wait ID`), or ask the user"
        " first."
    )
    if not answer.holders and answer.unknown and all(each.client is not None for each in answer.unknown):
        advice = "The files may have changed. Ask the user first, or wait until the client reports the command's end."
    elif not answer.holders:
        advice = "The files may have changed. Wait for the task (`outlive wait ID`), or ask the user first."
    elif not answer.unknown and all(each.window.is_left for each in answer.holders):
        advice = (
            "The task will not restore the files. Check its changes (`outlive effects ID`) before you use the files."
        )
    return f"{'; '.join(lines[:_MOST])}{more}. {advice}"
