"""Launching: an id means a durable record, and nothing of the caller is held."""

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

from outlive.bundle.kernel import borrow_descriptor
from outlive.bundle.passing import take
from outlive.bundle.processes import KEEPER_NAME
from outlive.domain.command import from_argv
from outlive.keeper.plan import Surroundings
from outlive.service.clock import utc_now
from outlive.service.run import Request, run
from tests.support import is_alive, kill, open_files, wait_until

if TYPE_CHECKING:
    from socket import socket

    from tests.support import Bench


def test_a_launch_returns_at_once_with_an_id(bench: Bench) -> None:
    """Row 1: the id of a long command is there in less than a second, and it runs."""
    began = time.monotonic()
    task = bench.launch("sleep 5")
    assert time.monotonic() - began < 1
    assert bench.show(task)["state"] == "running"


def test_the_record_is_durable_before_anything_runs(bench: Bench) -> None:
    """Row 2: a launcher that is killed right after the id appeared leaves a whole task."""
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


def test_command_directory_and_origin_are_on_record(bench: Bench) -> None:
    """Row 3: argv, absolute cwd, session, project and parent can be read back."""
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


def test_a_task_launched_inside_a_task_knows_its_parent(bench: Bench) -> None:
    """The inner task names the outer one, and lives on when the outer one is over."""
    inner = " ".join(bench.command("run", "--", "sleep", "30"))
    outer = bench.launch(inner)
    bench.run("wait", outer)
    child = bench.ok("output", outer)
    shown = bench.show(child)
    assert (shown["parent"], shown["state"]) == (outer, "running")
    assert bench.show(outer)["left_running"] == []


def test_input_is_empty_and_there_is_no_terminal(bench: Bench) -> None:
    """The command reads end-of-file from stdin, and /dev/tty cannot be opened."""
    task = bench.launch("cat; echo eof; (: </dev/tty) 2>/dev/null || echo no-tty; readlink /proc/self/fd/0")
    bench.ok("wait", task)
    assert bench.ok("output", task).split() == ["eof", "no-tty", "/dev/null"]


def test_nothing_of_the_caller_stays_open(bench: Bench) -> None:
    """A pipe that the caller holds, marked to be inherited, ends when the launcher has ended."""
    reading, writing = os.pipe()
    pipe_name = f"pipe:[{os.fstat(reading).st_ino}]"
    os.set_inheritable(writing, True)
    launcher = subprocess.Popen(
        bench.command("run", "sleep 30"), env=bench.env, cwd=bench.project, stdout=writing, close_fds=False
    )
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        task = pipe.read().decode().strip()  # would block for 30 s if anybody kept the other end
    launcher.wait()
    for pid in (bench.keeper(task), bench.process(task, "witness"), bench.process(task)):
        assert pipe_name not in open_files(pid)
    command = bench.process(task)
    assert set(os.listdir(f"/proc/{command}/fd")) == {"0", "1", "2"}


def test_a_command_that_cannot_start_is_an_error_and_a_record(bench: Bench) -> None:
    """No such file, no such directory, not executable: exit code 1, two lines, a settled task."""
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


def test_a_directory_deleted_under_the_caller_is_told_of(bench: Bench) -> None:
    """The caller's own directory is gone: a settled record, not a traceback."""
    gone = bench.project / "gone"
    gone.mkdir()
    script = f'cd "{gone}" && rmdir "{gone}" && exec {" ".join(bench.command("run", "--", "true"))}'
    done = subprocess.run(["bash", "-c", script], env=bench.env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "the directory cannot be entered" in done.stderr


def test_a_key_makes_a_launch_idempotent(bench: Bench) -> None:
    """Row 9: the same key gives the same task; another command under it is refused."""
    first = bench.launch("echo x >> ran; sleep 0.2", "--key", "build")
    assert bench.launch("echo x >> ran; sleep 0.2", "--key", "build") == first
    bench.ok("wait", first)
    assert bench.launch("echo x >> ran; sleep 0.2", "--key", "build") == first
    assert (bench.project / "ran").read_text() == "x\n"
    other = bench.run("run", "--key", "build", "something else")
    assert other.returncode == 2
    assert f"belongs to task {first}" in other.stderr


def test_a_key_holds_within_its_project_only(bench: Bench) -> None:
    """Two projects may use the same key for different commands."""
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    first = bench.launch("true", "--key", "k")
    assert bench.launch("false", "--key", "k", cwd=elsewhere) != first


def test_fifty_callers_with_one_key_start_one_task(bench: Bench) -> None:
    """Rows 9 and 51: fifty launchers race, one process runs, all print the same id."""
    bench.ok("list")
    with ThreadPoolExecutor(16) as pool:
        ids = list(pool.map(lambda _: bench.launch("echo x >> ran", "--key", "k"), range(50)))
    assert len(set(ids)) == 1
    bench.ok("wait", ids[0])
    assert (bench.project / "ran").read_text() == "x\n"
    assert len(bench.json("list", "--all")["tasks"]) == 1
    assert [path.name for path in Path(bench.home.tasks).iterdir()] == [ids[0]]


def test_fifty_launches_at_once_leave_fifty_records(bench: Bench) -> None:
    """Row 51: concurrent launchers, even the first ever, lose nothing."""
    with ThreadPoolExecutor(16) as pool:
        ids = list(pool.map(lambda n: bench.launch(f"exit {n % 3}"), range(50)))
    assert len(set(ids)) == 50
    bench.run("wait", *ids)
    codes = [task["exit_code"] for task in bench.json("list", "--limit", "0")["tasks"]]
    assert sorted(codes) == sorted(n % 3 for n in range(50))


def test_waiting_inline_answers_in_time_or_detaches(bench: Bench) -> None:
    """Row 4: a quick command's result comes at once; a slow one goes on, with its id and tail."""
    quick = bench.run("run", "--wait", "30s", "echo fast; exit 3")
    assert quick.returncode == 1
    assert "failed (exit 3)" in quick.stdout
    assert "fast" in quick.stdout
    slow = bench.run("run", "--wait", "500ms", "echo begun; sleep 3")
    assert slow.returncode == 4
    assert "begun" in slow.stderr
    assert "goes on in the background" in slow.stderr
    assert bench.show(slow.stdout.strip())["state"] == "running"


def test_the_command_has_the_callers_environment_and_umask(bench: Bench) -> None:
    """Variables, `--env`, working directory and umask are the launcher's."""
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


def test_environment_values_are_stored_nowhere(bench: Bench) -> None:
    """A secret given by `--env` reaches the command and no file of ours."""
    task = bench.ok("run", "--env", "TOKEN=s3cr3t-value", "--", "sh", "-c", 'test -n "$TOKEN"')
    bench.ok("wait", task)
    for path in bench.state.rglob("*"):
        if path.is_file() and not path.is_fifo():
            assert b"s3cr3t-value" not in path.read_bytes(), path


def test_signals_ignored_by_the_caller_are_not_ignored_by_the_command(bench: Bench) -> None:
    """A launcher started with signals ignored (nohup, a shell's &) still starts a clean command."""
    script = f"trap '' HUP INT QUIT TERM; exec {' '.join(bench.command('run', '--', 'sleep', '30'))}"
    done = subprocess.run(
        ["bash", "-c", script], env=bench.env, cwd=bench.project, capture_output=True, text=True, check=True
    )
    status = Path(f"/proc/{bench.process(done.stdout.strip())}/status").read_text()
    ignored = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn")), 16)
    reserved = 1 << 31 | 1 << 32  # 32 and 33 are the C library's own, and cannot be set through it
    assert ignored & ~reserved == 0


def test_the_task_outlives_its_launcher_and_its_session(bench: Bench) -> None:
    """Row 45: the client's whole process group is killed; background work goes on, foreground ends."""
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


def test_a_hangup_of_everything_below_the_client_ends_no_task(bench: Bench) -> None:
    """Row 53: keeper and witness ignore polite signals; told alone, they go on."""
    task = bench.launch("sleep 30")
    keeper, witness = bench.keeper(task), bench.process(task, "witness")
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT):
        kill(keeper, number)
        kill(witness, number)
    assert bench.show(task)["state"] == "running"
    assert is_alive(keeper)
    assert is_alive(witness)


def test_an_orderly_shutdown_leaves_every_task_explicit(bench: Bench) -> None:
    """Row 53: SIGTERM to everything, as at a shutdown: each task is settled as what happened to it."""
    tasks = [bench.launch("sleep 30") for _ in range(3)]
    for task in tasks:
        for pid in (bench.keeper(task), bench.process(task, "witness"), bench.process(task)):
            kill(pid, signal.SIGTERM)
    bench.run("wait", *tasks)
    for task in tasks:
        shown = bench.show(task)
        assert (shown["state"], shown["signal"], shown["settled_by"]) == ("failed", 15, "keeper")


def test_the_json_of_a_launch_is_the_task(bench: Bench) -> None:
    """`run --json` prints the task itself."""
    done = bench.run("run", "--json", "--description", "wait a bit", "--", "sleep", "1")
    task = json.loads(done.stdout)
    assert (task["state"], task["description"], task["mode"]) == ("running", "wait a bit", "background")


@pytest.mark.parametrize("is_sent", [False, True], ids=["taken", "sent"])
def test_a_keeper_that_cannot_observe_leaves_that_to_the_witness(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, *, is_sent: bool
) -> None:
    """It has no room for a descriptor left: the command is filtered already, and would wait for ever."""

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

    bench.run("wait", bench.launch("true"))  # finds out that calls can be observed here
    monkeypatch.setattr("outlive.bundle.eyes.borrow_descriptor", borrow)
    monkeypatch.setattr("outlive.bundle.passing.take", take_without_room)
    around = Surroundings(environ=bench.env, umask=0o022)
    request = Request(
        command=from_argv(["sh", "-c", "echo x > x; exit 3"]), cwd=str(bench.project), surroundings=around
    )
    task = run(bench.home, request, utc_now())
    monkeypatch.undo()
    assert bench.run("wait", task, "--timeout", "20s").returncode == 1
    shown = bench.show(task)
    assert (shown["exit_code"], shown["effects"]["unobserved_since"] is not None) == (3, True)


def test_an_id_that_is_taken_costs_the_other_task_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random numbers repeat once: the second launch takes another id, the first keeps its bundle."""
    numbers = iter([b"\1" * 8, b"\1" * 8, b"\2" * 8])
    monkeypatch.setattr("outlive.service.run.os.urandom", lambda _: next(numbers))
    around = Surroundings(environ=bench.env, umask=0o022)
    request = Request(command=from_argv(["sleep", "30"]), cwd=str(bench.project), surroundings=around)
    first, second = (run(bench.home, request, utc_now()) for _ in range(2))
    assert first != second
    assert bench.show(first)["state"] == bench.show(second)["state"] == "running"
