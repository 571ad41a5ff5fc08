"""The table of commands as the completion scripts need it: every word that may stand first."""

from __future__ import annotations

from outlive.cli.main import ALIASES, VERBS, load
from outlive.cli.options import HELP, JSON, Option
from outlive.domain.value import Value


class Verb(Value):
    """One verb under all its names, with what may follow it."""

    names: tuple[str, ...]
    summary: str
    options: tuple[Option, ...] = ()
    takes: str | tuple[str, ...] | None = None


def verbs() -> list[Verb]:
    """Every verb in the order of the help, and `help`, which no table has because it takes no option."""
    found = [_verb(name) for name in VERBS]
    words = tuple(name for verb in found for name in verb.names)
    return [*found, Verb(names=("help",), summary="explain a command, or list them all", takes=words)]


def _verb(name: str) -> Verb:
    command = load(name)
    aliases = (alias for alias, verb in ALIASES.items() if verb == name)
    return Verb(
        names=(name, *aliases),
        summary=command.summary,
        options=(*command.options, JSON, HELP),
        takes=command.takes,
    )
