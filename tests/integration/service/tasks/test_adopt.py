"""Adopting a process: Outlive makes a task of a process that another program started and that still runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outlive.domain.sessions.client_task import ClientReport
from outlive.domain.tasks.evidence import EXIT_UNKNOWN, Evidence, Intent, decide
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.sessions.note_client_tasks import note_foreign
from tests.session_steps import begin, told, until
from tests.support import PATIENCE_S, is_alive, kill, wait_until
from tests.unit.values import NOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support import Bench

    Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(bench: Bench) -> Iterator[Start]:
    """Return a function that starts processes outside of any task. The processes are killed after the test."""
    started: list[subprocess.Popen[bytes]] = []

    def begin_one(text: str, output: Path | None = None, **options: Any) -> subprocess.Popen[bytes]:
        command = ["sh", "-c", text]
        where: dict[str, Any] = {"cwd": bench.project, "stderr": subprocess.DEVNULL, **options}
        if output is None:
            started.append(subprocess.Popen(command, stdout=subprocess.PIPE, **where))
        else:
            with output.open("ab") as file:
                started.append(subprocess.Popen(command, stdout=file, **where))
        return started[-1]

    yield begin_one
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def adopt(bench: Bench, process: subprocess.Popen[bytes], *options: str) -> str:
    """Adopt a process and return the id of its task."""
    return bench.ok("adopt", str(process.pid), *options).strip()


def output_of(bench: Bench, task: str) -> str:
    """Return the output of a task, from the file in which Outlive keeps the output."""
    with open(bench.files(task).output, encoding="utf-8") as file:
        return file.read()


def reaped(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process as its parent does, so that the kernel can report its exit code to Outlive."""
    process.wait()


def test_adopted_process_is_listed_copied_and_reported(bench: Bench, start: Start, tmp_path: Path) -> None:
    """An adopted process is listed with its command, its output is copied, and its ending is reported."""
    begin(bench, "s-1")
    log = tmp_path / "log"
    process = start(f"echo before; {until('go')}; echo after; exit 3", log)
    wait_until(log.read_text, "the first line")
    task = adopt(bench, process, "--session", "s-1", "--description", "a build")
    [listed] = bench.json("list", "--state", "running")["tasks"]
    assert (listed["id"], listed["cwd"], listed["description"]) == (task, str(bench.project), "a build")
    assert listed["adopted"] == {"pid": process.pid, "output": str(log)}
    assert listed["command"].startswith("sh -c echo before")
    wait_until(lambda: output_of(bench, task) == "before\n", "the output until now")
    (bench.project / "go").touch()
    reaped(process)
    assert bench.run("wait", "--no-ack", task).returncode == 1
    shown = bench.show(task)
    assert output_of(bench, task) == "before\nafter\n"
    assert (shown["state"], shown["settled_by"]) == ("failed", "adopter")
    assert (shown["exit_code"], shown["reason"]) in {(3, None), (None, EXIT_UNKNOWN)}, "not the true exit code"
    [notice] = bench.json("inbox", "--session", "s-1")["notices"]
    assert "not started by Outlive and not observed" in notice["text"]
    assert log.read_text() == "before\nafter\n", "the process's own output file was changed"


def test_adopted_process_fails_with_unknown_exit_code_when_its_parent_does_not_wait(bench: Bench, start: Start) -> None:
    """If the kernel does not report the exit code, the task is `failed` with the reason `EXIT_UNKNOWN`.

    The kernel reports it only when the parent waits for the process.
    """
    process = start(until("go"))
    task = adopt(bench, process)
    (bench.project / "go").touch()
    # The test does not reap the process, so the kernel does not report its exit code.
    wait_until(lambda: bench.row(task).current.settled_at, "the ending")
    shown = bench.show(task)
    assert (shown["state"], shown["exit_code"], shown["reason"]) == ("failed", None, EXIT_UNKNOWN)
    assert shown["ended_at"] is not None
    assert "only the parent of the process knows its exit code" in bench.ok("show", task)
    assert "its output cannot be read" in bench.ok("show", task), "the output goes to a pipe, so Outlive cannot read it"


def test_unknown_exit_code_is_failed_unless_a_cancel_was_requested() -> None:
    """If the exit code is unknown, `decide` returns `failed`, or `cancelled` if a cancel was requested before."""
    seen = Evidence(kind="exited", seen_by="adopter", cause=EXIT_UNKNOWN, at=NOW)
    assert (decide(seen, None).state, decide(seen, None).reason) == ("failed", EXIT_UNKNOWN)
    assert decide(seen, Intent(kind="cancel", at=NOW)).state == "cancelled"


def test_cancel_ends_an_adopted_process_and_its_children(bench: Bench, start: Start) -> None:
    """A cancel ends an adopted process with its children, and leaves unrelated processes alive."""
    process, bystander = start("sleep 600 & sleep 600"), start("sleep 600")
    task = adopt(bench, process)
    below = wait_until(lambda: _children(process.pid)[1:] and _children(process.pid), "the children of the process")
    bench.ok("cancel", task)
    reaped(process)
    assert bench.show(task)["state"] == "cancelled"
    wait_until(lambda: not any(map(is_alive, below)), "the end of the process and its children")
    assert bystander.poll() is None


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(each) for each in file.read().split()]


def test_adopted_process_gets_a_new_keeper_when_its_keeper_is_killed(
    bench: Bench, start: Start, tmp_path: Path
) -> None:
    """If the keeper of an adopted process is killed, a new keeper continues to copy the output.

    It continues where the first keeper stopped.
    """
    log = tmp_path / "log"
    process = start(f"echo one; {until('two')}; echo two; {until('go')}; exit 3", log)
    task = adopt(bench, process)
    wait_until(lambda: output_of(bench, task) == "one\n", "the first line")
    keeper = wait_until(lambda: bench.find_keeper(task), "the keeper")
    kill(keeper)
    wait_until(lambda: not is_alive(keeper), "the end of the keeper")
    assert bench.json("list")["tasks"][0]["state"] == "running", "`list` gave the process no new keeper"
    (bench.project / "two").touch()
    wait_until(lambda: output_of(bench, task) == "one\ntwo\n", "the second line")
    (bench.project / "go").touch()
    reaped(process)
    bench.run("wait", task)
    assert bench.show(task)["state"] == "failed"


def refused(bench: Bench, named: str) -> str:
    """Assert that `adopt` refuses a process, and return its error message."""
    done = bench.run("adopt", named)
    assert done.returncode == 2, done
    assert bench.json("list", "--all")["tasks"] == []
    return str(done.stderr)


def test_adopt_refuses_init_ancestors_clients_and_ended_processes(bench: Bench, start: Start) -> None:
    """`adopt` refuses process 1, an ancestor of the `adopt` command, the client of a session and an ended process."""
    assert "all other processes depend on process 1" in refused(bench, "1")
    assert "started this command" in refused(bench, str(os.getpid()))
    gone = start("true")
    gone.wait()
    assert "there is no running process" in refused(bench, str(gone.pid))
    assert "there is no running process" in refused(bench, "4194305")
    assert "no client runs a command with the id" in refused(bench, "b1")
    assert "no client runs a command with the id" in refused(bench, "²")
    client = start("sleep 600")
    begin(bench, "s-1", "--pid", str(client.pid))
    assert "is the client of session s-1" in refused(bench, str(client.pid))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_adopt_refuses_a_process_of_another_user(bench: Bench, start: Start) -> None:
    """`adopt` refuses a process of another user, even if the caller is root."""
    other = start("sleep 600", user=65534)
    assert "belongs to another user" in refused(bench, str(other.pid))


def test_adopt_refuses_processes_of_a_running_task(bench: Bench, start: Start) -> None:
    """`adopt` refuses the command, keeper and witness of a running task, and a process that is adopted already.

    It accepts a process that an ended task left running.
    """
    task = bench.launch("sleep 600 & sleep 600")
    for pid, why in (
        (bench.process(task), f"already belongs to task {task}"),
        (bench.keeper(task), "a process of Outlive itself"),
        (bench.process(task, "witness"), "a process of Outlive itself"),
    ):
        assert why in bench.run("adopt", str(pid)).stderr
    process = start("sleep 600")
    adopted = adopt(bench, process)
    assert f"already belongs to task {adopted}" in bench.run("adopt", str(process.pid)).stderr
    bench.ok("cancel", task, adopted)
    left = bench.launch("sleep 600 & exit 0")
    bench.run("wait", left)
    [behind] = bench.show(left)["left_running"]
    again = bench.ok("adopt", str(behind["pid"])).strip()
    bench.ok("cancel", again)
    assert not is_alive(behind["pid"])


def test_adopt_creates_one_task_when_several_callers_adopt_one_process(bench: Bench, start: Start) -> None:
    """If three callers adopt one process at the same time, one call creates a task and two calls are refused."""
    words = bench.command("adopt", str(start("sleep 600").pid))
    home, calls = bench.home, []
    tasks = Path(home.path, "tasks")
    with SqliteLedger(home.ledger, utc_now()) as ledger, ledger.write():
        for number in range(3):
            calls.append(
                subprocess.Popen(
                    words, env=bench.env, cwd=bench.project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
                )
            )
            wait_until(lambda count=number: len(list(tasks.glob("*"))) > count, "the bundle")  # type: ignore[misc]
    answers = [call.communicate(timeout=PATIENCE_S) for call in calls]
    [adopted] = [out.strip() for out, _ in answers if out]
    assert [f"already belongs to task {adopted}" in err for out, err in answers if not out] == [True] * 2
    bench.ok("cancel", adopted)


def test_adopt_accepts_the_id_that_a_client_gave_its_own_command(bench: Bench, start: Start, tmp_path: Path) -> None:
    """`adopt` accepts the id that a client gave its background command, and `list` then shows the command as a task.

    Outlive finds the process of the command by its output file.
    """
    log = tmp_path / "b1.output"
    process = start("sleep 600 & echo ready; wait", log)
    begin(bench, "s-1", "--pid", str(start("sleep 600").pid))
    seen = ClientReport(id="b1", command="npm run dev", description="the server", output=str(log))
    note_foreign(bench.home, "s-1", str(bench.project), "claude", [seen], are_all=False)
    task = bench.ok("adopt", "b1", "--session", "s-1").strip()
    shown = bench.show(task)
    assert (shown["adopted"]["pid"], shown["command"], shown["description"]) == (
        process.pid,
        "npm run dev",
        "the server",
    )
    wait_until(lambda: output_of(bench, task) == "ready\n", "the output of the adopted command")
    assert bench.json("hand-off", "--session", "s-1")["foreign"] == [], "the task is still a client command"
    bench.ok("cancel", task)
    reaped(process)
    assert told(bench, "s-1") == [task]


def test_retry_runs_the_command_line_of_an_adopted_process(bench: Bench, start: Start) -> None:
    """`retry` of an adopted process launches its command line as a second attempt, whose exit code is known."""
    process = start(f"{until('go')}; exit 3")
    task = adopt(bench, process)
    (bench.project / "go").touch()
    reaped(process)
    bench.run("wait", task)
    bench.ok("retry", task)
    bench.run("wait", task)
    assert (bench.show(task)["exit_code"], bench.show(task)["attempt"]) == (3, 2)
