"""`outlive help`: the list of commands, or the help of one command."""

from __future__ import annotations

from outlive.cli.main import VERBS, check_verb, load
from outlive.cli.parser import help_text, wrapped


def print_help(words: list[str]) -> int:
    """Print the help of one command, or the list of all commands."""
    if words and words[0] != "help":
        check_verb(words[0])
        print(help_text(load(words[0])))
        return 0
    print("Outlive: background tasks that outlive the session that started them.\n")
    for verb in VERBS:
        command = load(verb)
        name = f"  {verb} ({command.alias})" if command.alias else f"  {verb}"
        print("\n".join(wrapped(command.summary, f"{name:<18}", " " * 18)))
    print("\n`outlive help COMMAND` explains one command.")
    print("An id may be shortened to any unique prefix. Durations: 500ms, 90s, 15m, 2h, 7d.")
    return 0
