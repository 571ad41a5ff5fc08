"""The SDK: `Outlive` launches and finds tasks, `Task` is one of them.

Safe to use from any thread of any program: it reads the ledger in place, and everything that
needs a fork is done by a spawner (see `spawner`). Nothing happens at import. A program may fork
itself at any time and go on using it in the child (see `ledger.forking`).
"""

from __future__ import annotations

import os

from outlive.bundle.attempt import open_done
from outlive.bundle.home import Home, open_home
from outlive.bundle.output import read_piece, size_of
from outlive.client.inheritance import inherited
from outlive.client.session import Session
from outlive.client.spawning import Spawner
from outlive.domain.command import check_variables, from_argv, from_shell_text
from outlive.domain.errors import Unavailable, UserError
from outlive.domain.lifecycle import is_terminal
from outlive.domain.when import timedelta
from outlive.ledger.contract import Selection
from outlive.ledger.resting import RestingLedger
from outlive.service import view
from outlive.service.cancel import cancel
from outlive.service.clock import utc_now
from outlive.service.follow import follow
from outlive.service.inbox import result_was_read
from outlive.service.origin import current_directory, project_of, session_of
from outlive.service.output import files_with_output
from outlive.service.send import send
from outlive.service.wait import wait_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, Self

    from outlive.bundle.attempt import AttemptFiles, Held
    from outlive.domain import task as domain
    from outlive.domain.task import Launch, Notify, Observe

    Span = timedelta | float | None

_TEN_YEARS = 3650 * 86400
_KINDS = {
    **dict.fromkeys(("description", "session", "group", "key", "notify", "observe"), str),
    "retries": int,
    "stdin": bool,
}
_spawner = Spawner()


class Outlive:
    """Background tasks of one user on this machine."""

    def __init__(
        self, *, home: str | None = None, session: str | None = None, project: str | os.PathLike[str] | None = None
    ) -> None:
        """Use the state directory of the environment, or another one.

        `session` is the agent session to tell of endings; by default the one we run in. `project` is
        where it works; by default here.
        """
        environ = {**os.environ, "OUTLIVE_HOME": home} if home else os.environ
        self._home = open_home(environ)
        self._session = session
        self._project = None if project is None else project_of(os.fspath(project))
        self._ledger = RestingLedger(self._home.ledger)

    def run(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        description: str | None = None,
        session: str | None = None,
        group: str | None = None,
        key: str | None = None,
        foreground: bool = False,
        timeout: Span = None,
        idle_timeout: Span = None,
        queue_timeout: Span = None,
        retries: int = 0,
        after: Task | str | Sequence[Task | str] = (),
        after_any: Task | str | Sequence[Task | str] = (),
        slots: Mapping[str, int] | None = None,
        locks: str | Sequence[str] = (),
        max_output: int | None = None,
        notify: Notify = "end",
        observe: Observe = "auto",
        stdin: bool = False,
        touches: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
        retain: Span = None,
    ) -> Task:
        """Launch a task; returns once it runs, or is in line.

        A text is a line of shell, a sequence is a program with its arguments. The task has this
        thread's rights and limits, its environment with `env` added, no terminal, and no input but
        what it is sent (see `Task.send`), if it has `stdin`.
        With a `key` that this project already has, returns that task instead of starting another.
        A `foreground` task ends with this process. Raises `NotStarted` if there is no such
        program or directory; that, too, is on record.

        It begins when the tasks of `after` have succeeded and those of `after_any` have ended, and
        when fewer than N of those that share a name of `slots` (`{"gpu": 2}`) or of `locks` run.
        `touches` names paths that it is going to change, for others to be warned.
        """
        given = from_shell_text(command) if isinstance(command, str) else from_argv(list(map(_word, command)))
        fields = {
            "description": description,
            "session": session or self._session,
            "session_project": None if cwd is None else self._project or _project_here(),
            "group": group,
            "key": key,
            "mode": "foreground" if foreground else "background",
            "timeout": _seconds(timeout),
            "idle_timeout": _seconds(idle_timeout),
            "queue_timeout": _seconds(queue_timeout),
            "retries": retries,
            "after": [_id(one) for one in _several(after)],
            "after_any": [_id(one) for one in _several(after_any)],
            "slots": [f"{name}={room}" for name, room in (slots or {}).items()],
            "locks": _several(locks),
            "max_output": max_output if max_output is None else int(max_output),
            "notify": notify,
            "observe": observe,
            "takes_input": stdin,
            "touches": list(map(os.fsdecode, _several(touches))),
            "retain": _seconds(retain),
        }
        _check_kinds({**fields, "stdin": stdin})
        self._keep_ledger_open()
        around = inherited()
        around["environ"].update(check_variables(env or {}))
        task = _spawner.ask(
            {
                "verb": "run",
                **_place(self._home),
                "argv": given.argv,
                "text": given.text,
                "cwd": os.path.abspath(os.fsdecode(cwd)) if cwd is not None else current_directory(os.environ),
                "owner": os.getpid() if foreground else None,
                "fields": {name: field for name, field in fields.items() if field is not None},
                **around,
            }
        )
        return Task(self._home, task)

    def _keep_ledger_open(self) -> None:
        """Rest on the ledger: whoever opens it while nobody else has it open must read its log from the start.

        That would be every launch, and every ending. A fork closes it (see `ledger.forking`).
        """
        self._ledger.put_back(self._ledger.take(utc_now()))

    def task(self, task_id: str) -> Task:
        """One task by its id, or by a unique prefix of it."""
        return Task(self._home, view.find(self._home, [task_id], adopt)[0].id)

    def tasks(
        self,
        *,
        project: str | os.PathLike[str] | None = None,
        all_projects: bool = False,
        session: str | None = None,
        group: str | None = None,
        state: Sequence[str] = (),
        limit: int | None = 20,
    ) -> list[Task]:
        """The tasks of a project (by default this one), newest first."""
        selection = Selection(
            project=None
            if all_projects
            else project_of(os.fspath(project) if project else current_directory(os.environ)),
            session=session,
            group=group,
            states=(state,) if isinstance(state, str) else tuple(state),
            limit=limit,
        )
        return [Task(self._home, found.id, found) for found in view.select(self._home, selection, adopt)]

    def session(self, name: str | None = None, *, project: str | os.PathLike[str] | None = None) -> Session:
        """An agent session by its client's name for it (by default the one we run in), in a project."""
        found = name or self._session or session_of(os.environ)
        if found is None:
            raise UserError("it is not known which session this is", "give its name, or set OUTLIVE_SESSION")
        place = os.fspath(project) if project else current_directory(os.environ)
        return Session(self._home, found, project_of(place), adopt)

    def wait(self, *tasks: Task, any_one: bool = False, timeout: Span = None) -> bool:
        """Block until all (or any one) of the tasks have ended; False if the time was up.

        The kernel wakes us; nothing is polled, however many they are.
        """
        ended: dict[str, domain.Task] = {}
        in_time = wait_for(
            self._home,
            [task.id for task in tasks],
            any_one=any_one,
            timeout=_span(timeout),
            adopter=adopt,
            on_end=lambda task: ended.update({task.id: task}),
        )
        for task in tasks:
            if task.id in ended:
                task._found = ended[task.id]  # noqa: SLF001 - it has just been looked at
            else:
                task.refresh()
        return in_time

    def cancel(self, *tasks: Task) -> bool:
        """End the tasks with everything they started; True only if that is what ended each of them."""
        outcomes = cancel(self._home, [task.id for task in tasks], adopt)
        for task in tasks:
            task.refresh()
        return all(outcome.took for outcome in outcomes)


class Task:
    """One task, as it was when last looked at; `refresh` looks again."""

    def __init__(self, home: Home, task_id: str, found: domain.Task | None = None) -> None:
        self._home = home
        self.id = task_id
        self._found = found

    @property
    def _task(self) -> domain.Task:
        if self._found is None:
            self.refresh()
        assert self._found is not None  # noqa: S101 - for the type checker
        return self._found

    @property
    def state(self) -> str:
        """`queued`, `running`, `succeeded`, `failed`, `cancelled`, `timed_out` or `lost`."""
        return self._task.state

    @property
    def has_ended(self) -> bool:
        """Whether nothing will change any more."""
        return is_terminal(self.state)

    @property
    def exit_code(self) -> int | None:
        """The exit code, if the command exited and somebody saw it."""
        return self._task.current.exit_code

    @property
    def signal(self) -> int | None:
        """The signal that ended the command, if one did."""
        return self._task.current.signal

    @property
    def reason(self) -> str | None:
        """Why it ended as it did, as a word: `timeout`, `requested`, `not_started`, ..."""
        return self._task.current.reason

    @property
    def command(self) -> str:
        """The command as it was given, with the secrets in it; `as_dict` masks them."""
        return self._task.launch.command

    @property
    def cwd(self) -> str:
        """The directory that it runs in."""
        return self._task.launch.cwd

    def refresh(self) -> Self:
        """Look again; whatever died unseen is settled by this."""
        self._found = view.find(self._home, [self.id], adopt)[0]
        return self

    def wait(self, timeout: Span = None) -> Self:
        """Block until it has ended, or the time is up: `has_ended` tells which."""
        ended: list[domain.Task] = []
        wait_for(self._home, [self.id], timeout=_span(timeout), adopter=adopt, on_end=ended.append)
        if not ended:
            return self.refresh()
        self._found = ended[0]
        project = _project_here()
        if project is not None:
            result_was_read(self._home, self._found, session_of(os.environ), project)
        return self

    def cancel(self) -> Self:
        """End it with everything it started; `state` tells whether that is what ended it."""
        cancel(self._home, [self.id], adopt)
        return self.refresh()

    def send(self, content: str | bytes, *, eof: bool = False) -> Self:
        """Put this where it reads, as it is, without a newline; it must have been launched with `stdin`.

        With `eof` it then sees the end of its input. Raises `Unavailable` if it does not read.
        """
        raw = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else bytes(content)
        self._found = send(self._home, self.id, raw, adopt, is_last=eof)
        return self

    def retry(self) -> Self:
        """Start a new attempt of this task, which must have ended."""
        owner = os.getpid() if self._task.launch.mode == "foreground" else None
        _spawner.ask({"verb": "retry", **_place(self._home), "task": self.id, "owner": owner, **inherited()})
        return self.refresh()

    def output(self, *, since: int = 0, tail: int | None = None, attempt: int | None = None) -> bytes:
        """What it has written: from an offset on, or the last `tail` bytes. The hole is left out.

        Of its newest attempt, or of the one with that number.
        """
        files = files_with_output(self._home, self._task, attempt)
        end = size_of(files)
        start = max(0, end - tail) if tail is not None else max(0, since)
        parts = []
        while start < end and (piece := read_piece(files, start, min(end - start, 1 << 20))).content:
            parts.append(piece.content)
            start = piece.end
        return b"".join(parts)

    def follow(self, *, since: int = 0) -> Iterator[bytes]:
        """Its output as it comes, until it has ended."""
        self.refresh()
        files = view.files_of(self._home, self._task)
        for piece in follow(self._home, self._task, files, since, adopter=adopt):
            if piece.content:
                yield piece.content

    def open_done(self) -> int:
        """A descriptor that hangs up when the task's keeper is gone; for event loops.

        What to do then: `refresh`, and if it has not ended, open it anew.
        """
        return open_done(view.files_of(self._home, self._task))

    def as_dict(self) -> dict[str, Any]:
        """The task as the JSON of every surface has it."""
        return view.task_document(self._home, self._task, utc_now())

    def __repr__(self) -> str:
        return f"<Task {self.id}{f' {self._found.state}' if self._found else ''}>"


def adopt(home: Home, launch: Launch, _: AttemptFiles, held: Held) -> None:
    """A new keeper for an orphan has to be forked, so the spawner does it."""
    held.close()
    _spawner.ask({"verb": "reconcile", **_place(home), "task": launch.id})


def _project_here() -> str | None:
    """The project that this program works in; None if its directory is gone, which is no reason to do nothing."""
    try:
        return project_of(current_directory(os.environ))
    except Unavailable:
        return None


def _place(home: Home) -> dict[str, object]:
    return {"home": home.path, "can_punch": home.can_punch}


def _id(task: Task | str) -> str:
    return task if isinstance(task, str) else task.id


def _several(given: Any) -> list[Any]:
    """What may be several. A text is one: as a sequence it would be that of its letters, each of them a name."""
    return [given] if isinstance(given, (str, bytes, os.PathLike, Task)) else list(given)


def _check_kinds(fields: Mapping[str, Any]) -> None:
    """Refuse here what could only fail somewhere in the spawner."""
    given = [(name, fields[name], kind) for name, kind in _KINDS.items() if fields[name] is not None]
    for name, found, kind in (*given, *(("locks", one, str) for one in fields["locks"])):
        if not isinstance(found, kind):
            raise UserError(f"{name} cannot be {found!r}", f"it is of the type {kind.__name__}")


def _word(word: object) -> str:
    if isinstance(word, (str, bytes, os.PathLike)):
        return os.fsdecode(word)
    raise UserError(f"{word!r} is not an argument", "give every word of the command as text")


def _span(given: Span) -> timedelta | None:
    seconds = _seconds(given)
    return None if seconds is None else timedelta(seconds=seconds)


def _seconds(given: Span) -> float | None:
    seconds = given.total_seconds() if isinstance(given, timedelta) else given
    try:
        is_usable = seconds is None or 0 <= seconds <= _TEN_YEARS
    except TypeError:
        is_usable = False
    if not is_usable:
        raise UserError(f"{given!r} is not a span of time", "seconds or a timedelta, of at most ten years")
    return seconds
