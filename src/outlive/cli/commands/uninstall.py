"""`outlive uninstall`: remove what `outlive install` added, and nothing else."""

from __future__ import annotations

import os
from functools import partial

from outlive.cli import context
from outlive.cli.commands.install import CLIENT, DRY_RUN, PLUGIN, YES, Plans, carry_out, named_targets
from outlive.cli.parser import Command, Given
from outlive.install.apply import plan_removal, plan_uninstall, uninstall
from outlive.install.clients.registry import present
from outlive.install.config.backup import plugins


def act(given: Given) -> int:
    """Plan the removal, show it, and make it if `--yes` is given or the user agrees."""
    home, plans = context.here(), Plans(given)
    if given.plugin is None and given.client in (None, "auto", "claude"):
        # Plugins of Claude Code may be in any folder. The records of installed plugins name their folders, so the user
        # need not name them.
        for name in plugins(home):
            plans.add(name, partial(plan_removal, home, name))
    if not (plans.made or plans.skipped) or given.client == "claude" or present(os.environ):
        for name, targets in named_targets(given, "advise", is_trusted=False):
            plans.add(name, partial(plan_uninstall, home, name, targets))
    return carry_out(given, plans, lambda name, changes: uninstall(home, name, changes), "uninstalled")


COMMAND = Command(
    name="uninstall",
    summary="remove from agent clients what `install` added",
    usage="outlive uninstall [options]",
    details=(
        "If a file was not edited after the installation, it gets its former content again, byte for byte. From an\n"
        "edited file, only Outlive's entries are removed. Folders that were made with --plugin are removed too. An\n"
        "edited file in such a folder is named, and stays. Running tasks continue. Without a terminal, the changes\n"
        "are made only with --yes, as for `install`."
    ),
    options=(CLIENT, PLUGIN, DRY_RUN, YES),
    examples=(("outlive uninstall --client claude", "remove Outlive from the settings of Claude Code"),),
    act=act,
)
