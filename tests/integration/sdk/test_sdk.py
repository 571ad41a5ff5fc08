"""The SDK in programs with threads, coroutines, sessions and queues."""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import os
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

import pytest

from outlive import AsyncOutlive, Conflict, NotStarted, Outlive, Session, Task, Unavailable, UnknownTask, UserError
from outlive.sdk import outlive as sdk
from outlive.sdk.aio import AsyncSession
from outlive.sdk.documents import GateDocument, HandOffDocument, NoticeDocument, TaskDocument
from tests.git_steps import Worktree
from tests.support import is_alive, kill, wait_until

if TYPE_CHECKING:
    from tests.support import Bench


@pytest.fixture
def client(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Outlive:
    """Return a client for the test's own state directory and project."""
    monkeypatch.chdir(bench.project)
    monkeypatch.delenv("OUTLIVE_SESSION", raising=False)
    return Outlive(home=str(bench.state))


def test_client_runs_a_task_and_reads_its_result(client: Outlive) -> None:
    """A client runs a task, finds it by the beginning of its id, and reads its state, exit code and output."""
    task = client.run("echo hello; exit 3", description="greet")
    assert task.wait().state == "failed"
    assert (task.exit_code, task.signal, task.reason) == (3, None, None)
    assert task.output() == b"hello\n"
    assert task.output(tail=3) == b"lo\n"
    assert task.as_dict()["description"] == "greet"
    assert client.task(task.id[:5]).exit_code == 3
    assert [found.id for found in client.tasks()] == [task.id]


def test_run_records_the_paths_that_a_task_will_touch(client: Outlive, bench: Bench) -> None:
    """`run(touches=...)` records the paths that the task will touch, given as strings or `Path` objects.

    Relative paths start at the task's directory.
    """
    task = client.run("true", touches=["a", bench.root / "b"]).wait()
    assert bench.row(task.id).launch.touches == (str(bench.project / "a"), str(bench.root / "b"))


def test_wait_returns_when_its_timeout_is_over(client: Outlive) -> None:
    """`wait` returns when its timeout is over. The task still runs, and can be cancelled."""
    task = client.run(["sleep", "30"])
    assert not task.wait(timeout=0.05).has_ended
    assert not client.wait(task, timeout=timedelta(milliseconds=10))
    assert client.cancel(task)
    assert task.state == "cancelled"


def test_run_raises_and_records_the_task_when_its_program_is_missing(client: Outlive) -> None:
    """If the program is missing, `run` raises `NotStarted`, which names the recorded task.

    An unknown id raises `UnknownTask`.
    """
    with pytest.raises(NotStarted) as caught:
        client.run(["no-such-program"])
    assert client.task(caught.value.task).reason == "not_started"
    with pytest.raises(UnknownTask):
        client.task("tzzzzzz")


def test_retry_needs_an_ended_task(client: Outlive) -> None:
    """`retry` starts a new attempt of an ended task. For a running task, it raises `Conflict`."""
    task = client.run("exit 5")
    task.wait()
    task.retry().wait()
    assert len(task.as_dict()["attempts"]) == 2
    running = client.run("sleep 30")
    with pytest.raises(Conflict):
        running.retry()


def test_follow_yields_every_byte_of_the_output(client: Outlive) -> None:
    """`Task.follow` yields every byte of the output, until the task has ended."""
    task = client.run("for i in 1 2 3; do echo $i; sleep 0.05; done")
    assert b"".join(task.follow()) == b"1\n2\n3\n"


def test_command_gets_the_surroundings_of_the_call(client: Outlive, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command has the environment, umask and limits that the program has at the call of `run`."""
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


def test_launching_does_not_fork_the_calling_program(bench: Bench) -> None:
    """Launching a task does not fork the program: its at-fork hooks are not called. Twenty threads run meanwhile."""
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


def test_import_starts_no_thread_and_loads_no_event_loop(bench: Bench) -> None:
    """`import outlive` starts no thread, and imports neither asyncio nor apsw."""
    script = (
        "import sys, threading, outlive;"
        "print(threading.active_count(), 'asyncio' in sys.modules, 'apsw' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], env=bench.env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False", "False"]


def test_eight_threads_launch_tasks_at_once(client: Outlive) -> None:
    """Eight threads launch tasks at the same time, and each task ends with its own exit code.

    All threads use one spawner, a helper process that launches the tasks.
    """
    ended: list[int | None] = []

    def launch(code: int) -> None:
        ended.append(client.run(f"exit {code}").wait().exit_code)

    threads = [threading.Thread(target=launch, args=(code,)) for code in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(filter(None, ended)) == list(range(1, 9))


def test_next_launch_works_when_the_spawner_is_killed(client: Outlive) -> None:
    """If the helper process that launches tasks is killed, the running task and the next one end as usual."""
    first = client.run("sleep 0.5; exit 6")
    child = int(sdk._spawner.ask({"verb": "who"})[0])
    kill(child)
    wait_until(lambda: not is_alive(child), "the spawner's end")
    second = client.run("exit 7")  # The killed helper process had no request to answer, so the launch raises no error.
    assert first.wait().exit_code == 6
    assert second.wait().exit_code == 7


def test_spawner_ends_with_its_program_but_tasks_run_on(bench: Bench) -> None:
    """When the program ends, the helper process that launched its tasks ends, too.

    The program's task continues, and ends with its own exit code.
    """
    script = (
        "from outlive import Outlive\nfrom outlive.sdk import outlive as sdk\n"
        "t = Outlive().run('sleep 0.5; exit 8'); print(t.id, sdk._spawner.ask({'verb': 'who'})[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=bench.env, cwd=bench.project, capture_output=True, text=True, check=True
    )
    task, spawner = done.stdout.split()
    wait_until(lambda: not is_alive(int(spawner)), "the spawner's end")
    bench.run("wait", task)
    assert bench.show(task)["exit_code"] == 8


def test_output_reads_any_attempt(client: Outlive) -> None:
    """`Task.output` reads the newest attempt or any other. An attempt that does not exist raises `UserError`."""
    task = client.run("echo x >> tries; wc -l < tries; [ $(wc -l < tries) -ge 2 ]", retries=1).wait()
    assert (task.output(), task.output(attempt=1), task.output(attempt=2)) == (b"2\n", b"1\n", b"2\n")
    with pytest.raises(UserError):
        task.output(attempt=3)


def test_run_takes_a_single_text_as_one_name(client: Outlive) -> None:
    """A single string for `locks`, `after` or `touches` is taken as one name, and not as a list of letters."""
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
def test_run_raises_user_error_when_an_argument_has_the_wrong_type(client: Outlive, wrong: dict[str, Any]) -> None:
    """If an argument of `run` has the wrong type, `run` raises `UserError`, whose message names the argument."""
    with pytest.raises(UserError, match=next(iter(wrong))):
        client.run("true", **wrong)


@pytest.mark.parametrize("env", [{"A=B": "c"}, {"": "c"}, {"A\0": "c"}, {"A": "c\0"}, {"A": None}])
def test_run_refuses_invalid_environment_variables(client: Outlive, env: dict[str, Any]) -> None:
    """An environment variable that the kernel cannot pass on raises `UserError`, and nothing is launched."""
    with pytest.raises(UserError, match="environment variable"):
        client.run("true", env=env)
    assert client.tasks() == []


@pytest.mark.root
def test_task_gets_no_privileges_that_its_program_has_dropped(bench: Bench) -> None:
    """If a program sets `no_new_privs` after its first launch, its next task has the flag, too."""
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
def test_task_has_the_root_network_and_priority_of_its_program(bench: Bench, tmp_path: Path, change: str) -> None:
    """If a program changes its root, network, priority or processors, its next task has the change, too."""
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


def test_foreground_task_ends_when_its_program_is_killed(bench: Bench) -> None:
    """If the program is killed, its foreground task ends, and its background task continues."""
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


def test_async_client_waits_for_many_tasks(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Coroutines can launch, await, cancel and list many tasks. An invalid state raises `UserError`."""
    monkeypatch.chdir(bench.project)

    async def main() -> list[int | None]:
        client = AsyncOutlive(home=str(bench.state))
        tasks = [await client.run(f"sleep 0.3; exit {n % 3}") for n in range(20)]
        assert await client.wait(*tasks)
        late = await client.run("sleep 30")
        assert not await client.wait(late, timeout=0.05)
        assert await client.wait(late, tasks[0], any_one=True)
        assert await client.cancel(late)
        assert len(await client.tasks(limit=None)) == 21
        assert await client.output(tasks[0]) == b""
        with pytest.raises(UserError):
            await client.tasks(state="finished")  # type: ignore[arg-type]
        return [task.exit_code for task in tasks]

    assert asyncio.run(main()) == [n % 3 for n in range(20)]


def test_client_works_when_the_current_directory_is_deleted(
    client: Outlive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the working directory was deleted, a program can wait, and can launch with `cwd`.

    A launch without `cwd` raises.
    """
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    task = client.run("exit 3")
    (tmp_path / "gone").rmdir()
    assert task.wait().exit_code == 3
    assert client.run("pwd", cwd=tmp_path).wait().output() == f"{tmp_path}\n".encode()
    with pytest.raises(Unavailable, match="current directory is gone"):
        client.run("pwd")


def test_client_leaks_no_descriptors(client: Outlive) -> None:
    """After five launches, the program has as many file descriptors open as before."""
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


def test_clients_close_the_ledger_when_they_are_collected(client: Outlive, bench: Bench) -> None:
    """After five clients were garbage collected, the program has no file of the ledger open any more."""
    client.run("true").wait()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        Outlive(home=str(bench.state)).run("true").wait()
    gc.collect()
    # SQLite keeps a file open while another connection of the process has a lock on this file.
    assert len(os.listdir("/proc/self/fd")) <= before + 2


def test_session_object_works_as_the_session_commands(client: Outlive) -> None:
    """A program can begin a session, read and acknowledge its notices, ask the gate, and end the session."""
    session = client.session("s-1")
    assert session.begin(client="mine", pid=os.getpid()) == {
        "running": [], "ended": [], "lost": [], "earlier_more": 0, "told_lately": [], "elsewhere": 0,
        "foreign": [], "foreign_elsewhere": [], "open_windows": [], "open_windows_more": 0, "open_windows_unknown": [],
        "text": "",
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
    with pytest.raises(UserError, match="is not a path") as error:
        session.edited(["a.py"])  # type: ignore[arg-type]
    assert error.value.hint == "give each path as an argument: edited('a.py', 'b.py')"
    session.edited("a.py", Path("b.py"))


def test_tasks_refuses_an_unknown_state(client: Outlive) -> None:
    """For an unknown state, `tasks` raises `UserError`. An empty list would look as if no task had the state."""
    with pytest.raises(UserError, match="'finished' is not a state of a task"):
        client.tasks(state=["failed", "finished"])  # type: ignore[list-item]


def test_second_begin_of_a_session_returns_all_fields(client: Outlive) -> None:
    """If a session begins again, the second hand-off has the same fields as the first, and an empty text."""
    first, second = (client.session("s-1").begin() for _ in range(2))
    assert second["text"] == ""
    assert first.keys() == second.keys()


def public_methods(kind: type) -> dict[str, inspect.Signature]:
    """Return the public methods of a class with their signatures."""
    found = {name: each for name, each in vars(kind).items() if inspect.isfunction(each) and not name.startswith("_")}
    return {name: inspect.signature(each) for name, each in found.items()}


def parameters(signature: inspect.Signature) -> list[tuple[str, object, object, object]]:
    """Return the parameters of a method, without `self`."""
    return [
        (each.name, each.default, each.annotation, each.kind if each.name != "task" else None)
        for each in list(signature.parameters.values())[1:]
    ]


@pytest.mark.parametrize(("sync", "asynchronous"), [(Outlive, AsyncOutlive), (Session, AsyncSession)])
def test_async_class_has_every_method_with_the_same_parameters(sync: type, asynchronous: type) -> None:
    """The async class has every method of the class, with the same names, defaults and types of parameters."""
    given, found = public_methods(sync), public_methods(asynchronous)
    assert not given.keys() - found.keys()
    assert {name: parameters(each) for name, each in given.items()} == {name: parameters(found[name]) for name in given}
    assert parameters(inspect.signature(sync)) == parameters(inspect.signature(asynchronous)) or sync is Session


def test_async_client_has_every_method_of_a_task() -> None:
    """The async client has every method of a task.

    Its first parameter is the task, and the others are those of the method.
    """
    given, found = public_methods(Task), public_methods(AsyncOutlive)
    for name in given.keys() - {"as_dict", "open_done", "wait", "cancel"}:
        first, *others = parameters(found[name])
        assert first[0] == "task"
        assert others == parameters(given[name]), name


def test_async_follow_yields_output_and_notices_and_can_be_closed(client: Outlive, bench: Bench) -> None:
    """`AsyncOutlive.follow` yields output and notices. A notice counts as read only when the next one is requested.

    If the iterator is closed before that, the notice is pending again.
    """

    async def main() -> None:
        asynchronous = AsyncOutlive(home=str(bench.state))
        task = await asynchronous.run("echo one; sleep 0.2; echo two", session="s-1")
        assert b"".join([piece async for piece in asynchronous.follow(task)]) == b"one\ntwo\n"
        notices = asynchronous.session("s-1").follow()
        assert (await anext(notices))["task"]["id"] == task.id
        await notices.aclose()  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    asyncio.run(main())
    wait_until(lambda: client.session("s-1").peek()[0]["delivery"]["state"] == "pending", "a pending notice")


def check_document(kind: Any, found: object, where: str) -> None:
    """Assert that a document has the fields of its type, and no other fields."""
    origin, arguments = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        assert isinstance(found, dict), where
        fields = get_type_hints(kind, include_extras=True)
        optional = {name for name, each in fields.items() if get_origin(each) is NotRequired}
        assert fields.keys() - optional <= found.keys() <= fields.keys(), (where, found.keys() ^ fields.keys())
        for name, each in found.items():
            check_document(get_args(fields[name])[0] if name in optional else fields[name], each, f"{where}.{name}")
    elif origin is list:
        assert isinstance(found, list), where
        for each in found:
            check_document(arguments[0], each, f"{where}[]")
    elif origin is dict:
        assert isinstance(found, dict), where
    elif type(None) in arguments:
        if found is not None:
            check_document(arguments[0], found, where)
    else:
        assert isinstance(found, (int, float) if kind is float else kind), (where, found)


def test_async_inbox_returns_the_notice_of_a_follow_that_was_left(client: Outlive, bench: Bench) -> None:
    """If a program leaves the loop over `follow` at a notice, the next call of `inbox` returns this notice."""
    asynchronous = AsyncOutlive(home=str(bench.state))

    async def left_and_read() -> tuple[str, list[str]]:
        session = asynchronous.session("s-1")
        followed = ""
        async for notice in session.follow():
            followed = notice["id"]
            break
        return followed, [notice["id"] for notice in await session.inbox(acknowledge=True)]

    for _ in range(5):
        client.run("exit 3", session="s-1").wait()
        followed, found = asyncio.run(left_and_read())
        assert found == [followed]


def test_documents_of_a_task_and_its_session_match_their_types(client: Outlive, bench: Bench) -> None:
    """The JSON documents of a task, its notices, the gate and two hand-offs have the fields of their types."""
    worktree = Worktree(bench.project)
    worktree.commit(**{"a.py": "as committed\n"})
    session = client.session("s-1")
    client.run("echo x > a.py; echo y > b; sleep 60 >&- 2>&- & exit 3", session="s-1").wait()
    running = client.run("sleep 60", session="s-1")
    failed = client.tasks(state="failed")[0]
    check_document(TaskDocument, failed.as_dict(), "task")
    for notice in session.peek():
        check_document(NoticeDocument, notice, "notice")
    gate = session.gate()
    check_document(GateDocument, gate, "gate")
    assert gate["running"]
    assert gate["untold"]
    handed = session.begin()
    check_document(HandOffDocument, handed, "hand-off")
    assert handed["ended"]
    check_document(HandOffDocument, session.begin(), "hand-off that was told before")
    client.cancel(running)


def test_documents_with_changes_by_other_processes_match_their_types(client: Outlive, bench: Bench) -> None:
    """JSON documents with changes by others, a group, a queued or an adopted task have the fields of their types."""
    worktree = Worktree(bench.project)
    worktree.commit(**{"a.py": "as committed\n"})
    session = client.session("s-1")
    session.begin()
    (bench.project / "a.py").write_text("not committed\n")
    stashing = client.run("git stash -q; sleep 60", session="s-1", group="g")
    wait_until(lambda: stashing.refresh().as_dict()["effects"]["windows"], "the stash")
    inside = client.run("sleep 1", session="s-1", group="g", locks="l")
    queued = client.run("true", session="s-1", locks="l")
    check_document(TaskDocument, queued.as_dict(), "queued")
    assert queued.as_dict()["waiting_for"]
    check_document(GateDocument, session.gate(), "gate")
    assert session.gate()["open_windows"]
    worktree.commit(**{"b.py": "by hand\n"})
    inside.wait()
    wait_until(lambda: inside.refresh().as_dict()["effects"]["unattributed"], "the changes by other processes")
    check_document(TaskDocument, inside.as_dict(), "moved")
    assert "HEAD moved" in str(inside.as_dict()["effects"]["moved"])
    client.cancel(stashing)
    with subprocess.Popen(["sleep", "60"]) as process:
        adopted = bench.json("adopt", str(process.pid), "--session", "s-1")["id"]
        check_document(TaskDocument, client.task(adopted).as_dict(), "adopted")
        process.kill()
    client.wait(queued, client.task(adopted))
    notices = session.peek()
    assert any(notice["members"] for notice in notices)
    for notice in notices:
        check_document(NoticeDocument, notice, "notice")
    handed = session.begin("compact")
    check_document(HandOffDocument, handed, "hand-off")
    assert any(task["overlap"] for task in handed["ended"])
    session.inbox()
    check_document(HandOffDocument, session.begin("compact"), "hand-off after a summary")


def test_client_logs_a_restored_ledger(client: Outlive, bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """If the ledger is deleted, the program's next call restores it, finds the task and logs a message."""
    task = client.run("exit 3").wait()
    for suffix in ("", "-wal", "-shm"):
        Path(bench.home.ledger + suffix).unlink(missing_ok=True)
    assert [found.id for found in client.tasks()] == [task.id]
    assert client.run("true").wait().state == "succeeded"
    assert [record.name for record in caplog.records if "had to be restored" in record.message] == ["outlive"]


def test_task_reports_whether_its_key_started_it(client: Outlive) -> None:
    """A task says whether its key has started it.

    The key of a succeeded task starts nothing, that of a failed task does.
    """
    assert [client.run("true", key="a").wait().was_started for _ in range(2)] == [True, False]
    assert [client.run("exit 3", key="b").wait().was_started for _ in range(2)] == [True, True]
