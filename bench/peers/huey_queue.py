"""The program a user of huey writes: a queue with one function, its consumer, and a script that submits.

python huey_queue.py consume DATABASE THREADS
python huey_queue.py submit DATABASE COMMAND...
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from huey import SqliteHuey  # type: ignore[import-untyped]


def run_command(argv: list[str]) -> tuple[int, str]:
    """Run a command; its exit code and output are the result."""
    ran = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return ran.returncode, ran.stdout


# huey calls a task by its module, which is `__main__` in the consumer and another one in the bench.
run_command.__module__ = "huey_queue"


def open_queue(database: str) -> tuple[Any, Any]:
    """The queue and its function. `fsync` because a record is compared that survives a power cut."""
    queue = SqliteHuey(filename=database, fsync=True)
    return queue, queue.task(name="run_command")(run_command)


def main(verb: str, database: str, *words: str) -> None:
    """Consume or submit."""
    queue, submit = open_queue(database)
    if verb == "consume":
        queue.create_consumer(workers=int(words[0])).run()
    else:
        print(submit(list(words)).id)


if __name__ == "__main__":
    main(*sys.argv[1:])
