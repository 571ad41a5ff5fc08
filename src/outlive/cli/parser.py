"""Commands and options, defined once for parsing, for the help and for completion.

No parser library is used. Importing one would take as much time as `outlive run` may take in total (see ADR 0004).
"""

from __future__ import annotations

from outlive.domain.errors import UserError
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any


class Option(Value):
    """One option of a command. An option without a `metavar` takes no value."""

    name: str
    help: str
    metavar: str | None = None
    parse: Callable[[str], Any] = str
    choices: tuple[str, ...] = ()
    repeat: bool = False
    takes: str | None = None
    """What a shell offers as the option's value: `directory`, `group` or `task`. None means that it offers nothing."""

    @property
    def key(self) -> str:
        """The option's name as an attribute of `Given`, such as `max_output`."""
        return self.name.removeprefix("--").replace("-", "_")


def option(
    names: str,
    meaning: str,
    parse: Callable[[str], Any] = str,
    *,
    choices: tuple[str, ...] = (),
    repeat: bool = False,
    takes: str | None = None,
) -> Option:
    """Return an option, from its name and metavar as the help prints them.

    For example, `names` is `--limit N`, or `--all` for a flag.
    """
    name, _, metavar = names.partition(" ")
    return Option(
        name=name, help=meaning, metavar=metavar or None, parse=parse, choices=choices, repeat=repeat, takes=takes
    )


class Command(Value):
    """One command: its name, its help and its options.

    The command's module has this object as `COMMAND`, and a function `act` that runs the command.
    """

    name: str
    summary: str
    usage: str
    details: str = ""
    alias: str | None = None
    options: tuple[Option, ...] = ()
    takes: str | tuple[str, ...] | None = None
    """What a shell offers for the words after the command.

    `task` means the ids of tasks, `command` means a command after `--`, and a tuple contains the words themselves.
    """
    has_command: bool = False
    """Whether the words after `--` are a command or a prompt. Otherwise, they are treated like the words before `--`.
    """
    refuses_words: bool = False
    """Whether the command accepts only options. Then any other word is an error."""
    examples: tuple[tuple[str, str], ...] = ()


class Given:
    """The options and words that were given on the command line."""

    def __init__(self, options: dict[str, Any], words: list[str], rest: list[str] | None) -> None:
        self._options = options
        self.words = words
        self.rest = rest
        """The words after `--`. None if there was no `--`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self._options[name]
        except KeyError:
            raise AttributeError(name) from None


_HELP_COLUMN, _HELP_COLUMNS = 25, 80

JSON = option("--json", "print JSON instead of text")
HELP = option("--help", "print this help")
# The option of all commands that record decisions about a session.
TRACE = option("--trace", "write every decision about the session to a file in `traces/` of the state directory")


def parse(command: Command, argv: list[str]) -> Given:
    """Return the options and words of a command line.

    Raises `UserError` if an option or a word is wrong.
    """
    known = {option.name: option for option in (*command.options, JSON, HELP)}
    found: dict[str, Any] = {o.key: [] if o.repeat else None if o.metavar else False for o in known.values()}
    words: list[str] = []
    queue = list(argv)
    while queue:
        word = queue.pop(0)
        if word == "--":
            return _given(command, found, words, queue)
        if word == "-h":
            word = "--help"
        if not word.startswith("-") or word == "-":
            words.append(word)
            continue
        name, equals, attached = word.partition("=")
        option = known.get(name)
        if option is None:
            raise _unknown(command, name, list(known), argv[argv.index(words[0]) :] if words else [])
        if option.metavar is None:
            if equals:
                raise UserError(f"{name} takes no value", _see(command))
            found[option.key] = True
            continue
        value = _value(option, attached if equals else _next_word(command, option, queue, known))
        if option.repeat:
            found[option.key].append(value)
        else:
            found[option.key] = value
    return _given(command, found, words, None)


def _given(command: Command, found: dict[str, Any], words: list[str], after: list[str] | None) -> Given:
    """Return the options and words that were found on a command line.

    `found` has the options, `words` the words before `--`, and `after` the words after `--`, or None if there was no
    `--`.
    """
    if not command.has_command:
        words, after = [*words, *(after or ())], None
    if words and command.refuses_words and not found[HELP.key]:
        raise UserError(f"{command.name} takes no words", _see(command))
    return Given(found, words, after)


def _next_word(command: Command, option: Option, queue: list[str], known: Collection[str]) -> str:
    """Return the next word of the command line as the value of an option.

    Raises `UserError` if no word is left, or if the next word is another option because the user forgot the value.
    """
    if not queue:
        raise UserError(f"{option.name} needs a value: {option.metavar}", _see(command))
    word = queue.pop(0)
    if word == "--" or word.partition("=")[0] in known:
        hint = f"if {word} is the value, write {option.name}={word}"
        raise UserError(f"{option.name} needs a value ({option.metavar}), but {word} follows", hint)
    return word


def _value(option: Option, text: str) -> Any:
    if option.choices and text not in option.choices:
        from outlive.domain.text.nearest import did_you_mean

        hint = did_you_mean(text, option.choices, f"give one of: {', '.join(option.choices)}")
        raise UserError(f"{option.name} cannot be {text!r}", hint)
    try:
        return option.parse(text)
    except ValueError:
        raise UserError(
            f"{option.name} cannot be {text!r}", f"{option.name} takes {option.metavar}: {option.help}"
        ) from None
    except UserError as error:
        raise UserError(f"{option.name}: {error.message}", error.hint) from error


def _unknown(command: Command, name: str, known: list[str], after: list[str]) -> UserError:
    """Return the error for an unknown option.

    `after` has the words from the first word that is not an option. The error message uses them to suggest a correct
    command line.
    """
    from outlive.domain.text.nearest import nearest

    close = nearest(name, known)
    hint = f"did you mean {close}?" if close else _see(command)
    if command.has_command and after and not close:
        from outlive.domain.tasks.command import quote

        line = " ".join(map(quote, after))
        hint = f"if {name} belongs to the command, put `--` before the command: outlive {command.name} -- {line}"
    return UserError(f"outlive {command.name} has no option {name}", hint)


def _see(command: Command) -> str:
    return f"`outlive {command.name} --help` explains how to call it"


def whole_number(text: str) -> int:
    """Return the whole number in a string. It must be zero or more.

    Raises `ValueError` for any other string.
    """
    number = int(text)
    if not 0 <= number < 1 << 62:
        raise ValueError(text)
    return number


def help_text(command: Command) -> str:
    """Return the help text of a command, in lines of at most 80 columns."""
    lines = [*wrapped(command.summary), "", *wrapped(command.usage, "  ", "    ")]
    if command.alias:
        lines.append(f"  (also: outlive {command.alias})")
    if command.details:
        for paragraph in command.details.split("\n\n"):
            lines += ["", *wrapped(paragraph)]
    lines += ["", "options"]
    for option in (*command.options, JSON, HELP):
        left = f"  {option.name} {option.metavar}" if option.metavar else f"  {option.name}"
        lines += wrapped(option_help(option), left.ljust(_HELP_COLUMN - 1) + " ", " " * _HELP_COLUMN)
    if command.examples:
        lines += ["", "examples"]
        for line, meaning in command.examples:
            lines += [f"  {line}", *wrapped(meaning, "      ", "      ")]
    return "\n".join(lines)


def option_help(option: Option) -> str:
    """Return the help text of an option, with the values that it may have."""
    choices = f" ({', '.join(option.choices)})" if option.choices else ""
    return f"{option.help}{choices}{'; may be repeated' if option.repeat else ''}"


def wrapped(text: str, first: str = "", later: str = "") -> list[str]:
    """Return a text in lines of at most 80 columns.

    `first` is put before the first line, and `later` before every other line.
    """
    from textwrap import wrap

    return wrap(
        text,
        _HELP_COLUMNS,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )
