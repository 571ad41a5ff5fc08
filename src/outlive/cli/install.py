"""`outlive install`: into the configuration of agent clients, shown first, and undone by `outlive uninstall`."""

from __future__ import annotations

import os
import sys

from outlive.cli import place
from outlive.cli.options import Command, Given, Option
from outlive.cli.render import print_json
from outlive.domain.errors import UserError
from outlive.domain.text import shown
from outlive.install.clients import CLIENTS, chosen, targets_of
from outlive.install.installing import check_possible, diff, install, plan_install
from outlive.install.record import PLUGIN as PLUGIN_RECORD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from outlive.install.installing import Change
    from outlive.install.target import Target

GUARDS = ("advise", "rewrite", "off")


def act(given: Given) -> int:
    """Plan, show, and do it."""
    home = place.here()
    guard = given.guard or "advise"
    plans = [
        (name, plan_install(home, name, targets))
        for name, targets in named_targets(given, guard, is_trusted=not given.untrusted)
    ]
    return carry_out(given, plans, lambda name, changes: install(home, name, changes), "installed")


def named_targets(given: Given, guard: str, *, is_trusted: bool) -> list[tuple[str, list[Target]]]:
    """The files that are meant, under the name by which what was there is kept."""
    if given.words:
        raise UserError(f"outlive takes no word {given.words[0]!r} here", "--client NAME says which client")
    if given.plugin is None:
        names = chosen(given.client or "auto", os.environ)
        return [(name, targets_of(name, os.environ, guard, is_trusted=is_trusted)) for name in names]
    if given.client not in (None, "auto", "claude"):
        raise UserError("only Claude Code has plugins", "outlive install --client claude --plugin DIR")
    from hashlib import sha256

    from outlive.install.plugin import targets

    folder = os.path.realpath(place.directory(given.plugin))
    return [(PLUGIN_RECORD + sha256(os.fsencode(folder)).hexdigest()[:16], targets(folder, guard))]


def carry_out(
    given: Given,
    plans: Sequence[tuple[str, Sequence[Change]]],
    do: Callable[[str, Sequence[Change]], None],
    done: str,
) -> int:
    """Show every change, and make them unless only a look was wanted."""
    changed = [change for _, changes in plans for change in changes if not change.is_none]
    if not given.json:
        for change in changed:
            sys.stdout.write(shown(diff(change)))
    is_wanted = not given.dry_run and (not changed or given.json or _is_confirmed(given))
    if is_wanted:
        check_possible([change for _, changes in plans for change in changes])
        for name, changes in plans:
            do(name, changes)
    if given.json:
        print_json({"applied": is_wanted, "clients": [_row(name, changes) for name, changes in plans]})
        return 0
    for change in (change for _, changes in plans for change in changes if change.left_out):
        print(change.left_out)
    names = ", ".join(name for name, _ in plans)
    if not changed:
        print(f"{names}: nothing to change")
    else:
        print(
            f"{names}: {done}; sessions that begin from now on know" if is_wanted else f"{names}: nothing was changed"
        )
    return 0


def _row(name: str, changes: Sequence[Change]) -> dict[str, object]:
    return {
        "client": name,
        "changed": [change.path for change in changes if not change.is_none],
        "left_out": [change.left_out for change in changes if change.left_out],
    }


def _is_confirmed(given: Given) -> bool:
    """A person is asked; a script that calls this has decided."""
    if given.yes or not (os.isatty(0) and os.isatty(1)):
        return True
    sys.stdout.write("make these changes? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


CLIENT = Option(
    name="--client",
    metavar="NAME",
    help="which client (default: auto, all that are found)",
    choices=("auto", *CLIENTS),
)
DRY_RUN = Option(name="--dry-run", help="show the changes, and make none")
PLUGIN = Option(name="--plugin", metavar="DIR", takes="directory", help="claude: as a plugin in this folder instead")
YES = Option(name="--yes", help="do not ask")

COMMAND = Command(
    name="install",
    summary="make agent clients tell their sessions of background tasks",
    usage="outlive install [options]",
    details=(
        "Adds hooks, and a skill where the client has skills, to the user's own configuration; whatever else is there\n"
        "stays as it is, to the byte. The changes are shown first. Nothing of a repository is ever used or changed."
    ),
    options=(
        CLIENT,
        PLUGIN,
        Option(
            name="--guard",
            metavar="HOW",
            help="what is done about nohup, &, sleeping and pkill",
            choices=GUARDS,
        ),
        Option(name="--untrusted", help="codex: leave it to a person to trust the hooks"),
        DRY_RUN,
        YES,
    ),
    examples=(
        ("outlive install --dry-run", "shows what would change"),
        ("outlive install --client claude --plugin ./outlive-plugin", "a folder for claude --plugin-dir"),
    ),
    act=act,
)
