"""The program that a user of huey writes.

It has a queue with one function, the queue's consumer, and a script that submits.

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


# huey names a task after its module. That is `__main__` in the consumer, but another module in the benchmark.
run_command.__module__ = "huey_queue"


def open_queue(database: str) -> tuple[Any, Any]:
    """Return the queue and its function.

    `fsync` is on, because huey is compared as a peer whose record survives a power failure.
    """
    queue = SqliteHuey(filename=database, fsync=True)
    return queue, queue.task(name="run_command")(run_command)


def main(verb: str, database: str, *words: str) -> None:
    """Run the consumer or submit a command."""
    queue, submit = open_queue(database)
    if verb == "consume":
        queue.create_consumer(workers=int(words[0])).run()
    else:
        print(submit(list(words)).id)


if __name__ == "__main__":
    main(*sys.argv[1:])
