"""`outlive completion`: print the completion script of a shell.

When the user presses Tab, the script calls this command to get the candidates for the next word.
"""

from __future__ import annotations

import sys

from outlive.cli.parser import Command, Given
from outlive.domain.errors import UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SHELLS = ("bash", "zsh", "fish")


def act(given: Given) -> int:
    """Print the completion script of a shell, or candidates that a script asks for."""
    # Completion scripts of older versions call this command with `tasks` or `groups`. Users may have saved such a
    # script.
    if given.words in (["candidates"], ["tasks"], ["groups"]):
        return _print_answer(given.words[0], given.rest or [])
    if len(given.words) != 1 or given.words[0] not in SHELLS:
        raise UserError("completion takes the name of a shell", f"give one of: {', '.join(SHELLS)}")
    shell = given.words[0]
    from outlive.cli import completion

    with open(f"{completion.__path__[0]}/outlive.{shell}", encoding="utf-8") as file:
        script = file.read()
    if given.json:
        from outlive.cli.formatting import print_json

        print_json({"shell": shell, "script": script})
    else:
        sys.stdout.write(script)
    return 0


def _print_answer(what: str, words: Sequence[str]) -> int:
    """Print one candidate for the next word per line, or nothing after an error."""
    try:
        from outlive.cli.completion import candidates

        lines = candidates.answer(words) if what == "candidates" else list(getattr(candidates, what)())
    except Exception:  # noqa: BLE001 - an error message would appear in the line that the user is typing
        lines = []
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


COMMAND = Command(
    name="completion",
    has_command=True,
    summary="print the completion script of a shell",
    usage="outlive completion bash|zsh|fish",
    takes=SHELLS,
    details=(
        "The script completes commands, options and their values, task ids and groups of this project, and the\n"
        "command after `run --`. At each completion, the script calls `outlive completion candidates`."
    ),
    examples=(
        ('eval "$(outlive completion bash)"', "load the completion; put this line into ~/.bashrc"),
        ('eval "$(outlive completion zsh)"', "load the completion; put this line into ~/.zshrc, after compinit"),
        (
            "outlive completion fish > ~/.config/fish/completions/outlive.fish",
            "install the completion for fish; run this once",
        ),
        (
            "outlive completion bash > ~/.local/share/bash-completion/completions/outlive",
            "install the completion for bash; this needs the package bash-completion, which loads the file when needed",
        ),
        (
            "outlive completion zsh > ~/.zfunc/_outlive",
            "install the completion for zsh; any directory in the `fpath` of zsh works",
        ),
    ),
)
