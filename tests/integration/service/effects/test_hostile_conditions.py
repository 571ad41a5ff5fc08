"""Effects in unusual repositories, with unusual files and with very many files.

Effects are correct or marked as unknown, and commands need bounded time and memory to report them.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outlive.linux.seccomp import is_known_machine
from tests.effects_steps import window_on
from tests.git_steps import ENVIRON, Worktree
from tests.session_steps import until
from tests.support import wait_until

if TYPE_CHECKING:
    from tests.support import Bench

pytestmark = pytest.mark.skipif(not is_known_machine(), reason="the calls of this machine are not known")
MANY = 100_000
MOST_KEEPER_KB = 200_000
MOST_READER_S = 10.0  # of CPU time, because other programs of the machine do not increase the CPU time of a process


@pytest.fixture
def tree(bench: Bench) -> Worktree:
    """Make the project a repository with two files."""
    bench.env.update({name: text for name, text in ENVIRON.items() if name.startswith("GIT_")})
    worktree = Worktree(bench.project)
    worktree.commit(**{"a.py": "a\n", "b.py": "b\n"})
    return worktree


def processor_s() -> float:
    """Return the CPU time of all ended children of this process, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def touched(bench: Bench, text: str, *options: str) -> Any:
    """Run a shell command as a task that must succeed, and return the task's effects."""
    task = bench.launch(text, *options)
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    return bench.json("effects", task)


def names(found: list[str], top: Path) -> list[str]:
    """Return the given paths relative to a directory."""
    return [path.removeprefix(f"{top}/") for path in found]


# --- strange repositories -------------------------------------------------------------------------


def test_gitignore_and_gitattributes_are_no_git_state(bench: Bench, tree: Worktree) -> None:
    """Files such as `.gitignore` and `.gitattributes` are listed as files, and not as git's own state."""
    tree.commit(**{".gitignore": "x\n"})
    found = touched(bench, "echo y >> .gitignore; echo '* text' > .gitattributes")
    assert names(found["changed"], tree.path) == [".gitignore"]
    assert names(found["created"], tree.path) == [".gitattributes"]
    assert (found["git"], found["outside"], found["level"]) == ([], [], "observed")


def test_repository_in_dev_shm_is_observed(bench: Bench) -> None:
    """Changes in a repository in /dev/shm are listed, but no other paths below /dev."""
    if not os.access("/dev/shm", os.W_OK):  # noqa: S108 - the test is about this directory
        pytest.skip("this machine has no /dev/shm")
    bench.env.update({name: text for name, text in ENVIRON.items() if name.startswith("GIT_")})
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        tree = Worktree(Path(name) / "repo")
        tree.commit(a="1\n", b="1\n")
        found = touched(
            bench, "git stash list; echo 2 > a; echo 1 > a; echo 2 > b; : > /dev/null", "--cwd", str(tree.path)
        )
    assert (found["changed"], found["outside"]) == ([f"{tree.path}/b"], [])
    assert [window["paths"] for window in found["windows"]] == [["a"], ["b"]]


def test_file_that_cannot_be_inspected_is_not_taken_for_absent(bench: Bench, tree: Worktree) -> None:
    """Files in a directory without permissions are listed neither as created nor as removed."""
    tree.commit(**{f"shut/{number}": "1\n" for number in range(9)})
    program = """
import os, time
def write(name):
    os.close(os.open(name, os.O_WRONLY))
for number in range(1, 9):
    write("shut/0")
    os.chmod("shut", 0)
    try:
        os.unlink(f"shut/{number}")
    except PermissionError:
        os.chmod("shut", 0o755)
    time.sleep(0.02)
    write(f"shut/{number}")
"""
    rightless = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
    task = bench.ok("run", "--", sys.executable, "-B", "-c", program, before=rightless)
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    found = bench.json("effects", task)
    assert (found["level"], found["created"], found["changed"], found["windows"]) == ("observed", [], [], [])


def test_linked_worktree_has_the_git_state_of_its_repository(bench: Bench, tree: Worktree) -> None:
    """In a linked worktree, changes of stash and branches are git state, and not files outside of the project."""
    tree.git("worktree", "add", "-q", "../linked")
    linked = tree.path.parent / "linked"
    (linked / "a.py").write_text("fixed\n")
    found = touched(
        bench, "git stash push -q; git stash pop -q; git branch more; git commit -q -a -m x", "--cwd", str(linked)
    )
    assert names(found["restored"], linked) == ["a.py"]
    assert {each["what"] for each in found["git"]} == {"stash", "index", "branch more", "branch linked"}
    assert (found["outside"], found["level"]) == ([], "observed")
    assert found["windows"][0]["scope"] == str(linked)


def test_git_directory_behind_a_symbolic_link_belongs_to_its_tree(bench: Bench, tree: Worktree) -> None:
    """If `.git` is a symbolic link, changes in its target are listed as git state of the task's repository."""
    (tree.path / ".git").rename(tree.path.parent / "kept")
    (tree.path / ".git").symlink_to("../kept")
    (tree.path / "a.py").write_text("fixed\n")
    found = touched(bench, "git stash push -q; git stash pop -q; git tag v1; git commit -q -a -m x; sleep 0.2")
    assert {each["what"] for each in found["git"]} == {"stash", "index", "tag v1", "branch main"}
    assert (found["outside"], found["moved"], found["level"]) == ([], None, "observed")


def test_packed_stash_is_reported_as_stash(bench: Bench, tree: Worktree) -> None:
    """After `git gc`, a change of the stash is still reported as such.

    It is found by the stash's log, the only file left.
    """
    for text in ("one", "two", "three"):
        (tree.path / "a.py").write_text(text + "\n")
        tree.git("stash", "push", "-q")
    assert "stash" not in {each["what"] for each in touched(bench, "git gc -q; sleep 0.2")["git"]}
    for what in ("drop -q stash@{1}", "pop -q", "drop -q"):
        found = touched(bench, f"git stash {what}; git gc -q; sleep 0.2")
        assert ("stash", f"git stash {what}") in {(each["what"], each["by"]) for each in found["git"]}
        assert (found["moved"], found["level"]) == (None, "observed")


def test_files_behind_a_new_link_are_not_listed_as_created(bench: Bench, tree: Worktree) -> None:
    """If a task creates a link, the effects list the link as created, but not the files in its target."""
    (tree.path / "build").mkdir()
    (tree.path / "build" / "x").write_text("built\n")
    (tree.path / "old").mkdir()
    (tree.path / "old" / "x").write_text("old\n")
    found = touched(bench, "rm -f dist/x; ln -s build dist; rm -r old; ln -s build old")
    assert names(found["created"], tree.path) == ["dist"]
    assert names(found["changed"], tree.path) == ["old", "old/x"]
    assert names(found["gone"], tree.path) == ["old/x"]


def test_head_of_another_worktree_is_reported_with_its_name(bench: Bench, tree: Worktree) -> None:
    """If the HEAD of another worktree moves, it is reported with the worktree's name.

    For a new worktree, the effects say only that it is new.
    """
    tree.git("worktree", "add", "-q", "-b", "side", "../linked")
    found = touched(bench, "git -C ../linked checkout -q --detach; git worktree add -q -b more ../more")
    told = {each["what"] for each in found["git"]}
    assert {"HEAD of worktree linked", "worktree more"} <= told
    assert not [what for what in told if what.endswith("of worktree more")]


def test_deepened_clone_is_reported(bench: Bench, tree: Worktree) -> None:
    """`git fetch --unshallow` is reported as a change of the git state `shallow`."""
    tree.commit(**{"a.py": "b\n"})
    tree.git("clone", "-q", "--depth", "1", f"file://{tree.path}", "../clone")
    found = touched(bench, "git fetch -q --unshallow", "--cwd", str(tree.path.parent / "clone"))
    assert "shallow" in {each["what"] for each in found["git"]}


def test_task_in_a_submodule_has_the_files_and_git_state_of_the_submodule(bench: Bench, tree: Worktree) -> None:
    """The effects of a task in a submodule list files and git state of the submodule.

    The git directory of a submodule is inside the outer repository.
    """
    inner = Worktree(tree.path.parent / "inner")
    inner.commit(c="c\n")
    tree.git("submodule", "add", "-q", str(inner.path), "module")
    tree.commit()
    found = touched(bench, "echo d > c; git commit -q -a -m d", "--cwd", str(tree.path / "module"))
    assert names(found["changed"], tree.path / "module") == ["c"]
    assert {"index", "branch main"} <= {each["what"] for each in found["git"]}
    assert (found["outside"], found["level"]) == ([], "observed")


def test_git_state_of_a_submodule_is_reported_with_its_name(bench: Bench, tree: Worktree) -> None:
    """HEAD, index, stash and branches of a submodule are reported with the name of the submodule."""
    inner = Worktree(tree.path.parent / "inner")
    inner.commit(c="c\n")
    tree.git("submodule", "add", "-q", str(inner.path), "libs/module")
    tree.commit()
    work = "git checkout -q -b side; echo d > c; git stash push -q; git stash pop -q; git commit -q -a -m d"
    found = touched(bench, f"cd libs/module; {work}")
    assert {each["what"] for each in found["git"]} == {
        f"{what} of submodule libs/module" for what in ("HEAD", "index", "stash", "branch side")
    }
    assert (found["outside"], found["level"]) == ([], "observed")


def test_task_in_a_bare_repository_has_no_windows(bench: Bench, tree: Worktree) -> None:
    """In a bare repository, changes are observed, and the effects are complete."""
    tree.git("clone", "-q", "--bare", ".", "../bare.git")
    bare = tree.path.parent / "bare.git"
    found = touched(bench, "git branch more; git gc -q", "--cwd", str(bare))
    assert (found["level"], found["windows"], found["gaps"]) == ("observed", [], [])


@pytest.mark.parametrize(
    "text",
    [
        "rm -rf .git; echo c > c",
        "rm -rf ../project; true",
        "mv ../project ../moved; echo c > c; mkdir d; mv c d",
        "mv .git ../kept; mv ../kept .git; echo x > .git/HEAD; rm .git/index; echo garbage > .git/index",
        "rm -rf .git; ln -s .git .git; echo c > c",
        "rm -rf .git; mkfifo .git; echo c > c",
    ],
)
def test_repository_that_its_task_destroys_does_not_break_the_command(bench: Bench, tree: Worktree, text: str) -> None:
    """A task that deletes, moves or corrupts its repository succeeds, and its effects can be read."""
    task = bench.launch(text, "--session", "s-1")
    done = bench.run("wait", task, "--no-ack", cwd=bench.root)
    assert done.returncode == 0, bench.ok("output", task, cwd=bench.root)
    found = bench.json("effects", task, cwd=bench.root)
    assert (found["level"], found["gaps"]) == ("observed", [])
    assert "deleted)" not in str(found)
    wrong = [path for path in (*found["changed"], *found["created"]) if not path.startswith(str(tree.path.parent))]
    assert wrong == []
    tree.path.mkdir(exist_ok=True)  # the next call needs the directory as its working directory
    assert [notice["task"]["id"] for notice in bench.json("inbox", "--session", "s-1")["notices"]] == [task]


@pytest.mark.parametrize("content", [b"", b"ref: refs/heads/\xff\n", b"\0" * 100, None])
def test_changes_in_a_corrupt_repository_are_listed(bench: Bench, tree: Worktree, content: bytes | None) -> None:
    """In a repository with an invalid HEAD or `.git` file, changed files are still listed."""
    if content is None:
        (tree.path / ".git").rename(tree.path.parent / "gone")
        (tree.path / ".git").write_bytes(b"gitdir: /nowhere/\xff\n")
    else:
        (tree.path / ".git" / "HEAD").write_bytes(content)
    found = touched(bench, "echo c >> a.py")
    assert (names(found["changed"], tree.path), found["level"]) == (["a.py"], "observed")


# --- strange files --------------------------------------------------------------------------------


def test_locale_without_utf8_is_a_gap(bench: Bench, tree: Worktree) -> None:
    """Without a UTF-8 locale, the effects are marked as incomplete.

    Outlive may have looked for a file under a wrong name.
    """
    other = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    program = "import os; [os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY) for name in (b'a', b'\\xc3\\xa8', b'b')]"
    task = bench.ok("run", "--cwd", str(tree.path), "--", sys.executable, "-c", program, env=other)
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    found = bench.json("effects", task)
    assert found["level"] == "partial"
    assert "the locale is not UTF-8: names that are not ASCII may be shown wrongly" in found["gaps"]
    assert {f"{tree.path}/a", f"{tree.path}/b"} <= set(found["created"]), "the other files are not listed"


def test_loops_of_symbolic_links_are_resolved_finitely(bench: Bench, tree: Worktree) -> None:
    """Writes, moves and removals through loops of symbolic links are listed correctly, and the observer ends."""
    found = touched(
        bench,
        "ln -s one two; ln -s two one; ln -s . here; ! echo x > one/x; ! echo x > one; echo y > here/here/here/y;"
        " mv one three; rm two",
    )
    assert sorted(names(found["created"], tree.path)) == ["here", "three", "y"]
    assert (found["changed"], found["outside"], found["level"]) == ([], [], "observed")


@pytest.mark.usefixtures("tree")
def test_file_of_two_gigabytes_is_not_read(bench: Bench) -> None:
    """Moves and changes of a file of 2 GB are found without reading it, and with little CPU time."""
    (bench.project / "huge").touch()
    os.truncate(bench.project / "huge", 2 << 30)
    began = processor_s()
    text = "mv huge away; mv away huge; truncate -s 2G new; truncate -s +1 huge; mv huge x; mv x huge"
    found = touched(bench, text)
    assert processor_s() - began < MOST_READER_S
    assert names(found["changed"], bench.project) == ["huge"]
    assert names(found["created"], bench.project) == ["new"]


@pytest.mark.usefixtures("tree")
def test_large_file_written_with_the_same_size_is_changed_with_a_gap(bench: Bench) -> None:
    """If a large file is written and keeps its size, it is listed as changed, and the effects say why.

    Outlive does not read a large file, so the content may be the same.
    """
    (bench.project / "huge").touch()
    os.truncate(bench.project / "huge", 5 << 20)
    found = touched(bench, "cp huge copy; cat copy > huge; rm copy")
    assert (found["level"], names(found["changed"], bench.project)) == ("partial", ["huge"])
    assert found["gaps"] == ["1 file too large to be compared: written, perhaps with the same content"]


@pytest.mark.usefixtures("tree")
def test_file_times_set_by_the_task_hide_no_change(bench: Bench) -> None:
    """Only a file with its old content counts as restored, whatever times the task has set.

    No duration of a change is negative.
    """
    text = (
        "touch -d 2200-01-01 a.py; echo x > a.py; touch -d 1960-01-01 a.py; echo a > a.py; touch -d 1999-01-01 a.py;"
        " echo y > b.py; touch -r a.py b.py"
    )
    found = touched(bench, text)
    assert (names(found["restored"], bench.project), names(found["changed"], bench.project)) == (["a.py"], ["b.py"])
    assert all(window["duration_s"] >= 0 for window in found["windows"])


CLOCK = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t which, struct timespec *found) {
    int answer = syscall(SYS_clock_gettime, which, found), file;
    char text[32] = {0};
    if (which == CLOCK_REALTIME && (file = open(getenv("JUMP"), O_RDONLY | O_CLOEXEC)) >= 0) {
        if (read(file, text, 31) > 0) found->tv_sec += atol(text);
        close(file);
    }
    return answer;
}
"""
"""A library to preload. It shifts the clock of a process by the number of seconds in a file."""


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no compiler")
@pytest.mark.parametrize("how", ["auto", "watch"])
@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_window_has_the_right_duration_when_the_clock_jumps(
    bench: Bench, tree: Worktree, how: str, seconds: int
) -> None:
    """If the clock was set back, the duration of a change that is not restored yet is unknown.

    When the file is restored, the duration is right.
    """
    (bench.root / "clock.c").write_text(CLOCK)
    library, jump = bench.root / "clock.so", bench.root / "jump"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, bench.root / "clock.c"], check=True)
    bench.env.update(LD_PRELOAD=str(library), JUMP=str(jump))
    tree.write("a.py", "fixed\n")
    text = f"{until(f'{bench.root}/on')}; git stash push -q; {until(f'{bench.root}/off')}; git stash pop -q"
    task = bench.launch(text, "--observe", how)
    if how == "watch":
        journal = Path(bench.files(task).effects)
        wait_until(lambda: "\twatch\t" in journal.read_text(), "the watch")
    (bench.root / "on").touch()
    window_on(bench, task, "a.py")
    jump.write_text(str(seconds))
    (window,) = bench.json("effects", task, "--open")["windows"]
    assert (window["duration_s"] is None) == (seconds < 0)
    assert ("an unknown time (the clock was set back)" in bench.ok("guard", "a.py")) == (seconds < 0)
    (bench.root / "off").touch()
    bench.run("wait", task)
    found = bench.json("effects", task)
    (window,) = found["windows"]
    assert 0 < window["duration_s"] < 60
    assert (names(found["restored"], bench.project), found["changed"]) == (["a.py"], [])


IO_URING = """
import ctypes, mmap, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
given = ctypes.create_string_buffer(120)
ring = libc.syscall(425, 4, given)
if ring < 0:
    sys.exit(77)
tail, array = struct.unpack_from("<I", given, 44)[0], struct.unpack_from("<I", given, 64)[0]
queue = mmap.mmap(ring, array + 16, offset=0)
entries = mmap.mmap(ring, 256, offset=0x10000000)
name = ctypes.create_string_buffer(b"made")
flags = os.O_CREAT | os.O_WRONLY
entries[:64] = struct.pack("<BBHiQQIIQ24x", 18, 0, 0, -100, 0, ctypes.addressof(name), 0o644, flags, 0)
queue[array:array + 4] = bytes(4)
queue[tail:tail + 4] = struct.pack("<I", 1)
assert libc.syscall(426, ring, 1, 1, 1, None, 0) == 1
assert os.path.exists("made")
"""
"""A program that creates a file by io_uring, without a system call that names the file."""


@pytest.mark.usefixtures("tree")
def test_file_created_by_io_uring_is_a_gap_and_found_by_comparing(bench: Bench) -> None:
    """If a task uses io_uring, the effects say that this use was not observed.

    The comparison finds the created file, and lists it as unattributed.
    """
    (bench.root / "program.py").write_text(IO_URING)
    task = bench.launch(f"sleep 0.5; {sys.executable} -B ../program.py")
    bench.run("wait", task)
    if bench.show(task)["exit_code"] == 77:
        pytest.skip("io_uring is not allowed here")
    assert bench.show(task)["exit_code"] == 0, bench.ok("output", task)
    wait_until(lambda: os.path.exists(bench.files(task).compared), "the comparison")
    found = bench.json("effects", task)
    assert (found["level"], found["gaps"]) == ("partial", ["it used io_uring, whose changes are not seen"])
    assert [(Path(each["path"]).name, each["how"]) for each in found["unattributed"]] == [("made", "appeared")]
    assert "a lower bound" in found["summary"]


# --- very many ------------------------------------------------------------------------------------


def test_effects_of_very_many_files_need_bounded_memory_time_and_text(bench: Bench, tree: Worktree) -> None:
    """For 100,000 created files, the keeper needs little memory, and commands need little CPU time.

    The output is short, because it has directories with numbers of files instead of single files.
    """
    program = f"""
import os
for number in range({MANY}):
    if number % 500 == 0:
        os.makedirs(directory := f"node_modules/p{{number // 500}}")
    os.close(os.open(f"{{directory}}/{{number}}", os.O_CREAT | os.O_WRONLY))
open("a.py", "w").close()
"""
    (tree.path / "program.py").write_text(program)
    task = bench.launch(f"{sys.executable} program.py; {until('go')}", "--session", "s-1")
    keeper = bench.keeper(task)
    for part in range(0, MANY // 500, 20):  # Count in steps, so that each step gets the full timeout.
        wait_until((tree.path / "node_modules" / f"p{part}").exists, "files")
    wait_until(lambda: (tree.path / "a.py").stat().st_size == 0, "all files")
    assert 0 < _peak_kb(keeper) < MOST_KEEPER_KB  # Measure now, because the keeper may exit when the task ends.
    (tree.path / "go").touch()
    assert bench.run("wait", task, "--no-ack").returncode == 0
    assert _peak_kb(keeper) < MOST_KEEPER_KB
    for words in (
        ("effects", task),
        ("show", task),
        ("show", task, "--json"),
        ("inbox", "--session", "s-1", "--peek", "--json"),
        ("hand-off", "--session", "s-1"),
    ):
        began = processor_s()
        assert len(bench.ok(*words)) < 10_000, words
        assert processor_s() - began < MOST_READER_S, words
    assert f"{MANY:,} below {tree.path}/node_modules/" in bench.ok("effects", task)
    shown = bench.show(task)["effects"]
    assert (shown["changed"], shown["created"]) == ([f"{tree.path}/a.py"], [])
    assert shown["created_below"] == {f"{tree.path}/node_modules/": MANY}
    assert f"{MANY:,} files created ({MANY:,} below project/node_modules/)" in shown["summary"]
    assert len(bench.json("effects", task)["created"]) == MANY


def _peak_kb(pid: int) -> int:
    """Return the peak memory of a process in kilobytes, or 0 if the process is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)


@pytest.mark.root
def test_full_disk_of_the_state_directory_is_a_gap(bench: Bench, tree: Worktree) -> None:
    """If the disk is full and changes cannot be recorded, the effects say so. Every change that is listed is true."""
    bench.state.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m,mode=700", "outlive-test", str(bench.state)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount here")
    try:
        program = "for n in range(3000):\n    open(f'{n:0100}', 'w').close()\n"
        (tree.path / "program.py").write_text(program)
        task = bench.launch(
            f"echo first > first; {until('go')}; {sys.executable} -B program.py; {until('on')}; echo x > last"
        )
        wait_until(lambda: bench.json("effects", task)["created"], "the first file")
        with open(bench.state / "hog", "wb", buffering=0) as hog:
            fill(hog.fileno())
        (tree.path / "go").touch()
        wait_until((tree.path / f"{2999:0100}").exists, "all files")
        wait_until(lambda: "full" in Path(bench.files(task).effects).read_text(), "the gap")
        (bench.state / "hog").unlink()
        (tree.path / "on").touch()
        assert bench.run("wait", task).returncode == 0
        found = bench.json("effects", task)
        assert (found["level"], found["gaps"]) == ("partial", ["the disk was full, so changes are missing"])
        created = set(names(found["created"], tree.path))
        assert {"first", "last"} <= created
        assert created <= {"first", "last", *(f"{number:0100}" for number in range(3000))}
    finally:
        bench.clean()
        subprocess.run(["umount", "-l", str(bench.state)], check=False)


def fill(fd: int) -> None:
    """Write until the disk has no room for a single byte."""
    for size in (1 << 20, 4096, 1):
        try:
            while os.write(fd, bytes(size)):
                pass
        except OSError:
            continue


def test_shortened_lists_count_what_they_leave_out(bench: Bench, tree: Worktree) -> None:
    """Long lists of branches, files, connections and declared effects are cut, and say how many are missing."""
    program = bench.root / "many.py"
    program.write_text(
        "import os, socket, sys\n"
        "for port in range(1, 46):\n    socket.socket(type=socket.SOCK_DGRAM).connect(('127.0.0.1', port))\n"
        "for _ in range(12):\n"
        "    for name in sys.argv[1:]:\n        os.rename(name, 'x')\n        os.rename('x', name)\n"
    )
    words = [f"git branch b{number};" for number in range(45)]
    more = tuple(f"{letter}.txt" for letter in "abcd")
    tree.commit(**dict.fromkeys(more, "text\n"))
    task = bench.launch(f"{' '.join(words)} {sys.executable} -B {program} {' '.join(more)}")
    bench.run("wait", task)
    shown, whole = bench.show(task)["effects"], bench.json("effects", task)
    for name in ("git", "windows", "remotes"):
        assert len(shown[name]) == 20
        assert shown[f"{name}_in_all"] == whole[f"{name}_in_all"] == len(whole[name]) >= 45
    text = bench.ok("effects", task)
    assert text.count("\n  and 5 more\n") == 1, "the list of branches does not count the branches that it leaves out"
    assert f"and {len(whole['windows']) - 40} more windows" in text
    if "(declared)" in text:
        assert text.rstrip().endswith("more")


@pytest.mark.usefixtures("tree")
def test_window_over_very_many_files_is_summarized(bench: Bench) -> None:
    """If a task has 2,000 files changed, `gate` and `hand-off` print a directory with their number.

    `guard` needs little CPU time.
    """
    directory = bench.project / "many"
    directory.mkdir()
    for number in range(2000):
        (directory / f"f{number}").write_text("x")
    task = bench.launch(f"rm -r many; touch removed; {until('go')}", "--session", "s-1")
    wait_until(lambda: bench.json("effects", task)["created"], "the removal")
    for words in (("gate", "--session", "s-1"), ("hand-off", "--session", "s-1")):
        answer = bench.json(*words)
        (window,) = answer["open_windows"]
        # Some paths are compared, and the others are only counted. The task's new file may be among those others.
        assert window["paths"] == ["many"]
        assert window["paths_below"] == {"many/": window["paths_in_all"] - 1}
        assert window["paths_in_all"] + window["paths_uncompared"] in (2001, 2002)
        assert len(str(answer)) < 10_000, words
    began = processor_s()
    assert bench.json("guard", "--command", "rm " + " ".join(f"other{number}" for number in range(1000)))["clear"]
    assert processor_s() - began < MOST_READER_S
    (bench.project / "go").touch()
    bench.run("wait", task)


def test_long_command_of_a_window_is_shortened(bench: Bench, tree: Worktree) -> None:
    """`show` prints only the beginning of a long command that changed files. `effects` prints more of the command."""
    words = " ".join(f"some/name/of/a/file/{number}" for number in range(200))
    text = f"for i in 1 2 3 4 5 6 7 8; do sh -c 'echo x > a.py; git checkout -q -- a.py' {words}; done"
    tree.commit(**{"a.py": "old\n"})
    task = bench.launch(text, "--description", "many words")
    bench.run("wait", task)
    windows = bench.show(task)["effects"]["windows"]
    assert len(windows) == 8
    assert {len(window["by"]) <= 200 for window in windows} == {True}
    assert len(bench.json("effects", task)["windows"][0]["by"]) > 1000


def test_journal_is_written_soon_while_the_command_is_busy(bench: Bench, tree: Worktree) -> None:
    """The keeper soon records each change, even if the command makes system calls without a pause."""
    program = """
import os, time
open("first", "w").close()
while not os.path.exists("go"):
    open("again", "w").close()
    print(".", end="", flush=True)
    time.sleep(0.01)
"""
    (tree.path / "program.py").write_text(program)
    task = bench.launch(f"{sys.executable} program.py")
    wait_until(lambda: f"{tree.path}/first" in bench.json("effects", task)["created"], "the first file")
    dots = bench.files(task).output
    assert os.path.getsize(dots) < 400
    (tree.path / "go").touch()
    bench.run("wait", task)
