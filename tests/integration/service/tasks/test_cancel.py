"""Cancelling ends the whole process tree, records the true state, and signals no other process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.processes import KEEPER_NAME, WITNESS_NAME
from outlive.service.clock import utc_now
from tests.support import is_alive, kill, open_files, processes_named, wait_until

if TYPE_CHECKING:
    from tests.outsider import Outsider
    from tests.support import Bench

# A process tree whose processes detach from their parents in several ways. Each process writes its id to a file.
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


def test_cancel_ends_the_whole_process_tree(bench: Bench) -> None:
    """A cancel also ends children that called setsid, forked twice, cleared their environment or ignore SIGTERM."""
    task = bench.launch(TREE)
    pids = _pids(bench, 6)
    assert bench.ok("cancel", task)
    assert [pid for pid in pids if is_alive(pid)] == []
    shown = bench.show(task)
    assert (shown["state"], shown["reason"], shown["left_running"]) == ("cancelled", "requested", [])


def test_cancel_sends_sigint_before_sigterm(bench: Bench) -> None:
    """A cancel sends SIGINT first, so that a script can clean up, and SIGTERM later.

    Row 23 of the acceptance scenarios.
    """
    task = bench.launch("trap 'echo int' INT; trap 'echo term; exit 9' TERM; echo ready; while :; do sleep 0.1; done")
    bench.ok("wait", task, "--until", "ready")
    bench.ok("cancel", task)
    words = bench.ok("output", task).split()
    assert words.index("int") < words.index("term")
    shown = bench.show(task)
    assert (shown["state"], shown["exit_code"]) == ("cancelled", 9)


@pytest.mark.root
def test_cancel_reports_a_process_that_survives(outsider: Outsider) -> None:
    """If a process of the task cannot be signalled, `cancel` exits with 5, and the task is `failed`.

    Row 22 of the acceptance scenarios.
    """
    task = outsider.call("run", f"{outsider.become_root} sleep 60 & echo $!; sleep 60").stdout.strip()
    survivor = int(wait_until(lambda: outsider.call("output", task).stdout or None))
    done = outsider.call("cancel", task)
    assert done.returncode == 5, done.stderr
    assert f"a process is still alive (processes {survivor})" in done.stderr
    assert is_alive(survivor)
    shown = json.loads(outsider.call("show", task, "--json").stdout)
    assert (shown["state"], shown["reason"]) == ("failed", "cancel_incomplete")
    assert [left["pid"] for left in shown["left_running"]] == [survivor]
    kill(survivor)


@pytest.mark.root
def test_task_stays_running_when_its_command_cannot_be_signalled(outsider: Outsider) -> None:
    """If the command runs as another user and cannot be signalled, `cancel` exits with 5. The task stays `running`."""
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


def test_cancel_descendants_ends_the_tasks_launched_by_a_task(bench: Bench) -> None:
    """`cancel --descendants` also ends the tasks that were launched inside the task, and no other task.

    Row 24 of the acceptance scenarios.
    """
    call = " ".join(bench.command("run"))
    stranger = bench.launch("sleep 60")
    script = bench.project / "nest.sh"
    script.write_text(f'[ "$1" -gt 1 ] && {call} -- sh nest.sh $(($1 - 1)) >> inner; sleep 60\n')
    top = bench.launch("sh nest.sh 3")
    inner = wait_until(lambda: ids if len(ids := _lines(bench.project / "inner")) == 2 else None, "three levels")
    bench.ok("cancel", "--descendants", top)
    assert {bench.show(task)["state"] for task in (top, *inner)} == {"cancelled"}
    assert bench.show(stranger)["state"] == "running"


def test_cancel_ends_only_the_named_task_by_default(bench: Bench) -> None:
    """By default, `cancel` does not end a task that was launched inside the cancelled task."""
    outer = bench.launch(" ".join(bench.command("run", "--", "sleep", "60")) + " > inner; sleep 60")
    inner = wait_until(lambda: _lines(bench.project / "inner"))[0]
    bench.ok("cancel", outer)
    assert bench.show(inner)["state"] == "running"


def _lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def test_cancel_without_an_id_is_refused_when_several_tasks_are_active(bench: Bench) -> None:
    """If several tasks of the session are active, `cancel` without an id is refused. A single active task is ended.

    Row 25 of the acceptance scenarios.
    """
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


def test_cancel_group_ends_only_its_members(bench: Bench) -> None:
    """`cancel --group` ends every task of the group and no other task."""
    members = [bench.launch("sleep 60", "--group", "g") for _ in range(3)]
    other = bench.launch("sleep 60")
    bench.ok("cancel", "--group", "g")
    assert {bench.show(task)["state"] for task in members} == {"cancelled"}
    assert bench.show(other)["state"] == "running"


@pytest.mark.root
def test_cancel_does_not_signal_a_reused_process_id(bench: Bench) -> None:
    """A cancel does not signal another process that has got the process id of the task's ended command.

    The test runs in its own PID namespace, where it can choose process ids.
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


def _left_behind(bench: Bench, text: str) -> tuple[str, int]:
    """Return the id of an ended task, and the id of the process that the task left running."""
    task = bench.launch(text)
    assert bench.run("wait", task).returncode == 0
    (left,) = bench.show(task)["left_running"]
    return task, int(left["pid"])


def _kill_keepers(bench: Bench, task: str) -> None:
    """Kill keeper and witness of an ended task, so that Outlive no longer watches the process left running."""
    for pid in processes_named(KEEPER_NAME, WITNESS_NAME):
        if bench.files(task).record in open_files(pid):
            kill(pid)
            wait_until(lambda pid=pid: not is_alive(pid), "the end of the process")  # type: ignore[misc]


@pytest.mark.parametrize("how", ["sleep 71", "env -i sleep 71"])
def test_cancel_of_an_ended_task_ends_the_process_left_running(bench: Bench, how: str) -> None:
    """`cancel` ends a process that an ended task left running, and does not change the task's state.

    It finds the process by its recorded identity, even if the process has cleared its environment.
    """
    task, left = _left_behind(bench, f"setsid {how} & true")
    _kill_keepers(bench, task)
    answer = bench.json("cancel", task)["tasks"][0]
    assert (answer["state"], answer["cancelled"], answer["ended_left_running"], answer["still_alive"]) == (
        *("succeeded", False, [left], []),
    )
    assert not is_alive(left)
    refused = bench.run("cancel", task)
    assert (refused.returncode, "none of its processes runs" in refused.stderr) == (2, True)


def test_show_prints_whether_a_process_left_running_still_runs(bench: Bench) -> None:
    """`show` says whether the process that a task left running still runs. After its end, `show` still names it."""
    task, left = _left_behind(bench, "setsid sleep 75 & true")
    assert f"left      process {left} is still running: " in bench.ok("show", task)
    bench.ok("cancel", task)
    assert f"left      process {left} was still running, and has ended since: " in bench.ok("show", task)


def test_cancel_asks_for_an_id_when_a_task_runs_and_another_waits(bench: Bench) -> None:
    """If one task runs and another waits, `cancel` without an id is refused. The error does not say that both run."""
    running = bench.launch("sleep 76", "--lock", "one")
    waiting = bench.launch("sleep 77", "--lock", "one")
    refused = bench.run("cancel")
    assert (refused.returncode, "2 tasks run or wait, so name one of them" in refused.stderr) == (2, True)
    bench.ok("cancel", running, waiting)


def test_cancel_of_an_ended_task_does_not_count_its_keeper_and_witness(bench: Bench) -> None:
    """`cancel` of an ended task lists the process left running as ended.

    It does not list the task's keeper and witness.
    """
    task, left = _left_behind(bench, "setsid sleep 73 & true")
    answer = bench.json("cancel", task)["tasks"][0]
    assert (answer["ended_left_running"], answer["still_alive"]) == ([left], [])
    assert not is_alive(left)


def test_cancel_of_an_ended_task_does_not_signal_a_reused_process_id(bench: Bench) -> None:
    """If another process has got the id of the process left running, `cancel` exits with 2 and does not signal it."""
    task, left = _left_behind(bench, "setsid sleep 71 & true")
    _kill_keepers(bench, task)
    kill(left)
    stranger = subprocess.Popen(["sleep", "71"])
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger, ledger.write():
        recorded = json.dumps([[stranger.pid, "sleep 71", 1, 1], [stranger.pid, "sleep 71"]])
        ledger.db.execute("UPDATE attempt SET left_running = ? WHERE task = ?", (recorded, task))
    assert bench.run("cancel", task).returncode == 2
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


@pytest.mark.root
def test_cancel_of_an_ended_task_names_a_process_that_survives(outsider: Outsider) -> None:
    """If the process left running cannot be signalled, `cancel` exits with 5 and prints its process id."""
    task = outsider.call("run", f"{outsider.become_root} sleep 62 & echo $!").stdout.strip()
    outsider.call("wait", task)
    survivor = int(outsider.call("output", task).stdout)
    done = outsider.call("cancel", task)
    assert done.returncode == 5
    assert f"a process is still alive (processes {survivor})" in done.stderr
    kill(survivor)


@pytest.mark.parametrize("who", [("keeper",), ("keeper", "witness")])
def test_cancel_continues_a_stopped_keeper(bench: Bench, who: tuple[str, ...]) -> None:
    """If keeper and witness were stopped by SIGSTOP, `cancel` continues them, and the task is cancelled."""
    task = bench.launch("sleep 72")
    pids = {"keeper": bench.keeper(task), "witness": bench.process(task, "witness")}
    for name in who:
        kill(pids[name], signal.SIGSTOP)
    bench.ok("cancel", task)
    assert bench.show(task)["state"] == "cancelled"
