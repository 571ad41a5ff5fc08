"""Commands that read tasks settle those whose keepers died, or start new keepers for them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

import outlive
from outlive.bundle import record
from outlive.ledger.open_ledger import SCHEMA_VERSION
from outlive.service.maintenance.reconcile import reconcile
from tests.support import is_alive, kill, tasks_of_another_pid_namespace, wait_until

if TYPE_CHECKING:
    from tests.support import Bench


@pytest.fixture(autouse=True)
def _unobserved(bench: Bench) -> None:
    """Turn observation off. These tests kill keeper and witness together, which may end an observed command."""
    bench.env["OUTLIVE_OBSERVE"] = "off"


def test_exit_code_and_output_survive_the_death_of_the_keeper(bench: Bench) -> None:
    """If the keeper is killed while the command runs, `show` still has the exit code and all output.

    Rows 19 and 47 of the acceptance scenarios.
    """
    task = bench.launch("echo before; sleep 0.5; echo after; exit 42")
    bench.kill(task, "keeper")
    assert bench.run("wait", task).returncode == 1
    shown = bench.show(task)
    assert (shown["state"], shown["exit_code"]) == ("failed", 42)
    assert bench.ok("output", task).split() == ["before", "after"]


def test_reader_settles_a_task_that_ended_without_its_keeper(bench: Bench) -> None:
    """If the keeper died before its command ended, the next reader settles the task with the exit code of the witness.

    The reader records itself as `reconciler`.
    """
    task = bench.launch("sleep 0.3; exit 42")
    bench.kill(task, "keeper")
    witness = bench.process(task, "witness")
    wait_until(lambda: not is_alive(witness), "the witness's end")
    assert bench.row(task).state == "running"
    shown = bench.show(task)
    assert (shown["exit_code"], shown["settled_by"]) == (42, "reconciler")
    assert shown["ended_at"] < shown["settled_at"]


def test_exit_code_survives_the_death_of_the_witness(bench: Bench) -> None:
    """If the witness is killed, the keeper becomes the command's parent, and reads the exit status."""
    task = bench.launch("sleep 0.5; exit 43")
    bench.kill(task, "witness")
    bench.run("wait", task)
    shown = bench.show(task)
    assert (shown["exit_code"], shown["settled_by"]) == (43, "keeper")


def test_wait_goes_on_when_the_keeper_is_killed(bench: Bench) -> None:
    """If the keeper is killed, `wait` continues to wait for the end of the task."""
    task = bench.launch("sleep 1; exit 44")
    waiter = subprocess.Popen(
        bench.command("wait", task), env=bench.env, cwd=bench.project, stdout=subprocess.PIPE, text=True
    )
    bench.kill(task, "keeper")
    printed, _ = waiter.communicate()
    assert waiter.returncode == 1
    assert "exit 44" in printed


def test_reader_gives_a_task_a_new_keeper_when_its_keeper_is_killed(bench: Bench) -> None:
    """If the keeper was killed while the command runs, `show` starts a new keeper, and `cancel` ends the task."""
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


def test_reader_adopts_a_command_whose_keeper_and_witness_are_killed(bench: Bench) -> None:
    """If keeper and witness are killed, the command still counts as running, and `cancel` ends it with its children."""
    task = bench.launch("sleep 71 & echo $!; sleep 72 & echo $!; wait")
    bench.ok("wait", task, "--until", r"(?s)\d+")
    wait_until(lambda: len(bench.ok("output", task).split()) == 2)
    children = [int(pid) for pid in bench.ok("output", task).split()]
    bench.kill(task, "keeper", "witness")
    assert bench.show(task)["state"] == "running"
    bench.ok("cancel", task)
    assert bench.show(task)["state"] == "cancelled"
    assert not [pid for pid in (*children, bench.process(task)) if is_alive(pid)]


def test_adopted_command_has_an_exit_code_when_the_kernel_reports_it(bench: Bench) -> None:
    """Since Linux 6.15, a new keeper learns the exit code of a command that is not its child."""
    task = bench.launch("sleep 1.5; exit 45")
    bench.kill(task, "keeper", "witness")
    assert bench.show(task)["state"] == "running"
    bench.run("wait", task)
    shown = bench.show(task)
    if tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2]) >= (6, 15):
        assert (shown["state"], shown["exit_code"], shown["settled_by"]) == ("failed", 45, "adopter")
    else:
        assert (shown["state"], shown["exit_code"]) == ("lost", None)


def test_timeout_and_output_cap_hold_after_adoption(bench: Bench) -> None:
    """A new keeper counts the timeout from the command's start, and keeps the output below `--max-output`."""
    task = bench.launch("yes | head -c 2000000; sleep 60", "--timeout", "1500ms", "--max-output", "128K")
    bench.kill(task, "keeper")
    bench.ok("list")
    bench.run("wait", task)
    shown = bench.show(task)
    assert (shown["state"], shown["settled_by"]) == ("timed_out", "adopter")
    assert 1.4 < shown["duration_s"] < 6
    assert shown["output"]["dropped_bytes"] > 1_800_000


def test_cancel_survives_the_death_of_the_keeper(bench: Bench) -> None:
    """If the keeper is killed after it recorded a cancel, the task ends as `cancelled`."""
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


def test_task_is_lost_when_all_its_processes_are_killed(bench: Bench) -> None:
    """If all processes of a task are killed, it is lost with the reason `keeper_killed`, and has no exit code."""
    task = bench.launch("sleep 60")
    bench.kill(task, "keeper", "witness", "command")
    assert bench.run("wait", task).returncode == 1
    shown = bench.show(task)
    assert (shown["state"], shown["exit_code"], shown["reason"]) == ("lost", None, "keeper_killed")
    assert [seen["started"] for seen in shown["evidence"]] == ["yes"]
    assert [notice["kind"] for notice in shown["notices"]] == ["lost"]


def test_ending_is_not_earlier_than_the_start_when_a_reader_settles(bench: Bench) -> None:
    """The ending is recorded as later than the start, even if the reader read the clock before the task started."""
    task = bench.launch("sleep 60")
    bench.kill(task, "keeper", "witness", "command")
    started = bench.row(task).current.started_at
    reconcile(bench.home, started - timedelta(hours=1), task)
    attempt = bench.row(task).current
    assert (attempt.state, attempt.settled_at > started) == ("lost", True)


def test_lost_task_does_not_name_a_reboot_when_its_boot_is_unknown(bench: Bench) -> None:
    """If a task was recorded without a boot id, it is lost with the reason `keeper_killed`, and not by a reboot."""
    task = bench.launch("sleep 60")
    bench.kill(task, "keeper", "witness", "command")
    database = apsw.Connection(bench.home.ledger)
    database.execute("UPDATE attempt SET boot = ''")
    database.close()
    shown = bench.show(task)
    assert (shown["state"], shown["reason"]) == ("lost", "keeper_killed")


def test_task_is_lost_by_a_reboot_when_its_boot_id_differs(bench: Bench) -> None:
    """If the recorded boot id is not the present one, the task is lost by a reboot.

    A living process with the recorded process id is not signalled.
    """
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
    assert is_alive(bench.process(task)), "the process with the recorded pid was signalled"
    kill(bench.process(task))


def test_reader_leaves_a_process_alone_that_has_the_pid_of_a_dead_command(bench: Bench) -> None:
    """If another process has the process id of a dead command, the task is lost, and this process is not killed."""
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
def test_any_reader_settles_a_task_whose_pid_namespace_has_ended(bench: Bench) -> None:
    """If a task's PID namespace has ended, `show`, `wait`, `cancel` and `list` each find at once that the task is lost.

    The lock of the task is free then.
    """
    with tasks_of_another_pid_namespace(bench, 4) as tasks:
        assert {task["state"] for task in bench.json("list")["tasks"]} == {"running"}
    shown, waited, cancelled, listed = tasks
    assert bench.show(shown)["state"] == "lost"
    assert bench.run("wait", waited, "--timeout", "5s").returncode == 1
    done = bench.run("cancel", cancelled)
    assert (done.returncode, "still alive" in done.stdout + done.stderr) == (2, False)
    assert bench.row(listed).state == "running"
    assert {task["state"] for task in bench.json("list")["tasks"]} == {"lost"}
    assert bench.row(listed).current.settled_at > bench.row(listed).current.started_at


@pytest.mark.root
def test_reader_in_another_pid_namespace_does_not_settle_a_running_command(bench: Bench) -> None:
    """A reader in another PID namespace does not settle a running command.

    The reader cannot see the command's process, but sees that a process has the output open for writing.
    """
    task = bench.launch("sleep 60")
    bench.kill(task, "keeper", "witness")
    inside = ["unshare", "-pf", "--mount-proc"]
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no PID namespaces here")
    assert bench.json("show", task, before=inside)["state"] == "running"
    assert is_alive(bench.process(task))
    bench.ok("show", task)
    bench.ok("cancel", task)


def test_task_is_not_settled_when_its_lock_cannot_be_opened(bench: Bench) -> None:
    """If the task's lock cannot be opened, the task counts as running until the lock can be opened again.

    Row 20 of the acceptance scenarios.
    """
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


def test_list_stays_the_same_when_all_processes_have_ended(bench: Bench) -> None:
    """Two calls of `list` print the same ended tasks.

    Row 46 of the acceptance scenarios.
    """
    tasks = [bench.launch(f"exit {n}") for n in range(3)]
    bench.run("wait", *tasks)
    before = bench.json("list")
    assert [t["exit_code"] for t in before["tasks"]] == [2, 1, 0]
    again = bench.json("list")
    assert [t["id"] for t in again["tasks"]] == [t["id"] for t in before["tasks"]]


def test_twelve_readers_settle_a_task_once(bench: Bench) -> None:
    """If twelve readers find the same dead task at once, it has one ending and one notice."""
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


def test_task_ends_and_can_be_cancelled_when_the_package_is_deleted(bench: Bench) -> None:
    """If the package is deleted while a task runs, the task can still end and be cancelled.

    Its keeper has loaded all the code that it needs.
    """
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
        _await_rest(bench, task)  # a new keeper still loads modules from the package
    shutil.rmtree(packages)
    bench.run("wait", ends)
    shown = bench.show(ends)
    assert (shown["exit_code"], shown["settled_by"]) == (46, "keeper")
    bench.ok("cancel", cancelled)
    assert bench.show(cancelled)["settled_by"] == "keeper"


def test_keeper_does_not_write_into_a_ledger_of_a_newer_version(bench: Bench) -> None:
    """A keeper writes nothing into a ledger of a newer version. A reader of this version settles the task later.

    The reader takes the exit code from the exit record.
    """
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


def test_keeper_settles_in_the_new_file_when_the_ledger_is_replaced(bench: Bench) -> None:
    """If another file replaces the ledger, as when a backup is restored, the keeper records the ending in this file."""
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
    """Wait until the task's keeper has the ledger open and sleeps."""
    keeper = bench.keeper(task)
    wait_until(lambda: bench.home.ledger in map(_target, Path(f"/proc/{keeper}/fd").iterdir()), "the ledger to be open")
    wait_until(lambda: _is_asleep(keeper), "the keeper to sleep")


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _is_asleep(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def test_keeper_settles_after_a_lock_on_the_ledger_is_released(bench: Bench) -> None:
    """If another process has locked the ledger, the keeper waits for the lock, and then settles the task."""
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


def test_interrupt_in_the_launchers_terminal_does_not_reach_the_task(bench: Bench) -> None:
    """Ctrl-C in the launcher's terminal ends the launcher, and not the task, which ends with its own exit code."""
    wanted = bench.command("run", "--wait", "60s", "while ! [ -e go ]; do sleep 0.05; done; exit 49")
    launcher = subprocess.Popen(
        # A shell starts background jobs with SIGINT ignored, and their child processes inherit this setting.
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


def test_retry_lost_starts_tasks_that_a_reboot_lost_before_they_began(bench: Bench) -> None:
    """After a reboot, `retry --lost` starts lost tasks that had not begun, and tasks with retries, but no others."""
    holder = bench.launch("sleep 60", "--lock", "l", "--session", "s-1")
    waiting = bench.launch("echo mine", "--lock", "l", "--session", "s-1")
    retried = bench.launch("[ -e ok ] || sleep 60", "--retries", "1")
    kill(bench.keeper(waiting))
    for task in (holder, retried):
        bench.kill(task, "keeper", "witness", "command")
    database = apsw.Connection(bench.home.ledger)
    database.execute("UPDATE attempt SET boot = '00000000-0000-0000-0000-000000000000' WHERE settled_at IS NULL")
    database.close()
    told = bench.ok("inbox", "--session", "s-1")
    assert "lost: the machine was rebooted before it began; `outlive retry --lost` starts it again" in told
    assert f"lost: the machine was rebooted, so its exit code is not known; `outlive retry {holder}`" in told
    assert "rebooted before it began" in bench.ok("show", waiting)
    (bench.project / "ok").touch()
    assert set(bench.ok("retry", "--lost").split()) == {waiting, retried}
    assert bench.run("wait", waiting, retried).returncode == 0
    assert bench.show(holder)["state"] == "lost"
