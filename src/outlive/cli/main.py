"""The entry: find the verb, load it and nothing else, and turn errors into two lines."""

from __future__ import annotations

import os
import sys

from outlive.domain.errors import OutliveError, UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from outlive.cli.options import Command

# In the order of the help. Each is a module of `outlive.cli` with a COMMAND in it.
VERBS = (
    "run", "list", "show", "output", "wait", "result", "cancel", "retry", "send", "effects",
    "session", "inbox", "ack", "dismiss", "gate", "guard", "hand-off", "sink", "sweep", "audit", "completion",
    "install", "uninstall", "doctor", "hook", "mcp",
)  # fmt: skip
ALIASES = {"ps": "list", "logs": "output"}
# Surfaces of their own, which take their words as they are; named and not imported, because no
# surface depends on another one.
ENTRIES = {"hook": "outlive.hooks.entry"}


def main_and_exit() -> NoReturn:
    """Run the command of this process, and leave without taking the interpreter apart first."""
    _open_standard_descriptors()
    code = main()
    sys.stderr.flush()
    os._exit(code)


def _open_standard_descriptors() -> None:
    """A caller may have closed 0, 1 or 2: a lock that got such a number would not survive the keeper."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for good
        # What a narrow locale cannot show is escaped; it must not be the end of a command.
        getattr(sys, name).reconfigure(errors="backslashreplace")


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    words = sys.argv[1:] if argv is None else argv
    as_json = "--json" in (words[: words.index("--")] if "--" in words else words)
    try:
        return _dispatch(words)
    except OutliveError as error:
        return _complain(error, as_json=as_json)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has left; what it did not read it did not want.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("OUTLIVE_DEBUG"):
            raise
        return _complain(_unexpected(error), as_json=as_json)
    finally:
        sys.stdout.flush()


def load(verb: str) -> Command:
    """The command of a verb."""
    module = __import__(f"outlive.cli.{ALIASES.get(verb, verb).replace('-', '_')}", fromlist=["COMMAND"])
    command: Command = module.COMMAND
    return command


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("help", "--help", "-h"):
        from outlive.cli.help import print_help

        return print_help(words[1:])
    if words[0] in ("--version", "version"):
        from outlive import __version__

        print(f"outlive {__version__}")
        return 0
    if words[0] not in VERBS and words[0] not in ALIASES:
        raise UserError(f"there is no command {words[0]!r}", "`outlive help` lists them")
    if words[0] in ENTRIES and "--help" not in words:
        return int(__import__(ENTRIES[words[0]], fromlist=["main"]).main(words[1:]))
    from outlive.cli.options import help_text, parse

    command = load(words[0])
    given = parse(command, words[1:])
    if given.help:
        print(help_text(command))
        return 0
    return command.act(given)


def _unexpected(error: Exception) -> OutliveError:
    if isinstance(error, OSError):
        return OutliveError(f"the system refused: {error}", "check open files, memory and disk, then try again")
    return OutliveError(
        f"unexpected {type(error).__name__}: {error}",
        "a defect of Outlive; OUTLIVE_DEBUG=1 shows where",
    )


def _complain(error: OutliveError, *, as_json: bool) -> int:
    from outlive.domain.text import shown, to_json

    if as_json:
        fields = {"code": error.code, "message": shown(error.message), "hint": shown(error.hint)}
        sys.stderr.write(to_json({"error": fields}) + "\n")
    else:
        fact, hint = (" ".join(shown(text).split("\n")) for text in (error.message, error.hint))
        sys.stderr.write(f"outlive: {fact}\nhint: {hint}\n")
    return error.exit_code
