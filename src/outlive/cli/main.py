"""The entry point of the command line, which loads only the requested command."""

from __future__ import annotations

import os
import sys

from outlive.domain.errors import OutliveError, UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from outlive.cli.parser import Command

# The verbs in the order of the help. Each verb has a module in `outlive.cli.commands`, which defines COMMAND.
VERBS = (
    "run", "agent", "list", "show", "output", "transcript", "wait", "result", "cancel", "retry", "adopt", "send",
    "ports", "effects", "session", "inbox", "ack", "dismiss", "gate", "guard", "hand-off", "sink", "sweep", "audit",
    "completion", "install", "uninstall", "doctor", "hook", "mcp",
)  # fmt: skip
ALIASES = {"ps": "list", "logs": "output"}
# Names that other tools use for similar commands. These names do not work here, but the error for such a name suggests
# our command.
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
# The module is named here as text and not imported, because the command line must not depend on other packages of its
# layer.
ENTRIES = {"hook": "outlive.hooks.entry"}


def main_and_exit() -> NoReturn:
    """Run the command of this process, and exit without the usual cleanup of Python."""
    _open_standard_descriptors()
    code = main()
    sys.stderr.flush()
    os._exit(code)


def _open_standard_descriptors() -> None:
    """Open the descriptors 0, 1 and 2 if the caller has closed them.

    Otherwise a lock file could get one of these numbers, and the keeper would lose the lock when it closes its standard
    streams.
    """
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - the stream must stay open until this process exits
        # Escape characters that the locale cannot encode. Otherwise printing them would end the command with an error.
        getattr(sys, name).reconfigure(errors="backslashreplace")


def main(argv: list[str] | None = None) -> int:
    """Run one command, and return its exit code."""
    words = sys.argv[1:] if argv is None else argv
    as_json = "--json" in (words[: words.index("--")] if "--" in words else words)
    try:
        return _dispatch(words)
    except OutliveError as error:
        return _complain(error, as_json=as_json)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of the output has closed the pipe, as `head` does. That is not an error of this command.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("OUTLIVE_DEBUG"):
            raise
        return _complain(_unexpected(error), as_json=as_json)
    finally:
        sys.stdout.flush()


def load(verb: str) -> Command:
    """Return the `Command` object of a subcommand."""
    module = __import__(f"outlive.cli.commands.{ALIASES.get(verb, verb).replace('-', '_')}", fromlist=["COMMAND"])
    command: Command = module.COMMAND
    return command


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

    command = load(words[0])
    given = parse(command, words[1:])
    if given.help:
        print(help_text(command))
        return 0
    return command.act(given)


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
        sys.stdout.flush()  # keeps the lines in order if stdout and stderr go to the same file
    except OSError:
        pass
    if as_json:
        fields = {"code": error.code, "message": shown(error.message), "hint": shown(error.hint)}
        sys.stderr.write(to_json({"error": fields}) + "\n")
    else:
        fact, hint = (" ".join(shown(text).split("\n")) for text in (error.message, error.hint))
        sys.stderr.write(f"outlive: {fact}\nhint: {hint}\n")
    return error.exit_code
