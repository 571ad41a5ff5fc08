"""The removal of an agent's unchanged worktree at the end of the task."""

from __future__ import annotations

from outlive.bundle.agent_files import read_start
from outlive.domain.errors import OutliveError
from outlive.domain.timestamps import UTC, datetime
from outlive.keeper.agents.next_start import first_start, known_at_start
from outlive.keeper.agents.worktree import has_changed, remove
from outlive.ledger.sqlite import SqliteLedger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.domain.tasks.settlement import Settlement
    from outlive.domain.tasks.task import Launch
    from outlive.keeper.plan import Plan


def end_worktree(plan: Plan, settlement: Settlement) -> Settlement:
    """Remove the agent's worktree if nothing in it has changed.

    The worktree is not removed while processes of the task are still running, or while another task works in it. If
    the worktree remains, the returned settlement names it.

    An attempt that never began may have a changed worktree, too, because an earlier attempt may have worked in the
    worktree.
    """
    request = plan.launch.agent
    if request is None or request.worktree is None:
        return settlement
    worktree, environ = request.worktree, plan.surroundings.environ
    is_needed = settlement.left_running or has_changed(worktree, environ) or is_in_use(plan.home, plan.launch)
    if not is_needed and remove(worktree, environ):
        return settlement
    known = settlement.agent or known_at_start(request, read_start(plan.files) or first_start(request))
    return settlement.but(agent=known.but(worktree=worktree.path, branch=worktree.branch))


def is_in_use(home: Home, launch: Launch) -> bool:
    """Return whether another running or waiting task uses the agent's worktree.

    Two tasks have one worktree if one of them continues the session of the other. Returns True if the ledger cannot be
    read, because the worktree may then be in use.
    """
    if launch.agent is None or launch.agent.worktree is None:
        return False
    path = launch.agent.worktree.path
    try:
        with SqliteLedger(home.ledger, datetime.now(UTC), create=False) as ledger:
            others = [each.launch.agent for each in ledger.unsettled() if each.id != launch.id]
    except OutliveError:
        return True
    return any(one is not None and one.worktree is not None and one.worktree.path == path for one in others)
