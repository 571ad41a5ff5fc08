"""Observing a command never breaks it, whatever sandbox, filters, tracers or privileges it has."""

from __future__ import annotations

import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outlive.bundle.attempt import AttemptFiles
from outlive.linux.processes import KEEPER_NAME
from outlive.linux.seccomp import is_known_machine
from tests import confined
from tests.git_steps import ENVIRON, Worktree
from tests.session_steps import begin, until
from tests.support import is_alive, kill, open_files, processes_named, wait_until

if TYPE_CHECKING:
    from tests.outsider import Outsider
    from tests.support import Bench

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of calls are those of x86-64")
SCHED_GETATTR, SHORT_TURN_NS = 315, 100_000
CANNOT = "system calls cannot be observed here, or another program observes them"
TESTS = str(Path(confined.__file__).parent)
WORK = "mkdir d && echo x > d/x && mv d/x d/y && rm -r d && echo made > made && cat made"
# A program with its own filter, threads, children and signals. It prints the fault that it finds, or `fine`.
BUSY = f"""
import os, signal, subprocess, sys, threading
sys.path.insert(0, {TESTS!r})
def work(number):
    for turn in range(20):
        name = f"t{{number}}-{{turn}}"
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
        os.rename(name, name + "r")
        os.unlink(name + "r")
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
signal.setitimer(signal.ITIMER_REAL, 0)
subprocess.run(["sh", "-c", "echo child > child"], check=True)
os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", "echo spawned > spawned"], os.environ), 0)
if not os.fork():
    open("forked", "w").close()
    os._exit(0)
os.wait()
import confined
confined.forbid(confined.MKDIR)
try:
    os.mkdir("forbidden")
    print("its own filter does not hold")
except PermissionError:
    open("filtered", "w").close()
print("fine")
"""


# A program that serves an empty FUSE file system, and logs every request before it answers.
SERVING = """
import ctypes, os, struct
libc, fuse = ctypes.CDLL(None), os.open("/dev/fuse", os.O_RDWR)
os.mkdir("served")
options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0"
assert libc.mount(b"none", b"served", b"fuse", 0, options.encode()) == 0
server = os.fork()
while not server:
    _, operation, number = struct.unpack_from("=IIQ", os.read(fuse, 1 << 20))
    with open("log", "a") as log:
        print(operation, file=log)
    content = struct.pack("=4I2H2I2H8I", 7, 31, 4096, 0, 0, 0, 4096, 1, 0, 0, *[0] * 8) if operation == 26 else b""
    os.write(fuse, struct.pack("=IiQ", 16 + len(content), 0 if content else -2, number) + content)
try:
    os.mkdir("served/new")
except FileNotFoundError:
    print("nothing there")
finally:
    os.kill(server, 9)
    libc.umount2(b"served", 2)
"""


# A program that decides by fanotify about every open in this directory, and logs each before it allows it.
GUARDING = """
import ctypes, os, struct
libc = ctypes.CDLL(None)
guard = libc.fanotify_init(4, os.O_RDONLY)
assert guard >= 0 and libc.fanotify_mark(guard, 1, ctypes.c_uint64(0x10000 | 0x08000000), -100, b".") == 0
guardian = os.fork()
while not guardian:
    event = os.read(guard, 24)
    with open("../log", "a") as log:
        print("open", file=log)
    (opened,) = struct.unpack_from("=i", event, 16)
    os.write(guard, struct.pack("=iI", opened, 1))
    os.close(opened)
os.close(guard)
try:
    with open("a.py", "w") as file:
        file.write("x")
    print("guarded")
finally:
    os.kill(guardian, 9)
"""


# A module that refuses to start some threads, as the kernel does when the limit of processes is reached.
NO_THREADS = """
import _thread
make = _thread.start_new_thread
def refuse(function, *rest):
    if function.__name__ in {refused}:
        raise RuntimeError("can't start new thread")
    return make(function, *rest)
_thread.start_new_thread = refuse
"""


def _release() -> tuple[int, ...]:
    return tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])


def confine(bench: Bench, *forbidden: int) -> Any:
    """Run a task in a sandbox that forbids some system calls, and return the task's effects."""
    script = [sys.executable, f"{TESTS}/confined.py", ",".join(map(str, forbidden))]
    done = bench.run("run", "--wait", "20s", "--json", WORK, before=script)
    document = json.loads(done.stdout)
    assert (document["state"], document["output"]["tail"]) == ("succeeded", "made\n"), document
    return document["effects"]


# --- a sandbox around the command --------------------------------------------------------------------------


def test_command_runs_unobserved_when_its_sandbox_forbids_filters(bench: Bench) -> None:
    """If a sandbox forbids filters, a command runs unobserved, and the effects give the reason.

    Tasks outside of the sandbox are observed.
    """
    for _ in range(2):  # The first launch tries to observe. The second launch uses the remembered result.
        assert confine(bench, confined.SECCOMP)["why_unseen"] == CANNOT
    task = bench.launch(WORK)
    bench.run("wait", task)
    assert bench.json("effects", task)["level"] == "observed"
    assert confine(bench, confined.SECCOMP)["level"] == "unknown"


def test_task_is_observed_when_its_sandbox_forbids_pidfd_getfd(bench: Bench) -> None:
    """If a sandbox forbids pidfd_getfd, as Docker's does, tasks inside and outside of it are observed."""
    Worktree(bench.project)
    for _ in range(2):
        found = confine(bench, confined.PIDFD_GETFD)
        assert (found["level"], found["created"]) == ("observed", [f"{bench.project}/made"])
        (bench.project / "made").unlink()
        task = bench.launch("true")
        bench.run("wait", task)
        assert bench.json("effects", task)["level"] == "observed"


@pytest.mark.parametrize("forbidden", [confined.MKNOD, confined.OPENAT2], ids=["nothing of ours", "openat2"])
def test_paths_are_resolved_as_the_task_resolves_them(bench: Bench, forbidden: int) -> None:
    """Relative paths and paths through links are resolved as the task does it, even if the sandbox forbids openat2."""
    tree = Worktree(bench.project)
    (bench.project / "real" / "deep").mkdir(parents=True)
    (bench.project / "link").symlink_to("real/deep")
    (bench.project / "last").symlink_to("link/aim")
    (bench.project / "old").symlink_to("nowhere")
    tree.write("kept", "before")
    lines = (
        f"echo 1 > {bench.project}/link/through; echo 2 > last; cd real/deep; echo 3 > ../up; echo 4 > .//./here",
        f"echo 5 > {bench.project}//real/../slashes; echo 6 > ../../kept; rm ../../old; mkdir ../../link/made/",
    )
    script = [sys.executable, f"{TESTS}/confined.py", str(forbidden)]
    found = json.loads(bench.run("run", "--wait", "20s", "--json", "; ".join(lines), before=script).stdout)["effects"]
    made = {str(bench.project / name) for name in ("slashes", "real/up")}
    made |= {f"{bench.project}/real/deep/{name}" for name in ("through", "aim", "here", "made")}
    assert found["level"] == "observed"
    assert (set(found["created"]), found["changed"]) == (made, [f"{bench.project}/{name}" for name in ("kept", "old")])


def test_witness_answers_when_the_keeper_dies_in_a_sandbox_without_pidfd_getfd(bench: Bench) -> None:
    """If the keeper was killed in a sandbox without pidfd_getfd, the witness answers the command's calls.

    The witness has its own copy of the listener.
    """
    script = [sys.executable, f"{TESTS}/confined.py", str(confined.PIDFD_GETFD)]
    task = bench.run("run", f"{until('go')}; {WORK}", before=script).stdout.strip()
    kill(bench.keeper(task))
    (bench.project / "go").touch()
    assert bench.run("wait", task, "--timeout", "20s").returncode == 0
    assert bench.show(task)["effects"]["unobserved_since"] is not None


KILLING = """
import os, time
time.sleep(0.2)
open("a", "w").write("1")
time.sleep(0.2)
open("b", "w").write("2")
print(time.time(), flush=True)
for _ in range(12):
    time.sleep(0.005)
    open("c", "w")
os.kill(int(open("keeper").read()), 9)
"""


def test_unobserved_time_begins_before_the_lines_that_a_dead_keeper_had_not_written(bench: Bench) -> None:
    """The time since when a task is not observed is earlier than all changes that the killed keeper had not written."""
    Worktree(bench.project).write("a", "0")
    task = bench.ok("run", f"{until('go')}; {sys.executable} -B -c '{KILLING}'")
    (bench.project / "keeper").write_text(str(bench.keeper(task)))
    (bench.project / "go").touch()
    assert bench.run("wait", task, "--timeout", "20s").returncode == 0
    found = bench.json("effects", task)
    written = float(bench.ok("output", task))
    assert f"{bench.project}/b" not in found["created"]
    assert datetime.fromisoformat(found["unobserved_since"]).timestamp() <= written


def test_window_that_is_closed_unobserved_lasts_until_the_file_is_restored(bench: Bench) -> None:
    """If the keeper died, a file counts as changed until it was restored, and not until the last observed call."""
    tree = Worktree(bench.project)
    for name in ("a.py", "b.py", "c.py"):
        tree.write(name, "x = 1\n")
    tree.write("full/one", "1")
    lines = (
        "cp a.py saved; rm a.py; mv b.py away; echo bad > c.py; touch held",
        f"rmdir full; {until('go')}; cp saved a.py; mv away b.py; echo x = 1 > c.py; touch full/more; sleep 0.1",
    )
    task = bench.ok("run", "; ".join(lines))
    wait_until((bench.project / "held").exists)
    time.sleep(0.1)
    kill(bench.keeper(task))
    time.sleep(0.3)
    (bench.project / "go").touch()
    assert bench.run("wait", task, "--timeout", "20s").returncode == 0
    found = bench.json("effects", task)
    spans = {path: window["duration_s"] for window in found["windows"] for path in window["paths"]}
    possible = {path: window["duration_s"] for window in found["possible_windows"] for path in window["paths"]}
    assert spans["a.py"] > 0.4 < spans["b.py"], found
    assert possible["c.py"] > 0.4, found
    assert "full" not in {*spans, *possible}


def test_command_with_a_hard_cpu_limit_is_not_observed(bench: Bench) -> None:
    """A command with a hard CPU limit is not observed, and the effects give this reason.

    The limit would also kill keeper and witness. With a soft limit, or with `--observe syscalls`, the command is
    observed.
    """
    limited = ["sh", "-c", 'ulimit "$0" 1; exec "$@"']
    for how, level in (("-t", "unknown"), ("-St", "observed")):
        done = bench.run("run", "--wait", "20s", "--json", WORK, before=[*limited, how])
        found = json.loads(done.stdout)
        assert (found["state"], found["effects"]["level"]) == ("succeeded", level), found
        assert ("CPU time is limited" in (found["effects"]["why_unseen"] or "")) == (how == "-t")
        (bench.project / "made").unlink()
    done = bench.run("run", "--wait", "20s", "--json", "--observe", "syscalls", WORK, before=[*limited, "-t"])
    assert json.loads(done.stdout)["effects"]["level"] == "observed"


def test_keeper_has_enough_descriptors_when_many_processes_are_observed(bench: Bench) -> None:
    """A keeper with at most 80 descriptors can observe many processes.

    It opens the memory of each process only for a short time.
    """
    text = "for each in $(seq 300); do (: > f$each); done"
    for _ in range(3):
        done = bench.run("run", "--wait", "20s", "--json", text, before=["sh", "-c", 'ulimit -n 80; exec "$@"', "sh"])
        effects = json.loads(done.stdout)["effects"]
        assert (effects["level"], effects["gaps"]) == ("observed", []), effects["summary"]


def test_keeper_survives_sigxcpu(bench: Bench) -> None:
    """The keeper ignores the signal of a soft CPU limit, and continues to observe the command."""
    task = bench.launch(f"trap '' XCPU; {until('go')}")
    kill(bench.keeper(task), signal.SIGXCPU)
    (bench.project / "go").touch()
    assert bench.run("wait", task).returncode == 0
    assert bench.show(task)["effects"]["unobserved_since"] is None


# --- filters and tracers of the command ----------------------------------------------------------------


def test_program_with_filters_threads_and_signals_is_observed(bench: Bench) -> None:
    """An observed program with filters, threads and signals works as usual. Its effects list the files it leaves."""
    Worktree(bench.project)
    (bench.project / "busy.py").write_text(BUSY)
    task = bench.launch(f"{sys.executable} -B busy.py")
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    assert bench.ok("output", task) == "fine"
    found = bench.json("effects", task)
    assert {Path(path).name for path in found["created"]} == {"child", "spawned", "forked", "filtered"}
    assert found["level"] == "observed"


def test_program_continues_when_its_own_listener_is_refused(bench: Bench) -> None:
    """If a program cannot install its own listener for system calls, it continues, and the effects say so.

    The kernel allows one listener per process, and the observer has it.
    """
    Worktree(bench.project)
    program = "from outlive.linux.seccomp import install; print(install(keep_privileges=True)); open('after', 'w')"
    task = bench.launch(f'{sys.executable} -B -c "{program}"')
    assert bench.run("wait", task).returncode == 0
    assert bench.ok("output", task) == "None"
    found = bench.json("effects", task)
    assert found["created"] == [f"{bench.project}/after"]
    assert "could not observe system calls" in found["gaps"][0]


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
@pytest.mark.root
def test_observer_does_not_deadlock_with_a_task_that_serves_a_file_system(bench: Bench) -> None:
    """If a task serves a file system, the keeper stops observing it, and the effects say so.

    Otherwise the observer would look up a path in that file system and wait for the task, while the task waits for the
    observer.
    """
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("this machine does not allow FUSE file systems")
    task = bench.ok("run", "--", sys.executable, "-B", "-c", SERVING)
    bench.run("wait", task, "--timeout", "10s")
    shown = bench.show(task)
    if shown["state"] == "running":
        bench.run("cancel", task)
        subprocess.run(["umount", "-l", bench.project / "served"], check=False)
    assert (shown["state"], shown["output"]["tail"]) == ("succeeded", "nothing there\n"), shown
    assert shown["effects"]["unobserved_since"] is not None
    assert "it serves a file system itself" in shown["effects"]["summary"]


@pytest.mark.root
def test_observer_does_not_deadlock_with_a_task_that_decides_about_opens(bench: Bench) -> None:
    """A task that decides about file opens (fanotify) succeeds, and the effects say that it decides about them.

    If the observer opened a file, it would wait for the task's decision, while the task waits for the observer.
    """
    Worktree(bench.project).commit(**{"a.py": "a"})
    task = bench.ok("run", "--", sys.executable, "-B", "-c", GUARDING)
    bench.run("wait", task, "--timeout", "10s")
    shown = bench.show(task)
    if shown["state"] == "running":
        bench.run("cancel", task)
    if "AssertionError" in shown["output"]["tail"]:
        pytest.skip("this machine does not allow fanotify decisions")
    assert (shown["state"], shown["output"]["tail"]) == ("succeeded", "guarded\n"), shown
    assert "it decides which processes may open files (fanotify)" in shown["effects"]["summary"]


def test_tracer_inside_an_observed_task_sees_each_call_once(bench: Bench) -> None:
    """A tracer in an observed task sees each system call once, with the result that the program gets."""
    Worktree(bench.project)
    task = bench.launch(f"strace -f -o trace -e trace=mkdir,rename,renameat2 sh -c '{WORK}'; grep -c ' = 0$' trace")
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    assert bench.ok("output", task).splitlines() == ["made", "2"]


def test_inner_task_is_watched_or_compared(bench: Bench) -> None:
    """A task inside an observed task has the level `watched` or `compared`.

    The effects of the outer task contain the changes by the inner task.
    """
    bench.env.update({name: text for name, text in ENVIRON.items() if name.startswith("GIT_")})
    tree = Worktree(bench.project)
    tree.commit(a="a\n")
    inner = " ".join(bench.command("run", "--wait", "20s", "--json"))
    task = bench.launch(f"{inner} 'echo b > a; git commit -q -a -m b'")
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    found = json.loads(bench.ok("output", task))
    assert found["state"] == "succeeded"
    assert found["effects"]["level"] in ("watched", "compared")
    assert found["effects"]["why_unseen"] == CANNOT
    moved = {each["what"] for each in found["effects"]["git"]}
    assert "HEAD moved" in found["effects"]["summary"] or "branch main" in moved
    outer = wait_until(lambda: bench.json("effects", task)["changed"], "the journal")
    assert outer == [f"{bench.project}/a"]
    assert not any("was refused" in gap for gap in bench.json("effects", task)["gaps"])


def test_stopped_and_continued_command_completes_its_observed_calls(bench: Bench) -> None:
    """A command that is stopped and continued twenty times during its calls completes all of its calls."""
    program = "import os\nfor n in range(3000):\n    os.mkdir(f'{n}'); os.rmdir(f'{n}')\nprint('all')"
    (bench.project / "program.py").write_text(program)
    task = bench.launch(f"exec {sys.executable} -B program.py")
    pid = bench.process(task)
    for _ in range(20):
        kill(pid, signal.SIGSTOP)
        kill(pid, signal.SIGCONT)
    assert bench.run("wait", task, "--timeout", "40s").returncode == 0
    assert bench.ok("output", task) == "all"


# --- without rights -------------------------------------------------------------------------------


@pytest.fixture
def mine(outsider: Outsider) -> Path:
    """Make a directory that belongs to the user without privileges."""
    place = outsider.root / "state" / "mine"
    place.mkdir()
    os.chown(place, 65534, 65534)
    return place


@pytest.mark.root
@pytest.mark.skipif(not is_known_machine() or shutil.which("strace") is None, reason="needs strace")
def test_program_of_an_unprivileged_user_is_observed(outsider: Outsider, mine: Path) -> None:
    """A task of a user without privileges is observed. Its filters, tracers, threads, signals and forks work."""
    shutil.copy(confined.__file__, mine / "confined.py")
    (mine / "busy.py").write_text(BUSY.replace(TESTS, str(mine)))
    text = "git init -q . && /usr/bin/python3 -B busy.py && strace -f -o trace true && tail -1 trace"
    done = outsider.call("run", "--wait", "40s", "--json", "--cwd", str(mine), text)
    found = json.loads(done.stdout)
    assert found["state"] == "succeeded", found["output"]["tail"]
    assert found["output"]["tail"].startswith("fine\n")
    assert "exited with 0" in found["output"]["tail"]
    assert found["effects"]["level"] == "observed"


def observer_of(outsider: Outsider, task: str, who: str) -> int:
    """Return the process id of the keeper or of the witness of a task."""
    (bundle,) = (outsider.root / "state").glob(f"*/tasks/{task}")
    files = AttemptFiles(str(bundle), 1)
    slot = wait_until(lambda: files.read_slot("process"), "the process record")
    keepers = [each for each in processes_named(KEEPER_NAME) if files.control in open_files(each)]
    return int(slot["witness"]) if who == "witness" else keepers[0]


WAITING = "until [ -e go ]; do sleep 0.01; done; "
LOOP = "for i in $(seq 60); do mkdir d$i && echo x > d$i/x && mv d$i/x d$i/y && rm -r d$i || exit 9; done; echo done"
DEADLY = WAITING + LOOP


@pytest.mark.root
@pytest.mark.parametrize("who", ["keeper", "witness"])
def test_command_of_an_unprivileged_user_succeeds_when_keeper_or_witness_is_killed(
    outsider: Outsider, mine: Path, who: str
) -> None:
    """A command succeeds even if its keeper or its witness is killed at a random time.

    If the keeper is killed, the effects say since when the command was not observed. If the witness is killed, the
    command is still observed.
    """
    chance, unobserved = random.Random(who), 0
    for _ in range(10):
        done = outsider.call("run", "--json", "--observe", "syscalls", "--cwd", str(mine), DEADLY)
        task = json.loads(done.stdout)["id"]
        pid = observer_of(outsider, task, who)
        (mine / "go").touch()
        time.sleep(chance.random() * 0.3)
        if is_alive(pid):
            kill(pid)
        outsider.call("wait", task, "--timeout", "30s")
        (mine / "go").unlink()
        shown = json.loads(outsider.call("show", task, "--json").stdout)
        assert (shown["state"], shown["exit_code"], shown["output"]["tail"]) == ("succeeded", 0, "done\n"), shown
        unobserved += shown["effects"]["unobserved_since"] is not None
    assert (unobserved > 0) == (who == "keeper")


@pytest.mark.root
def test_summary_names_a_program_that_lost_its_privileges_and_the_option_that_keeps_them(
    outsider: Outsider, mine: Path
) -> None:
    """If a program ran without its privileges, the summary names the program and the option that keeps them."""
    (outsider.root / "setpriv").rename(outsider.root / "gainer")
    hidden = f"x={outsider.root}/gai; $x''ner --reuid=0 id -u || true"
    done = outsider.call("run", "--wait", "30s", "--json", "--cwd", str(mine), hidden)
    effects = json.loads(done.stdout)["effects"]
    assert "gainer ran without its privileges; use --observe compare to keep the privileges" in effects["summary"]
    done = outsider.call("run", "--wait", "30s", "--json", "--observe", "compare", "--cwd", str(mine), hidden)
    assert json.loads(done.stdout)["output"]["tail"] == "0\n"
    done = outsider.call("run", "--wait", "30s", "--json", "--cwd", str(mine), f"{hidden}; : gainer")
    found = json.loads(done.stdout)
    assert (found["output"]["tail"], "privileges" in found["effects"]["why_unseen"]) == ("0\n", True)


@pytest.mark.root
def test_command_that_ran_a_set_id_program_keeps_its_privileges_the_next_time(outsider: Outsider, mine: Path) -> None:
    """If a command ran a set-id program, it is not observed the next time, so that the program keeps its privileges.

    This holds even if the command's text does not name the program. Other commands are observed.
    """
    (outsider.root / "setpriv").rename(outsider.root / "gainer")
    (mine / "sub").mkdir()
    hidden = f"x={outsider.root}/gai; $x''ner --reuid=0 id -u || true"
    found = [run_in(outsider, mine, text) for text in (hidden, hidden, "ls sub/", f"{hidden} #")]
    assert [each["output"]["tail"] == "0\n" for each in found] == [False, True, False, False]
    assert [each["effects"]["level"] for each in found[2:]] == ["observed", "partial"]


@pytest.mark.parametrize(
    "refused", [("_answer_calls",), ("_stand_in",), ("_answer_calls", "_stand_in")], ids=["keeper", "witness", "both"]
)
def test_command_runs_unobserved_when_an_observing_thread_cannot_be_started(
    bench: Bench, refused: tuple[str, ...]
) -> None:
    """If keeper or witness cannot start the thread that observes, the command runs unobserved.

    No process could answer the system calls of an observed command then.
    """
    Worktree(bench.project)
    (bench.project / "sitecustomize.py").write_text(NO_THREADS.format(refused=refused))
    found = bench.json("run", "--wait", "20s", WORK, env={"PYTHONPATH": str(bench.project)})
    assert (found["state"], found["output"]["tail"]) == ("succeeded", "made\n"), found
    assert found["effects"]["level"] in ("watched", "compared")
    assert ("ulimit -u" if "_answer_calls" in refused else CANNOT) in found["effects"]["why_unseen"]


def run_in(outsider: Outsider, directory: Path, text: str) -> Any:
    """Run a task of the user without privileges, and return its JSON document."""
    return json.loads(outsider.call("run", "--wait", "30s", "--json", "--cwd", str(directory), text).stdout)


@pytest.mark.skipif(_release() < (6, 12), reason="this kernel does not let a thread choose its time slice")
def test_thread_that_answers_calls_requests_short_time_slices(bench: Bench) -> None:
    """The keeper's thread that answers system calls requests short time slices. Its main thread does not.

    With short time slices, the thread gets a CPU sooner. The command waits for this thread.
    """
    task = bench.launch(f"echo x > x; {until('go')}")
    threads = Path(f"/proc/{bench.keeper(task)}/task")
    wait_until(lambda: SHORT_TURN_NS in {_turn_of(int(each.name)) for each in threads.iterdir()}, "short turns")
    assert _turn_of(bench.keeper(task)) != SHORT_TURN_NS
    (bench.project / "go").touch()
    bench.run("wait", task)


def _turn_of(thread: int) -> int:
    """Return the length of the time slice that a thread has requested from the kernel, in nanoseconds."""
    asked = bytearray(48)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(SCHED_GETATTR, thread, (ctypes.c_char * len(asked)).from_buffer(asked), len(asked), 0)
    return int.from_bytes(asked[24:32], "little")


UNANSWERED_PROGRAM = """
import os, sys, time
while not os.path.exists("go"):
    time.sleep(0.01)
try:
    open("made", "w")
except OSError as error:
    print(error.errno)
    sys.exit(7)
"""


@pytest.mark.parametrize(("adopted", "had_begun"), [(True, True), (False, True), (True, False), (False, False)])
def test_ending_reports_the_death_of_keeper_and_witness(bench: Bench, adopted: bool, had_begun: bool) -> None:
    """If keeper and witness were killed, state, effects and notice say that calls of the command may have failed.

    This also holds if a new keeper adopted the task, or if the first keeper died before it wrote down any change.
    """
    begin(bench, "s-1")
    (bench.project / "slow.py").write_text(UNANSWERED_PROGRAM)
    task = bench.launch(f"{sys.executable} slow.py", "--session", "s-1")
    wait_until(lambda: bench.show(task)["effects"]["level"] == "observed", "the observer")
    bench.kill(task, "keeper", "witness")
    if not had_begun:
        os.truncate(bench.files(task).effects, 0)
    if adopted:
        # A fork of the keeper that takes a snapshot may keep the lock for a short time after the keeper's death.
        wait_until(lambda: bench.show(task)["effects"]["unobserved_since"] is not None, "the adopter's note")
        assert bench.show(task)["state"] == "running"
    command = bench.process(task)
    (bench.project / "go").touch()
    wait_until(lambda: not os.path.exists(f"/proc/{command}"), "the end of the command")
    bench.run("wait", task)
    shown = bench.show(task)
    assert shown["state"] in (("failed", "lost") if adopted else ("lost",))
    assert "may have failed" in shown["detail"]
    assert shown["effects"]["level"] == ("partial" if had_begun else "unknown")
    assert any("may have failed" in gap for gap in shown["effects"]["gaps"])
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert "may have failed" in notice["text"]
    assert "ended by itself" not in notice["text"]
