"""`outlive run`: launch a task and print its id."""

from __future__ import annotations

import sys

from outlive.cli import context
from outlive.cli.parser import Command, Given, option, whole_number
from outlive.domain.errors import UserError
from outlive.domain.tasks.command import check_environment, from_argv, from_shell_text, quote
from outlive.domain.tasks.lifecycle import LIVE
from outlive.domain.tasks.task import NOTIFY
from outlive.domain.text.units import parse_duration, parse_size
from outlive.linux.sandbox import killing_sandbox
from outlive.service.clock import utc_now
from outlive.service.tasks.run import (
    DEFAULT_OUTPUT_CAP,
    DEFAULT_RETENTION,
    Launched,
    Request,
    run,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta

    from outlive.bundle.home import Home
    from outlive.domain.tasks import command
    from outlive.domain.tasks.queueing import Claim
    from outlive.keeper.plan import Surroundings


_MOST_NAMED = 3


def act(given: Given) -> int:
    """Launch a task, and print the task's id, its result or its JSON document."""
    home = context.here()
    request = request_of(home, given, _command(given))
    check_before_launch(home, given, request)
    return report(home, given, run(home, request, utc_now()))


def request_of(home: Home, given: Given, what: command.Command) -> Request:
    """Return the request to launch a task, made from options of `run` and `agent`."""
    return Request(
        command=what,
        cwd=context.directory(given.cwd),
        surroundings=_surroundings(home, given),
        description=given.description,
        session=given.session,
        session_project=context.project() if given.cwd else None,
        group=given.group,
        key=given.key,
        key_scope=given.key_scope or "succeeded",
        mode="foreground" if given.foreground else "background",
        timeout=given.timeout,
        idle_timeout=given.idle_timeout,
        queue_timeout=given.queue_timeout,
        retries=given.retries or 0,
        after=tuple(given.after),
        after_any=tuple(given.after_any),
        claims=_claims(given),
        max_output=DEFAULT_OUTPUT_CAP if given.max_output is None else given.max_output,
        notify=given.notify or "end",
        observe=given.observe or "auto",
        takes_input=bool(getattr(given, "stdin", False)),
        touches=tuple(given.touches),
        ports=tuple(getattr(given, "port", ())),
        again=bool(getattr(given, "again", False)),
        retain=DEFAULT_RETENTION if given.retain is None else given.retain,
    )


def check_before_launch(home: Home, given: Given, request: Request) -> None:
    """Raise `UserError` if a launch with `--wait` could never return.

    A launch inside a task never returns if the new task starts only after that task has ended. The function also prints
    a warning if this command runs in a sandbox that will kill the task.
    """
    if given.wait is not None and (given.after or given.after_any):
        from outlive.service.tasks.nested_wait import check_not_waiting_for_itself

        check_not_waiting_for_itself(home, request)
    if (maker := killing_sandbox()) is not None:
        sys.stderr.write(
            f"note: this runs in a sandbox of {maker}; when it ends, all processes in it are killed, the task too\n"
            "hint: launch the task from outside, or run `outlive` without the sandbox; `outlive doctor` tells more\n"
        )


def report(home: Home, given: Given, launched: Launched) -> int:
    """Print the id of a launched task, or the task's JSON document.

    If `--wait` was given and the task ends in time, the task's result is printed instead.
    """
    task = launched.task
    if given.key is not None:
        _say_what_the_key_did(home, launched, given.key)
    if launched.copies:
        names = ", ".join(launched.copies[:_MOST_NAMED])
        sys.stderr.write(
            f"note: already running: {names} (the same command in the same directory); {task} is another copy\n"
        )
    if not home.can_punch:
        sys.stderr.write(
            f"note: the file system of {home.path} cannot free space in the middle of a file, so Outlive\n"
            "ends the task when its output reaches the limit (--max-output)\n"
        )
    if given.wait is not None:
        return _answer_inline(home, launched, given.wait, given)
    if given.json:
        from outlive.cli.formatting import print_json
        from outlive.keeper.spawn import launch_adopter
        from outlive.service.tasks.read import find
        from outlive.service.tasks.task_document import task_document

        found = find(home, [task], launch_adopter)[0]
        print_json({"started": launched.started, **task_document(home, found, utc_now())})
    else:
        sys.stdout.write(task + "\n")
    return 0


def _say_what_the_key_did(home: Home, launched: Launched, key: str) -> None:
    """Print a note on stderr if a task with the given `--key` existed before."""
    from outlive.domain.text.sanitize import visible
    from outlive.keeper.spawn import launch_adopter
    from outlive.service.tasks.read import find

    found, shown = find(home, [launched.task], launch_adopter)[0], visible(key)
    if not launched.started:
        again = "" if found.state in LIVE else f"; `outlive retry {found.id}` starts it again"
        if found.has_asked:
            again = f"; `outlive agent --resume {found.id} -- ANSWER` answers the question of its agent"
        sys.stderr.write(
            f"note: nothing was started: task {found.id} has the key '{shown}' and is {found.state}{again}\n"
        )
    elif len(found.attempts) > 1:
        before = found.attempts[-2]
        sys.stderr.write(
            f"note: task {found.id} has the key '{shown}' and was started again as attempt {len(found.attempts)}: "
            f"attempt {before.number} was {before.state.replace('_', ' ')}\n"
        )


def _surroundings(home: Home, given: Given) -> Surroundings:
    """Return what the task inherits from this process, such as the environment."""
    return context.surroundings(home, check_environment(given.env), foreground=given.foreground, session=given.session)


def _claims(given: Given) -> tuple[Claim, ...]:
    if not given.slots and not given.lock:
        return ()
    from outlive.domain.tasks import queueing

    claims = (*map(queueing.slots, given.slots), *map(queueing.lock, given.lock))
    if len({claim.name for claim in claims}) < len(claims):
        raise UserError("two of --slots and --lock have the same name", "give each of them a different name")
    return claims


def _command(given: Given) -> command.Command:
    if given.rest is not None:
        if given.words:
            raise UserError(
                f"{given.words[0]!r} stands before `--`", "give the options first, then --, then the command"
            )
        return from_argv(given.rest)
    if len(given.words) > 1:
        raise UserError(
            "the command has several words and no `--` before them",
            f"outlive run -- {' '.join(map(quote, given.words))}, or one text for a shell: outlive run 'CMD ARG'",
        )
    return from_shell_text(given.words[0] if given.words else "")


def _answer_inline(home: Home, launched: Launched, patience: timedelta, given: Given) -> int:
    from outlive.cli.commands.result import print_result
    from outlive.cli.progress import Progress
    from outlive.keeper.spawn import launch_adopter
    from outlive.linux.reader_gone import has_departed, reader_of_output, watch_departures
    from outlive.service.tasks.read import find
    from outlive.service.tasks.wait import wait_for

    task = launched.task
    departures = watch_departures(ends=(reader_of_output(),))
    try:
        with Progress(home, find(home, [task], launch_adopter), wanted=not given.json) as progress:
            in_time = wait_for(
                home, [task], timeout=patience, adopter=launch_adopter, tick=progress.tick, departures=departures
            )
    except KeyboardInterrupt:
        if not given.json:
            print(task)  # the progress line, which showed the id, is erased, so print the id again
        print(f"interrupted; {_goes_on(given)}: outlive wait {task}, or outlive cancel {task}", file=sys.stderr)
        raise
    if not in_time and has_departed(departures):
        return 4
    if in_time:
        found = find(home, [task], launch_adopter)[0]
        return print_result(home, found, context.session(given.session), given, {"started": launched.started})
    from outlive.cli.formatting import print_json, tail_lines
    from outlive.domain.text.units import show_duration
    from outlive.service.tasks.read import output_view
    from outlive.service.tasks.task_document import task_document

    found = find(home, [task], launch_adopter)[0]
    if given.json:
        print_json({"started": launched.started, **task_document(home, found, utc_now())})
    else:
        print(task)
        for line in tail_lines(output_view(home, found)):
            print(line, file=sys.stderr)
        print(
            f"still {found.state} after {show_duration(patience)}; {_goes_on(given)}: outlive wait {task}",
            file=sys.stderr,
        )
    return 4


def _goes_on(given: Given) -> str:
    """Return a phrase that says how long the task runs after this command has exited."""
    if given.foreground:
        return "the task goes on until this terminal or client ends"
    return "the task goes on in the background"


COMMAND = Command(
    name="run",
    summary="launch a task, and print its id once the task runs or is queued",
    usage="outlive run [options] -- CMD...    or    outlive run [options] 'shell text'",
    has_command=True,
    takes="command",
    details=(
        "The task has your rights, limits and environment, but no input and no terminal. It continues when this\n"
        "session, its terminal or its client ends."
    ),
    options=(
        option("--cwd DIR", "run the command in this directory (default: the current directory)", takes="directory"),
        option("--env K=V", "set a variable for the command", repeat=True),
        option("--description TEXT", "describe the task, in at most 10,000 characters"),
        option("--session ID", "report the ending to this session (default: the current session)"),
        option(
            "--group NAME",
            "put the task into this group; the tasks of a group can be listed, awaited and cancelled together",
            takes="group",
        ),
        option(
            "--key KEY",
            "start nothing if a task with this key runs, waits or has succeeded; "
            "if the task ended otherwise, retry the task, but refuse if its agent asked a question",
        ),
        option(
            "--key-scope SCOPE",
            "choose which ended tasks with the key are not retried (default succeeded)",
            choices=("succeeded", "ended"),
        ),
        option("--again", "start the command although the same server or watcher runs in this directory already"),
        option("--foreground", "end the task when the terminal or the client that launched it ends"),
        option("--timeout D", "end the task after this time", parse_duration),
        option(
            "--idle-timeout D",
            "end the task if it prints nothing and hardly uses the processor for this time",
            parse_duration,
        ),
        option("--after ID", "begin when this task has succeeded", repeat=True, takes="task"),
        option("--after-any ID", "begin when this task has ended in any way", repeat=True, takes="task"),
        option("--slots NAME=N", "run at most N tasks with this NAME at a time", repeat=True),
        option("--lock NAME", "run only one task with this NAME at a time", repeat=True),
        option("--queue-timeout D", "end the task if it has waited in the queue for this time", parse_duration),
        option("--retries N", "retry the task up to N times if it fails", whole_number),
        option(
            "--wait D", "wait at most this long, and print the result if the task ends in this time", parse_duration
        ),
        option("--max-output SIZE", "keep at most this much output (default 64M)", parse_size),
        option(
            "--notify WHEN",
            "choose which endings are reported (default end); "
            "`output` delays the report of a success without output until the next turn",
            choices=NOTIFY,
        ),
        option(
            "--observe HOW",
            "choose how to observe what the task touches (default auto)",
            choices=("auto", "syscalls", "watch", "compare", "off"),
        ),
        option("--stdin", "let `outlive send` send input to the task; without this option, the task has no input"),
        option(
            "--touches PATH",
            "announce that the task will change PATH; other sessions are warned, and the repository is compared",
            repeat=True,
        ),
        option(
            "--port NAME",
            "lease a free port; the command gets it as $PORT_NAME, {port:NAME} and, for the first one, $PORT",
            repeat=True,
        ),
        option("--retain D", "keep the task's record for this time after the end (default 7d)", parse_duration),
    ),
    examples=(
        ("outlive run -- pytest -q", "run the tests, and print an id such as t7k2m9q4"),
        (
            "outlive run 'make && make install' --timeout 20m",
            "run a line of shell, and end it after 20 minutes",
        ),
        (
            "outlive run --slots gpu=2 --retries 3 -- python train.py",
            "run at most two tasks with the name gpu at a time, and retry this task up to three times",
        ),
        (
            "outlive run --after t7k2 -- ./deploy",
            "begin when t7k2 has succeeded; if t7k2 fails, this task is cancelled",
        ),
        (
            "outlive run --port web -- vite --strictPort --port {port:web}",
            "start a server on a port that no other worktree and no other program is given",
        ),
        (
            "outlive run --wait 90s -- npm test",
            "print the result if the task ends within 90 s, and the id of the task otherwise",
        ),
    ),
)
