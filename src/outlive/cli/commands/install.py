"""`outlive install`: show the needed changes to agent clients, and then make them."""

from __future__ import annotations

import os
import sys
from functools import partial

from outlive.cli import context
from outlive.cli.formatting import print_json
from outlive.cli.parser import Command, Given, option
from outlive.domain.errors import UserError
from outlive.domain.text.sanitize import shown
from outlive.install.apply import check_possible, diff, install, plan_install
from outlive.install.clients.registry import CLIENTS, chosen, targets_of
from outlive.install.config.backup import PLUGIN as PLUGIN_RECORD
from outlive.install.outlive_command import command_path, mcp_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from outlive.install.apply import Change
    from outlive.install.config.target_file import Target

GUARDS = ("advise", "rewrite", "off")


class Plans:
    """The planned changes for each client, and the clients that were skipped."""

    def __init__(self, given: Given) -> None:
        self._may_skip = given.client in (None, "auto") and given.plugin is None
        self.made: list[tuple[str, Sequence[Change]]] = []
        self.skipped: list[tuple[str, UserError]] = []

    def add(self, name: str, plan: Callable[[], Sequence[Change]]) -> None:
        """Plan the changes of one client.

        If the client cannot be changed, it is skipped. If the user named this client, an error is raised instead.
        """
        try:
            changes = plan()
            check_possible(changes)
        except UserError as error:
            if not self._may_skip:
                raise
            self.skipped.append((name, error))
        else:
            self.made.append((name, changes))

    def check_any(self) -> None:
        """Raise the first client's error if every client was skipped."""
        if self.skipped and not self.made:
            raise self.skipped[0][1]

    @property
    def changes(self) -> list[Change]:
        """The plans for all files, including files that need no change."""
        return [change for _, changes in self.made for change in changes]


def act(given: Given) -> int:
    """Plan the changes of clients, show them, and make them if the user agrees.

    With `--yes`, the changes are made without asking.
    """
    home, plans = context.here(), Plans(given)
    for name, targets in named_targets(given, given.guard or "advise", is_trusted=not given.untrusted):
        plans.add(name, partial(plan_install, home, name, targets))
    return carry_out(given, plans, lambda name, changes: install(home, name, changes), "installed")


def named_targets(given: Given, guard: str, *, is_trusted: bool) -> list[tuple[str, list[Target]]]:
    """Return the files to change for each client, or for the plugin folder.

    The key of each list is the client's name, or a name made from the folder. The original files are saved under this
    key.
    """
    if given.words:
        raise UserError(
            f"this command takes no words, but {given.words[0]!r} is given", "name a client with --client NAME"
        )
    if given.plugin is None:
        names = chosen(given.client or "auto", os.environ)
        return [(name, targets_of(name, os.environ, guard, is_trusted=is_trusted)) for name in names]
    if given.client not in (None, "auto", "claude"):
        raise UserError("only Claude Code has plugins", "outlive install --client claude --plugin DIR")
    from hashlib import sha256

    from outlive.install.clients.claude_plugin import targets

    folder = os.path.realpath(context.directory(given.plugin))
    return [(PLUGIN_RECORD + sha256(os.fsencode(folder)).hexdigest()[:16], targets(folder, guard))]


def carry_out(given: Given, plans: Plans, do: Callable[[str, Sequence[Change]], None], done: str) -> int:
    """Show every change, and make the changes if `--yes` is given or the user agrees.

    `do` makes the changes of one client, and `done` is the word for the printed result, such as `installed`.
    """
    plans.check_any()
    changed = [change for change in plans.changes if not change.is_none]
    if not given.json:
        for change in changed:
            sys.stdout.write(shown(diff(change)))
        for name, error in plans.skipped:
            print(f"{name}: skipped, because {shown(error.message)}; {shown(error.hint)}")
    is_wanted = not given.dry_run and (not changed or given.yes or (_may_ask(given) and _is_confirmed()))
    if is_wanted:
        check_possible(plans.changes)
        for name, changes in plans.made:
            do(name, changes)
    if given.json:
        skipped = [{**_row(name, ()), "skipped": error.message} for name, error in plans.skipped]
        print_json({"applied": is_wanted, "clients": [*(_row(name, each) for name, each in plans.made), *skipped]})
    else:
        _print_outcome(plans, done if is_wanted else "")
    if changed and not is_wanted and not given.dry_run and not _may_ask(given):
        raise UserError(
            "nothing was changed, because there is no terminal to ask on", "--yes makes the changes without asking"
        )
    return 0


def _print_outcome(plans: Plans, done: str) -> None:
    """Print which clients were changed, and which needed no change."""
    for change in plans.changes:
        if change.left_out:
            print(change.left_out)
    if done == "installed" and plans.made:
        if mcp_words() is None:
            print("no MCP server was added, because its packages are not installed: pip install 'outlive[mcp]'")
        print(f"the clients will call {command_path()}; if you move or delete it, run `outlive install` again")
    outcome = f"{done}; it takes effect in new sessions" if done else "nothing was changed"
    for is_wanted, how in ((True, outcome), (False, "nothing to change")):
        names = [name for name, changes in plans.made if is_wanted == any(not each.is_none for each in changes)]
        if names:
            print(f"{', '.join(names)}: {how}")


def _row(name: str, changes: Sequence[Change]) -> dict[str, object]:
    return {
        "client": name,
        "changed": [change.path for change in changes if not change.is_none],
        "left_out": [change.left_out for change in changes if change.left_out],
    }


def _may_ask(given: Given) -> bool:
    """Return whether the user can be asked, because stdin and stdout are a terminal."""
    return not given.json and os.isatty(0) and os.isatty(1)


def _is_confirmed() -> bool:
    sys.stdout.write("make these changes? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


CLIENT = option(
    "--client NAME", "choose the client (default: auto, all clients that are found)", choices=("auto", *CLIENTS)
)
DRY_RUN = option("--dry-run", "show the changes, and do not make them")
PLUGIN = option(
    "--plugin DIR", "claude: write a plugin into this folder, and do not change the user's settings", takes="directory"
)
YES = option("--yes", "make the changes without asking; required without a terminal")

COMMAND = Command(
    name="install",
    summary="add Outlive to agent clients, so that they report background tasks to sessions",
    usage="outlive install [options]",
    details=(
        "This command adds hooks to the user's own configuration, and a skill if the client has skills. Other\n"
        "content of the configuration stays unchanged, byte for byte. The changes are shown first. Files of a\n"
        "repository are never used or changed. If stdin or stdout is not a terminal, or if --json is given, the\n"
        "changes are made only with --yes, and without --yes the exit code is 2. If --client is not given, a client\n"
        "that cannot be changed is skipped and named."
    ),
    options=(
        CLIENT,
        PLUGIN,
        option("--guard HOW", "choose what the hooks do about nohup, &, sleep and pkill", choices=GUARDS),
        option("--untrusted", "codex: do not mark the hooks as trusted; the user then has to do that in Codex"),
        DRY_RUN,
        YES,
    ),
    examples=(
        ("outlive install --dry-run", "show the changes, and do not make them"),
        (
            "outlive install --client claude --plugin ./outlive-plugin",
            "write a plugin folder for `claude --plugin-dir`",
        ),
    ),
)
