"""Launching a task.

A launch first creates and locks the files, then writes a durable row in the ledger, and then starts the command.
"""

from __future__ import annotations

import os

from outlive.bundle.attempt import AttemptFiles, create_attempt, discard_bundle, fill_bundle
from outlive.bundle.output import SMALLEST_CAP
from outlive.domain.errors import (
    Broken,
    OutliveError,
    Unavailable,
    UserError,
    hint_after,
)
from outlive.domain.ids import task_id
from outlive.domain.tasks.spec import spec_of
from outlive.domain.tasks.task import NOTIFY, Launch
from outlive.domain.text.sanitize import is_encodable, to_json
from outlive.domain.timestamps import timedelta
from outlive.domain.value import Value
from outlive.linux.syscalls import check_pidfd
from outlive.service.clock import utc_now
from outlive.service.tasks.launch_context import DEEPEST, check_depth, parent_of, project_of, session_of
from outlive.service.tasks.start_attempt import hand_over, new_attempt, open_ledger, prepare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from outlive.bundle.home import Home
    from outlive.domain.agents.request import AgentRequest, AgentStart
    from outlive.domain.tasks.command import Command
    from outlive.domain.tasks.queueing import Claim, Dependency
    from outlive.domain.tasks.task import KeyScope, Mode, Notify, Observe, Task
    from outlive.keeper.plan import Surroundings
    from outlive.keeper.spawn import NewKeeper
    from outlive.ledger.kept_open import KeptOpenLedger
    from outlive.ledger.sqlite import SqliteLedger

_ID_TRIES = 8
_LARGEST_CAP = 1 << 50
OBSERVE = ("auto", "syscalls", "watch", "compare", "off")
KEY_SCOPES: tuple[KeyScope, ...] = ("succeeded", "ended")
MOST_RETRIES = 100
MOST_TOUCHES = 100
_LONGEST_DESCRIPTION = 10_000
_MOST_CHECKED = 3  # copies of one command that are inspected before a launch
DEFAULT_OUTPUT_CAP = 64 << 20
DEFAULT_RETENTION = timedelta(days=7)


class Request(Value):
    """The request to launch a task."""

    command: Command
    cwd: str
    surroundings: Surroundings
    description: str | None = None
    session: str | None = None
    session_project: str | None = None
    group: str | None = None
    key: str | None = None
    key_scope: KeyScope = "succeeded"
    mode: Mode = "background"
    timeout: timedelta | None = None
    idle_timeout: timedelta | None = None
    queue_timeout: timedelta | None = None
    retries: int = 0
    after: tuple[str, ...] = ()
    after_any: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    max_output: int = DEFAULT_OUTPUT_CAP
    notify: Notify = "end"
    observe: Observe = "auto"
    takes_input: bool = False
    touches: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    """The names of the ports to lease for the task."""
    again: bool = False
    """Whether to start the command although the same server runs already."""
    retain: timedelta = DEFAULT_RETENTION
    agent: AgentRequest | None = None
    """The settings of an agent besides its prompt, such as its models and limits. None for a command."""
    prompt: str = ""
    deepest: int = DEEPEST
    """How many nested tasks may be around the new task."""


class Launched(Value):
    """The result of a launch."""

    task: str
    """The id of the task."""
    started: bool = True
    """Whether this launch started the task.

    It is False if an earlier task has the same key, and that task was returned instead.
    """
    copies: tuple[str, ...] = ()
    """The running tasks with the same command in the same directory, newest first. Empty if they were not searched."""


def run(home: Home, request: Request, now: datetime, resting: KeptOpenLedger | None = None) -> Launched:
    """Launch a task, and return when its keeper confirms that the task runs or waits.

    If a task with the same key is live or has succeeded, nothing starts and the id of that task is returned. If that
    task has ended in another way, its next attempt starts. With the key scope `ended`, the next attempt starts only if
    the task is lost and its command never began. The caller may pass an open ledger as `resting`. This ledger is used,
    and stays open for later calls.
    """
    check_request(request)
    check_depth(request.surroundings.environ, request.deepest)
    if request.key is not None:
        from outlive.service.tasks.launch_key import holder_of_key  # noqa: PLC0415 - imported here, because only a launch with a key needs it

        same = holder_of_key(home, request, now)
        if same is not None:
            return same
    check_pidfd()
    home.check_room()
    launch, files = _new_bundle(home, _plan_launch(request, _dependencies(home, request, now), now))
    start = _prepare_agent(launch, files, request)
    try:
        with _prepare(home, launch, files, request, start) as keeper:
            copies = _Copies(home, request)
            task = _enqueue(home, launch, now, resting, start, copies=copies)
            if task.id == launch.id:
                return Launched(task=hand_over(home, launch, files, keeper, now), copies=copies.found)
        discard_bundle(files.bundle)
    finally:
        if start is not None and not os.path.isdir(files.bundle):
            from outlive.service.agents.prepare import discard_worktree  # noqa: PLC0415 - imported here, because only agent tasks need it

            discard_worktree(home, launch, request.surroundings.environ)
    from outlive.service.tasks.launch_key import check_same_command  # noqa: PLC0415 - imported here, because only a launch with a key needs it

    check_same_command(home, task, request)
    return Launched(task=task.id, started=False)


def _new_bundle(home: Home, launch: Launch) -> tuple[Launch, AttemptFiles]:
    """Return the launch with an id that no other task has, and its new bundle."""
    for _ in range(_ID_TRIES):
        chosen = launch
        if launch.agent is not None:
            from outlive.service.agents.prepare import placed  # noqa: PLC0415 - imported here, because only agent tasks need it

            chosen = placed(home, launch)
        files = make_bundle(home, chosen)
        if files is not None:
            return chosen, files
        # Another task has this id. With a million tasks in the ledger, this happens in one of ten thousand launches.
        launch = launch.but(id=task_id(os.urandom(8)))
    raise Broken(f"other tasks have all {_ID_TRIES} new ids", "check this system's source of random numbers")


def _prepare_agent(launch: Launch, files: AttemptFiles, request: Request) -> AgentStart | None:
    """Write the prompt and make the worktree of an agent.

    Returns how the first attempt of the agent begins, or None if the task is a command.
    """
    if launch.agent is None:
        return None
    from outlive.service.agents.prepare import prepare_agent  # noqa: PLC0415 - imported here, because only agent tasks need it

    try:
        return prepare_agent(launch, files, request.prompt, request.surroundings.environ)
    except OSError as error:
        raise _cannot_make(files, error) from error
    except OutliveError:
        discard_bundle(files.bundle)
        raise


def check_request(request: Request) -> None:
    """Raise `UserError` for a request that could not be carried out later."""
    if request.max_output < SMALLEST_CAP:
        raise UserError(
            f"a cap of {request.max_output} bytes is too small",
            f"give at least {SMALLEST_CAP >> 10}K",
        )
    if request.max_output > _LARGEST_CAP:
        raise UserError(f"a cap of {request.max_output} bytes is too large", f"give at most {_LARGEST_CAP >> 40}T")
    if not 0 <= request.retries <= MOST_RETRIES:
        raise UserError(f"{request.retries} retries are not possible", f"give a number from 0 to {MOST_RETRIES}")
    if request.notify not in NOTIFY:
        raise UserError(f"notify cannot be {request.notify!r}", f"use one of: {', '.join(NOTIFY)}")
    if request.key_scope not in KEY_SCOPES:
        raise UserError(f"the key scope cannot be {request.key_scope!r}", f"use one of: {', '.join(KEY_SCOPES)}")
    if request.observe not in OBSERVE:
        raise UserError(f"observe cannot be {request.observe!r}", f"use one of: {', '.join(OBSERVE)}")
    if request.ports:
        from outlive.domain.tasks.ports import check_port_names  # noqa: PLC0415 - imported here, because only tasks with ports need it

        check_port_names(request.ports)
    _check_texts(request)
    _check_variables(request.surroundings.environ)


def _check_variables(environ: Mapping[str, str]) -> None:
    """Raise `UserError` if an environment variable of Outlive has a wrong value.

    Otherwise the value would be ignored later, without a message.
    """
    observe = environ.get("OUTLIVE_OBSERVE") or "auto"
    if observe not in OBSERVE:
        raise UserError(
            f"the environment variable OUTLIVE_OBSERVE cannot be {observe[:60]!r}",
            f"unset it, or set it to one of: {', '.join(OBSERVE)}",
        )
    if size := environ.get("OUTLIVE_MAX_DISK"):
        from outlive.domain.text.units import parse_size  # noqa: PLC0415 - imported here, because few users set this variable

        try:
            parse_size(size)
        except UserError as error:
            message = f"the environment variable OUTLIVE_MAX_DISK is wrong: {error.message}"
            raise UserError(message, error.hint) from None


def _check_texts(request: Request) -> None:
    names = {"key": request.key, "group": request.group, "session": request.session}
    for name, text in names.items():
        if text is not None and (not 0 < len(text) <= 500 or not _is_storable(text)):
            raise UserError(f"the {name} is not usable", "use 1 to 500 characters, and no NUL byte")
    if request.description is not None and len(request.description) > _LONGEST_DESCRIPTION:
        raise UserError("the description is not usable", f"use at most {_LONGEST_DESCRIPTION} characters")
    for name, text in (("description", request.description), ("directory", request.cwd)):
        if text is not None and not _is_storable(text):
            raise UserError(f"the {name} is not usable", "use no NUL byte and no lone surrogate")
    if len(request.touches) > MOST_TOUCHES:
        raise UserError(
            f"{len(request.touches)} paths to touch are too many",
            f"give at most {MOST_TOUCHES}; name directories instead of files",
        )
    if not all(path and _is_storable(path) for path in request.touches):
        raise UserError(
            "a path to touch is not usable", "give a path that is not empty, without NUL bytes and lone surrogates"
        )


def _is_storable(text: str) -> bool:
    return "\0" not in text and is_encodable(text)


def make_bundle(home: Home, launch: Launch) -> AttemptFiles | None:
    """Create the task's directory, with a file that describes the launch.

    Returns None if another task has the id.
    """
    files = AttemptFiles(home.bundle(launch.id), 1)
    try:
        os.mkdir(files.bundle, 0o700)
    except FileExistsError:
        return None
    except OSError as error:
        raise Unavailable(
            f"{files.bundle} cannot be made: {error.strerror}", hint_after(error, "nothing was started")
        ) from error
    try:
        fill_bundle(files.bundle, to_json(spec_of(launch)))
    except OSError as error:
        raise _cannot_make(files, error) from error
    return files


def _prepare(home: Home, launch: Launch, files: AttemptFiles, request: Request, start: AgentStart | None) -> NewKeeper:
    try:
        held = create_attempt(files, in_line=launch.is_queued)
        if start is not None:
            from outlive.bundle.agent_files import write_start  # noqa: PLC0415 - imported here, because only agent tasks need it

            write_start(files, start, request.prompt)
    except OSError as error:
        raise _cannot_make(files, error) from error
    try:
        if request.ports:
            from outlive.bundle.ports import lease_ports  # noqa: PLC0415 - imported here, because only tasks with ports need it

            lease_ports(files, held, request.ports, launch.project)
        return prepare(home, launch, files, held, request.surroundings)
    except Unavailable:
        discard_bundle(files.bundle)
        raise


def _cannot_make(files: AttemptFiles, error: OSError) -> Unavailable:
    discard_bundle(files.bundle)
    return Unavailable(f"{files.bundle} cannot be made: {error.strerror}", hint_after(error, "nothing was started"))


def _dependencies(home: Home, request: Request, now: datetime) -> tuple[Dependency, ...]:
    """Return the awaited tasks with full ids, or raise `UnknownTask`."""
    if not request.after and not request.after_any:
        return ()
    from outlive.domain.tasks.queueing import Dependency  # noqa: PLC0415 - imported here, because only a launch that waits for another task needs it
    from outlive.service.tasks.find import resolve  # noqa: PLC0415

    with open_ledger(home, now) as ledger:
        well = [Dependency(task=resolve(ledger, one).id) for one in request.after]
        anyhow = [Dependency(task=resolve(ledger, one).id, any_ending=True) for one in request.after_any]
    return tuple(dict.fromkeys((*well, *anyhow)))


def _plan_launch(request: Request, after: tuple[Dependency, ...], now: datetime) -> Launch:
    environ = request.surroundings.environ
    return Launch(
        id=task_id(os.urandom(8)),
        command=request.command.text,
        argv=request.command.argv,
        cwd=request.cwd,
        project=project_of(request.cwd),
        host=os.uname().nodename,
        created_at=now,
        description=request.description,
        session=request.session or session_of(environ),
        session_project=request.session_project,
        parent=parent_of(environ),
        group=request.group,
        key=request.key,
        mode=request.mode,
        timeout=request.timeout,
        idle_timeout=request.idle_timeout,
        queue_timeout=request.queue_timeout,
        retries=request.retries,
        after=after,
        claims=request.claims,
        max_output=request.max_output,
        notify=request.notify,
        observe=_how_to_observe(request),
        takes_input=request.takes_input,
        touches=tuple(dict.fromkeys(os.path.normpath(os.path.join(request.cwd, path)) for path in request.touches)),
        retain=request.retain,
        agent=request.agent,
    )


def _how_to_observe(request: Request) -> Observe:
    """Return how to observe the task: as requested, or as OUTLIVE_OBSERVE says.

    The variable OUTLIVE_OBSERVE is the user's default for requests without a choice.
    """
    in_general = request.surroundings.environ.get("OUTLIVE_OBSERVE") or "auto"
    return in_general if request.observe == "auto" else request.observe  # type: ignore[return-value]


class _Copies:
    """The running copies of a command, searched in the transaction of a launch."""

    def __init__(self, home: Home, request: Request) -> None:
        self._home, self._request = home, request
        # A launch with a key has its own rule. Tasks of a group, and tasks that wait for their turn, are copies on
        # purpose.
        is_deliberate = request.again or request.key is not None or request.group is not None
        is_queued = bool(request.after or request.after_any or request.claims)
        self._may_search = not is_deliberate and not is_queued and request.agent is None
        self.found: tuple[str, ...] = ()
        self._tasks: list[Task] = []

    def search(self, ledger: SqliteLedger, launch: Launch) -> bool:
        """Search running copies in the ledger. Return whether there are new ones."""
        if not self._may_search:
            return False
        self._may_search = False
        self.found = tuple(ledger.running_copies(launch))
        # Read with this connection: a second one to the same file could keep its descriptors open in a spawner.
        self._tasks = [task for one in self.found[:_MOST_CHECKED] if (task := ledger.task(one)) is not None]
        return bool(self.found)

    def check(self) -> None:
        """Raise `AlreadyRunning` if a copy is a server."""
        from outlive.service.tasks.already_running import check_not_running  # noqa: PLC0415 - imported here, because copies are rare

        check_not_running(self._home, self._tasks, self._request.surroundings.environ, utc_now())


def _enqueue(
    home: Home,
    launch: Launch,
    now: datetime,
    resting: KeptOpenLedger | None,
    start: AgentStart | None,
    *,
    copies: _Copies | None = None,
) -> Task:
    """Record the task, and return it. Returns another task if that task has the key.

    With `copies`, raises `AlreadyRunning` if a copy of the command runs and is a server.
    """
    try:
        opened = open_ledger(home, now) if resting is None else resting.use(now)
    except OutliveError:
        discard_bundle(home.bundle(launch.id))
        raise
    try:
        with opened as ledger, ledger.write():
            if copies is None or not copies.search(ledger, launch):
                return _write_row(ledger, launch, start)
        # Processes are inspected only now, because this takes time, and other launches wait for the ledger.
        copies.check()
        with open_ledger(home, now) if resting is None else resting.use(now) as ledger, ledger.write():
            return _write_row(ledger, launch, start)
    except Exception:
        # An error from COMMIT does not prove that the row was not written, so look for the row before the error is
        # raised.
        with open_ledger(home, now) as ledger:
            written = ledger.task(launch.id)
        if written is None:
            discard_bundle(home.bundle(launch.id))
            raise
        return written


def _write_row(ledger: SqliteLedger, launch: Launch, start: AgentStart | None) -> Task:
    if start is not None:
        from outlive.service.agents.prepare import check_session_is_free  # noqa: PLC0415 - imported here, because only agent tasks need it

        check_session_is_free(ledger, launch, start)
    # Read the clock only now: waiting for the write lock may have taken seconds.
    return ledger.enqueue(launch, new_attempt(launch, 1, utc_now(), start))
