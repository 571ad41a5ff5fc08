"""The next attempt of a task, prepared by the keeper of the previous attempt."""

from __future__ import annotations

from outlive.bundle.attempt import AttemptFiles, create_attempt, discard_bundle
from outlive.bundle.ports import keep_ports
from outlive.domain.tasks.retry_policy import is_worth_retrying, retry_delay
from outlive.domain.tasks.task import Attempt
from outlive.keeper import foreground_owner
from outlive.linux.syscalls import boot_id, pid_namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta

    from outlive.bundle.attempt import HeldFiles
    from outlive.domain.tasks.settlement import Settlement
    from outlive.keeper.plan import Plan


class NextAttempt:
    """The locked files of the next attempt, and the row that will be written for it."""

    def __init__(self, plan: Plan, held: HeldFiles, attempt: Attempt, delay_s: float) -> None:
        self.plan = plan
        self.held = held
        self.attempt = attempt
        self.delay_s = delay_s

    def discard(self) -> None:
        """Close and delete the files, because the row of the attempt was not written."""
        self.held.close()
        discard_bundle(self.plan.files.path)


def prepare_next_attempt(plan: Plan, before: HeldFiles, settlement: Settlement) -> NextAttempt | None:
    """Create and lock the files of the next attempt, before its row is written.

    `before` are the files of the attempt that ends. The next attempt keeps its leased ports. Returns None if the task
    is not retried, or if the files cannot be created.
    """
    is_wanted = plan.retries_left > 0 and is_worth_retrying(settlement.verdict, settlement.agent, plan.launch.retries)
    if not is_wanted and not _has_forgotten_session(plan, settlement):
        return None
    files = AttemptFiles(plan.files.bundle, plan.files.number + 1)
    delay = retry_delay(plan.launch.automatic_attempts - plan.retries_left)
    try:
        discard_bundle(files.path)  # an earlier keeper was killed in this function, and has left files without a row
        held = create_attempt(files, in_line=plan.launch.is_queued)
        keep_ports(plan.files, before, files, held)
    except OSError:
        return None
    row = _row(plan, files, settlement, delay)
    if row is None:
        held.close()
        discard_bundle(files.path)
        return None
    if plan.surroundings.owner is not None:
        foreground_owner.remember(held.record, plan.surroundings.owner)
    following = plan.but(files=files, retries_left=plan.retries_left - is_wanted, queue_until=None)
    return NextAttempt(following, held, row, delay.total_seconds())


def _has_forgotten_session(plan: Plan, settlement: Settlement) -> bool:
    """Return whether an agent's client did not find its session."""
    if settlement.agent is None:
        return False
    from outlive.keeper.agents.next_start import has_forgotten_session  # noqa: PLC0415 - only agent tasks need this import

    return has_forgotten_session(plan.files, settlement.agent)


def _row(plan: Plan, files: AttemptFiles, settlement: Settlement, delay: timedelta) -> Attempt | None:
    """Return the row of the next attempt.

    Returns None if the files for an agent's attempt cannot be written.
    """
    row = Attempt(
        number=files.number,
        state="queued",
        created_at=settlement.settled_at,
        boot=boot_id(),
        pid_namespace=pid_namespace(),
        not_before=settlement.settled_at + delay,
        automatic=True,
    )
    if settlement.agent is None:
        return row
    from outlive.keeper.agents.next_start import begin_next  # noqa: PLC0415 - only agent tasks need this import

    try:
        return begin_next(plan, files, settlement.agent, row)
    except OSError:
        return None
