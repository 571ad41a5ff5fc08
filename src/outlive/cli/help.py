"""`outlive help`: what there is, and where to go on."""

from __future__ import annotations

from outlive.cli.main import ALIASES, VERBS, load
from outlive.cli.options import help_text
from outlive.domain.errors import UserError


def print_help(words: list[str]) -> int:
    """The help of one command, or the list of all."""
    if words:
        if words[0] not in VERBS and words[0] not in ALIASES:
            raise UserError(f"there is no command {words[0]!r}", "`outlive help` lists them")
        print(help_text(load(words[0])))
        return 0
    print("Outlive: background tasks that outlive the session that started them.\n")
    for verb in VERBS:
        command = load(verb)
        print(f"  {verb + (f' ({command.alias})' if command.alias else ''):<16}{command.summary}")
    print("\n`outlive help COMMAND` explains one. Ids: any unique prefix. Durations: 500ms, 90s, 15m, 2h, 7d.")
    return 0
