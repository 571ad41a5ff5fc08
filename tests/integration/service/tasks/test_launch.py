"""Launching: a printed id has a durable record, and the task keeps no file of the caller open."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from outlive.domain.tasks.command import from_argv
from outlive.keeper.plan import Surroundings
from outlive.linux.fd_passing import take
from outlive.linux.processes import KEEPER_NAME
from outlive.linux.syscalls import borrow_descriptor
from outlive.service.clock import utc_now
from outlive.service.tasks.run import Request, run
from tests.support import is_alive, kill, open_files, wait_until

if TYPE_CHECKING:
    from socket import socket

    from tests.support import Bench


def test_launch_prints_an_id_at_once(bench: Bench) -> None:
    """A launch prints the id in less than a second, while the command runs. Row 1 of the acceptance scenarios."""
    began = time.monotonic()
    task = bench.launch("sleep 5")
    assert time.monotonic() - began < 1
    assert bench.show(task)["state"] == "running"


def test_launched_task_survives_when_its_launcher_is_killed(bench: Bench) -> None:
    """If the launcher is killed once the task is listed, the task still ends normally.

    Row 2 of the acceptance scenarios.
    """
    launcher = subprocess.Popen(
        bench.command("run", "--wait", "60s", "sleep 0.5; exit 4"),
        env=bench.env,
        cwd=bench.project,
        start_new_session=True,
    )
    task = wait_until(lambda: next((t["id"] for t in bench.json("list")["tasks"]), None))
    launcher.kill()
    launcher.wait()
    assert bench.run("wait", task).returncode == 1
    assert bench.show(task)["exit_code"] == 4


def test_launch_records_command_directory_and_origin(bench: Bench) -> None:
    """A launch records argv, directory, session, project and parent, as `show` prints them.

    Row 3 of the acceptance scenarios.
    """
    (bench.project / ".git").mkdir()
    below = bench.project / "a" / "b"
    below.mkdir(parents=True)
    task = bench.ok("run", "--session", "s-1", "--", "true", "x y", cwd=below)
    shown = bench.show(task)
    assert shown["argv"] == ["true", "x y"]
    assert shown["command"] == "true 'x y'"
    assert shown["cwd"] == str(below)
    assert shown["project"] == str(bench.project)
    assert shown["session"] == "s-1"
    assert shown["parent"] is None


def test_task_names_its_parent_when_launched_inside_a_task(bench: Bench) -> None:
    """A task that is launched inside a task has this task as its parent, and runs on when the parent has ended."""
    inner = " ".join(bench.command("run", "--", "sleep", "30"))
    outer = bench.launch(inner)
    bench.run("wait", outer)
    child = bench.ok("output", outer)
    shown = bench.show(child)
    assert (shown["parent"], shown["state"]) == (outer, "running")
    assert bench.show(outer)["left_running"] == []


def test_command_has_empty_input_and_no_terminal(bench: Bench) -> None:
    """A command reads end-of-file from its standard input, and cannot open /dev/tty."""
    task = bench.launch("cat; echo eof; (: </dev/tty) 2>/dev/null || echo no-tty; readlink /proc/self/fd/0")
    bench.ok("wait", task)
    assert bench.ok("output", task).split() == ["eof", "no-tty", "/dev/null"]


def test_launch_keeps_no_file_of_the_caller_open(bench: Bench) -> None:
    """A task keeps no file of its caller open: a pipe of the launcher is closed when the launcher exits."""
    reading, writing = os.pipe()
    pipe_name = f"pipe:[{os.fstat(reading).st_ino}]"
    os.set_inheritable(writing, True)
    launcher = subprocess.Popen(
        bench.command("run", "sleep 30"), env=bench.env, cwd=bench.project, stdout=writing, close_fds=False
    )
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        task = pipe.read().decode().strip()  # If a process kept the other end open, this read would block for 30 s.
    launcher.wait()
    for pid in (bench.keeper(task), bench.process(task, "witness"), bench.process(task)):
        assert pipe_name not in open_files(pid)
    command = bench.process(task)
    assert set(os.listdir(f"/proc/{command}/fd")) == {"0", "1", "2"}


def test_launch_fails_with_a_settled_task_when_the_command_cannot_start(bench: Bench) -> None:
    """If the program, directory or permission is missing, the launch exits with 1, and the task is failed."""
    plain = bench.project / "plain.txt"
    plain.write_text("hello")
    for words, said in (
        (("--", "no-such-program"), "No such file or directory"),
        (("--cwd", "gone", "--", "true"), "No such file or directory"),
        (("--", str(plain)), "Permission denied"),
    ):
        done = bench.run("run", *words)
        assert done.returncode == 1, words
        assert done.stdout == ""
        fact, hint = done.stderr.splitlines()
        assert said in fact
        assert hint.startswith("hint: ")
        shown = bench.show(fact.split()[2])
        assert (shown["state"], shown["reason"], shown["exit_code"]) == ("failed", "not_started", None)
        assert [n["kind"] for n in shown["notices"]] == ["ended"]
        assert {e["started"] for e in shown["evidence"]} == {"no"}


def test_launch_fails_with_a_message_when_the_callers_directory_was_deleted(bench: Bench) -> None:
    """If the caller's directory was deleted, the launch exits with 1 and says that it cannot enter the directory."""
    gone = bench.project / "gone"
    gone.mkdir()
    script = f'cd "{gone}" && rmdir "{gone}" && exec {" ".join(bench.command("run", "--", "true"))}'
    done = subprocess.run(["bash", "-c", script], env=bench.env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the directory cannot be entered" in done.stderr


def test_key_makes_a_launch_idempotent(bench: Bench) -> None:
    """A second launch with the same key starts nothing. With another command, the key is refused.

    Row 9 of the acceptance scenarios.
    """
    first = bench.launch("echo x >> ran; sleep 0.2", "--key", "build")
    assert bench.launch("echo x >> ran; sleep 0.2", "--key", "build") == first
    bench.ok("wait", first)
    assert bench.launch("echo x >> ran; sleep 0.2", "--key", "build") == first
    assert (bench.project / "ran").read_text() == "x\n"
    other = bench.run("run", "--key", "build", "something else")
    assert other.returncode == 2
    assert f"belongs to task {first}" in other.stderr


@pytest.mark.parametrize("ending", ["failed", "cancelled", "lost"])
def test_key_starts_a_new_attempt_when_its_task_did_not_succeed(bench: Bench, ending: str) -> None:
    """If the task of a key did not succeed, one of twelve callers with the key starts a new attempt.

    With `--key-scope ended`, no attempt is started.
    """
    words = ["echo x >> ran; if [ -e ok ]; then sleep 2; else exit 3; fi", "--key", "k"]
    if ending != "failed":
        words[0] = "echo x >> ran; sleep 2"
    first = bench.json("run", *words)
    # The shell may be killed before it writes this line.
    wait_until((bench.project / "ran").exists, "the line of the first attempt")
    if ending == "cancelled":
        bench.ok("cancel", first["id"])
    elif ending == "lost":
        bench.kill(first["id"], "keeper", "witness", "command")
    bench.run("wait", first["id"])
    assert (first["started"], bench.show(first["id"])["state"]) == (True, ending)
    kept = bench.json("run", *words, "--key-scope", "ended")
    assert (kept["id"], kept["started"], kept["state"]) == (first["id"], False, ending)
    (bench.project / "ok").touch()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: bench.json("run", *words, "--session", "s-2"), range(12)))
    assert {answer["id"] for answer in answers} == {first["id"]}
    assert [answer["started"] for answer in answers].count(True) == 1
    shown = bench.show(first["id"])
    assert (shown["attempt"], shown["session"]) == (2, "s-2")
    assert (bench.project / "ran").read_text() == "x\nx\n"


def test_launch_with_a_used_key_says_that_nothing_was_started(bench: Bench) -> None:
    """A launch with a used key prints the task's id, a note on stderr, and `"started": false` in JSON."""
    task = bench.launch("true", "--key", "k")
    bench.ok("wait", task)
    done = bench.run("run", "--key", "k", "true")
    assert (done.returncode, done.stdout.strip()) == (0, task)
    assert f"nothing was started: task {task} has the key 'k' and is succeeded" in done.stderr
    assert bench.json("run", "--key", "k", "true")["started"] is False
    assert len(bench.show(task)["attempts"]) == 1


def test_launch_with_a_used_key_says_that_an_attempt_was_started(bench: Bench) -> None:
    """If a launch with a used key starts a new attempt, a note on stderr names the attempt."""
    first = bench.run("run", "--key", "k", "false")
    task = first.stdout.strip()
    assert (first.stderr, bench.run("wait", task).returncode) == ("", 1)
    done = bench.run("run", "--key", "k", "false")
    assert (done.returncode, done.stdout.strip()) == (0, task)
    assert f"task {task} has the key 'k' and was started again as attempt 2: attempt 1 was failed" in done.stderr


def test_key_is_valid_in_its_project_only(bench: Bench) -> None:
    """The same key in two projects starts two commands."""
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    first = bench.launch("true", "--key", "k")
    assert bench.launch("false", "--key", "k", cwd=elsewhere) != first


def test_fifty_callers_with_one_key_start_one_task(bench: Bench) -> None:
    """If fifty callers use one key at once, one of them starts the command, and all print the same id.

    Rows 9 and 51 of the acceptance scenarios.
    """
    bench.ok("list")
    with ThreadPoolExecutor(16) as pool:
        ids = list(pool.map(lambda _: bench.launch("echo x >> ran", "--key", "k"), range(50)))
    assert len(set(ids)) == 1
    bench.ok("wait", ids[0])
    assert (bench.project / "ran").read_text() == "x\n"
    assert len(bench.json("list", "--all")["tasks"]) == 1
    assert [path.name for path in Path(bench.home.tasks).iterdir()] == [ids[0]]


def test_fifty_launches_at_once_leave_fifty_records(bench: Bench) -> None:
    """Fifty launches at once leave fifty records, even if there is no ledger yet.

    Row 51 of the acceptance scenarios.
    """
    with ThreadPoolExecutor(16) as pool:
        ids = list(pool.map(lambda n: bench.launch(f"exit {n % 3}"), range(50)))
    assert len(set(ids)) == 50
    bench.run("wait", *ids)
    codes = [task["exit_code"] for task in bench.json("list", "--limit", "0")["tasks"]]
    assert sorted(codes) == sorted(n % 3 for n in range(50))


def test_run_wait_prints_the_result_or_detaches(bench: Bench) -> None:
    """`run --wait` prints the result of a quick command. A slow command continues in the background.

    Row 4 of the acceptance scenarios.
    """
    quick = bench.run("run", "--wait", "30s", "echo fast; exit 3")
    assert quick.returncode == 1
    assert "failed (exit 3)" in quick.stdout
    assert "fast" in quick.stdout
    slow = bench.run("run", "--wait", "500ms", "echo begun; sleep 3")
    assert slow.returncode == 4
    assert "begun" in slow.stderr
    assert "goes on in the background" in slow.stderr
    assert bench.show(slow.stdout.strip())["state"] == "running"


def test_run_wait_prints_the_id_when_it_is_interrupted(bench: Bench) -> None:
    """If `run --wait` is interrupted, it prints the id, because the task continues and the user needs the id."""
    command = bench.command("run", "--wait", "30s", "echo begun; sleep 30")
    with subprocess.Popen(
        # A shell may start this test in the background with SIGINT ignored. Then its children would ignore SIGINT, too.
        ["env", "--default-signal=INT", *command],
        env=bench.env,
        cwd=bench.project,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as launcher:
        task = wait_until(lambda: next((t["id"] for t in bench.json("list")["tasks"]), None), "the task")
        wait_until(lambda: bench.show(task)["output"]["bytes"], "the begin of the wait")
        launcher.send_signal(signal.SIGINT)
        out, err = launcher.communicate(timeout=20)
    assert (launcher.returncode, out) == (130, f"{task}\n")
    assert f"the task goes on in the background: outlive wait {task}, or outlive cancel {task}" in err
    assert bench.show(task)["state"] == "running"


def test_run_wait_says_how_long_a_foreground_task_goes_on(bench: Bench) -> None:
    """If `run --wait` is left, it says that a foreground task continues only until its terminal or client ends."""
    slow = bench.run("run", "--foreground", "--wait", "500ms", "sleep 3")
    assert slow.returncode == 4
    assert "the task goes on until this terminal or client ends" in slow.stderr


def test_command_has_the_environment_and_umask_of_its_launcher(bench: Bench) -> None:
    """A command has the environment, umask and directory of its launcher, and the variables that `--env` sets."""
    script = (
        f"umask 027; export COLOUR=red; exec {' '.join(bench.command('run', '--env', 'SIZE=big', '--', 'sh', 's'))}"
    )
    (bench.project / "s").write_text('echo "$COLOUR $SIZE $(umask) $PWD"')
    done = subprocess.run(
        ["bash", "-c", script], env=bench.env, cwd=bench.project, capture_output=True, text=True, check=True
    )
    task = done.stdout.strip()
    bench.ok("wait", task)
    assert bench.ok("output", task) == f"red big 0027 {bench.project}"


def test_launch_stores_no_values_of_the_environment(bench: Bench) -> None:
    """A secret given with `--env` reaches the command, and no file of Outlive contains it."""
    task = bench.ok("run", "--env", "TOKEN=s3cr3t-value", "--", "sh", "-c", 'test -n "$TOKEN"')
    bench.ok("wait", task)
    for path in bench.state.rglob("*"):
        if path.is_file() and not path.is_fifo():
            assert b"s3cr3t-value" not in path.read_bytes(), path


def test_command_ignores_no_signal_when_its_launcher_ignores_signals(bench: Bench) -> None:
    """If the launcher ignores signals, as under `nohup`, the command does not ignore them."""
    script = f"trap '' HUP INT QUIT TERM; exec {' '.join(bench.command('run', '--', 'sleep', '30'))}"
    done = subprocess.run(
        ["bash", "-c", script], env=bench.env, cwd=bench.project, capture_output=True, text=True, check=True
    )
    status = Path(f"/proc/{bench.process(done.stdout.strip())}/status").read_text()
    ignored = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn")), 16)
    reserved = 1 << 31 | 1 << 32  # The C library reserves the signals 32 and 33 for itself, and refuses to change them.
    assert ignored & ~reserved == 0


def test_background_task_goes_on_when_its_client_is_killed(bench: Bench) -> None:
    """If the client's process group is killed, the background task continues, and a foreground task is cancelled.

    Row 45 of the acceptance scenarios.
    """
    calls = [bench.command("run", *words, "--", "sleep", "30") for words in ((), ("--foreground",))]
    script = "; ".join([*(" ".join(call) for call in calls), "sleep 60"])
    client = subprocess.Popen(
        ["bash", "-c", script],
        env=bench.env,
        cwd=bench.project,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert client.stdout is not None
    background, foreground = client.stdout.readline().strip(), client.stdout.readline().strip()
    os.killpg(client.pid, signal.SIGKILL)
    client.wait()
    client.stdout.close()
    assert bench.run("wait", foreground, "--timeout", "20s").returncode == 1
    ended = bench.show(foreground)
    assert (ended["state"], ended["reason"]) == ("cancelled", "session_ended")
    assert bench.show(background)["state"] == "running"


def test_keeper_and_witness_ignore_signals_that_ask_to_end(bench: Bench) -> None:
    """Keeper and witness ignore SIGHUP, SIGINT, SIGTERM and SIGQUIT, so these signals do not end the task.

    Row 53 of the acceptance scenarios.
    """
    task = bench.launch("sleep 30")
    keeper, witness = bench.keeper(task), bench.process(task, "witness")
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT):
        kill(keeper, number)
        kill(witness, number)
    assert bench.show(task)["state"] == "running"
    assert is_alive(keeper)
    assert is_alive(witness)


def test_task_is_settled_when_all_its_processes_get_sigterm(bench: Bench) -> None:
    """If all processes get SIGTERM, as in a shutdown, the keeper records that SIGTERM ended the command.

    Row 53 of the acceptance scenarios.
    """
    tasks = [bench.launch("sleep 30") for _ in range(3)]
    for task in tasks:
        for pid in (bench.keeper(task), bench.process(task, "witness"), bench.process(task)):
            kill(pid, signal.SIGTERM)
    bench.run("wait", *tasks)
    for task in tasks:
        shown = bench.show(task)
        assert (shown["state"], shown["signal"], shown["settled_by"]) == ("failed", 15, "keeper")


def test_run_json_prints_the_task(bench: Bench) -> None:
    """`run --json` prints the task, with its state, description and mode."""
    done = bench.run("run", "--json", "--description", "wait a bit", "--", "sleep", "1")
    task = json.loads(done.stdout)
    assert (task["state"], task["description"], task["mode"]) == ("running", "wait a bit", "background")


@pytest.mark.parametrize("is_sent", [False, True], ids=["taken", "sent"])
def test_witness_answers_calls_when_the_keeper_cannot_observe(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, *, is_sent: bool
) -> None:
    """If the keeper has no free file descriptor to observe the command, the witness answers the command's system calls.

    Otherwise the command would block.
    """

    def is_keeper() -> bool:
        return Path("/proc/self/comm").read_text() == f"{KEEPER_NAME}\n"

    def borrow(pid: int, number: int) -> int | None:
        return None if is_sent or (is_keeper() and pid != os.getpid()) else borrow_descriptor(pid, number)

    def take_without_room(channel: socket) -> tuple[bytes, list[int]] | None:
        if is_keeper():
            free = os.dup(channel.fileno())
            os.close(free)
            resource.setrlimit(resource.RLIMIT_NOFILE, (free, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        return take(channel)

    bench.run("wait", bench.launch("true"))  # This makes Outlive record that calls can be observed on this machine.
    monkeypatch.setattr("outlive.linux.shared_listener.borrow_descriptor", borrow)
    monkeypatch.setattr("outlive.linux.fd_passing.take", take_without_room)
    around = Surroundings(environ=bench.env, umask=0o022)
    request = Request(
        command=from_argv(["sh", "-c", "echo x > x; exit 3"]), cwd=str(bench.project), surroundings=around
    )
    task = run(bench.home, request, utc_now()).task
    monkeypatch.undo()
    assert bench.run("wait", task, "--timeout", "20s").returncode == 1
    shown = bench.show(task)
    assert (shown["exit_code"], shown["effects"]["unobserved_since"] is not None) == (3, True)


def test_launch_takes_another_id_when_the_random_id_is_in_use(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the random id of a new task is already in use, the task gets another id."""
    numbers = iter([b"\1" * 8, b"\1" * 8, b"\2" * 8])
    monkeypatch.setattr("outlive.service.tasks.run.os.urandom", lambda _: next(numbers))
    around = Surroundings(environ=bench.env, umask=0o022)
    request = Request(command=from_argv(["sleep", "30"]), cwd=str(bench.project), surroundings=around)
    first, second = (run(bench.home, request, utc_now()).task for _ in range(2))
    assert first != second
    assert bench.show(first)["state"] == bench.show(second)["state"] == "running"
