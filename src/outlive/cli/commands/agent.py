"""`outlive agent`: launch a background agent and print the id of its task."""

from __future__ import annotations

import sys

from outlive.cli import context
from outlive.cli.commands.run import COMMAND as RUN
from outlive.cli.commands.run import check_before_launch, report, request_of
from outlive.cli.parser import Command, Given, option, whole_number
from outlive.domain.errors import UserError
from outlive.domain.tasks.command import from_argv
from outlive.domain.text.units import parse_duration
from outlive.service.agents.launch import WantedAgent, launch_agent
from outlive.service.clock import utc_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home

# These options of `run` are not options of `agent`, because an agent takes no input while it runs.
_NOT_FOR_AGENTS = ("--stdin",)


def act(given: Given) -> int:
    """Launch one agent, or all agents that a file describes.

    For one agent, this prints what `run` prints for a task.
    """
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
    # `plan_agent` chooses the client. It then puts the client's command line in place of the empty command here.
    request = request_of(home, given, from_argv(("agent",)))
    if given.fan_out:
        return _fan_out(home, given, wanted)
    check_before_launch(home, given, request)
    return report(home, given, launch_agent(home, wanted, request, utc_now()))


def _prompt(given: Given) -> str:
    """Return the prompt that the user gave.

    The prompt is the text after `--`, or a single word. If it is `-`, the prompt is read from standard input.
    """
    words = given.rest if given.rest is not None else given.words
    if given.rest is not None and given.words:
        raise UserError(f"{given.words[0]!r} stands before `--`", "give the options first, then --, then the prompt")
    if given.rest is None and len(words) > 1:
        raise UserError("the prompt has several words and no `--` before them", "outlive agent -- PROMPT")
    if list(words) != ["-"]:
        return " ".join(words)
    content = sys.stdin.buffer.read() if sys.stdin is not None else b""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            "the prompt on standard input is not UTF-8", "convert the prompt first: iconv -t UTF-8"
        ) from error


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _fan_out(home: Home, given: Given, wanted: WantedAgent) -> int:
    """Launch the agents that a file describes as one group, and print their ids."""
    from outlive.cli.formatting import print_json
    from outlive.service.agents.fan_out import launch_all, read_list

    if given.words or given.rest is not None:
        raise UserError(
            "a prompt and --fan-out cannot be given together", "leave out the prompt; the file has the prompts"
        )
    if given.key is not None or given.resume is not None or given.wait is not None:
        raise UserError(
            "--key, --resume and --wait cannot be used with --fan-out",
            "leave them out; `outlive wait --group` waits for all agents",
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
        raise UserError(f"{text[:40]!r} is not an amount of money", "give US dollars, such as 2.50")
    return found


def _positive(text: str) -> int:
    if (found := whole_number(text)) == 0:
        raise UserError("a limit of 0 would end the agent before it began", "give a number of 1 or more")
    return found


# `agent` has its own text for `--idle-timeout`. A command is ended when it prints nothing, but an agent is ended when
# it makes no progress.
_IDLE_TIMEOUT = option(
    "--idle-timeout D",
    "end the attempt if the agent makes no progress for this time; progress is text, or the beginning or end of a "
    "tool call (while a tool runs, the limit is one hour)",
    parse_duration,
)

COMMAND = Command(
    name="agent",
    summary="launch a background agent, and print the id of its task",
    usage="outlive agent [options] -- PROMPT    or    outlive agent [options] - < FILE",
    has_command=True,
    details=(
        "This command runs a coding agent without a terminal: Claude Code, Codex, OpenCode, Gemini CLI, or any\n"
        "program that your settings describe. The agent has your rights, and it cannot ask you anything while it\n"
        "works. If its model is unavailable, Outlive tries the next model of --fallback. `outlive result ID` prints\n"
        "the answer, and `outlive transcript ID` prints what the agent said and did."
    ),
    options=(
        option(
            "--client NAME", "use this client: claude, codex, opencode, gemini, or a client that your settings define"
        ),
        option("--model M", "use this model; give the client's own name for the model"),
        option("--fallback LIST", "try these models, in this order, if a model is unavailable: M2,CLIENT:M3"),
        option("--category NAME", "use the model and the limits of this category of your settings"),
        option("--resume ID", "continue the session of the task with this id, or the client's session with this id"),
        option("--budget USD", "end the agent when it has cost more than this", _dollars),
        option("--max-tokens N", "end the agent when it has used more tokens than this", _positive),
        option("--max-turns N", "end the agent when it begins turn N+1", _positive),
        option("--worktree", "give the agent its own git worktree and branch"),
        option(
            "--fan-out FILE",
            "launch one agent for each line of FILE, as a group; a line is a prompt, or JSON (prompt, model, ...)",
        ),
        option("--trace", "record in `decisions.jsonl` of the task's directory why each model was chosen"),
        *(
            _IDLE_TIMEOUT if each.name == _IDLE_TIMEOUT.name else each
            for each in RUN.options
            if each.name not in _NOT_FOR_AGENTS
        ),
    ),
    examples=(
        ("outlive agent -- 'Review the last commit'", "launch an agent, and print an id such as t7k2m9q4"),
        (
            "outlive agent --client codex --fallback claude:opus -- 'Fix the build'",
            "use Claude's opus if Codex's model is unavailable",
        ),
        (
            "outlive agent --worktree --model sonnet - < task.md",
            "read the prompt from a file, and give the agent its own worktree",
        ),
        ("outlive agent --resume t7k2 -- 'Yes, delete it'", "answer the question with which an agent has ended"),
    ),
)
