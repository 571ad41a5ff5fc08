"""The takeover of a running process by a keeper that is not its parent.

If only the task's keeper was killed, its witness still writes the exit record, and no information is lost. If the
witness is dead too, newer kernels report the exit status nevertheless. A process that Outlive did not start is taken
over in the same way. It has never had a witness, and its output is copied.
"""

from __future__ import annotations

import os

import outlive.keeper.observation.unanswered_calls  # noqa: F401 - imported now, because the installation may be deleted before the module is used
from outlive.domain.errors import OutliveError
from outlive.domain.timestamps import UTC, datetime
from outlive.keeper.exit_watch import ReparentedCommand, SurvivingWitness, confirm_begin, read_identity
from outlive.keeper.keeper import detach
from outlive.keeper.output.copy import OutputCopy
from outlive.keeper.supervise import Supervision
from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.processes import KEEPER_NAME, open_verified
from outlive.linux.syscalls import name_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from outlive.bundle.attempt import HeldFiles
    from outlive.keeper.exit_watch import ExitWatch
    from outlive.keeper.plan import Plan


def adopt(plan: Plan, held: HeldFiles, go: int, ready: int) -> NoReturn:
    """Supervise an attempt that this keeper did not start, until it is settled.

    Over the descriptors `go` and `ready`, this keeper and the process that started it notify each other.
    """
    name_process(KEEPER_NAME)
    detach((*held.fds(), go, ready))
    sight = _find_sight(held.record) if os.read(go, 1) else None
    if sight is None:
        os._exit(0)
    _forget_condition(plan)
    supervision = Supervision(plan, held, sight, "adopter")
    # Switch before the answer is sent, because the process that asked for the takeover reads the observed changes next.
    supervision.switch_to(sight)
    os.write(ready, b"running\n")
    os.close(ready)
    if plan.launch.adopted_output is not None and read_identity(held.record, "witness") is None:
        supervision.copying = OutputCopy(held)
        supervision.copying.copy()
    supervision.see_through(sight)
    os._exit(0)


def _find_sight(record_fd: int) -> ExitWatch | None:
    command = read_identity(record_fd)
    witness = read_identity(record_fd, "witness")
    if command is None:
        return None
    # The pidfd must be opened while the command lives. Otherwise the kernel does not report its status later.
    command_fd = open_verified(command[0])
    witness_fd = None if witness is None else open_verified(witness[0])
    confirm_begin(record_fd)
    if witness_fd is not None:
        return SurvivingWitness(witness_fd, command_fd, record_fd)
    return None if command_fd is None else ReparentedCommand(command_fd, record_fd)


def _forget_condition(plan: Plan) -> None:
    """Remove the mark `orphaned`, which says that the attempt has no keeper."""
    try:
        with SqliteLedger(plan.home.ledger, datetime.now(UTC), create=False) as ledger:
            ledger.set_condition(plan.launch.id, plan.files.number, None)
    except OutliveError:
        pass  # the mark is informative only, and the settlement has retries of its own
