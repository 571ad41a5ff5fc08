"""`outlive completion`: the script with which a shell completes our words, and what it asks us for."""

from __future__ import annotations

import os
import sys

from outlive.cli import place
from outlive.cli.options import Command, Given
from outlive.domain.errors import UserError
from outlive.domain.text import one_line, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from outlive.domain.task import Task

SHELLS = ("bash", "zsh", "fish")
_NEWEST = 50  # tasks: more than anybody reads in a list of candidates
_LOOKED_AT = 500  # tasks, for the names of their groups: one group may well have fifty


def act(given: Given) -> int:
    """Print a script; or, called back by one, the names that exist at this moment."""
    if given.words in (["tasks"], ["groups"]):
        return _print_known(given.words[0])
    if len(given.words) != 1 or given.words[0] not in SHELLS:
        raise UserError("completion takes the name of a shell", f"one of: {', '.join(SHELLS)}")
    shell = given.words[0]
    script = _script(shell)
    if given.json:
        from outlive.cli.render import print_json

        print_json({"shell": shell, "script": script})
    else:
        sys.stdout.write(script)
    return 0


def _script(shell: str) -> str:
    from outlive.cli.shells.verbs import verbs

    module = __import__(f"outlive.cli.shells.{shell}", fromlist=["script"])
    text: str = module.script(verbs())
    return text


def _print_known(what: str) -> int:
    """One name a line, or nothing at all: somebody has pressed a key, not given a command."""
    try:
        lines = list(_tasks() if what == "tasks" else _groups())
    except Exception:  # noqa: BLE001 - whatever is wrong, the next command will say it, and be read
        lines = []
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def _tasks() -> Iterator[str]:
    """Ids, newest first, each with a tab and what it is."""
    for task in _newest(_NEWEST):
        what = one_line(task.launch.description or task.launch.command, 60)
        yield f"{task.id}\t{task.state}: {what}"


def _groups() -> Iterator[str]:
    """Names of groups, newest first; without those that a line of text could not carry as they are."""
    for name in dict.fromkeys(task.launch.group for task in _newest(_LOOKED_AT)):
        if name and name == plain(name) and not {"\t", "\n"} & set(name):
            yield name


def _newest(limit: int) -> Sequence[Task]:
    """Tasks of this project as the ledger has them; no state directory is made, no task is settled."""
    from outlive.bundle.home import Home, locate
    from outlive.ledger.contract import Selection
    from outlive.ledger.glance import Glance

    with Glance(Home(locate(os.environ)).ledger) as ledger:
        return ledger.tasks(Selection(project=place.project(), limit=limit))


COMMAND = Command(
    name="completion",
    summary="the completion script of a shell",
    usage="outlive completion bash|zsh|fish",
    takes=SHELLS,
    details=(
        "Completes verbs, options and their values, ids and groups of this project, and the command after\n"
        "`run --`. The script asks `outlive completion tasks` and `outlive completion groups` for names."
    ),
    examples=(
        ('eval "$(outlive completion bash)"', "in ~/.bashrc"),
        ('eval "$(outlive completion zsh)"', "in ~/.zshrc, after compinit"),
        ("outlive completion fish > ~/.config/fish/completions/outlive.fish", "once, and after every upgrade"),
        (
            "outlive completion bash > ~/.local/share/bash-completion/completions/outlive",
            "the same for bash, where the package bash-completion is installed: read when first needed",
        ),
        ("outlive completion zsh > ~/.zfunc/_outlive", "the same for zsh, from any directory of its fpath"),
    ),
    act=act,
)
