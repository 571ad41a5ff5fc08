"""The program that a user of huey writes.

It has a queue with one function, a consumer that runs the queue's tasks, and a script that submits a command.

python huey_queue.py consume DATABASE THREADS

python huey_queue.py submit DATABASE COMMAND...
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from huey import SqliteHuey


def run_command(argv: list[str]) -> tuple[int, str]:
    """Run a command and return its exit code and output."""
    ran = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return ran.returncode, ran.stdout


# huey names a task after its module. The module is called `__main__` in the consumer and has another name in the
# benchmark, so the name is set here.
run_command.__module__ = "huey_queue"


def open_queue(database: str) -> tuple[Any, Any]:
    """Return huey's queue, and the function that submits a command to the queue.

    The database is synced to disk (`fsync`), because other peers also have records that survive a power failure.
    """
    queue = SqliteHuey(filename=database, fsync=True)
    return queue, queue.task(name="run_command")(run_command)


def main(verb: str, database: str, *words: str) -> None:
    """Run huey's consumer, or submit a command."""
    queue, submit = open_queue(database)
    if verb == "consume":
        queue.create_consumer(workers=int(words[0])).run()
    else:
        print(submit(list(words)).id)


if __name__ == "__main__":
    main(*sys.argv[1:])
