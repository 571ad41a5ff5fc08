"""Unusual callers and unfortunate timing. Each test repeats a situation that once broke a guarantee of Outlive."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from outlive import Outlive, OutliveError, UserError
from tests.session_steps import until
from tests.support import is_alive, kept_in_log, kill, wait_until

if TYPE_CHECKING:
    from tests.support import Bench


def _shot(bench: Bench, task: str, *who: str) -> None:
    """Kill the named processes of a task (keeper, witness, command), and wait until they are gone."""
    pids = {"keeper": bench.keeper(task), "witness": bench.process(task, "witness"), "command": bench.process(task)}
    for name in who:
        kill(pids[name])
    for name in who:
        wait_until(lambda name=name: not os.path.exists(f"/proc/{pids[name]}"), f"the {name}'s end")  # type: ignore[misc]


@pytest.mark.parametrize("watching", [("wait",), ("output", "--follow"), ("wait", "--until", "never")])
def test_waiting_command_starts_a_new_keeper_when_the_keeper_dies(bench: Bench, watching: tuple[str, ...]) -> None:
    """If the keeper dies, a command that waits for the task starts a new keeper, which enforces the task's timeout."""
    task = bench.launch("sleep 60", "--timeout", "2s")
    watcher = subprocess.Popen(
        bench.command(watching[0], task, *watching[1:]),
        env=bench.env,
        cwd=bench.project,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: any("/done" in path for path in _opened(watcher.pid)), "the watcher")
    kill(bench.keeper(task))
    watcher.wait()
    shown = bench.show(task)
    assert (shown["state"], shown["settled_by"]) == ("timed_out", "adopter")


def _opened(pid: int) -> list[str]:
    try:
        return [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return []


def test_new_keeper_ends_a_detached_child_of_the_task(bench: Bench) -> None:
    """After the first keeper was killed, a cancel also ends a child with its own Unix session and no environment."""
    hidden = "env -i setsid sh -c 'echo $$ > hidden; trap \"\" INT TERM HUP; while :; do sleep 0.3; done' & sleep 90"
    task = bench.launch(hidden)
    path = bench.project / "hidden"
    child = int(wait_until(lambda: path.read_text() if path.exists() else None))
    _shot(bench, task, "keeper")
    bench.ok("cancel", task)
    assert not is_alive(child)
    assert bench.show(task)["state"] == "cancelled"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_launch_works_when_standard_descriptors_are_closed(bench: Bench, closed: str) -> None:
    """If the launcher has closed descriptors 0 to 2, the keeper still has its lock and its FIFOs."""
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
    """A command whose standard output is closed exits with its usual code."""
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


def test_output_cap_holds_when_the_launcher_blocks_signals(bench: Bench) -> None:
    """The keeper caps a growing output, although its launcher had blocked the signals."""
    script = (
        "import os, signal, sys; signal.pthread_sigmask(signal.SIG_SETMASK, range(1, 32));"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    text = "sleep 0.3; head -c 50000000 /dev/zero; sleep 30"
    done = subprocess.run(
        [sys.executable, "-c", script, *bench.command("run", "--max-output", "1M", text)],
        env=bench.env,
        cwd=bench.project,
        capture_output=True,
        text=True,
        check=True,
    )
    output = bench.files(done.stdout.strip()).output
    wait_until(lambda: os.stat(output).st_size == 50_000_000 and os.stat(output).st_blocks * 512 < 2 << 20, "the hole")


def test_timeouts_of_sixty_days_are_supported(bench: Bench) -> None:
    """A timeout of sixty days, which poll() cannot express, ends neither the keeper nor `wait` too early."""
    task = bench.launch("sleep 0.3; exit 5", "--timeout", "60d")
    assert bench.run("wait", task, "--timeout", "60d").returncode == 1
    shown = bench.show(task)
    assert (shown["exit_code"], shown["settled_by"]) == (5, "keeper")


def test_retry_replaces_the_directory_of_an_interrupted_retry(bench: Bench) -> None:
    """`retry` replaces the directory of an attempt without a row, which a killed launcher left behind."""
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


def test_concurrent_readers_all_report_a_killed_task_as_lost(bench: Bench) -> None:
    """Twenty concurrent readers of a task whose processes were killed all report `lost`."""
    task = bench.launch("sleep 60")
    _shot(bench, task, "keeper", "witness", "command")
    with ThreadPoolExecutor(10) as pool:
        states = list(pool.map(lambda _: bench.show(task)["state"], range(20)))
    assert set(states) == {"lost"}


@pytest.mark.parametrize("deleted", ["bundle", "record"])
def test_killed_task_is_lost_when_its_bundle_is_deleted(bench: Bench, deleted: str) -> None:
    """Without its bundle or its record, a killed task is `lost` with the reason `bundle_deleted`."""
    import shutil

    task = bench.launch("sleep 60")
    _shot(bench, task, "keeper", "witness", "command")
    if deleted == "bundle":
        shutil.rmtree(bench.home.bundle(task))
    else:
        Path(bench.files(task).record).unlink()
    shown = bench.show(task)
    assert (shown["state"], shown["reason"]) == ("lost", "bundle_deleted")
    assert bench.run("wait", task).returncode == 1


def test_wait_until_ends_at_its_timeout_when_the_output_never_stops(bench: Bench) -> None:
    """`wait --until` exits with 4 at its timeout, although the command never stops printing."""
    task = bench.launch("yes abc", "--max-output", "1M")
    assert bench.run("wait", task, "--until", "nomatch", "--timeout", "500ms").returncode == 4


@pytest.mark.parametrize("shot", [("keeper",), ("keeper", "witness")])
def test_cancel_of_an_outer_task_spares_an_inner_task_whose_keeper_was_killed(
    bench: Bench, shot: tuple[str, ...]
) -> None:
    """A cancel of the outer task does not end the processes of an inner task. The inner task ends by itself."""
    inner_call = " ".join(bench.command("run", "--", "sh", "-c", "'while ! [ -e go ]; do sleep 0.05; done; exit 5'"))
    outer = bench.launch(f"{inner_call} > inner; sleep 60")
    path = bench.project / "inner"
    inner = wait_until(lambda: path.read_text().strip() if path.exists() else None)
    _shot(bench, inner, *shot)
    command = bench.process(inner)
    bench.ok("cancel", outer)
    assert is_alive(command)
    (bench.project / "go").touch()
    bench.run("wait", inner)
    # Only newer kernels report the exit code of a process that is no child of the keeper.
    assert bench.show(inner)["exit_code"] in ((5,) if shot == ("keeper",) else (5, None))


def test_keeper_leaves_a_damaged_ledger_to_the_next_command(bench: Bench) -> None:
    """A keeper does not move a damaged ledger aside. The next command moves the ledger aside and reports this."""
    task = bench.launch("while ! [ -e go ]; do sleep 0.05; done; exit 7")
    keeper = bench.keeper(task)
    for suffix in ("", "-wal", "-shm"):
        path = Path(bench.home.ledger + suffix)
        if path.exists():
            path.write_bytes(b"no database " * 1000)
    (bench.project / "go").touch()
    wait_until(lambda: not is_alive(keeper), "the keeper's end")
    done = bench.run("list")
    assert (done.returncode, "is damaged" in done.stderr) == (3, True)
    bench.ok("audit", "--rebuild")
    assert bench.show(task)["exit_code"] == 7


def test_emptied_or_deleted_ledger_is_restored_and_reported_once(bench: Bench) -> None:
    """If the ledger was emptied or deleted, the next command restores its tasks and prints one warning."""
    tasks = []
    for damage in ("empty", "delete"):
        tasks.append(bench.launch("true"))
        bench.ok("wait", tasks[-1])
        ledger = Path(bench.home.ledger)
        for suffix in ("-wal", "-shm"):
            ledger.with_name(ledger.name + suffix).unlink(missing_ok=True)
        ledger.write_bytes(b"") if damage == "empty" else ledger.unlink()
        done = bench.run("list")
        assert (done.returncode, done.stderr.count("had to be restored")) == (0, 1)
        assert {task["id"] for task in bench.json("list")["tasks"]} == set(tasks)


def test_wait_any_returns_at_once_when_there_is_no_task(bench: Bench) -> None:
    """`wait --any` without a task exits with 0."""
    assert bench.run("wait", "--any").returncode == 0


def test_list_escapes_characters_that_the_encoding_lacks(bench: Bench) -> None:
    """If stdout is encoded in ASCII, `list` prints characters outside of ASCII as escapes and exits with 0."""
    bench.launch("true", "--description", "größer")
    done = bench.run("list", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "gr\\xf6" in done.stdout


def test_retain_zero_is_not_replaced_by_the_default(bench: Bench) -> None:
    """With `--retain 0s`, the record of a task expires when the task ends. `--max-output 0` is refused."""
    task = bench.launch("true", "--retain", "0s")
    bench.ok("wait", task)
    row = bench.row(task).current
    assert row.delete_after == row.settled_at
    assert bench.run("run", "--max-output", "0", "true").returncode == 2


def test_sdk_refuses_invalid_options(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK raises `UserError` for each invalid option, and leaves no bundle behind."""
    monkeypatch.chdir(bench.project)
    client = Outlive(home=str(bench.state))
    calls: list[dict[str, object]] = [
        {"env": {"A": "x\0y"}},
        {"env": {"": "x"}},
        {"description": "a\ud800"},
        {"group": "\ud800"},
        {"cwd": "a\0b"},
        {"timeout": float("nan")},
        {"timeout": -1},
        {"timeout": "soon"},
        {"retain": float("inf")},
        {"max_output": 1 << 70},
        {"notify": "maybe"},
    ]
    for options in calls:
        with pytest.raises(UserError):
            client.run("true", **options)  # type: ignore[arg-type]
    with pytest.raises(UserError):
        client.run(["sleep", 1])  # type: ignore[list-item]
    assert os.listdir(client._home.tasks) == []


def test_sdk_launches_after_the_program_replaced_the_spawners_descriptor(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a program replaces the descriptor of the spawner's socket, the next launch starts another spawner.

    The SDK does not write to the file that now has this descriptor, and does not close it. This holds in the program
    and in a fork of it.
    """
    from outlive.sdk import outlive as sdk

    monkeypatch.chdir(bench.project)
    client = Outlive(home=str(bench.state))
    client.run("true").wait()
    assert sdk._spawner._socket is not None
    place = sdk._spawner._socket.fileno()
    mine, its = socket.socketpair()
    with mine, its:
        os.dup2(its.fileno(), place)
        child = os.fork()
        if child == 0:
            os._exit(os.fstat(place).st_ino != os.fstat(its.fileno()).st_ino)
        assert os.waitpid(child, 0)[1] == 0
        assert client.run("exit 3").wait().exit_code == 3
        assert os.fstat(place).st_ino == os.fstat(its.fileno()).st_ino
        mine.setblocking(False)
        with pytest.raises(BlockingIOError):
            mine.recv(1)
        os.close(place)


def test_sdk_launch_fails_when_the_working_directory_is_gone(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK raises an error, and does not run the command in the directory that PWD names."""
    gone = bench.project / "gone"
    gone.mkdir()
    monkeypatch.setenv("PWD", str(bench.project))
    client = Outlive(home=str(bench.state))
    before = os.getcwd()
    os.chdir(gone)
    gone.rmdir()
    try:
        with pytest.raises(OutliveError):
            client.run("pwd")
    finally:
        os.chdir(before)


def test_foreground_task_with_a_new_keeper_ends_with_its_session(bench: Bench) -> None:
    """After the first keeper was killed, a foreground task still ends when the processes of its session are killed."""
    script = f"{' '.join(bench.command('run', '--foreground', '--', 'sleep', '60'))}; sleep 60"
    client = subprocess.Popen(
        ["bash", "-c", script],
        env=bench.env,
        cwd=bench.project,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert client.stdout is not None
    task = client.stdout.readline().strip()
    _shot(bench, task, "keeper")
    bench.ok("show", task)
    os.killpg(client.pid, signal.SIGKILL)
    client.wait()
    client.stdout.close()
    bench.run("wait", task)
    assert bench.show(task)["reason"] == "session_ended"


def test_wait_continues_when_the_ledger_is_replaced(bench: Bench) -> None:
    """If the ledger is deleted and restored, `wait` finds its task in the restored ledger and waits for its end."""
    task = bench.launch(until("go"))
    waiter = subprocess.Popen(
        bench.command("wait", task), env=bench.env, cwd=bench.project, stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: any("/done" in path for path in _opened(waiter.pid)), "`wait` to open the FIFO of the task")
    for suffix in ("", "-wal", "-shm"):
        Path(bench.home.ledger + suffix).unlink(missing_ok=True)
    bench.run("list")
    bench.run("list")
    (bench.project / "go").touch()
    waiter.communicate()
    assert waiter.returncode == 0


def test_sdk_run_returns_its_own_task_after_an_interrupted_run(bench: Bench) -> None:
    """If a signal handler interrupts one call of `run`, the next call returns the task of its own command."""
    script = """
import signal, time
from outlive import Outlive
class Stop(Exception): pass
def stop(*_): raise Stop
signal.signal(signal.SIGALRM, stop)
o = Outlive()
o.run(["true"])
for pause in (0.002, 0.004, 0.006, 0.008, 0.010):
    signal.setitimer(signal.ITIMER_REAL, pause)
    try:
        o.run(["echo", "first"])
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Stop:
        pass
    assert o.run(["echo", "second"]).command == "echo second"
print("right")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env=bench.env, cwd=bench.project, capture_output=True, text=True, check=False
    )
    assert done.stdout == "right\n", done.stderr


def test_sdk_works_in_a_child_forked_while_threads_use_it(bench: Bench) -> None:
    """A child process can launch a task and wait for it, even if it was forked while threads used the SDK."""
    script = """
import os, threading, time
from outlive import Outlive
o = Outlive()
slow = o.run("sleep 60")
threading.Thread(target=slow.wait, daemon=True).start()
def read():
    while True:
        o.tasks(all_projects=True)
        slow.refresh()
for _ in range(2):
    threading.Thread(target=read, daemon=True).start()
threading.Thread(target=lambda: [o.run(["true"]) for _ in range(10)], daemon=True).start()
statuses = []
for _ in range(20):
    child = os.fork()
    if child == 0:
        code = o.run("exit 3").wait().exit_code
        os._exit(0 if code == 3 else 1)
    statuses.append(os.waitpid(child, 0)[1])
print(statuses, flush=True)
os._exit(0)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=bench.env,
        cwd=bench.project,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == f"{[0] * 20}\n", done.stderr


def test_cancel_reaches_the_new_keeper_when_the_keeper_is_killed(bench: Bench) -> None:
    """If the keeper dies before it acts on a cancel, `cancel` sends the request again to the next keeper."""
    task = bench.launch("sleep 60")
    keeper = bench.keeper(task)
    kill(keeper, signal.SIGSTOP)
    cancelling = subprocess.Popen(
        bench.command("cancel", task), env=bench.env, cwd=bench.project, stdout=subprocess.DEVNULL
    )
    wait_until(lambda: any("/done" in path for path in _opened(cancelling.pid)), "the cancel to be asked")
    kill(keeper)
    assert cancelling.wait() == 0
    assert bench.show(task)["state"] == "cancelled"


def test_sdk_program_with_default_sigpipe_survives_a_dead_spawner(bench: Bench) -> None:
    """If the spawner was killed, SIGPIPE does not end the program, and the program can launch another task."""
    script = """
import os, select, signal
from outlive import Outlive
from outlive.sdk import outlive as sdk
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
o = Outlive()
o.run(["true"])
spawner = int(sdk._spawner.ask({"verb": "who"})[0])
ended = os.pidfd_open(spawner)
os.kill(spawner, 9)
select.select([ended], [], [])
print(o.run("exit 4").wait().exit_code)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env=bench.env, cwd=bench.project, capture_output=True, text=True, check=False
    )
    assert done.stdout == "4\n", done.stderr


HOP = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.setsid()
print("ready", flush=True)
end = time.time() + 20
while time.time() < end:
    if os.fork():
        os._exit(0)
    if "leave" in sys.argv:
        os.setsid()
    time.sleep(float(sys.argv[1]))
"""


@pytest.mark.parametrize("pause", ["0", "0.001", "0.005", "0.02"])
def test_cancel_ends_a_process_that_forks_and_exits_repeatedly(bench: Bench, pause: str) -> None:
    """`cancel` ends a process that forks and exits repeatedly, because it signals the process group."""
    (bench.project / "hop.py").write_text(HOP)
    task = bench.launch(f"{sys.executable} hop.py {pause} & sleep 60")
    wait_until(lambda: "ready" in bench.ok("output", task), "the first fork of the process")
    done = bench.run("cancel", task)
    assert (done.returncode, bench.show(task)["state"]) == (0, "cancelled")
    assert not any(_hoppers(bench) for _ in range(100))


@pytest.mark.parametrize("pause", ["0.001", "0.005", "0.02"])
def test_cancel_ends_or_reports_a_process_that_also_leaves_its_group(bench: Bench, pause: str) -> None:
    """`cancel` ends a process that forks, exits and changes its group repeatedly, or exits with 5."""
    (bench.project / "hop.py").write_text(HOP)
    task = bench.launch(f"{sys.executable} hop.py {pause} leave & sleep 60")
    wait_until(lambda: "ready" in bench.ok("output", task), "the first fork of the process")
    done = bench.run("cancel", task)
    state = bench.show(task)["state"]
    if any(_hoppers(bench) for _ in range(100)):  # the test's or the keeper's scan of /proc may miss the process
        assert (done.returncode, state) == (5, "failed")
    else:
        # The keeper may kill the last process after it has already counted the process as a survivor.
        assert (done.returncode, state) in ((0, "cancelled"), (5, "failed"))


def _hoppers(bench: Bench) -> list[str]:
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.readlink(f"/proc/{name}/cwd") == str(bench.project):
                words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
                found += [name] if b"hop.py" in words else []
        except OSError:
            continue
    return found


def test_timeout_excludes_the_launchers_wait_for_the_ledger(bench: Bench) -> None:
    """A task has its full timeout even if its launcher waits longer than that for the ledger's lock."""
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


SLOW_TO_GO = """
import sys
from outlive.cli.main import main
from outlive.service.tasks import run
hand_over = run.hand_over
def slowly(home, launch, *rest):
    print(launch.id, flush=True)
    sys.stdin.readline()
    return hand_over(home, launch, *rest)
run.hand_over = slowly
sys.exit(main(["run", "--", "touch", "ran"]))
"""


def test_cancel_before_the_start_signal_prevents_the_start(bench: Bench) -> None:
    """If a task is cancelled between the write of its row and the start signal, its command does not run."""
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_TO_GO],
        env=bench.env, cwd=bench.project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as launching:  # fmt: skip
        assert launching.stdout is not None
        task = launching.stdout.readline().strip()
        assert bench.run("cancel", task).returncode == 0
        launching.communicate("\n")
    assert not (bench.project / "ran").exists()
    shown = bench.show(task)
    assert (shown["state"], shown["evidence"][0]["started"]) == ("cancelled", "no")


@pytest.mark.parametrize("ended", ["while it is cancelled", "by leaving somebody behind"])
def test_output_cap_holds_during_a_cancel_and_after_the_end(bench: Bench, ended: str) -> None:
    """The output stays capped while a cancel ends the task, and while a process left running writes to it."""
    write = "while :; do head -c 1000000 /dev/zero; sleep 0.02; done"
    if ended == "while it is cancelled":
        task = bench.launch(f"trap '' INT TERM; {write}", "--max-output", "1M")
        output = Path(bench.files(task).output)
        wait_until(lambda: output.stat().st_size > 2 << 20)
        cancelling = subprocess.Popen(bench.command("cancel", task), env=bench.env, cwd=bench.project)
        while cancelling.poll() is None:
            assert output.stat().st_blocks * 512 < 24 << 20
    else:
        task = bench.launch(f"({write}) & sleep 0.2", "--max-output", "1M")
        bench.ok("wait", task)
        output = Path(bench.files(task).output)
        wait_until(lambda: output.stat().st_size > 40 << 20, "a lot of output")
        assert output.stat().st_blocks * 512 < 24 << 20
        for left in bench.show(task)["left_running"]:
            kill(left["pid"])


def test_keeper_reaps_orphans_when_the_witness_was_killed(bench: Bench) -> None:
    """After the witness was killed, the keeper reaps orphaned children of the task, so no zombies remain."""
    task = bench.launch("while [ ! -e go ]; do sleep 0.01; done; for i in $(seq 60); do (sleep 0.01 &); done; sleep 60")
    keeper = bench.keeper(task)
    _shot(bench, task, "witness")
    (bench.project / "go").touch()
    wait_until(lambda: bench.project.joinpath("go").exists() and _children_of(keeper) >= 1)
    wait_until(lambda: _zombies_of(keeper) == 0 and _children_of(keeper) == 1, "all orphans to be gone")
    bench.ok("cancel", task)


def _children_of(pid: int) -> int:
    return len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def _zombies_of(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(
        Path(f"/proc/{c}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        for c in children
        if os.path.exists(f"/proc/{c}")
    )


def test_output_follow_continues_after_a_truncation(bench: Bench) -> None:
    """`output --follow` shows what a command writes after it truncated its output, and reports the truncation."""
    task = bench.launch("echo 0123456789; sleep 0.6; echo ab > /dev/stdout; sleep 0.6; echo cd")
    done = bench.run("output", task, "--follow")
    assert done.stdout.split() == ["0123456789", "ab", "cd"]
    assert "truncated its own output" in done.stderr


def test_wait_until_does_not_match_across_the_hole_of_a_capped_output(bench: Bench) -> None:
    """`wait --until` finds no match that begins before the removed middle of a capped output and ends after it."""
    head = (1 << 20) // 8
    script = (
        f"head -c {head - 2} /dev/zero | tr '\\0' x; printf FO; yes Y | tr -d '\\n' | head -c 3000000; echo; sleep 1"
    )
    task = bench.launch(script, "--max-output", "1M")
    bench.ok("wait", task)
    assert bench.run("wait", task, "--until", "FOY").returncode == 1


def test_retried_foreground_task_ends_with_the_session_that_retried_it(bench: Bench) -> None:
    """Killing the session that called `retry` cancels the foreground task."""
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


FEW = """
import resource, sys
from outlive import Outlive, Unavailable
limit = int(sys.argv[1])
client = Outlive()
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
tasks, hints = [], set()
for _ in range(8):
    try:
        tasks.append(client.run("sleep 0.5; exit 3"))
    except Unavailable as error:
        hints.add(error.hint)
for task in tasks:
    task.wait(30)
print(len(tasks), [task.exit_code for task in tasks].count(3), hints)
"""


@pytest.mark.parametrize("limit", [10, 18, 20, 22])
def test_sdk_launches_eight_tasks_or_names_the_limit_when_descriptors_are_few(bench: Bench, limit: int) -> None:
    """With few file descriptors, a program can launch eight tasks, or gets an error that names the limit."""
    done = subprocess.run(
        [sys.executable, "-c", FEW, str(limit)],
        env=bench.env,
        cwd=bench.project,
        capture_output=True,
        text=True,
        check=True,
    )
    if limit >= 18:
        assert done.stdout == "8 8 set()\n"
    else:
        assert done.stdout.startswith("0 0 {"), done.stdout
        assert done.stdout.count("ulimit -n") == 1, "the limit is not named exactly once"
    assert bench.json("audit")["findings"] == []


def test_damaged_write_ahead_log_is_moved_aside(bench: Bench) -> None:
    """If a bit of the ledger's write-ahead log is flipped, a command moves the log aside and restores all tasks."""
    tasks = [bench.launch("exit 0")]
    with kept_in_log(bench):
        tasks += [bench.launch(f"exit {code}") for code in (1, 2)]
        bench.run("wait", *tasks)
    log = Path(bench.home.ledger + "-wal")
    content = bytearray(log.read_bytes())
    content[32 + 24 + 100] ^= 1
    log.write_bytes(content)
    refused = bench.run("list")
    assert (refused.returncode, "was moved to" in refused.stderr) == (3, True), refused.stderr
    aside = [path for path in Path(bench.home.path).iterdir() if ".broken-" in path.name and path.name.endswith("-wal")]
    assert [path.read_bytes() for path in aside] == [bytes(content)]
    assert [bench.show(task)["exit_code"] for task in tasks] == [0, 1, 2]


def test_keepers_are_no_descendants_of_the_sdk_program(bench: Bench) -> None:
    """If a program is killed with all its descendants, the keepers of its tasks and the tasks survive."""
    script = """
import os, sys
from outlive import Outlive
task = Outlive().run("sleep 60")
def below(pid):
    children = open(f"/proc/{pid}/task/{pid}/children").read().split()
    return children + [grandchild for child in children for grandchild in below(child)]
print(task.id, len(below(os.getpid())))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env=bench.env, cwd=bench.project, capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[1] == "0"
