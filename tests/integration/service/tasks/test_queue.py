"""Queueing without a daemon: tasks that wait for other tasks, for slots and for locks."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from outlive import Outlive
from outlive.domain.tasks.queueing import MOST_WAITING
from outlive.ledger.open_ledger import PATIENCE_S
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from tests.support import is_alive, kill, wait_until
from tests.unit.values import attempt, launch

if TYPE_CHECKING:
    from tests.support import Bench

# A command that records that it has begun, and runs until the test writes into its FIFO.
GATED = "echo $OUTLIVE_TASK >> began; read x < gate-$OUTLIVE_TASK"


def _began(bench: Bench) -> list[str]:
    path = bench.project / "began"
    return path.read_text().split() if path.exists() else []


def _gated(bench: Bench, *options: str) -> str:
    return bench.launch("until [ -p gate-$OUTLIVE_TASK ]; do sleep 0.01; done; " + GATED, *options)


def _open(bench: Bench, task: str) -> None:
    gate = bench.project / f"gate-{task}"
    if not gate.exists():
        os.mkfifo(gate)
    gate.write_text("\n")


def _ready(bench: Bench, *tasks: str) -> None:
    for task in tasks:
        os.mkfifo(bench.project / f"gate-{task}")


def _states(bench: Bench, *tasks: str) -> list[str]:
    return [bench.row(task).state for task in tasks]


def test_slots_limit_the_running_tasks_and_keep_their_order(bench: Bench) -> None:
    """Of five tasks that share two slots, two run at a time, in the order of their launch.

    Row 5 of the acceptance scenarios.
    """
    tasks = [_gated(bench, "--slots", "x=2") for _ in range(5)]
    _ready(bench, *tasks)
    for ended, task in enumerate(tasks):
        wait_until(lambda ended=ended: len(_began(bench)) == min(ended + 2, 5), "the next task to begin")  # type: ignore[misc]
        assert _states(bench, *tasks[ended:]) == ["running"] * min(2, 5 - ended) + ["queued"] * max(0, 3 - ended)
        _open(bench, task)
        bench.ok("wait", task)
    assert _began(bench)[2:] == tasks[2:]


def test_slot_is_free_when_any_of_its_tasks_ends(bench: Bench) -> None:
    """If two slots are taken, the next task begins when any of their tasks ends."""
    tasks = [_gated(bench, "--slots", "x=2") for _ in range(3)]
    _ready(bench, *tasks)
    wait_until(lambda: len(_began(bench)) == 2)
    _open(bench, tasks[1])
    wait_until(lambda: _began(bench)[2:] == [tasks[2]], "the third task to begin")
    assert _states(bench, *tasks) == ["running", "succeeded", "running"]


def test_cancelling_a_queued_task_frees_no_slot(bench: Bench) -> None:
    """If a queued task is cancelled, no slot becomes free: the next task still waits for the end of a running task.

    Row 6 of the acceptance scenarios.
    """
    tasks = [_gated(bench, "--slots", "x=2") for _ in range(4)]
    _ready(bench, *tasks)
    wait_until(lambda: len(_began(bench)) == 2)
    assert "cancelled" in bench.ok("cancel", tasks[2])
    shown = bench.show(tasks[2])
    assert (shown["state"], shown["reason"], shown["started_at"]) == ("cancelled", "requested", None)
    assert _states(bench, *tasks) == ["running", "running", "cancelled", "queued"]
    _open(bench, tasks[0])
    wait_until(lambda: _began(bench)[2:] == [tasks[3]], "the fourth task to begin")


def test_lock_is_free_when_all_processes_of_its_task_are_killed(bench: Bench) -> None:
    """If all processes of a task are killed, its lock is free, and the next task begins without a further command."""
    holder = _gated(bench, "--lock", "l")
    waiting = bench.launch("echo mine", "--lock", "l")
    for pid in (bench.keeper(holder), bench.process(holder, "witness"), bench.process(holder)):
        kill(pid)
    wait_until(lambda: bench.row(waiting).state == "succeeded", "the waiting task to succeed")
    # Newer kernels report an exit status to processes that are not the parent, too.
    assert bench.row(holder).state in ("lost", "failed")


def test_task_keeps_its_lock_when_its_keeper_is_killed(bench: Bench) -> None:
    """If its keeper is killed, a task keeps its lock until its command has ended."""
    holder = _gated(bench, "--lock", "l")
    _ready(bench, holder)
    waiting = bench.launch("echo mine", "--lock", "l")
    kill(bench.keeper(holder))
    wait_until(lambda: bench.find_keeper(holder), "the waiting task's keeper to start a new keeper for the first task")
    assert _states(bench, holder, waiting) == ["running", "queued"]
    _open(bench, holder)
    assert bench.run("wait", holder, waiting).returncode == 0


def test_queued_task_is_lost_when_its_keeper_is_killed(bench: Bench) -> None:
    """If the keeper of a queued task is killed, this task is lost as never begun, and the next task begins."""
    holder = _gated(bench, "--lock", "l")
    _ready(bench, holder)
    victim, last = bench.launch("echo victim", "--lock", "l"), bench.launch("echo last", "--lock", "l")
    kill(bench.keeper(victim))
    _open(bench, holder)
    wait_until(lambda: bench.row(last).state == "succeeded", "the last task to succeed")
    assert bench.row(victim).state == "lost", "the keeper of the last task did not settle the lost task"
    evidence = bench.show(victim)["evidence"][-1]
    assert (evidence["started"], evidence["cause"]) == ("no", "keeper_killed")


def test_lock_and_slots_of_one_name_are_independent(bench: Bench) -> None:
    """A task that needs a lock and a slot of the same name begins only when both are free."""
    first = _gated(bench, "--lock", "n")
    other = _gated(bench, "--slots", "n=1")
    both = bench.launch("echo both", "--lock", "n", "--slots", "n=1")
    _ready(bench, first, other)
    wait_until(lambda: len(_began(bench)) == 2)
    _open(bench, first)
    bench.ok("wait", first)
    assert _states(bench, other, both) == ["running", "queued"]
    _open(bench, other)
    assert bench.run("wait", both).returncode == 0


def test_dependents_are_cancelled_when_a_dependency_fails(bench: Bench) -> None:
    """If a task fails, tasks that wait with `--after` are cancelled, and those that wait for them, too.

    A task that waits with `--after-any` runs.
    """
    first = _gated(bench)
    _ready(bench, first)
    then = bench.launch("echo then", "--after", first)
    failing = bench.launch("exit 3", "--after", then)
    never = bench.launch("echo never", "--after", failing)
    nor = bench.launch("echo never", "--after", never)
    anyhow = bench.launch("echo anyhow", "--after-any", failing)
    assert _states(bench, then, failing, never, nor, anyhow) == ["queued"] * 5
    _open(bench, first)
    assert bench.run("wait", then, failing, never, nor, anyhow).returncode == 1
    assert _states(bench, then, failing, never, nor, anyhow) == [
        *("succeeded", "failed", "cancelled", "cancelled", "succeeded"),
    ]
    shown = bench.show(never)
    assert (shown["reason"], shown["detail"]) == (
        "dependency_failed",
        f"it was to run after task {failing}, which is failed",
    )
    assert bench.show(nor)["detail"] == f"it was to run after task {never}, which is cancelled"


def test_launch_is_refused_when_its_dependency_has_failed(bench: Bench) -> None:
    """If the dependency has failed already, the launch exits with 1, names it, and records the task as cancelled."""
    failed = bench.launch("exit 1")
    bench.run("wait", failed)
    done = bench.run("run", "--after", failed, "--", "true")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"it was to run after task {failed}, which is failed" in done.stderr
    assert bench.json("list")["tasks"][0]["reason"] == "dependency_failed"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--after", "tzzzzzzz"), "no task has an id"),
        (("--slots", "x"), "--slots cannot be 'x'"),
        (("--slots", "x=0"), "--slots cannot be 'x=0'"),
        (("--slots", "=3"), "is not a valid name"),
        (("--slots", "x=99999999999999999999"), "--slots cannot be"),
        (("--lock", ""), "is not a valid name"),
        (("--lock", "a", "--lock", "a"), "have the same name"),
        (("--retries", "-1"), "--retries cannot be '-1'"),
        (("--retries", "101"), "101 retries are not possible"),
        (("--queue-timeout", "soon"), "soon"),
    ],
)
def test_run_refuses_invalid_queue_options(bench: Bench, options: tuple[str, ...], says: str) -> None:
    """An invalid option for the queue exits with 2, and no task is recorded."""
    done = bench.run("run", *options, "--", "true")
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert bench.json("list", "--all")["tasks"] == []


def test_run_refuses_to_wait_when_the_dependency_is_its_own_task(bench: Bench) -> None:
    """Inside a task, `run --wait --after` this same task is refused, because it would wait for ever.

    Without `--wait`, the launch is allowed.
    """
    call = " ".join(bench.command("run", "--after", "$OUTLIVE_TASK", "--wait", "60s", "--", "true"))
    task = bench.launch(f"{call} 2>&1; echo code $?")
    bench.ok("wait", task)
    assert "would wait for itself" in bench.ok("output", task)
    assert "code 2" in bench.ok("output", task)
    call = " ".join(bench.command("run", "--after", "$OUTLIVE_TASK", "--", "echo", "afterwards"))
    task = bench.launch(f"{call} > inner")
    bench.ok("wait", task)
    inner = (bench.project / "inner").read_text().strip()
    assert bench.run("wait", inner).returncode == 0, "without --wait the inner task did not run after the outer one"


def test_queued_task_keeps_the_surroundings_of_its_launch(bench: Bench) -> None:
    """A queued task begins with its launcher's directory, umask and environment.

    No file contains the secret variable.
    """
    holder = _gated(bench, "--lock", "l")
    _ready(bench, holder)
    secret = "not-on-disk-" + "x" * 20
    script = f"umask 027; exec {' '.join(bench.command('run', '--lock', 'l', '--env', f'SECRET={secret}'))} "
    done = subprocess.run(
        ["sh", "-c", script + "'umask; pwd; echo $SECRET; echo $OUTLIVE_TASK'"],
        env=bench.env, cwd=bench.project, capture_output=True, text=True, check=True,
    )  # fmt: skip
    waiting = done.stdout.strip()
    assert not [path for path in bench.state.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    _open(bench, holder)
    assert bench.run("wait", waiting).returncode == 0
    assert bench.ok("output", waiting).split() == ["0027", str(bench.project), secret, waiting]


def test_keeper_of_a_queued_task_sleeps(bench: Bench) -> None:
    """While its task waits, the keeper of a queued task sleeps without a context switch."""
    holder = _gated(bench, "--lock", "l")
    waiting = [bench.launch("true", "--lock", "l") for _ in range(8)]
    keepers = [bench.keeper(task) for task in waiting]
    asleep = wait_until(lambda: all("do_poll" in _wchan(pid) or "poll" in _syscall(pid) for pid in keepers))
    assert asleep
    before = [_switches(pid) for pid in keepers]
    assert bench.run("wait", holder, "--timeout", "700ms").returncode == 4
    assert [_switches(pid) for pid in keepers] == before
    for task in (*waiting, holder):
        bench.run("cancel", task)
    assert not any(is_alive(pid) for pid in keepers)


def test_keeper_of_a_queued_task_wakes_without_a_new_exec(bench: Bench) -> None:
    """When its turn comes, the keeper of a queued task continues in the same process, without a new exec.

    This is faster than starting an interpreter, and hundreds of keepers may wake at once.
    """
    holder = _gated(bench, "--lock", "l")
    waiting = _gated(bench, "--lock", "l")
    keeper = bench.keeper(waiting)
    wait_until(lambda: "poll" in _wchan(keeper) or "poll" in _syscall(keeper), "the keeper to sleep")
    asleep = _execution(keeper)
    _open(bench, holder)
    wait_until(lambda: _states(bench, waiting) == ["running"], "the queued task to begin")
    assert (bench.keeper(waiting), _execution(keeper)) == (keeper, asleep)
    _open(bench, waiting)
    assert bench.run("wait", waiting).returncode == 0


def _execution(pid: int) -> bytes:
    """Return the auxiliary vector of a process, which differs after each exec."""
    return Path(f"/proc/{pid}/auxv").read_bytes()


def _wchan(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/wchan").read_text()
    except OSError:
        return ""


def _syscall(pid: int) -> str:
    try:
        return "poll" if Path(f"/proc/{pid}/syscall").read_text().split()[0] in ("7", "271") else ""
    except (OSError, IndexError):
        return ""


def _switches(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))


def test_queued_task_times_out_when_its_queue_timeout_is_over(bench: Bench) -> None:
    """After its queue timeout, a queued task is `timed_out` with the reason `queue_timeout`.

    The task that has the lock continues. Row 17 of the acceptance scenarios.
    """
    holder = _gated(bench, "--lock", "l")
    waiting = bench.launch("echo never", "--lock", "l", "--queue-timeout", "300ms")
    assert bench.run("wait", waiting).returncode == 1
    shown = bench.show(waiting)
    assert (shown["state"], shown["reason"], shown["started_at"]) == ("timed_out", "queue_timeout", None)
    assert _states(bench, holder) == ["running"]


def test_queued_foreground_task_is_cancelled_when_its_terminal_session_ends(bench: Bench) -> None:
    """If its terminal session ends, a queued foreground task is cancelled with the reason `session_ended`."""
    holder = _gated(bench, "--lock", "l")
    _ready(bench, holder)
    call = " ".join(bench.command("run", "--foreground", "--lock", "l", "--", "echo", "never"))
    session = subprocess.Popen(
        ["setsid", "sh", "-c", f"{call}; exec sleep 60"],
        env=bench.env, cwd=bench.project, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert session.stdout is not None
    waiting = session.stdout.readline().strip()
    assert _states(bench, waiting) == ["queued"]
    with session:
        session.kill()
    wait_until(lambda: bench.row(waiting).state == "cancelled", "the queued task to be cancelled")
    assert bench.show(waiting)["reason"] == "session_ended"


def test_launch_is_refused_when_too_many_tasks_wait(bench: Bench) -> None:
    """If too many tasks wait, a launch that would have to wait is refused, and leaves no files."""
    bench.ok("list")
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger:
        for number in range(MOST_WAITING):
            ledger.enqueue(launch(id=f"t{number:07d}", engine="elsewhere"), attempt())
    done = bench.run("run", "--lock", "l", "--", "true")
    assert (done.returncode, done.stdout) == (3, "")
    assert f"{MOST_WAITING} tasks are waiting" in done.stderr
    assert bench.ok("run", "--", "true")
    assert len(os.listdir(bench.home.tasks)) == 1, "the refused launch left a bundle"


def test_sdk_accepts_the_queue_options(bench: Bench) -> None:
    """The SDK accepts tasks or ids as dependencies, and slots and locks, as the command line does."""
    client = Outlive(home=str(bench.state))
    options: dict[str, Any] = {"cwd": bench.project}
    os.mkfifo(bench.project / "gate")
    first = client.run("read x < gate", **options)
    second = client.run("exit 5", after=[first], slots={"s": 1}, **options)
    third = client.run("exit 0", after_any=[second], locks=["l"], **options)
    fourth = client.run("exit 0", after=[third.id, second.id], **options)
    (bench.project / "gate").write_text("\n")
    client.wait(third, fourth)
    assert (second.refresh().exit_code, third.state, fourth.state) == (5, "succeeded", "cancelled")
    assert fourth.reason == "dependency_failed"


def test_queued_task_survives_signals_to_its_keeper(bench: Bench) -> None:
    """SIGHUP, SIGTERM, SIGINT and SIGUSR1 do not end the keeper of a queued task."""
    holder = _gated(bench, "--lock", "l")
    _ready(bench, holder)
    waiting = bench.launch("echo mine", "--lock", "l")
    keeper = bench.keeper(waiting)
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        os.kill(keeper, number)
    assert _states(bench, waiting) == ["queued"]
    _open(bench, holder)
    assert bench.run("wait", waiting).returncode == 0


def test_queue_of_two_hundred_tasks_runs_in_order(bench: Bench) -> None:
    """All 210 tasks that wait for one lock succeed, in the order of their launch."""
    client = Outlive(home=str(bench.state))
    holder = client.run("read x < gate", locks=["l"], cwd=bench.project)
    os.mkfifo(bench.project / "gate")
    tasks = [client.run(["true"], locks=["l"], cwd=bench.project) for _ in range(210)]
    holder.cancel()
    assert client.wait(*tasks, timeout=90)
    assert {task.state for task in tasks} == {"succeeded"}
    starts = [str(task.as_dict()["started_at"]) for task in tasks]
    assert starts == sorted(starts)


@pytest.mark.parametrize("how", ["retry", "key"])
def test_new_attempt_of_a_queued_task_waits_for_its_dependency(bench: Bench, how: str) -> None:
    """If a task ended in the queue and is retried, it waits for its dependency again."""
    first = _gated(bench)
    _ready(bench, first)
    then = bench.launch("echo then", "--after", first, "--key", "k")
    if how == "retry":
        bench.ok("cancel", then)
        bench.ok("retry", then)
    else:
        kill(bench.keeper(then))
        assert bench.launch("echo then", "--after", first, "--key", "k") == then
    assert _states(bench, first, then) == ["running", "queued"]
    _open(bench, first)
    assert bench.run("wait", then).returncode == 0


def test_queued_task_begins_after_a_long_lock_on_the_ledger(bench: Bench) -> None:
    """If the ledger is locked for long, the keeper of a queued task tries again, and the task begins."""
    first = _gated(bench)
    _ready(bench, first)
    then = bench.launch("echo then", "--after", first, "--lock", "l")
    database = apsw.Connection(bench.home.ledger)
    database.set_busy_timeout(5000)
    _open(bench, first)
    wait_until(lambda: bench.row(first).state == "succeeded")
    database.execute("BEGIN IMMEDIATE")
    locked_at = time.monotonic()
    wait_until(lambda: time.monotonic() > locked_at + PATIENCE_S + 2)
    database.execute("ROLLBACK")
    database.close()
    assert bench.run("wait", then).returncode == 0


def test_retry_is_refused_when_too_many_tasks_wait(bench: Bench) -> None:
    """If too many tasks wait, a retry that would have to wait is refused, too."""
    done = bench.launch("true", "--lock", "l")
    bench.ok("wait", done)
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger:
        for number in range(MOST_WAITING):
            ledger.enqueue(launch(id=f"t{number:07d}", engine="elsewhere"), attempt())
    refused = bench.run("retry", done)
    assert (refused.returncode, refused.stdout) == (3, "")
    assert bench.row(done).state == "succeeded"


def test_launch_answers_when_a_fifo_it_waits_on_cannot_be_opened(bench: Bench) -> None:
    """If a FIFO that it waits on cannot be opened, a launch still prints the id. The keeper tries again later."""
    holder = _gated(bench, "--lock", "l")
    _ready(bench, holder)
    Path(bench.files(holder).done).rename(bench.files(holder).done + ".away")
    waiting = bench.launch("echo mine", "--lock", "l")
    assert _states(bench, waiting) == ["queued"]
    Path(bench.files(holder).done + ".away").rename(bench.files(holder).done)
    _open(bench, holder)
    assert bench.run("wait", waiting).returncode == 0
