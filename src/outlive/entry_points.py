"""Functions that running processes of Outlive import by name after an upgrade.

A process that started before an upgrade passes code to a new interpreter, and this code imports functions of this
module. So the names of this module, of its functions and of their arguments never change. The passed code imports no
other module of Outlive. `tests/architecture/test_layers.py` checks this rule.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


def load_keeper() -> Callable[[int], NoReturn]:
    """Return the function that continues a sleeping keeper.

    The argument of the returned function is the descriptor of the file in memory in which the keeper stored its state.
    """
    _import_quickly()
    if "outlive.code_copy" not in sys.modules:
        # Without a copy of the code, an upgrade may delete a module before its later import. So import now.
        import outlive.keeper.supervise  # noqa: F401, PLC0415
        from outlive.keeper.observation.observation import load  # noqa: PLC0415

        load()
    from outlive.service.tasks.wait_turn import wake  # noqa: PLC0415

    return wake


def serve_spawner(fd: int) -> None:
    """Launch tasks for a program that uses the SDK. `fd` is a socket to the program."""
    _import_quickly()
    from outlive.sdk.spawner.serve_launches import serve  # noqa: PLC0415

    serve(fd)


def deliver_to_sinks(home: str) -> NoReturn:
    """Deliver the notices that the user's receivers have not got.

    `home` is the state directory.
    """
    _import_quickly()
    from outlive.service.notices.deliver import deliver_and_exit  # noqa: PLC0415

    deliver_and_exit(home)


def _import_quickly() -> None:
    from outlive.quick_import import install  # noqa: PLC0415

    install()
