"""Rules that say what a call of a program changes.

The first rule that fits a call decides. If the rule is marked `also`, the result of the next rule that fits is added.
For a call that no rule fits, the field `otherwise` of the program decides. `make rules` compiles `rules/*.toml` into
the module `rules_table`, whose rows become `Program` objects when they are used.
"""

from __future__ import annotations

from functools import cache

from outlive.domain.value import Value
from outlive.observe.predict.conditions import parse
from outlive.observe.predict.rules_table import TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive.observe.predict.rules_table import Row, RuleRow
    from outlive.observe.shell.commands import Simple
    from outlive.observe.shell.split_options import Call

READS, OPAQUE = "reads", "unknown"
TAKES, SEARCHES = "takes", "searches"


class Rule(Value):
    """What one kind of call changes. `rules/README.md` explains every field."""

    verbs: tuple[tuple[str, ...], ...]
    touches: tuple[tuple[str, tuple[str, ...]], ...]
    when: frozenset[str]
    unless: frozenset[str]
    asks: Callable[[Call, Simple], bool] | None
    also: bool
    tree: str


class Program(Value):
    """The rules of programs with the same options, explained in `rules/README.md`."""

    topic: str
    names: tuple[str, ...]
    otherwise: str
    takes: frozenset[str]
    bare: frozenset[str]
    directory: frozenset[str]
    says: frozenset[str]
    leads: bool
    clusters: bool
    dashless: bool
    rules: tuple[Rule, ...]


def find_program(name: str) -> Program | None:
    """Return the rules of a program. Its name may have a version (`python3.12`)."""
    row = _INDEX.get(name) or _INDEX.get(name.partition("@")[0])
    if row is None and name[-1:].isdigit():
        row = _INDEX.get(name.rstrip("0123456789.").removesuffix("-"))
    return None if row is None else _program(row)


@cache
def _program(row: Row) -> Program:
    topic, names, otherwise, takes, bare, directory, says, leads, clusters, dashless, rules = row
    return Program(
        topic=topic,
        names=tuple(names.split()),
        otherwise=otherwise,
        takes=_words(takes) | _words(directory),
        bare=_words(bare),
        directory=_words(directory),
        says=_words(says),
        leads=leads,
        clusters=clusters,
        dashless=dashless,
        rules=tuple(map(_rule, rules)),
    )


def _rule(row: RuleRow) -> Rule:
    verbs, touches, when, unless, asks, also, tree = row
    parts = (touch.partition(":") for touch in touches.split())
    return Rule(
        verbs=tuple(tuple(verb.split("_")) for verb in verbs.split()),
        touches=tuple((kind, tuple(where.split("|"))) for kind, _, where in parts),
        when=_words(when),
        unless=_words(unless),
        asks=parse(asks) if asks else None,
        also=also,
        tree=tree,
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_INDEX = {name: row for row in TABLE for name in row[1].split()}
