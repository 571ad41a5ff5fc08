"""The whole story with real processes: tasks outlive their session, and its successor hears of each once.

Run by `make demo`. Everything happens in a temporary home, which is removed at the end.
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
from collections import Counter
from pathlib import Path
from typing import Any

from outlive.bundle.processes import opened_by

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
# What the agent of session A types: four tasks, one of which takes its fix away for a while.
TASKS = {
    "a build that fails": "sleep 2; echo 'ld: symbol not found'; exit 1",
    "a quick check": "sleep 1; echo all good",
    "the stash": "git stash push -q -- app.py && sh test.sh; git stash pop -q",
    "a long run": "for i in 1 2 3 4 5 6; do echo part $i of 6; sleep 1; done",
}


def say(text: str) -> None:
    """A line of the story."""
    print(f"\n\x1b[1m{text}\x1b[0m" if COLOURS else f"\n{text}", flush=True)


def call(*words: str, session: str, quiet: bool = False) -> str:
    """Run a command of Outlive inside a session, showing it as the agent would type it."""
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
    """The JSON of a command, not shown."""
    return json.loads(call(*words, "--json", session=session, quiet=True))


def keeper_of(task: str) -> int:
    """The process that keeps a task: it has the task's control FIFO open."""
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


def make_project() -> None:
    """A repository with a fix that is not committed yet."""
    PROJECT.mkdir()
    (PROJECT / "app.py").write_text("answer = 41\n")
    (PROJECT / "test.sh").write_text("sleep 3; grep -q 42 app.py && echo green || echo red, as expected\n")
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "begin")):
        subprocess.run(["git", *words], cwd=PROJECT, env=ENV, check=True)
    (PROJECT / "app.py").write_text("answer = 42\n")


def main() -> None:
    """The story in five steps."""
    make_project()
    say("1. Session A begins, and its agent starts four tasks.")
    client = subprocess.Popen(["sleep", "600"], start_new_session=True)
    call("session", "begin", "--session", "A", "--client", "demo", "--pid", str(client.pid), session="A")
    tasks = {call("run", "--description", what, text, session="A"): what for what, text in TASKS.items()}

    say("2. Its client is shot; so is the keeper that looks after the long run.")
    os.killpg(client.pid, signal.SIGKILL)
    client.wait()
    print(f"  kill -9 {client.pid}   (the client of session A: no end event, no goodbye)")
    long_run = next(task for task, what in tasks.items() if what == "a long run")
    keeper = keeper_of(long_run)
    os.kill(keeper, signal.SIGKILL)
    print(f"  kill -9 {keeper}   (the keeper of {long_run})")
    call("session", "list", session="B")

    say("3. Session B continues it under a new id, and is told before it acts.")
    successor = subprocess.Popen(["sleep", "600"], start_new_session=True)
    words = ("session", "begin", "--session", "B", "--client", "demo", "--source", "resume")
    handed = call(*words, "--pid", str(successor.pid), session="B")
    heard: Counter[str] = Counter(task for task in tasks if f"{task} " in handed.partition("still running")[0])

    say("4. It may not stop yet. It waits at the gate, and the kernel wakes it; nobody polls.")
    call("gate", session="B")
    while True:
        if not read("gate", "--wait")["untold"]:
            break
        heard.update(notice["task"]["id"] for notice in read("inbox", "--peek")["notices"])
        call("inbox", session="B")
    call("gate", session="B")
    call("inbox", session="B")
    print("    (nothing: each was told once)")

    say("5. Nothing is lost.")
    call("list", session="B")
    shown = {what: read("show", task) for task, what in tasks.items()}
    successor.kill()
    successor.wait()
    seen = {
        "all four endings were told to B, each once": heard == Counter(list(tasks)),
        "each of them is acknowledged": {
            notice["state"] for each in shown.values() for notice in each["notices"]
        } == {"acked"},
        "the exit codes are the true ones": [each["exit_code"] for each in shown.values()] == [1, 0, 0, 0],
        "the long run outlived its keeper, all six lines of it": shown["a long run"]["output"]["tail"].count("\n") == 6,
        "the stash was red while the fix was away, and the fix is back": "red" in shown["the stash"]["output"]["tail"]
        and "42" in (PROJECT / "app.py").read_text(),
    }  # fmt: skip
    say("Seen:")
    for what, held in seen.items():
        print(f"  {'yes' if held else 'NO '}  {what}")
    if not all(seen.values()):
        sys.exit("the demo failed")


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(PLACE, ignore_errors=True)
