"""Cancelling: the whole tree, in steps, truthfully, and never anybody else."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import is_alive, kill, wait_until

if TYPE_CHECKING:
    from tests.outsider import Outsider
    from tests.support import Bench

# Six ways to get out of a parent's sight, each leaving its process id behind.
TREE = """
sleep 101 & echo $! >> pids
setsid sh -c 'echo $$ >> pids; exec sleep 102' &
(setsid sh -c 'echo $$ >> pids; exec sleep 103' &)
env -i sh -c 'echo $$ >> pids; exec sleep 104' &
(env -i setsid sh -c 'echo $$ >> pids; trap "" INT TERM; while :; do sleep 1; done' &)
echo $$ >> pids
sleep 106
"""


def _pids(bench: Bench, count: int) -> list[int]:
    path = bench.project / "pids"
    wait_until(lambda: path.exists() and len(path.read_text().split()) == count, "the tree")
    return [int(pid) for pid in path.read_text().split()]


def test_the_whole_tree_ends(bench: Bench) -> None:
    """Children that called setsid, double-forked, cleared their environment or ignore SIGTERM."""
    task = bench.launch(TREE)
    pids = _pids(bench, 6)
    assert bench.ok("cancel", task)
    assert [pid for pid in pids if is_alive(pid)] == []
    shown = bench.show(task)
    assert (shown["state"], shown["reason"], shown["left_running"]) == ("cancelled", "requested", [])


def test_interrupt_comes_first(bench: Bench) -> None:
    """Row 23: a script sees SIGINT before SIGTERM, and may clean up."""
    task = bench.launch("trap 'echo int' INT; trap 'echo term; exit 9' TERM; echo ready; while :; do sleep 0.1; done")
    bench.ok("wait", task, "--until", "ready")
    bench.ok("cancel", task)
    words = bench.ok("output", task).split()
    assert words.index("int") < words.index("term")
    shown = bench.show(task)
    assert (shown["state"], shown["exit_code"]) == ("cancelled", 9)


@pytest.mark.root
def test_a_survivor_means_that_it_was_not_cancelled(outsider: Outsider) -> None:
    """Row 22: something that may not be signalled survives: exit code 5, and not `cancelled`."""
    task = outsider.call("run", f"{outsider.become_root} sleep 60 & echo $!; sleep 60").stdout.strip()
    survivor = int(wait_until(lambda: outsider.call("output", task).stdout or None))
    done = outsider.call("cancel", task)
    assert done.returncode == 5, done.stderr
    assert f"something is still alive (processes {survivor})" in done.stderr
    assert is_alive(survivor)
    shown = json.loads(outsider.call("show", task, "--json").stdout)
    assert (shown["state"], shown["reason"]) == ("failed", "cancel_incomplete")
    assert [left["pid"] for left in shown["left_running"]] == [survivor]
    kill(survivor)


@pytest.mark.root
def test_a_command_that_cannot_be_ended_stays_running(outsider: Outsider) -> None:
    """The command itself may not be signalled: it is still running, and nothing else is claimed."""
    task = outsider.call("run", f"exec {outsider.become_root} sleep 61.61").stdout.strip()
    assert outsider.call("cancel", task).returncode == 5
    shown = json.loads(outsider.call("show", task, "--json").stdout)
    assert shown["state"] == "running"
    kill(wait_until(lambda: _find_command("61.61")))
    outsider.call("wait", task)


def _find_command(text: str) -> int | None:
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and text.encode() in Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0"):
                return int(name)
        except OSError:
            continue
    return None


def test_descendant_tasks_end_on_request(bench: Bench) -> None:
    """Row 24: a tree of three tasks ends with `--descendants`; a stranger's task lives."""
    call = " ".join(bench.command("run"))
    stranger = bench.launch("sleep 60")
    script = bench.project / "nest.sh"
    script.write_text(f'[ "$1" -gt 1 ] && {call} -- sh nest.sh $(($1 - 1)) >> inner; sleep 60\n')
    top = bench.launch("sh nest.sh 3")
    inner = wait_until(lambda: ids if len(ids := _lines(bench.project / "inner")) == 2 else None, "three levels")
    bench.ok("cancel", "--descendants", top)
    assert {bench.show(task)["state"] for task in (top, *inner)} == {"cancelled"}
    assert bench.show(stranger)["state"] == "running"


def test_without_being_asked_only_the_named_task_ends(bench: Bench) -> None:
    """A task launched from inside another has a life of its own."""
    outer = bench.launch(" ".join(bench.command("run", "--", "sleep", "60")) + " > inner; sleep 60")
    inner = wait_until(lambda: _lines(bench.project / "inner"))[0]
    bench.ok("cancel", outer)
    assert bench.show(inner)["state"] == "running"


def _lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def test_which_task_is_meant_is_never_guessed(bench: Bench) -> None:
    """Row 25: no id with two active tasks is an error; own session by default; a prefix works."""
    assert bench.run("cancel").returncode == 2
    mine = bench.launch("sleep 60", "--session", "s-1")
    theirs = bench.launch("sleep 60", "--session", "s-2")
    both = bench.run("cancel")
    assert both.returncode == 2
    assert mine in both.stderr
    assert theirs in both.stderr
    bench.ok("cancel", env={"OUTLIVE_SESSION": "s-1"})
    assert [bench.show(task)["state"] for task in (mine, theirs)] == ["cancelled", "running"]
    bench.ok("cancel", theirs[:6])
    assert bench.show(theirs)["state"] == "cancelled"


def test_a_group_is_cancelled_as_one(bench: Bench) -> None:
    """`--group` ends its members and nobody else."""
    members = [bench.launch("sleep 60", "--group", "g") for _ in range(3)]
    other = bench.launch("sleep 60")
    bench.ok("cancel", "--group", "g")
    assert {bench.show(task)["state"] for task in members} == {"cancelled"}
    assert bench.show(other)["state"] == "running"


@pytest.mark.root
def test_a_reused_process_id_is_never_signalled(bench: Bench) -> None:
    """The number of a dead command is given to a stranger; no look at the task touches it.

    It happens in a PID namespace of its own, where nobody else takes the numbers.
    """
    if subprocess.run(["unshare", "-pf", "--mount-proc", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no PID namespaces here")
    script = bench.project / "reuse.py"
    script.write_text(REUSE)
    done = subprocess.run(
        ["unshare", "-pf", "--mount-proc", *bench.command()[:1], str(script), *bench.command()],
        env=bench.env,
        cwd=bench.project,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.split() == ["reused", "20", "of", "20,", "alive", "20"], done.stdout + done.stderr


REUSE = """
import json, os, subprocess, sys
def call(*words):
    # We are init here: orphans are ours to reap, and so subprocess may find its child gone.
    return subprocess.run([*sys.argv[1:], *words], capture_output=True, text=True)
def record(task):
    path = [os.path.join(d, "record") for d, _, f in os.walk(os.environ["OUTLIVE_HOME"]) if "record" in f and task in d]
    raw = open(path[0], "rb").read()[1024:1536].decode().split(" crc=")[0]
    return dict(pair.split("=") for pair in raw.split(" "))
reused = alive = 0
for _ in range(20):
    task = call("run", "--", "sleep", "60").stdout.strip()
    slot = record(task)
    command, witness = int(slot["pid"]), int(slot["witness"])
    keeper = int(open(f"/proc/{witness}/stat").read().rpartition(")")[2].split()[1])
    for pid in (keeper, witness, command):
        os.kill(pid, 9)
    left = {keeper, witness, command}
    while left:
        left.discard(os.waitpid(-1, 0)[0])
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write(str(command - 1))
    stranger = os.fork()
    if stranger == 0:
        os.execvp("sleep", ["sleep", "60"])
    reused += stranger == command
    call("cancel", task)
    assert json.loads(call("show", task, "--json").stdout)["state"] == "lost"
    alive += os.waitpid(stranger, os.WNOHANG) == (0, 0)
    os.kill(stranger, 9)
    os.waitpid(stranger, 0)
print("reused", reused, "of 20, alive", alive)
"""
