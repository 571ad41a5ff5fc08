"""`outlive wait --until`: wait for a line of output, or until a task is ready."""

from __future__ import annotations

import os
import signal
import sys

from outlive.cli.formatting import print_json, tail_lines
from outlive.domain.errors import UserError
from outlive.domain.text.sanitize import shown
from outlive.domain.text.units import show_duration
from outlive.keeper.spawn import launch_adopter
from outlive.linux.reader_gone import has_departed
from outlive.service.clock import utc_now
from outlive.service.tasks.read import find, output_view
from outlive.service.tasks.wait_for_condition import condition_of, wait_for_condition
from outlive.service.tasks.wait_for_line import wait_until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.cli.parser import Given
    from outlive.domain.tasks.readiness import ReadyCondition
    from outlive.domain.tasks.task import Task
    from outlive.keeper.readiness.wait_until_ready import Progress

_STILL_RUNNING = 4
_SLACK = 0.5  # the wait has its own timeout; this later alarm ends a pattern match that takes too long


def wait_until_text(home: Home, tasks: list[Task], given: Given, departures: int) -> int:
    """Wait for what `--until` describes. Print it, and return the exit code."""
    if len(tasks) != 1:
        raise UserError("--until needs exactly one task", "outlive wait ID --until PATTERN")
    condition = condition_of(given.until)
    if condition is None:
        return _wait_for_line(home, tasks[0], given.until, given, departures)
    if condition.kind == "log":
        return _wait_for_line(home, tasks[0], condition.value, given, departures)
    return _wait_until_ready(home, tasks[0], condition, given, departures)


def _wait_for_line(home: Home, task: Task, pattern: str, given: Given, departures: int) -> int:
    line = _search(home, task, pattern, given, departures)
    if line is None and has_departed(departures):
        return _STILL_RUNNING
    return _report(home, task, line, f"no line matches {pattern!r}", given)


def _wait_until_ready(home: Home, task: Task, condition: ReadyCondition, given: Given, departures: int) -> int:
    def tell(progress: Progress) -> None:
        if not given.json:
            print(shown(f"{task.id}: {progress.text}"), file=sys.stderr)

    progress = wait_for_condition(
        home,
        task,
        condition,
        environ=os.environ,
        timeout=given.timeout,
        adopter=launch_adopter,
        tell=tell,
        departures=departures,
    )
    if progress.kind == "timed_out" and has_departed(departures):
        return _STILL_RUNNING
    if progress.kind == "ready":
        return _report(home, task, progress.text, "", given)
    if progress.kind == "elsewhere":
        return _report(home, task, None, progress.text, given, is_elsewhere=True)
    return _report(home, task, None, f"does not fulfil {progress.text}", given)


def _report(
    home: Home, task: Task, found: str | None, missing: str, given: Given, *, is_elsewhere: bool = False
) -> int:
    """Print what was found or what is missing. Return the exit code."""
    after = find(home, [task.id], launch_adopter)[0]
    is_live = after.current.settled_at is None
    timed_out = found is None and is_live and not is_elsewhere
    if given.json:
        from outlive.service.tasks.task_document import task_document

        document = {"tasks": [task_document(home, after, utc_now())], "timed_out": timed_out}
        document["matched"] = None if found is None else shown(found)
        document["missing"] = None if found is not None else shown(missing)
        print_json(document)
    elif found is not None:
        print(shown(found))
    else:
        _print_missing(home, after, missing, given, is_elsewhere=is_elsewhere)
    return 0 if found is not None else _STILL_RUNNING if timed_out else 1


def _print_missing(home: Home, after: Task, missing: str, given: Given, *, is_elsewhere: bool) -> None:
    """Print the end of the output, and then what is missing."""
    for last in tail_lines(output_view(home, after)):
        print(last, file=sys.stderr)
    if is_elsewhere:
        print(shown(f"{after.id} {missing}"), file=sys.stderr)
        print(
            f"hint: the task goes on; use the other port, or end the task: outlive cancel {after.id}", file=sys.stderr
        )
    elif after.current.settled_at is None:
        passed = "" if given.timeout is None else f" after {show_duration(given.timeout)}"
        print(shown(f"{after.id} is still running{passed}, and {missing}"), file=sys.stderr)
        print(f"the task goes on; wait again, or end the task: outlive cancel {after.id}", file=sys.stderr)
    else:
        print(shown(f"{after.id} ended ({after.state}), and {missing}"), file=sys.stderr)


def _search(home: Home, task: Task, pattern: str, given: Given, departures: int) -> str | None:
    """Return the first line of the task's output that matches the pattern.

    Returns None if the task ends or the time is up before a line matches.
    """
    if given.timeout is not None:
        signal.signal(signal.SIGALRM, _time_is_up)
        signal.setitimer(signal.ITIMER_REAL, given.timeout.total_seconds() + _SLACK)
    try:
        return wait_until(home, task, pattern, timeout=given.timeout, adopter=launch_adopter, departures=departures)
    except TimeoutError:
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _time_is_up(*_: object) -> None:
    raise TimeoutError
