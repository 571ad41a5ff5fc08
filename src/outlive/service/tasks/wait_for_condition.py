"""Waiting until a running task is ready: it listens, answers, or has made a file."""

from __future__ import annotations

import os
import time
from functools import partial

from outlive.bundle.attempt import has_writer
from outlive.bundle.ports import read_ports
from outlive.bundle.record import open_record
from outlive.domain.tasks.readiness import parse_ready, resolve_ports
from outlive.keeper import process_tree
from outlive.keeper.readiness.wait_until_ready import Watched, wait_until_ready
from outlive.service.tasks.read import files_of, find
from outlive.service.tasks.wait import open_done_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import timedelta

    from outlive.bundle.attempt import AttemptFiles
    from outlive.bundle.home import Home
    from outlive.domain.tasks.readiness import ReadyCondition
    from outlive.domain.tasks.task import Task
    from outlive.keeper.readiness.wait_until_ready import Progress
    from outlive.service.maintenance.reconcile import Adopter

# `notify` is missing here: the command of the task must have been started with the socket.
_PREFIXES = ("port:", "http:", "file:", "cmd:", "log:")


def condition_of(text: str) -> ReadyCondition | None:
    """Return the condition that a text describes, or None for a regular expression.

    A condition has one of the prefixes `port:`, `http:`, `file:`, `cmd:` and `log:`. Raises `UserError` if the text
    after the prefix is not valid.
    """
    return parse_ready(text) if text.startswith(_PREFIXES) else None


def wait_for_condition(
    home: Home,
    task: Task,
    condition: ReadyCondition,
    *,
    environ: Mapping[str, str],
    timeout: timedelta | None,
    adopter: Adopter | None,
    tell: Callable[[Progress], None],
    departures: int | None = None,
) -> Progress:
    """Block until a condition holds for a task, and return how the wait ended.

    If the attempt ends and an automatic retry follows, the wait goes on with the next attempt. `environ` is the
    environment of a command in the condition, which runs in the directory of the task.
    """
    until = None if timeout is None else time.monotonic() + timeout.total_seconds()
    while True:
        files = files_of(home, task)
        wanted = resolve_ports(condition, read_ports(files))
        done = open_done_of(home, task)
        try:
            watched = Watched(
                files=files,
                pids=partial(pids_of, home, task, files),
                cwd=task.launch.cwd,
                environ=dict(environ),
                # poll() reports nothing if the last writer closed the FIFO before this process opened it.
                ended=done if has_writer(done) else None,
                has_ended=partial(_has_ended, home, files, adopter),
            )
            progress = wait_until_ready(watched, [wanted], until=until, tell=tell, departures=departures)
        finally:
            os.close(done)
        task = find(home, [task.id], adopter)[0]
        if progress.kind != "ended" or task.current.number == files.number or not task.current.automatic:
            return progress


def _has_ended(home: Home, files: AttemptFiles, adopter: Adopter | None) -> bool:
    task = find(home, [os.path.basename(files.bundle)], adopter)[0]
    return task.attempts[files.number - 1].settled_at is not None


def pids_of(home: Home, task: Task, files: AttemptFiles) -> list[int]:
    """Return the pids of a task's living processes, for a caller outside of the task."""

    def is_foreign(pid: int) -> bool:
        return process_tree.keeps_another_task(pid) or process_tree.runs_another_task(pid, home, task.id)

    try:
        record_fd = open_record(files.record)
    except OSError:
        return []
    try:
        return [member.pid for member in process_tree.remnants(task.id, record_fd, is_foreign)]
    finally:
        os.close(record_fd)
