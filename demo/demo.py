"""A demonstration with real processes of tasks that outlive their session.

The next session gets one notice for each task. `make demo` runs the demonstration. All files are in a temporary
directory, which is removed at the end.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outlive.linux.processes import opened_by

if TYPE_CHECKING:
    from collections.abc import Iterable

OUTLIVE = str(Path(sysconfig.get_path("scripts")) / "outlive")
PLACE = Path(tempfile.mkdtemp(prefix="outlive-demo-"))
PROJECT = PLACE / "project"
ENV = {
    **os.environ,
    "OUTLIVE_HOME": str(PLACE / "state"),
    "NO_COLOR": "1",
    "PATH": f"{Path(OUTLIVE).parent}:{os.environ['PATH']}",
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "demo"),
    **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "demo@example.org"),
}
COLOURS = sys.stdout.isatty()
# The agent of session A launches these four tasks. One task is a `git stash`, which removes the agent's uncommitted fix
# from the files for some seconds.
TASKS = {
    "a build that fails": "sleep 2; echo 'ld: symbol not found'; exit 1",
    "a quick check": "sleep 1; echo all good",
    "the stash": "git stash push -q -- app.py && sh test.sh; git stash pop -q",
    "a long run": "for i in 1 2 3 4 5 6; do echo part $i of 6; sleep 1; done",
}


def say(text: str) -> None:
    """Print a heading of the demonstration."""
    print(f"\n\x1b[1m{text}\x1b[0m" if COLOURS else f"\n{text}", flush=True)


def call(*words: str, session: str, quiet: bool = False) -> str:
    """Run a command of Outlive inside a session.

    The command line is printed as the agent would type it.
    """
    if not quiet:
        print("  $ outlive " + " ".join(w if " " not in w else repr(w) for w in words), flush=True)
    env = {**ENV, "OUTLIVE_SESSION": session}
    done = subprocess.run([OUTLIVE, *words], env=env, cwd=PROJECT, capture_output=True, text=True, check=False)
    if not quiet:
        for line in (done.stdout + done.stderr).splitlines():
            print("    " + line, flush=True)
    if done.returncode not in (0, 1):
        sys.exit(f"the demo failed: exit code {done.returncode}: {done.stderr}")
    return done.stdout.strip()


def read(*words: str, session: str = "B") -> Any:
    """Run a command of Outlive, and return the JSON document that it prints.

    The command and the document are not shown.
    """
    return json.loads(call(*words, "--json", session=session, quiet=True))


def told_of(text: str, tasks: Iterable[str]) -> list[str]:
    """Return the tasks that a text reports in a line of their own.

    A task that is only mentioned in the line of another task does not count.
    """
    return [task for line in text.splitlines() for task in tasks if line.lstrip(" -").startswith(f"{task} ")]


def keeper_of(task: str) -> int:
    """Return the process id of a task's keeper.

    The keeper is the process that has the task's control FIFO open.
    """
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            if Path(f"/proc/{name}/comm").read_text() != "outlive-keeper\n":
                continue
            opened = opened_by(int(name))
        except OSError:
            continue
        if any(f"/{task}/" in path and path.endswith("/control") for path in opened):
            return int(name)
    sys.exit("the demo failed: no keeper found")


def wait_until_observed(task: str) -> None:
    """Wait until the keeper records which files the task changes.

    If the keeper were killed earlier, there would be no record of these changes.
    """
    until = time.monotonic() + 5
    while read("show", task)["effects"]["level"] == "unknown" and time.monotonic() < until:
        time.sleep(0.02)


def make_project() -> None:
    """Make a git repository with a bug fix that is not committed yet."""
    PROJECT.mkdir()
    (PROJECT / "app.py").write_text("answer = 41\n")
    (PROJECT / "test.sh").write_text("sleep 3; grep -q 42 app.py && echo green || echo red, as expected\n")
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "begin")):
        subprocess.run(["git", *words], cwd=PROJECT, env=ENV, check=True)
    (PROJECT / "app.py").write_text("answer = 42\n")


def main() -> None:
    """Run the demonstration in five steps, and check its results."""
    make_project()
    say("1. An agent's session A begins. The agent starts four tasks; each `run` prints the id of its task.")
    client = subprocess.Popen(["sleep", "600"], start_new_session=True)
    call("session", "begin", "--session", "A", "--client", "demo", "--pid", str(client.pid), session="A")
    tasks = {call("run", "--description", what, text, session="A"): what for what, text in TASKS.items()}

    say("2. The agent's program is killed, and so is the keeper of the long run. The tasks go on.")
    os.killpg(client.pid, signal.SIGKILL)
    client.wait()
    print(f"  kill -9 {client.pid}   (the program of session A, which cannot report its own end)")
    long_run = next(task for task, what in tasks.items() if what == "a long run")
    wait_until_observed(long_run)
    keeper = keeper_of(long_run)
    os.kill(keeper, signal.SIGKILL)
    print(f"  kill -9 {keeper}   (the keeper of {long_run}, the long run)")
    call("session", "list", session="B")

    say("3. Session B continues session A. Before it acts, it reads this hand-off:")
    successor = subprocess.Popen(["sleep", "600"], start_new_session=True)
    words = ("session", "begin", "--session", "B", "--client", "demo", "--source", "resume")
    handed = call(*words, "--pid", str(successor.pid), session="B")
    heard = Counter(told_of(handed.partition("still running")[0], tasks))

    say("4. Session B may not stop while a task runs. It sleeps at the gate until there is something to report.")
    call("gate", session="B")
    while True:
        if not read("gate", "--wait")["untold"]:
            break
        heard.update(told_of(call("inbox", session="B"), tasks))
    call("gate", session="B")
    call("inbox", session="B")
    print("    (no notice is left: each ending was reported once)")

    say("5. Nothing is lost: all four tasks are recorded with their true endings.")
    call("list", session="B")
    shown = {what: read("show", task) for task, what in tasks.items()}
    successor.kill()
    successor.wait()
    seen = {
        "all four endings were reported to B, each once": heard == Counter(list(tasks)),
        "each notice is acknowledged": {
            notice["state"] for each in shown.values() for notice in each["notices"]
        } == {"acked"},
        "the exit codes are correct": [each["exit_code"] for each in shown.values()] == [1, 0, 0, 0],
        "the long run outlived its keeper, with all six lines": shown["a long run"]["output"]["tail"].count("\n") == 6,
        "the test failed during the stash, and the fix is back": "red" in shown["the stash"]["output"]["tail"]
        and "42" in (PROJECT / "app.py").read_text(),
    }  # fmt: skip
    say("Results:")
    for what, held in seen.items():
        print(f"  {'yes' if held else 'NO '}  {what}")
    if not all(seen.values()):
        sys.exit("the demo failed")


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(PLACE, ignore_errors=True)
