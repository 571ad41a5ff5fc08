"""The form of a rule: what a call of a program changes, and examples that are tests.

A program has rules in order, and the first that fits a call decides; one marked `also` adds to what
a later one says. The tables are in the modules `rules_*`; what no rule covers is `unknown`.
"""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive.observe.options import Call
    from outlive.observe.shell import Simple

    Question = Callable[[Call, Simple], bool]

READS, OPAQUE = "reads", "unknown"
TAKES, SEARCHES = "takes", "searches"


class Rule(Value):
    """One line of a table.

    `touches` is a list of `kind:where`. Where is one of

        here    the directory it runs in
        each    every operand; `first`, `last`, `rest` (all but the first), `beyond` (but the
                first two), `most` (all but the last)
        -o,-x   the value of one of these options
        file    the first operand, as a path whatever the kind
        starts  the operands before the first option, as `find` has them
        mounts  the directories that a container is given
        of=     operands that begin so, without that beginning
        tool    the name of the program
        =text   this text

    or several of them with `|` between: the first that is given counts.
    """

    verbs: tuple[tuple[str, ...], ...]
    """The first operands, word by word; none for any call."""
    touches: tuple[tuple[str, tuple[str, ...]], ...]
    examples: tuple[tuple[str, str], ...]
    """A command, and `kind:what` of all it touches when run in /w."""
    when: frozenset[str] = frozenset()
    """Options of which one must be given."""
    unless: frozenset[str] = frozenset()
    """Options of which none may be given."""
    asks: Question | None = None
    also: bool = False
    tree: str = ""
    """What it reads beside what its words name: it `takes` from what lies where it runs (a package, a manifest,
    sources, settings), or `searches` all of that, if it is given nothing that is there."""


class Program(Value):
    """The rules of one program, or of several that are called alike."""

    names: tuple[str, ...]
    rules: tuple[Rule, ...]
    otherwise: str
    """What a call is that no rule fits: `reads` or `unknown`."""
    takes: frozenset[str] = frozenset()
    """Options whose value may be the next word."""
    bare: frozenset[str] = frozenset()
    """Verbs behind which an option of one letter takes nothing, also if it does behind others."""
    directory: frozenset[str] = frozenset()
    """Options by which it changes the directory, one after the other."""
    leads: bool = False
    """Whether these stand before its verb, and mean something else behind it."""
    clusters: bool = True
    """Whether -xzf is three options."""
    dashless: bool = False
    """Whether the first word is options even without a dash."""
    says: frozenset[str] = frozenset()
    """Words that name no file: `each`, `first` (a pattern or script, unless an option gives it), options' values."""


def rule(
    verbs: str,
    touches: str,
    *examples: str,
    when: str = "",
    unless: str = "",
    asks: Question | None = None,
    also: bool = False,
    tree: str = "",
) -> Rule:
    """A rule as the tables write it: lists as words, `stash_list` for a verb of two words, `call => touches`."""
    parts = (touch.partition(":") for touch in touches.split())
    pairs = (example.rpartition("=>") for example in examples)
    return Rule(
        verbs=tuple(tuple(verb.split("_")) for verb in verbs.split()),
        touches=tuple((kind, tuple(where.split("|"))) for kind, _, where in parts),
        examples=tuple((text.strip(), expected.strip()) for text, _, expected in pairs),
        when=frozenset(when.split()),
        unless=frozenset(unless.split()),
        asks=asks,
        also=also,
        tree=tree,
    )


def program(
    names: str,
    *rules: Rule,
    otherwise: str = OPAQUE,
    takes: str = "",
    bare: str = "",
    directory: str = "",
    leads: bool = False,
    clusters: bool = True,
    dashless: bool = False,
    says: str = "",
    tree: str = "",
) -> Program:
    """A program as the tables write it; `tree` is of all its rules that touch anything."""
    return Program(
        names=tuple(names.split()),
        rules=tuple(each.but(tree=each.tree or tree) if each.touches else each for each in rules),
        otherwise=otherwise,
        takes=frozenset((takes + " " + directory).split()),
        bare=frozenset(bare.split()),
        directory=frozenset(directory.split()),
        leads=leads,
        clusters=clusters,
        dashless=dashless,
        says=frozenset(says.split()),
    )


def has_operands(call: Call, _: Simple) -> bool:
    """Whether anything is given beside options (and the verb)."""
    return bool(call.operands)


def is_called(*names: str) -> Question:
    """Whether it is one of these, of several programs that share a table."""
    return lambda _, command: command.words[0].text.rpartition("/")[2] in names


def names_goal(*goals: str) -> Question:
    """Whether one of these is among the operands, of which each is done in turn."""
    return lambda call, _: any(word.text.rpartition(":")[2] in goals or word.text in goals for word in call.operands)


def has_three_operands(call: Call, _: Simple) -> bool:
    """Whether three things are given."""
    return len(call.operands) > 2


def has_two_operands(call: Call, _: Simple) -> bool:
    """Whether two things are given."""
    return len(call.operands) > 1
