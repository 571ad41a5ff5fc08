"""Handing a held attempt to its keeper: the last step of a launch, and of every further attempt."""

from __future__ import annotations

import os
import time

from outlive.bundle.attempt import take
from outlive.bundle.kernel import boot_id, pid_namespace
from outlive.domain.errors import NotStarted, Unavailable, hint_after
from outlive.domain.task import Attempt
from outlive.keeper.launching import stand_by
from outlive.keeper.plan import Plan
from outlive.service.origin import depth_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from outlive.bundle.attempt import AttemptFiles, Held
    from outlive.bundle.home import Home
    from outlive.domain.task import Launch
    from outlive.keeper.launching import NewKeeper
    from outlive.keeper.plan import Surroundings
    from outlive.ledger.sqlite import SqliteLedger

_BEGINNING_TAKES_AT_MOST = 10.0


def open_ledger(home: Home, now: datetime) -> SqliteLedger:
    """The ledger. Its code is loaded only now: a launch does that while the new keeper prepares itself."""
    from outlive.ledger.sqlite import SqliteLedger  # noqa: PLC0415

    return SqliteLedger(home.ledger, now)


def new_attempt(launch: Launch, number: int, now: datetime) -> Attempt:
    """An attempt of this boot and among these processes, whose keeper waits for the go."""
    return Attempt(
        number=number,
        state="queued" if launch.is_queued else "running",
        created_at=now,
        started_at=None if launch.is_queued else now,
        boot=boot_id(),
        pid_namespace=pid_namespace(),
    )


def prepare(home: Home, launch: Launch, files: AttemptFiles, held: Held, surroundings: Surroundings) -> NewKeeper:
    """A keeper for an attempt that is about to be recorded."""
    depth = depth_of(surroundings.environ) + 1
    environ = {**surroundings.environ, "OUTLIVE_TASK": launch.id, "OUTLIVE_DEPTH": str(depth)}
    if launch.session is not None:
        environ["OUTLIVE_SESSION"] = launch.session
    around = surroundings.but(environ=environ)
    plan = Plan(home=home, launch=launch, files=files, surroundings=around, retries_left=launch.retries)
    try:
        if not launch.is_queued:
            return stand_by(plan, held)
        from outlive.service.queue import wait_then_keep  # noqa: PLC0415 - the usual launch waits for nobody

        return stand_by(plan, held, wait_then_keep)
    except OSError as error:
        held.close()
        raise Unavailable(
            f"no process can be made: {error.strerror}", hint_after(error, "nothing was started")
        ) from error


def hand_over(home: Home, launch: Launch, files: AttemptFiles, keeper: NewKeeper, now: datetime) -> str:
    """Let the keeper take it from here; the task's id once the command is known to have begun."""
    if keeper.begin() in ("running", "queued"):
        return launch.id
    # The keeper said, or its silence says, that nothing runs (any more).
    _wait_for_beginning(files)
    from outlive.service.reconcile import reconcile  # noqa: PLC0415 - the usual launch has no use for it

    reconcile(home, now, launch.id)
    with open_ledger(home, now) as ledger:
        task = ledger.task(launch.id)
    attempt = task.current if task else None
    if attempt is not None and attempt.reason == "dependency_failed":
        raise NotStarted(
            f"task {launch.id} was not started: {attempt.detail}",
            "it is recorded as cancelled; `--after-any` would run it all the same",
            launch.id,
        )
    if attempt is not None and attempt.reason == "not_started":
        name = launch.cwd if "be entered" in (attempt.detail or "") else launch.argv[0]
        raise NotStarted(
            f"task {launch.id} could not be started: {attempt.detail}: {name}",
            f"it is recorded as failed; `outlive show {launch.id}` tells more",
            launch.id,
        )
    if attempt is None or attempt.state == "lost":
        raise Unavailable(
            f"the keeper of task {launch.id} died before it could confirm the start",
            f"`outlive show {launch.id}` tells what is known; run it again",
        )
    return launch.id


def _wait_for_beginning(files: AttemptFiles) -> None:
    """Without its keeper an attempt begins at once or never: until it is clear which.

    The end of a dying process's pipe is seen before its locks are free, so both are looked at.
    """
    until = time.monotonic() + _BEGINNING_TAKES_AT_MOST
    while time.monotonic() < until and (files.read_slot("process") or {}).get("started") != "yes":
        held = [take(files, which) for which in ("lock", "control")]
        for fd in held:
            if fd is not None:
                os.close(fd)
        if None not in held:
            return
        time.sleep(0.002)
