"""The next attempt of a task that is tried again by itself, made by the keeper of the one before."""

from __future__ import annotations

from outlive.bundle.attempt import AttemptFiles, create_attempt, discard_bundle
from outlive.bundle.kernel import boot_id, pid_namespace
from outlive.domain.retrying import is_worth_retrying, retry_delay
from outlive.domain.task import Attempt
from outlive.keeper import owner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.attempt import Held
    from outlive.domain.settlement import Settlement
    from outlive.keeper.plan import Plan


class Again:
    """The files of the next attempt, held, and the attempt that the settlement will record."""

    def __init__(self, plan: Plan, held: Held, attempt: Attempt, delay_s: float) -> None:
        self.plan = plan
        self.held = held
        self.attempt = attempt
        self.delay_s = delay_s

    def discard(self) -> None:
        """It was not recorded after all."""
        self.held.close()
        discard_bundle(self.plan.files.path)


def prepare_again(plan: Plan, settlement: Settlement) -> Again | None:
    """Files and lock of the next attempt, before its row; None if there is none, or they cannot be made."""
    if not is_worth_retrying(settlement.verdict):
        return None
    files = AttemptFiles(plan.files.bundle, plan.files.number + 1)
    delay = retry_delay(plan.launch.retries - plan.retries_left)
    try:
        discard_bundle(files.path)  # what a keeper left that was killed here; it has no row
        held = create_attempt(files, in_line=plan.launch.is_queued)
    except OSError:
        return None
    if plan.surroundings.owner is not None:
        owner.remember(held.record, plan.surroundings.owner)
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
    return Again(following, held, attempt, delay.total_seconds())
