"""The main job, played with real processes: a task outlives everybody who started it.

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
import time
from pathlib import Path

OUTLIVE = str(Path(sysconfig.get_path("scripts")) / "outlive")
PROJECT = Path(tempfile.mkdtemp(prefix="outlive-demo-"))
ENV = {**os.environ, "OUTLIVE_HOME": str(PROJECT / "state"), "NO_COLOR": "1"}
COLOURS = sys.stdout.isatty()


def say(text: str) -> None:
    """A line of the story."""
    print(f"\n\x1b[1m{text}\x1b[0m" if COLOURS else f"\n{text}", flush=True)


def call(*words: str, check: bool = True) -> str:
    """Run a command of Outlive, showing it as a user would type it."""
    print("  $ outlive " + " ".join(w if " " not in w else repr(w) for w in words), flush=True)
    done = subprocess.run([OUTLIVE, *words], env=ENV, cwd=PROJECT, capture_output=True, text=True, check=False)
    for line in (done.stdout + done.stderr).splitlines():
        print("    " + line, flush=True)
    if check and done.returncode not in (0, 1):
        sys.exit(f"the demo failed: exit code {done.returncode}")
    return done.stdout.strip()


def keeper_of(task: str) -> int:
    """The process that keeps a task: it has the task's control FIFO open."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            if Path(f"/proc/{name}/comm").read_text() != "outlive-keeper\n":
                continue
            opened = [os.readlink(f"/proc/{name}/fd/{fd}") for fd in os.listdir(f"/proc/{name}/fd")]
        except OSError:
            continue
        if any(f"/{task}/" in path and path.endswith("/control") for path in opened):
            return int(name)
    sys.exit("the demo failed: no keeper found")


def main() -> None:
    """The story in four steps."""
    say("1. An agent's session starts long work, and is shot while it waits for it.")
    session = subprocess.Popen(
        [OUTLIVE, "run", "--wait", "1h", "--session", "s-1", "--description", "run the test suite",
         "for i in 1 2 3 4 5; do echo test $i passed; sleep 0.5; done; echo 1 failed; exit 3"],
        env=ENV, cwd=PROJECT, stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    task = ""
    while not task:
        listed = subprocess.run(
            [OUTLIVE, "list", "--json"], env=ENV, cwd=PROJECT, capture_output=True, text=True, check=True
        )
        task = next((found["id"] for found in json.loads(listed.stdout)["tasks"]), "")
    print(f"  the session runs as process {session.pid}, its task is {task}")
    os.killpg(session.pid, signal.SIGKILL)
    session.wait()
    print(f"  kill -9 {session.pid}   (the session, with its whole process group)")
    call("list")

    say("2. The keeper, which looks after the task, is shot as well.")
    keeper = keeper_of(task)
    os.kill(keeper, signal.SIGKILL)
    print(f"  kill -9 {keeper}   (the keeper)")
    call("output", task)

    say("3. Another session waits for it; the kernel wakes it at the end, nobody polls.")
    began = time.monotonic()
    call("wait", task)
    print(f"    (slept for {time.monotonic() - began:.1f} s)")

    say("4. Nothing is lost: exit code, output, record.")
    call("show", task)
    shown = json.loads(
        subprocess.run(
            [OUTLIVE, "show", task, "--json"], env=ENV, cwd=PROJECT, capture_output=True, text=True, check=True
        ).stdout
    )
    kept = {
        "exit code 3 kept": shown["exit_code"] == 3,
        "all 6 lines of output kept": len(shown["output"]["tail"].splitlines()) == 6,
        "one notice for session s-1": [n["session"] for n in shown["notices"]] == ["s-1"],
    }
    say("Seen:")
    for what, held in kept.items():
        print(f"  {'yes' if held else 'NO '}  {what}")
    if not all(kept.values()):
        sys.exit("the demo failed")


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(PROJECT, ignore_errors=True)
