"""The SDK: small, typed, safe in a large program with threads."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from outlive import AsyncOutlive, Conflict, NotStarted, Outlive, Unavailable, UnknownTask, UserError
from outlive.client import sdk
from tests.support import is_alive, kill, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench


@pytest.fixture
def client(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Outlive:
    """A client in the test's own home and project."""
    monkeypatch.chdir(bench.project)
    monkeypatch.delenv("OUTLIVE_SESSION", raising=False)
    return Outlive(home=str(bench.state))


def test_a_task_from_launch_to_result(client: Outlive) -> None:
    """Run, wait, state, code, output."""
    task = client.run("echo hello; exit 3", description="greet")
    assert task.wait().state == "failed"
    assert (task.exit_code, task.signal, task.reason) == (3, None, None)
    assert task.output() == b"hello\n"
    assert task.output(tail=3) == b"lo\n"
    assert task.as_dict()["description"] == "greet"
    assert client.task(task.id[:5]).exit_code == 3
    assert [found.id for found in client.tasks()] == [task.id]


def test_a_program_says_what_a_task_is_going_to_touch(client: Outlive, bench: Bench) -> None:
    """As text or as a path, relative to where the task runs."""
    task = client.run("true", touches=["a", bench.root / "b"]).wait()
    assert bench.row(task.id).launch.touches == (str(bench.project / "a"), str(bench.root / "b"))


def test_waiting_has_a_limit(client: Outlive) -> None:
    """Past the timeout the task is told to be still running."""
    task = client.run(["sleep", "30"])
    assert not task.wait(timeout=0.05).has_ended
    assert not client.wait(task, timeout=timedelta(milliseconds=10))
    assert client.cancel(task)
    assert task.state == "cancelled"


def test_what_cannot_start_raises_and_is_on_record(client: Outlive) -> None:
    """`NotStarted` names the task that was settled."""
    with pytest.raises(NotStarted) as caught:
        client.run(["no-such-program"])
    assert client.task(caught.value.task).reason == "not_started"
    with pytest.raises(UnknownTask):
        client.task("tzzzzzz")


def test_a_running_task_cannot_be_retried_but_an_ended_one_can(client: Outlive) -> None:
    """A retry is a new attempt of the same task."""
    task = client.run("exit 5")
    task.wait()
    task.retry().wait()
    assert len(task.as_dict()["attempts"]) == 2
    running = client.run("sleep 30")
    with pytest.raises(Conflict):
        running.retry()


def test_following_yields_every_byte(client: Outlive) -> None:
    """As it comes, until the end."""
    task = client.run("for i in 1 2 3; do echo $i; sleep 0.05; done")
    assert b"".join(task.follow()) == b"1\n2\n3\n"


def test_the_command_has_the_threads_present_surroundings(client: Outlive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Environment, working directory, umask and limits are those of the moment of the call."""
    import resource

    client.run("true").wait()
    monkeypatch.setenv("COLOUR", "blue")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 321), hard))
    before = os.umask(0o031)
    try:
        task = client.run("echo $COLOUR $SIZE $(umask) $(ulimit -n)", env={"SIZE": "small"}).wait()
    finally:
        os.umask(before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert task.output() == b"blue small 0031 321\n"


def test_the_calling_program_is_never_forked(bench: Bench) -> None:
    """No fork of the host: an at-fork hook never fires, and its threads are no obstacle."""
    script = """
import os, threading, json
forks = []
os.register_at_fork(before=lambda: forks.append(1))
stop = threading.Event()
threads = [threading.Thread(target=stop.wait) for _ in range(20)]
[t.start() for t in threads]
before = threading.active_count()
from outlive import Outlive
o = Outlive()
tasks = [o.run("exit 3") for _ in range(5)]
o.wait(*tasks)
print(json.dumps([len(forks), threading.active_count() - before, [t.exit_code for t in tasks]]))
stop.set()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env=bench.env, cwd=bench.project, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [0, 0, [3] * 5]


def test_importing_starts_nothing(bench: Bench) -> None:
    """No thread, no event loop, no process, and neither asyncio nor apsw is loaded by `import outlive`."""
    script = (
        "import sys, threading, outlive;"
        "print(threading.active_count(), 'asyncio' in sys.modules, 'apsw' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], env=bench.env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False", "False"]


def test_many_threads_share_one_spawner(client: Outlive) -> None:
    """Eight threads launch at once; every task is recorded and ends as it should."""
    ended: list[int | None] = []

    def launch(code: int) -> None:
        ended.append(client.run(f"exit {code}").wait().exit_code)

    threads = [threading.Thread(target=launch, args=(code,)) for code in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(filter(None, ended)) == list(range(1, 9))


def test_a_killed_spawner_is_replaced(client: Outlive) -> None:
    """Tasks live on when the spawner is killed, and the next launch works."""
    first = client.run("sleep 0.5; exit 6")
    child = int(sdk._spawner.ask({"verb": "who"}))
    kill(child)
    wait_until(lambda: not is_alive(child), "the spawner's end")
    second = client.run("exit 7")  # nothing had been asked of the dead one, so nobody needs to know
    assert first.wait().exit_code == 6
    assert second.wait().exit_code == 7


def test_the_spawner_goes_with_its_program(bench: Bench) -> None:
    """When the program has ended its spawner is gone; its tasks are not."""
    script = (
        "from outlive import Outlive\nfrom outlive.client import sdk\n"
        "t = Outlive().run('sleep 0.5; exit 8'); print(t.id, sdk._spawner.ask({'verb': 'who'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=bench.env, cwd=bench.project, capture_output=True, text=True, check=True
    )
    task, spawner = done.stdout.split()
    wait_until(lambda: not is_alive(int(spawner)), "the spawner's end")
    bench.run("wait", task)
    assert bench.show(task)["exit_code"] == 8


def test_the_output_of_every_attempt_can_be_read(client: Outlive) -> None:
    """The newest unless told; one that there never was is refused."""
    task = client.run("echo x >> tries; wc -l < tries; [ $(wc -l < tries) -ge 2 ]", retries=1).wait()
    assert (task.output(), task.output(attempt=1), task.output(attempt=2)) == (b"2\n", b"1\n", b"2\n")
    with pytest.raises(UserError):
        task.output(attempt=3)


def test_one_name_is_one_name(client: Outlive) -> None:
    """Where several may be given, a single text is one of them, and not as many as it has letters."""
    holder = client.run("sleep 60", locks="gpu")
    second = client.run("true", locks=["gpu"], queue_timeout=0.1)
    assert second.wait().reason == "queue_timeout"
    assert client.run("true", locks="pug").wait(10).state == "succeeded"
    follower = client.run("true", after=holder)
    assert client.run("true", after_any=follower.id, touches="there").state == "queued"
    holder.cancel()
    assert follower.wait().reason == "dependency_failed"


@pytest.mark.parametrize(
    "wrong",
    [
        *({"retries": "3"}, {"retries": 1.5}, {"group": 5}, {"key": 5}, {"description": b"d"}, {"stdin": "yes"}),
        *({"locks": [5]}, {"notify": 1}),
    ],
)
def test_what_is_of_the_wrong_type_is_the_callers_mistake(client: Outlive, wrong: dict[str, Any]) -> None:
    """It is refused by its name, and not told as a failure of ours."""
    with pytest.raises(UserError, match=next(iter(wrong))):
        client.run("true", **wrong)


@pytest.mark.parametrize("env", [{"A=B": "c"}, {"": "c"}, {"A\0": "c"}, {"A": "c\0"}, {"A": None}])
def test_no_other_variable_is_set_than_the_one_that_is_named(client: Outlive, env: dict[str, Any]) -> None:
    """What the kernel could not pass on as it is, is refused before anything is launched."""
    with pytest.raises(UserError, match="environment variable"):
        client.run("true", env=env)
    assert client.tasks() == []


@pytest.mark.root
def test_a_task_never_has_more_rights_than_its_launcher(bench: Bench) -> None:
    """A program that drops its rights after its first launch launches the second without them."""
    script = """
import os
from outlive import Outlive
o = Outlive()
first = o.run("id -u; grep NoNewPrivs /proc/self/status").wait().output().split()
import ctypes
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
second = o.run("id -u; grep NoNewPrivs /proc/self/status").wait().output().split()
print(first[-1].decode(), second[-1].decode())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env=bench.env, cwd=bench.project, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["0", "1"]


CHANGES_OF_PLACE = {
    "another priority": "os.nice(3)",
    "other processors": "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})",
    "another network": "assert libc.unshare(0x40000000) == 0",
    "another root": "os.chroot('/jail'); os.chdir('/')",
}


@pytest.mark.root
@pytest.mark.parametrize("change", CHANGES_OF_PLACE.values(), ids=CHANGES_OF_PLACE)
def test_a_task_is_where_its_launcher_is(bench: Bench, tmp_path: Path, change: str) -> None:
    """A program that shuts itself in after its first launch launches the second in there, and nowhere else."""
    jail = tmp_path / "jail"
    jail.mkdir()
    script = f"""
import ctypes, os, subprocess
from outlive import Outlive
libc = ctypes.CDLL(None)
assert libc.unshare(0x20000) == 0  # what is mounted here is mounted for us alone
subprocess.run(["mount", "--make-rprivate", "/"], check=True)
subprocess.run(["mount", "--rbind", "/", {str(jail)!r}], check=True)
look = "exec 9</; cd /proc/self; grep mnt_id fdinfo/9; readlink ns/net; nice; grep Cpus_allowed: status"
own = lambda: subprocess.check_output(look, shell=True)
o = Outlive()
assert o.run(look).wait().output() == own(), "before"
before = own()
{change.replace("/jail", str(jail))}
assert own() != before, "nothing has changed"
assert o.run(look).wait().output() == own(), "after"
"""
    subprocess.run([sys.executable, "-c", script], env=bench.env, cwd="/", check=True)


def test_a_foreground_task_ends_with_its_program(bench: Bench) -> None:
    """The host is killed with SIGKILL: its foreground task ends, its background task goes on."""
    script = (
        "from outlive import Outlive\nimport time\no = Outlive()\n"
        "print(o.run('sleep 60', foreground=True).id, o.run('sleep 60').id, flush=True); time.sleep(60)"
    )
    host = subprocess.Popen(
        [sys.executable, "-c", script], env=bench.env, cwd=bench.project, stdout=subprocess.PIPE, text=True
    )
    assert host.stdout is not None
    foreground, background = host.stdout.readline().split()
    host.kill()
    host.wait()
    host.stdout.close()
    bench.run("wait", foreground)
    assert bench.show(foreground)["reason"] == "session_ended"
    assert bench.show(background)["state"] == "running"


def test_coroutines_wait_without_threads(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty tasks are awaited at once; while they run no thread of the pool is busy with waiting."""
    monkeypatch.chdir(bench.project)

    async def main() -> list[int | None]:
        client = AsyncOutlive(home=str(bench.state))
        tasks = [await client.run(f"sleep 0.3; exit {n % 3}") for n in range(20)]
        await asyncio.gather(*(client.wait(task) for task in tasks))
        late = await client.run("sleep 30")
        assert not (await client.wait(late, timeout=0.05)).has_ended
        assert await client.cancel(late)
        assert len(await client.tasks(limit=None)) == 21
        assert await client.output(tasks[0]) == b""
        return [task.exit_code for task in tasks]

    assert asyncio.run(main()) == [n % 3 for n in range(20)]


def test_a_program_whose_directory_is_gone_goes_on(
    client: Outlive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for what it has launched there, and launches elsewhere."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    task = client.run("exit 3")
    (tmp_path / "gone").rmdir()
    assert task.wait().exit_code == 3
    assert client.run("pwd", cwd=tmp_path).wait().output() == f"{tmp_path}\n".encode()
    with pytest.raises(Unavailable, match="current directory is gone"):
        client.run("pwd")


def test_no_descriptor_is_leaked(client: Outlive) -> None:
    """Launching, waiting and reading leave the program with as many descriptors as before."""
    client.run("true").wait()
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        task = client.run("echo x")
        task.wait()
        list(task.follow())
        client.tasks()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_client_for_each_launch_costs_no_descriptor(client: Outlive, bench: Bench) -> None:
    """Each rests on the ledger, until nobody has the client any more."""
    client.run("true").wait()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        Outlive(home=str(bench.state)).run("true").wait()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 2  # SQLite closes a file when nobody has a lock on it


def test_a_session_of_a_program(client: Outlive) -> None:
    """Begin, be told, be asked at the gate, end: as on the command line."""
    session = client.session("s-1")
    assert session.begin(client="mine", pid=os.getpid()) == {
        "running": [], "ended": [], "lost": [], "elsewhere": 0, "foreign": [], "open_windows": [], "text": "",
    }  # fmt: skip
    front = client.run("sleep 400", session="s-1", foreground=True)
    task = client.run("echo done; exit 3", session="s-1")
    assert session.gate()["may_stop"] is False
    told = next(session.follow())
    assert (told["task"]["id"], told["task"]["exit_code"]) == (task.id, 3)
    assert [notice["id"] for notice in session.peek()] == [told["id"]]
    assert session.acknowledge(told["id"]) == [told["id"]]
    assert session.inbox() == []
    session.end("done")
    assert front.refresh().reason == "session_ended"
    (notice,) = client.session("s-1").inbox(acknowledge=True)
    assert session.dismiss(notice["id"]) == []
    assert session.gate(wait=True, ceiling=5)["may_stop"] is True
    assert client.session("s-2").begin("clear", continues="s-1")["text"] == ""
    with pytest.raises(UserError):
        client.session()
    with pytest.raises(UserError):
        session.begin("birth")  # type: ignore[arg-type]
