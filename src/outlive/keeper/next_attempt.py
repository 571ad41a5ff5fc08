"""The next attempt of a task, prepared by the keeper of the previous attempt."""

from __future__ import annotations

from outlive.bundle.attempt import AttemptFiles, create_attempt, discard_bundle
from outlive.domain.tasks.retry_policy import is_worth_retrying, retry_delay
from outlive.domain.tasks.task import Attempt
from outlive.keeper import foreground_owner
from outlive.linux.syscalls import boot_id, pid_namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
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
        """Close and delete the files, because the attempt was not recorded after all."""
        self.held.close()
        discard_bundle(self.plan.files.path)


def prepare_next_attempt(plan: Plan, settlement: Settlement) -> NextAttempt | None:
    """Create and lock the next attempt's files. Must run before its row is written.

    Returns None if the task is not retried, or if the files cannot be created.
    """
    if not is_worth_retrying(settlement.verdict):
        return None
    files = AttemptFiles(plan.files.bundle, plan.files.number + 1)
    delay = retry_delay(plan.launch.retries - plan.retries_left)
    try:
        discard_bundle(files.path)  # a keeper that was killed in this function has left files without a row
        held = create_attempt(files, in_line=plan.launch.is_queued)
    except OSError:
        return None
    if plan.surroundings.owner is not None:
        foreground_owner.remember(held.record, plan.surroundings.owner)
    attempt = Attempt(
        number=files.number,
        state="queued",
        created_at=settlement.settled_at,
        boot=boot_id(),
        pid_namespace=pid_namespace(),
        not_before=settlement.settled_at + delay,
        automatic=True,
    )
    following = plan.but(files=files, retries_left=plan.retries_left - 1, queue_until=None)
    return NextAttempt(following, held, attempt, delay.total_seconds())
