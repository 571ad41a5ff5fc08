"""Never break the command: sandboxes around it, filters and tracers inside it, users without rights."""

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
from outlive.bundle.processes import KEEPER_NAME
from outlive.bundle.seccomp import is_known_machine
from tests import confined
from tests.git_steps import ENVIRON, Worktree
from tests.session_steps import until
from tests.support import is_alive, kill, open_files, processes_named, wait_until

if TYPE_CHECKING:
    from tests.outsider import Outsider
    from tests.support import Bench

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of calls are those of x86-64")
SCHED_GETATTR, SHORT_TURN_NS = 315, 100_000
CANNOT = "system calls cannot be observed here, or are observed by somebody else"
TESTS = str(Path(confined.__file__).parent)
WORK = "mkdir d && echo x > d/x && mv d/x d/y && rm -r d && echo made > made && cat made"
# What has a filter, a tracer, threads and signals of its own. Prints what went wrong, or `fine`.
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


# A file system of its own, with nothing in it; whoever looks for a name there is written down first.
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


# A guard that is asked about every open in this directory, and writes down each before it allows it.
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


# As if no process was left for some threads, and only for these.
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
    """What becomes of a task that is launched from a sandbox which forbids some calls."""
    script = [sys.executable, f"{TESTS}/confined.py", ",".join(map(str, forbidden))]
    done = bench.run("run", "--wait", "20s", "--json", WORK, before=script)
    document = json.loads(done.stdout)
    assert (document["state"], document["output"]["tail"]) == ("succeeded", "made\n"), document
    return document["effects"]


# --- sandboxes around it --------------------------------------------------------------------------


def test_where_it_cannot_work_it_steps_down_and_says_so(bench: Bench) -> None:
    """A sandbox without filters: nobody looks, the command runs, and who is not in the sandbox is observed."""
    for _ in range(2):  # tried, and remembered
        assert confine(bench, confined.SECCOMP)["why_unseen"] == CANNOT
    task = bench.launch(WORK)
    bench.run("wait", task)
    assert bench.json("effects", task)["level"] == "observed"
    assert confine(bench, confined.SECCOMP)["level"] == "unknown"


def test_a_sandbox_that_keeps_descriptors_apart_is_observed_all_the_same(bench: Bench) -> None:
    """As Docker's does: also after it was seen to work elsewhere, where nobody forbids it."""
    Worktree(bench.project)
    for _ in range(2):
        found = confine(bench, confined.PIDFD_GETFD)
        assert (found["level"], found["created"]) == ("observed", [f"{bench.project}/made"])
        (bench.project / "made").unlink()
        task = bench.launch("true")
        bench.run("wait", task)
        assert bench.json("effects", task)["level"] == "observed"


@pytest.mark.parametrize("forbidden", [confined.MKNOD, confined.OPENAT2], ids=["nothing of ours", "openat2"])
def test_a_path_means_what_it_means_to_the_task(bench: Bench, forbidden: int) -> None:
    """Through links, up and down, from here and from below; also where the kernel may not be asked about links."""
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


def test_in_such_a_sandbox_a_dead_keeper_breaks_nothing_either(bench: Bench) -> None:
    """The witness has its own copy, however it came by it."""
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


def test_what_died_with_the_keeper_before_it_was_written_down_was_not_observed(bench: Bench) -> None:
    """Lines are gathered for a tenth of a second: the record says from when on they are missing."""
    Worktree(bench.project).write("a", "0")
    task = bench.ok("run", f"{until('go')}; {sys.executable} -B -c '{KILLING}'")
    (bench.project / "keeper").write_text(str(bench.keeper(task)))
    (bench.project / "go").touch()
    assert bench.run("wait", task, "--timeout", "20s").returncode == 0
    found = bench.json("effects", task)
    written = float(bench.ok("output", task))
    assert f"{bench.project}/b" not in found["created"]
    assert datetime.fromisoformat(found["unobserved_since"]).timestamp() <= written


def test_what_was_put_back_when_nobody_looked_any_more_was_away_until_then(bench: Bench) -> None:
    """Not only until the last call that was seen; by writing, and by its name."""
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


def test_a_limit_of_time_is_the_command_s_and_not_that_of_who_looks(bench: Bench) -> None:
    """It would kill keeper and witness; who insists is observed. One that only warns (SIGXCPU) kills neither."""
    limited = ["sh", "-c", 'ulimit "$0" 1; exec "$@"']
    for how, level in (("-t", "unknown"), ("-St", "observed")):
        done = bench.run("run", "--wait", "20s", "--json", WORK, before=[*limited, how])
        found = json.loads(done.stdout)
        assert (found["state"], found["effects"]["level"]) == ("succeeded", level), found
        assert ("CPU time is limited" in (found["effects"]["why_unseen"] or "")) == (how == "-t")
        (bench.project / "made").unlink()
    done = bench.run("run", "--wait", "20s", "--json", "--observe", "syscalls", WORK, before=[*limited, "-t"])
    assert json.loads(done.stdout)["effects"]["level"] == "observed"


def test_few_descriptors_are_left_to_the_keeper_however_many_processes_ask(bench: Bench) -> None:
    """Each one's memory is kept open for a moment; the keeper needs some for itself, and would die without."""
    text = "for each in $(seq 300); do (: > f$each); done"
    for _ in range(3):
        done = bench.run("run", "--wait", "20s", "--json", text, before=["sh", "-c", 'ulimit -n 80; exec "$@"', "sh"])
        effects = json.loads(done.stdout)["effects"]
        assert (effects["level"], effects["gaps"]) == ("observed", []), effects["summary"]


def test_a_keeper_lives_on_when_a_limit_only_warns(bench: Bench) -> None:
    """The command dies of it, if it does not mind; the keeper tells so."""
    task = bench.launch(f"trap '' XCPU; {until('go')}")
    kill(bench.keeper(task), signal.SIGXCPU)
    (bench.project / "go").touch()
    assert bench.run("wait", task).returncode == 0
    assert bench.show(task)["effects"]["unobserved_since"] is None


# --- filters and tracers inside it ----------------------------------------------------------------


def test_filters_threads_and_signals_of_its_own(bench: Bench) -> None:
    """Everything works as it would, and every file that is left is seen."""
    Worktree(bench.project)
    (bench.project / "busy.py").write_text(BUSY)
    task = bench.launch(f"{sys.executable} -B busy.py")
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    assert bench.ok("output", task) == "fine"
    found = bench.json("effects", task)
    assert {Path(path).name for path in found["created"]} == {"child", "spawned", "forked", "filtered"}
    assert found["level"] == "observed"


def test_a_listener_of_its_own_is_refused_and_it_goes_on(bench: Bench) -> None:
    """The kernel has one for a process; whoever asks for a second is told so, and is not killed."""
    Worktree(bench.project)
    program = "from outlive.bundle.seccomp import install; print(install(keep_privileges=True)); open('after', 'w')"
    task = bench.launch(f'{sys.executable} -B -c "{program}"')
    assert bench.run("wait", task).returncode == 0
    assert bench.ok("output", task) == "None"
    found = bench.json("effects", task)
    assert (found["created"], "was refused to be told" in found["gaps"][0]) == ([f"{bench.project}/after"], True)


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
@pytest.mark.root
def test_who_serves_a_file_system_does_not_wait_for_us_while_we_wait_for_it(bench: Bench) -> None:
    """A look into it would be answered by the task, which asks us first whether it may write down that we look."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("nobody can serve a file system here")
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
def test_who_decides_about_opens_does_not_wait_for_us_while_we_wait_for_it(bench: Bench) -> None:
    """A scanner of files is asked about our look as well, and asks us whether it may write that down."""
    Worktree(bench.project).commit(**{"a.py": "a"})
    task = bench.ok("run", "--", sys.executable, "-B", "-c", GUARDING)
    bench.run("wait", task, "--timeout", "10s")
    shown = bench.show(task)
    if shown["state"] == "running":
        bench.run("cancel", task)
    if "AssertionError" in shown["output"]["tail"]:
        pytest.skip("nobody can decide about opens here")
    assert (shown["state"], shown["output"]["tail"]) == ("succeeded", "guarded\n"), shown
    assert "it decides itself who may open files (fanotify)" in shown["effects"]["summary"]


def test_a_tracer_inside_sees_what_it_should(bench: Bench) -> None:
    """Each call once and with its own result, though both look at it."""
    Worktree(bench.project)
    task = bench.launch(f"strace -f -o trace -e trace=mkdir,rename,renameat2 sh -c '{WORK}'; grep -c ' = 0$' trace")
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    assert bench.ok("output", task).splitlines() == ["made", "2"]


def test_a_task_in_a_task_says_what_it_is(bench: Bench) -> None:
    """It cannot be observed a second time; it is watched if there is time, else compared, and the outer one saw it."""
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


def test_a_stop_and_a_go_on_reach_a_call_that_is_asked_about(bench: Bench) -> None:
    """Stopped in the middle of its calls and continued, it has missed none."""
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
    """A directory of the user without rights."""
    place = outsider.root / "state" / "mine"
    place.mkdir()
    os.chown(place, 65534, 65534)
    return place


@pytest.mark.root
@pytest.mark.skipif(not is_known_machine() or shutil.which("strace") is None, reason="needs strace")
def test_without_rights_everything_works_as_well(outsider: Outsider, mine: Path) -> None:
    """Filters, tracers, threads, signals, forks: unprivileged, and observed."""
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
    """The process id of a task's keeper or witness."""
    (bundle,) = (outsider.root / "state").glob(f"*/tasks/{task}")
    files = AttemptFiles(str(bundle), 1)
    slot = wait_until(lambda: files.read_slot("process"), "the process record")
    keepers = [each for each in processes_named(KEEPER_NAME) if files.control in open_files(each)]
    return int(slot["witness"]) if who == "witness" else keepers[0]


DEADLY = "for i in $(seq 60); do mkdir d$i && echo x > d$i/x && mv d$i/x d$i/y && rm -r d$i || exit 9; done; echo done"


@pytest.mark.root
@pytest.mark.parametrize("who", ["keeper", "witness"])
def test_without_rights_the_death_of_either_observer_breaks_nothing(outsider: Outsider, mine: Path, who: str) -> None:
    """Ten times each, at random moments: the command goes on, and the record says from when on nobody looked."""
    chance, unobserved = random.Random(who), 0
    for _ in range(10):
        done = outsider.call("run", "--json", "--observe", "syscalls", "--cwd", str(mine), DEADLY)
        task = json.loads(done.stdout)["id"]
        pid = observer_of(outsider, task, who)
        time.sleep(chance.random() * 0.3)
        if is_alive(pid):
            kill(pid)
        outsider.call("wait", task, "--timeout", "30s")
        shown = json.loads(outsider.call("show", task, "--json").stdout)
        assert (shown["state"], shown["exit_code"], shown["output"]["tail"]) == ("succeeded", 0, "done\n"), shown
        unobserved += shown["effects"]["unobserved_since"] is not None
    assert (unobserved > 0) == (who == "keeper")


@pytest.mark.root
def test_a_program_that_lost_its_privileges_is_named_with_the_way_to_run_it_again(
    outsider: Outsider, mine: Path
) -> None:
    """In the sentence that every ending is told with; and done that way, it has them."""
    (outsider.root / "setpriv").rename(outsider.root / "gainer")
    hidden = f"x={outsider.root}/gai; $x''ner --reuid=0 id -u || true"
    done = outsider.call("run", "--wait", "30s", "--json", "--cwd", str(mine), hidden)
    effects = json.loads(done.stdout)["effects"]
    assert "gainer ran without its privileges; --observe compare keeps them" in effects["summary"]
    done = outsider.call("run", "--wait", "30s", "--json", "--observe", "compare", "--cwd", str(mine), hidden)
    assert json.loads(done.stdout)["output"]["tail"] == "0\n"
    done = outsider.call("run", "--wait", "30s", "--json", "--cwd", str(mine), f"{hidden}; : gainer")
    found = json.loads(done.stdout)
    assert (found["output"]["tail"], "privileges" in found["effects"]["why_unseen"]) == ("0\n", True)


@pytest.mark.root
def test_a_command_that_met_one_keeps_its_privileges_the_next_time(outsider: Outsider, mine: Path) -> None:
    """Also if nothing in its text tells that it runs one, as with make. Others are observed as ever."""
    (outsider.root / "setpriv").rename(outsider.root / "gainer")
    (mine / "sub").mkdir()
    hidden = f"x={outsider.root}/gai; $x''ner --reuid=0 id -u || true"
    found = [run_in(outsider, mine, text) for text in (hidden, hidden, "ls sub/", f"{hidden} #")]
    assert [each["output"]["tail"] == "0\n" for each in found] == [False, True, False, False]
    assert [each["effects"]["level"] for each in found[2:]] == ["observed", "partial"]


@pytest.mark.parametrize(
    "refused", [("_observe",), ("_stand_in",), ("_observe", "_stand_in")], ids=["keeper", "witness", "both"]
)
def test_where_no_thread_can_be_made_it_steps_down(bench: Bench, refused: tuple[str, ...]) -> None:
    """As with few processes left (ulimit -u): nobody is filtered whom nobody would answer."""
    Worktree(bench.project)
    (bench.project / "sitecustomize.py").write_text(NO_THREADS.format(refused=refused))
    found = bench.json("run", "--wait", "20s", WORK, env={"PYTHONPATH": str(bench.project)})
    assert (found["state"], found["output"]["tail"]) == ("succeeded", "made\n"), found
    assert found["effects"]["level"] in ("watched", "compared")
    assert ("ulimit -u" if "_observe" in refused else CANNOT) in found["effects"]["why_unseen"]


def run_in(outsider: Outsider, directory: Path, text: str) -> Any:
    """What becomes of a task of the user without rights."""
    return json.loads(outsider.call("run", "--wait", "30s", "--json", "--cwd", str(directory), text).stdout)


@pytest.mark.skipif(_release() < (6, 12), reason="this kernel does not let anybody choose the length of its turns")
def test_whoever_answers_takes_short_turns(bench: Bench) -> None:
    """The command waits for every answer: its observer should have a processor soon, and the keeper as ever."""
    task = bench.launch(f"echo x > x; {until('go')}")
    threads = Path(f"/proc/{bench.keeper(task)}/task")
    wait_until(lambda: SHORT_TURN_NS in {_turn_of(int(each.name)) for each in threads.iterdir()}, "short turns")
    assert _turn_of(bench.keeper(task)) != SHORT_TURN_NS
    (bench.project / "go").touch()
    bench.run("wait", task)


def _turn_of(thread: int) -> int:
    """How long a thread wants to run at once, in nanoseconds, as the kernel knows it."""
    asked = bytearray(48)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(SCHED_GETATTR, thread, (ctypes.c_char * len(asked)).from_buffer(asked), len(asked), 0)
    return int.from_bytes(asked[24:32], "little")
