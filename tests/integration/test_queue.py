"""Queueing without a daemon: dependencies, slots, locks; who waits, who begins, and who is told why not."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from outlive import Outlive
from outlive.domain.queueing import MOST_WAITING
from outlive.ledger.opening import PATIENCE_S
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from tests.support import is_alive, kill, wait_until
from tests.unit.values import attempt, launch

if TYPE_CHECKING:
    from tests.support import Bench

# Says when it runs, and runs until its own gate is opened.
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


def test_no_more_than_allowed_at_once_in_order(bench: Bench) -> None:
    """Row 5: limit 2, launch 5: two run, the others follow in the order of their launch."""
    tasks = [_gated(bench, "--slots", "x=2") for _ in range(5)]
    _ready(bench, *tasks)
    for ended, task in enumerate(tasks):
        wait_until(lambda ended=ended: len(_began(bench)) == min(ended + 2, 5), "the next to begin")  # type: ignore[misc]
        assert _states(bench, *tasks[ended:]) == ["running"] * min(2, 5 - ended) + ["queued"] * max(0, 3 - ended)
        _open(bench, task)
        bench.ok("wait", task)
    assert _began(bench)[2:] == tasks[2:]


def test_whoever_ends_first_makes_room(bench: Bench) -> None:
    """The second of two ends before the first: its place is taken at once."""
    tasks = [_gated(bench, "--slots", "x=2") for _ in range(3)]
    _ready(bench, *tasks)
    wait_until(lambda: len(_began(bench)) == 2)
    _open(bench, tasks[1])
    wait_until(lambda: _began(bench)[2:] == [tasks[2]], "the third")
    assert _states(bench, *tasks) == ["running", "succeeded", "running"]


def test_a_cancelled_waiter_frees_nothing_that_it_did_not_hold(bench: Bench) -> None:
    """Row 6: cancel queued #3: #4 starts next, the limit is never exceeded."""
    tasks = [_gated(bench, "--slots", "x=2") for _ in range(4)]
    _ready(bench, *tasks)
    wait_until(lambda: len(_began(bench)) == 2)
    assert "cancelled" in bench.ok("cancel", tasks[2])
    shown = bench.show(tasks[2])
    assert (shown["state"], shown["reason"], shown["started_at"]) == ("cancelled", "requested", None)
    assert _states(bench, *tasks) == ["running", "running", "cancelled", "queued"]
    _open(bench, tasks[0])
    wait_until(lambda: _began(bench)[2:] == [tasks[3]], "the fourth")


def test_a_dead_holders_slot_is_free_at_once(bench: Bench) -> None:
    """Keeper, witness and command are killed with SIGKILL: the one that waits begins without anybody looking."""
    holder = _gated(bench, "--lock", "l")
    waiting = bench.launch("echo mine", "--lock", "l")
    for pid in (bench.keeper(holder), bench.process(holder, "witness"), bench.process(holder)):
        kill(pid)
    wait_until(lambda: bench.row(waiting).state == "succeeded", "the waiter's turn")
    # Newer kernels tell even a stranger how the command ended.
    assert bench.row(holder).state in ("lost", "failed")


def test_a_holder_without_keeper_still_holds(bench: Bench) -> None:
    """Only its keeper is killed: the command runs on, and nobody else may begin before it has ended."""
    holder = _gated(bench, "--lock", "l")
    _ready(bench, holder)
    waiting = bench.launch("echo mine", "--lock", "l")
    kill(bench.keeper(holder))
    wait_until(lambda: bench.find_keeper(holder), "the waiter to bring a new keeper")
    assert _states(bench, holder, waiting) == ["running", "queued"]
    _open(bench, holder)
    assert bench.run("wait", holder, waiting).returncode == 0


def test_a_waiter_whose_keeper_is_killed_is_lost_and_holds_nobody_up(bench: Bench) -> None:
    """Nobody is left who has its environment: it is told as never begun, and the next one gets its turn."""
    holder = _gated(bench, "--lock", "l")
    _ready(bench, holder)
    victim, last = bench.launch("echo victim", "--lock", "l"), bench.launch("echo last", "--lock", "l")
    kill(bench.keeper(victim))
    _open(bench, holder)
    wait_until(lambda: bench.row(last).state == "succeeded", "the turn of the one behind it")
    assert bench.row(victim).state == "lost", "found by that one, before any reader"
    evidence = bench.show(victim)["evidence"][-1]
    assert (evidence["started"], evidence["cause"]) == ("no", "keeper_killed")


def test_locks_and_slots_of_one_name_are_two_things(bench: Bench) -> None:
    """And a task may claim several places: it begins when it has them all."""
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


def test_after_success_and_after_anything(bench: Bench) -> None:
    """A failure cancels those that were to follow a success, with that reason, and theirs in turn."""
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
        f"task {failing}, which it was to run after, is failed",
    )
    assert bench.show(nor)["detail"] == f"task {never}, which it was to run after, is cancelled"


def test_a_dependency_that_has_failed_already(bench: Bench) -> None:
    """It is refused like a command that cannot be started: exit code 1, and on record."""
    failed = bench.launch("exit 1")
    bench.run("wait", failed)
    done = bench.run("run", "--after", failed, "--", "true")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"task {failed}, which it was to run after, is failed" in done.stderr
    assert bench.json("list")["tasks"][0]["reason"] == "dependency_failed"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--after", "tzzzzzzz"), "no task has an id"),
        (("--slots", "x"), "--slots cannot be 'x'"),
        (("--slots", "x=0"), "--slots cannot be 'x=0'"),
        (("--slots", "=3"), "is no name"),
        (("--slots", "x=99999999999999999999"), "--slots cannot be"),
        (("--lock", ""), "is no name"),
        (("--lock", "a", "--lock", "a"), "one name is given twice"),
        (("--retries", "-1"), "--retries cannot be '-1'"),
        (("--retries", "101"), "101 retries are not possible"),
        (("--queue-timeout", "soon"), "soon"),
    ],
)
def test_what_cannot_be_waited_for_is_refused(bench: Bench, options: tuple[str, ...], says: str) -> None:
    """An error in two lines, exit code 2, and nothing on record."""
    done = bench.run("run", *options, "--", "true")
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert bench.json("list", "--all")["tasks"] == []


def test_a_task_cannot_wait_for_itself(bench: Bench) -> None:
    """Inside a task, `--after` that very task with `--wait` would never end: refused."""
    call = " ".join(bench.command("run", "--after", "$OUTLIVE_TASK", "--wait", "60s", "--", "true"))
    task = bench.launch(f"{call} 2>&1; echo code $?")
    bench.ok("wait", task)
    assert "would wait for itself" in bench.ok("output", task)
    assert "code 2" in bench.ok("output", task)
    call = " ".join(bench.command("run", "--after", "$OUTLIVE_TASK", "--", "echo", "afterwards"))
    task = bench.launch(f"{call} > inner")
    bench.ok("wait", task)
    inner = (bench.project / "inner").read_text().strip()
    assert bench.run("wait", inner).returncode == 0, "without --wait it is a plain successor"


def test_a_waiting_task_is_its_own_process(bench: Bench) -> None:
    """It keeps its launcher's directory, umask and environment, though nothing of that is on disk."""
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


def test_a_waiting_keeper_sleeps(bench: Bench) -> None:
    """It makes no system call and takes little memory while it waits."""
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


def test_a_waiting_keeper_wakes_in_the_interpreter_that_it_sleeps_in(bench: Bench) -> None:
    """Another one, with all that a system's `site` loads, would take longer to start than a keeper: times hundreds."""
    holder = _gated(bench, "--lock", "l")
    waiting = _gated(bench, "--lock", "l")
    keeper = bench.keeper(waiting)
    wait_until(lambda: "poll" in _wchan(keeper) or "poll" in _syscall(keeper), "its sleep")
    asleep = _execution(keeper)
    _open(bench, holder)
    wait_until(lambda: _states(bench, waiting) == ["running"], "its turn")
    assert (bench.keeper(waiting), _execution(keeper)) == (keeper, asleep)
    _open(bench, waiting)
    assert bench.run("wait", waiting).returncode == 0


def _execution(pid: int) -> bytes:
    """What differs from one exec to the next: where the kernel has put things."""
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


def test_waiting_too_long_has_a_reason_of_its_own(bench: Bench) -> None:
    """Row 17: a held slot: the queued task ends with "timed out while queued"."""
    holder = _gated(bench, "--lock", "l")
    waiting = bench.launch("echo never", "--lock", "l", "--queue-timeout", "300ms")
    assert bench.run("wait", waiting).returncode == 1
    shown = bench.show(waiting)
    assert (shown["state"], shown["reason"], shown["started_at"]) == ("timed_out", "queue_timeout", None)
    assert _states(bench, holder) == ["running"]


def test_a_foreground_task_that_waits_ends_with_its_session(bench: Bench) -> None:
    """Its terminal goes away while it is in line: it never begins."""
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
    wait_until(lambda: bench.row(waiting).state == "cancelled", "its end")
    assert bench.show(waiting)["reason"] == "session_ended"


def test_at_most_so_many_wait(bench: Bench) -> None:
    """Past the limit a launch that would have to wait is refused; others are not."""
    bench.ok("list")
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger:
        for number in range(MOST_WAITING):
            ledger.enqueue(launch(id=f"t{number:07d}", engine="elsewhere"), attempt())
    done = bench.run("run", "--lock", "l", "--", "true")
    assert (done.returncode, done.stdout) == (3, "")
    assert f"{MOST_WAITING} tasks are waiting" in done.stderr
    assert bench.ok("run", "--", "true")
    assert len(os.listdir(bench.home.tasks)) == 1, "nothing is left of the refused one"


def test_the_sdk_queues_too(bench: Bench) -> None:
    """With the same words, and tasks in place of ids."""
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


def test_a_waiter_survives_the_end_of_its_launcher_and_of_its_terminal(bench: Bench) -> None:
    """SIGHUP, SIGTERM and SIGINT do not take its place in line."""
    holder = _gated(bench, "--lock", "l")
    _ready(bench, holder)
    waiting = bench.launch("echo mine", "--lock", "l")
    keeper = bench.keeper(waiting)
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        os.kill(keeper, number)
    assert _states(bench, waiting) == ["queued"]
    _open(bench, holder)
    assert bench.run("wait", waiting).returncode == 0


def test_a_deleted_installation_is_told_of(bench: Bench) -> None:
    """Its turn comes, and there is no Outlive any more to begin it: known never to have begun."""
    copy = bench.root / "packages"
    shutil.copytree(Path(sys.modules["outlive"].__file__ or "").parent, copy / "outlive")
    holder = _gated(bench, "--lock", "l")
    _ready(bench, holder)
    entry = "from outlive.cli.main import main; raise SystemExit(main())"
    done = subprocess.run(
        [sys.executable, "-c", entry, "run", "--lock", "l", "--", "true"],
        env={**bench.env, "PYTHONPATH": str(copy)}, cwd=bench.project, capture_output=True, text=True, check=True,
    )  # fmt: skip
    waiting = done.stdout.strip()
    shutil.rmtree(copy)
    _open(bench, holder)
    bench.ok("wait", holder)
    wait_until(lambda: bench.show(waiting)["state"] == "lost", "its end")
    assert bench.show(waiting)["evidence"][-1]["started"] == "no"


def test_everybody_gets_a_turn_however_long_the_line(bench: Bench) -> None:
    """More than two hundred wait for one lock: the last one runs too."""
    client = Outlive(home=str(bench.state))
    holder = client.run("read x < gate", locks=["l"], cwd=bench.project)
    os.mkfifo(bench.project / "gate")
    tasks = [client.run(["true"], locks=["l"], cwd=bench.project) for _ in range(210)]
    holder.cancel()
    assert client.wait(*tasks, timeout=90)
    assert {task.state for task in tasks} == {"succeeded"}
    starts = [task.as_dict()["started_at"] for task in tasks]
    assert starts == sorted(starts)


@pytest.mark.parametrize("how", ["retry", "key"])
def test_what_never_began_still_depends_on_others(bench: Bench, how: str) -> None:
    """A further attempt of a task that was ended while it waited waits again."""
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


def test_a_ledger_that_is_locked_when_the_turn_comes_costs_no_place(bench: Bench) -> None:
    """Longer than anybody's patience: the task begins when the ledger is free again."""
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


def test_a_full_line_takes_no_retry_either(bench: Bench) -> None:
    """The limit is one of waiting, not of launching."""
    done = bench.launch("true", "--lock", "l")
    bench.ok("wait", done)
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger:
        for number in range(MOST_WAITING):
            ledger.enqueue(launch(id=f"t{number:07d}", engine="elsewhere"), attempt())
    refused = bench.run("retry", done)
    assert (refused.returncode, refused.stdout) == (3, "")
    assert bench.row(done).state == "succeeded"


def test_few_descriptors_do_not_keep_a_launch_from_answering(bench: Bench) -> None:
    """A door that cannot be opened is tried again; the id is printed meanwhile."""
    holder = _gated(bench, "--lock", "l")
    _ready(bench, holder)
    Path(bench.files(holder).done).rename(bench.files(holder).done + ".away")
    waiting = bench.launch("echo mine", "--lock", "l")
    assert _states(bench, waiting) == ["queued"]
    Path(bench.files(holder).done + ".away").rename(bench.files(holder).done)
    _open(bench, holder)
    assert bench.run("wait", waiting).returncode == 0
