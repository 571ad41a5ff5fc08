"""Which paths a task's effects list as changed, created, moved or removed, and what they mark as not known."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outlive.linux.seccomp import is_known_machine
from outlive.observe.journal import read_journal
from outlive.observe.path_state import ABSENT
from tests.effects_steps import NAMES, git, paths, touched
from tests.session_steps import until
from tests.support import wait_until

if TYPE_CHECKING:
    from tests.support import Bench

pytestmark = pytest.mark.skipif(not is_known_machine(), reason="the calls of this machine are not known")


UNNAMED = (
    "fd = os.open('new', os.O_TMPFILE | os.O_WRONLY); os.write(fd, b'x');"
    " os.link(f'/proc/self/fd/{fd}', 'new/named', src_dir_fd=fd, follow_symlinks=True)"
)
"""Statements that give a file its name only when its content is complete."""


def test_effects_say_that_the_changes_of_an_unknown_program_are_not_known(bench: Bench) -> None:
    """If a program is not observed, the effects name this program as the reason why its changes are not known."""
    task = bench.launch("./own-tool --fast || true")
    bench.run("wait", task)
    assert "what ./own-tool changes is not known (./own-tool --fast)" in bench.ok("effects", task)


def test_directories_are_not_counted_as_files(bench: Bench, repo: Path) -> None:
    """If a task removes two files and the directories around them, the effects count two files."""
    (repo / "x" / "y").mkdir(parents=True)
    for name in ("y/one", "two"):
        (repo / "x" / name).touch()
    task = bench.launch("rm -r x")
    bench.ok("wait", task)
    effects = bench.show(task)["effects"]
    assert "2 of these removed" in effects["summary"]
    assert "left 2 files changed (rm -r x)" in effects["summary"]
    listed = bench.ok("effects", task)
    assert ("window of 2 files, left open: from" in listed, "removed (2):" in listed) == (True, True)
    (repo / "build").mkdir()
    (repo / "build" / "a.o").write_text("1\n")
    built = bench.launch("rm -r build; mkdir build; echo 2 > build/a.o")
    bench.ok("wait", built)
    assert "restored" not in bench.show(built)["effects"]["summary"], "a directory with new content counts as restored"
    assert "as before again" not in bench.ok("effects", built)
    failed = bench.launch("mkdir -p z/y; git mv a.py z/y; rm -r dir; false")
    bench.run("wait", failed)
    assert "left a.py, dir/c.py changed" in bench.ok("guard", ".")


@pytest.mark.usefixtures("repo")
@pytest.mark.parametrize(
    ("text", "restored", "changed"),
    [
        ("git checkout -q -- .", [], [*NAMES]),
        ("git stash push -q -u; git stash pop -q", [*NAMES], []),
        ("git worktree add -q ../tree HEAD; git worktree remove --force ../tree", [], []),
        ("sed -i s/old/new/ other.py; sed -i s/new/old/ other.py", ["other.py"], []),
        ("mv other.py away.py; sleep 0.05; mv away.py other.py", ["other.py"], []),
        ("cat other.py > /tmp/$$.copy; cp /tmp/$$.copy other.py; rm /tmp/$$.copy", [], []),
        ("rm other.py; echo old > other.py", ["other.py"], []),
        ("git stash push -q; git rebase -q HEAD; git stash pop -q", [*NAMES], []),
        ("touch other.py; : >> other.py", [], []),
        ("echo more >> other.py", [], ["other.py"]),
        ("mv dir away; sleep 0.05; mv away dir", ["dir"], []),
        ("mkdir new; mv dir away; mv new dir", [], ["dir"]),
        ("cp -r dir kept; rm -r dir; mkdir dir; cp kept/c.py dir; rm -r kept", ["dir/c.py", "dir"], []),
        ("mv other.py aside; git checkout -q other.py; rm aside", ["other.py"], []),
        ("mv dir aside; git checkout -q dir; rm -r aside", ["dir"], ["dir/c.py"]),
        ("mv dir aside; cp -r aside dir; rm -r aside", ["dir/c.py", "dir"], []),
        ("cp -r dir kept; rm -r dir; mv kept dir", ["dir/c.py", "dir"], []),
        ("mv dir aside; git checkout -q dir; rm -r dir; mv aside dir", ["dir/c.py", "dir"], []),
        ("mv dir ../aside; git checkout -q dir; rm -r dir; mv ../aside dir", ["dir/c.py", "dir"], []),
        ("mv dir ../aside; rm -r ../aside; mkdir dir", [], ["dir"]),
        ("mv dir ../aside; rm -r ../aside; mkdir ../new; mv ../new dir", [], ["dir"]),
        ("mv .git aside; mv aside .git", [".git"], []),
        ("rm -rf .git; git init -q .", [], [".git"]),
    ],
)
def test_effects_distinguish_restored_from_changed_files(
    bench: Bench, text: str, restored: list[str], changed: list[str]
) -> None:
    """The effects list changed and restored files under `restored`, and files that stayed changed under `changed`."""
    found = touched(bench, text)
    assert (found["level"], found["gaps"]) == ("observed", [])
    assert sorted(found["restored"]) == sorted(paths(bench, *restored))
    assert sorted(found["changed"]) == sorted(paths(bench, *changed))
    assert not set(paths(bench, *NAMES, "other.py")) & set(found["created"]), "an old file counts as created"


@pytest.mark.parametrize(
    ("text", "changed", "created"),
    [
        ("mv dir aside; mkdir dir; echo fixed > dir/c.py; echo x > dir/new", ["dir"], ["aside", "dir/new"]),
        ("mv dir ../aside; mkdir dir; echo fixed > dir/c.py; rm -r ../aside", ["dir"], []),
    ],
)
@pytest.mark.usefixtures("repo")
def test_file_in_a_replaced_directory_is_created_only_if_the_old_directory_lacked_it(
    bench: Bench, text: str, changed: list[str], created: list[str]
) -> None:
    """If a task replaces a directory, only files that the old directory lacked are listed as created.

    If the task moved the old directory out of the project, its files are unknown. Then no file of the new directory is
    listed as created.
    """
    found = touched(bench, text)
    assert (found["changed"], found["created"]) == (paths(bench, *changed), paths(bench, *created))


@pytest.mark.parametrize("name", ["dir", "../project"])
@pytest.mark.usefixtures("repo")
def test_directory_changed_outside_the_tree_is_restored_with_a_gap(bench: Bench, name: str) -> None:
    """A directory that a task moves out of the project and back is listed as restored.

    The effects are marked as incomplete, because changes in the directory were not seen while it was outside.
    """
    place = (bench.project / name).resolve()
    found = touched(bench, f"cd ..; mv {place} aside; echo x > aside/new; mv aside {place}")
    assert (found["level"], len(found["gaps"])) == ("partial", 1)
    assert found["restored"] == [str(place)]


@pytest.mark.parametrize(
    ("steps", "new"),
    [
        (["new('at/b')", "os.unlink('at/b')", "new('at/b')"], [True, True]),
        (["os.unlink('at/a')", "os.rmdir('at')", "os.rename('dir', 'at')", "sleep()", "new('at/b')", "new('at/c.py')"],
         [True, False]),
        (["os.link('other.py', 'at/b')", "sleep()", "new('at/c')", "new('at/b')"], [True, False]),
    ],
    ids=["made", "moved", "linked"],
)  # fmt: skip
@pytest.mark.usefixtures("repo")
def test_new_name_in_a_directory_made_by_the_task_is_recorded_as_absent_before(
    bench: Bench, steps: list[str], new: list[bool]
) -> None:
    """If a task creates a file in a directory that it made itself, its record says that the file did not exist before.

    It does not say so for a file that was moved or linked into the directory.
    """
    program = (
        "import os, time\n"
        "def sleep(): time.sleep(0.02)  # longer than anything is remembered\n"
        "def new(name):\n"
        "    try: os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))\n"
        "    except FileExistsError: pass\n"
    )
    task = bench.ok("run", "--", sys.executable, "-c", program + "\n".join(["os.mkdir('at')", "new('at/a')", *steps]))
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    lines = [line for line in read_journal(bench.files(task).effects) if line[1] == "write" and "/at/" in line[4]]
    assert [line[3] == ABSENT for line in lines] == [True, *new]


@pytest.mark.usefixtures("repo")
def test_removed_files_of_others_are_recorded_in_a_directory_made_by_the_task(bench: Bench) -> None:
    """If a task removes another process's files from a directory that it made, its record has the removal.

    It also says that these files existed before.
    """
    text = "mkdir at; touch at/own; while [ ! -e at/last ]; do sleep 0.01; done; rm at/*"
    task = bench.launch(text)
    wait_until((bench.project / "at/own").exists, "the directory")
    theirs = [bench.project / "at" / name for name in (*map(str, range(20)), "last")]
    for file in theirs:
        file.write_text("theirs\n")
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    lines = [line for line in read_journal(bench.files(task).effects) if line[1] == "remove"]
    assert {line[4] for line in lines if line[3] != ABSENT} >= set(map(str, theirs))


@pytest.mark.parametrize("name", ["../second", "second"])
@pytest.mark.usefixtures("repo")
def test_write_to_a_file_with_several_names_is_a_gap(bench: Bench, name: str) -> None:
    """After a write through one of a file's hard links, the effects say that the file changed under all names."""
    found = touched(bench, f"ln other.py {name}; echo more >> {name}; echo more >> {name}; rm {name}")
    gap = "it wrote to a file with several names (hard links): the file changed under all its names"
    assert (found["level"], found["gaps"]) == ("partial", [gap])
    program = f"import os; os.link('other.py', '{name}'); os.mkdir('{name}.d'); os.rmdir('{name}.d')"
    program += f"; os.open('{name}', os.O_WRONLY | os.O_NOFOLLOW)"
    found = touched(bench, f'{sys.executable} -c "{program}"; rm {name}')
    assert (found["level"], found["gaps"]) == ("partial", [gap])
    found = touched(bench, f"ln other.py {name}; cat {name}; mv -f {name} last; rm last; echo more >> other.py")
    assert (found["level"], found["gaps"]) == ("observed", [])


@pytest.mark.parametrize(
    ("program", "changed", "created"),
    [
        ("open('link', 'w').write('x')", ["other.py"], []),
        ("open('chain', 'a').write('x')", ["other.py"], []),
        ("os.truncate('link', 1)", ["other.py"], []),
        ("open('dangling', 'w').write('x')", [], ["new/made"]),
        ("fd = os.open('other.py', os.O_RDONLY); open(f'/proc/self/fd/{fd}', 'w').write('x')", ["other.py"], []),
        ("fd = os.open('other.py', os.O_RDONLY); open(f'/dev/fd/{fd}', 'a').write('x')", ["other.py"], []),
        ("os.open('link', os.O_WRONLY | os.O_CREAT | os.O_EXCL)", [], []),
        ("os.open('link', os.O_WRONLY | os.O_NOFOLLOW)", [], []),
        ("os.unlink('link')", ["link"], []),
        ("os.rename('other.py', 'link')", ["link", "other.py"], []),
        ("os.link('other.py', 'second')", [], ["second"]),
        (UNNAMED, [], ["new/named"]),
    ],
)
def test_write_through_a_symbolic_link_is_attributed_to_its_target(
    bench: Bench, repo: Path, program: str, changed: list[str], created: list[str]
) -> None:
    """A write through a symbolic link is listed as a change of the link's target.

    A removal or a rename of the link is listed as a change of the link itself.
    """
    (repo / "new").mkdir()
    for name, target in (("link", "other.py"), ("chain", "new/../link"), ("dangling", "new/made")):
        (repo / name).symlink_to(target)
    found = touched(bench, f'{sys.executable} -B -c "import os; {program}" || true')
    assert (found["changed"], found["created"]) == (paths(bench, *changed), paths(bench, *created))
    assert found["rewritten"] == [], "a failed or missing write counts as a write"
    assert (found["outside"], found["level"], found["gaps"]) == ([], "observed", [])


@pytest.mark.usefixtures("repo")
def test_file_written_with_the_same_content_is_rewritten(bench: Bench) -> None:
    """A file that is written with its old content is listed as rewritten.

    Tools that compare file times take it for changed.
    """
    found = touched(bench, "cp other.py kept; cp kept other.py; cp other.py kept; mv kept other.py; : >> a.py")
    assert (found["windows"], found["rewritten"]) == ([], paths(bench, "other.py"))
    assert (found["shared"], found["summary"]) == (True, "1 file written, same content")


@pytest.mark.usefixtures("repo")
def test_file_created_and_removed_by_the_task_is_not_listed(bench: Bench) -> None:
    """The effects list a created file that still exists, but no created file that the task removed again."""
    elsewhere = bench.root / "elsewhere"
    found = touched(bench, f"echo x > made; echo y > gone; rm gone; echo z > {elsewhere}")
    assert (found["created"], found["changed"], found["windows"]) == (paths(bench, "made"), [], [])
    assert not str(elsewhere).startswith("/tmp") or found["outside"] == []  # noqa: S108 - the path is an argument of the test's command


@pytest.mark.usefixtures("repo")
def test_files_outside_of_the_project_are_listed_only_when_changed(bench: Bench, lasting: Path) -> None:
    """The list `outside` has only files that the task changed.

    It leaves out failed calls, temporary files, and files that were opened but not written.
    """
    (lasting / "there").mkdir()
    for file in ("written", "opened", "moved", "removed"):
        (lasting / file).write_text("x\n")
    text = (
        f"cd {lasting}; mkdir -p there; ! mkdir there; echo y > lock; rm lock; : >> opened; ! rmdir {lasting};"
        " echo z > written; mv moved into; rm removed; mkdir -p new/deep; echo n > new/deep/n"
    )
    task = bench.launch(f"{text}; echo done; {until(f'{bench.root}/go')}")
    expected = sorted(f"{lasting}/{file}" for file in ("written", "moved", "into", "removed", "new/deep/n"))
    wait_until(lambda: bench.ok("output", task).endswith("done"), "the whole output")
    wait_until(lambda: bench.json("effects", task)["outside"] == expected, "the first snapshot")
    (bench.root / "go").touch()
    bench.run("wait", task)
    wait_until(lambda: bench.json("effects", task)["outside"] == expected, "the last snapshot")
    assert "5 files outside of the project" in bench.json("effects", task)["summary"]


EXCHANGE = "import ctypes; assert ctypes.CDLL(None).renameat2(-100, b'{}', -100, b'{}', 2) == 0"


@pytest.mark.parametrize(("one", "other", "gaps"), [("dir", "dir2", 1), ("a.py", "b.py", 0)])
def test_directories_that_exchange_names_are_a_gap(bench: Bench, repo: Path, one: str, other: str, gaps: int) -> None:
    """If two directories exchange their names, the effects are marked as incomplete. Later writes cannot be followed.

    If two files exchange their names, the effects are complete.
    """
    shutil.copytree(repo / "dir", repo / "dir2")
    exchange = f"{sys.executable} -c {shlex.quote(EXCHANGE.format(one, other))}"
    found = touched(bench, f"{exchange}; echo x >> {'dir/c.py' if gaps else one}; {exchange}")
    assert (found["level"], len(found["gaps"])) == (("partial", 1) if gaps else ("observed", 0))


def test_large_file_with_equal_size_and_time_is_not_restored(bench: Bench, repo: Path) -> None:
    """A large file that was written is listed as changed, even if it has its old size and time.

    Outlive does not read large files, so the effects are marked as incomplete. A large file that was only moved away
    and back is listed as restored.
    """
    for name in ("large", "moved"):
        (repo / name).write_bytes(bytes(5 << 20))
    git(bench, "add", ".")
    git(bench, "commit", "-q", "-m", "large")
    write = "printf x | dd of=large bs=1 conv=notrunc status=none"
    found = touched(bench, f"cp -p large ../kept; {write}; touch -r ../kept large; mv moved away; mv away moved")
    assert (found["level"], found["changed"], found["restored"]) == (
        *("partial", paths(bench, "large"), paths(bench, "moved")),
    )
    assert "1 file that could not be read" in found["gaps"][0]


def test_files_removed_by_the_caller_after_the_ending_are_not_gone(bench: Bench, repo: Path) -> None:
    """Files that the caller removes after the task's end stay listed as created or changed.

    This holds for very many files, and also if the removal comes before the last snapshot.
    """
    made, written = 3000, [repo / "many" / f"{number}" for number in range(300)]
    written[0].parent.mkdir()
    for path in written:
        path.write_text("old\n")
    task = bench.launch(
        f"mkdir gen; for n in $(seq {made}); do echo $n > gen/$n; done; for f in many/*; do echo new > $f; done"
    )
    bench.run("wait", task)
    shutil.rmtree(repo / "gen")
    shutil.rmtree(repo / "many")

    def found() -> Any:
        effects = bench.json("effects", task)
        return len(effects["created"]), effects["changed"], effects["gone"]

    for _ in range(2):
        assert found() == (made, sorted(map(str, written)), [])
        wait_until(
            lambda: "\tfinal\t" in Path(bench.files(task).effects).read_text().splitlines()[-1], "the last snapshot"
        )


@pytest.mark.usefixtures("repo")
def test_files_created_and_then_moved_are_listed_by_their_last_name(bench: Bench) -> None:
    """Files in a directory that the task created and renamed are listed below its new name.

    This also holds if another process has removed the files since.
    """
    task = bench.launch("mkdir -p build.tmp/in; echo 1 > build.tmp/in/a; echo 2 > build.tmp/b; mv build.tmp build")
    bench.run("wait", task)
    shutil.rmtree(bench.project / "build")
    found = bench.json("effects", task)
    assert (found["level"], found["created"], found["changed"]) == (
        "observed",
        paths(bench, "build/b", "build/in/a"),
        [],
    )


def test_moved_directory_is_one_entry_of_the_effects(bench: Bench, repo: Path) -> None:
    """If a task renames a directory, the effects have one entry for the directory.

    `guard` is not clear for files in the directory.
    """
    (repo / "dir" / "d.py").write_text("old\n")
    task = bench.launch(f"git mv dir core; echo new >>core/c.py; touch done; {until('go')}; false")
    wait_until((repo / "done").exists, "the edit")
    assert f"task {task} has changed dir and not restored it" in bench.ok("guard", "dir/d.py")
    (repo / "go").touch()
    bench.run("wait", task, "--no-ack")
    found = bench.json("effects", task)
    assert (found["created"], found["windows"][0]["paths"]) == (paths(bench, "core", "done"), ["dir"])
    assert "1 of these removed; 2 files created" in found["summary"]
    text = bench.ok("effects", task)
    assert f"removed (1):\n  {repo / 'dir'}\n" in text
    assert f"created (2):\n  {repo / 'core'}\n" in text


def test_directory_missing_in_the_first_snapshot_is_not_unattributed(bench: Bench, repo: Path) -> None:
    """If a task moves a directory away before the first snapshot and back later, the effects list it as restored.

    They do not say that another process may have changed it.
    """
    (repo / "dir" / "deep").mkdir()
    (repo / "dir" / "deep" / "x").touch()
    subprocess.run(["git", "add", "dir"], cwd=repo, check=True)
    time.sleep(0.05)  # The files must be older than the task by the clock of any file system.
    task = bench.launch(f"mv dir away; {until('go')}; mv away dir")
    wait_until(lambda: bench.json("effects", task, "--open")["windows"], "the move")
    time.sleep(0.5)
    (repo / "go").touch()
    bench.run("wait", task)
    found = wait_until(lambda: each if (each := bench.json("effects", task))["uncompared"] else None, "the comparison")
    names = [Path(each["path"]).name for each in found["unattributed"]]
    assert (found["restored"], names) == (paths(bench, "dir"), ["go"])


@pytest.mark.usefixtures("repo")
def test_bound_unix_socket_is_listed_as_created(bench: Bench) -> None:
    """A Unix socket that is bound to a path is listed as created.

    A bind to a port or to an abstract socket adds no entry.
    """
    text = "import socket as s; s.socket(s.AF_UNIX).bind('dir/door'); s.socket(s.AF_UNIX).bind('\\0dir/none')"
    found = touched(bench, f"{sys.executable} -c \"{text}; s.socket().bind(('127.0.0.1', 0))\"")
    assert (found["level"], found["created"], found["gaps"]) == ("observed", paths(bench, "dir/door"), [])


@pytest.mark.usefixtures("repo")
def test_effects_state_how_the_task_was_observed(bench: Bench) -> None:
    """With `--observe compare`, the effects have the level `compared`. With `--observe off`, the level is `unknown`."""
    found = touched(bench, "git commit -q -a -m second", "--observe", "compare")
    assert (found["level"], "HEAD moved" in found["summary"]) == ("compared", True)
    assert touched(bench, "git commit -q --allow-empty -m x", "--observe", "off")["level"] == "unknown"


def test_files_created_by_threads_and_descendants_are_listed(bench: Bench, repo: Path) -> None:
    """The effects list every file that threads, children and grandchildren create, and no other file."""
    program = """
import os, subprocess, threading
def work(n):
    for i in range(50):
        open(f"t{n}-{i}", "w").close()
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
subprocess.run(["sh", "-c", "sh -c 'touch deep' & touch child; wait"], check=True)
"""
    (repo / "program.py").write_text(program)
    found = touched(bench, f"{sys.executable} program.py")
    expected = {f"t{n}-{i}" for n in range(8) for i in range(50)} | {"deep", "child"}
    created = {path.removeprefix(str(repo) + "/") for path in found["created"]}
    assert {name for name in created if "__pycache__" not in name} == expected


def test_names_of_any_bytes_are_listed_unchanged(bench: Bench, repo: Path) -> None:
    """The effects list file names with newlines, tabs, backslashes and bytes that are not UTF-8 without a change."""
    names = [b"new\nline", b"t\tab", b"back\\slash\\n", b"by\xfftes", "h\u00e9".encode()]
    program = f"import os\nfor name in {names!r}: os.close(os.open(name, os.O_CREAT | os.O_WRONLY))\n"
    (repo / "program.py").write_text(program)
    found = touched(bench, f"{sys.executable} program.py")
    created = {os.fsencode(path).removeprefix(os.fsencode(repo) + b"/") for path in found["created"]}
    assert created == set(names)


def test_effects_of_an_earlier_attempt_can_be_read(bench: Bench, repo: Path) -> None:
    """After `retry`, `effects` shows the newest attempt, and `effects --attempt 1` shows the first one."""
    task = bench.launch("echo $(ls | wc -l) > made-$(ls | wc -l); exit 3")
    bench.run("wait", task)
    bench.ok("retry", task)
    bench.run("wait", task)
    first, second = (bench.json("effects", task, "--attempt", number)["created"] for number in ("1", "2"))
    assert len(first) == len(second) == 1
    assert first != second == bench.json("effects", task)["created"]
    refused = bench.run("effects", task, "--attempt", "3")
    assert refused.returncode == 2
    assert "has 2 attempts" in refused.stderr
    assert str(repo) in first[0]
