"""`outlive send`: send input to a running task."""

from __future__ import annotations

import sys

from outlive.cli import context
from outlive.cli.formatting import print_json
from outlive.cli.parser import Command, Given, option
from outlive.domain.errors import UserError
from outlive.keeper.spawn import launch_adopter
from outlive.service.clock import utc_now
from outlive.service.tasks.read import find
from outlive.service.tasks.send import MOST_AT_ONCE, send


def act(given: Given) -> int:
    """Send a line or the content of stdin to a task. With `--eof`, close its input."""
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
    summary="send a line of input to a running task that was launched with --stdin",
    usage="outlive send ID TEXT",
    takes="task",
    details=(
        "This command sends the text and a newline. With `-` instead of a text, it sends its own standard input\n"
        "unchanged. If the task does not read, the command gives up after 10 seconds. The error tells how many bytes\n"
        "were accepted."
    ),
    options=(
        option("--eof", "close the task's input after the text, so that the task sees the end of the input"),
        option("--no-newline", "send the text without a newline"),
    ),
    examples=(
        ("outlive send t7k2 yes", "answer a question of the task"),
        ("outlive send t7k2 --eof", "close the input of the task"),
    ),
)
