"""Retention: what is kept, for how long, what goes first - and what never does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from outlive.keeper.tidying import tidy_a_little
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.handover import new_attempt
from tests.support import kill, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support import Bench


def _ended(bench: Bench, text: str, *options: str) -> str:
    task = bench.launch(text, *options)
    bench.run("wait", task)
    return task


def _expire(bench: Bench, *tasks: str) -> None:
    """Let their retention be over; launched with none, a keeper might have swept them already."""
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger, ledger.write():
        for task in tasks:
            ledger.db.execute("UPDATE attempt SET delete_after = 1 WHERE task = ? AND settled_at > 0", (task,))


def _age(bench: Bench, minutes: int) -> None:
    """Let everything have ended longer ago."""
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger, ledger.write():
        ledger.db.execute("UPDATE attempt SET settled_at = settled_at - ?", (minutes * 60_000_000,))


def _listed(bench: Bench) -> set[str]:
    return {task["id"] for task in bench.json("list", "--all", "--limit", "0")["tasks"]}


def _begin(bench: Bench, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(bench.command(*words), env=bench.env, cwd=bench.project, stdout=subprocess.PIPE, text=True)


def _lose_ledger(bench: Bench) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(bench.home.ledger + suffix).unlink(missing_ok=True)
    bench.run("list")


def _bundles(bench: Bench) -> set[str]:
    return set(os.listdir(bench.home.tasks))


def test_every_ending_is_readable_for_its_retention(bench: Bench) -> None:
    """Row 41: failed, cancelled, timed out, lost, not started: record and output stay, seven days by default."""
    failed = _ended(bench, "echo out; exit 3")
    timed_out = _ended(bench, "echo out; sleep 60", "--timeout", "200ms")
    cancelled = bench.launch("echo out; sleep 60")
    wait_until(lambda: bench.ok("output", cancelled))
    bench.ok("cancel", cancelled)
    bench.run("run", "--", "/no/such/program")
    bench.ok("sweep", "--apply")
    for task in (failed, timed_out, cancelled):
        assert bench.ok("output", task) == "out"
        shown = bench.show(task)
        assert shown["delete_after"] > shown["settled_at"]
    assert len(_listed(bench)) == 4


def test_a_preview_changes_nothing(bench: Bench) -> None:
    """Row 54: what it names is what `--apply` deletes, record and files."""
    due, kept = _ended(bench, "echo due"), _ended(bench, "echo kept")
    _expire(bench, due)
    preview = bench.json("sweep")
    assert [task["id"] for task in preview["tasks"]] == [due]
    assert (preview["applied"], preview["bytes"]) == (False, 4)
    assert _listed(bench) == _bundles(bench) == {due, kept}
    applied = bench.json("sweep", "--apply")
    assert [task["id"] for task in applied["tasks"]] == [due]
    assert _listed(bench) == _bundles(bench) == {kept}
    assert bench.run("show", due).returncode == 2
    assert bench.json("sweep")["tasks"] == []


def test_nothing_that_lives_or_was_not_told_is_taken(bench: Bench) -> None:
    """Row 42: past its date and over the cap: running, queued, undelivered and depended-on tasks remain."""
    running = bench.launch("echo x; sleep 60")
    dependency = _ended(bench, "echo x")
    waiting = bench.launch("true", "--after", dependency, "--after-any", running)
    untold = _ended(bench, "echo x", "--session", "s-1")
    told = _ended(bench, "echo x", "--session", "s-1")
    bench.ok("result", told, "--session", "s-1")
    _expire(bench, dependency, untold, told)
    swept = bench.json("sweep", "--apply", "--max-disk", "0")
    assert [task["id"] for task in swept["tasks"]] == [told]
    assert _listed(bench) == {running, dependency, waiting, untold}
    bench.ok("result", untold, "--session", "s-1")
    assert [task["id"] for task in bench.json("sweep", "--apply")["tasks"]] == [untold]


def test_the_oldest_go_first_when_there_is_too_much(bench: Bench) -> None:
    """A cap on all outputs together: just as many as needed, before their date."""
    tasks = [_ended(bench, "head -c 40000 /dev/zero") for _ in range(4)]
    swept = bench.json("sweep", "--apply", "--max-disk", "100K")
    assert [task["id"] for task in swept["tasks"]] == tasks[:2]
    assert _listed(bench) == set(tasks[2:])


def test_a_sweep_says_what_goes_before_its_date(bench: Bench) -> None:
    """Nothing is overdue by less than no time; and one record is one record."""
    _ended(bench, "head -c 40000 /dev/zero")
    row, told = bench.ok("sweep", "--max-disk", "10K").splitlines()[1:]
    assert "no, for room" in row
    assert told.startswith("would delete 1 record with 39.1K of output")


def test_keepers_sweep_a_little_by_themselves(bench: Bench) -> None:
    """What is due goes without anybody asking, while other tasks come and end."""
    due = {_ended(bench, "true", "--retain", "0s") for _ in range(3)}
    _age(bench, minutes=2)
    for _ in range(120):
        _ended(bench, "true")
        if not due & _listed(bench):
            break
    assert not due & _listed(bench)
    wait_until(lambda: not due & _bundles(bench), "their files to go too")


def test_an_ending_is_there_for_those_who_waited_for_it(bench: Bench) -> None:
    """No keeper sweeps what has just ended, not even if it is to be kept for no time at all."""
    due = {_ended(bench, "true", "--retain", "0s") for _ in range(40)}
    assert due <= _listed(bench)


def test_the_cap_comes_from_the_environment_too(bench: Bench) -> None:
    """`OUTLIVE_MAX_DISK`; what is not a size is not one."""
    _ended(bench, "head -c 40000 /dev/zero")
    assert len(bench.json("sweep", env={"OUTLIVE_MAX_DISK": "10K"})["tasks"]) == 1
    assert bench.json("sweep", env={"OUTLIVE_MAX_DISK": "a lot"})["tasks"] == []


def test_an_audit_of_a_healthy_home_finds_nothing(bench: Bench) -> None:
    """With running, waiting, ended and retried tasks."""
    _ended(bench, "exit 1")
    bench.launch("sleep 60", "--lock", "l")
    bench.launch("true", "--lock", "l")
    assert bench.ok("audit") == "everything is consistent"
    assert bench.json("audit")["findings"] == []


def test_every_seeded_fault_is_named_with_what_mends_it(bench: Bench) -> None:
    """Row 54: each by its kind and its task; exit code 1; and the audit changes nothing."""
    tasks = {name: _ended(bench, "true") for name in ("gone", "unlocked", "clock", "no spec")}
    untold = _ended(bench, "true", "--session", "s-1")
    shutil.rmtree(bench.home.bundle(tasks["gone"]))
    Path(bench.files(tasks["unlocked"]).lock).unlink()
    Path(bench.home.bundle(tasks["no spec"]), "spec.json").unlink()
    os.mkdir(bench.home.bundle("tstray22"))
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger, ledger.write():
        later = "UPDATE attempt SET started_at = started_at + 7200000000 WHERE task = ?"
        ledger.db.execute(later, (tasks["clock"],))
        ledger.db.execute("UPDATE notice SET created_at = created_at - 200000000000 WHERE task = ?", (untold,))
    before = {path: path.stat().st_mtime_ns for path in Path(bench.home.tasks).rglob("*")}
    done = bench.run("audit")
    assert done.returncode == 1
    assert done.stdout.count("mend:") == 6
    found = {(finding["kind"], finding["task"]) for finding in bench.json("audit")["findings"]}
    assert found == {
        ("row_without_bundle", tasks["gone"]),
        ("missing_files", tasks["unlocked"]),
        ("missing_spec", tasks["no spec"]),
        ("clock", tasks["clock"]),
        ("undelivered", untold),
        ("bundle_without_row", "tstray22"),
    }
    assert {path: path.stat().st_mtime_ns for path in Path(bench.home.tasks).rglob("*")} == before


def test_a_rebuild_is_promised_only_where_there_is_enough_for_it(bench: Bench) -> None:
    """A copy under another name, and a launcher that was killed at once: no rebuild gives either of them a row."""
    task = bench.launch("true")
    bench.ok("wait", task)
    tasks = Path(bench.home.tasks)
    shutil.copytree(tasks / task, tasks / "tcopy222", ignore=lambda *_: ["control", "done"])
    shutil.copytree(tasks / task, tasks / "tspec222", ignore=lambda *_: ["1"])
    (tasks / "tspec222" / "spec.json").write_text((tasks / task / "spec.json").read_text().replace(task, "tspec222"))
    found = {finding["task"]: finding["mend"] for finding in bench.json("audit")["findings"]}
    assert set(found) == {"tcopy222", "tspec222"}
    assert not [mend for mend in found.values() if "--rebuild" in mend]
    assert bench.json("audit", "--rebuild")["rebuilt"] == []


def test_what_files_say_against_a_row_is_named(bench: Bench) -> None:
    """A damaged record, an emptied output, an open mode, an attempt on no record, a FIFO that is none, no keeper."""
    tasks = {name: _ended(bench, "echo out") for name in ("record", "output", "mode", "attempt", "fifo", "spec")}
    unkept = bench.launch("sleep 60")
    for who in (bench.keeper(unkept), bench.process(unkept, "witness"), bench.process(unkept)):
        kill(who)
    wait_until(lambda: bench.find_keeper(unkept) is None)
    with open(bench.files(tasks["record"]).record, "r+b") as file:
        file.write(os.urandom(64))
    Path(bench.files(tasks["output"]).output).write_bytes(b"")
    Path(bench.files(tasks["mode"]).output).chmod(0o644)
    os.mkdir(bench.home.bundle(tasks["attempt"]) + "/attempts/2", 0o700)
    Path(bench.files(tasks["fifo"]).done).unlink()
    Path(bench.files(tasks["fifo"]).done).touch(0o600)
    Path(bench.home.bundle(tasks["spec"]), "spec.json").write_text("{")
    found = {(finding["kind"], finding["task"]) for finding in bench.json("audit")["findings"]}
    assert found == {
        ("damaged_record", tasks["record"]),
        ("lost_output", tasks["output"]),
        ("open_to_others", tasks["mode"]),
        ("attempt_without_row", tasks["attempt"]),
        ("wrong_files", tasks["fifo"]),
        ("missing_spec", tasks["spec"]),
        ("unkept", unkept),
    }


@pytest.mark.parametrize("missing", ["lock", "control"])
def test_what_is_said_to_end_a_task_without_all_of_its_files_ends_it(bench: Bench, missing: str) -> None:
    """The audit names a command; that command works, and the ending is on record."""
    task = bench.launch("sleep 60")
    Path(getattr(bench.files(task), missing)).unlink()
    (finding,) = bench.json("audit")["findings"]
    verb, *rest = finding["mend"].split(" ends it")[0].split()
    if verb == "kill":
        os.kill(int(rest[0]), signal.SIGTERM)
    else:
        bench.ok(*rest, task)
    assert bench.run("wait", task, "--timeout", "10s").returncode == 1
    assert bench.row(task).state == ("failed" if verb == "kill" else "cancelled")


@pytest.mark.parametrize("call", [(), ("--json",), ("--tail", "3"), ("--follow",), ("--raw",)])
def test_an_output_that_was_deleted_does_not_read_as_empty(bench: Bench, call: tuple[str, ...]) -> None:
    """The record of how it ended is there; what it wrote is not known any more."""
    task = bench.launch("echo precious")
    bench.ok("wait", task)
    shutil.rmtree(bench.home.bundle(task))
    done = bench.run("output", task, *call)
    assert (done.returncode, done.stdout) == (3, "")
    assert f"the output of task {task} is gone" in done.stderr
    assert bench.show(task)["state"] == "succeeded"
    assert [bench.run(verb, task).returncode for verb in ("result", "effects")] == [0, 0]


def test_old_files_without_a_record_are_swept(bench: Bench) -> None:
    """Not the young ones: a launch may be under way."""
    _ended(bench, "true")
    for name, age, inside in (("tempty22", 7200, ""), ("told2222", 7200, "/attempts"), ("tyoung22", 60, "/attempts")):
        os.makedirs(bench.home.bundle(name) + inside)
        then = time.time() - age
        os.utime(bench.home.bundle(name), (then, then))
    assert bench.json("sweep", "--apply")["strays"] == ["tempty22", "told2222"]
    assert "tyoung22" in _bundles(bench)


READER = """
import apsw, sys
cursor = apsw.Connection(sys.argv[1]).cursor()
cursor.execute("begin; select count(*) from task").fetchall()
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def _what_follows_is_in_the_log_only(bench: Bench) -> Iterator[None]:
    """Nobody folds it into the ledger itself while somebody reads what was there before."""
    words = [sys.executable, "-c", READER, bench.home.ledger]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        try:
            assert reader.stdout is not None
            assert reader.stdout.readline() == b"ready\n"
            yield
        finally:
            reader.kill()


@pytest.mark.parametrize("how", ["deleted", "overwritten", "without its log", "with an empty log"])
def test_a_lost_ledger_is_rebuilt_from_the_bundles(bench: Bench, how: str) -> None:
    """Row 50: commands, endings, attempts, reasons and outputs are there again; what runs goes on and is settled."""
    failed = _ended(bench, "echo out; exit 3", "--description", "for the books", "--group", "g", "--key", "k")
    cancelled = bench.launch("sleep 60")
    bench.ok("cancel", cancelled)
    retried = _ended(bench, "[ -e ok ] || exit 4")
    (bench.project / "ok").touch()
    bench.ok("retry", retried)
    bench.ok("wait", retried)
    os.mkfifo(bench.project / "gate")
    with _what_follows_is_in_the_log_only(bench):
        running = bench.launch("read x < gate; exit 6", "--lock", "l")
        waiting = bench.launch("echo mine", "--lock", "l")
        order = [task["id"] for task in bench.json("list")["tasks"]]
        for suffix in ("", "-wal", "-shm"):
            path = Path(bench.home.ledger + suffix)
            if how == "deleted":
                path.unlink(missing_ok=True)
            elif how == "overwritten" and path.exists():
                path.write_bytes(b"no database " * 1000)
        if how == "without its log":
            Path(bench.home.ledger + "-wal").unlink()
        elif how == "with an empty log":
            os.truncate(bench.home.ledger + "-wal", 0)
        assert bench.run("list").returncode == 3
    rebuilt = bench.json("audit", "--rebuild")
    assert sorted(rebuilt["rebuilt"]) == sorted(order)
    assert rebuilt["findings"] == []
    assert [task["id"] for task in bench.json("list")["tasks"]] == order
    shown = bench.show(failed)
    assert (shown["state"], shown["exit_code"], shown["description"], shown["group"], shown["key"]) == (
        *("failed", 3, "for the books", "g", "k"),
    )
    assert bench.ok("output", failed) == "out"
    assert (bench.show(cancelled)["state"], bench.show(cancelled)["reason"]) == ("cancelled", "requested")
    assert [each["exit_code"] for each in bench.show(retried)["attempts"]] == [4, 0]
    assert [bench.row(task).state for task in (running, waiting)] == ["running", "queued"]
    (bench.project / "gate").write_text("\n")
    assert bench.run("wait", running, waiting).returncode == 1
    assert (bench.show(running)["exit_code"], bench.show(running)["settled_by"]) == (6, "keeper")
    assert bench.show(waiting)["state"] == "succeeded"


def test_a_rebuilt_ledger_tells_the_same_of_what_never_began(bench: Bench) -> None:
    """Cancelled, timed out or refused in line; a running holder holds; what rests before a retry is tried again."""
    os.mkfifo(bench.project / "gate")
    first = _ended(bench, "true")
    holder = bench.launch("read x < gate", "--lock", "l", "--after", first)
    wait_until(lambda: bench.row(holder).state == "running")
    cancelled = bench.launch("true", "--lock", "l")
    bench.ok("cancel", cancelled)
    timed_out = _ended(bench, "true", "--lock", "l", "--queue-timeout", "100ms")
    bench.run("run", "--after", cancelled, "--", "true")
    resting = bench.launch("echo x >> tries; [ $(wc -l < tries) -ge 3 ]", "--retries", "5")
    wait_until(lambda: len(bench.row(resting).attempts) == 3)
    before = {task["id"]: (task["state"], task["reason"]) for task in bench.json("list")["tasks"]}
    _lose_ledger(bench)
    bench.json("audit", "--rebuild")
    after = {task["id"]: (task["state"], task["reason"]) for task in bench.json("list")["tasks"]}
    assert after == before
    assert (after[cancelled], after[timed_out]) == (("cancelled", "requested"), ("timed_out", "queue_timeout"))
    later = bench.launch("echo later", "--lock", "l")
    assert bench.row(later).state == "queued"
    (bench.project / "gate").write_text("\n")
    assert bench.run("wait", holder, later, resting).returncode == 0


def test_one_damaged_bundle_does_not_keep_the_others_from_being_rebuilt(bench: Bench) -> None:
    """Half an attempt of a launcher that was killed, deleted locks, strange files: what is on record is told."""
    whole = [_ended(bench, "exit 3") for _ in range(5)]
    half, no_lock, no_done, no_control, _ = whole
    os.mkdir(bench.home.bundle(half) + "/attempts/2", 0o700)
    Path(bench.home.bundle(half), "attempts", "notes").touch(0o600)
    for path in (bench.files(no_lock).lock, bench.files(no_done).done, bench.files(no_control).control):
        Path(path).unlink()
    never_begun = _ended(bench, "true")
    shutil.rmtree(bench.files(never_begun).path)
    os.mkdir(bench.files(never_begun).path, 0o700)
    _lose_ledger(bench)
    assert sorted(bench.json("audit", "--rebuild")["rebuilt"]) == sorted(whole)
    shown = bench.json("list")["tasks"]
    assert {(task["id"], task["state"], task["exit_code"]) for task in shown} == {(task, "failed", 3) for task in whole}


def test_what_is_being_launched_is_its_launchers_to_record(bench: Bench) -> None:
    """Its files are there and its row is not, as it should be; on another row, nobody could say how it ended."""
    before = {_ended(bench, "true")}
    others = apsw.Connection(bench.home.ledger)
    others.execute("BEGIN IMMEDIATE")
    launching = _begin(bench, "run", "--", "true")
    wait_until(lambda: [new for new in _bundles(bench) - before if os.path.exists(bench.files(new).output)])
    found = bench.json("audit", "--rebuild")
    others.execute("ROLLBACK")
    assert (found["rebuilt"], found["findings"]) == ([], [])
    task = launching.communicate()[0].strip()
    bench.ok("wait", task)
    assert bench.show(task)["state"] == "succeeded"


def test_two_who_rebuild_at_once_do_it_once(bench: Bench) -> None:
    """Whoever is second finds the row, and goes on."""
    tasks = [_ended(bench, "true") for _ in range(8)]
    _lose_ledger(bench)
    both = [_begin(bench, "audit", "--rebuild", "--json") for _ in range(2)]
    said = [json.loads(each.communicate()[0]) for each in both]
    assert sorted(said[0]["rebuilt"] + said[1]["rebuilt"]) == sorted(tasks)


def test_a_rebuild_that_was_killed_is_finished_by_the_next_one(bench: Bench) -> None:
    """It goes row by row; a later attempt that has begun had a row, and how it ended is how the task did."""
    task = _ended(bench, "[ -e ok ] || exit 4")
    (bench.project / "ok").touch()
    bench.ok("retry", task)
    bench.ok("wait", task)
    never_recorded = _ended(bench, "true")
    Path(bench.home.bundle(never_recorded), "attempts", "2").touch(0o600)
    rows = [bench.row(each) for each in (task, never_recorded)]
    _lose_ledger(bench)
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger:
        for row in rows:
            ledger.enqueue(row.launch, new_attempt(row.launch, 1, utc_now()))
    mends = {each["task"]: each["mend"] for each in bench.json("audit")["findings"] if "attempts/2" in each["what"]}
    assert ("--rebuild" in mends[task], "--rebuild" in mends[never_recorded]) == (True, False)
    assert bench.json("audit", "--rebuild")["rebuilt"] == [task]
    assert [each["exit_code"] for each in bench.show(task)["attempts"]] == [4, 0]
    assert len(bench.show(never_recorded)["attempts"]) == 1


def test_what_was_taken_for_waiting_and_has_ended_is_settled(bench: Bench) -> None:
    """A row that lags behind its record keeps nobody from reading the others."""
    task = _ended(bench, "true")
    row = bench.row(task)
    _lose_ledger(bench)
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger:
        ledger.enqueue(row.launch, new_attempt(row.launch, 1, utc_now()).but(state="queued", started_at=None))
    assert [(each["id"], each["state"]) for each in bench.json("list")["tasks"]] == [(task, "succeeded")]


def test_what_could_be_rebuilt_is_not_swept(bench: Bench) -> None:
    """The ledger is lost, the files are hours old: they are all that is left of an ending nobody was told."""
    task = _ended(bench, "echo precious; exit 3", "--session", "s-1")
    for suffix in ("", "-wal", "-shm"):
        Path(bench.home.ledger + suffix).unlink(missing_ok=True)
    then = time.time() - 7200
    os.utime(bench.home.bundle(task), (then, then))
    bench.run("list")
    assert bench.json("sweep", "--apply")["strays"] == []
    assert bench.json("audit", "--rebuild")["rebuilt"] == [task]
    assert bench.show(task)["exit_code"] == 3


def test_a_clock_that_leapt_ahead_deletes_nothing_by_itself(bench: Bench) -> None:
    """The last launch was more than a day ago by the clock, or the clock is wrong: only who asks is served."""
    due = _ended(bench, "true")
    _ended(bench, "true")
    _expire(bench, due)
    _age(bench, minutes=2)
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger:
        tidy_a_little(bench.home, ledger, utc_now() + timedelta(days=2))
        assert ledger.task(due) is not None
        tidy_a_little(bench.home, ledger, utc_now())
        assert ledger.task(due) is None
