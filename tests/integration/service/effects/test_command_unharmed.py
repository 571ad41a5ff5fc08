"""Observing a command never breaks it."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from typing import TYPE_CHECKING

import pytest

from outlive.linux.seccomp import is_known_machine
from tests.session_steps import until
from tests.support import is_alive, kill, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.outsider import Outsider
    from tests.support import Bench

pytestmark = pytest.mark.skipif(not is_known_machine(), reason="the calls of this machine are not known")


BUSY = """
import os, sys
for number in range(300):
    name = f"x{number}"
    with open(name, "w") as file:
        file.write("a")
    os.rename(name, name + "y")
    os.mkdir(name + "d")
    os.rmdir(name + "d")
    os.unlink(name + "y")
print("done")
"""


@pytest.mark.parametrize("who", ["keeper", "witness"])
def test_command_succeeds_when_the_keeper_or_the_witness_is_killed(bench: Bench, who: str) -> None:
    """A command succeeds even if its keeper or its witness is killed at a random time.

    If the keeper is killed, the effects say since when the command was not observed. If the witness is killed, the
    command is still observed. The variable `KILLS` sets the number of kills. A run with `KILLS=175` takes too long for
    a usual test run.
    """
    (bench.project / "busy.py").write_text(BUSY)
    chance = random.Random(who)
    gaps = 0
    for _ in range(int(os.environ.get("KILLS", "12"))):
        task = bench.launch(f"{sys.executable} busy.py")
        pid = bench.keeper(task) if who == "keeper" else bench.process(task, "witness")
        time.sleep(chance.random() * 0.15)
        if is_alive(pid):
            kill(pid)
        assert bench.run("wait", task, "--timeout", "30s").returncode == 0, bench.show(task)
        shown = bench.show(task)
        assert (shown["exit_code"], shown["output"]["tail"]) == (0, "done\n")
        gaps += shown["effects"]["unobserved_since"] is not None
    assert (gaps > 0) == (who == "keeper")


def test_observation_continues_for_processes_left_running(bench: Bench, repo: Path) -> None:
    """If an ended task left a process running, its effects also list files that this process creates later."""
    program = "setsid sh -c 'touch up; while ! [ -e go ]; do sleep 0.05; done; echo late > late; touch finished' &"
    task = bench.launch(f"{program} {until('up')}")  # While a process executes a new program, it has no command line.
    bench.run("wait", task)
    assert bench.show(task)["state"] == "succeeded"
    (left,) = [each["pid"] for each in bench.show(task)["left_running"] if "while" in each["command"]] or [0]
    assert is_alive(left)
    (repo / "go").touch()
    wait_until((repo / "finished").exists, "the write of the process left running")
    assert wait_until(lambda: [p for p in bench.json("effects", task)["created"] if p.endswith("/late")])


def test_inner_task_and_tracer_run_inside_an_observed_task(bench: Bench) -> None:
    """A task and strace can run inside an observed task. The inner task is not observed, and its effects say why.

    The kernel refuses a second listener for system calls.
    """
    inner = " ".join(bench.command("run", "--wait", "20s", "--json"))
    task = bench.launch(f"{inner} true; strace -f -o trace true; cat trace | tail -1")
    bench.run("wait", task)
    line = bench.ok("output", task).splitlines()[0]
    document = json.loads(line)
    assert (document["state"], document["effects"]["level"]) == ("succeeded", "unknown")
    assert "another program observes them" in (document["effects"]["why_unseen"] or "")


def test_observed_calls_do_not_fail_under_frequent_signals(bench: Bench) -> None:
    """No system call of an observed program fails when the program receives a thousand signals per second.

    The program's signal handler is set to restart interrupted calls.
    """
    program = """
import os, signal
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for number in range(2000):
    os.close(os.open("x", os.O_CREAT | os.O_WRONLY))
    os.unlink("x")
signal.setitimer(signal.ITIMER_REAL, 0)
"""
    (bench.project / "program.py").write_text(program)
    task = bench.launch(f"{sys.executable} program.py")
    assert bench.run("wait", task, "--timeout", "60s").returncode == 0, bench.ok("output", task)


def test_observed_command_waits_while_its_keeper_is_stopped(bench: Bench) -> None:
    """If its keeper is stopped by SIGSTOP, an observed command waits. After SIGCONT, it ends with its own exit code."""
    task = bench.launch(f"{until('go')}; touch x; exit 6")
    keeper = bench.keeper(task)
    kill(keeper, signal.SIGSTOP)
    (bench.project / "go").touch()
    command = bench.process(task)
    time.sleep(0.3)
    assert is_alive(command)
    kill(keeper, signal.SIGCONT)
    bench.run("wait", task)
    assert bench.show(task)["exit_code"] == 6


def test_cancel_ends_a_command_that_waits_for_the_observer(bench: Bench) -> None:
    """A cancel ends a command that is in a system call which the observer has not answered."""
    (bench.project / "busy.py").write_text("while True:\n    open('x', 'w').close()\n")
    task = bench.launch(f"{sys.executable} busy.py")
    pid = bench.process(task)
    bench.ok("cancel", task)
    assert not is_alive(pid)
    assert bench.show(task)["signal"] in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL, None)


@pytest.mark.root
def test_task_of_an_unprivileged_user_is_observed(outsider: Outsider) -> None:
    """A task of a user without privileges is observed. Its processes have the flag NoNewPrivs."""
    (outsider.root / "state" / "mine").mkdir()
    os.chown(outsider.root / "state" / "mine", 65534, 65534)
    program = "git init -q . && echo a > a && mv a b && grep NoNewPrivs /proc/self/status"
    done = outsider.call("run", "--wait", "30s", "--json", "--cwd", str(outsider.root / "state" / "mine"), program)
    document = json.loads(done.stdout)
    assert (document["state"], document["effects"]["level"]) == ("succeeded", "observed")
    assert document["output"]["tail"] == "NoNewPrivs:\t1\n"


@pytest.mark.root
def test_set_id_program_that_the_command_names_keeps_its_privileges(outsider: Outsider) -> None:
    """If a command or its script names a set-id program, the program runs with its privileges.

    The task is not observed, and the effects say why.
    """
    place = outsider.root / "state" / "mine"
    place.mkdir()
    os.chown(place, 65534, 65534)
    (place / "script.sh").write_text(f"{outsider.become_root} id -u\n")
    for text in (f"{outsider.become_root} id -u", "sh script.sh # named"):
        done = outsider.call("run", "--wait", "30s", "--json", "--cwd", str(place), text)
        document = json.loads(done.stdout)
        assert (document["output"]["tail"], document["effects"]["level"]) == ("0\n", "unknown"), text
        assert "privileges" in document["effects"]["why_unseen"]


@pytest.mark.root
def test_hidden_set_id_program_is_reported_and_keeps_its_privileges_the_next_time(outsider: Outsider) -> None:
    """If a command's text does not name a set-id program, the program runs without privileges, and the effects say so.

    The next task whose text names the program is not observed, so the program keeps its privileges.
    """
    place = outsider.root / "state" / "mine"
    place.mkdir()
    os.chown(place, 65534, 65534)
    hidden = f"x={outsider.root}/set; $x''priv --reuid=0 id -u; echo setpriv | rev"
    done = outsider.call(
        "run", "--wait", "30s", "--json", "--cwd", str(place), hidden.replace("; echo setpriv | rev", "")
    )
    document = json.loads(done.stdout)
    assert document["effects"]["level"] == "partial"
    gap = "ran without its privileges; use --observe compare to keep the privileges"
    assert any(gap in each for each in document["effects"]["gaps"])
    done = outsider.call("run", "--wait", "30s", "--json", "--cwd", str(place), hidden + " # setpriv")
    assert json.loads(done.stdout)["effects"]["level"] == "unknown"
