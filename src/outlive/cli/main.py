"""The entry point of the command line, which loads only the requested command."""

from __future__ import annotations

import os
import sys

from outlive.domain.errors import OutliveError, UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import NoReturn

    from outlive.cli.parser import Command

# The names of the commands, in the order of the help. For each one, a module in `outlive.cli.commands` has the
# description `COMMAND` and the function `act`, which runs the command.
VERBS = (
    "run", "agent", "list", "show", "output", "transcript", "wait", "result", "cancel", "retry", "adopt", "send",
    "ports", "effects", "session", "inbox", "ack", "dismiss", "gate", "guard", "hand-off", "sink", "sweep", "audit",
    "completion", "install", "uninstall", "doctor", "hook", "mcp",
)  # fmt: skip
ALIASES = {"ps": "list", "logs": "output"}
# Names that other tools use for similar commands. Outlive does not accept them, but its error message suggests the
# matching command.
_OTHER_NAMES = {
    "ls": "list",
    "status": "list",
    "queue": "list",
    "top": "list",
    "jobs": "list",
    "history": "list",
    "info": "show",
    "inspect": "show",
    "describe": "show",
    "tail": "output",
    "start": "run",
    "exec": "run",
    "kill": "cancel",
    "stop": "cancel",
    "restart": "retry",
    "rerun": "retry",
    "rm": "sweep",
    "remove": "sweep",
    "delete": "sweep",
    "clean": "sweep",
    "man": "help",
}
# Commands that other packages implement. The value is the module that implements the command and parses its arguments.
# It is imported only when the command is called, because this package must not depend on packages of the same layer.
ENTRIES = {"hook": "outlive.hooks.entry"}


def main_and_exit() -> NoReturn:
    """Run the command that the arguments of this process name, and exit.

    Python's usual cleanup at the exit is skipped.
    """
    _open_standard_descriptors()
    code = main()
    sys.stderr.flush()
    os._exit(code)


def _open_standard_descriptors() -> None:
    """Open the descriptors 0, 1 and 2 if the caller has closed them.

    Otherwise a lock file could get one of these numbers. A keeper closes its standard streams, and would then lose the
    lock.
    """
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - the stream must stay open until this process exits
        # Print an escape sequence for a character that the locale cannot encode. Otherwise such a character would end
        # the command with an error.
        getattr(sys, name).reconfigure(errors="backslashreplace")


def main(argv: list[str] | None = None) -> int:
    """Run the command that the arguments name, and return its exit code."""
    words = sys.argv[1:] if argv is None else argv
    as_json = "--json" in (words[: words.index("--")] if "--" in words else words)
    try:
        return _dispatch(words)
    except OutliveError as error:
        return _complain(error, as_json=as_json)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The program that reads the output has closed the pipe, as `head` does. That is not an error of this command.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("OUTLIVE_DEBUG"):
            raise
        return _complain(_unexpected(error), as_json=as_json)
    finally:
        sys.stdout.flush()


def load(verb: str) -> Command:
    """Return the object that describes a command, by the command's name."""
    command: Command = _module_of(verb).COMMAND
    return command


def _module_of(verb: str) -> ModuleType:
    """Import the module of a command."""
    return __import__(f"outlive.cli.commands.{ALIASES.get(verb, verb).replace('-', '_')}", fromlist=["COMMAND"])


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("help", "--help", "-h"):
        from outlive.cli.help import print_help

        return print_help(words[1:])
    if words[0] in ("--version", "-V", "version"):
        from outlive import __version__

        print(f"outlive {__version__}")
        return 0
    check_verb(words[0])
    if words[0] in ENTRIES and "--help" not in words:
        return int(__import__(ENTRIES[words[0]], fromlist=["main"]).main(words[1:]))
    from outlive.cli.parser import help_text, parse

    module = _module_of(words[0])
    given = parse(module.COMMAND, words[1:])
    if given.help:
        print(help_text(module.COMMAND))
        return 0
    return int(module.act(given))


def check_verb(word: str) -> None:
    """Raise `UserError` with a suggestion if a word is not the name of a command."""
    if word in VERBS or word in ALIASES:
        return
    from outlive.domain.text.nearest import nearest

    close = nearest(word, (*VERBS, *ALIASES, *_OTHER_NAMES, "help", "version"))
    close = _OTHER_NAMES.get(close or "", close)
    raise UserError(
        f"there is no command {word!r}",
        f"did you mean `outlive {close}`?" if close else "`outlive help` lists the commands",
    )


def _unexpected(error: Exception) -> OutliveError:
    if isinstance(error, OSError):
        return OutliveError(f"the system refused: {error}", "check open files, memory and disk, then try again")
    return OutliveError(
        f"unexpected {type(error).__name__}: {error}",
        "this is a defect of Outlive; with OUTLIVE_DEBUG=1, the command prints the traceback",
    )


def _complain(error: OutliveError, *, as_json: bool) -> int:
    from outlive.domain.text.sanitize import shown, to_json

    try:
        sys.stdout.flush()  # if stdout and stderr go to the same file, this keeps their lines in order
    except OSError:
        pass
    if as_json:
        fields = {"code": error.code, "message": shown(error.message), "hint": shown(error.hint)}
        sys.stderr.write(to_json({"error": fields}) + "\n")
    else:
        fact, hint = (" ".join(shown(text).split("\n")) for text in (error.message, error.hint))
        sys.stderr.write(f"outlive: {fact}\nhint: {hint}\n")
    return error.exit_code
