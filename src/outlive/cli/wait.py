"""`outlive wait`: block, at no cost, until tasks have ended."""

from __future__ import annotations

import resource
import signal
import sys

from outlive.cli import place
from outlive.cli.options import Command, Given, Option
from outlive.cli.progress import Progress
from outlive.cli.render import ending_line, print_json
from outlive.domain.errors import UserError
from outlive.domain.lifecycle import LIVE
from outlive.domain.quantity import parse_duration
from outlive.domain.text import shown
from outlive.keeper.launching import launch_adopter
from outlive.ledger.contract import Selection
from outlive.service.clock import utc_now
from outlive.service.inbox import result_was_read
from outlive.service.until import wait_until
from outlive.service.view import find, select, select_group, task_document
from outlive.service.wait import wait_for_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.domain.task import Task


_SLACK = 0.5  # the wait itself ends in time; this is for what it cannot interrupt


def act(given: Given) -> int:
    """Wait, then print how they ended."""
    home = place.here()
    tasks = _meant(home, given)
    if given.until is not None:
        return _wait_until(home, tasks, given)
    _allow_many_files()
    with Progress(home, tasks, wanted=not given.json) as progress:
        in_time, ids = _wait_for_all(home, tasks, given, progress)
    now = utc_now()
    after = find(home, ids, launch_adopter)
    ended = [task for task in after if task.current.settled_at is not None]
    if not given.no_ack:
        for task in ended:
            result_was_read(home, task, place.session(given.session), place.project())
    if given.json:
        print_json({"tasks": [task_document(home, task, now) for task in after], "timed_out": not in_time})
    else:
        for task in ended:
            print(ending_line(task, now))
        if not ids:
            print("nothing is running")
        if not in_time:
            left = [task.id for task in after if task.current.settled_at is None]
            print(f"still running: {', '.join(left)}", file=sys.stderr)
    if not in_time:
        return 4
    return 0 if all(task.state == "succeeded" for task in ended) else 1


def _meant(home: Home, given: Given) -> list[Task]:
    if given.words:
        return find(home, given.words, launch_adopter)
    if given.group is not None:
        # All its members: that it has ended is a question about them, and one may have failed already.
        members = Selection(project=place.project(), group=given.group, session=given.session)
        return select_group(home, members, launch_adopter)
    return select(home, place.session_or_project(home, given.session).but(states=LIVE), launch_adopter)


def _wait_for_all(home: Home, tasks: list[Task], given: Given, progress: Progress) -> tuple[bool, list[str]]:
    def members() -> list[Task]:
        found = _meant(home, given)
        progress.add(found)
        return found

    return wait_for_all(
        home,
        tasks,
        None if given.group is None else members,
        any_one=given.any,
        timeout=given.timeout,
        adopter=launch_adopter,
        on_end=progress.remove,
        tick=progress.tick,
    )


def _wait_until(home: Home, tasks: list[Task], given: Given) -> int:
    if len(tasks) != 1:
        raise UserError("--until looks at the output of one task", "outlive wait ID --until PATTERN")
    line = _search(home, tasks[0], given)
    after = find(home, [tasks[0].id], launch_adopter)[0]
    timed_out = line is None and after.current.settled_at is None
    if given.json:
        print_json(
            {
                "tasks": [task_document(home, after, utc_now())],
                "matched": None if line is None else shown(line),
                "timed_out": timed_out,
            }
        )
    elif line is not None:
        print(shown(line))
    else:
        what = "still running" if timed_out else f"ended ({after.state})"
        print(f"{after.id} {what}, and no line matches {given.until!r}", file=sys.stderr)
    return 0 if line is not None else 4 if timed_out else 1


def _search(home: Home, task: Task, given: Given) -> str | None:
    """The line, or None if the time is up; also for a pattern that takes ages to match a single line."""
    if given.timeout is not None:
        signal.signal(signal.SIGALRM, _time_is_up)
        signal.setitimer(signal.ITIMER_REAL, given.timeout.total_seconds() + _SLACK)
    try:
        return wait_until(home, task, given.until, timeout=given.timeout, adopter=launch_adopter)
    except TimeoutError:
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _time_is_up(*_: object) -> None:
    raise TimeoutError


def _allow_many_files() -> None:
    """One descriptor per task that is waited for: take what the system allows us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            return


COMMAND = Command(
    name="wait",
    summary="block until tasks have ended",
    usage="outlive wait [ID...] [options]",
    takes="task",
    details="Without ids: every running task of this session, or of this project outside of a session.",
    options=(
        Option(name="--any", help="until one of them has ended"),
        Option(
            name="--timeout",
            metavar="D",
            help="give up after this long (exit code 4)",
            parse=parse_duration,
        ),
        Option(
            name="--until",
            metavar="PATTERN",
            help="until a line of output matches this regular expression",
        ),
        Option(name="--group", metavar="NAME", takes="group", help="the running tasks of this group"),
        Option(name="--session", metavar="ID", help="the running tasks of this session"),
        Option(name="--no-ack", help="do not count this as the session having been told"),
    ),
    examples=(
        ("outlive wait t7k2 t8m3", "exit code 0 if both succeeded, 1 otherwise"),
        ("outlive wait t7k2 --until 'listening on' --timeout 30s", "until the server is up"),
    ),
    act=act,
)
