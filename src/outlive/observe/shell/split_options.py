"""The words after a program's name, divided into options, values and operands."""

from __future__ import annotations

from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from outlive.observe.shell.commands import Word


class Call(Value):
    """The words of one call of a program."""

    names: frozenset[str]
    """Every option of the call. For `-xzf`, these are `-xzf`, `-x`, `-z` and `-f`."""
    values: tuple[tuple[str, Word], ...]
    operands: tuple[Word, ...]
    words: tuple[Word, ...]
    """All words after the program's name, in order."""

    def value_of(self, options: Collection[str]) -> Word | None:
        """Return the last value given with one of `options`, or None."""
        return next((value for name, value in reversed(self.values) if name in options), None)

    def values_of(self, options: Collection[str]) -> list[Word]:
        """Return all values given with one of `options`."""
        return [value for name, value in self.values if name in options]


def take_apart(
    words: Sequence[Word], takes: frozenset[str], *, clusters: bool = True, leading: bool = False
) -> tuple[Call, int]:
    """Divide words into options and operands. Also return where the reading stopped.

    The second result is the index of the first word that was not read. `takes` are the options with values. `clusters`
    means that `-xzf` is three options. `leading` means that reading stops at the first operand, because the rest
    belongs to another program.
    """
    names: set[str] = set()
    values: list[tuple[str, Word]] = []
    operands: list[Word] = []
    at = 0
    while at < len(words):
        word = words[at]
        text = word.text
        if text == "--":
            if not leading:
                operands += words[at + 1 :]
            at = at + 1 if leading else len(words)
            break
        if not text.startswith("-") or text == "-":
            if leading:
                break
            operands.append(word)
            at += 1
            continue
        following = words[at + 1] if at + 1 < len(words) else None
        used = _option(word, following, takes, names, values, clusters=clusters)
        at += 1 + used
    call = Call(names=frozenset(names), values=tuple(values), operands=tuple(operands), words=tuple(words))
    return call, at


def _option(
    word: Word,
    following: Word | None,
    takes: frozenset[str],
    names: set[str],
    values: list[tuple[str, Word]],
    *,
    clusters: bool,
) -> bool:
    """Record one option. Return whether the following word is the option's value.

    `takes` are the options with values. The option is added to `names`, and its value to `values`.
    """
    text = word.text
    name, equals, value = text.partition("=")
    names.add(name)
    if equals:
        values.append((name, word.but(text=value)))
    elif name in takes:
        if following is not None:
            values.append((name, following))
        return following is not None
    if name.startswith("--") or not clusters:
        return False
    for index, letter in enumerate(text[1:], 1):
        short = "-" + letter
        names.add(short)
        if short in takes:
            rest = text[index + 1 :]
            if rest:
                values.append((short, word.but(text=rest)))
            elif following is not None:
                values.append((short, following))
                return True
            return False
    return False
