"""`outlive send`: send input to a running task."""

from __future__ import annotations

import sys

from outlive.cli import context
from outlive.cli.formatting import print_json
from outlive.cli.parser import Command, Given, Option
from outlive.domain.errors import UserError
from outlive.keeper.spawn import launch_adopter
from outlive.service.clock import utc_now
from outlive.service.tasks.read import find
from outlive.service.tasks.send import MOST_AT_ONCE, send


def act(given: Given) -> int:
    """Send a line, the content of stdin, or only the end of the input, to a task."""
    if len(given.words) not in (1, 2) or (len(given.words) == 1 and not given.eof):
        raise UserError(
            "send takes an id and a text", "outlive send ID TEXT; outlive send ID - < FILE; outlive send ID --eof"
        )
    home = context.here()
    task = find(home, given.words[:1], launch_adopter)[0]
    sent = send(home, task.id, _content(given), launch_adopter, is_last=bool(given.eof))
    if given.json:
        from outlive.service.tasks.task_document import task_document

        print_json(task_document(home, sent, utc_now()))
    return 0


def _content(given: Given) -> bytes:
    if len(given.words) == 1:
        return b""
    if given.words[1] == "-":
        return sys.stdin.buffer.read(MOST_AT_ONCE + 1)
    ending = "" if given.no_newline else "\n"
    return (given.words[1] + ending).encode("utf-8", "surrogateescape")


COMMAND = Command(
    name="send",
    summary="send a line of input to a running task (launched with --stdin)",
    usage="outlive send ID TEXT",
    takes="task",
    details=(
        "The task gets TEXT and a newline. With `-` as TEXT, the task gets standard input, unchanged. If\n"
        "the task does not read, the command waits for at most 10 seconds, and says how much the task has\n"
        "taken."
    ),
    options=(
        Option(name="--eof", help="end the task's input after the text"),
        Option(name="--no-newline", help="send the text without a newline"),
    ),
    examples=(
        ("outlive send t7k2 yes", "answers the question of the task"),
        ("outlive send t7k2 --eof", "ends the input"),
    ),
    act=act,
)
