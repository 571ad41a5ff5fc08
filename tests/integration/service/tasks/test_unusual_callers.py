"""Commands that are called in unusual environments, with unusual limits, or after an interrupted call."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from tests.support import wait_until

if TYPE_CHECKING:
    from tests.support import Bench


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_launch_works_when_standard_descriptors_are_closed(bench: Bench, closed: str) -> None:
    """If the launcher has closed the descriptors 0 to 2, the keeper still has its lock and its FIFOs open."""
    subprocess.run(
        ["sh", "-c", f"{' '.join(bench.command('run', '--', 'sleep', '30'))} {closed}"],
        env=bench.env,
        cwd=bench.project,
        check=True,
        capture_output=True,
    )
    (task,) = [found["id"] for found in bench.json("list")["tasks"]]
    assert subprocess.run(["flock", "-n", bench.files(task).lock, "true"], check=False).returncode == 1
    bench.ok("cancel", task)
    assert bench.show(task)["settled_by"] == "keeper"


def test_command_prints_no_traceback_when_stdout_is_closed(bench: Bench) -> None:
    """If stdout is closed, a command exits with its usual code and prints no traceback."""
    for words, code in ((("list",), 0), (("show", "tzzzz"), 2)):
        done = subprocess.run(
            ["sh", "-c", f"{' '.join(bench.command(*words))} >&-"],
            env=bench.env,
            cwd=bench.project,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code
        assert "Traceback" not in done.stderr


def test_exit_code_is_recorded_when_the_launcher_ignores_sigchld(bench: Bench) -> None:
    """If the launcher ignores SIGCHLD, as many servers do, the keeper still records the exit code."""
    script = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *bench.command("run", "sleep 0.2; exit 7")],
        env=bench.env,
        cwd=bench.project,
        capture_output=True,
        text=True,
        check=True,
    )
    task = done.stdout.strip()
    bench.run("wait", task)
    shown = bench.show(task)
    assert (shown["exit_code"], shown["settled_by"]) == (7, "keeper")


def test_timeouts_of_sixty_days_are_supported(bench: Bench) -> None:
    """A timeout of sixty days, which poll() cannot express, does not end the keeper or `wait` too early."""
    task = bench.launch("sleep 0.3; exit 5", "--timeout", "60d")
    assert bench.run("wait", task, "--timeout", "60d").returncode == 1
    shown = bench.show(task)
    assert (shown["exit_code"], shown["settled_by"]) == (5, "keeper")


def test_retry_replaces_the_directory_of_an_interrupted_retry(bench: Bench) -> None:
    """If a killed launcher left the directory of an attempt without a row, `retry` replaces this directory."""
    task = bench.launch("exit 1")
    bench.run("wait", task)
    left = Path(bench.home.bundle(task)) / "attempts" / "2"
    left.mkdir(mode=0o700)
    (left / "lock").touch(mode=0o600)
    bench.ok("retry", task)
    bench.run("wait", task)
    assert len(bench.show(task)["attempts"]) == 2


def test_callers_with_one_key_get_one_task_when_the_first_launcher_was_killed(bench: Bench) -> None:
    """If the first launcher was killed, twenty callers with its key get one task, which runs once."""
    task = bench.launch("echo x >> ran; sleep 0.3", "--key", "k")
    bench.ok("wait", task)
    (bench.project / "ran").unlink()
    database = apsw.Connection(bench.home.ledger)
    database.execute("DROP TRIGGER attempt_moves; DELETE FROM notice; DELETE FROM evidence")
    database.execute(
        "UPDATE attempt SET state = 'queued', settled_at = NULL, delete_after = NULL,"
        " settled_by = NULL, exit_code = NULL"
    )
    database.close()
    record = Path(bench.files(task).record)
    record.write_bytes(bytes(record.stat().st_size))
    with ThreadPoolExecutor(10) as pool:
        ids = list(pool.map(lambda _: bench.launch("echo x >> ran; sleep 0.3", "--key", "k"), range(20)))
    assert set(ids) == {task}
    bench.ok("wait", task)
    assert (bench.project / "ran").read_text() == "x\n"


def test_wait_any_returns_at_once_when_there_is_no_task(bench: Bench) -> None:
    """If there is no task, `wait --any` exits with 0 at once."""
    assert bench.run("wait", "--any").returncode == 0


def test_list_escapes_characters_that_the_encoding_lacks(bench: Bench) -> None:
    """If stdout is encoded in ASCII, `list` prints characters outside of ASCII as escapes and exits with 0."""
    bench.launch("true", "--description", "größer")
    done = bench.run("list", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "gr\\xf6" in done.stdout


def test_retain_zero_is_not_replaced_by_the_default(bench: Bench) -> None:
    """With `--retain 0s`, a record may be deleted from the end of its task on. `--max-output 0` is refused."""
    task = bench.launch("true", "--retain", "0s")
    bench.ok("wait", task)
    row = bench.row(task).current
    assert row.delete_after == row.settled_at
    assert bench.run("run", "--max-output", "0", "true").returncode == 2


def test_timeout_excludes_the_launchers_wait_for_the_ledger(bench: Bench) -> None:
    """A task has its full timeout even if its launcher waited longer than that for the ledger's lock."""
    bench.ok("list")
    database = apsw.Connection(bench.home.ledger)
    database.execute("BEGIN IMMEDIATE")
    launching = subprocess.Popen(
        bench.command("run", "--timeout", "1500ms", "--", "sleep", "0.5"),
        env=bench.env, cwd=bench.project, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with pytest.raises(subprocess.TimeoutExpired):
        launching.wait(2)
    database.execute("ROLLBACK")
    database.close()
    task = launching.communicate()[0].strip()
    assert bench.run("wait", task).returncode == 0
    assert bench.show(task)["duration_s"] < 1.5


def test_retried_foreground_task_ends_with_the_session_that_retried_it(bench: Bench) -> None:
    """If the session that called `retry` is killed, the retried foreground task is cancelled."""
    task = bench.launch("[ -e again ] || exit 1; sleep 60", "--foreground")
    bench.run("wait", task)
    (bench.project / "again").touch()
    call = " ".join(bench.command("retry", task))
    session = subprocess.Popen(["setsid", "sh", "-c", f"{call}; exec sleep 60"], env=bench.env, cwd=bench.project)
    wait_until(lambda: bench.row(task).state == "running" and len(bench.row(task).attempts) == 2)
    session.kill()
    session.wait()
    wait_until(lambda: bench.row(task).state == "cancelled", "the task to be cancelled")


def test_launch_refused_for_lack_of_descriptors_leaves_no_bundle(bench: Bench) -> None:
    """If a launch fails for lack of file descriptors, the bundle of its task is removed."""
    bench.ok("list")
    for limit in range(8, 15):
        script = f"ulimit -n {limit}; exec {' '.join(bench.command('run', '--', 'true'))}"
        subprocess.run(["sh", "-c", script], env=bench.env, cwd=bench.project, capture_output=True, check=False)
    assert not [f for f in bench.json("audit")["findings"] if f["kind"] == "bundle_without_row"]
