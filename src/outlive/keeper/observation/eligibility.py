"""The reasons why a command's system calls are not observed."""

from __future__ import annotations

from outlive.linux.syscalls import has_limited_cpu_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.keeper.plan import Plan

CANNOT = "system calls cannot be observed here, or are observed by somebody else"
_INSISTS = "(--observe syscalls insists)"
_LIMITED = f"its CPU time is limited, and looking at its system calls would count against that of its keeper {_INSISTS}"
_MISSES_PRIVILEGES = f"it may need privileges that observing would take away {_INSISTS}"
_MISSES_SUPERVISING = f"it may supervise system calls itself, which it cannot while we do {_INSISTS}"


def reason_not_to_observe(plan: Plan, *, keeps_privileges: bool) -> str | None:
    """Return why system calls are not observed. None if they are."""
    how = plan.launch.observe
    if how in ("watch", "compare"):
        return "it was asked not to look at its system calls"
    if how == "auto" and (missed := _would_miss(plan, keeps_privileges=keeps_privileges)) is not None:
        return missed
    return None if _can_observe(plan.home, keep_privileges=keeps_privileges) else CANNOT


def _would_miss(plan: Plan, *, keeps_privileges: bool) -> str | None:
    """Return what the command would lose by being observed. None for nothing.

    A limit of CPU time would also kill keeper and witness, and then the observed calls would fail.
    """
    if has_limited_cpu_time():
        return _LIMITED
    from outlive.keeper.observation.known_conflicts import met_before  # noqa: PLC0415 - not every command is observed
    from outlive.observe.seccomp.tracer_conflicts import would_miss_supervising  # noqa: PLC0415
    from outlive.observe.shell.program_scan import ProgramScan  # noqa: PLC0415

    foreseen = ProgramScan(plan.launch.argv, plan.launch.cwd, plan.surroundings.environ)
    if not keeps_privileges:
        from outlive.observe.seccomp.privilege_loss import would_miss_privileges  # noqa: PLC0415 - root loses no privileges

        names, is_known = met_before(plan, "gaining")
        if is_known or would_miss_privileges(foreseen, names):
            return _MISSES_PRIVILEGES
    names, is_known = met_before(plan, "supervising")
    return _MISSES_SUPERVISING if is_known or would_miss_supervising(foreseen, names) else None


def _can_observe(home: Home, *, keep_privileges: bool) -> bool:
    """Return whether system calls can be observed on this machine, cached per boot."""
    from outlive.observe.seccomp.self_test_cache import answer_known  # noqa: PLC0415 - not every command is observed

    known = answer_known(home, keep_privileges=keep_privileges)
    if known is not None:
        return known
    from outlive.observe.seccomp.self_test import can_observe  # noqa: PLC0415 - once per boot

    return can_observe(home, keep_privileges=keep_privileges)
