"""Run the commands of docs/how-to/agents.md with the real clients, and paste their output into the page.

`make docs-agents` runs `python -m tests.clients.agents_page`. The files of the example are in the page, and its
commands are in this module. Claude Code, Codex and OpenCode run in a temporary home directory. A scripted model answers
their requests, and the model of Codex is overloaded.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.clients.model import Asked, Fail, Model, Reply, Say, Use
from tests.clients.rig import Rig, program
from tests.clients.rigs.claude import Claude
from tests.clients.rigs.codex import Codex
from tests.clients.rigs.opencode import OpenCode
from tests.git_steps import ENVIRON, Worktree
from tests.support import Bench

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "docs/how-to/agents.md"
HOME = "/home/u"
BLOCK = re.compile(r"(<!-- output of make docs-agents: (\w+) -->\n```console\n)(.*?)(```\n)", re.DOTALL)
FILE = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```\n", re.DOTALL)
_KIMI = "moonshotai/kimi-k2"
_LONGEST_S = 300


@dataclass(frozen=True)
class Step:
    """A command on the page.

    In its text, `{name}` stands for the id of the task with this name, and `{state}` for the state directory.
    """

    text: str
    names: str = ""
    """The name of the task whose id the command prints."""
    exit_code: int = 0
    is_in_session: bool = False
    """Whether the shell of a client's session runs the command, so that this session receives the ending."""


# The tasks of a fan-out have their descriptions as names.
BLOCKS: dict[str, tuple[Step, ...]] = {
    "launch": (Step("outlive agent --fan-out reviews.jsonl --group reviews --worktree", is_in_session=True),),
    "wait": (Step("outlive wait --group reviews"),),
    "notice": (Step("outlive inbox", is_in_session=True),),
    "result": (Step("outlive result {faults}"), Step("outlive result {security}")),
    "transcript": (Step("outlive transcript {faults} --tools"),),
    "worktree": (
        Step("cd {state}/worktrees/{faults} && git status --short"),
        Step("cd {state}/worktrees/{faults} && git add -A && git commit -qm 'Test the discount'"),
        Step("git merge outlive/{faults}"),
        Step("git worktree remove {state}/worktrees/{faults}"),
        Step("git branch -d outlive/{faults}"),
    ),
    "summary": (
        Step(
            "(echo 'Make one list of these reviews, the worst fault first:';"
            " for each in {faults} {security} {clarity}; do outlive result $each; done)"
            " | outlive agent --model sonnet --wait 10m -"
        ),
    ),
    "question": (
        Step("outlive agent -- 'Delete what nobody uses.'", names="question"),
        Step("outlive wait {question}", exit_code=1),
        Step("outlive result {question}", exit_code=1),
    ),
    "reply": (
        Step("outlive agent --resume {question} -- 'Yes, delete it.'", names="reply"),
        Step("outlive wait {reply}"),
        Step("outlive result {reply}"),
    ),
    "trace": (
        Step("outlive agent --category security --trace -- 'Can the total become negative?'", names="trace"),
        Step("outlive wait {trace}"),
        Step("cat {state}/tasks/{trace}/decisions.jsonl"),
    ),
}
TEST = "from cart import total\n\n\ndef test_discount_is_not_larger_than_the_sum():\n    assert total([5], 9) == 0\n"


def answer(asked: Asked) -> list[Reply]:
    """Return the scripted model's replies to one request of the example."""
    if asked.path.endswith("/responses"):
        return [Fail(429, "Rate limit reached for gpt-5", "rate_limit_error")]
    if "Make one list" in asked.all:
        return [Say("1. cart.py:2: the sum can become negative (faults, security).\n2. `discount` is not explained.")]
    if "Delete what nobody uses" in asked.all:
        if "Yes, delete it" in asked.all:
            return [Say("legacy.py is deleted.")]
        question = {"question": "Nothing imports legacy.py. May I delete it?", "header": "Delete", "multiSelect": False}
        options = [{"label": "yes", "description": "delete it"}, {"label": "no", "description": "keep it"}]
        asks = Use("AskUserQuestion", {"questions": [{**question, "options": options}]})
        return [Say("May I delete legacy.py?")] if asked.results else [asks]
    if "faults" in asked.all:
        return _faults(asked)
    if "attacker" in asked.all:
        return [Say("cart.py:2: a client that sends discount=1000 gets money back. Check it on the server.")]
    return [Say("cart.py:1: say in a docstring whether `discount` is an amount or a rate.")]


def _faults(asked: Asked) -> list[Reply]:
    found = re.search(r"/[^\s\"\\\\]+/worktrees/\w+", json.dumps(asked.body))
    cwd = found.group() if found else "."
    look = Use("Bash", {"command": "git show --stat HEAD", "description": "Show the last commit"})
    write = Use("Write", {"file_path": f"{cwd}/test_cart.py", "content": TEST})
    said = "cart.py:2: a discount that is larger than the sum gives a negative total. test_cart.py shows it."
    steps: list[Reply] = [look, write, Say(said)]
    return [steps[min(asked.results, 2)]]


class Example:
    """A user with three clients. The user's shell runs the commands of the page."""

    def __init__(self, root: Path, model: Model, files: dict[str, str]) -> None:
        self.bench = Bench(root)
        self.home = root / "home"
        self.bench.project = self.home / "shop"
        self.bench.state = self.home / ".local/state/outlive"
        self.bench.env = {}
        self.rigs: list[Rig] = [kind(self.bench, model) for kind in (Claude, Codex, OpenCode)]
        path = ":".join(rig.environment()["PATH"] for rig in self.rigs)
        git = {name: text for name, text in ENVIRON.items() if name.startswith("GIT_")}
        self.bench.env |= {**git, "PATH": path, "NO_COLOR": "1"}
        for rig in self.rigs:
            rig.configure()
        settings = self.home / ".config/opencode/opencode.json"
        text = (
            settings.read_text()
            .replace('"scripted/scripted"', f'"{_KIMI}"')
            .replace('"scripted": {', '"moonshotai": {', 1)
        )
        settings.write_text(text.replace('"scripted": {', '"kimi-k2": {"cost": {"input": 0.6, "output": 2.5}, ', 1))
        self._commit()
        for name, content in files.items():
            file = self.bench.project / name.replace("~", str(self.home))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        self.machine = Path(self.bench.home.path).name
        self.names = {"state": f"~/.local/state/outlive/{self.machine}"}

    def _commit(self) -> None:
        tree = Worktree(self.bench.project)
        tree.commit(**{"cart.py": "def total(prices):\n    return sum(prices)\n", "legacy.py": "OLD = 1\n"})
        tree.commit(**{"cart.py": "def total(prices, discount=0):\n    return sum(prices) - discount\n"})

    def transcript(self, steps: tuple[Step, ...]) -> str:
        """Run the commands, and return a text that shows each command with its output."""
        return "".join(self._run(step) for step in steps)

    def _run(self, step: Step) -> str:
        command = step.text.format(**self.names)
        done = subprocess.run(
            ("bash", "-c", command),
            env={**self.bench.env, **({"OUTLIVE_SESSION": "lead"} if step.is_in_session else {})},
            cwd=self.bench.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_LONGEST_S,
            check=False,
        )
        if done.returncode != step.exit_code:
            raise SystemExit(f"{command}: exit code {done.returncode}\n{done.stdout}")
        self._learn_ids(step, done.stdout)
        return self._stable(f"$ {command}\n{done.stdout}")

    def _learn_ids(self, step: Step, printed: str) -> None:
        if step.names:
            self.names[step.names] = printed.split(maxsplit=1)[0]
        for task in self.bench.json("list", "--all", "--limit", "0")["tasks"]:
            if task.get("description"):
                self.names[task["description"]] = task["id"]

    def _stable(self, printed: str) -> str:
        """Return an output without the parts that depend on this machine. These parts are removed or replaced."""
        text = printed.replace(str(self.home), HOME).replace(self.machine, "MACHINE")
        return "".join(f"{line.rstrip()}\n" for line in text.splitlines())

    def clean(self) -> None:
        """End all processes that this example has started."""
        for rig in self.rigs:
            rig.clean()
        self.bench.clean()


def commands_of(page: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each block of commands on a page, with the name of the block."""
    for _, name, content, _ in BLOCK.findall(page):
        yield name, [line[2:] for line in content.splitlines() if line.startswith("$ ")]


def main() -> None:
    """Write the outputs of the commands into the page."""
    missing = [kind.name for kind in (Claude, Codex, OpenCode) if not program(kind.name).exists()]
    if missing:
        raise SystemExit(f"not installed: {', '.join(missing)}\nhint: make test-clients installs the clients")
    page = PAGE.read_text()
    with tempfile.TemporaryDirectory() as top, Model() as model:
        model.answer = answer
        example = Example(Path(top), model, dict(FILE.findall(page)))
        try:
            made = {name: example.transcript(steps) for name, steps in BLOCKS.items()}
        finally:
            example.clean()
    PAGE.write_text(BLOCK.sub(lambda found: found[1] + made[found[2]] + found[4], page))


if __name__ == "__main__":
    main()
