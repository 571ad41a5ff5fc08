"""Adopting a task whose keeper was killed: a new keeper takes over with what is left.

If the witness lives, it still writes the exit record, and nothing is missing. If it is gone too,
the command has become a stranger's child; newer kernels tell its exit status all the same.
"""

from __future__ import annotations

import os

from outlive.bundle.kernel import name_process
from outlive.bundle.processes import KEEPER_NAME, open_verified
from outlive.domain.errors import OutliveError
from outlive.domain.when import UTC, datetime
from outlive.keeper.keeper import detach
from outlive.keeper.sight import OtherWitness, Stranger, read_identity
from outlive.keeper.supervision import Supervision
from outlive.ledger.sqlite import SqliteLedger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from outlive.bundle.attempt import Held
    from outlive.keeper.plan import Plan
    from outlive.keeper.sight import Sight


def adopt(plan: Plan, held: Held, go: int, ready: int) -> NoReturn:
    """See an orphaned attempt through to its end."""
    name_process(KEEPER_NAME)
    detach((*held.fds(), go, ready))
    sight = _find_sight(held.record) if os.read(go, 1) else None
    if sight is None:
        os._exit(0)
    _forget_condition(plan)
    os.write(ready, b"running\n")
    os.close(ready)
    Supervision(plan, held, sight, "adopter").see_through(sight)
    os._exit(0)


def _find_sight(record_fd: int) -> Sight | None:
    command = read_identity(record_fd)
    witness = read_identity(record_fd, "witness")
    if command is None or witness is None:
        return None
    # The command's pidfd is opened while it lives: only then will the kernel tell its status later.
    command_fd = open_verified(command[0])
    witness_fd = open_verified(witness[0])
    if witness_fd is not None:
        return OtherWitness(witness_fd, command_fd, record_fd)
    return None if command_fd is None else Stranger(command_fd, record_fd)


def _forget_condition(plan: Plan) -> None:
    """It is no longer `orphaned`."""
    try:
        with SqliteLedger(plan.home.ledger, datetime.now(UTC), create=False) as ledger:
            ledger.set_condition(plan.launch.id, plan.files.number, None)
    except OutliveError:
        pass  # only a remark; the ending will be tried for longer
