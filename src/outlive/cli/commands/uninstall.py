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
    """Plan the removal of Outlive, show the changes, and make them if the user agrees.

    With `--yes`, the changes are made without asking.
    """
    home, plans = context.here(), Plans(given)
    if given.plugin is None and given.client in (None, "auto", "claude"):
        # A plugin of Claude Code may be in any folder. Outlive has recorded each plugin folder that it wrote, so the
        # user does not have to name the folders.
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
        "A file that was not edited after the installation gets its former content again, byte for byte. From an\n"
        "edited file, only Outlive's entries are removed. Folders that were made with --plugin are removed too. If a\n"
        "file in such a folder was edited, the command names the file and leaves it in place. Running tasks continue.\n"
        "Without a terminal, the changes are made only with --yes, as for `install`."
    ),
    options=(CLIENT, PLUGIN, DRY_RUN, YES),
    examples=(("outlive uninstall --client claude", "remove Outlive from the settings of Claude Code"),),
)
