"""`outlive retry`: a new attempt of a task that has ended."""

from __future__ import annotations

from outlive.cli import place
from outlive.cli.options import Command, Given
from outlive.cli.render import print_json
from outlive.domain.errors import UserError
from outlive.keeper.launching import launch_adopter
from outlive.service.clock import utc_now
from outlive.service.retry import retry
from outlive.service.view import find, task_document


def act(given: Given) -> int:
    """Try one task again."""
    if len(given.words) != 1:
        raise UserError("retry takes one id", "outlive retry ID")
    home = place.here()
    task = find(home, given.words, launch_adopter)[0]
    again = retry(home, task, place.surroundings({}, foreground=task.launch.mode == "foreground"), utc_now())
    if given.json:
        print_json(task_document(home, find(home, [again], launch_adopter)[0], utc_now()))
    else:
        print(again)
    return 0


COMMAND = Command(
    name="retry",
    summary="a new attempt of a task that has ended",
    usage="outlive retry ID",
    takes="task",
    details="Same command and directory, today's environment. Earlier attempts keep their output and ending.",
    examples=(("outlive retry t7k2", "prints the same id: it is the same task"),),
    act=act,
)
