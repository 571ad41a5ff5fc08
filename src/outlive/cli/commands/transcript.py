"""`outlive transcript`: print what an agent, its user and its tools have written."""

from __future__ import annotations

import sys

from outlive.cli import context
from outlive.cli.formatting import print_json
from outlive.cli.parser import Command, Given, option, whole_number
from outlive.domain.text.wrapper_tags import without_wrapper_tags
from outlive.keeper.spawn import launch_adopter
from outlive.linux.reader_gone import reader_of_output, watch_departures
from outlive.service.agents.transcript import (
    entry_document,
    entry_lines,
    follow_transcript,
    read_transcript,
    request_of,
    transcript_document,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from outlive.bundle.home import Home
    from outlive.domain.tasks.task import Task


def act(given: Given) -> int:
    """Print the entries of an agent's transcript that the options select."""
    home, task = context.one_task(given, "transcript")
    request_of(task)
    if given.follow:
        return _follow(home, task, given)
    found = read_transcript(home, task, since=given.since or 0, last=given.last, with_tools=given.tools)
    document = transcript_document(task, found)
    if given.json:
        print_json(document)
    else:
        _print(document["entries"])
    return 0


def _follow(home: Home, task: Task, given: Given) -> int:
    """Print new entries until the task has ended or the reader of the output exits."""
    batches = follow_transcript(
        home,
        task,
        since=given.since or 0,
        last=given.last,
        with_tools=given.tools,
        adopter=launch_adopter,
        departures=watch_departures(ends=(reader_of_output(),)),
    )
    for batch in batches:
        documents = [entry_document(entry) for entry in batch]
        if given.json:
            for document in documents:
                print_json({"task": task.id, **document})
        else:
            _print(documents)
        sys.stdout.flush()
    return 0


def _print(entries: Iterable[dict[str, Any]]) -> None:
    for entry in entries:
        for line in entry_lines(entry):
            print(without_wrapper_tags(line))


COMMAND = Command(
    name="transcript",
    summary="print what an agent, its user and its tools have said",
    usage="outlive transcript ID [options]",
    takes="task",
    details=(
        "The transcript is read from the output that Outlive keeps of all attempts. So it remains when the client\n"
        "deletes its own session. Entries are numbered in the order of their arrival, and printed in the order of\n"
        "their times. An entry keeps its number while the agent works. To continue, give `next` of one call as\n"
        "`--since` of the next call. Secrets are masked."
    ),
    options=(
        option("--since N", "print only the entries after number N", whole_number),
        option("--last N", "print only the last N entries", whole_number),
        option("--tools", "also print tool calls, their results, thinking, errors and sub-agents"),
        option("--follow", "print new entries until the task has ended"),
    ),
    examples=(
        ("outlive transcript t7k2 --last 5", "print the last five messages"),
        ("outlive transcript t7k2 --tools --follow", "print everything that the agent does, as it happens"),
    ),
)
