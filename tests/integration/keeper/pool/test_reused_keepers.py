"""Reused keepers: a task runs under an idle keeper as it would under a new keeper."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from functools import partial, wraps
from typing import TYPE_CHECKING, ParamSpec

import pytest

from outlive import Outlive
from outlive.keeper.pool.idle_keeper import _MOST_CHANNELS, _MOST_LIVES
from outlive.linux.processes import KEEPER_NAME
from outlive.sdk import outlive as sdk
from outlive.sdk.spawner.spawner_process import Spawner
from tests.support import is_alive, kill, open_files, processes_named, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from outlive import Task
    from tests.support import Bench

P = ParamSpec("P")
_OF_A_LEDGER = 3  # the open descriptors of a ledger: its file, the write-ahead log and the index of this log
_OF_A_COPY = 2  # the open descriptors of a copy of the code: the copy itself and apsw


@pytest.fixture
def client(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Outlive:
    """Return a client that launches tasks by a helper process of its own, without idle keepers of other tests."""
    monkeypatch.chdir(bench.project)
    monkeypatch.delenv("OUTLIVE_SESSION", raising=False)
    monkeypatch.setattr(sdk, "_spawner", Spawner())
    client = Outlive(home=str(bench.state))
    client.run("true").wait()
    return client


class Dismissed(Exception):
    """An error of a test: an idle keeper has ended at its time limit, as may happen on a busy machine."""


@contextmanager
def looking_at_a_keeper() -> Iterator[None]:
    """Raise `Dismissed` if the block reads /proc for a process that has ended."""
    try:
        yield
    except (FileNotFoundError, ProcessLookupError):
        raise Dismissed from None


def patient(test: Callable[P, None]) -> Callable[P, None]:
    """Return a test that is run again if an idle keeper has ended too early."""

    @wraps(test)
    def tried(*given: P.args, **named: P.kwargs) -> None:
        for _ in range(5):
            try:
                return test(*given, **named)
            except Dismissed:
                continue
        raise AssertionError("no keeper waits for the next task")

    return tried


def stat_of(pid: int) -> tuple[bytes, int] | None:
    """Return the state and the parent of a process, or None if the process has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, parent, *_ = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return state, int(parent)


def keeper_of(bench: Bench, task: Task) -> tuple[int, int] | None:
    """Return the keeper and the witness of a task. The witness is None if it has ended."""
    witness = bench.process(task.id, "witness")
    found = stat_of(witness)
    return None if found is None else (found[1], witness)


def free_keeper(bench: Bench, client: Outlive) -> tuple[int, int]:
    """Return an idle keeper and its witness."""
    for _ in range(20):
        task = client.run("true").wait()
        found = keeper_of(bench, task)
        if found is None:
            continue  # The keeper has run as many tasks as it may, and has ended.
        keeper, witness = found
        if keeper not in processes_named(KEEPER_NAME):
            continue
        wait_until(partial(is_free, keeper), "the keeper to close the files of its task")
        return keeper, witness
    raise AssertionError("no keeper stays")


def is_free(keeper: int) -> bool:
    """Return whether a keeper sleeps and has none of a task's files open."""
    found = stat_of(keeper)
    if found is None:
        raise Dismissed
    return found[0] == b"S" and not any("/tasks/" in path for path in open_files(keeper))


def ignores_its_children(pid: int) -> bool:
    """Return whether a process ignores SIGCHLD, so that the kernel reaps its children."""
    with looking_at_a_keeper(), open(f"/proc/{pid}/status", encoding="ascii") as file:
        ignored = next(int(line.split()[1], 16) for line in file if line.startswith("SigIgn"))
    return bool(ignored >> (signal.SIGCHLD - 1) & 1)


def count_open_files(pid: int) -> int:
    """Return how many file descriptors a process has."""
    with looking_at_a_keeper():
        return len(os.listdir(f"/proc/{pid}/fd"))


def is_gone(pid: int) -> bool:
    """Return whether a process has ended."""
    return not is_alive(pid)


def run_by(bench: Bench, client: Outlive, keeper: int, command: str, **options: object) -> Task:
    """Launch a command repeatedly until the given keeper runs it, and return that task.

    Another keeper may be idle too, and the given keeper may not be idle yet.
    """
    others: list[Task] = []
    for _ in range(50):
        task = client.run(command, **options)  # type: ignore[arg-type]
        witness = bench.process(task.id, "witness")
        found = stat_of(witness)
        if found is not None and found[1] == keeper:
            for other in others:
                client.cancel(other)  # Cancel last. Meanwhile, the given keeper could reach its idle limit.
            return task
        others.append(task)
        if is_gone(keeper):
            raise Dismissed
    raise AssertionError("the keeper was not used again")


@patient
def test_keeper_runs_short_tasks_one_after_the_other(bench: Bench, client: Outlive) -> None:
    """The same keeper and witness run five tasks, and each task has its own exit code and output."""
    keeper, witness = free_keeper(bench, client)
    for code in range(5):
        task = run_by(bench, client, keeper, f"echo {code}; exit {code}").wait()
        assert (task.exit_code, task.output()) == (code, f"{code}\n".encode())
        assert bench.process(task.id, "witness") == witness


@patient
def test_reused_keeper_gives_each_command_its_own_surroundings(
    bench: Bench, client: Outlive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A command of a reused keeper has the directory, environment, umask and limits of its own launch."""
    keeper, _ = free_keeper(bench, client)
    say = 'echo "$PWD|$MINE|$(umask)|$(ulimit -n)|$OUTLIVE_TASK"'
    was = resource.getrlimit(resource.RLIMIT_NOFILE)
    mask = os.umask(0o027)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (300, was[1]))
        monkeypatch.setenv("MINE", "one")
        first = run_by(bench, client, keeper, say, cwd=tmp_path).wait()
    finally:
        os.umask(mask)
        resource.setrlimit(resource.RLIMIT_NOFILE, was)
    monkeypatch.delenv("MINE")
    second = run_by(bench, client, keeper, say).wait()
    assert first.output().decode() == f"{tmp_path}|one|0027|300|{first.id}\n"
    assert second.output().decode() == f"{bench.project}||{mask:04o}|{was[0]}|{second.id}\n"


@patient
def test_reused_keeper_keeps_the_effects_of_its_tasks_apart(bench: Bench, client: Outlive) -> None:
    """If one keeper runs two tasks, the effects of each task contain only the file that this task created."""
    for words in (("init", "-q"), ("config", "user.name", "n"), ("config", "user.email", "n@example.org")):
        subprocess.run(["git", *words], cwd=bench.project, check=True)
    keeper, _ = free_keeper(bench, client)
    first = run_by(bench, client, keeper, "echo 1 > first").wait()
    wait_until(lambda: is_free(keeper), "the keeper")
    second = run_by(bench, client, keeper, "echo 2 > second").wait()
    wait_until(lambda: is_free(keeper), "the keeper")
    created = [bench.json("effects", task.id)["created"] for task in (first, second)]
    assert created == [[str(bench.project / "first")], [str(bench.project / "second")]]


@patient
def test_reused_keeper_leaks_no_descriptors(bench: Bench, client: Outlive) -> None:
    """After ten more tasks, keeper and witness have as many descriptors open as after the first task."""
    keeper, witness = free_keeper(bench, client)
    few = [count_open_files(pid) for pid in (keeper, witness)]
    for _ in range(10):
        run_by(bench, client, keeper, "true").wait()
    wait_until(lambda: is_free(keeper), "the keeper")
    assert [count_open_files(pid) for pid in (keeper, witness)] == few


def test_keeper_ends_after_a_limited_number_of_tasks(bench: Bench) -> None:
    """A keeper ends after `_MOST_LIVES` tasks, so that it can leak only a limited amount of resources."""
    program = (
        "from outlive import Outlive; o = Outlive()\n"
        f"for _ in range({2 * _MOST_LIVES + 2}): print(o.run('echo $PPID').wait().output().decode(), end='')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=bench.env, cwd=bench.project, capture_output=True, text=True, check=True
    )
    witnesses = Counter(done.stdout.split())
    assert _MOST_LIVES / 2 <= max(witnesses.values()) <= _MOST_LIVES


@pytest.mark.parametrize("observe", ["auto", "off"])
@patient
def test_keeper_is_not_reused_while_a_process_of_its_task_runs(bench: Bench, client: Outlive, observe: str) -> None:
    """A keeper is not reused while a process that its task left runs. The process is shown with its task."""
    keeper, _ = free_keeper(bench, client)
    task = run_by(bench, client, keeper, "sleep 60 >/dev/null 2>&1 & echo $!", observe=observe).wait()
    left = int(task.output())
    assert [each["pid"] for each in task.as_dict()["left_running"]] == [left]
    for _ in range(5):
        other = client.run("true").wait()
        assert bench.process(other.id, "witness") != bench.process(task.id, "witness")
    assert is_alive(left)
    kill(left)


@pytest.mark.parametrize("which", [0, 1], ids=["keeper", "witness"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
@patient
def test_next_task_succeeds_when_an_idle_keeper_or_witness_is_killed_or_stopped(
    bench: Bench, client: Outlive, which: int, number: signal.Signals
) -> None:
    """If an idle keeper or witness is killed or stopped, the next two tasks still end with their own exit codes."""
    victim = free_keeper(bench, client)[which]
    os.kill(victim, number)
    if number == signal.SIGKILL:
        wait_until(lambda: not is_alive(victim), "the end of the killed process")
    try:
        for code in (4, 5):
            assert client.run(f"exit {code}").wait(timeout=20).exit_code == code
    finally:
        kill(victim, signal.SIGCONT)


@pytest.mark.parametrize("who", ["keeper", "witness"])
@patient
def test_task_of_a_reused_keeper_survives_a_kill(bench: Bench, client: Outlive, who: str) -> None:
    """If a reused keeper or witness is killed during its second task, the exit code of this task is still recorded."""
    keeper, _ = free_keeper(bench, client)
    go = bench.root / "go"
    task = run_by(bench, client, keeper, f"while ! [ -e {go} ]; do sleep 0.02; done; exit 6")
    bench.kill(task.id, who)
    go.touch()
    assert task.wait(timeout=30).exit_code == 6
    assert task.state == "failed"


@patient
def test_keepers_of_short_tasks_are_reused_while_many_long_tasks_run(bench: Bench, client: Outlive) -> None:
    """Short tasks reuse a keeper, even while more long tasks run than keepers can be kept idle."""
    long = [client.run(["sleep", "60"]) for _ in range(3 * _MOST_CHANNELS)]
    spawner = int(sdk._spawner.ask({"verb": "who"})[0])
    most = 5 + _MOST_CHANNELS + _OF_A_LEDGER + _OF_A_COPY
    # The spawner closes the last descriptors of a launch after it has answered.
    wait_until(lambda: len(os.listdir(f"/proc/{spawner}/fd")) <= most, "the end of the last launch")
    keeper, _ = free_keeper(bench, client)
    run_by(bench, client, keeper, "true").wait()
    for task in long:
        client.cancel(task)


def test_idle_keepers_end_with_their_program(bench: Bench) -> None:
    """Idle keepers and witnesses end when the program that launched their tasks has ended."""
    program = (
        "from outlive import Outlive; o = Outlive(); t = o.run('echo $PPID').wait();"
        "print(t.output().decode().strip(), o.run('echo $PPID').wait().output().decode().strip())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=bench.env, cwd=bench.project, capture_output=True, text=True, check=True
    )
    for witness in map(int, done.stdout.split()):
        wait_until(partial(is_gone, witness), "the witness's end")


@patient
def test_idle_keeper_ends_after_a_while(bench: Bench, client: Outlive) -> None:
    """An idle keeper and its witness end when the program has launched no further task for a while."""
    keeper, witness = free_keeper(bench, client)
    wait_until(lambda: not is_alive(keeper) and not is_alive(witness), "the end of keeper and witness")


@patient
def test_keeper_of_leftover_processes_notices_the_end_of_its_next_command(bench: Bench, client: Outlive) -> None:
    """A keeper that watches a leftover process ignores SIGCHLD. It stops ignoring it before its next task begins."""
    keeper, _ = free_keeper(bench, client)
    run_by(bench, client, keeper, "(sleep 0.2 &); exit 0", observe="syscalls").wait()
    wait_until(partial(is_free, keeper), "the end of the leftover process")
    assert not ignores_its_children(keeper)
    for _ in range(5):
        # The command kills its witness, so the keeper has to read the exit status itself.
        assert client.run("kill -9 $PPID; sleep 0.1; exit 3", observe="off").wait(timeout=20).exit_code == 3


INNER = """
import time
from outlive import Outlive
client = Outlive()
for _ in range(3):
    client.run("true").wait()
print("ready", flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    print(client.run("sleep 6; exit 7").id, flush=True)
"""


def test_cancelling_a_program_does_not_end_a_task_of_its_idle_keeper(bench: Bench) -> None:
    """If a program is cancelled while an idle keeper runs a task for it, this task runs to its end."""
    (bench.project / "inner.py").write_text(INNER)
    outer = bench.launch(f"exec {sys.executable} inner.py", "--observe", "off")
    wait_until(lambda: "ready" in bench.ok("output", outer), "the program inside")
    assert bench.run("cancel", outer).returncode == 0
    inner = bench.ok("output", outer).split()[-1]
    assert bench.show(outer)["left_running"] == []
    bench.run("wait", inner)
    assert (bench.row(inner).state, bench.row(inner).current.exit_code) == ("failed", 7)
    assert bench.row(inner).current.settled_by == "keeper"


def test_spawner_and_keepers_of_a_program_are_not_leftover_processes(bench: Bench) -> None:
    """If a task's program launched other tasks, the processes that did so are not listed as left running."""
    (bench.project / "inner.py").write_text(INNER.partition("print")[0])
    outer = bench.launch(f"exec {sys.executable} inner.py")
    bench.run("wait", outer)
    assert bench.show(outer)["left_running"] == []


def has_the_ledger(pid: int) -> bool:
    """Return whether a process has the ledger open."""
    return any(path.endswith("/ledger.sqlite") for path in open_files(pid))


def test_spawner_closes_the_ledger_after_a_while_and_restores_a_deleted_one(bench: Bench, client: Outlive) -> None:
    """The helper process that launches tasks closes the ledger after a while.

    It opens the ledger again for the next launch, and restores it if it was deleted.
    """
    spawner = int(sdk._spawner.ask({"verb": "who"})[0])
    wait_until(lambda: client.run("true").wait().exit_code == 0 and has_the_ledger(spawner), "an open ledger")
    wait_until(lambda: not has_the_ledger(spawner), "the spawner to close the ledger")
    wait_until(lambda: client.run("true").wait().exit_code == 0 and has_the_ledger(spawner), "an open ledger")
    for path in bench.state.glob("*/ledger.sqlite*"):
        if not path.name.endswith(".alone"):
            path.unlink()
    before = set(os.listdir(next(bench.state.glob("*/tasks"))))
    after = client.run("true")
    assert after.wait().exit_code == 0
    assert {task.id for task in client.tasks(all_projects=True, limit=None)} == before | {after.id}
