"""`outlive agent`: launch a background agent and print the id of its task."""

from __future__ import annotations

import sys

from outlive.cli import context
from outlive.cli.commands.run import COMMAND as RUN
from outlive.cli.commands.run import check_before_launch, report, request_of
from outlive.cli.parser import Command, Given, Option, whole_number
from outlive.domain.errors import UserError
from outlive.domain.tasks.command import from_argv
from outlive.service.agents.launch import WantedAgent, launch_agent
from outlive.service.clock import utc_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home

# Options of `run` that are about a terminal or about input, which an agent does not have.
_NOT_FOR_AGENTS = ("--stdin",)


def act(given: Given) -> int:
    """Launch one agent or several, and print what `run` would print."""
    home = context.here()
    wanted = WantedAgent(
        prompt="" if given.fan_out else _prompt(given),
        client=given.client,
        model=given.model,
        fallback=None if given.fallback is None else _names(given.fallback),
        category=given.category,
        resume=given.resume,
        budget_usd=given.budget,
        max_tokens=given.max_tokens,
        max_turns=given.max_turns,
        has_worktree=bool(given.worktree),
        is_traced=bool(given.trace),
    )
    # The command is replaced by the client's, once the client has been chosen.
    request = request_of(home, given, from_argv(("agent",)))
    if given.fan_out:
        return _fan_out(home, given, wanted)
    check_before_launch(home, given, request)
    return report(home, given, launch_agent(home, wanted, request, utc_now()))


def _prompt(given: Given) -> str:
    """Return the prompt: the words after `--`, one word, or all of standard input."""
    words = given.rest if given.rest is not None else given.words
    if given.rest is not None and given.words:
        raise UserError(f"{given.words[0]!r} stands before `--`", "options first, then --, then the prompt")
    if given.rest is None and len(words) > 1:
        raise UserError("the prompt has several words and no `--` before them", "outlive agent -- PROMPT")
    if list(words) != ["-"]:
        return " ".join(words)
    content = sys.stdin.buffer.read() if sys.stdin is not None else b""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError("the prompt on standard input is not UTF-8", "convert it first: iconv -t UTF-8") from error


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _fan_out(home: Home, given: Given, wanted: WantedAgent) -> int:
    """Launch the agents of a file as one group, and print their ids."""
    from outlive.cli.formatting import print_json
    from outlive.service.agents.fan_out import launch_all, read_list

    if given.words or given.rest is not None:
        raise UserError("the prompts are in the file of --fan-out", "leave out the prompt")
    if given.key is not None or given.resume is not None or given.wait is not None:
        raise UserError(
            "--key, --resume and --wait are for one agent", "leave them out, and use `outlive wait --group`"
        )
    listed = read_list(given.fan_out, wanted)
    request = request_of(home, given, from_argv(("agent",)))
    group, tasks = launch_all(home, listed, request, utc_now())
    if given.json:
        print_json({"group": group, "tasks": tasks})
    else:
        print("\n".join(tasks))
        print(f"group {group}: outlive wait --group {group}", file=sys.stderr)
    return 0


def _dollars(text: str) -> float:
    try:
        found = float(text.removeprefix("$"))
    except ValueError:
        found = -1.0
    if not 0 < found < 1e6:
        raise UserError(f"{text[:40]!r} is not an amount of money", "US dollars, such as 2.50")
    return found


def _positive(text: str) -> int:
    if (found := whole_number(text)) == 0:
        raise UserError("0 would end the agent before it began", "give a number of 1 or more")
    return found


COMMAND = Command(
    name="agent",
    summary="launch a background agent; prints the id of its task",
    usage="outlive agent [options] -- PROMPT    or    outlive agent [options] - < FILE",
    has_command=True,
    details=(
        "Runs a coding agent without a terminal: Claude Code, Codex, OpenCode, Gemini CLI, or any program that\n"
        "your settings describe. The agent has your rights, and it cannot ask you anything while it works.\n"
        "If its model is unavailable, Outlive tries the next model of --fallback. `outlive result ID` prints\n"
        "the answer, and `outlive transcript ID` prints what the agent did."
    ),
    options=(
        Option(name="--client", metavar="NAME", help="claude, codex, opencode, gemini, or a name of your settings"),
        Option(name="--model", metavar="M", help="the model, as the client names it"),
        Option(
            name="--fallback",
            metavar="LIST",
            help="models to try if one is unavailable: M2,CLIENT:M3",
        ),
        Option(name="--category", metavar="NAME", help="a category of your settings, with its model and limits"),
        Option(name="--resume", metavar="ID", help="continue the session of that task, or this session of the client"),
        Option(name="--budget", metavar="USD", help="end it when it has cost more", parse=_dollars),
        Option(name="--max-tokens", metavar="N", help="end it when it has used more tokens", parse=_positive),
        Option(name="--max-turns", metavar="N", help="end it when it begins another turn", parse=_positive),
        Option(name="--worktree", help="give it a git worktree and a branch of its own"),
        Option(
            name="--fan-out",
            metavar="FILE",
            help="launch each line as an agent, all as one group: a prompt, or JSON with prompt, model, ...",
        ),
        Option(name="--trace", help="record why each model was chosen (`decisions.jsonl` in the task's directory)"),
        *(option for option in RUN.options if option.name not in _NOT_FOR_AGENTS),
    ),
    examples=(
        ("outlive agent -- 'Review the last commit'", "prints an id such as t7k2m9q4"),
        ("outlive agent --client codex --fallback claude:opus -- 'Fix the build'", "another model if one is down"),
        ("outlive agent --worktree --model sonnet - < task.md", "the prompt of a file, in a worktree of its own"),
        ("outlive agent --resume t7k2 -- 'Yes, delete it'", "answers what an agent has asked"),
    ),
    act=act,
)
