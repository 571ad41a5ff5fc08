"""What a task touched: windows, net changes, git state and connections. Observing them never breaks the command."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outlive import Outlive
from outlive.domain.effects.drift import STILL
from outlive.linux.seccomp import is_known_machine
from outlive.observe.journal import read_journal
from outlive.observe.path_state import ABSENT
from tests.effects_steps import paths, window_on
from tests.git_steps import Worktree
from tests.session_steps import begin, until
from tests.support import is_alive, kill, wait_until

if TYPE_CHECKING:
    from tests.outsider import Outsider
    from tests.support import Bench

pytestmark = pytest.mark.skipif(not is_known_machine(), reason="the calls of this machine are not known")
NAMES = ("a.py", "b.py", "dir/c.py")
UNNAMED = (
    "fd = os.open('new', os.O_TMPFILE | os.O_WRONLY); os.write(fd, b'x');"
    " os.link(f'/proc/self/fd/{fd}', 'new/named', src_dir_fd=fd, follow_symlinks=True)"
)
"""Statements that give a file its name only when its content is complete."""


def git(bench: Bench, *words: str) -> str:
    """Run git in the project, with the author of the tests, and return its output."""
    env = {
        **bench.env,
        **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "t"),
        **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "t@example.org"),
    }
    return subprocess.run(
        ["git", *words], cwd=bench.project, env=env, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repo(bench: Bench) -> Path:
    """Make the project a repository: three tracked files have an uncommitted fix, and one has none."""
    bench.env.update(
        **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "t"),
        **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "t@example.org"),
    )
    (bench.project / "dir").mkdir()
    for name in (*NAMES, "other.py"):
        (bench.project / name).write_text("old\n")
    git(bench, "init", "-q")
    git(bench, "add", ".")
    git(bench, "commit", "-q", "-m", "first")
    for name in NAMES:
        (bench.project / name).write_text("fixed\n")
    return bench.project


def touched(bench: Bench, text: str, *options: str) -> Any:
    """Run a shell command as a task and return its effects."""
    task = bench.launch(text, *options)
    bench.run("wait", task)
    return bench.json("effects", task)


def moment(text: str) -> float:
    """Return a time of a JSON document, in seconds."""
    return datetime.fromisoformat(text).timestamp()


# --- what is reported -----------------------------------------------------------------------------


@pytest.mark.usefixtures("repo")
def test_stash_is_a_window_until_the_pop(bench: Bench) -> None:
    """Stashed files are a window, during the stash and afterwards, with times that are exact to 0.2 seconds."""
    begin(bench, "s-2")
    text = f"date +%s.%N; git stash push -q; date +%s.%N; {until('go')}; date +%s.%N; git stash pop -q; date +%s.%N"
    task = bench.launch(text, "--session", "s-1")
    wait_until(lambda: bench.ok("output", task).count("\n") >= 1, "the stash")
    window = window_on(bench, task, *NAMES)
    assert (window["paths"], window["closed_at"], window["restored"]) == (list(NAMES), None, None)
    assert window["by"] == "git stash push -q"
    warning = f"task {task} has changed a.py, b.py, dir/c.py and not restored them"
    assert warning in bench.ok("gate", "--session", "s-2")
    handed = begin(bench, "s-2", "--source", "compact")["hand_off"]
    assert warning in handed["text"]
    assert [each["task"] for each in handed["open_windows"]] == [task]
    (bench.project / "go").touch()
    bench.run("wait", task)
    effects = bench.show(task)["effects"]
    assert (effects["level"], effects["paths_restored"], effects["changed"]) == ("observed", 3, [])
    (window,) = effects["windows"]
    before, pushed, popping, after = map(float, bench.ok("output", task).splitlines())
    assert before - 0.2 <= moment(window["opened_at"]) <= pushed + 0.2
    assert popping - 0.2 <= moment(window["closed_at"]) <= after + 0.2
    assert (window["restored"], window["scope"]) == (True, str(bench.project))
    assert {"index", "stash"} <= {each["what"] for each in bench.json("effects", task)["git"]}
    assert "3 files changed and restored" in effects["summary"]


def test_directories_are_not_counted_as_files(bench: Bench, repo: Path) -> None:
    """If a task removes two files and the directories around them, the effects count two files."""
    (repo / "x" / "y").mkdir(parents=True)
    for name in ("y/one", "two"):
        (repo / "x" / name).touch()
    task = bench.launch("rm -r x")
    bench.ok("wait", task)
    effects = bench.show(task)["effects"]
    assert "2 of these removed" in effects["summary"]
    assert "left 2 files not as it found them (rm -r x)" in effects["summary"]
    listed = bench.ok("effects", task)
    assert ("window of 2 files, left open: from" in listed, "removed (2):" in listed) == (True, True)
    (repo / "build").mkdir()
    (repo / "build" / "a.o").write_text("1\n")
    built = bench.launch("rm -r build; mkdir build; echo 2 > build/a.o")
    bench.ok("wait", built)
    assert "restored" not in bench.show(built)["effects"]["summary"], "what is in it is another"
    assert "as before again" not in bench.ok("effects", built)
    failed = bench.launch("mkdir -p z/y; git mv a.py z/y; rm -r dir; false")
    bench.run("wait", failed)
    assert "left a.py, dir/c.py changed" in bench.ok("guard", ".")


@pytest.mark.usefixtures("repo")
def test_open_window_is_at_the_top_of_the_notice(bench: Bench) -> None:
    """If a task dies before `git stash pop`, its notice begins with the files that are not restored."""
    task = bench.launch("git stash push -q; exit 9", "--session", "s-1")
    bench.run("wait", task)
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    first = notice["text"].splitlines()[1]
    assert "LEFT a.py, b.py, dir/c.py not as it found them" in first
    assert notice["task"]["effects"]["windows"][0]["closed_at"] is None


@pytest.mark.usefixtures("repo")
def test_head_left_on_another_branch_is_at_the_top_of_the_notice(bench: Bench) -> None:
    """If a task dies on a new branch, its notice begins with HEAD, although no file differs."""
    task = bench.launch("git checkout -q -b elsewhere; exit 9", "--session", "s-1")
    bench.run("wait", task, "--no-ack")
    (notice,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert "LEFT HEAD not as it found it (for " in notice["text"].splitlines()[1]
    git(bench, "checkout", "-q", "-")
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert "LEFT" not in notice["text"]


def test_head_left_in_another_repository_is_named_with_that_repository(bench: Bench, repo: Path) -> None:
    """If a task leaves HEAD of another repository on a new branch, the notice names that repository."""
    git(bench, "clone", "-q", str(repo), str(repo.parent / "lib"))
    text = f"echo new > a.py; cd {repo.parent}/lib && git checkout -q -b elsewhere && echo new > a.py; exit 9"
    task = bench.launch(text, "--session", "s-1")
    bench.run("wait", task)
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert f"LEFT a.py, HEAD of {repo.parent}"[:60] in notice["text"].splitlines()[1]


def test_notice_says_that_left_files_were_put_back_since(bench: Bench, repo: Path) -> None:
    """If a user restores the files that a failed task left changed, no output says that they are changed now."""
    task = bench.launch("git stash push -q; exit 9", "--session", "s-1")
    bench.run("wait", task, "--no-ack")
    assert bench.ok("effects", task, "--open").startswith("window of 3 files, open for")
    (repo / "a.py").write_text("mine\n")
    (notice,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert "LEFT b.py, dir/c.py not as it found them (for " in notice["text"].splitlines()[1], "a.py is in other hands"
    git(bench, "checkout", "-q", "a.py")
    git(bench, "stash", "pop", "-q")
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    first = notice["text"].splitlines()[1]
    told = "LEFT a.py, b.py, dir/c.py not as it found them (by git stash push -q; put back or changed since)"
    assert told in first
    effects = notice["task"]["effects"]
    assert effects["summary"] == "left 3 files not as it found them (git stash push -q); git: index, stash"
    assert effects["windows"][0]["left"] is True
    for surface in (first, effects["summary"], bench.ok("effects", task), bench.ok("show", task)):
        assert " now" not in surface, surface
    assert bench.ok("effects", task, "--open") == "no window is open now"


@pytest.mark.usefixtures("repo")
def test_open_windows_are_unknown_when_the_task_is_not_observed(bench: Bench) -> None:
    """For a task that is only compared or not observed, `effects --open` answers that its windows are not known."""
    for how in ("compare", "off"):
        task = bench.launch(f"git stash push -q; {until('go')}; git stash pop -q", "--observe", how)
        answer = bench.ok("effects", task, "--open")
        assert answer.startswith("not known: its changes are not observed"), how
        assert bench.json("effects", task, "--open") == {"level": "unknown", "windows": []}
        (bench.project / "go").touch()
        bench.run("wait", task)
        (bench.project / "go").unlink()


def test_restored_window_stays_closed_when_another_process_stashes_the_files(bench: Bench, repo: Path) -> None:
    """After a task's files were restored, a stash of these files by another process is not attributed to the task."""
    task = bench.launch("git stash push -q; exit 9", "--session", "s-1")
    bench.run("wait", task, "--no-ack")
    assert not bench.json("guard", "a.py")["clear"]
    git(bench, "stash", "pop", "-q")
    git(bench, "stash", "push", "-q")
    assert (repo / "a.py").read_text() == "old\n"
    assert bench.json("guard", "a.py")["clear"]
    assert bench.json("effects", task, "--open")["windows"] == []
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert "put back or changed since" in notice["text"].splitlines()[1]


@pytest.mark.usefixtures("repo")
def test_show_names_the_files_of_each_window(bench: Bench) -> None:
    """`show` prints the files and the command of each window, and the notice refers to `outlive effects`.

    Neither has such a line for a task that touched nothing.
    """
    stashed = bench.launch("git stash push -q; git stash pop -q", "--session", "s-1")
    silent = bench.launch("cat a.py", "--session", "s-1")
    bench.run("wait", stashed, silent, "--no-ack")
    (line,) = [line for line in bench.ok("show", stashed).splitlines() if line.startswith("window ")]
    assert line.startswith("window    of 3 files, ")
    assert line.endswith(", all restored, by git stash push -q: a.py, b.py, dir/c.py")
    assert "\nwindow " not in bench.ok("show", silent)
    text = bench.ok("inbox", "--session", "s-1")
    assert f", outlive effects {stashed}\n" in text
    assert f"outlive effects {silent}" not in text


def test_notice_distinguishes_files_of_one_name_by_their_paths(bench: Bench, repo: Path) -> None:
    """The notice names left files by their paths in the project, and does not list their directories."""
    for name in ("x/y/index.js", "z/y/index.js", "src/other.py"):
        (repo / name).parent.mkdir(parents=True)
        (repo / name).write_text("old\n")
    task = bench.launch("rm -r x z; sed -i s/old/new/ src/other.py; false", "--session", "s-1")
    bench.run("wait", task)
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert "LEFT src/other.py, x/y/index.js, z/y/index.js not as it found them" in notice["text"].splitlines()[1]
    assert "left 3 files not as it found them (rm -r x z); 2 of these removed" in notice["text"]


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
    """A file that was changed and restored is listed apart from a file that stayed changed."""
    found = touched(bench, text)
    assert (found["level"], found["gaps"]) == ("observed", [])
    assert sorted(found["restored"]) == sorted(paths(bench, *restored))
    assert sorted(found["changed"]) == sorted(paths(bench, *changed))
    assert not set(paths(bench, *NAMES, "other.py")) & set(found["created"]), "they were there before"


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
    """A file in the new directory is created if the old directory, moved within the tree, has no such file.

    If the old directory was moved out of the tree, this is not known, and the file is not listed as created.
    """
    found = touched(bench, text)
    assert (found["changed"], found["created"]) == (paths(bench, *changed), paths(bench, *created))


@pytest.mark.parametrize("name", ["dir", "../project"])
@pytest.mark.usefixtures("repo")
def test_directory_changed_outside_the_tree_is_restored_with_a_gap(bench: Bench, name: str) -> None:
    """A directory that is moved out of the tree, changed there and moved back is restored, but with a gap."""
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
    """A name in a directory that the task made is new, unless the task moved or linked a file there."""
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
    """The journal records that files existed which another process put into the directory and the task removed."""
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
    """After a write through a hard link, one gap says that the other names of the file changed too."""
    found = touched(bench, f"ln other.py {name}; echo more >> {name}; echo more >> {name}; rm {name}")
    gap = "it wrote to a file with several names (hard links): the others changed with it"
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
    """An open follows symbolic links as the kernel does, and an operation on the name does not follow them."""
    (repo / "new").mkdir()
    for name, target in (("link", "other.py"), ("chain", "new/../link"), ("dangling", "new/made")):
        (repo / name).symlink_to(target)
    found = touched(bench, f'{sys.executable} -B -c "import os; {program}" || true')
    assert (found["changed"], found["created"]) == (paths(bench, *changed), paths(bench, *created))
    assert found["rewritten"] == [], "it was tried in vain, or not at all"
    assert (found["outside"], found["level"], found["gaps"]) == ([], "observed", [])


@pytest.mark.usefixtures("repo")
def test_change_and_repair_through_one_descriptor_is_a_possible_window(bench: Bench) -> None:
    """The time of a write is not observed, so the window covers all of the time in which the file may have differed."""
    program = """
import time
with open("other.py", "r+") as file:
    file.write("new"); file.flush(); print(time.time(), flush=True); time.sleep(0.3)
    file.seek(0); file.write("old"); file.flush(); print(time.time())
open("a.py", "r+").close()
"""
    (bench.project / "program.py").write_text(program)
    task = bench.launch(f"{sys.executable} -B program.py")
    bench.run("wait", task)
    found = wait_until(lambda: (seen := bench.json("effects", task))["possible_windows"] and seen, "the last look")
    (window,) = found["possible_windows"]
    damaged, repaired = map(float, bench.ok("output", task).split())
    assert window["paths"] == ["other.py"]
    assert damaged - 0.2 <= moment(window["opened_at"]) <= damaged
    assert abs(moment(window["closed_at"]) - repaired) < 0.2
    assert (found["windows"], found["changed"], found["rewritten"]) == ([], [], paths(bench, "other.py"))
    assert "1 file being written for a while, the same before and after" in found["summary"]
    assert "being written, the same before and after: from" in bench.ok("effects", task)


@pytest.mark.usefixtures("repo")
def test_file_written_with_the_same_content_is_rewritten(bench: Bench) -> None:
    """A file that is written with its old content is listed, because tools that compare times see a change."""
    found = touched(bench, "cp other.py kept; cp kept other.py; cp other.py kept; mv kept other.py; : >> a.py")
    assert (found["windows"], found["rewritten"]) == ([], paths(bench, "other.py"))
    assert (found["shared"], found["summary"]) == (True, "1 file written, same content")


@pytest.mark.usefixtures("repo")
def test_file_created_and_removed_by_the_task_is_not_listed(bench: Bench) -> None:
    """The effects list a created file that still exists, and no file that the task removed again."""
    elsewhere = bench.root / "elsewhere"
    found = touched(bench, f"echo x > made; echo y > gone; rm gone; echo z > {elsewhere}")
    assert (found["created"], found["changed"], found["windows"]) == (paths(bench, "made"), [], [])
    assert not str(elsewhere).startswith("/tmp") or found["outside"] == []  # noqa: S108


def test_gitignore_and_github_are_no_git_state(bench: Bench, repo: Path) -> None:
    """Changes of `.gitignore` and `.github` are listed as files, although the names begin with `.git`."""
    (repo / ".gitignore").write_text("x\n")
    found = touched(bench, "echo y >> .gitignore; mkdir .github; echo z > .github/z.yml")
    assert found["changed"] == paths(bench, ".gitignore")
    assert found["created"] == paths(bench, ".github/z.yml")
    assert found["git"] == []


def test_open_windows_are_unknown_outside_of_a_repository(bench: Bench, lasting: Path) -> None:
    """Without a repository, contents are not compared. So touched files are counted, and open windows are not known."""
    (lasting / "f").write_text("x\n")
    task = bench.launch(f"mv f away; echo done; {until(f'{bench.root}/go')}", "--cwd", str(lasting))
    wait_until(lambda: bench.ok("output", task).endswith("done"), "the first move")
    assert bench.ok("effects", task, "--open").startswith("not known: ")
    (bench.root / "go").touch()
    bench.run("wait", task)
    assert "2 files outside of any repository" in bench.ok("effects", task)
    assert bench.ok("effects", bench.launch("true"), "--open") == "no window is open now"


@pytest.mark.usefixtures("repo")
def test_files_outside_of_the_project_are_listed_only_when_changed(bench: Bench, lasting: Path) -> None:
    """Failed calls, temporary files and files that were opened but not written are not listed under `outside`."""
    (lasting / "there").mkdir()
    for file in ("written", "opened", "moved", "removed"):
        (lasting / file).write_text("x\n")
    text = (
        f"cd {lasting}; mkdir -p there; ! mkdir there; echo y > lock; rm lock; : >> opened; ! rmdir {lasting};"
        " echo z > written; mv moved into; rm removed; mkdir -p new/deep; echo n > new/deep/n"
    )
    task = bench.launch(f"{text}; echo done; {until(f'{bench.root}/go')}")
    expected = sorted(f"{lasting}/{file}" for file in ("written", "moved", "into", "removed", "new/deep/n"))
    wait_until(lambda: bench.ok("output", task).endswith("done"), "all of it")
    wait_until(lambda: bench.json("effects", task)["outside"] == expected, "a look while it runs")
    (bench.root / "go").touch()
    bench.run("wait", task)
    wait_until(lambda: bench.json("effects", task)["outside"] == expected, "the last look")
    assert "5 files outside of the project" in bench.json("effects", task)["summary"]


def test_drift_covers_written_files_outside_of_a_repository(bench: Bench, lasting: Path) -> None:
    """Without a repository, drift still names files that the task wrote and that changed afterwards."""
    task = bench.launch("echo x > kept; echo x > changed; echo x > removed", "--cwd", str(lasting))
    bench.run("wait", task)
    assert bench.show(task)["drift"]["moved"] is False
    (lasting / "changed").write_text("other\n")
    (lasting / "removed").unlink()
    (told,) = bench.show(task)["drift"]["details"]
    assert told == f"2 files it touched changed since ({lasting}/changed, {lasting}/removed)"


def test_connections_are_listed_with_address_and_port(bench: Bench) -> None:
    """A TCP connection that the task makes is listed with its address and port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = touched(
            bench, f"{sys.executable} -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'"
        )
    assert f"127.0.0.1:{port}" in found["remotes"]


CONNECTS = """
import ctypes, socket
def connect(name):
    with socket.socket(socket.AF_UNIX) as made:
        try:
            made.connect(name)
        except OSError as error:
            print(error)
there = socket.socket(socket.AF_UNIX)
there.bind("door")
there.listen()
for name in ("door", "nobody", "no/such/directory"):
    connect(name)
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
assert ctypes.CDLL(None).connect(one.fileno(), bytes(16), 16) == 0
"""


@pytest.mark.usefixtures("repo")
def test_connect_to_a_missing_socket_is_not_listed(bench: Bench) -> None:
    """A connect to a path without a socket, or without an address, is not listed as a connection.

    Most programs try a name service's socket, which most machines do not have.
    """
    program = bench.root / "connects.py"
    program.write_text(CONNECTS)
    found = touched(bench, f"{sys.executable} -B {program}")
    assert (found["remotes"], found["level"], found["gaps"]) == (["unix:door"], "observed", [])


TRIES = """
import os, socket, sys
for name in sys.argv[1:]:
    where = ("127.0.0.1", int(name)) if name.isdecimal() else name
    with socket.socket(socket.AF_INET if name.isdecimal() else socket.AF_UNIX) as one:
        one.connect_ex(where)
"""


def test_connections_are_summarized_as_made_or_tried(bench: Bench) -> None:
    """The observer does not see whether a server answered, so the summary says "made or tried"."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as door:
        port = server.getsockname()[1]
        door.bind(str(bench.project / "door"))
        door.listen()
        (bench.project / "link").symlink_to("door")
        (bench.root / "tries.py").write_text(TRIES)
        names = ("door", f"{bench.project}/link", "no/door", "/nowhere/socket", str(port))
        found = touched(bench, f"{sys.executable} -B {bench.root}/tries.py {' '.join(names)}")
    assert found["remotes"] == ["unix:door", f"unix:{bench.project}/link", f"127.0.0.1:{port}"]
    assert "connections, made or tried: unix:door, " in found["summary"]


SOCKETCALL = """
import ctypes, mmap, socket, struct, sys
page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, 7)  # where 32 bits reach
here = ctypes.addressof(ctypes.c_char.from_buffer(page))
def call(which, fd, address):
    page[512:512 + len(address)] = address
    page[256:268] = struct.pack("<3I", fd, here + 512, len(address))
    code = b"\\x53\\xb8\\x66\\0\\0\\0\\xbb" + struct.pack("<I", which) + b"\\xb9" + struct.pack("<I", here + 256)
    page[:len(code) + 4] = code + b"\\xcd\\x80\\x5b\\xc3"
    assert ctypes.CFUNCTYPE(ctypes.c_int)(here)() == 0
address = struct.pack("<H", 2) + struct.pack(">H", int(sys.argv[1])) + bytes([127, 0, 0, 1]) + bytes(8)
call(3, (one := socket.socket()).fileno(), address)
call(2, (two := socket.socket(socket.AF_UNIX)).fileno(), struct.pack("<H", 1) + b"dir/door\\0")
"""
"""A connect and a bind by socketcall, the one call that a 32-bit program uses for every socket operation."""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="only there 32-bit programs have that call")
@pytest.mark.usefixtures("repo")
def test_socket_calls_of_a_32_bit_program_are_reported(bench: Bench) -> None:
    """The effects list the address that a 32-bit program connects to, and the name that its bind creates."""
    program = bench.root / "socketcall.py"
    program.write_text(SOCKETCALL)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        task = bench.launch(f"{sys.executable} -B {program} {port}")
        bench.run("wait", task)
    shown, found = bench.show(task), bench.json("effects", task)
    if shown["exit_code"] == 128 + signal.SIGSEGV:
        pytest.skip("this kernel runs no 32-bit calls")
    assert shown["exit_code"] == 0, bench.ok("output", task)
    assert (found["remotes"], found["created"]) == ([f"127.0.0.1:{port}"], paths(bench, "dir/door"))
    assert (found["level"], found["gaps"]) == ("observed", [])


def test_commits_after_the_task_are_drift(bench: Bench, repo: Path) -> None:
    """If HEAD moves after the task has ended, its notice and the hand-off report the move as drift."""
    task = bench.launch("cat other.py", "--session", "s-1")
    bench.run("wait", task, "--no-ack")
    assert bench.json("inbox", "--session", "s-1", "--peek")["notices"][0]["drift"]["moved"] is False
    git(bench, "commit", "-q", "-a", "-m", "second")
    git(bench, "commit", "-q", "--allow-empty", "-m", "third")
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert notice["drift"]["moved"] is True
    assert "HEAD moved 2 commits" in notice["drift"]["summary"]
    assert "since then: HEAD moved" in notice["text"]
    assert "; HEAD moved 2 commits since it ran" in begin(bench, "s-1")["hand_off"]["text"]
    shown = bench.show(task)["git"]
    assert (shown["repo"], shown["head_before"]) == (str(repo), shown["head_after"])


@pytest.mark.usefixtures("repo")
def test_git_status_after_the_task_is_no_drift(bench: Bench) -> None:
    """`git status` writes into the git directory, which the task has touched, but this is no drift."""
    task = bench.launch("git stash push -q; sleep 0.3; git stash pop -q", "--session", "s-1")
    bench.run("wait", task, "--no-ack")
    wait_until(lambda: bench.show(task)["effects"]["unattributed"] is not None, "the last look")
    git(bench, "status")
    (notice,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert (notice["drift"]["moved"], notice["drift"]["summary"]) == (False, STILL)


@pytest.mark.usefixtures("repo")
def test_notices_name_two_tasks_that_changed_one_file_at_the_same_time(bench: Bench) -> None:
    """Each notice names the other task, the file and the time span. A task that ran later is not named."""
    one = bench.launch(f"echo one >> other.py; {until('go')}", "--session", "s-1")
    two = bench.launch(f"echo two >> other.py; echo two > two.py; {until('go')}", "--session", "s-1")
    wait_until(lambda: bench.json("effects", two)["created"], "both to write")
    (bench.project / "go").touch()
    bench.run("wait", one, two, "--no-ack")
    late = bench.launch("echo late >> other.py")
    bench.run("wait", late)
    told = {notice["task"]["id"]: notice for notice in bench.json("inbox", "--session", "s-1")["notices"]}
    (overlap,) = told[one]["overlap"]
    assert (overlap["task"], overlap["paths"]) == (two, paths(bench, "other.py"))
    assert f"overlap: task {one} changed other.py too while both ran, from " in told[two]["text"]


@pytest.mark.usefixtures("repo")
def test_restored_files_are_no_overlap_with_a_task_that_began_later(bench: Bench) -> None:
    """Files that the first task restored before the second one began are in no overlap, but its other changes are."""
    one = bench.launch(f"git stash push -q; git stash pop -q; echo one >> other.py; {until('go')}", "--session", "s-1")
    wait_until(lambda: bench.json("effects", one)["changed"] == paths(bench, "other.py"), "it to put them back")
    two = bench.launch("git stash push -q -- a.py; git stash pop -q; echo two >> other.py", "--session", "s-2")
    bench.run("wait", two, "--no-ack")
    (bench.project / "go").touch()
    bench.run("wait", one, "--no-ack")
    for session, other in (("s-1", two), ("s-2", one)):
        (ending,) = [each for each in bench.json("inbox", "--session", session)["notices"] if each["kind"] == "ended"]
        assert [(each["task"], each["paths"]) for each in ending["overlap"]] == [(other, paths(bench, "other.py"))]


def test_guard_names_the_task_with_a_window_on_a_path(bench: Bench, repo: Path) -> None:
    """`guard` names the task whose window covers a path, a directory above the path, or a file of a command."""
    task = bench.launch(f"git stash push -q; {until('go')}; git stash pop -q")
    window_on(bench, task, *NAMES)
    for path, held in (("dir/c.py", [task]), ("dir", [task]), ("other.py", []), (".", [task])):
        found = bench.json("guard", path)
        assert ([each["task"] for each in found["holders"]], found["clear"]) == (held, not held), path
    commands = {
        "git commit -am x": 1,
        "git status": 1,
        "cat dir/c.py": 1,
        "make test": 1,
        "cat other.py": 0,
        "ls /usr": 0,
    }
    for command, code in commands.items():
        assert bench.run("guard", "--exit-code", "--command", command).returncode == code, command
    assert f"task {task} has changed a.py, b.py, dir/c.py and not restored them" in bench.run("guard", "a.py").stdout
    assert bench.run("guard", "a.py", env={"OUTLIVE_TASK": task}).stdout == "clear\n"
    (repo / "go").touch()
    bench.run("wait", task)
    assert bench.run("guard", ".", "--exit-code").stdout == "clear\n"


def test_guard_finds_paths_that_a_command_names_indirectly(bench: Bench, repo: Path) -> None:
    """`guard` finds paths in wildcards, redirections, options and defaults of a command, and names each task once."""
    (repo / "link").symlink_to("other.py")
    git(bench, "add", "link")
    git(bench, "commit", "-q", "-m", "link", "link")
    task = bench.launch(f"git stash push -q; ln -sfn nowhere link; {until('go')}; git stash pop -q")
    window_on(bench, task, *NAMES, "link")
    away = bench.root / "away"
    away.mkdir()
    held = (
        *("cat dir/*.py", "sed -i s/a/b/ ?.py", "cat {a,other}.py", "wc -l **/*.py", "cat < a.py", "cat link"),
        *("while read x; do :; done < dir/c.py", "dd if=x of=a.py", "rg word", "grep -rn word", "ruff check"),
        *("echo $(<a.py)", "x=$(< dir/c.py)", "[ -f a.py ]", "if [[ -n $x && other.py -nt b.py ]]; then :; fi"),
        *(
            "docker run -v $PWD:/x alpine ls /x",
            "docker run -v./dir:/x:ro alpine ls",
            "podman run --volume=$(pwd):/x a",
        ),
        *("docker run --mount type=bind,src=dir,target=/x a", "docker build .", "grep -e word a.py", "sed -n 1p a.py"),
        *(f"(cd {away} && make) && {command}" for command in ("git log", "make test")),
        *(f"cd {away} && {command}" for command in (f"git -C{repo} log", f"env -C {repo} make", "cat ../project/a.*")),
    )
    for command in held:
        assert [each["task"] for each in bench.json("guard", "--command", command)["holders"]] == [task], command
    (repo / "mypy.ini").touch()
    for command in (
        *(
            "mypy --config-file mypy.ini",
            "ruff check --config=mypy.ini",
            "eslint -c mypy.ini",
            "flake8 --config mypy.ini",
        ),
        *("pyright -p mypy.ini", "gcc -o /x other.c", "javac -d out Other.java", "tsc --outDir dist"),
        *("go build -o /x/y ./cmd", "esbuild other.ts --bundle --outfile=y.js", "mkdocs build -d /x/y"),
        *("rg --max-columns 9 /api/users", "rg -j 4 word", "du -d 1"),
    ):
        assert [each["task"] for each in bench.json("guard", "--command", command)["holders"]] == [task], command
    for command in (
        *(
            f"ls {away}/*.log",
            f"ls -la {away}/nothing",
            f"du -sh {away}/$X",
            f"rg word {away}/*.txt",
            "ls /var/log/*.gz",
        ),
        *('outlive wait "$ID"', "outlive output $T --tail 20", "outlive result $(cat /etc/id)"),
        "cat o*.py",
        "rg word other.py",
        "grep word",
        "awk '{print $1}' other.py",
        "ls -la other.py",
        "[ a.py = b.py ]",
        "grep a.py other.py",
        "echo a.py",
        "docker run -v cache:/x alpine ls a",
        f"git -C {away} status",
        f"git --git-dir={away}/.git --work-tree={away} status",
        f"npm --prefix {away} ci",
        f"git -c a.b=c -C ../{away.name} commit -C HEAD~1",
        f"cd {away} && git pull && make test",
        "ssh host git pull",
        "docker exec web git log",
    ):
        assert bench.json("guard", "--command", command)["clear"], command
    assert not bench.json("guard", "link")["clear"]
    assert len(bench.json("guard", "--command", "cp a.py /")["holders"]) == 1
    for command in (
        f"make --directory={repo}",
        f"GIT_WORK_TREE={repo} git status",
        f"export GIT_WORK_TREE={repo}; git status",
        f"env GIT_WORK_TREE={repo} git status",
        f"GIT_DIR={repo}/.git git log",
        f"git --git-dir={repo}/.git log",
        f"git -C / -C {repo} log",
        f"env --chdir={repo} git log",
        f"npm --prefix {repo} ci",
    ):
        elsewhere = bench.json("guard", "--command", command, "--cwd", str(away))
        assert [each["task"] for each in elsewhere["holders"]] == [task], command
    (repo / "go").touch()
    bench.run("wait", task)


def test_guard_covers_paths_through_a_link_that_a_task_changed(bench: Bench, repo: Path) -> None:
    """`guard` names the task for each path through a changed link, and no task for the same file by its own path."""
    for name in ("one", "two", "two/deep"):
        (repo / name).mkdir()
        (repo / name / "f").write_text(f"{name}\n")
    (repo / "two" / "deep" / "back").symlink_to("../../one")
    (repo / "now").symlink_to("one")
    (repo / "around").symlink_to("now/../now")
    (repo / "circle").symlink_to("circle")
    (bench.root / "outside").symlink_to("project/now")
    git(bench, "add", ".")
    git(bench, "commit", "-q", "-m", "links")
    task = bench.launch(f"ln -sfn two now; {until('go')}; ln -sfn one now")
    window_on(bench, task, "now")
    for words in (
        *(("now",), ("now/f",), ("now/deep/back/f",), ("around/f",), (f"{bench.root}/outside/f",), ("now/../now/f",)),
        *(("--command", command) for command in ("cat now/f", "cat around/*", "cd now && cat f", "cd now; ls")),
        ("--command", f"cd {bench.root}/outside && make", "--cwd", "/"),
    ):
        assert [each["task"] for each in bench.json("guard", *words)["holders"]] == [task], words
    for path in ("one/f", "two/f", "two/deep/back/f", "circle/f", "nowhere/f", "now.py", "now/.."):
        assert bench.json("guard", path)["clear"] == (path != "now/.."), path
    (repo / "go").touch()
    bench.run("wait", task)
    assert bench.json("guard", "now/f", "around/f")["clear"]


def test_guard_checks_the_redirections_of_remote_commands(bench: Bench, repo: Path) -> None:
    """`guard` checks files that the local shell redirects, and not the paths that a remote command names."""
    task = bench.launch(f"git stash push -q; {until('go')}; git stash pop -q")
    window_on(bench, task, *NAMES)
    for command in (
        *(
            "docker exec -i db psql < a.py",
            "ssh h 'cat > x' < a.py",
            "ssh h bash -s < dir/c.py",
            "sudo -n tee x < a.py",
        ),
        *("kubectl exec -i pod -- tee x < a.py", "bash -c 'wc -l' < a.py", "xargs -a a.py echo", "timeout 9 wc < a.py"),
        *("parallel --arg-file=dir/c.py echo", "docker compose exec -T db sh -c 'psql x' < a.py", "ssh h < a.py"),
    ):
        assert [each["task"] for each in bench.json("guard", "--command", command)["holders"]] == [task], command
    for command in (
        *("docker exec -i db psql < other.py", "ssh h 'cat a.py' < other.py", "xargs -a other.py echo a.py"),
        *("kubectl exec -i pod -- cat a.py < other.py", "ssh h 'wc < a.py'", "docker exec db sh -c 'cat < a.py'"),
    ):
        assert bench.json("guard", "--command", command)["clear"], command
    (repo / "go").touch()
    bench.run("wait", task)


def test_guard_finds_files_in_the_arguments_of_clients_and_databases(bench: Bench, repo: Path) -> None:
    """`guard` finds files such as `@a.py` for curl, `file://` addresses, and files in commands of database shells."""
    task = bench.launch(f"git stash push -q; {until('go')}; git stash pop -q")
    window_on(bench, task, *NAMES)
    for command in (
        *("curl -d @a.py https://x", "curl -d@a.py https://x", "curl --data-binary @dir/c.py https://x"),
        *("curl --json @a.py https://x", "curl --json=@a.py https://x", "curl -F f=@a.py https://x"),
        *("curl -F 'f=@a.py;type=text/plain' https://x", "curl -F 'f=<a.py' https://x", "http POST x @a.py"),
        *("http POST x f@dir/c.py", f"curl file://{repo}/a.py", f"curl file://localhost{repo}/a.py"),
        *("aws lambda update-function-code --zip-file fileb://a.py", "psql -c '\\i a.py'", "sqlite3 x.db '.read a.py'"),
        *("sqlite3 x.db '.import --csv a.py t'", "psql -c \"\\copy t from 'a.py' csv\"", "psql <<'E'\n\\i dir/c.py\nE"),
        *("duckdb -c \"select * from 'a.py'\"", "mysql -e 'source a.py'"),
    ):
        assert [each["task"] for each in bench.json("guard", "--command", command)["holders"]] == [task], command
    for command in (
        *("curl -d @other.py https://x", "curl -d a.py@x https://x", "curl https://x/a.py", "http x f@other.py"),
        *("rsync me@dir:/x other.py", "psql -c 'select a from dir'", "psql -c 'select 1 from \"dir\"'"),
        *("sqlite3 x.db .schema", "echo '.read a.py'", "cat > x <<'E'\n\\i a.py\nE", "curl file:///usr/a.py"),
    ):
        assert bench.json("guard", "--command", command)["clear"], command
    (repo / "go").touch()
    bench.run("wait", task)


def test_guard_is_not_clear_for_commands_that_publish_or_install_the_project(bench: Bench, repo: Path) -> None:
    """`guard` names the task for commands that publish or install files of the project, and not for queries."""
    task = bench.launch(f"git stash push -q; {until('go')}; git stash pop -q")
    window_on(bench, task, *NAMES)
    for command in (
        *("npm publish", "npm ci", "cargo publish", "uv sync", "docker compose up -d", "cmake --build build"),
        *("docker compose up -d web", "docker compose run web", "docker-compose build", "pytest --collect-only"),
        *(
            "pytest --co -q",
            "terraform plan",
            "terraform validate",
            "heroku container:push web",
            "go vet",
            "tsc --noEmit",
        ),
        *("ls", "find -name x", "tree -L 1", "flake8", "eslint", "biome check", "mypy"),
    ):
        assert [each["task"] for each in bench.json("guard", "--command", command)["holders"]] == [task], command
    (away := bench.root / "away").mkdir()
    for command in (
        *("npm view x", "docker compose logs", "docker rm x", "gh pr comment 1 -b x", f"cd {away}; npm ci"),
        *("heroku restart", "terraform output", "go version", "npm publish --help", "shuf", f"mypy {away}", "sar 1 5"),
    ):
        assert bench.json("guard", "--command", command)["clear"], command
    (repo / "go").touch()
    bench.run("wait", task)


def test_guard_is_not_clear_for_commands_that_migrate_a_database(bench: Bench, repo: Path) -> None:
    """`guard` names the task for commands that read the project's migrations, and not for queries."""
    task = bench.launch(f"git stash push -q; {until('go')}; git stash pop -q")
    window_on(bench, task, *NAMES)
    for command in (
        *("alembic upgrade head", "npx prisma migrate deploy", "bundle exec rails db:migrate", "flask db upgrade"),
        *("python manage.py migrate", "php artisan migrate", "mix ecto.migrate", "supabase db push"),
        *("dotnet ef database update", "drizzle-kit push", "gcloud app deploy"),
    ):
        assert [each["task"] for each in bench.json("guard", "--command", command)["holders"]] == [task], command
    for command in ("alembic current", "supabase status", "createdb shop", "psql -c 'drop table a'", "gcloud info"):
        assert bench.json("guard", "--command", command)["clear"], command
    (repo / "go").touch()
    bench.run("wait", task)


def test_guard_names_words_of_a_command_that_it_cannot_read(bench: Bench, repo: Path) -> None:
    """If a variable may stand for a file of a window, `guard` names the variable and the task."""
    unreadable = {
        "cat $FILE": ["$FILE"],
        "echo $(<$FILE)": ["$FILE"],
        'while read -r x; do cat "$x"; done < names': ["$x"],
        "xargs cat < names": ["…"],
        "wc -l < $FILE": ["$FILE"],
        "grep -n word --file=$FILE other.py": ["--file=$FILE"],
        "cat dir/$NAME": ["dir/$NAME"],
        "sudo -n env A=1 cat $FILE": ["$FILE"],
        "bash -c 'cat $1' _ a.py": ["$1"],
        '[ -f "$FILE" ]': ["$FILE"],
        "cd $PLACE && cat c.py": ["$PLACE"],
        "cd $PLACE && git status": ["$PLACE"],
        "git -C $PLACE status": ["$PLACE"],
        'bash -c "cat $FILE"': ["all of it", "$FILE"],
        "cat $A $B $C $D": ["$A", "$B", "$C"],
        "rm $FILE": ["$FILE"],
        "echo x > $FILE": ["$FILE"],
        "sed 'w out' other.py": ["…"],
        'grep "$P" "$FILE"': ["$FILE"],
        "grep -e $P $FILE": ["$FILE"],
        "grep -f $FILE other.py": ["$FILE"],
        "sort names | xargs grep": ["…"],
        "docker run -v $DIR:/x alpine ls": ["$DIR:/x"],
    }
    for command in unreadable:
        assert bench.json("guard", "--command", command)["clear"], command
    task = bench.launch(f"git stash push -q; {until('go')}; git stash pop -q")
    window_on(bench, task, *NAMES)
    for command, words in unreadable.items():
        found = bench.json("guard", "--command", command)
        assert [(each["task"], each["unread"]) for each in found["holders"]] == [(task, words)], command
        assert not found["clear"], command
    (held,) = bench.json("guard", "--command", "cat $FILE a.py")["holders"]
    assert held["unread"] == [], "one word of it is held for sure"
    (repo / "lib").mkdir()
    for command in (
        *("echo $X", "kill $!", "sleep $N", "export A=$B", "A=$(date)", "cat lib/$NAME", "curl -s https://x/$ID"),
        *(
            "cat '$FILE' other.py",
            "cat <<E\n$X\nE",
            "T=$(mktemp); cat $T",
            "cat <(echo x)",
            "cd $PLACE && echo",
            "[ $? = 0 ]",
        ),
        *('grep "$P" other.py', "grep -c --include=$P -e $Q other.py", "sed -n ${N}p other.py", "head -n $N other.py"),
        *('awk -v n=$N "$SCRIPT" other.py', "find lib -name $P", "jq $QUERY other.py", "tail -n$N other.py"),
        *("for x in other.py lib; do ls $x; done", "cat $HOME/x", "ssh host 'cat $X'"),
    ):
        assert bench.json("guard", "--command", command)["clear"], command
    said = bench.run("guard", "--exit-code", "--command", "cat $FILE")
    assert said.returncode == 1
    assert said.stdout.startswith(
        "cannot tell whether the command touches this, because $FILE cannot be interpreted:"
        f" task {task} has changed a.py, b.py"
    )
    (repo / "go").touch()
    bench.run("wait", task)
    assert bench.json("guard", "--command", "cat $FILE")["clear"]


@pytest.mark.parametrize("is_first", [False, True])
def test_guard_holds_the_stash_of_a_task_in_every_worktree(bench: Bench, repo: Path, *, is_first: bool) -> None:
    """All worktrees share one stash, so `guard` names the task for `git stash pop` in another worktree."""
    linked = bench.root / "linked"
    git(bench, "worktree", "add", "-q", str(linked))
    if not is_first:
        git(bench, "stash", "push", "-q", "other.py", "a.py")
    task = bench.launch(f"git stash push -q; {until('go')}; git stash pop -q")
    wait_until(lambda: bench.json("effects", task, "--open")["windows"], "the stash")
    for command in ("git stash pop", "git -c a.b=c stash push -m x", f"cd /; git -C {linked} stash drop"):
        (holder,) = bench.json("guard", "--command", command, cwd=linked)["holders"]
        assert (holder["task"], holder["by"]) == (task, "git stash push -q"), command
    assert f"task {task} has changed the stash and not restored it, for" in bench.ok(
        "guard", "--command", "git stash pop", cwd=linked
    )
    for words in (("--command", "git commit -am x"), ("--command", "cat *"), ("a.py",), (".",)):
        assert bench.json("guard", *words, cwd=linked)["clear"], words
    assert "the stash" not in json.dumps([begin(bench, "s-2"), bench.json("guard", "a.py")])
    (repo / "go").touch()
    bench.run("wait", task)
    assert bench.json("guard", "--command", "git stash pop", cwd=linked)["clear"]
    assert bench.json("effects", task)["paths_changed"] == 0


@pytest.mark.parametrize("is_linked", [False, True])
def test_guard_holds_a_switched_branch_for_git_commands_only(bench: Bench, repo: Path, *, is_linked: bool) -> None:
    """While a task is on another branch, `guard` names the task for git commands, and not for files."""
    place = repo
    if is_linked:
        place = bench.root / "linked"
        git(bench, "worktree", "add", "-q", str(place))
    (place / "a.py").write_text("not committed\n")
    task = bench.launch(f"git checkout -q -b fix; {until('go')}; git checkout -q -", cwd=place)
    (held,) = wait_until(lambda: bench.json("effects", task, "--open", cwd=place)["windows"], "the other branch")
    head = f"{repo}/.git/worktrees/linked/HEAD" if is_linked else ".git/HEAD"
    assert (held["scope"], held["paths"], held["by"]) == (str(place), [head], "git checkout -q -b fix")
    assert f"task {task} has changed HEAD and not restored it, for" in bench.ok(
        "guard", "--command", "git commit -am x", cwd=place
    )
    assert bench.ok("effects", task, "--open", cwd=place).startswith("window of HEAD, open for")
    for words in (("--command", "make test"), ("--command", "rg word"), ("a.py",), (".",)):
        assert bench.json("guard", *words, cwd=place)["clear"], words
    assert bench.json("guard", "--command", "git log", "--cwd", str(repo))["clear"] is is_linked
    handed = begin(bench, "s-2", cwd=place)["hand_off"]
    assert [each["task"] for each in handed["open_windows"]] == [task]
    (place / "go").touch()
    bench.run("wait", task)
    assert bench.json("guard", "--command", "git commit -am x", cwd=place)["clear"]
    assert bench.json("effects", task)["windows"] == []


def test_window_in_a_nested_worktree_is_not_held_in_the_tree_around_it(bench: Bench, repo: Path) -> None:
    """`guard` names a task's window in a nested worktree for commands there, and not for commands around it."""
    inner = repo / "worktrees" / "one"
    git(bench, "worktree", "add", "-q", str(inner))
    task = bench.launch(f"mv a.py b.py; {until('go')}; mv b.py a.py", cwd=inner)
    wait_until(lambda: bench.json("effects", task, "--open", cwd=inner)["windows"], "the move")
    for command in ("git commit -am x", "make test"):
        assert bench.json("guard", "--command", command)["clear"], command
        assert not bench.json("guard", "--command", command, cwd=inner)["clear"], command
    for words in (("worktrees/one/a.py",), ("--command", f"cat {inner}/a.py"), ("--command", f"git -C {inner} log")):
        assert not bench.json("guard", *words)["clear"], words
    assert begin(bench, "s-1")["hand_off"]["open_windows"] == []
    assert [each["task"] for each in begin(bench, "s-2", cwd=inner)["hand_off"]["open_windows"]] == [task]
    (inner / "go").touch()
    bench.run("wait", task)


def test_guard_names_files_that_a_failed_task_left_changed_until_they_are_restored(bench: Bench, repo: Path) -> None:
    """`guard` names a task that died before `git stash pop`. It does not name a task that succeeded."""
    died = bench.launch("git stash push -q; kill -9 $$")
    bench.run("wait", died)
    assert f"task {died} has ended and left a.py, b.py, dir/c.py changed" in bench.run("guard", "a.py").stdout
    (holder,) = bench.json("guard", "--command", "git commit -am x")["holders"]
    assert (holder["task"], holder["left"]) == (died, True)
    git(bench, "checkout", "stash@{0}", "--", "a.py")
    assert bench.json("guard", "a.py")["clear"]
    (held,) = bench.json("effects", died, "--open")["windows"]
    assert held["paths"] == ["b.py", "dir/c.py"]
    git(bench, "checkout", "stash@{0}", "--", ".")
    assert bench.json("guard", ".")["clear"]
    begin(bench, "s-1")
    edited = bench.launch("echo more >> other.py", "--session", "s-1")
    bench.run("wait", edited, "--no-ack")
    assert bench.json("guard", "other.py")["clear"]
    assert (repo / "other.py").read_text() == "old\nmore\n"


@pytest.mark.usefixtures("repo")
def test_window_in_a_nested_repository_is_held_there(bench: Bench) -> None:
    """`guard` names the task for a file of a nested repository, although the task runs in the tree around it."""
    inner = Worktree(bench.project / "inner")
    inner.commit(x="old\n")
    task = bench.launch(f"echo held > inner/x; {until('go')}; echo old > inner/x")
    window_on(bench, task, "inner/x")
    for words in (("inner/x",), ("--command", "git add .", "--cwd", str(inner.path))):
        assert [each["task"] for each in bench.json("guard", *words)["holders"]] == [task]
    handed = begin(bench, "s-in", "--cwd", str(inner.path))["hand_off"]
    assert [each["task"] for each in handed["open_windows"]] == [task]
    (bench.project / "go").touch()
    bench.run("wait", task)
    assert bench.json("guard", "inner/x")["clear"]


@pytest.mark.usefixtures("repo")
def test_window_in_another_tree_is_named_with_its_directory(bench: Bench) -> None:
    """`guard`, `gate` and the hand-off name the directory, because this project has a file of the same name."""
    inner = Worktree(bench.project / "inner")
    inner.commit(**{"a.py": "old\n"})
    begin(bench, "s-1")
    task = bench.launch(f"cd inner; echo held > a.py; {until('../go')}; echo old > a.py", "--session", "s-1")
    window_on(bench, task, "a.py")
    told = f"task {task} has changed a.py in {inner.path} and not restored it, for "
    asked = (bench.ok("guard", "--command", command) for command in ("git add .", "cat inner/a.py"))
    for text in (*asked, bench.ok("gate", "--session", "s-1"), bench.ok("hand-off", "--session", "s-1")):
        assert told in text
    assert "has changed a.py and not restored it, for " in bench.ok("guard", "a.py", "--cwd", str(inner.path))
    assert bench.ok("guard", "a.py").strip() == "clear"
    (bench.project / "go").touch()
    bench.run("wait", task)


@pytest.mark.parametrize(
    "text",
    [
        *("cd {0} && {1}", "git -C {0} stash -q; cd '{0}'; {2}", "(cd project/dir;cd ..; {1})"),
        *("cd $THERE/dir; cd ..; {1}", "sh there"),
    ],
)
def test_window_is_held_in_the_repository_that_the_command_enters(bench: Bench, repo: Path, text: str) -> None:
    """`guard` names a task launched above the repository that enters it by its text, a variable or a script."""
    rest = f"{until('go')}; git stash pop -q"
    bench.env["THERE"] = str(repo)
    (bench.root / "there").write_text(f"cd {repo}; git stash push -q; {rest}\n")
    task = bench.launch(text.format(repo, f"git stash push -q; {rest}", rest), cwd=bench.root)
    window_on(bench, task, *NAMES)
    assert [each["task"] for each in bench.json("guard", "a.py")["holders"]] == [task]
    assert [each["task"] for each in begin(bench, "s-1")["hand_off"]["open_windows"]] == [task]
    (repo / "go").touch()
    bench.run("wait", task)
    found = bench.json("effects", task)
    assert (found["restored"], found["changed"], found["outside"]) == (paths(bench, *NAMES), [], [])


EXCHANGE = "import ctypes; assert ctypes.CDLL(None).renameat2(-100, b'{}', -100, b'{}', 2) == 0"


@pytest.mark.parametrize(("one", "other", "gaps"), [("dir", "dir2", 1), ("a.py", "b.py", 0)])
def test_directories_that_exchange_names_are_a_gap(bench: Bench, repo: Path, one: str, other: str, gaps: int) -> None:
    """Writes into exchanged directories cannot be followed, so they are a gap. Exchanged files are followed."""
    shutil.copytree(repo / "dir", repo / "dir2")
    exchange = f"{sys.executable} -c {shlex.quote(EXCHANGE.format(one, other))}"
    found = touched(bench, f"{exchange}; echo x >> {'dir/c.py' if gaps else one}; {exchange}")
    assert (found["level"], len(found["gaps"])) == (("partial", 1) if gaps else ("observed", 0))


def test_large_file_with_equal_size_and_time_is_not_restored(bench: Bench, repo: Path) -> None:
    """A large file that was written is changed with a gap, although its size and time are the old ones.

    A large file that was only moved away and back is restored.
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


@pytest.mark.usefixtures("repo")
@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("git notes add -m x", "notes commits"),
        ("git update-ref refs/mine/x HEAD", "ref mine/x"),
        ("git replace -f HEAD $(git commit-tree -m x HEAD^{tree})", "replacement of"),
        ("echo true > .git/hooks/pre-commit", "hook pre-commit"),
        ("echo x > .git/info/exclude", "info/exclude"),
        ("git config extensions.worktreeConfig true; git config --worktree a.b c", "config.worktree"),
    ],
)
def test_every_kind_of_shared_git_state_is_reported(bench: Bench, text: str, what: str) -> None:
    """Notes, other refs, replacements, hooks and configuration are reported, as branches and tags are."""
    found = touched(bench, text)
    assert what in " ".join(each["what"] for each in found["git"])
    assert found["shared"]


@pytest.mark.usefixtures("repo")
@pytest.mark.parametrize("program", ["/nonexistent/prettier", "a.py", "dir", "a.py/prettier"])
def test_failed_exec_does_not_change_the_command_of_a_window(bench: Bench, program: str) -> None:
    """After an exec that failed, a write is attributed to the program that continues to run."""
    script = "import os, sys\ntry:\n  os.execv(sys.argv[1], ['prettier', '--write', '.'])\nexcept OSError:\n  pass\n"
    (bench.root / "write.py").write_text(script + "open('other.py', 'w').write('x')\n")
    (window,) = touched(bench, f"exec {sys.executable} {bench.root}/write.py {program}")["windows"]
    assert "write.py" in window["by"]
    assert "--write" not in window["by"]


@pytest.mark.usefixtures("repo")
@pytest.mark.parametrize("text", ["git gc -q", "git pack-refs --all --prune", "git branch one; git gc -q"])
def test_packed_branches_are_not_reported_as_moved(bench: Bench, text: str) -> None:
    """`git gc` and `git pack-refs` remove the files of branches, but the branches stay where they were."""
    git(bench, "tag", "v1")
    found = {each["what"] for each in touched(bench, text)["git"]}
    assert found == {"packed-refs", *(["branch one"] if "one" in text else [])}


def test_effects_in_other_repositories_name_the_repository(bench: Bench, repo: Path) -> None:
    """A commit and a push in other repositories are reported with their paths. A new clone is not reported."""
    lib, bare, clone = (bench.root / name for name in ("lib", "bare.git", "clone"))
    git(bench, "clone", "-q", str(repo), str(lib))
    git(bench, "clone", "-q", "--bare", str(repo), str(bare))
    script = f"cd {lib}; echo new > a.py; git commit -qam x; git push -q {bare} HEAD; git clone -q {bare} {clone}"
    (bench.root / "script").write_text(script)
    task = bench.launch(f"sh {bench.root}/script")
    bench.run("wait", task)
    found = bench.json("effects", task)
    branch = git(bench, "branch", "--show-current")
    assert found["changed"] == [str(lib / "a.py")]
    assert found["created"] == found["outside"] == []
    assert {f"branch {branch} of {lib}", f"branch {branch} of {bare}"} <= {each["what"] for each in found["git"]}
    assert f"1 of these in {lib}" in found["summary"]
    assert str(clone) not in json.dumps({**found, "declared": None, "git": [each["what"] for each in found["git"]]})


def test_second_attempt_keeps_the_window_of_the_first_in_another_repository(bench: Bench, repo: Path) -> None:
    """Files that the first attempt stashed in a repository outside its text are reported until they are restored."""
    again = bench.root / "again"
    text = f"[ -e {again} ] && exit 0; touch {again}; cd $THERE; git stash push -q; exit 1"
    bench.env["THERE"] = str(repo)
    task = bench.launch(text, "--retries", "1", cwd=bench.root)
    bench.run("wait", task)
    (window,) = bench.json("effects", task)["windows"]
    assert (window["scope"], window["closed_at"]) == (str(repo), None)


def test_guard_takes_paths_or_a_command(bench: Bench) -> None:
    """`guard` exits with 2 if it gets both paths and a command, or neither."""
    for words in (("guard",), ("guard", "a", "--command", "ls")):
        refused = bench.run(*words)
        assert (refused.returncode, "guard takes paths, or one command" in refused.stderr) == (2, True)


def told_while_running(bench: Bench, session: str) -> list[dict[str, Any]]:
    """Return the first notices that a session gets."""
    wait_until(lambda: bench.json("inbox", "--session", session, "--peek")["notices"], "to be told")
    return list(bench.json("inbox", "--session", session)["notices"])


def test_two_sessions_are_notified_when_their_tasks_write_in_one_tree(bench: Bench, repo: Path) -> None:
    """Each session gets one notice when the overlap begins. The notice of the ending then names the files."""
    one = bench.launch(f"echo 1 >> a.py; echo 1 >> other.py; {until('go')}", "--session", "s-1")
    wait_until(lambda: bench.json("effects", one)["changed"], "the first to write")
    assert bench.json("inbox", "--session", "s-1", "--peek")["notices"] == []
    two = bench.launch(f"echo 2 >> other.py; {until('go')}", "--session", "s-2")
    for session, own, other in (("s-1", one, two), ("s-2", two, one)):
        (notice,) = told_while_running(bench, session)
        assert (notice["kind"], notice["task"]["id"], notice["task"]["state"]) == ("overlap", own, "running")
        assert [each["task"] for each in notice["overlap"]] == [other]
        assert f"{own} WRITES IN THE SAME TREE as {other}" in notice["text"]
        assert bench.json("inbox", "--session", session)["notices"] == []
    (repo / "go").touch()
    bench.run("wait", one, two, "--no-ack")
    (ending,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert (ending["kind"], ending["overlap"][0]["paths"]) == ("ended", paths(bench, "other.py"))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_tasks_in_and_around_a_nested_repository_overlap_when_both_write_there(
    bench: Bench, repo: Path, order: tuple[int, int]
) -> None:
    """A task that writes only to files around the nested repository does not overlap with the task in it."""
    inner = Worktree(repo / "inner")
    inner.commit(x="old\n")

    def writer(name: str, session: str, cwd: Path) -> str:
        task = bench.launch(f"echo x >> {name}; {until(f'{repo}/go')}", "--session", session, "--cwd", str(cwd))
        wait_until(lambda: bench.json("effects", task)["changed"], "its write")
        return task

    other = writer("other.py", "s-0", repo)
    places = (("inner/x", "s-1", repo), ("x", "s-2", inner.path))
    tasks = {places[which][1]: writer(*places[which]) for which in order}
    for session, own in tasks.items():
        notices = told_while_running(bench, session)
        found = {each["task"]: each["paths"] for notice in notices for each in notice["overlap"]}
        assert {notice["task"]["id"] for notice in notices} == {own}
        (beside,) = set(tasks.values()) - {own}
        assert found[beside] == paths(bench, "inner/x")
        assert (other in found) == (session == "s-1")
    (repo / "go").touch()
    bench.run("wait", other, *tasks.values(), "--no-ack")


def test_session_gets_one_notice_when_two_of_its_tasks_overlap(bench: Bench, repo: Path) -> None:
    """The notice names the two tasks that change old files, and not the tasks that only create new files."""
    launch = [f"echo {n} >> {name}; {until('go')}" for n, name in enumerate(("a.py", "b.py", "new1", "new2"))]
    tasks = [bench.launch(text, "--session", "s-1") for text in launch]
    wait_until(lambda: bench.json("inbox", "--session", "s-1", "--peek")["notices"], "to be told")
    wait_until((repo / "new2").exists, "the last to write")
    (notice,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert notice["task"]["id"] in tasks[:2]
    assert "changed other files of this tree while both ran, from " in notice["text"]
    assert "\n  running since " in notice["text"]
    (repo / "go").touch()
    bench.run("wait", *tasks, "--no-ack")
    found = bench.json("inbox", "--session", "s-1")["notices"]
    assert sorted(each["kind"] for each in found) == ["ended"] * 4
    assert sum(len(each["covers"]) for each in found) == 1


def test_overlap_names_files_that_the_session_edited_itself(bench: Bench, repo: Path) -> None:
    """The notice names a file that the session edited while the task ran, if the task changed the same file."""
    assert bench.json("session", "edited", "--session", "s-1", "a.py") == {"edited": paths(bench, "a.py")}
    task = bench.launch(f"echo 1 >> a.py; echo 1 >> b.py; {until('go')}", "--session", "s-1")
    wait_until(lambda: len(bench.json("effects", task)["changed"]) == 2, "it to write")
    bench.run("session", "edited", "--session", "s-1", "b.py", "dir/c.py")
    (repo / "go").touch()
    bench.run("wait", task, "--no-ack")
    (ending,) = bench.json("inbox", "--session", "s-1")["notices"]
    (overlap,) = ending["overlap"]
    assert (overlap["task"], overlap["session"], overlap["paths"]) == (None, "s-1", paths(bench, "b.py"))
    assert "session s-1 edited b.py itself" in ending["text"]


def test_overlap_covers_edits_during_an_earlier_attempt(bench: Bench, repo: Path) -> None:
    """The notice of the ending names an edit that another session made during the first attempt."""
    text = f"echo 1 >> a.py; [ -e go ] || {{ {until('go')}; exit 1; }}"
    task = bench.launch(text, "--retries", "1", "--session", "s-1")
    wait_until(lambda: bench.json("effects", task)["changed"], "it to write")
    bench.ok("session", "edited", "--session", "s-2", "a.py")
    (repo / "go").touch()
    wait_until(lambda: bench.show(task)["state"] == "succeeded", "the second try")
    (ending,) = [each for each in bench.json("inbox", "--session", "s-1")["notices"] if each["kind"] == "ended"]
    assert [(each["session"], each["paths"]) for each in ending["overlap"]] == [("s-2", paths(bench, "a.py"))]


def test_changes_by_others_after_a_restore_are_unattributed(bench: Bench, repo: Path) -> None:
    """Files that the task stashed and popped, and that another process changes later, are not the task's changes."""
    text = f"git stash push -q; git stash pop -q; {until('go')}; sed -i s/old/new/ other.py"
    task = bench.launch(text, "--session", "s-1")
    wait_until(lambda: len(bench.json("effects", task)["restored"]) == 3, "the pop")
    (repo / "a.py").write_text("mine\n")
    (repo / "b.py").write_text("mine\n")
    assert bench.ok("guard", "a.py", "b.py").strip() == "clear"
    (repo / "go").touch()
    bench.run("wait", task, "--no-ack")
    found = bench.json("effects", task)
    assert (found["restored"], found["changed"]) == (paths(bench, *NAMES), paths(bench, "other.py"))
    others = [(each["path"], each["how"]) for each in found["unattributed"]]
    assert [(path, "changed") for path in paths(bench, "a.py", "b.py")] == others[:2]
    (notice,) = bench.json("inbox", "--session", "s-1")["notices"]
    assert "LEFT other.py not as it found it (for" in notice["text"].splitlines()[1]


@pytest.mark.parametrize(
    "begin",
    [
        f"(exec >>log; touch up; {until('go')}; echo served; touch done) & {until('up')}; echo x >log; ls; : >log",
        f"echo x >log; sh -c 'exec >log; ({until('go')}; echo served; touch done) &'",
    ],
    ids=["another has it open", "a child has it open"],
)
def test_write_through_an_open_descriptor_after_a_truncation_is_attributed_to_the_task(
    bench: Bench, repo: Path, begin: str
) -> None:
    """If another program empties the open log of the task's server, the log is still a change by the task."""
    (repo / "log").touch()
    task = bench.launch(f"{begin}; /bin/true; touch go; {until('done')}")
    bench.run("wait", task, "--no-ack")
    assert (repo / "log").read_text() == "served\n"
    found = bench.json("effects", task)
    assert (found["restored"], found["changed"]) == ([], paths(bench, "log"))
    assert paths(bench, "log")[0] not in [each["path"] for each in found["unattributed"] or ()]


@pytest.mark.parametrize(("begin", "is_open"), [("exec >>log", True), ("echo x >>log", False)])
def test_file_open_in_a_process_left_running_is_a_gap(bench: Bench, repo: Path, begin: str, is_open: bool) -> None:
    """If a process left running has a file open for writing, the effects say that later writes are not reported."""
    (repo / "log").touch()
    served = f"{begin}; touch up; {until('go')}; echo served; touch down"
    task = bench.launch(f"({served}) </dev/null 2>/dev/null & {until('up')}")
    bench.run("wait", task, "--no-ack")
    words = "1 file is still open for writing: what is written to it after its end is not told"
    wait_until(lambda: bench.json("effects", task)["gaps"] == [words] * is_open, "what is open")
    (repo / "go").touch()
    wait_until((repo / "down").exists, "the server")
    found = bench.json("effects", task)
    assert (found["level"], found["gaps"]) == (("partial", [words]) if is_open else ("observed", []))


def test_overlap_covers_tasks_of_two_projects(bench: Bench, repo: Path, tmp_path: Path) -> None:
    """The overlap names a task that runs in another project, declares this one and changes the same file."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    begin(bench, "s-1")
    here = bench.launch(f"echo 1 > a.py; {until('go')}", "--session", "s-1")
    wait_until(lambda: bench.json("effects", here)["changed"], "the first write")
    text = f"echo 2 > {repo}/a.py; {until(f'{repo}/go')}"
    there = bench.launch(text, "--cwd", str(elsewhere), "--touches", str(repo))
    wait_until(lambda: bench.json("effects", there)["changed"], "the second write")
    (repo / "go").touch()
    bench.run("wait", here, there, "--no-ack")
    (ending,) = [each for each in bench.json("inbox", "--session", "s-1")["notices"] if each["kind"] == "ended"]
    assert [(each["task"], each["paths"]) for each in ending["overlap"]] == [(there, paths(bench, "a.py"))]


def test_session_edited_requires_paths(bench: Bench) -> None:
    """`session` exits with 2 if `edited` has no path or an empty one, or if `begin` has a further word."""
    for words in (
        ("edited", "--session", "s-1"),
        ("begin", "x", "--session", "s-1"),
        ("edited", "--session", "s-1", ""),
    ):
        assert bench.run("session", *words).returncode == 2, words


@pytest.mark.usefixtures("repo")
def test_hand_off_warns_of_a_stash_that_the_command_text_declares(bench: Bench) -> None:
    """The hand-off warns of a stash in the text of the command before the command executes the stash."""
    task = bench.launch(f"{until('go')}; git stash push -q; sleep 0.1; git stash pop -q", "--session", "s-1")
    handed = begin(bench, "s-1", "--source", "compact")["hand_off"]
    assert handed["open_windows"] == []
    assert f"{task} running for" in handed["text"]
    assert "by its text takes files away for a while" in handed["text"]
    declared = bench.json("effects", task)["declared"]
    assert (declared["opens_window"], {"git"} <= {touch["kind"] for touch in declared["touches"]}) == (True, True)
    (bench.project / "go").touch()
    bench.run("wait", task)


@pytest.mark.usefixtures("repo")
def test_hand_off_warns_of_declared_effects_of_other_sessions(bench: Bench) -> None:
    """The hand-off warns of tasks in the project that belong to a parallel session or to one that has ended."""
    begin(bench, "s-1", "--pid", str(os.getpid()))
    text = f"{until('go')}; git stash push -q; git stash pop -q"
    task = bench.launch(text, "--session", "s-1")
    declares = bench.launch(until("go"), "--session", "s-1", "--touches", "a.py")
    bench.launch(until("go"), "--session", "s-1")
    beside = begin(bench, "s-2")["hand_off"]
    assert (beside["running"], beside["elsewhere"]) == ([], 3)
    _, warning, touching, _, _ = beside["text"].splitlines()[1:]
    assert warning.startswith(f"  {task} running for")
    assert "by its text takes files away for a while" in warning
    assert touching.startswith(f"  {declares} running for")
    assert "touches a.py by its launch" in touching
    bench.ok("session", "end", "--session", "s-1")
    later = begin(bench, "s-3")["hand_off"]
    assert len(later["running"]) == 3
    assert f"{task} (of an earlier session) running for" in later["text"]
    assert "by its text takes files away for a while" in later["text"]
    (bench.project / "go").touch()
    bench.run("wait", task, declares)


@pytest.mark.usefixtures("repo")
def test_hand_off_reports_what_ended_tasks_touched(bench: Bench) -> None:
    """A hand-off replaces the notices of ended tasks, so it names their restored files and windows."""
    begin(bench, "s-1")
    tasks = [bench.launch(text, "--session", "s-1") for text in ("git stash push -q; git stash pop -q", "cat a.py")]
    bench.run("wait", *tasks, "--no-ack")
    lines = begin(bench, "s-1", "--source", "compact")["hand_off"]["text"].splitlines()
    told = {task: next(line for line in lines if line.strip().startswith(task)) for task in tasks}
    assert "; observed: 3 files changed and restored, window " in told[tasks[0]]
    assert "observed" not in told[tasks[1]], "nothing shared was touched: that is not worth the room"
    assert bench.json("inbox", "--session", "s-1")["notices"] == []
    texts = ("git stash push -q; git stash pop -q", *["true"] * 11)
    many = [bench.launch(text, "--session", "s-1") for text in texts]
    bench.run("wait", *many, "--no-ack")
    lines = begin(bench, "s-1", "--source", "compact")["hand_off"]["text"].splitlines()
    (line,) = [line for line in lines if line.strip().startswith(many[0])]
    assert re.search(r"window [0-9.]+m?s(;|$)", line), line


def test_hand_off_counts_open_windows_that_do_not_fit(bench: Bench, repo: Path) -> None:
    """A hand-off prints three open windows and the number of the others."""
    tasks = [bench.launch(f"echo away > {name}; {until('go')}") for name in (*NAMES, "other.py")]
    for task, name in zip(tasks, (*NAMES, "other.py"), strict=True):
        window_on(bench, task, name)
    handed = begin(bench, "s-1")["hand_off"]
    assert len(handed["open_windows"]) == 4
    assert handed["text"].count("and not restored it,") == 3
    assert "and 1 more changed and not restored: outlive gate" in handed["text"]
    assert "4 more tasks of others run in this project" in handed["text"]
    (repo / "go").touch()
    bench.run("wait", *tasks)


def test_change_after_a_short_command_is_drift(bench: Bench, repo: Path) -> None:
    """A command that ended before the first snapshot has no list of files, so a later change is found by its time."""
    begin(bench, "s-1")
    task = bench.launch("cat other.py", "--session", "s-1")
    bench.run("wait", task, "--no-ack")
    (before,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert before["drift"]["moved"] is False
    (repo / "other.py").write_text("another\n")
    (after,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert after["drift"]["summary"] == "1 tracked file changed since it ran, read by it or not: other.py"


def test_notice_says_that_drift_is_unknown(bench: Bench, repo: Path) -> None:
    """If a file has a new time and its old content is not recorded, the notice says that drift is unknown."""
    begin(bench, "s-1")
    bench.run("wait", bench.launch("cat other.py", "--session", "s-1"), "--no-ack")
    (repo / "other.py").touch()
    (notice,) = bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    assert notice["drift"]["moved"] is None
    assert "since then: whether anything moved since it ran is unknown (files: 1 could not" in notice["text"]


def test_change_after_the_ending_is_no_effect_of_the_task(bench: Bench, repo: Path) -> None:
    """A change that a caller makes after `wait` is no effect of the task, also if a process was left running."""
    task = bench.launch(f"echo 1 > other.py; sleep 0.1; git checkout -q other.py; ({until('go')}) & echo done")
    bench.run("wait", task)
    (repo / "other.py").write_text("by hand\n")
    found = bench.json("effects", task)
    (repo / "go").touch()
    assert (found["restored"], found["changed"]) == (paths(bench, "other.py"), [])


def test_files_removed_by_the_caller_after_the_ending_are_not_gone(bench: Bench, repo: Path) -> None:
    """If the caller removes very many files before the last snapshot, they stay listed as created or changed."""
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
        wait_until(lambda: "\tfinal\t" in Path(bench.files(task).effects).read_text().splitlines()[-1], "the last look")


@pytest.mark.usefixtures("repo")
def test_files_created_and_then_moved_are_listed_by_their_last_name(bench: Bench) -> None:
    """Files of a renamed directory are listed below its new name, also if another process has removed them since."""
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
    """If a task renames a directory, the effects list the directory, and `guard` is not clear for any file in it."""
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


def test_repository_moved_away_is_a_window(bench: Bench) -> None:
    """A repository that the task moves away is a window by its own path, and is restored when it is back."""
    tree = Worktree(bench.project / "tree")
    tree.commit(x="old\n")
    task = bench.launch(f"cd ..; mv tree away; {until('go')}; mv away tree", "--cwd", str(tree.path))
    (window,) = wait_until(lambda: bench.json("effects", task, "--open")["windows"], "the move")
    assert (window["scope"], window["paths"]) == (str(tree.path), [str(tree.path)])
    assert not bench.json("guard", "tree/x")["clear"]
    (bench.project / "go").touch()
    bench.run("wait", task)
    found = bench.json("effects", task)
    assert (found["level"], found["restored"], found["changed"]) == ("observed", [str(tree.path)], [])


def test_directory_missing_in_the_first_snapshot_is_not_unattributed(bench: Bench, repo: Path) -> None:
    """A directory that the task moves away before the first snapshot, and back later, is restored by the task."""
    (repo / "dir" / "deep").mkdir()
    (repo / "dir" / "deep" / "x").touch()
    subprocess.run(["git", "add", "dir"], cwd=repo, check=True)
    time.sleep(0.05)  # written before the task began, by the clock of any file system
    task = bench.launch(f"mv dir away; {until('go')}; mv away dir")
    wait_until(lambda: bench.json("effects", task, "--open")["windows"], "the move")
    time.sleep(0.5)
    (repo / "go").touch()
    bench.run("wait", task)
    found = wait_until(lambda: each if (each := bench.json("effects", task))["uncompared"] else None, "the comparison")
    names = [Path(each["path"]).name for each in found["unattributed"]]
    assert (found["restored"], names) == (paths(bench, "dir"), ["go"])


def test_window_left_by_an_earlier_attempt_is_in_the_notice(bench: Bench, repo: Path) -> None:
    """A second attempt that succeeds does not hide the files that the first attempt left stashed."""
    begin(bench, "s-1")
    text = "[ -e .git/second ] && exit; touch .git/second; git stash push -q; exit 1"
    task = bench.launch(text, "--retries", "1", "--session", "s-1")
    wait_until(lambda: bench.show(task)["state"] == "succeeded", "the second try")
    (notice,) = [each for each in bench.json("inbox", "--session", "s-1")["notices"] if each["kind"] == "ended"]
    assert "LEFT a.py, b.py, dir/c.py not as it found them" in notice["text"].splitlines()[1]
    (window,) = bench.json("effects", task, "--open")["windows"]
    assert (window["paths"], window["by"]) == (list(NAMES), "git stash push -q")
    assert (repo / "a.py").read_text() == "old\n"
    bench.ok("retry", task)
    bench.run("wait", task)
    assert bench.json("effects", task)["windows"] == []


@pytest.mark.usefixtures("repo")
def test_refs_of_a_bare_repository_are_reported(bench: Bench) -> None:
    """A new branch and a new tag in a bare repository, which has no worktree, are reported as git state."""
    git(bench, "clone", "-q", "--bare", ".", "bare")
    found = touched(bench, "git branch new; git tag old", "--cwd", str(bench.project / "bare"))
    assert ([each["what"] for each in found["git"]], found["level"]) == (["branch new", "tag old"], "observed")
    assert (found["created"], found["outside"]) == ([], [])


@pytest.mark.usefixtures("repo")
def test_bound_unix_socket_is_listed_as_created(bench: Bench) -> None:
    """A bind to a path creates a name. A bind to a port or to an abstract socket creates none."""
    text = "import socket as s; s.socket(s.AF_UNIX).bind('dir/door'); s.socket(s.AF_UNIX).bind('\\0dir/none')"
    found = touched(bench, f"{sys.executable} -c \"{text}; s.socket().bind(('127.0.0.1', 0))\"")
    assert (found["level"], found["created"], found["gaps"]) == ("observed", paths(bench, "dir/door"), [])


@pytest.mark.usefixtures("repo")
def test_effects_state_how_the_task_was_observed(bench: Bench) -> None:
    """`--observe compare` reports only the net effect, as `compared`. `--observe off` reports `unknown`."""
    found = touched(bench, "git commit -q -a -m second", "--observe", "compare")
    assert (found["level"], "HEAD moved" in found["summary"]) == ("compared", True)
    assert touched(bench, "git commit -q --allow-empty -m x", "--observe", "off")["level"] == "unknown"


# --- never break the command ----------------------------------------------------------------------

BUSY = """
import os, sys
for number in range(300):
    name = f"x{number}"
    with open(name, "w") as file:
        file.write("a")
    os.rename(name, name + "y")
    os.mkdir(name + "d")
    os.rmdir(name + "d")
    os.unlink(name + "y")
print("done")
"""


@pytest.mark.parametrize("who", ["keeper", "witness"])
def test_command_succeeds_when_the_keeper_or_the_witness_is_killed(bench: Bench, who: str) -> None:
    """After a kill at a random moment, the command succeeds. Only a killed keeper leaves an unobserved time.

    The variable `KILLS` sets the number of kills. `KILLS=175` takes more time than a usual run of the tests has.
    """
    (bench.project / "busy.py").write_text(BUSY)
    chance = random.Random(who)
    gaps = 0
    for _ in range(int(os.environ.get("KILLS", "12"))):
        task = bench.launch(f"{sys.executable} busy.py")
        pid = bench.keeper(task) if who == "keeper" else bench.process(task, "witness")
        time.sleep(chance.random() * 0.15)
        if is_alive(pid):
            kill(pid)
        assert bench.run("wait", task, "--timeout", "30s").returncode == 0, bench.show(task)
        shown = bench.show(task)
        assert (shown["exit_code"], shown["output"]["tail"]) == (0, "done\n")
        gaps += shown["effects"]["unobserved_since"] is not None
    assert (gaps > 0) == (who == "keeper")


def test_write_of_an_orphaned_process_has_a_command_line(bench: Bench, repo: Path) -> None:
    """A write by a subshell that outlives its script is attributed to the command line of the script."""
    text = "{ while [ ! -e go ]; do sleep 0.05; done; echo late > other.py; while [ -e go ]; do sleep 0.05; done; } & :"
    task = bench.launch(text)
    bench.run("wait", task)
    (repo / "go").touch()
    window = window_on(bench, task, "other.py")
    (repo / "go").unlink()
    assert window["by"] == f"/bin/sh -c {text}"


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


SAME_NUMBER = """
import ctypes, os, struct, sys, time
def fork(number):
    wanted = ctypes.c_int(number)
    words = struct.pack("=11Q", 0, 0, 0, 0, 17, 0, 0, 0, ctypes.addressof(wanted), 1, 0)
    return ctypes.CDLL(None, use_errno=True).syscall(435, words, len(words))
number = os.fork()
if not number:
    os._exit(0)
os.waitpid(number, 0)
for name in ("a.py", "", "b.py", "other.py"):
    time.sleep(float(sys.argv[1]))
    work = ("sh", "-c", f"echo new > {name}; echo fixed > {name}") if name else ("true",)
    child = fork(number)
    if not child:
        if name != "other.py":
            os.execvp(work[0], work)
        os.close(os.open(name, os.O_WRONLY | os.O_TRUNC))
        os.write(os.open(name, os.O_WRONLY), b"old\\n")
        os._exit(0)
    if child < 0:
        os._exit(77)
    os.waitpid(child, 0)
"""
"""Four children with one process id, one after another: two programs write, one does not, and a fork writes."""


@pytest.mark.root
@pytest.mark.usefixtures("repo")
@pytest.mark.parametrize("pause", ["0.02", "0.2"])
def test_write_is_attributed_to_the_process_that_has_the_id_at_the_time(bench: Bench, pause: str) -> None:
    """If a process id is reused, each write is attributed to the right command line.

    This also holds when the observer no longer has a cached descriptor of the earlier process.
    """
    (bench.root / "numbers.py").write_text(SAME_NUMBER)
    task = bench.launch(f"exec {sys.executable} -B ../numbers.py {pause}")
    bench.run("wait", task)
    if bench.show(task)["exit_code"] == 77:
        pytest.skip("numbers cannot be chosen here")
    found = bench.json("effects", task)
    lines = [line.split("\t") for line in Path(bench.files(task).effects).read_text().splitlines()]
    assert len({line[2] for line in lines if line[1] == "write"}) == 1, "one number for all"
    by = {window["paths"][0]: window["by"] for window in found["windows"]}
    writer = "sh -c echo new > {0}; echo fixed > {0}"
    assert by == {
        "a.py": writer.format("a.py"),
        "b.py": writer.format("b.py"),
        "other.py": f"{sys.executable} -B ../numbers.py {pause}",
    }


def test_names_of_any_bytes_are_listed_unchanged(bench: Bench, repo: Path) -> None:
    """The effects keep names with newlines, tabs, backslashes and bytes that are no UTF-8."""
    names = [b"new\nline", b"t\tab", b"back\\slash\\n", b"by\xfftes", "h\u00e9".encode()]
    program = f"import os\nfor name in {names!r}: os.close(os.open(name, os.O_CREAT | os.O_WRONLY))\n"
    (repo / "program.py").write_text(program)
    found = touched(bench, f"{sys.executable} program.py")
    created = {os.fsencode(path).removeprefix(os.fsencode(repo) + b"/") for path in found["created"]}
    assert created == set(names)


def test_observation_continues_for_processes_left_running(bench: Bench, repo: Path) -> None:
    """The effects of an ended task also list the files that a process left running creates later."""
    program = "setsid sh -c 'touch up; while ! [ -e go ]; do sleep 0.05; done; echo late > late; touch finished' &"
    task = bench.launch(f"{program} {until('up')}")  # during an exec, a process has no command line
    bench.run("wait", task)
    assert bench.show(task)["state"] == "succeeded"
    (left,) = [each["pid"] for each in bench.show(task)["left_running"] if "while" in each["command"]] or [0]
    assert is_alive(left)
    (repo / "go").touch()
    wait_until((repo / "finished").exists, "the one left behind")
    assert wait_until(lambda: [p for p in bench.json("effects", task)["created"] if p.endswith("/late")])


def test_inner_task_and_tracer_run_inside_an_observed_task(bench: Bench) -> None:
    """The kernel refuses a second listener, so an inner task runs unobserved and reports why."""
    inner = " ".join(bench.command("run", "--wait", "20s", "--json"))
    task = bench.launch(f"{inner} true; strace -f -o trace true; cat trace | tail -1")
    bench.run("wait", task)
    line = bench.ok("output", task).splitlines()[0]
    document = json.loads(line)
    assert (document["state"], document["effects"]["level"]) == ("succeeded", "unknown")
    assert "observed by somebody else" in (document["effects"]["why_unseen"] or "")


def test_observed_calls_do_not_fail_under_frequent_signals(bench: Bench) -> None:
    """With a handler that restarts calls and a thousand signals per second, no system call fails."""
    program = """
import os, signal
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for number in range(2000):
    os.close(os.open("x", os.O_CREAT | os.O_WRONLY))
    os.unlink("x")
signal.setitimer(signal.ITIMER_REAL, 0)
"""
    (bench.project / "program.py").write_text(program)
    task = bench.launch(f"{sys.executable} program.py")
    assert bench.run("wait", task, "--timeout", "60s").returncode == 0, bench.ok("output", task)


def test_observed_command_waits_while_its_keeper_is_stopped(bench: Bench) -> None:
    """A command waits for a keeper that was stopped by SIGSTOP, and ends with its own exit code after SIGCONT."""
    task = bench.launch(f"{until('go')}; touch x; exit 6")
    keeper = bench.keeper(task)
    kill(keeper, signal.SIGSTOP)
    (bench.project / "go").touch()
    command = bench.process(task)
    time.sleep(0.3)
    assert is_alive(command)
    kill(keeper, signal.SIGCONT)
    bench.run("wait", task)
    assert bench.show(task)["exit_code"] == 6


def test_cancel_ends_a_command_that_waits_for_the_observer(bench: Bench) -> None:
    """A cancel ends a command that is in a system call which the observer has not answered."""
    (bench.project / "busy.py").write_text("while True:\n    open('x', 'w').close()\n")
    task = bench.launch(f"{sys.executable} busy.py")
    pid = bench.process(task)
    bench.ok("cancel", task)
    assert not is_alive(pid)
    assert bench.show(task)["signal"] in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL, None)


# --- without privileges ---------------------------------------------------------------------------


@pytest.mark.root
def test_task_of_an_unprivileged_user_is_observed(outsider: Outsider) -> None:
    """Without privileges, a task is observed, and NoNewPrivs is set for its processes."""
    (outsider.root / "state" / "mine").mkdir()
    os.chown(outsider.root / "state" / "mine", 65534, 65534)
    program = "git init -q . && echo a > a && mv a b && grep NoNewPrivs /proc/self/status"
    done = outsider.call("run", "--wait", "30s", "--json", "--cwd", str(outsider.root / "state" / "mine"), program)
    document = json.loads(done.stdout)
    assert (document["state"], document["effects"]["level"]) == ("succeeded", "observed")
    assert document["output"]["tail"] == "NoNewPrivs:\t1\n"


@pytest.mark.root
def test_set_id_program_that_the_command_names_keeps_its_privileges(outsider: Outsider) -> None:
    """If the command or its script names a set-id program, the task is not observed, and the effects say why."""
    place = outsider.root / "state" / "mine"
    place.mkdir()
    os.chown(place, 65534, 65534)
    (place / "script.sh").write_text(f"{outsider.become_root} id -u\n")
    for text in (f"{outsider.become_root} id -u", "sh script.sh # named"):
        done = outsider.call("run", "--wait", "30s", "--json", "--cwd", str(place), text)
        document = json.loads(done.stdout)
        assert (document["output"]["tail"], document["effects"]["level"]) == ("0\n", "unknown"), text
        assert "privileges" in document["effects"]["why_unseen"]


@pytest.mark.root
def test_hidden_set_id_program_is_reported_and_keeps_its_privileges_the_next_time(outsider: Outsider) -> None:
    """A set-id program that the text hides runs without its privileges, and the effects report this.

    A later command whose text names the program is not observed.
    """
    place = outsider.root / "state" / "mine"
    place.mkdir()
    os.chown(place, 65534, 65534)
    hidden = f"x={outsider.root}/set; $x''priv --reuid=0 id -u; echo setpriv | rev"
    done = outsider.call(
        "run", "--wait", "30s", "--json", "--cwd", str(place), hidden.replace("; echo setpriv | rev", "")
    )
    document = json.loads(done.stdout)
    assert document["effects"]["level"] == "partial"
    assert any("ran without its privileges; --observe compare keeps them" in gap for gap in document["effects"]["gaps"])
    done = outsider.call("run", "--wait", "30s", "--json", "--cwd", str(place), hidden + " # setpriv")
    assert json.loads(done.stdout)["effects"]["level"] == "unknown"


def test_overlap_covers_a_long_task_that_began_before_many_short_ones(bench: Bench, repo: Path) -> None:
    """A task that was launched sixty tasks earlier and still runs is named in the overlap."""
    long = bench.launch(f"echo 1 >> a.py; {until('go')}")
    wait_until(lambda: bench.json("effects", long)["changed"], "its write")
    client = Outlive(home=str(bench.state))
    short = [client.run(["true"], cwd=bench.project, observe="off") for _ in range(60)]
    client.wait(*short)
    late = bench.launch("echo 2 >> a.py", "--session", "s-1")
    bench.run("wait", late, "--no-ack")
    notices = bench.json("inbox", "--session", "s-1")["notices"]
    assert {each["task"] for notice in notices for each in notice["overlap"]} == {long}
    (repo / "go").touch()
    bench.run("wait", long)


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
