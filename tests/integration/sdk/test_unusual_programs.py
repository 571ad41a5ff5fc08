"""The SDK in programs that replace descriptors, fork, handle signals or are killed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from outlive import Outlive, OutliveError, UserError

if TYPE_CHECKING:
    from tests.support import Bench


def test_sdk_refuses_invalid_options(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK raises `UserError` for each invalid option, and leaves no bundle behind."""
    monkeypatch.chdir(bench.project)
    client = Outlive(home=str(bench.state))
    calls: list[dict[str, object]] = [
        {"env": {"A": "x\0y"}},
        {"env": {"": "x"}},
        {"description": "a\ud800"},
        {"group": "\ud800"},
        {"cwd": "a\0b"},
        {"timeout": float("nan")},
        {"timeout": -1},
        {"timeout": "soon"},
        {"retain": float("inf")},
        {"max_output": 1 << 70},
        {"notify": "maybe"},
    ]
    for options in calls:
        with pytest.raises(UserError):
            client.run("true", **options)  # type: ignore[arg-type]
    with pytest.raises(UserError):
        client.run(["sleep", 1])  # type: ignore[list-item]
    assert os.listdir(client._home.tasks) == []


def test_sdk_launches_after_the_program_replaced_the_spawners_descriptor(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a program replaces the socket of the helper process that launches tasks, the next launch starts another one.

    The SDK neither writes to the file that now has this descriptor nor closes it. This also holds in a fork of the
    program.
    """
    from outlive.sdk import outlive as sdk

    monkeypatch.chdir(bench.project)
    client = Outlive(home=str(bench.state))
    client.run("true").wait()
    assert sdk._spawner._socket is not None
    place = sdk._spawner._socket.fileno()
    mine, its = socket.socketpair()
    with mine, its:
        os.dup2(its.fileno(), place)
        child = os.fork()
        if child == 0:
            os._exit(os.fstat(place).st_ino != os.fstat(its.fileno()).st_ino)
        assert os.waitpid(child, 0)[1] == 0
        assert client.run("exit 3").wait().exit_code == 3
        assert os.fstat(place).st_ino == os.fstat(its.fileno()).st_ino
        mine.setblocking(False)
        with pytest.raises(BlockingIOError):
            mine.recv(1)
        os.close(place)


def test_sdk_launch_fails_when_the_working_directory_is_gone(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the working directory is gone, the SDK raises an error.

    It does not run the command in the directory that PWD names.
    """
    gone = bench.project / "gone"
    gone.mkdir()
    monkeypatch.setenv("PWD", str(bench.project))
    client = Outlive(home=str(bench.state))
    before = os.getcwd()
    os.chdir(gone)
    gone.rmdir()
    try:
        with pytest.raises(OutliveError):
            client.run("pwd")
    finally:
        os.chdir(before)


def test_sdk_run_returns_its_own_task_after_an_interrupted_run(bench: Bench) -> None:
    """If a signal handler interrupts a call of `run`, the next call returns its own task, and no other one."""
    script = """
import signal, time
from outlive import Outlive
class Stop(Exception): pass
def stop(*_): raise Stop
signal.signal(signal.SIGALRM, stop)
o = Outlive()
o.run(["true"])
for pause in (0.002, 0.004, 0.006, 0.008, 0.010):
    signal.setitimer(signal.ITIMER_REAL, pause)
    try:
        o.run(["echo", "first"])
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Stop:
        pass
    assert o.run(["echo", "second"]).command == "echo second"
print("right")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env=bench.env, cwd=bench.project, capture_output=True, text=True, check=False
    )
    assert done.stdout == "right\n", done.stderr


def test_sdk_works_in_a_child_forked_while_threads_use_it(bench: Bench) -> None:
    """A child process can launch a task and wait for it, even if it was forked while threads used the SDK."""
    script = """
import os, threading, time
from outlive import Outlive
o = Outlive()
slow = o.run("sleep 60")
threading.Thread(target=slow.wait, daemon=True).start()
def read():
    while True:
        o.tasks(all_projects=True)
        slow.refresh()
for _ in range(2):
    threading.Thread(target=read, daemon=True).start()
threading.Thread(target=lambda: [o.run(["true"]) for _ in range(10)], daemon=True).start()
statuses = []
for _ in range(20):
    child = os.fork()
    if child == 0:
        code = o.run("exit 3").wait().exit_code
        os._exit(0 if code == 3 else 1)
    statuses.append(os.waitpid(child, 0)[1])
print(statuses, flush=True)
os._exit(0)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=bench.env,
        cwd=bench.project,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == f"{[0] * 20}\n", done.stderr


def test_sdk_program_with_default_sigpipe_survives_a_dead_spawner(bench: Bench) -> None:
    """If the helper process that launches tasks was killed, a program that does not ignore SIGPIPE survives.

    It can launch another task.
    """
    script = """
import os, select, signal
from outlive import Outlive
from outlive.sdk import outlive as sdk
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
o = Outlive()
o.run(["true"])
spawner = int(sdk._spawner.ask({"verb": "who"})[0])
ended = os.pidfd_open(spawner)
os.kill(spawner, 9)
select.select([ended], [], [])
print(o.run("exit 4").wait().exit_code)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env=bench.env, cwd=bench.project, capture_output=True, text=True, check=False
    )
    assert done.stdout == "4\n", done.stderr


FEW = """
import resource, sys
from outlive import Outlive, Unavailable
limit = int(sys.argv[1])
client = Outlive()
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
tasks, hints = [], set()
for _ in range(8):
    try:
        tasks.append(client.run("sleep 0.5; exit 3"))
    except Unavailable as error:
        hints.add(error.hint)
for task in tasks:
    task.wait(30)
print(len(tasks), [task.exit_code for task in tasks].count(3), hints)
"""


@pytest.mark.parametrize("limit", [10, 18, 20, 22])
def test_sdk_launches_eight_tasks_or_names_the_limit_when_descriptors_are_few(bench: Bench, limit: int) -> None:
    """With few file descriptors, a program can launch eight tasks, or gets an error that names the limit."""
    done = subprocess.run(
        [sys.executable, "-c", FEW, str(limit)],
        env=bench.env,
        cwd=bench.project,
        capture_output=True,
        text=True,
        check=True,
    )
    if limit >= 18:
        assert done.stdout == "8 8 set()\n"
    else:
        assert done.stdout.startswith("0 0 {"), done.stdout
        assert done.stdout.count("ulimit -n") == 1, "the limit is not named exactly once"
    assert bench.json("audit")["findings"] == []


def test_keepers_are_no_descendants_of_the_sdk_program(bench: Bench) -> None:
    """If a program is killed with all its descendants, its tasks and their keepers survive."""
    script = """
import os, sys
from outlive import Outlive
task = Outlive().run("sleep 60")
def below(pid):
    children = open(f"/proc/{pid}/task/{pid}/children").read().split()
    return children + [grandchild for child in children for grandchild in below(child)]
print(task.id, len(below(os.getpid())))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env=bench.env, cwd=bench.project, capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[1] == "0"
