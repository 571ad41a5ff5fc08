"""What died unseen is settled by the next reader; what lives gets a new keeper; nothing is guessed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

import outlive
from outlive.bundle import record
from outlive.ledger.opening import SCHEMA_VERSION
from tests.support import is_alive, kill, wait_until

if TYPE_CHECKING:
    from tests.support import Bench


@pytest.fixture(autouse=True)
def _unobserved(bench: Bench) -> None:
    """Keeper and witness are killed together here, which an observed command is not promised to survive."""
    bench.env["OUTLIVE_OBSERVE"] = "off"


def test_a_killed_keeper_costs_nothing(bench: Bench) -> None:
    """Rows 19 and 47: SIGKILL the keeper mid-run; the true exit code and the output are there."""
    task = bench.launch("echo before; sleep 0.5; echo after; exit 42")
    bench.kill(task, "keeper")
    assert bench.run("wait", task).returncode == 1
    shown = bench.show(task)
    assert (shown["state"], shown["exit_code"]) == ("failed", 42)
    assert bench.ok("output", task).split() == ["before", "after"]


def test_a_killed_keeper_that_nobody_missed_is_recovered_later(bench: Bench) -> None:
    """The command ends while nobody looks: the exit record tells the next reader."""
    task = bench.launch("sleep 0.3; exit 42")
    bench.kill(task, "keeper")
    witness = bench.process(task, "witness")
    wait_until(lambda: not is_alive(witness), "the witness's end")
    assert bench.row(task).state == "running"
    shown = bench.show(task)
    assert (shown["exit_code"], shown["settled_by"]) == (42, "reconciler")
    assert shown["ended_at"] < shown["settled_at"]


def test_a_killed_witness_costs_nothing(bench: Bench) -> None:
    """The keeper inherits the command and reads the same status."""
    task = bench.launch("sleep 0.5; exit 43")
    bench.kill(task, "witness")
    bench.run("wait", task)
    shown = bench.show(task)
    assert (shown["exit_code"], shown["settled_by"]) == (43, "keeper")


def test_a_waiter_survives_the_death_of_the_keeper(bench: Bench) -> None:
    """A waiter that slept on a keeper's FIFO is woken by its death, and goes on waiting."""
    task = bench.launch("sleep 1; exit 44")
    waiter = subprocess.Popen(
        bench.command("wait", task), env=bench.env, cwd=bench.project, stdout=subprocess.PIPE, text=True
    )
    bench.kill(task, "keeper")
    printed, _ = waiter.communicate()
    assert waiter.returncode == 1
    assert "exit 44" in printed


def test_an_orphan_is_adopted_and_can_be_cancelled(bench: Bench) -> None:
    """Keeper dead, witness alive: the next reader gives it a new keeper; cancel works again."""
    task = bench.launch("sleep 60")
    old = bench.keeper(task)
    bench.kill(task, "keeper")
    bench.ok("show", task)
    assert bench.keeper(task) != old
    shown = bench.show(task)
    assert (shown["state"], shown["condition"]) == ("running", None)
    bench.ok("cancel", task)
    shown = bench.show(task)
    assert (shown["state"], shown["settled_by"]) == ("cancelled", "adopter")
    assert not is_alive(bench.process(task))


def test_a_command_without_keeper_and_witness_is_adopted(bench: Bench) -> None:
    """Both are killed, the command lives: it is adopted, and cancelled with its whole tree."""
    task = bench.launch("sleep 71 & echo $!; sleep 72 & echo $!; wait")
    bench.ok("wait", task, "--until", r"(?s)\d+")
    wait_until(lambda: len(bench.ok("output", task).split()) == 2)
    children = [int(pid) for pid in bench.ok("output", task).split()]
    bench.kill(task, "keeper", "witness")
    assert bench.show(task)["state"] == "running"
    bench.ok("cancel", task)
    assert bench.show(task)["state"] == "cancelled"
    assert not [pid for pid in (*children, bench.process(task)) if is_alive(pid)]


def test_the_kernel_tells_how_a_stranger_ended(bench: Bench) -> None:
    """Both are killed, the command is adopted and exits: its code is kept where the kernel tells it."""
    task = bench.launch("sleep 1.5; exit 45")
    bench.kill(task, "keeper", "witness")
    assert bench.show(task)["state"] == "running"
    bench.run("wait", task)
    shown = bench.show(task)
    if tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2]) >= (6, 15):
        assert (shown["state"], shown["exit_code"], shown["settled_by"]) == ("failed", 45, "adopter")
    else:
        assert (shown["state"], shown["exit_code"]) == ("lost", None)


def test_deadline_and_cap_hold_after_adoption(bench: Bench) -> None:
    """A new keeper knows how long the command has been running, and how much it may write."""
    task = bench.launch("yes | head -c 2000000; sleep 60", "--timeout", "1500ms", "--max-output", "128K")
    bench.kill(task, "keeper")
    bench.ok("list")
    bench.run("wait", task)
    shown = bench.show(task)
    assert (shown["state"], shown["settled_by"]) == ("timed_out", "adopter")
    assert 1.4 < shown["duration_s"] < 6
    assert shown["output"]["dropped_bytes"] > 1_800_000


def test_a_cancel_survives_the_death_of_the_keeper_that_carries_it_out(bench: Bench) -> None:
    """The intent is on record: whoever settles the task says `cancelled`, not `killed`."""
    task = bench.launch("trap '' INT; echo ready; while :; do sleep 0.1; done")
    bench.ok("wait", task, "--until", "ready")
    cancelling = subprocess.Popen(
        bench.command("cancel", task), env=bench.env, cwd=bench.project, stdout=subprocess.DEVNULL
    )
    wait_until(lambda: bench.files(task).read_slot("intent"), "the intent")
    bench.kill(task, "keeper")
    cancelling.wait()
    bench.run("wait", task)
    assert bench.show(task)["state"] == "cancelled"


def test_an_end_that_nobody_saw_is_lost_and_says_so(bench: Bench) -> None:
    """Everybody is killed: `lost`, started yes, cause known; never a guessed exit code."""
    task = bench.launch("sleep 60")
    bench.kill(task, "keeper", "witness", "command")
    assert bench.run("wait", task).returncode == 1
    shown = bench.show(task)
    assert (shown["state"], shown["exit_code"], shown["reason"]) == ("lost", None, "keeper_killed")
    assert [seen["started"] for seen in shown["evidence"]] == ["yes"]
    assert [notice["kind"] for notice in shown["notices"]] == ["lost"]


def test_a_boot_that_is_not_known_is_no_reboot(bench: Bench) -> None:
    """Whoever recorded it could not ask for the boot: what became of it is unknown, and so is why."""
    task = bench.launch("sleep 60")
    bench.kill(task, "keeper", "witness", "command")
    database = apsw.Connection(bench.home.ledger)
    database.execute("UPDATE attempt SET boot = ''")
    database.close()
    shown = bench.show(task)
    assert (shown["state"], shown["reason"]) == ("lost", "keeper_killed")


def test_a_task_that_ran_when_the_machine_went_down_is_lost_by_a_reboot(bench: Bench) -> None:
    """Another boot id: nobody can be alive, and the cause is known."""
    task = bench.launch("sleep 60")
    bench.kill(task, "keeper", "witness")
    database = apsw.Connection(bench.home.ledger)
    database.execute("UPDATE attempt SET boot = '00000000-0000-0000-0000-000000000000'")
    database.close()
    fd = record.open_record(bench.files(task).record, write=True)
    slot = record.read_slot(fd, "process") or {}
    slot["boot"] = "00000000-0000-0000-0000-000000000000"
    record.write_slot(fd, "process", durable=True, **slot)
    os.close(fd)
    shown = bench.show(task)
    assert (shown["state"], shown["reason"]) == ("lost", "reboot")
    assert is_alive(bench.process(task)), "nobody with that number was touched"
    kill(bench.process(task))


def test_a_stranger_with_the_same_number_is_not_the_command(bench: Bench) -> None:
    """The recorded identity does not fit the living process: the task is lost, the process untouched."""
    task = bench.launch("sleep 60")
    bench.kill(task, "keeper", "witness", "command")
    stranger = subprocess.Popen(["sleep", "60"])
    fd = record.open_record(bench.files(task).record, write=True)
    slot = record.read_slot(fd, "process") or {}
    slot["pid"] = str(stranger.pid)
    record.write_slot(fd, "process", durable=True, **slot)
    os.close(fd)
    assert bench.show(task)["state"] == "lost"
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


@pytest.mark.root
def test_a_reader_in_another_pid_namespace_changes_nothing(bench: Bench) -> None:
    """It cannot see the processes, so it may not say that they are gone."""
    if subprocess.run(["unshare", "-pf", "--mount-proc", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no PID namespaces here")
    task = bench.launch("sleep 60")
    bench.kill(task, "keeper", "witness", "command")
    inside = subprocess.run(
        ["unshare", "-pf", "--mount-proc", *bench.command("list", "--json")],
        env=bench.env,
        cwd=bench.project,
        capture_output=True,
        text=True,
        check=True,
    )
    assert '"state": "running"' in inside.stdout
    assert bench.row(task).state == "running"
    assert bench.show(task)["state"] == "lost"


def test_a_probe_that_fails_changes_nothing(bench: Bench) -> None:
    """Row 20: a lock that cannot be opened means unknown; it is settled when it can be."""
    task = bench.launch("sleep 60")
    bench.kill(task, "keeper", "witness", "command")
    lock = Path(bench.files(task).lock)
    lock.rename(lock.with_name("aside"))
    assert bench.show(task)["state"] == "running"
    lock.mkdir()
    assert bench.show(task)["state"] == "running"
    lock.rmdir()
    lock.with_name("aside").rename(lock)
    assert bench.show(task)["state"] == "lost"


def test_the_record_survives_whoever_made_it(bench: Bench) -> None:
    """Row 46: every process of ours is gone; the same list is there."""
    tasks = [bench.launch(f"exit {n}") for n in range(3)]
    bench.run("wait", *tasks)
    before = bench.json("list")
    assert [t["exit_code"] for t in before["tasks"]] == [2, 1, 0]
    again = bench.json("list")
    assert [t["id"] for t in again["tasks"]] == [t["id"] for t in before["tasks"]]


def test_two_readers_settle_once(bench: Bench) -> None:
    """Twelve readers meet the same dead task: one ending, one notice."""
    task = bench.launch("sleep 0.2; exit 3")
    bench.kill(task, "keeper")
    witness = bench.process(task, "witness")
    wait_until(lambda: not is_alive(witness), "the witness's end")
    readers = [
        subprocess.Popen(bench.command("list"), env=bench.env, cwd=bench.project, stdout=subprocess.DEVNULL)
        for _ in range(12)
    ]
    assert [reader.wait() for reader in readers] == [0] * 12
    shown = bench.show(task)
    assert (shown["exit_code"], len(shown["notices"])) == (3, 1)


def test_an_installation_deleted_under_a_task_costs_nothing(bench: Bench) -> None:
    """The package is gone while the command runs; it still ends with its true code, cancel works."""
    packages = bench.root / "packages"
    for module in (outlive, apsw):
        source = Path(module.__file__ or "").parent
        shutil.copytree(source, packages / source.name)
    call = [sys.executable, "-S", "-m", "outlive"]
    env = {**bench.env, "PYTHONPATH": str(packages)}
    launched = [
        subprocess.run([*call, "run", text], env=env, cwd=bench.project, capture_output=True, text=True, check=True)
        for text in ("sleep 0.8; yes | head -c 3000000; exit 46", "sleep 60")
    ]
    ends, cancelled = (done.stdout.strip() for done in launched)
    for task in (ends, cancelled):
        _await_rest(bench, task)  # in its first moment a keeper still loads what it will need
    shutil.rmtree(packages)
    bench.run("wait", ends)
    shown = bench.show(ends)
    assert (shown["exit_code"], shown["settled_by"]) == (46, "keeper")
    bench.ok("cancel", cancelled)
    assert bench.show(cancelled)["settled_by"] == "keeper"


def test_a_newer_ledger_leaves_the_exit_record(bench: Bench) -> None:
    """The schema is upgraded under a running task: its keeper writes nothing, the record waits."""
    task = bench.launch("sleep 0.5; exit 47")
    keeper = bench.keeper(task)
    database = apsw.Connection(bench.home.ledger)
    database.execute("PRAGMA user_version=99")
    wait_until(lambda: not is_alive(keeper), "the keeper's end")
    refused = bench.run("list")
    assert refused.returncode == 3
    assert "upgrade this Outlive" in refused.stderr
    database.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
    database.close()
    shown = bench.show(task)
    assert (shown["exit_code"], shown["settled_by"]) == (47, "reconciler")


def test_a_keeper_that_rests_on_the_ledger_writes_into_the_one_that_is_there(bench: Bench) -> None:
    """Somebody puts a copy in its place while the task runs, as a restored backup would be."""
    task = bench.launch("while ! [ -e go ]; do sleep 0.05; done; exit 47")
    _await_rest(bench, task)
    for suffix in ("", "-wal", "-shm"):
        shutil.copy(bench.home.ledger + suffix, bench.root / f"copy{suffix}")
        (bench.root / f"copy{suffix}").rename(bench.home.ledger + suffix)
    (bench.project / "go").touch()
    bench.run("wait", task)
    shown = bench.show(task)
    assert (shown["exit_code"], shown["settled_by"]) == (47, "keeper")


def _await_rest(bench: Bench, task: str) -> None:
    """Until its keeper has nothing to do any more but to wait for the end."""
    keeper = bench.keeper(task)
    wait_until(lambda: bench.home.ledger in map(_target, Path(f"/proc/{keeper}/fd").iterdir()), "its rest")
    wait_until(lambda: _is_asleep(keeper), "its sleep")


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _is_asleep(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def test_a_locked_ledger_delays_and_loses_nothing(bench: Bench) -> None:
    """Somebody holds the write lock while the command ends; the keeper settles afterwards."""
    task = bench.launch("sleep 0.2; exit 48")
    database = apsw.Connection(bench.home.ledger)
    database.execute("BEGIN IMMEDIATE")
    keeper, witness = bench.keeper(task), bench.process(task, "witness")
    wait_until(lambda: not is_alive(witness), "the witness's end")
    assert is_alive(keeper)
    database.execute("ROLLBACK")
    database.close()
    bench.run("wait", task)
    shown = bench.show(task)
    assert (shown["exit_code"], shown["settled_by"]) == (48, "keeper")


def test_signals_to_the_launchers_group_do_not_reach_the_task(bench: Bench) -> None:
    """Ctrl-C in the terminal that launched it is not meant for the task."""
    wanted = bench.command("run", "--wait", "60s", "while ! [ -e go ]; do sleep 0.05; done; exit 49")
    launcher = subprocess.Popen(
        # Whoever runs these tests in the background of a shell ignores Ctrl-C, and all that it starts with it.
        ["env", "--default-signal=INT", *wanted],
        env=bench.env,
        cwd=bench.project,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    task = wait_until(lambda: next((t["id"] for t in bench.json("list")["tasks"]), None))
    os.killpg(launcher.pid, signal.SIGINT)
    assert launcher.wait() == 130
    (bench.project / "go").touch()
    bench.run("wait", task)
    assert bench.show(task)["exit_code"] == 49
