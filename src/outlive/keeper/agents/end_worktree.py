"""The removal of an agent's unchanged worktree at the end of the task."""

from __future__ import annotations

from outlive.bundle.agent_files import read_start
from outlive.keeper.agents.next_start import first_start, known_at_start
from outlive.keeper.agents.worktree import has_changed, remove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.domain.tasks.settlement import Settlement
    from outlive.keeper.plan import Plan


def end_worktree(plan: Plan, settlement: Settlement) -> Settlement:
    """Remove the agent's worktree if nothing in it has changed.

    The worktree is not removed while processes of the task are still running. If the worktree remains, the returned
    settlement names it.

    An attempt that never began may have a changed worktree, too, because an earlier attempt may have worked in the
    worktree.
    """
    request = plan.launch.agent
    if request is None or request.worktree is None:
        return settlement
    worktree, environ = request.worktree, plan.surroundings.environ
    if not settlement.left_running and not has_changed(worktree, environ) and remove(worktree, environ):
        return settlement
    known = settlement.agent or known_at_start(request, read_start(plan.files) or first_start(request))
    return settlement.but(agent=known.but(worktree=worktree.path, branch=worktree.branch))
