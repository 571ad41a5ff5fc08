"""A second launch of a command that already runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.servers import LISTEN, PYTHON, free_port
from tests.support import wait_until

if TYPE_CHECKING:
    from tests.support import Bench


def watcher(bench: Bench, name: str = "nodemon") -> str:
    """Make a program with the name of a known watcher, and return its path."""
    path = bench.root / name
    path.write_text("#!/bin/sh\nexec sleep 60\n")
    path.chmod(0o755)
    return str(path)


def test_launch_is_refused_when_the_same_watcher_runs(bench: Bench) -> None:
    """The error names the running task, and nothing is started."""
    program = watcher(bench)
    task = bench.ok("run", "--", program)
    done = bench.run("run", "--", program)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"already running: {task} (" in done.stderr
    assert f"hint: use that task: `outlive output {task}`" in done.stderr
    assert [each["id"] for each in bench.json("list")["tasks"]] == [task]
    error = json.loads(bench.run("run", "--json", "--", program).stderr)["error"]
    assert error["code"] == "already_running"


def test_launch_is_refused_when_the_same_command_listens_on_a_port(bench: Bench) -> None:
    """A command with any name is a server if it listens, and the error says how to wait for it."""
    port = free_port()
    words = ("run", "--", PYTHON, "-c", LISTEN, "0", f"127.0.0.1:{port}")
    task = bench.ok(*words)
    bench.ok("wait", task, "--until", f"port:{port}")
    done = bench.run(*words)
    assert done.returncode == 2
    assert f"listens on {port})" in done.stderr
    assert f"`outlive wait {task} --until port:{port}`" in done.stderr


def test_second_copy_of_a_watcher_starts_when_it_is_wanted(bench: Bench) -> None:
    """`--again`, a group, a key, another directory and another port in the environment start a second copy."""
    program = watcher(bench)
    first = bench.ok("run", "--", program)
    (bench.project / "sub").mkdir()
    for options in (("--again",), ("--group", "g"), ("--key", "k"), ("--cwd", "sub"), ("--env", "PORT=3001")):
        assert bench.ok("run", *options, "--", program) != first
    assert bench.run("run", "--env", "PORT=3001", "--", program).returncode == 2
    assert bench.run("run", "--", program, "--other").returncode == 0


def test_launch_is_refused_when_only_the_leased_ports_differ(bench: Bench) -> None:
    """The leased port of the running task is no reason to start a second copy."""
    program = watcher(bench)
    bench.ok("run", "--port", "web", "--", program)
    assert bench.run("run", "--port", "web", "--", program).returncode == 2


def test_second_copy_of_a_job_is_started_with_a_note(bench: Bench) -> None:
    """A command that is no server runs twice, and the note names the first copy."""
    first = bench.launch("sleep 60")
    second = bench.run("run", "sleep 60")
    assert second.returncode == 0
    assert second.stderr == (
        f"note: already running: {first} (the same command in the same directory);"
        f" {second.stdout.strip()} is another copy\n"
    )


def test_watcher_starts_again_when_the_first_one_has_ended(bench: Bench) -> None:
    """Only running tasks count."""
    program = watcher(bench)
    task = bench.ok("run", "--", program)
    bench.ok("cancel", task)
    assert bench.ok("run", "--", program) != task


def test_sdk_refuses_a_second_copy_of_a_watcher(bench: Bench) -> None:
    """The exception is a `Conflict`, and `again` starts another copy."""
    program = watcher(bench)
    code = (
        "import outlive, sys; o = outlive.Outlive(); c = [sys.argv[1]]; o.run(c)\n"
        "try: o.run(c)\n"
        "except outlive.Conflict as e: print(e.code)\n"
        "print(o.run(c, again=True).was_started)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, program],
        env=bench.env,
        cwd=bench.project,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["already_running", "True"]


def test_key_of_a_cancelled_task_starts_the_task_again(bench: Bench) -> None:
    """After a cancelled or failed task, the same call starts its next attempt. After a success, nothing starts."""
    task = bench.launch("test -e stop || sleep 60", "--key", "dev")
    assert bench.launch("test -e stop || sleep 60", "--key", "dev") == task
    bench.ok("cancel", task)
    again = bench.run("run", "--key", "dev", "test -e stop || sleep 60")
    assert (again.returncode, again.stdout.strip()) == (0, task)
    assert "was started again as attempt 2: attempt 1 was cancelled" in again.stderr
    assert bench.show(task)["state"] == "running"
    process = wait_until(lambda: bench.files(task, 2).read_slot("process"), "the second attempt")
    os.kill(int(process["pid"]), signal.SIGKILL)
    bench.run("wait", task)
    assert bench.show(task)["state"] == "failed"
    (bench.project / "stop").touch()
    bench.launch("test -e stop || sleep 60", "--key", "dev")
    bench.run("wait", task)
    assert (bench.show(task)["state"], bench.show(task)["attempt"]) == ("succeeded", 3)
    assert bench.launch("test -e stop || sleep 60", "--key", "dev") == task
    assert bench.show(task)["attempt"] == 3
