"""Tasks whose keeper, witness or command was killed."""

from __future__ import annotations

import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import is_alive, kill, open_files, wait_until

if TYPE_CHECKING:
    from tests.support import Bench


def _shot(bench: Bench, task: str, *who: str) -> None:
    """Kill the named processes of a task (keeper, witness, command), and wait until they are gone."""
    pids = {"keeper": bench.keeper(task), "witness": bench.process(task, "witness"), "command": bench.process(task)}
    for name in who:
        kill(pids[name])
    for name in who:
        wait_until(lambda name=name: not os.path.exists(f"/proc/{pids[name]}"), f"the {name}'s end")  # type: ignore[misc]


@pytest.mark.parametrize("watching", [("wait",), ("output", "--follow"), ("wait", "--until", "never")])
def test_waiting_command_starts_a_new_keeper_when_the_keeper_dies(bench: Bench, watching: tuple[str, ...]) -> None:
    """If the keeper dies, a command that waits for the task starts a new keeper, which enforces the task's timeout."""
    task = bench.launch("sleep 60", "--timeout", "2s")
    watcher = subprocess.Popen(
        bench.command(watching[0], task, *watching[1:]),
        env=bench.env,
        cwd=bench.project,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: any("/done" in path for path in open_files(watcher.pid)), "the watcher")
    kill(bench.keeper(task))
    watcher.wait()
    shown = bench.show(task)
    assert (shown["state"], shown["settled_by"]) == ("timed_out", "adopter")


def test_new_keeper_ends_a_detached_child_of_the_task(bench: Bench) -> None:
    """After the first keeper was killed, a cancel also ends a detached child without the task's environment."""
    hidden = "env -i setsid sh -c 'echo $$ > hidden; trap \"\" INT TERM HUP; while :; do sleep 0.3; done' & sleep 90"
    task = bench.launch(hidden)
    path = bench.project / "hidden"
    child = int(wait_until(lambda: path.read_text() if path.exists() else None))
    _shot(bench, task, "keeper")
    bench.ok("cancel", task)
    assert not is_alive(child)
    assert bench.show(task)["state"] == "cancelled"


def test_concurrent_readers_all_report_a_killed_task_as_lost(bench: Bench) -> None:
    """Twenty concurrent readers of a task whose processes were killed all report `lost`."""
    task = bench.launch("sleep 60")
    _shot(bench, task, "keeper", "witness", "command")
    with ThreadPoolExecutor(10) as pool:
        states = list(pool.map(lambda _: bench.show(task)["state"], range(20)))
    assert set(states) == {"lost"}


@pytest.mark.parametrize("deleted", ["bundle", "record"])
def test_killed_task_is_lost_when_its_bundle_is_deleted(bench: Bench, deleted: str) -> None:
    """Without its bundle or its record, a killed task is `lost` with the reason `bundle_deleted`."""
    import shutil

    task = bench.launch("sleep 60")
    _shot(bench, task, "keeper", "witness", "command")
    if deleted == "bundle":
        shutil.rmtree(bench.home.bundle(task))
    else:
        Path(bench.files(task).record).unlink()
    shown = bench.show(task)
    assert (shown["state"], shown["reason"]) == ("lost", "bundle_deleted")
    assert bench.run("wait", task).returncode == 1


@pytest.mark.parametrize("shot", [("keeper",), ("keeper", "witness")])
def test_cancel_of_an_outer_task_spares_an_inner_task_whose_keeper_was_killed(
    bench: Bench, shot: tuple[str, ...]
) -> None:
    """If a task inside another task has lost its keeper, a cancel of the outer task does not end its processes."""
    inner_call = " ".join(bench.command("run", "--", "sh", "-c", "'while ! [ -e go ]; do sleep 0.05; done; exit 5'"))
    outer = bench.launch(f"{inner_call} > inner; sleep 60")
    path = bench.project / "inner"
    inner = wait_until(lambda: path.read_text().strip() if path.exists() else None)
    _shot(bench, inner, *shot)
    command = bench.process(inner)
    bench.ok("cancel", outer)
    assert is_alive(command)
    (bench.project / "go").touch()
    bench.run("wait", inner)
    # Only newer kernels report the exit code of a process to a keeper that is not its parent.
    assert bench.show(inner)["exit_code"] in ((5,) if shot == ("keeper",) else (5, None))


def test_foreground_task_with_a_new_keeper_ends_with_its_session(bench: Bench) -> None:
    """After the first keeper was killed, a foreground task still ends when the processes of its session are killed."""
    script = f"{' '.join(bench.command('run', '--foreground', '--', 'sleep', '60'))}; sleep 60"
    client = subprocess.Popen(
        ["bash", "-c", script],
        env=bench.env,
        cwd=bench.project,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert client.stdout is not None
    task = client.stdout.readline().strip()
    _shot(bench, task, "keeper")
    bench.ok("show", task)
    os.killpg(client.pid, signal.SIGKILL)
    client.wait()
    client.stdout.close()
    bench.run("wait", task)
    assert bench.show(task)["reason"] == "session_ended"


def test_cancel_reaches_the_new_keeper_when_the_keeper_is_killed(bench: Bench) -> None:
    """If the keeper dies before it acts on a cancel, `cancel` sends the request again to the next keeper."""
    task = bench.launch("sleep 60")
    keeper = bench.keeper(task)
    kill(keeper, signal.SIGSTOP)
    cancelling = subprocess.Popen(
        bench.command("cancel", task), env=bench.env, cwd=bench.project, stdout=subprocess.DEVNULL
    )
    wait_until(lambda: any("/done" in path for path in open_files(cancelling.pid)), "the cancel to be asked")
    kill(keeper)
    assert cancelling.wait() == 0
    assert bench.show(task)["state"] == "cancelled"


def test_keeper_reaps_orphans_when_the_witness_was_killed(bench: Bench) -> None:
    """After the witness was killed, the keeper reaps orphaned children of the task, so no zombies remain."""
    task = bench.launch("while [ ! -e go ]; do sleep 0.01; done; for i in $(seq 60); do (sleep 0.01 &); done; sleep 60")
    keeper = bench.keeper(task)
    _shot(bench, task, "witness")
    (bench.project / "go").touch()
    wait_until(lambda: bench.project.joinpath("go").exists() and _children_of(keeper) >= 1)
    wait_until(lambda: _zombies_of(keeper) == 0 and _children_of(keeper) == 1, "all orphans to be gone")
    bench.ok("cancel", task)


def _children_of(pid: int) -> int:
    return len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def _zombies_of(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(
        Path(f"/proc/{c}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        for c in children
        if os.path.exists(f"/proc/{c}")
    )
