"""Outlive compared with strace, which traces the same system calls.

Outlive and strace must see the same changed paths of an observed command. If a command can be traced while it is
observed, Outlive and strace record the same run, and every path is compared. But tracing slows a command down, and lets
its threads run only one after the other. So the same work is also observed without tracing, and then traced in a second
run. This comparison leaves out random names.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from outlive.linux.seccomp import is_known_machine
from outlive.observe.journal import read_journal
from tests.traced import STRACE, paths_of_trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Bench

pytestmark = pytest.mark.skipif(
    not is_known_machine() or shutil.which("strace") is None, reason="needs strace, and calls that are known"
)

_RANDOM = re.compile(
    r"tmp_|\.tmp|/cc[A-Za-z0-9]{6}|/st[A-Za-z0-9]{6}$|/sed[A-Za-z0-9]{6}$|\.lock$|/t[A-Za-z0-9]{6}$|index\.stash\.\d+|/\.s\d+\.sh\d+$"
)
_NOWHERE = ("/dev/", "/proc/")

GIT = """
git init -q . && echo a > a && mkdir d && echo b > d/b && git add . && git commit -q -m one &&
echo c >> a && git stash push -q && git stash pop -q && git commit -q -a -m two &&
git checkout -q -b side HEAD~1 && git mv d/b d/c && git commit -q -m three && git checkout -q - && git tag v1 &&
git branch -D -q side && git worktree add -q wt HEAD && git worktree remove wt && rm -rf d
"""
FILES = """
mkdir -p src/deep && for i in 1 2 3 4 5; do echo $i > src/deep/f$i; done && tar cf all.tar src && rm -rf src &&
tar xf all.tar && cp -r src copy && sed -i s/3/three/ copy/deep/f3 && ln -s copy link && ln copy/deep/f1 hard &&
mv copy/deep/f2 moved && find copy -name 'f4' -delete && dd if=/dev/zero of=zeros bs=1k count=4 status=none &&
install -m 644 moved installed && touch moved && : > emptied && truncate -s 9 emptied
"""
BUILD = """
printf 'int f(void){return 1;}' > f.c && printf 'int f(void);int main(void){return f()-1;}' > m.c &&
cc -c f.c && cc -c m.c && ar rc lib.a f.o && cc -o prog m.o lib.a && ./prog
"""
THREADS = f"""{sys.executable} -B -c '
import os, threading
def work(n):
    for i in range(40):
        name = f"t{{n}}-{{i}}"
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY)); os.rename(name, name + "r"); os.unlink(name + "r")
ts = [threading.Thread(target=work, args=(n,)) for n in range(64)]
[t.start() for t in ts]; [t.join() for t in ts]'
"""
RSYNC = """
mkdir -p src/deep && for i in 1 2 3 4; do echo $i > src/deep/f$i; done && ln -s deep/f1 src/link &&
rsync -a src/ copy/ && echo more >> src/deep/f2 && rm src/deep/f3 && rsync -a --checksum --delete src/ copy/ &&
rsync -a --inplace --backup --suffix=.old src/deep/f1 copy/deep/f4
"""
LINKS = """
mkdir one two && ln -s one at && echo > "$PWD/at/a" && rm at && ln -s two at && echo > "$PWD/at/b" &&
rm at && mkdir at && echo > "$PWD/at/c" && mv at away && ln -s one at && echo > "$PWD/at/d" &&
mv at else && ln -s two at && echo > "$PWD/at/e" && rm at && mkdir at && echo > "$PWD/at/f" &&
mv at old && mv else at && echo > "$PWD/at/g" && mv old else && rm at && mv else at && echo > "$PWD/at/h"
"""


def needs(*programs: str) -> None:
    """Skip the test if one of the programs is not installed."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")


def shell(text: str, *programs: str) -> Callable[[Path], str]:
    """Return a function that returns the text of this shell command.

    If a needed program is missing, it skips the test.
    """

    def prepare(_: Path) -> str:
        needs(*programs)
        return text

    return prepare


def pip_install(place: Path) -> str:
    """Make two versions of a wheel, and return a command that installs one and upgrades to the other."""
    for version in ("1.0", "2.0"):
        wheel, described = place / f"small-{version}-py3-none-any.whl", f"small-{version}.dist-info"
        content = {
            "small/__init__.py": f"version = {version!r}\n",
            "small/deep/module.py": "x = 1\n",
            f"{described}/METADATA": f"Metadata-Version: 2.1\nName: small\nVersion: {version}\n",
            f"{described}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{described}/entry_points.txt": "[console_scripts]\nsmall = small:version\n",
        }
        content[f"{described}/RECORD"] = "".join(f"{name},,\n" for name in (*content, f"{described}/RECORD"))
        with zipfile.ZipFile(wheel, "w") as archive:
            for name, text in content.items():
                archive.writestr(name, text)
    install = f"{sys.executable} -m pip install -q --disable-pip-version-check --no-index --no-cache-dir --target there"
    return f"{install} ./small-1.0*.whl && {install} --upgrade ./small-2.0*.whl"


def npm_ci(place: Path) -> str:
    """Pack two packages with programs, and return a command that installs them twice."""
    needs("npm")
    for name in ("one", "other"):
        package = place / name
        (package / "lib").mkdir(parents=True)
        (package / "lib" / "index.js").write_text("module.exports = 1\n")
        (package / "cli.js").write_text("#!/usr/bin/env node\n")
        described = {"name": name, "version": "1.0.0", "main": "lib/index.js", "bin": {name: "cli.js"}}
        (package / "package.json").write_text(json.dumps(described))
        _npm(place, "pack", f"./{name}")
    described = {
        "name": "whole",
        "version": "1.0.0",
        "dependencies": {name: f"file:{name}-1.0.0.tgz" for name in ("one", "other")},
    }
    (place / "package.json").write_text(json.dumps(described))
    _npm(place, "install", "--package-lock-only")
    return "npm ci --offline --no-audit --no-fund --cache .npm && npm ci --offline --no-audit --no-fund --cache .npm"


def _npm(place: Path, *words: str) -> None:
    given = ["npm", *words, "--silent", "--offline", "--no-audit", "--no-fund", "--cache", str(place / ".npm")]
    subprocess.run(given, cwd=place, env={**os.environ, "HOME": str(place)}, check=True, capture_output=True)


def go_program(place: Path) -> str:
    """Write a hundred files, and return a command that rewrites them in Go.

    The Go program is static. It uses several threads and no C library.
    """
    shfmt = Path(sys.executable).parent / "shfmt"
    if not shfmt.exists():
        pytest.skip("needs shfmt, a Go program, beside this Python")
    assert b".interp" not in shfmt.read_bytes()
    for number in range(100):
        (place / f"d{number % 7}").mkdir(exist_ok=True)
        (place / f"d{number % 7}" / f"s{number}.sh").write_text("if true;then\n echo x;fi\n")
    return f"{shfmt} -w . && ! {shfmt} -l . | grep ."


WANDERING = """
import os, threading
top = os.open(".", os.O_RDONLY)
for name in ("d0", "d1", "d2"):
    os.mkdir(name)
go, done = threading.Semaphore(0), threading.Semaphore(0)
def write(name):
    os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
def other():
    for turn in range(300):
        go.acquire()
        write(f"other{turn}")
        done.release()
threading.Thread(target=other).start()
steps = (lambda: os.fchdir(top), lambda: os.chdir("d1"), lambda: os.chdir("../d2"), lambda: os.chdir("."))
steps += (lambda: (os.fchdir(top), os.rename("d0", "x"), os.rename("x", "d0"), os.chdir("d0")),)
for turn in range(300):
    steps[turn % 5]()
    write(f"own{turn}")
    go.release()
    done.acquire()
"""

TURNING = """
import os, time
def write(name):
    os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
os.mkdir("one"), os.mkdir("two")
for turn in range(60):
    if turn % 2:
        os.symlink("one", "ready")
    time.sleep(0.01)
    os.mkdir("at"), write(f"at/a{turn}")
    if turn % 2:
        os.rename("at", f"was{turn}"), os.rename("ready", "at")
    else:
        os.unlink(f"at/a{turn}"), os.rmdir("at"), os.symlink("one", "at")
    write(f"at/b{turn}")
    os.unlink("at"), os.symlink("two", "at"), write(f"at/c{turn}"), os.unlink("at")
"""

LINKING = """
import os, time
def write(name):
    os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
os.mkdir("one"), os.symlink("one", "link")
for turn in range(10):
    time.sleep(0.01)
    os.mkdir("at"), write(f"at/a{turn}"), os.unlink(f"at/a{turn}"), os.rmdir("at")
    os.link("link", "at", follow_symlinks=False), write(f"at/b{turn}"), os.unlink("at")
"""

REPLACING = """
import ctypes, os, sys, threading, time
def write(name):
    os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
def leave():
    ctypes.CDLL(None).unshare(0x200)  # from here on it goes where it wants without the others
    os.chdir("aside")
    time.sleep(0.02)
    go.release(), done.acquire()
    os.execv("/bin/mkdir", ["mkdir", "made"])
os.mkdir("aside")
go, done = threading.Semaphore(0), threading.Semaphore(0)
threading.Thread(target=leave).start()
go.acquire(), write("before"), done.release(), time.sleep(9)
"""

ENTERING = """
import ctypes, os, time
def write(name):
    os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
mounts, network = (os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in ("mnt", "net"))
enter = ctypes.CDLL(None).setns
time.sleep(0.02)
write("here"), enter(network, 0x40000000), write("here too")
assert enter(mounts, KIND) == 0 and os.getcwd() == "/"
write(os.environ["PLACE"][1:] + "/there")
"""

ROOTED = """
import ctypes, os
call = ctypes.CDLL(None).syscall
os.mkdir("root"), os.mkdir("root/in")
os.symlink("/in", "root/link"), os.symlink("/in/b", "root/dangling"), os.symlink("../../../c", "root/in/up")
root = os.open("root", os.O_RDONLY)
how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o600, 16)
for name in (b"/a", b"../../d", b"link/e", b"dangling", b"in/up", b"in/plain", b"/missing/../f"):
    call(437, root, name, how, ctypes.c_size_t(24))
"""

MAKING = """
import ctypes, mmap, os, sys, time
page = mmap.mmap(-1, 2 * mmap.PAGESIZE)
at = ctypes.addressof(ctypes.c_char.from_buffer(page))
put = ctypes.CDLL(None).openat
put.argtypes = ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_int
where = -100 if sys.argv[1] == "here" else os.open(".", os.O_RDONLY)
def make(name, before_the_end=3000):
    start = mmap.PAGESIZE - before_the_end
    page[start : start + len(name) + 1] = name + bytes(1)
    put(where, at + start, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
os.symlink("nowhere", "dangling"), os.symlink("new", "to-new"), time.sleep(0.02)
os.mkdir("new"), os.mkdir("new/sub"), os.mkdir("gone"), os.rmdir("gone")
for turn in range(3):
    for top in (b"", b"old/", b"new/", b"new/sub/", b"to-new/", b"gone/", b"./new/", b"new//", b"new/../new/"):
        for name in (b"a", b"b", b"a", b"c\\n\\t", b"d\\xff", b"", b".", b"..", b"e/", b"f" * 250, b"g" * 300):
            make(top + b"%d" % turn + name if name.strip(b"./") else top + name)
        make(top + b"%d-over-the-edge" % turn, 5), make(top + b"there"), make(top + b"dangling")
        put(where, 2**64 - 256, os.O_CREAT | os.O_EXCL, 0)  # no program's memory is there
    os.unlink("new/0a") if turn == 1 else None
make(os.fsencode(os.getcwd()) + b"/absolute"), make(b"x" * 5000)
make(b"../outside"), make(b"beside")
where = os.open("old", os.O_RDONLY)
make(b"below")
"""

WORK = {
    "git": shell(GIT, "git"),
    "files": shell(FILES),
    "build": shell(BUILD, "cc"),
    "threads": shell(THREADS),
    "rsync": shell(RSYNC, "rsync"),
    "pip": pip_install,
    "npm": npm_ci,
    "go": go_program,
}


@pytest.fixture
def place(bench: Bench) -> Path:
    """Make the directory for the work, in an environment in which git gives repeatable results."""
    bench.env.update(
        GIT_AUTHOR_DATE="2026-01-01T00:00:00Z", GIT_COMMITTER_DATE="2026-01-01T00:00:00Z", HOME=str(bench.root),
        **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "t"),
        **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "t@example.org"),
    )  # fmt: skip
    (bench.root / "place").mkdir()
    return bench.root / "place"


@pytest.mark.parametrize("name", WORK)
def test_observed_paths_equal_the_paths_of_a_trace(bench: Bench, place: Path, name: str) -> None:
    """If a command is observed and traced at once, observer and strace record the same path for each change."""
    work, trace = WORK[name](place), bench.root / "trace"
    task = bench.ok("run", "--cwd", str(place), "--", *STRACE, "-o", str(trace), "/bin/sh", "-c", work)
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    seen = _of_journal(bench.files(task).effects) - {str(trace)}
    truth = {path for path in paths_of_trace(trace, str(place)) if not path.startswith(_NOWHERE)}
    assert len(truth) > 5
    assert truth - seen == set()
    assert seen - truth == set()
    assert bench.json("effects", task)["level"] == "observed"


@pytest.mark.parametrize("name", ["git", "files", "build", "threads", "go"])
def test_observed_paths_equal_the_paths_of_a_second_traced_run(bench: Bench, place: Path, name: str) -> None:
    """If work is observed in one run and traced by strace in another, both record the same changed paths."""
    task = bench.launch(WORK[name](place), "--cwd", str(place))
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    seen = _stable(_of_journal(bench.files(task).effects), str(place))
    shutil.rmtree(place)
    place.mkdir()
    work, trace = WORK[name](place), bench.root / "trace"
    subprocess.run(
        [*STRACE, "-o", str(trace), "/bin/sh", "-c", work],
        cwd=place, env={**bench.env, "OUTLIVE_TASK": task}, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    truth = _stable(paths_of_trace(trace, str(place)), str(place))
    assert len(truth) > 5
    assert truth - seen == set()
    assert seen - truth == set()


def test_relative_path_begins_at_the_working_directory_of_that_moment(bench: Bench, place: Path) -> None:
    """A relative path is resolved from the working directory at the time of the call.

    One thread changes the working directory that all threads share, while another thread writes.
    """
    task = bench.ok("run", "--cwd", str(place), "--", sys.executable, "-B", "-c", WANDERING)
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    where = ["", "d1/", "d2/", "d2/", "d0/"]
    assert _written(bench, task, place) == [
        f"{where[turn % 5]}{who}{turn}" for turn in range(5 * 60) for who in ("own", "other")
    ]


def test_link_that_one_process_replaces_quickly_is_resolved_as_at_the_time(bench: Bench, place: Path) -> None:
    """A path through a link is resolved through the link as it was at the time of the call.

    The link changes faster than the observer's cache expires.
    """
    task = bench.ok("run", "--cwd", str(place), "--", sys.executable, "-B", "-c", TURNING)
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    assert _written(bench, task, place) == [
        name for turn in range(60) for name in (f"at/a{turn}", f"one/b{turn}", f"two/c{turn}")
    ]


@pytest.mark.parametrize("what", ["a repository", "a directory", "a temporary one"])
def test_new_files_are_reported_alike_by_path_and_by_descriptor(
    bench: Bench, tmp_path: Path, lasting: Path, what: str
) -> None:
    """A new file is recorded in the same way if it is named by a path or relative to a descriptor.

    The observer uses a cache only for paths.
    """
    place, told = (lasting if what == "a directory" else tmp_path) / "above" / "place", []
    for where in ("here", "below"):
        (place / "old").mkdir(parents=True)
        (place / "old" / "there").write_text("there\n")
        if what == "a repository":
            subprocess.run(["git", "init", "-q", place], check=True)
        task = bench.ok("run", "--cwd", str(place), "--", sys.executable, "-B", "-c", MAKING, where)
        assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
        lines = [fields for fields in read_journal(bench.files(task).effects) if fields[1] == "write"]
        told.append([(state[:1], path) for _, _, _, state, path in lines])
        assert [path for _, path in told[-1][-2:]] == [f"{place}/beside", f"{place}/old/below"]
        shutil.rmtree(place.parent)
    assert len(told[0]) > 300
    assert told[0] == told[1]


def test_program_that_a_thread_executes_has_the_directory_of_the_thread(bench: Bench, place: Path) -> None:
    """If a thread executes a program, the program's paths begin at the directory of this thread.

    The thread takes over the process id with the exec.
    """
    task = bench.ok("run", "--cwd", str(place), "--", sys.executable, "-B", "-c", REPLACING)
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    lines = list(read_journal(bench.files(task).effects))
    ((process, made),) = [(thread, fields[1]) for _, operation, thread, *fields in lines if operation == "mkdir"][1:]
    assert made == f"{place}/aside/made"
    told = [fields[1] for _, operation, thread, *fields in lines if operation in ("exec", "fork") and thread == process]
    assert told[-1] == "mkdir made"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to be root")
@pytest.mark.parametrize("kind", ["0x20000", "0"])
def test_process_that_enters_a_mount_namespace_is_at_its_root(bench: Bench, place: Path, kind: str) -> None:
    """After a process has entered a mount namespace, its relative paths begin at the root of the namespace.

    The effects say that they are incomplete, because paths may have another meaning in the namespace.
    """
    bench.env["PLACE"] = str(place)
    program = ENTERING.replace("KIND", kind)
    task = bench.ok("run", "--cwd", str(place), "--", sys.executable, "-B", "-c", program)
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    assert _written(bench, task, place) == ["here", "here too", "there"]
    assert bench.json("effects", task)["gaps"] == ["it changed where paths lead (setns)"]


def test_resolve_in_root_keeps_a_path_below_its_root(bench: Bench, place: Path) -> None:
    """With RESOLVE_IN_ROOT, absolute paths and links are resolved below the directory that the call gives."""
    task = bench.ok("run", "--cwd", str(place), "--", sys.executable, "-B", "-c", ROOTED)
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    inside = ["a", "d", "in/e", "in/b", "c", "in/plain"]
    assert _written(bench, task, place) == [f"root/{name}" for name in (*inside, "f")]
    assert all((place / "root" / name).is_file() for name in inside)
    assert bench.json("effects", task)["outside"] == []


def test_hard_link_to_a_symbolic_link_is_resolved_like_the_link(bench: Bench, place: Path) -> None:
    """If a hard link to a symbolic link replaces a directory, paths follow it to the target of the symbolic link."""
    task = bench.ok("run", "--cwd", str(place), "--", sys.executable, "-B", "-c", LINKING)
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    assert _written(bench, task, place) == [name for turn in range(10) for name in (f"at/a{turn}", f"one/b{turn}")]


@pytest.mark.parametrize("what", ["a repository", "any other directory"])
def test_link_is_resolved_as_at_the_time_of_the_write(bench: Bench, place: Path, what: str) -> None:
    """If a name is now a link and now a directory, each recorded path names the file that was really written."""
    task = bench.launch(("git init -q . &&" if what == "a repository" else "") + LINKS, "--cwd", str(place))
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    assert _written(bench, task, place) == ["one/a", "two/b", "at/c", "one/d", "two/e", "at/f", "one/g", "at/h"]


def _written(bench: Bench, task: str, place: Path) -> list[str]:
    """Return the files below `place` that a task wrote, in the order of the writes. Git's own files are left out."""
    paths = (fields[4] for fields in read_journal(bench.files(task).effects) if fields[1] == "write")
    return [path.removeprefix(f"{place}/") for path in paths if path.startswith(f"{place}/") and "/.git/" not in path]


def _stable(found: set[str], place: str) -> set[str]:
    """Return the paths below `place`, without paths that have random names."""
    inside = {path.removeprefix(place) for path in found if path.startswith(place + "/")}
    return {path for path in inside if not _RANDOM.search(path)}


def _of_journal(path: str) -> set[str]:
    found = set()
    for _, operation, _, *fields in read_journal(path):
        if operation in ("write", "rename", "remove", "mkdir", "make"):
            found.update(fields[1::2])
    return found
