"""The SDK: `Outlive` launches and finds tasks, and `Task` is one task.

The SDK can be used from any thread of any program. It reads the ledger in the program's own process. A separate
process, the spawner, launches the tasks (see `outlive.sdk.spawner`). Importing the SDK has no effect on the program. A
program may fork at any time and use the SDK in the child process (see `outlive.ledger.fork_safety`).
"""

from __future__ import annotations

import os
from typing import cast

from outlive.bundle.attempt import open_done
from outlive.bundle.home import Home, open_home
from outlive.bundle.output import read_piece, size_of
from outlive.domain.errors import Unavailable, UserError
from outlive.domain.tasks.command import check_variables, from_argv, from_shell_text
from outlive.domain.tasks.lifecycle import STATES, is_terminal
from outlive.domain.timestamps import timedelta
from outlive.ledger.completeness import restore_by
from outlive.ledger.contract import Selection
from outlive.ledger.kept_open import KeptOpenLedger
from outlive.sdk.session import Session
from outlive.sdk.spawner.inherited import inherited
from outlive.sdk.spawner.spawner_process import Spawner
from outlive.service.agents.agent_view import answer_of
from outlive.service.clock import utc_now
from outlive.service.notices.inbox import result_was_read
from outlive.service.tasks import read
from outlive.service.tasks.cancel import cancel
from outlive.service.tasks.follow_output import follow
from outlive.service.tasks.launch_context import current_directory, project_of, session_of
from outlive.service.tasks.output import files_with_output
from outlive.service.tasks.send import send
from outlive.service.tasks.task_document import task_document
from outlive.service.tasks.wait import wait_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, Self

    from outlive.bundle.attempt import AttemptFiles, HeldFiles
    from outlive.domain.tasks import task as domain
    from outlive.domain.tasks.lifecycle import State
    from outlive.domain.tasks.task import KeyScope, Launch, Notify, Observe
    from outlive.sdk.documents import TaskDocument, TranscriptDocument

    Span = timedelta | float | None

_TEN_YEARS = 3650 * 86400
_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("description", "session", "group", "key", "key_scope", "notify", "observe"), (str,)),
    **dict.fromkeys(("client", "model", "category"), (str,)),
    **dict.fromkeys(("retries", "max_tokens", "max_turns"), (int,)),
    "budget": (float, int),
    "stdin": (bool,),
}
_spawner = Spawner()


def _restore(ledger: str) -> None:
    """Restore missing records in a ledger, and report this in the program's log."""
    from outlive.service.maintenance.rebuild import restore_incomplete, restored_sentences  # noqa: PLC0415 - imported here, because it is rarely needed: a ledger is seldom restored

    if restored := restore_incomplete(ledger):
        import logging  # noqa: PLC0415 - imported here, because it is rarely needed: a ledger is seldom restored

        logging.getLogger("outlive").warning("%s; %s", *restored_sentences(restored))


restore_by(_restore)


class Outlive:
    """The background tasks of one user on this machine."""

    def __init__(
        self, *, home: str | None = None, session: str | None = None, project: str | os.PathLike[str] | None = None
    ) -> None:
        """Set the state directory, session and project for the calls of this object.

        `home` is the state directory. The default is the one that the environment names. `session` is the agent session
        that is notified when tasks end. The default is the session in which this program runs. `project` is the
        directory in which that session works. The default is the current directory. Without an argument that says
        otherwise, tasks run in this directory, and `tasks` and `session` use its project.
        """
        environ = {**os.environ, "OUTLIVE_HOME": home} if home else os.environ
        self._home = open_home(environ)
        self._session = session
        self._directory = None if project is None else os.path.abspath(_path("project", project))
        self._project = None if self._directory is None else project_of(self._directory)
        self._ledger = KeptOpenLedger(self._home.ledger)

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
        key_scope: KeyScope = "succeeded",
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
        ports: str | Sequence[str] = (),
        again: bool = False,
        retain: Span = None,
    ) -> Task:
        """Launch a task, and return it when its command runs or it is queued.

        If `command` is a string, it is a line for a shell. If it is a sequence, it is a program with its arguments. The
        task has the rights and limits of this thread. Its environment is that of this program with `env` added. The
        task has no terminal. It has no input, unless `stdin` is set and `Task.send` sends input.

        If this project already has a task with this `key`, that task is returned. While it is queued or runs, and after
        it has succeeded, no attempt is started. If it has ended in another state, a new attempt is started, unless
        `key_scope` is `ended`. `Task.was_started` tells whether an attempt was started.

        A `foreground` task ends when this process ends. Raises `NotStarted` if the program or the directory does not
        exist. The task is then recorded as failed.

        The task begins when the tasks of `after` have succeeded and the tasks of `after_any` have ended. With
        `slots={"gpu": 2}`, at most two tasks with the name `gpu` run at a time, and with `locks="gpu"` only one task.
        `touches` names paths that the task will change, so that other sessions are warned. With `ports="web"`, a free
        port is leased, and the command gets it as `PORT`, `PORT_WEB` and in place of `{port:web}`. Raises
        `AlreadyRunning` if the same server or watcher runs in the same directory, unless `again` is set.
        """
        given = from_shell_text(command) if isinstance(command, str) else from_argv(_words(command))
        fields = {
            "description": description,
            "session": session,
            "group": group,
            "key": key,
            "key_scope": key_scope,
            "timeout": timeout,
            "idle_timeout": idle_timeout,
            "queue_timeout": queue_timeout,
            "retries": retries,
            "after": after,
            "after_any": after_any,
            "slots": slots,
            "locks": locks,
            "max_output": max_output if max_output is None else int(max_output),
            "notify": notify,
            "observe": observe,
            "takes_input": stdin,
            "touches": touches,
            "ports": tuple(_several(ports)),
            "again": bool(again),
            "retain": retain,
        }
        _check_kinds({**fields, "stdin": stdin})
        return self._launch({"argv": given.argv, "text": given.text}, fields, cwd, env, foreground=foreground)

    def agent(
        self,
        prompt: str,
        *,
        client: str | None = None,
        model: str | None = None,
        fallback: str | Sequence[str] | None = None,
        category: str | None = None,
        resume: Task | str | None = None,
        budget: float | None = None,
        max_tokens: int | None = None,
        max_turns: int | None = None,
        worktree: bool = False,
        trace: bool = False,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        description: str | None = None,
        session: str | None = None,
        group: str | None = None,
        key: str | None = None,
        key_scope: KeyScope = "succeeded",
        foreground: bool = False,
        timeout: Span = None,
        idle_timeout: Span = None,
        queue_timeout: Span = None,
        retries: int = 0,
        after: Task | str | Sequence[Task | str] = (),
        after_any: Task | str | Sequence[Task | str] = (),
        slots: Mapping[str, int] | None = None,
        locks: str | Sequence[str] = (),
        notify: Notify = "end",
        observe: Observe = "auto",
        touches: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
        retain: Span = None,
    ) -> Task:
        """Launch a background agent, and return its task when it runs or is queued.

        The user's settings decide about arguments that are not given. If the model is unavailable, the models of
        `fallback` are tried, such as `["opus", "codex:gpt-5"]` or `"opus"`. `resume` is a task, or a session of the
        client, that the agent continues. `budget` is in US dollars. With `worktree`, the agent works in a git worktree
        of its own. `idle_timeout` is how long the agent may make no progress before the attempt is ended. The other
        arguments are those of `run`. `Task.answer` is the agent's final answer.
        """
        if not isinstance(prompt, str):
            raise UserError(f"the prompt is a {type(prompt).__name__} and not a text", "give the prompt as a str")
        wanted = {
            "prompt": prompt,
            "client": client,
            "model": model,
            "fallback": None if fallback is None else tuple(_several(fallback)),
            "category": category,
            "resume": None if resume is None else _id(resume),
            "budget_usd": budget,
            "max_tokens": max_tokens,
            "max_turns": max_turns,
            "has_worktree": worktree,
            "is_traced": trace,
        }
        fields = {
            "description": description,
            "session": session,
            "group": group,
            "key": key,
            "key_scope": key_scope,
            "timeout": timeout,
            "idle_timeout": idle_timeout,
            "queue_timeout": queue_timeout,
            "retries": retries,
            "after": after,
            "after_any": after_any,
            "slots": slots,
            "locks": locks,
            "notify": notify,
            "observe": observe,
            "touches": touches,
            "retain": retain,
        }
        _check_kinds({**fields, **wanted, "budget": budget})
        return self._launch(
            {"argv": ("agent",), "text": "agent", "agent": wanted}, fields, cwd, env, foreground=foreground
        )

    def _launch(
        self,
        what: Mapping[str, object],
        fields: dict[str, Any],
        cwd: str | os.PathLike[str] | None,
        env: Mapping[str, str] | None,
        *,
        foreground: bool,
    ) -> Task:
        """Ask the spawner process to launch a command or an agent.

        The arguments are the fields of the launch request.
        """
        plain = {
            **fields,
            **{name: seconds_of(fields[name]) for name in ("timeout", "idle_timeout", "queue_timeout", "retain")},
            **{name: [_id(one) for one in _several(fields[name])] for name in ("after", "after_any")},
            "session": fields["session"] or self._session,
            "session_project": None if cwd is None else self._project or _project_here(),
            "mode": "foreground" if foreground else "background",
            "slots": _slots_of(fields["slots"]),
            "locks": _several(fields["locks"]),
            "touches": [_path("touches", one) for one in _several(fields["touches"])],
        }
        self._keep_ledger_open()
        around = inherited()
        around["environ"].update(check_variables(env or {}))
        task, was_started = _spawner.ask(
            {
                "verb": "run",
                **_place(self._home),
                **what,
                "cwd": os.path.abspath(_path("cwd", cwd)) if cwd is not None else self._default_directory(),
                "owner": os.getpid() if foreground else None,
                "fields": {name: field for name, field in plain.items() if field is not None},
                **around,
            }
        )
        return Task(self._home, task, was_started=was_started)

    def _default_directory(self) -> str:
        """Return the directory in which the session works."""
        return current_directory(os.environ) if self._directory is None else self._directory

    def _keep_ledger_open(self) -> None:
        """Open the ledger and keep it open, so that keepers can open it quickly.

        If no process has the ledger open, the next one that opens it must first read its write-ahead log. Without this
        function, each launch and each end of a task could take this extra time. A fork closes the ledger (see
        `outlive.ledger.fork_safety`).
        """
        self._ledger.put_back(self._ledger.take(utc_now()))

    def task(self, task_id: str) -> Task:
        """Return the task with this id. A unique prefix of the id is enough."""
        return Task(self._home, read.find(self._home, [task_id], adopt)[0].id)

    def tasks(
        self,
        *,
        project: str | os.PathLike[str] | None = None,
        all_projects: bool = False,
        session: str | None = None,
        group: str | None = None,
        state: State | Sequence[State] = (),
        limit: int | None = 20,
    ) -> list[Task]:
        """Return the tasks of a project, newest first.

        Without `project`, the project of this object is used. If states are given, only tasks in these states are
        returned.
        """
        states = (state,) if isinstance(state, str) else tuple(state)
        if unknown := [each for each in states if each not in STATES]:
            raise UserError(f"{unknown[0]!r} is not a state of a task", f"give one of: {', '.join(STATES)}")
        selection = Selection(
            project=None if all_projects else project_of(os.fspath(project) if project else self._default_directory()),
            session=session,
            group=group,
            states=states,
            limit=limit,
        )
        return [Task(self._home, found.id, found) for found in read.select(self._home, selection, adopt)]

    def transcript(
        self, task: Task | str, *, since: int = 0, last: int | None = None, tools: bool = False
    ) -> TranscriptDocument:
        """Return what an agent and its user have written, in all attempts of a task.

        The result has the entries with a number greater than `since`, or only the last `last` of them. With `tools`, it
        includes tool calls and their results. Secrets are masked. An entry keeps its number while the agent works. To
        get the next entries, call this method again, and give the field `next` of the result as `since`.
        """
        from outlive.service.agents.transcript import (  # noqa: PLC0415 - imported here, because only programs that use agents need it
            read_transcript,
            transcript_document,
        )

        found = read.find(self._home, [_id(task)], adopt)[0]
        part = read_transcript(self._home, found, since=since, last=last, with_tools=tools)
        return cast("TranscriptDocument", transcript_document(found, part))

    def session(self, name: str | None = None, *, project: str | os.PathLike[str] | None = None) -> Session:
        """Return an agent session of a project.

        `name` is the name that the agent client has given the session. The default is the session in which this program
        runs. The default project is that of this object.
        """
        found = name or self._session or session_of(os.environ)
        if found is None:
            raise UserError(
                "it is not known which session this is", "give the name of the session, or set OUTLIVE_SESSION"
            )
        place = os.fspath(project) if project else self._default_directory()
        return Session(self._home, found, project_of(place), adopt)

    def wait(self, *tasks: Task, any_one: bool = False, timeout: Span = None) -> bool:
        """Wait until all tasks have ended, or with `any_one` until one of them has ended.

        Returns False if the timeout was over before. The tasks are not polled, because the kernel wakes this process
        when a task ends.
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
                task._found = ended[task.id]  # noqa: SLF001 - the wait has just read this task, so it need not be read again
            else:
                task.refresh()
        return in_time

    def cancel(self, *tasks: Task) -> bool:
        """End tasks with every process that they started.

        Returns True if this call ended all of them, and otherwise False.
        """
        outcomes = cancel(self._home, [task.id for task in tasks], adopt)
        for task in tasks:
            task.refresh()
        return all(outcome.took for outcome in outcomes)


class Task:
    """One task, in the state in which it was last read. `refresh` reads it again."""

    def __init__(
        self, home: Home, task_id: str, found: domain.Task | None = None, *, was_started: bool = False
    ) -> None:
        self._home = home
        self.id = task_id
        self.was_started = was_started
        """Whether the call of `run` or `agent` that returned this object started an attempt. False for other objects.
        """
        self._found = found

    @property
    def _task(self) -> domain.Task:
        if self._found is None:
            self.refresh()
        assert self._found is not None  # noqa: S101 - the assertion tells the type checker that `refresh` has set `_found`
        return self._found

    @property
    def state(self) -> State:
        """`queued`, `running`, `succeeded`, `failed`, `cancelled`, `timed_out` or `lost`."""
        return self._task.state

    @property
    def has_ended(self) -> bool:
        """Whether the task was over when it was last read."""
        return is_terminal(self.state)

    @property
    def exit_code(self) -> int | None:
        """The command's exit code. None if it did not exit or if its exit was not seen."""
        return self._task.current.exit_code

    @property
    def signal(self) -> int | None:
        """The signal that ended the command, or None if no signal ended it."""
        return self._task.current.signal

    @property
    def reason(self) -> str | None:
        """A word for why the task ended: `timeout`, `requested`, `not_started`, ..."""
        return self._task.current.reason

    @property
    def command(self) -> str:
        """The command as it was given, with its secrets. In `as_dict`, they are masked."""
        return self._task.launch.command

    @property
    def cwd(self) -> str:
        """The directory in which the task runs."""
        return self._task.launch.cwd

    @property
    def answer(self) -> str | None:
        """The final answer of an agent.

        If the agent gave no final answer, this is its last text. It is None for a command, and while the agent runs.
        """
        if self._task.launch.agent is None or not self.has_ended:
            return None
        return answer_of(self._home, self._task)

    def refresh(self) -> Self:
        """Read the task again.

        If the task's keeper was killed, the end of the task is recorded now.
        """
        self._found = read.find(self._home, [self.id], adopt)[0]
        return self

    def wait(self, timeout: Span = None) -> Self:
        """Wait until the task has ended or the timeout is over.

        Afterwards, `has_ended` tells whether the task has ended.
        """
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
        """End the task with every process that it started.

        If this call ended the task, `state` is `cancelled`. If the task had already ended, this call ends the processes
        that the task left running.
        """
        cancel(self._home, [self.id], adopt)
        return self.refresh()

    def send(self, content: str | bytes, *, eof: bool = False) -> Self:
        """Write input to a task that was launched with `stdin`.

        The content is written unchanged, without a newline at the end. With `eof`, the input is closed afterwards, and
        the task sees the end of its input. Raises `Unavailable` if the task does not read its input.
        """
        raw = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else bytes(content)
        self._found = send(self._home, self.id, raw, adopt, is_last=eof)
        return self

    def retry(self) -> Self:
        """Start a new attempt of this task, which must have ended."""
        retry_for(self._home, self._task, session_of(os.environ), _project_here())
        return self.refresh()

    def output(self, *, since: int = 0, tail: int | None = None, attempt: int | None = None) -> bytes:
        """Return the output of the task.

        This is the output from the offset `since` to the end, or only its last `tail` bytes. Output that was dropped
        from the middle is missing. Without `attempt`, it is the output of the newest attempt.
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
        """Yield the task's output as it is written, until the task has ended."""
        self.refresh()
        files = read.files_of(self._home, self._task)
        for piece in follow(self._home, self._task, files, since, adopter=adopt):
            if piece.content:
                yield piece.content

    def open_done(self) -> int:
        """Return a file descriptor that hangs up when the task's keeper has exited.

        An event loop can watch this descriptor. When it hangs up, call `refresh`. If the task has still not ended, open
        a new descriptor.
        """
        return open_done(read.files_of(self._home, self._task))

    def as_dict(self) -> TaskDocument:
        """Return the task as the JSON document that the CLI and the MCP server also give."""
        return cast("TaskDocument", task_document(self._home, self._task, utc_now()))

    def __repr__(self) -> str:
        return f"<Task {self.id}{f' {self._found.state}' if self._found else ''}>"


def adopt(home: Home, launch: Launch, _: AttemptFiles, held: HeldFiles) -> None:
    """Start a new keeper for a task whose keeper was killed.

    The spawner process is asked to do this, because only the spawner forks.
    """
    held.close()
    _spawner.ask({"verb": "reconcile", **_place(home), "task": launch.id})


def retry_for(home: Home, task: domain.Task, session: str | None, project: str | None) -> None:
    """Start a new attempt of a task.

    The end of the attempt is reported to the agent session `session`.
    """
    heard = {"session": session, "session_project": project}
    owner = os.getpid() if task.launch.mode == "foreground" else None
    _spawner.ask({"verb": "retry", **_place(home), "task": task.id, "owner": owner, **heard, **inherited()})


def _project_here() -> str | None:
    """Return this program's project, or None if the current directory was deleted.

    A call of the SDK must not fail just because the current directory was deleted.
    """
    try:
        return project_of(current_directory(os.environ))
    except Unavailable:
        return None


def _place(home: Home) -> dict[str, object]:
    return {"home": home.path, "can_punch": home.can_punch}


def _id(task: Task | str) -> str:
    if isinstance(task, Task):
        return task.id
    if isinstance(task, str):
        return task
    raise UserError(f"{task!r} is not a task", "give a Task, or the id of a task as text")


def _several(given: Any) -> list[Any]:
    """Return the arguments as a list. A single argument becomes a list with one item.

    A string is a single argument. Without this function, each of its letters would be taken as an argument. Raises
    `UserError` if the argument is neither a single one nor a sequence.
    """
    if isinstance(given, (str, bytes, os.PathLike, Task)):
        return [given]
    try:
        return list(given)
    except TypeError:
        raise UserError(f"{given!r} is no argument and no sequence of arguments", "give one text, or a list") from None


def _slots_of(given: Any) -> list[str]:
    """Return the slots of a launch as texts of the form `NAME=N`."""
    try:
        return [f"{name}={room}" for name, room in (given or {}).items()]
    except AttributeError:
        raise UserError(f"slots cannot be {given!r}", "give a dict, such as {'gpu': 2}") from None


def _path(name: str, given: object) -> str:
    if isinstance(given, (str, bytes, os.PathLike)):
        return os.fsdecode(given)
    raise UserError(f"{name} cannot be {given!r}", "give a path as text, or as a Path")


def _check_kinds(fields: Mapping[str, Any]) -> None:
    """Raise `UserError` for arguments of a wrong type.

    Without this check, the error would come from the spawner process, and would be less clear.
    """
    given = [(name, fields[name], kinds) for name, kinds in _KINDS.items() if fields.get(name) is not None]
    texts = [(name, fields[name]) for name in ("locks", "ports", "fallback") if fields.get(name) is not None]
    several = [(name, one, (str,)) for name, all_of_it in texts for one in _several(all_of_it)]
    for name, found, kinds in (*given, *several):
        if not isinstance(found, kinds):
            raise UserError(f"{name} cannot be {found!r}", f"give a value of the type {kinds[0].__name__}")


def _words(command: Any) -> list[str]:
    """Return the words of a command. Raise `UserError` if it is not a sequence."""
    is_one = isinstance(command, (bytes, os.PathLike))
    try:
        words = None if is_one else list(command)
    except TypeError:
        words = None
    if words is None:
        raise UserError(f"{command!r} is not a command", "give a text, or a list such as ['make', 'test']")
    return list(map(_word, words))


def _word(word: object) -> str:
    if isinstance(word, (str, bytes, os.PathLike)):
        return os.fsdecode(word)
    raise UserError(f"{word!r} cannot be a word of a command", "give every word of the command as text")


def _span(given: Span) -> timedelta | None:
    seconds = seconds_of(given)
    return None if seconds is None else timedelta(seconds=seconds)


def seconds_of(given: Span) -> float | None:
    """Return a duration in seconds.

    Raises `UserError` if the value is not a duration of at most ten years.
    """
    seconds = given.total_seconds() if isinstance(given, timedelta) else given
    try:
        is_usable = seconds is None or 0 <= seconds <= _TEN_YEARS
    except TypeError:
        is_usable = False
    if not is_usable:
        raise UserError(f"{given!r} is not a span of time", "give seconds or a timedelta, of at most ten years")
    return seconds
