"""The command of a task: the words that are executed, and the text that is shown."""

from __future__ import annotations

from outlive.domain.errors import UserError
from outlive.domain.text.sanitize import is_encodable
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The kernel's limit on one argument (MAX_ARG_STRLEN). If a longer argument were not refused here, exec would fail with
# an error number that does not say which argument is too long.
LONGEST_ARGUMENT = 128 * 1024 - 1
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_")


class Command(Value):
    """A command: the words that are executed, and the text that is shown for them."""

    argv: tuple[str, ...]
    text: str


def from_shell_text(text: str) -> Command:
    """Return the command for a line of shell text, or raise `UserError`."""
    if not text.strip():
        raise _empty()
    return _checked(Command(argv=("/bin/sh", "-c", text), text=text))


def from_argv(argv: Sequence[str]) -> Command:
    """Return the command for words executed without a shell, or raise `UserError`."""
    words = tuple(argv)
    if not words or not words[0]:
        raise _empty()
    return _checked(Command(argv=words, text=" ".join(map(quote, words))))


def quote(word: str) -> str:
    """Return the word, quoted so that a shell reads exactly this word."""
    if word and _SAFE.issuperset(word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def check_environment(pairs: Sequence[str]) -> dict[str, str]:
    """Return `NAME=VALUE` settings as a mapping, or raise `UserError`."""
    split = [pair.partition("=") for pair in pairs]
    for name, equals, setting in split:
        if not equals or not _is_setting(name, setting):
            raise UserError(f"{name[:40]!r} is not an environment setting", "write it as NAME=VALUE")
    return {name: setting for name, _, setting in split}


def check_variables(settings: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables that a calling program sets, or raise `UserError`.

    A name with an equals sign is refused, because the process would take only the part before the sign as the name.
    """
    for name, setting in settings.items():
        if not _is_text(name) or not _is_text(setting) or not _is_setting(name, setting):
            raise UserError(
                f"{str(name)[:40]!r} cannot be an environment variable with this value",
                "give name and value as text without NUL bytes; the name must have a character and no '='",
            )
    return dict(settings)


def _is_text(given: object) -> bool:
    return isinstance(given, str)


def _is_setting(name: str, setting: str) -> bool:
    return bool(name) and "=" not in name and "\0" not in name + setting and is_encodable(name + setting)


def _checked(command: Command) -> Command:
    for word in command.argv:
        if not is_encodable(word):
            raise UserError("the command has a lone surrogate in it", "decode bytes with os.fsdecode")
        if "\0" in word:
            raise UserError(
                "the command has a NUL byte in it, which no program can receive",
                "remove it, or put the text into a file and run that",
            )
        if len(word.encode("utf-8", "surrogateescape")) > LONGEST_ARGUMENT:
            raise UserError(
                f"an argument of the command is {len(word)} characters long, but the kernel takes at most 131071 bytes",
                "put the text into a script file and run that",
            )
    return command


def _empty() -> UserError:
    return UserError("there is no command to run", "write `outlive run -- CMD...` or `outlive run 'shell text'`")
