"""`outlive uninstall`: what `outlive install` added is taken out, and nothing else."""

from __future__ import annotations

from outlive.cli import place
from outlive.cli.install import CLIENT, DRY_RUN, PLUGIN, YES, carry_out, named_targets
from outlive.cli.options import Command, Given
from outlive.install.installing import plan_uninstall, uninstall


def act(given: Given) -> int:
    """Plan, show, and do it."""
    home = place.here()
    plans = [
        (name, plan_uninstall(home, name, targets))
        for name, targets in named_targets(given, "advise", is_trusted=False)
    ]
    return carry_out(given, plans, lambda name, changes: uninstall(home, name, changes), "uninstalled")


COMMAND = Command(
    name="uninstall",
    summary="take out of agent clients what `install` added",
    usage="outlive uninstall [options]",
    details=(
        "A file that nobody has touched since is given back as it was, to the byte. From one that was edited\n"
        "meanwhile only our entries are removed. Tasks that run go on."
    ),
    options=(CLIENT, PLUGIN, DRY_RUN, YES),
    examples=(("outlive uninstall --client claude", "its settings are as they were"),),
    act=act,
)
