"""What a task touched, in a bad world: correct or said to be unknown, in bounded time and memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outlive.bundle.seccomp import is_known_machine
from tests.effects_steps import window_on
from tests.git_steps import ENVIRON, Worktree
from tests.session_steps import until
from tests.support import wait_until

if TYPE_CHECKING:
    from tests.support import Bench

pytestmark = pytest.mark.skipif(not is_known_machine(), reason="the calls of this machine are not known")
MANY = 100_000
MOST_KEEPER_KB = 200_000
MOST_READER_S = 20.0  # it takes less than one; a machine may be busy


@pytest.fixture
def tree(bench: Bench) -> Worktree:
    """The project as a repository with two files."""
    bench.env.update({name: text for name, text in ENVIRON.items() if name.startswith("GIT_")})
    worktree = Worktree(bench.project)
    worktree.commit(**{"a.py": "a\n", "b.py": "b\n"})
    return worktree


def touched(bench: Bench, text: str, *options: str) -> Any:
    """What a line of shell, which must succeed, is seen to touch."""
    task = bench.launch(text, *options)
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    return bench.json("effects", task)


def names(found: list[str], top: Path) -> list[str]:
    """Paths as names below a directory."""
    return [path.removeprefix(f"{top}/") for path in found]


# --- strange repositories -------------------------------------------------------------------------


def test_files_beside_the_git_directory_are_files(bench: Bench, tree: Worktree) -> None:
    """What only begins with the name of the git directory is none of git's own state."""
    tree.commit(**{".gitignore": "x\n"})
    found = touched(bench, "echo y >> .gitignore; echo '* text' > .gitattributes")
    assert names(found["changed"], tree.path) == [".gitignore"]
    assert names(found["created"], tree.path) == [".gitattributes"]
    assert (found["git"], found["outside"], found["level"]) == ([], [], "observed")


def test_a_repository_in_memory_is_one_like_any_other(bench: Bench) -> None:
    """Below /dev, where else nothing is kept."""
    if not os.access("/dev/shm", os.W_OK):  # noqa: S108 - there it is
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


def test_what_is_shut_away_for_a_moment_was_not_made(bench: Bench, tree: Worktree) -> None:
    """A file that nobody can look at now is not one that is absent: it was there, and it was never removed."""
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


def test_a_linked_worktree_has_the_git_state_of_its_repository(bench: Bench, tree: Worktree) -> None:
    """Stash and branches lie in the common directory: they are git's state, and not outside of the project."""
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


def test_a_git_directory_behind_a_link_is_that_of_its_tree(bench: Bench, tree: Worktree) -> None:
    """Some keep all git directories in one place: what moves there is told of no other repository, nor of others."""
    (tree.path / ".git").rename(tree.path.parent / "kept")
    (tree.path / ".git").symlink_to("../kept")
    (tree.path / "a.py").write_text("fixed\n")
    found = touched(bench, "git stash push -q; git stash pop -q; git tag v1; git commit -q -a -m x; sleep 0.2")
    assert {each["what"] for each in found["git"]} == {"stash", "index", "tag v1", "branch main"}
    assert (found["outside"], found["moved"], found["level"]) == ([], None, "observed")


def test_a_stash_that_lies_together_with_other_refs_is_told_as_the_stash(bench: Bench, tree: Worktree) -> None:
    """After `git gc` no file is its own: only its log tells that it moves, which `git gc` itself cuts as well."""
    for text in ("one", "two", "three"):
        (tree.path / "a.py").write_text(text + "\n")
        tree.git("stash", "push", "-q")
    assert "stash" not in {each["what"] for each in touched(bench, "git gc -q; sleep 0.2")["git"]}
    for what in ("drop -q stash@{1}", "pop -q", "drop -q"):
        found = touched(bench, f"git stash {what}; git gc -q; sleep 0.2")
        assert ("stash", f"git stash {what}") in {(each["what"], each["by"]) for each in found["git"]}
        assert (found["moved"], found["level"]) == (None, "observed")


def test_what_a_new_link_leads_to_is_not_told_by_the_name_of_the_link(bench: Bench, tree: Worktree) -> None:
    """It was there before, under another name: new is the link."""
    (tree.path / "build").mkdir()
    (tree.path / "build" / "x").write_text("built\n")
    (tree.path / "old").mkdir()
    (tree.path / "old" / "x").write_text("old\n")
    found = touched(bench, "rm -f dist/x; ln -s build dist; rm -r old; ln -s build old")
    assert names(found["created"], tree.path) == ["dist"]
    assert names(found["changed"], tree.path) == ["old", "old/x"]
    assert names(found["gone"], tree.path) == ["old/x"]


def test_what_becomes_of_another_worktree_is_told_by_its_name(bench: Bench, tree: Worktree) -> None:
    """Its HEAD, if that moves; not what comes and goes with the worktree itself."""
    tree.git("worktree", "add", "-q", "-b", "side", "../linked")
    found = touched(bench, "git -C ../linked checkout -q --detach; git worktree add -q -b more ../more")
    told = {each["what"] for each in found["git"]}
    assert {"HEAD of worktree linked", "worktree more"} <= told
    assert not [what for what in told if what.endswith("of worktree more")]


def test_a_deepened_clone_is_told(bench: Bench, tree: Worktree) -> None:
    """How far back its history goes is part of what it is."""
    tree.commit(**{"a.py": "b\n"})
    tree.git("clone", "-q", "--depth", "1", f"file://{tree.path}", "../clone")
    found = touched(bench, "git fetch -q --unshallow", "--cwd", str(tree.path.parent / "clone"))
    assert "shallow" in {each["what"] for each in found["git"]}


def test_a_submodule_is_a_repository_of_its_own(bench: Bench, tree: Worktree) -> None:
    """Observed in it, its files are the project's, and its git directory is where it points to."""
    inner = Worktree(tree.path.parent / "inner")
    inner.commit(c="c\n")
    tree.git("submodule", "add", "-q", str(inner.path), "module")
    tree.commit()
    found = touched(bench, "echo d > c; git commit -q -a -m d", "--cwd", str(tree.path / "module"))
    assert names(found["changed"], tree.path / "module") == ["c"]
    assert {"index", "branch main"} <= {each["what"] for each in found["git"]}
    assert (found["outside"], found["level"]) == ([], "observed")


def test_what_becomes_of_a_submodule_is_told_by_its_name(bench: Bench, tree: Worktree) -> None:
    """Its git directory lies in that of the repository around it; what happens there is git's state as well."""
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


def test_a_bare_repository_has_no_tree_of_its_own(bench: Bench, tree: Worktree) -> None:
    """What happens in it is told as what it is to a task there: files outside of any project."""
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
def test_a_repository_that_goes_to_pieces_breaks_nothing(bench: Bench, tree: Worktree, text: str) -> None:
    """Deleted, moved, corrupted by the task itself: the command succeeds, and the answer comes."""
    task = bench.launch(text, "--session", "s-1")
    done = bench.run("wait", task, "--no-ack", cwd=bench.root)
    assert done.returncode == 0, bench.ok("output", task, cwd=bench.root)
    found = bench.json("effects", task, cwd=bench.root)
    assert (found["level"], found["gaps"]) == ("observed", [])
    assert "deleted)" not in str(found)
    wrong = [path for path in (*found["changed"], *found["created"]) if not path.startswith(str(tree.path.parent))]
    assert wrong == []
    tree.path.mkdir(exist_ok=True)  # or nobody could ask there
    assert [notice["task"]["id"] for notice in bench.json("inbox", "--session", "s-1")["notices"]] == [task]


@pytest.mark.parametrize("content", [b"", b"ref: refs/heads/\xff\n", b"\0" * 100, None])
def test_a_repository_that_was_corrupt_before(bench: Bench, tree: Worktree, content: bytes | None) -> None:
    """A HEAD that is none, or a `.git` file that leads nowhere: files are seen all the same."""
    if content is None:
        (tree.path / ".git").rename(tree.path.parent / "gone")
        (tree.path / ".git").write_bytes(b"gitdir: /nowhere/\xff\n")
    else:
        (tree.path / ".git" / "HEAD").write_bytes(content)
    found = touched(bench, "echo c >> a.py")
    assert (names(found["changed"], tree.path), found["level"]) == (["a.py"], "observed")


# --- strange files --------------------------------------------------------------------------------


def test_where_names_are_not_utf_8_it_is_told_that_they_may_be_wrong(bench: Bench, tree: Worktree) -> None:
    """Looked at by another name, a file that was there would seem to be new: what is told is a lower bound."""
    other = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    program = "import os; [os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY) for name in (b'a', b'\\xc3\\xa8', b'b')]"
    task = bench.ok("run", "--cwd", str(tree.path), "--", sys.executable, "-c", program, env=other)
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    found = bench.json("effects", task)
    assert found["level"] == "partial"
    assert "the locale is not UTF-8: names that are not ASCII may be told wrongly" in found["gaps"]
    assert {f"{tree.path}/a", f"{tree.path}/b"} <= set(found["created"]), "the others are seen"


def test_loops_of_links_end(bench: Bench, tree: Worktree) -> None:
    """Written through, moved and removed: nothing turns in circles, nothing is invented."""
    found = touched(
        bench,
        "ln -s one two; ln -s two one; ln -s . here; ! echo x > one/x; ! echo x > one; echo y > here/here/here/y;"
        " mv one three; rm two",
    )
    assert sorted(names(found["created"], tree.path)) == ["here", "three", "y"]
    assert (found["changed"], found["outside"], found["level"]) == ([], [], "observed")


@pytest.mark.usefixtures("tree")
def test_a_file_of_two_gigabytes_is_not_read(bench: Bench) -> None:
    """Made, moved away and back, grown: told by its size and time, and nobody waits for it."""
    (bench.project / "huge").touch()
    os.truncate(bench.project / "huge", 2 << 30)
    began = time.monotonic()
    text = "mv huge away; mv away huge; truncate -s 2G new; truncate -s +1 huge; mv huge x; mv x huge"
    found = touched(bench, text)
    assert time.monotonic() - began < MOST_READER_S
    assert names(found["changed"], bench.project) == ["huge"]
    assert names(found["created"], bench.project) == ["new"]


@pytest.mark.usefixtures("tree")
def test_a_large_file_with_the_same_size_is_not_said_to_have_changed_for_sure(bench: Bench) -> None:
    """It was written, perhaps with what it held before: nobody compared, and that is said."""
    (bench.project / "huge").touch()
    os.truncate(bench.project / "huge", 5 << 20)
    found = touched(bench, "cp huge copy; cat copy > huge; rm copy")
    assert (found["level"], names(found["changed"], bench.project)) == ("partial", ["huge"])
    assert found["gaps"] == ["1 file too large to be compared: written, perhaps with the same content"]


@pytest.mark.usefixtures("tree")
def test_times_that_jump_hide_nothing(bench: Bench) -> None:
    """Files from before 1970 and after 2200, set to and fro: contents decide, and spans are never negative."""
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
"""A clock that everybody who is started with it sees jump, by as many seconds as a file says."""


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no compiler")
@pytest.mark.parametrize("how", ["auto", "watch"])
@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_a_clock_that_jumps_moves_no_window(bench: Bench, tree: Worktree, how: str, seconds: int) -> None:
    """While it is open, how long it has been may be unknown, and is never less than nothing; afterwards it is known."""
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
"""A file that is made without any call that names it."""


@pytest.mark.usefixtures("tree")
def test_what_is_made_by_io_uring_is_a_gap_and_found_by_comparing(bench: Bench) -> None:
    """The level says that it is a lower bound, and why; the file itself is told as changed unseen."""
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


def test_very_many_files_are_bounded_in_memory_time_and_text(bench: Bench, tree: Worktree) -> None:
    """A hundred thousand: the keeper stays small, readers are quick, and they tell directories and counts."""
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
    for part in range(0, MANY // 500, 20):  # each of them has the patience of one
        wait_until((tree.path / "node_modules" / f"p{part}").exists, "files")
    wait_until(lambda: (tree.path / "a.py").stat().st_size == 0, "all files")
    assert 0 < _peak_kb(keeper) < MOST_KEEPER_KB  # now it is certainly there; at its end it may be gone before we look
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
        began = time.monotonic()
        assert len(bench.ok(*words)) < 10_000, words
        assert time.monotonic() - began < MOST_READER_S, words
    assert f"{MANY:,} below {tree.path}/node_modules/" in bench.ok("effects", task)
    shown = bench.show(task)["effects"]
    assert (shown["changed"], shown["created"]) == ([f"{tree.path}/a.py"], [])
    assert shown["created_below"] == {f"{tree.path}/node_modules/": MANY}
    assert f"{MANY:,} files created ({MANY:,} below project/node_modules/)" in shown["summary"]
    assert len(bench.json("effects", task)["created"]) == MANY


def _peak_kb(pid: int) -> int:
    """The most memory a process ever had; nothing if it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)


@pytest.mark.root
def test_a_full_disk_is_a_gap_and_not_silence(bench: Bench, tree: Worktree) -> None:
    """The state has no room for the journal, the project has: what is missing is said to be, the rest is true."""
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
        assert (found["level"], found["gaps"]) == ("partial", ["the disk was full: what it did then is not known"])
        created = set(names(found["created"], tree.path))
        assert {"first", "last"} <= created
        assert created <= {"first", "last", *(f"{number:0100}" for number in range(3000))}
    finally:
        bench.clean()
        subprocess.run(["umount", "-l", str(bench.state)], check=False)


def fill(fd: int) -> None:
    """Write until there is no room for a single byte more."""
    for size in (1 << 20, 4096, 1):
        try:
            while os.write(fd, bytes(size)):
                pass
        except OSError:
            continue


def test_what_is_left_out_of_a_list_is_counted(bench: Bench, tree: Worktree) -> None:
    """Branches, windows, connections, what the text says: whoever reads the first ones knows that there are more."""
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
    assert text.count("\n  and 5 more\n") == 1, "branches"
    assert f"and {len(whole['windows']) - 40} more windows" in text
    if "(declared)" in text:
        assert text.rstrip().endswith("more")


@pytest.mark.usefixtures("tree")
def test_a_window_over_very_many_files_is_bounded_too(bench: Bench) -> None:
    """Open now: gate, hand-off and notice tell a directory and a number; the guard answers soon."""
    directory = bench.project / "many"
    directory.mkdir()
    for number in range(2000):
        (directory / f"f{number}").write_text("x")
    task = bench.launch(f"rm -r many; touch removed; {until('go')}", "--session", "s-1")
    wait_until(lambda: bench.json("effects", task)["created"], "the removal")
    for words in (("gate", "--session", "s-1"), ("hand-off", "--session", "s-1")):
        answer = bench.json(*words)
        (window,) = answer["open_windows"]
        assert (window["paths_in_all"], window["paths"]) == (2001, ["many"])
        assert window["paths_below"] == {"many/": 2000}
        assert len(str(answer)) < 10_000, words
    began = time.monotonic()
    assert bench.json("guard", "--command", "rm " + " ".join(f"other{number}" for number in range(1000)))["clear"]
    assert time.monotonic() - began < MOST_READER_S
    (bench.project / "go").touch()
    bench.run("wait", task)


def test_a_command_of_very_many_words_is_told_by_its_beginning(bench: Bench, tree: Worktree) -> None:
    """In what is bounded; whoever asks for the whole is told all that was kept."""
    words = " ".join(f"some/name/of/a/file/{number}" for number in range(200))
    text = f"for i in 1 2 3 4 5 6 7 8; do sh -c 'echo x > a.py; git checkout -q -- a.py' {words}; done"
    tree.commit(**{"a.py": "old\n"})
    task = bench.launch(text, "--description", "many words")
    bench.run("wait", task)
    windows = bench.show(task)["effects"]["windows"]
    assert len(windows) == 8
    assert {len(window["by"]) <= 200 for window in windows} == {True}
    assert len(bench.json("effects", task)["windows"][0]["by"]) > 1000


def test_what_is_seen_is_told_soon_also_of_a_busy_command(bench: Bench, tree: Worktree) -> None:
    """Calls that never pause do not keep the journal from being written."""
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
