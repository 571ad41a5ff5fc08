"""`outlive uninstall`: what `outlive install` added is taken out, and nothing else."""

from __future__ import annotations

import os

from outlive.cli import place
from outlive.cli.install import CLIENT, DRY_RUN, PLUGIN, YES, carry_out, named_targets
from outlive.cli.options import Command, Given
from outlive.install.clients import present
from outlive.install.installing import plan_removal, plan_uninstall, uninstall
from outlive.install.record import plugins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.install.installing import Change


def act(given: Given) -> int:
    """Plan, show, and do it."""
    home = place.here()
    plans = _plans_for_folders(home) if given.plugin is None and given.client in (None, "auto", "claude") else []
    if not plans or given.client == "claude" or present(os.environ):
        plans += [
            (name, plan_uninstall(home, name, targets))
            for name, targets in named_targets(given, "advise", is_trusted=False)
        ]
    return carry_out(given, plans, lambda name, changes: uninstall(home, name, changes), "uninstalled")


def _plans_for_folders(home: Home) -> list[tuple[str, list[Change]]]:
    """Plugins of Claude Code, wherever they were made: nobody need remember where that was."""
    return [(name, plan_removal(home, name)) for name in plugins(home)]


COMMAND = Command(
    name="uninstall",
    summary="take out of agent clients what `install` added",
    usage="outlive uninstall [options]",
    details=(
        "A file that nobody has touched since is given back as it was, to the byte. From one that was edited\n"
        "meanwhile only our entries are removed. Folders that were made with --plugin go as well; a file\n"
        "there that was edited is named, and left. Tasks that run go on."
    ),
    options=(CLIENT, PLUGIN, DRY_RUN, YES),
    examples=(("outlive uninstall --client claude", "its settings are as they were"),),
    act=act,
)
