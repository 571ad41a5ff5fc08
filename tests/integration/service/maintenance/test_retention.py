"""Which records and outputs Outlive keeps, deletes and restores."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from datetime import timedelta
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit
from typing import TYPE_CHECKING

import apsw
import pytest

from outlive.keeper.cleanup import tidy_a_little
from outlive.ledger.completeness import Restoring, count_attempt, read_fingerprint
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.maintenance.rebuild import rebuild
from outlive.service.tasks.start_attempt import new_attempt
from tests.support import kept_in_log, kill, wait_until

if TYPE_CHECKING:
    from outlive.bundle.attempt import HeldFiles
    from tests.support import Bench


def _ended(bench: Bench, text: str, *options: str) -> str:
    task = bench.launch(text, *options)
    bench.run("wait", task)
    return task


def _expire(bench: Bench, *tasks: str) -> None:
    """Set the deletion date of ended tasks to the past.

    A task that was launched with `--retain 0s` could already have been deleted by a keeper.
    """
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger, ledger.write():
        for task in tasks:
            ledger.db.execute("UPDATE attempt SET delete_after = 1 WHERE task = ? AND settled_at > 0", (task,))


def _age(bench: Bench, minutes: int) -> None:
    """Set the endings of all attempts to an earlier time."""
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger, ledger.write():
        ledger.db.execute("UPDATE attempt SET settled_at = settled_at - ?", (minutes * 60_000_000,))


def _listed(bench: Bench) -> set[str]:
    return {task["id"] for task in bench.json("list", "--all", "--limit", "0")["tasks"]}


def _begin(bench: Bench, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(bench.command(*words), env=bench.env, cwd=bench.project, stdout=subprocess.PIPE, text=True)


def _lose_ledger(bench: Bench) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(bench.home.ledger + suffix).unlink(missing_ok=True)


def _copy_of_ledger(bench: Bench) -> dict[str, bytes]:
    paths = [Path(bench.home.ledger + suffix) for suffix in ("", "-wal")]
    return {str(path): path.read_bytes() for path in paths if path.exists()}


def _put_ledger(bench: Bench, content: dict[str, bytes]) -> None:
    """Write other content into the ledger's files, file by file as `cp` does."""
    Path(bench.home.ledger + "-shm").unlink(missing_ok=True)
    for path in (bench.home.ledger, bench.home.ledger + "-wal"):
        Path(path).write_bytes(content.get(path, b""))


def _bundles(bench: Bench) -> set[str]:
    return set(os.listdir(bench.home.tasks))


def test_every_ended_task_keeps_its_record_and_output_for_its_retention(bench: Bench) -> None:
    """No ended task is deleted before its date, however it ended. Row 41 of the acceptance scenarios."""
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


def test_sweep_without_apply_deletes_nothing(bench: Bench) -> None:
    """`sweep` only names the task that `sweep --apply` would delete. Row 54 of the acceptance scenarios."""
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


def test_sweep_keeps_live_tasks_dependencies_and_unacknowledged_endings(bench: Bench) -> None:
    """`sweep` keeps tasks that run, that others wait for, or whose ending is not read.

    Row 42 of the acceptance scenarios.
    """
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


def test_sweep_deletes_the_oldest_tasks_when_outputs_exceed_the_limit(bench: Bench) -> None:
    """If the outputs exceed `--max-disk`, `sweep` deletes the oldest tasks, even before their dates."""
    tasks = [_ended(bench, "head -c 40000 /dev/zero") for _ in range(4)]
    swept = bench.json("sweep", "--apply", "--max-disk", "100K")
    assert [task["id"] for task in swept["tasks"]] == tasks[:2]
    assert _listed(bench) == set(tasks[2:])


def test_sweep_marks_records_that_it_deletes_before_their_date(bench: Bench) -> None:
    """`sweep` marks a record that it deletes before its date with `no, for room`, and counts such records."""
    _ended(bench, "head -c 40000 /dev/zero")
    row, told = bench.ok("sweep", "--max-disk", "10K").splitlines()[1:]
    assert "no, for room" in row
    assert told.startswith("would delete 1 record with 39.1K of output")


def test_keepers_delete_due_tasks(bench: Bench) -> None:
    """Keepers of other tasks delete the tasks whose date has passed. No call of `sweep` is needed."""
    due = {_ended(bench, "true", "--retain", "0s") for _ in range(3)}
    _age(bench, minutes=2)
    for _ in range(120):
        _ended(bench, "true")
        if not due & _listed(bench):
            break
    assert not due & _listed(bench)
    wait_until(lambda: not due & _bundles(bench), "the bundles of the deleted tasks to be deleted")


def test_keepers_do_not_delete_a_task_that_has_just_ended(bench: Bench) -> None:
    """A task with `--retain 0s` is still listed right after its end. No keeper deletes it at once."""
    due = {_ended(bench, "true", "--retain", "0s") for _ in range(40)}
    assert due <= _listed(bench)


def test_sweep_reads_its_limit_from_the_environment(bench: Bench) -> None:
    """`OUTLIVE_MAX_DISK` sets the limit of `sweep`. An invalid value is ignored."""
    _ended(bench, "head -c 40000 /dev/zero")
    assert len(bench.json("sweep", env={"OUTLIVE_MAX_DISK": "10K"})["tasks"]) == 1
    assert bench.json("sweep", env={"OUTLIVE_MAX_DISK": "a lot"})["tasks"] == []


def test_audit_of_a_consistent_state_directory_finds_nothing(bench: Bench) -> None:
    """The audit finds nothing in a state directory with a running, a queued and a failed task."""
    _ended(bench, "exit 1")
    bench.launch("sleep 60", "--lock", "l")
    bench.launch("true", "--lock", "l")
    assert bench.ok("audit") == "everything is consistent"
    assert bench.json("audit")["findings"] == []


def test_audit_names_every_fault_and_its_repair(bench: Bench) -> None:
    """`audit` names each fault and its repair, exits with 1, and changes no file.

    Row 54 of the acceptance scenarios.
    """
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
    assert done.stdout.count("repair:") == 6
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


def test_audit_suggests_a_rebuild_only_when_it_can_recreate_the_row(bench: Bench) -> None:
    """`audit` suggests no rebuild for a bundle under the id of another task, or for one without an attempt."""
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


def test_audit_names_files_that_contradict_the_ledger(bench: Bench) -> None:
    """`audit` has a finding for each damaged, missing or unexpected file, and for a missing keeper."""
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
def test_command_named_by_the_audit_ends_a_task_with_a_missing_file(bench: Bench, missing: str) -> None:
    """If a file of a running task is missing, the command that `audit` suggests ends the task properly."""
    task = bench.launch("sleep 60")
    Path(getattr(bench.files(task), missing)).unlink()
    (finding,) = bench.json("audit")["findings"]
    verb, *rest = finding["mend"].split(" ends the ")[0].split()
    if verb == "kill":
        os.kill(int(rest[0]), signal.SIGTERM)
    else:
        bench.ok(*rest, task)
    assert bench.run("wait", task, "--timeout", "10s").returncode == 1
    assert bench.row(task).state == ("failed" if verb == "kill" else "cancelled")


@pytest.mark.parametrize("call", [(), ("--json",), ("--tail", "3"), ("--follow",), ("--raw",)])
def test_output_is_refused_when_its_file_was_deleted(bench: Bench, call: tuple[str, ...]) -> None:
    """If the file of the output was deleted, `output` says that it is gone. The task's state can still be read."""
    task = bench.launch("echo precious")
    bench.ok("wait", task)
    shutil.rmtree(bench.home.bundle(task))
    done = bench.run("output", task, *call)
    assert (done.returncode, done.stdout) == (3, "")
    assert f"the output of task {task} is gone" in done.stderr
    assert bench.show(task)["state"] == "succeeded"
    assert [bench.run(verb, task).returncode for verb in ("result", "effects")] == [0, 0]


def test_sweep_deletes_old_bundles_without_a_row(bench: Bench) -> None:
    """`sweep` deletes an old bundle without a row, and keeps a young one, whose launcher may still write the row."""
    _ended(bench, "true")
    for name, age, inside in (("tempty22", 7200, ""), ("told2222", 7200, "/attempts"), ("tyoung22", 60, "/attempts")):
        os.makedirs(bench.home.bundle(name) + inside)
        then = time.time() - age
        os.utime(bench.home.bundle(name), (then, then))
    assert bench.json("sweep", "--apply")["strays"] == ["tempty22", "told2222"]
    assert "tyoung22" in _bundles(bench)


@pytest.mark.parametrize("how", ["deleted", "overwritten", "without its log", "with an empty log"])
def test_audit_rebuilds_a_lost_ledger_from_the_bundles(bench: Bench, how: str) -> None:
    """`audit --rebuild` restores all records, and running and queued tasks then end.

    Row 50 of the acceptance scenarios.
    """
    failed = _ended(bench, "echo out; exit 3", "--description", "for the books", "--group", "g", "--key", "k")
    cancelled = bench.launch("sleep 60")
    bench.ok("cancel", cancelled)
    retried = _ended(bench, "[ -e ok ] || exit 4")
    (bench.project / "ok").touch()
    bench.ok("retry", retried)
    bench.ok("wait", retried)
    os.mkfifo(bench.project / "gate")
    with kept_in_log(bench):
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
        if how != "deleted":
            assert bench.run("list").returncode == 3, "a damaged ledger is not reported"
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


@pytest.mark.parametrize(
    "how", ["moved away", "empty", "with its fingerprint", "an older copy", "of another directory"]
)
def test_next_command_restores_tasks_that_the_ledger_lacks(bench: Bench, how: str) -> None:
    """If the ledger lacks tasks, the next command restores and names them. The gate still refuses a stop."""
    first = _ended(bench, "exit 4")
    older = _copy_of_ledger(bench)
    os.mkfifo(bench.project / "gate")
    running = bench.launch("read x < gate; exit 3", "--session", "s-1")
    if how in ("moved away", "with its fingerprint"):
        for path in Path(bench.home.path).glob("ledger*" if how == "moved away" else "[lf]*"):
            path.rename(bench.root / path.name)
    elif how == "empty":
        _put_ledger(bench, {})
    elif how == "an older copy":
        _put_ledger(bench, older)
    else:
        env = {"OUTLIVE_HOME": str(bench.root / "other")}
        bench.ok("wait", bench.ok("run", "true", env=env), env=env)
        other = next((bench.root / "other").glob("*/ledger.sqlite"))
        _put_ledger(
            bench, {bench.home.ledger + suffix: Path(f"{other}{suffix}").read_bytes() for suffix in ("", "-wal")}
        )
    done = bench.run("gate", "--session", "s-1", "--exit-code", "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["may_stop"], [task["id"] for task in answer["running"]]) == (1, False, [running])
    assert sorted(answer["restored"]) == sorted([running] if how == "an older copy" else [first, running])
    assert "had to be restored" in done.stderr
    (bench.project / "gate").write_text("\n")
    quiet = bench.run("wait", running, first)
    assert (quiet.returncode, quiet.stderr.count("restored")) == (1, 0), "the restoring is reported again"
    assert [bench.show(task)["exit_code"] for task in (first, running)] == [4, 3]


def test_next_command_restores_an_emptied_ledger_that_a_keeper_has_open(bench: Bench) -> None:
    """A command restores an emptied ledger even if a keeper has it open. The keeper settles in the new file."""
    os.mkfifo(bench.project / "gate")
    running = bench.launch("read x < gate; exit 3", "--session", "s-1")
    keeper = bench.keeper(running)
    wait_until(lambda: bench.home.ledger in _open_files(keeper), "the keeper to open the ledger")
    os.truncate(bench.home.ledger, 0)
    done = bench.run("gate", "--session", "s-1", "--exit-code", "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["may_stop"], answer["restored"]) == (1, False, [running])
    (bench.project / "gate").write_text("\n")
    assert bench.run("wait", running).returncode == 1
    assert (bench.show(running)["exit_code"], bench.show(running)["settled_by"]) == (3, "keeper")


def test_commands_refuse_a_ledger_that_is_a_broken_link(bench: Bench) -> None:
    """If the ledger is a link to a missing file, `list` and `audit --rebuild` fail at once, without a wait."""
    _ended(bench, "true")
    _lose_ledger(bench)
    os.symlink(bench.root / "nowhere", bench.home.ledger)
    for words in (("list",), ("audit", "--rebuild")):
        done = bench.run(*words)
        assert done.returncode == 3
        assert "cannot be opened" in done.stderr


def _open_files(pid: int) -> set[str]:
    """Return the paths of the files that a process has open."""
    found = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found


def test_wait_returns_when_the_ledger_is_deleted(bench: Bench) -> None:
    """If the ledger is deleted, the keeper gives up its write and exits. This wakes `wait`, which then returns."""
    os.mkfifo(bench.project / "gate")
    task = bench.launch("read x < gate; exit 3")
    waiter = _begin(bench, "wait", task)
    done = bench.files(task).done
    wait_until(
        lambda: any(os.path.samefile(fd, done) for fd in Path(f"/proc/{waiter.pid}/fd").iterdir() if fd.exists())
    )
    _lose_ledger(bench)
    (bench.project / "gate").write_text("\n")
    waiter.communicate(timeout=8)
    assert (waiter.returncode, bench.show(task)["exit_code"]) == (1, 3)


def test_commands_do_not_read_the_task_directory_when_the_ledger_is_complete(bench: Bench) -> None:
    """`list` reads the directory of all tasks only if the ledger is incomplete, which a missing fingerprint shows."""
    _ended(bench, "true")
    calls = bench.root / "calls"
    for expected in (False, True):
        bench.ok("list", before=["strace", "-f", "-e", "trace=openat", "-o", str(calls)])
        assert (f'"{bench.home.tasks}", O_' in calls.read_text()) == expected
        Path(bench.home.path, "fingerprint").write_text("")


def test_failed_write_keeps_the_old_count_of_attempts(bench: Bench) -> None:
    """If the disk is full, `count_attempt` raises no error, because an error would make the launch fail."""
    _ended(bench, "true")
    name, _, count = read_fingerprint(bench.home.ledger).partition(" ")
    limits = getrlimit(RLIMIT_FSIZE)
    setrlimit(RLIMIT_FSIZE, (0, limits[1]))
    try:
        count_attempt(bench.home.ledger, name, int(count) + 1)
    finally:
        setrlimit(RLIMIT_FSIZE, limits)
    assert read_fingerprint(bench.home.ledger) == f"{name} {count}"


def test_rebuilt_ledger_keeps_the_states_of_queued_and_unstarted_tasks(bench: Bench) -> None:
    """After a rebuild, queued and failed tasks have their former states, and a running task still has its lock."""
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


def test_audit_rebuilds_ended_tasks_when_bundles_are_damaged(bench: Bench) -> None:
    """`audit --rebuild` restores the row of an ended task, even if files of its bundle are damaged or missing."""
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


def test_audit_rebuild_ignores_a_task_that_is_being_launched(bench: Bench) -> None:
    """`audit --rebuild` skips a task that is being launched. Its launcher will record it."""
    before = {_ended(bench, "true")}
    bench.ok("list")
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


def test_two_rebuilds_at_once_restore_each_task_once(bench: Bench) -> None:
    """If two rebuilds run at once, each task is restored once. The second one skips rows of the first one."""
    tasks = [_ended(bench, "true") for _ in range(8)]
    _lose_ledger(bench)
    both = [_begin(bench, "audit", "--rebuild", "--json") for _ in range(2)]
    said = [json.loads(each.communicate()[0]) for each in both]
    assert sorted(said[0]["rebuilt"] + said[1]["rebuilt"]) == sorted(tasks)


def test_audit_finishes_a_rebuild_that_was_killed(bench: Bench) -> None:
    """If a rebuild was killed, the next one completes it. It adds a later attempt only if that attempt had begun."""
    task = _ended(bench, "[ -e ok ] || exit 4")
    (bench.project / "ok").touch()
    bench.ok("retry", task)
    bench.ok("wait", task)
    never_recorded = _ended(bench, "true")
    Path(bench.home.bundle(never_recorded), "attempts", "2").touch(0o600)
    rows = [bench.row(each) for each in (task, never_recorded)]
    _lose_ledger(bench)
    with Restoring(bench.home.ledger), SqliteLedger(bench.home.ledger, utc_now()) as ledger:
        for row in rows:
            ledger.enqueue(row.launch, new_attempt(row.launch, 1, utc_now()))
        ledger.declare_complete()
    mends = {each["task"]: each["mend"] for each in bench.json("audit")["findings"] if "attempts/2" in each["what"]}
    assert ("--rebuild" in mends[task], "--rebuild" in mends[never_recorded]) == (True, False)
    assert bench.json("audit", "--rebuild")["rebuilt"] == [task]
    assert [each["exit_code"] for each in bench.show(task)["attempts"]] == [4, 0]
    assert len(bench.show(never_recorded)["attempts"]) == 1


def test_rebuild_restores_every_task_when_the_ledger_is_lost_again_meanwhile(bench: Bench) -> None:
    """If the ledger is lost again during a rebuild, all tasks are still restored."""
    tasks = [_ended(bench, "true"), bench.launch("sleep 60"), _ended(bench, "true")]
    orphan = tasks[1]
    bench.kill(orphan, "keeper", "witness")
    _lose_ledger(bench)
    adopted: list[str] = []

    def lose_once(_: object, __: object, ___: object, held: HeldFiles) -> None:
        held.close()
        if not adopted:
            _lose_ledger(bench)
        adopted.append(orphan)

    restored, hopeless = rebuild(bench.home, utc_now(), lose_once)
    assert (sorted(restored), hopeless) == (sorted(tasks), [])
    assert {each["id"] for each in bench.json("list")["tasks"]} == set(tasks)
    bench.ok("cancel", orphan)


def test_list_settles_a_queued_row_whose_task_has_ended(bench: Bench) -> None:
    """If a row says `queued`, but the exit record says that the task has ended, `list` settles the task."""
    task = _ended(bench, "true")
    row = bench.row(task)
    _lose_ledger(bench)
    with Restoring(bench.home.ledger), SqliteLedger(bench.home.ledger, utc_now()) as ledger:
        ledger.enqueue(row.launch, new_attempt(row.launch, 1, utc_now()).but(state="queued", started_at=None))
    assert [(each["id"], each["state"]) for each in bench.json("list")["tasks"]] == [(task, "succeeded")]


def test_sweep_restores_a_task_that_the_ledger_lacks(bench: Bench) -> None:
    """`sweep` restores a task that the ledger lacks, and keeps its bundle, because its ending is not reported yet."""
    task = _ended(bench, "echo precious; exit 3", "--session", "s-1")
    for suffix in ("", "-wal", "-shm"):
        Path(bench.home.ledger + suffix).unlink(missing_ok=True)
    then = time.time() - 7200
    os.utime(bench.home.bundle(task), (then, then))
    swept = bench.json("sweep", "--apply")
    assert (swept["strays"], swept["restored"]) == ([], [task])
    assert bench.show(task)["exit_code"] == 3


def test_keepers_delete_nothing_when_the_clock_is_far_ahead(bench: Bench) -> None:
    """If the last launch was more than a day ago, keepers delete nothing, because the clock may be wrong."""
    due = _ended(bench, "true")
    _ended(bench, "true")
    _expire(bench, due)
    _age(bench, minutes=2)
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger:
        tidy_a_little(bench.home, ledger, utc_now() + timedelta(days=2))
        assert ledger.task(due) is not None
        tidy_a_little(bench.home, ledger, utc_now())
        assert ledger.task(due) is None
