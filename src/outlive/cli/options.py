"""Commands and their options: one table that parses, explains, documents and completes.

A parser library costs as much as the whole of `outlive run` may (see ADR 0004), and none of them
could be asked for less. This one knows long options, flags, repeats and `--`.
"""

from __future__ import annotations

from outlive.domain.errors import UserError
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Option(Value):
    """One option. Without a `metavar` it is a flag."""

    name: str
    help: str
    metavar: str | None = None
    parse: Callable[[str], Any] = str
    choices: tuple[str, ...] = ()
    repeat: bool = False
    takes: str | None = None
    """What a shell completes its value with: `directory`, `group` or `task`; None for nothing we know."""

    @property
    def key(self) -> str:
        """Its name as an attribute of `Given`."""
        return self.name.removeprefix("--").replace("-", "_")


class Command(Value):
    """One verb: how it is called, what it does, what it takes."""

    name: str
    summary: str
    usage: str
    details: str = ""
    alias: str | None = None
    options: tuple[Option, ...] = ()
    takes: str | tuple[str, ...] | None = None
    """What a shell completes its words with: `task`, `command` (after `--`), or these words."""
    examples: tuple[tuple[str, str], ...] = ()
    act: Callable[[Given], int]


class Given:
    """What was given on the command line."""

    def __init__(self, options: dict[str, Any], words: list[str], rest: list[str] | None) -> None:
        self._options = options
        self.words = words
        self.rest = rest
        """What stood after `--`; None if there was none."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self._options[name]
        except KeyError:
            raise AttributeError(name) from None


JSON = Option(name="--json", help="print JSON instead of text")
HELP = Option(name="--help", help="print this help")


def parse(command: Command, argv: list[str]) -> Given:
    """The arguments of a command, or a `UserError` that says what is wrong with them."""
    known = {option.name: option for option in (*command.options, JSON, HELP)}
    found: dict[str, Any] = {o.key: [] if o.repeat else None if o.metavar else False for o in known.values()}
    words: list[str] = []
    queue = list(argv)
    while queue:
        word = queue.pop(0)
        if word == "--":
            return Given(found, words, queue)
        if word == "-h":
            word = "--help"
        if not word.startswith("-") or word == "-":
            words.append(word)
            continue
        name, equals, attached = word.partition("=")
        option = known.get(name)
        if option is None:
            raise _unknown(command, name, list(known))
        if option.metavar is None:
            if equals:
                raise UserError(f"{name} takes no value", _see(command))
            found[option.key] = True
            continue
        if not equals and not queue:
            raise UserError(f"{name} needs a value: {option.metavar}", _see(command))
        value = _value(option, attached if equals else queue.pop(0))
        if option.repeat:
            found[option.key].append(value)
        else:
            found[option.key] = value
    return Given(found, words, None)


def _value(option: Option, text: str) -> Any:
    if option.choices and text not in option.choices:
        raise UserError(f"{option.name} cannot be {text!r}", f"one of: {', '.join(option.choices)}")
    try:
        return option.parse(text)
    except ValueError:
        raise UserError(f"{option.name} cannot be {text!r}", f"it takes {option.metavar}: {option.help}") from None


def _unknown(command: Command, name: str, known: list[str]) -> UserError:
    from difflib import get_close_matches

    close = get_close_matches(name, known, 1)
    return UserError(
        f"outlive {command.name} has no option {name}",
        f"did you mean {close[0]}?" if close else _see(command),
    )


def _see(command: Command) -> str:
    return f"`outlive {command.name} --help` shows what it takes"


def whole_number(text: str) -> int:
    """A number of zero or more."""
    number = int(text)
    if not 0 <= number < 1 << 62:
        raise ValueError(text)
    return number


def help_text(command: Command) -> str:
    """The help of one command."""
    lines = [f"{command.summary}", "", f"  {command.usage}"]
    if command.alias:
        lines.append(f"  (also: outlive {command.alias})")
    if command.details:
        lines += ["", command.details]
    lines += ["", "options"]
    for option in (*command.options, JSON, HELP):
        left = f"{option.name} {option.metavar}" if option.metavar else option.name
        choices = f" ({', '.join(option.choices)})" if option.choices else ""
        repeat = "; may be repeated" if option.repeat else ""
        lines.append(f"  {left:<22} {option.help}{choices}{repeat}")
    if command.examples:
        lines += ["", "examples"]
        lines += [f"  {line}\n      {meaning}" for line, meaning in command.examples]
    return "\n".join(lines)
