"""Keepers that are used again: nobody can tell them from new ones, but by what they cost."""

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

from outlive import Outlive, OutliveError
from outlive.bundle.processes import KEEPER_NAME
from outlive.client import sdk
from outlive.client.spawning import Spawner
from outlive.keeper.recycling import _MOST_CHANNELS, _MOST_LIVES
from tests.support import is_alive, kill, open_files, processes_named, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from outlive import Task
    from tests.support import Bench

P = ParamSpec("P")
_OF_A_LEDGER = 3  # descriptors: the file, its log, the log's index


@pytest.fixture
def client(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Outlive:
    """A client with a spawner of its own, so that no keeper of another test is there."""
    monkeypatch.chdir(bench.project)
    monkeypatch.delenv("OUTLIVE_SESSION", raising=False)
    monkeypatch.setattr(sdk, "_spawner", Spawner())
    client = Outlive(home=str(bench.state))
    client.run("true").wait()
    return client


class Dismissed(Exception):
    """On a machine that is very busy, a keeper may have waited for longer than it is kept."""


@contextmanager
def looking_at_a_keeper() -> Iterator[None]:
    """Whatever is not there any more in /proc has been dismissed; a file that was open already tells it when read."""
    try:
        yield
    except (FileNotFoundError, ProcessLookupError):
        raise Dismissed from None


def patient(test: Callable[P, None]) -> Callable[P, None]:
    """The same test, tried again if the machine was too slow for it."""

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
    """The state of a process and its parent; None if it has ended, also while we look."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, parent, *_ = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return state, int(parent)


def keeper_of(bench: Bench, task: Task) -> tuple[int, int] | None:
    """The keeper and the witness of a task that has ended, as long as they live."""
    witness = bench.process(task.id, "witness")
    found = stat_of(witness)
    return None if found is None else (found[1], witness)


def free_keeper(bench: Bench, client: Outlive) -> tuple[int, int]:
    """A keeper that waits for its next task, and its witness."""
    for _ in range(20):
        task = client.run("true").wait()
        found = keeper_of(bench, task)
        if found is None:
            continue  # it had lived long enough
        keeper, witness = found
        if keeper not in processes_named(KEEPER_NAME):
            continue
        wait_until(partial(is_free, keeper), "a keeper that has let go of its task")
        return keeper, witness
    raise AssertionError("no keeper stays")


def is_free(keeper: int) -> bool:
    """Whether it has nothing of any task, and sleeps."""
    found = stat_of(keeper)
    if found is None:
        raise Dismissed
    return found[0] == b"S" and not any("/tasks/" in path for path in open_files(keeper))


def ignores_its_children(pid: int) -> bool:
    """Whether the kernel reaps its children for it."""
    with looking_at_a_keeper(), open(f"/proc/{pid}/status", encoding="ascii") as file:
        ignored = next(int(line.split()[1], 16) for line in file if line.startswith("SigIgn"))
    return bool(ignored >> (signal.SIGCHLD - 1) & 1)


def count_open_files(pid: int) -> int:
    """How many descriptors it has."""
    with looking_at_a_keeper():
        return len(os.listdir(f"/proc/{pid}/fd"))


def is_gone(pid: int) -> bool:
    """Whether it has ended."""
    return not is_alive(pid)


def run_by(bench: Bench, client: Outlive, keeper: int, command: str, **options: object) -> Task:
    """A task that this keeper gets. Another one may be free as well, and it may need a moment to say that it is."""
    others: list[Task] = []
    for _ in range(50):
        task = client.run(command, **options)  # type: ignore[arg-type]
        witness = bench.process(task.id, "witness")
        found = stat_of(witness)
        if found is not None and found[1] == keeper:
            for other in others:
                client.cancel(other)  # only now: who waits for too long is let go
            return task
        others.append(task)
        if is_gone(keeper):
            raise Dismissed
    raise AssertionError("the keeper was not used again")


@patient
def test_a_keeper_sees_one_short_task_after_the_other(bench: Bench, client: Outlive) -> None:
    """The same processes, and every ending is that of its own command."""
    keeper, witness = free_keeper(bench, client)
    for code in range(5):
        task = run_by(bench, client, keeper, f"echo {code}; exit {code}").wait()
        assert (task.exit_code, task.output()) == (code, f"{code}\n".encode())
        assert bench.process(task.id, "witness") == witness


@patient
def test_every_command_has_its_own_surroundings(
    bench: Bench, client: Outlive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Directory, environment, mask and limits are those of its launch, not of whoever was there before."""
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
def test_what_each_of_them_touched_is_its_own(bench: Bench, client: Outlive) -> None:
    """Observed one after the other by one keeper, each has the effects that it had."""
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
def test_nothing_gathers_in_a_keeper(bench: Bench, client: Outlive) -> None:
    """After many tasks it has as few descriptors as after one."""
    keeper, witness = free_keeper(bench, client)
    few = [count_open_files(pid) for pid in (keeper, witness)]
    for _ in range(10):
        run_by(bench, client, keeper, "true").wait()
    wait_until(lambda: is_free(keeper), "the keeper")
    assert [count_open_files(pid) for pid in (keeper, witness)] == few


def test_no_keeper_lives_for_ever(bench: Bench) -> None:
    """What gathers all the same goes with it. One after the other, tasks need two keepers at most."""
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
def test_whoever_leaves_something_behind_keeps_its_keeper(bench: Bench, client: Outlive, observe: str) -> None:
    """What lives on is still that task's, and the next one has another keeper."""
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
def test_somebody_who_waits_for_a_task_is_no_loss(
    bench: Bench, client: Outlive, which: int, number: signal.Signals
) -> None:
    """Killed or stopped while it has nothing to do: the next task does not notice."""
    victim = free_keeper(bench, client)[which]
    os.kill(victim, number)
    if number == signal.SIGKILL:
        wait_until(lambda: not is_alive(victim), "its end")
    try:
        for code in (4, 5):
            assert client.run(f"exit {code}").wait(timeout=20).exit_code == code
    finally:
        kill(victim, signal.SIGCONT)


@pytest.mark.parametrize("who", ["keeper", "witness"])
@patient
def test_somebody_who_is_used_again_can_be_killed_like_anybody(bench: Bench, client: Outlive, who: str) -> None:
    """In the middle of its second task: that is adopted, or its end is seen by the other one."""
    keeper, _ = free_keeper(bench, client)
    go = bench.root / "go"
    task = run_by(bench, client, keeper, f"while ! [ -e {go} ]; do sleep 0.02; done; exit 6")
    bench.kill(task.id, who)
    go.touch()
    assert task.wait(timeout=30).exit_code == 6
    assert task.state == "failed"


@patient
def test_long_tasks_do_not_keep_keepers_from_short_ones(bench: Bench, client: Outlive) -> None:
    """With more running than there are channels, those who are done sooner are still used again."""
    long = [client.run(["sleep", "60"]) for _ in range(3 * _MOST_CHANNELS)]
    spawner = int(sdk._spawner.ask({"verb": "who"}))
    assert len(os.listdir(f"/proc/{spawner}/fd")) <= 5 + _MOST_CHANNELS + _OF_A_LEDGER
    keeper, _ = free_keeper(bench, client)
    run_by(bench, client, keeper, "true").wait()
    for task in long:
        client.cancel(task)


def test_nobody_waits_for_a_program_that_has_ended(bench: Bench) -> None:
    """Keeper and witness go with the program that would have had use for them."""
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
def test_nobody_waits_for_long(bench: Bench, client: Outlive) -> None:
    """A program that launches nothing more for a while has no idle keepers."""
    keeper, witness = free_keeper(bench, client)
    wait_until(lambda: not is_alive(keeper) and not is_alive(witness), "their end")


@patient
def test_who_has_looked_after_leftovers_is_as_new(bench: Bench, client: Outlive) -> None:
    """It ignored the ends of its children meanwhile; of the next command it must hear."""
    keeper, _ = free_keeper(bench, client)
    run_by(bench, client, keeper, "(sleep 0.2 &); exit 0", observe="syscalls").wait()
    wait_until(partial(is_free, keeper), "the end of what was left behind")
    assert not ignores_its_children(keeper)
    for _ in range(5):
        # However it ends, it is seen: also if its witness was killed, and its keeper has to look by itself.
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


def test_cancelling_a_program_leaves_the_tasks_of_its_keepers_alone(bench: Bench) -> None:
    """What it launches on its way out is given to a keeper that was idle when the end began."""
    (bench.project / "inner.py").write_text(INNER)
    outer = bench.launch(f"exec {sys.executable} inner.py", "--observe", "off")
    wait_until(lambda: "ready" in bench.ok("output", outer), "the program inside")
    assert bench.run("cancel", outer).returncode == 0
    inner = bench.ok("output", outer).split()[-1]
    assert bench.show(outer)["left_running"] == []
    bench.run("wait", inner)
    assert (bench.row(inner).state, bench.row(inner).current.exit_code) == ("failed", 7)
    assert bench.row(inner).current.settled_by == "keeper"


def test_a_program_that_launched_something_has_left_nothing_of_ours(bench: Bench) -> None:
    """Its spawner, keepers and witnesses are no processes of its task."""
    (bench.project / "inner.py").write_text(INNER.partition("print")[0])
    outer = bench.launch(f"exec {sys.executable} inner.py")
    bench.run("wait", outer)
    assert bench.show(outer)["left_running"] == []


def has_the_ledger(pid: int) -> bool:
    """Whether it has the ledger open."""
    return any(path.endswith("/ledger.sqlite") for path in open_files(pid))


def test_the_ledger_is_at_hand_for_the_next_launch_and_not_for_ever(bench: Bench, client: Outlive) -> None:
    """A program that launched something once does not keep it open all day; and one that was deleted is missed."""
    spawner = int(sdk._spawner.ask({"verb": "who"}))
    wait_until(lambda: client.run("true").wait().exit_code == 0 and has_the_ledger(spawner), "a ledger at hand")
    wait_until(lambda: not has_the_ledger(spawner), "it to be let go")
    wait_until(lambda: client.run("true").wait().exit_code == 0 and has_the_ledger(spawner), "a ledger at hand")
    for path in bench.state.glob("*/ledger.sqlite*"):
        if not path.name.endswith(".alone"):
            path.unlink()
    with pytest.raises(OutliveError, match="was deleted or emptied by somebody"):
        client.run("true")
    assert client.run("true").wait().exit_code == 0
