"""The reasons why a command's system calls are not observed."""

from __future__ import annotations

from outlive.linux.syscalls import has_limited_cpu_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.keeper.plan import Plan

CANNOT = "system calls cannot be observed here, or another program observes them"
_INSISTS = "(to observe it anyway: --observe syscalls)"
_LIMITED = f"its CPU time is limited, and observing it would use up the limit of its keeper {_INSISTS}"
_MISSES_PRIVILEGES = f"it may need privileges that it would not get while it is observed {_INSISTS}"
_MISSES_SUPERVISING = f"it may observe system calls itself, which fails while Outlive observes them {_INSISTS}"


def reason_not_to_observe(plan: Plan, *, keeps_privileges: bool) -> str | None:
    """Return why system calls are not observed, or None if they are observed.

    `keeps_privileges` means that observed programs can still gain privileges when they are executed.
    """
    how = plan.launch.observe
    if how in ("watch", "compare"):
        return f"system calls are not observed with --observe {how}"
    if how == "auto" and (missed := _would_miss(plan, keeps_privileges=keeps_privileges)) is not None:
        return missed
    return None if _can_observe(plan.home, keep_privileges=keeps_privileges) else CANNOT


def _would_miss(plan: Plan, *, keeps_privileges: bool) -> str | None:
    """Return how the observation would harm the command, or None if it would not.

    A limit of CPU time applies to the keeper and the witness, too. If the limit killed them, the observed calls would
    fail. `keeps_privileges` means that observed programs can still gain privileges when they are executed.
    """
    if has_limited_cpu_time():
        return _LIMITED
    from outlive.keeper.observation.known_conflicts import met_before  # noqa: PLC0415 - only observed commands need this import
    from outlive.observe.seccomp.tracer_conflicts import would_miss_supervising  # noqa: PLC0415
    from outlive.observe.shell.program_scan import ProgramScan  # noqa: PLC0415

    foreseen = ProgramScan(plan.launch.argv, plan.launch.cwd, plan.surroundings.environ)
    if not keeps_privileges:
        from outlive.observe.seccomp.privilege_loss import would_miss_privileges  # noqa: PLC0415 - a keeper with CAP_SYS_ADMIN does not need this import

        names, is_known = met_before(plan, "gaining")
        if is_known or would_miss_privileges(foreseen, names):
            return _MISSES_PRIVILEGES
    names, is_known = met_before(plan, "supervising")
    return _MISSES_SUPERVISING if is_known or would_miss_supervising(foreseen, names) else None


def _can_observe(home: Home, *, keep_privileges: bool) -> bool:
    """Return whether system calls can be observed on this machine.

    The result is cached until the next boot. `keep_privileges` means that observed programs must still be able to gain
    privileges when they are executed.
    """
    from outlive.observe.seccomp.self_test_cache import answer_known  # noqa: PLC0415 - only observed commands need this import

    known = answer_known(home, keep_privileges=keep_privileges)
    if known is not None:
        return known
    from outlive.observe.seccomp.self_test import can_observe  # noqa: PLC0415 - this import is needed only once per boot

    return can_observe(home, keep_privileges=keep_privileges)
