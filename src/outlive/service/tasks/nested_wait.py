"""The check whether a launch with `--wait` would wait for its own end."""

from __future__ import annotations

from outlive.domain.errors import UserError
from outlive.service.clock import utc_now
from outlive.service.tasks.find import resolve
from outlive.service.tasks.launch_context import parent_of
from outlive.service.tasks.start_attempt import open_ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.service.tasks.run import Request


def check_not_waiting_for_itself(home: Home, request: Request) -> None:
    """Raise `UserError` if `--wait` inside a task would wait for that task's end."""
    inside = parent_of(request.surroundings.environ)
    with open_ledger(home, utc_now()) as ledger:
        wanted = {resolve(ledger, one).id for one in (*request.after, *request.after_any)}
        while inside is not None:
            if inside in wanted:
                raise UserError(
                    f"this process runs inside task {inside}, so that task would wait for itself",
                    "leave out --wait; the new task begins when that task has ended",
                )
            above = ledger.task(inside)
            inside = above.launch.parent if above else None
