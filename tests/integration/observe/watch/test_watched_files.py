"""Watching files of a command whose system calls are not observed.

This shows changes, but not which process made them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.effects_steps import paths, window_on
from tests.git_steps import ENVIRON, Worktree
from tests.session_steps import begin, until
from tests.support import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.outsider import Outsider
    from tests.support import Bench

NAMES = ("a.py", "b.py", "dir/c.py")


@pytest.fixture
def tree(bench: Bench) -> Worktree:
    """Make a repository with three changed files and an unchanged one."""
    bench.env.update(ENVIRON)
    made = Worktree(bench.project)
    for name in (*NAMES, "other.py"):
        made.write(name, "old\n")
    made.commit()
    for name in NAMES:
        made.write(name, "fixed\n")
    return made


def journal(bench: Bench, task: str) -> list[str]:
    """Return the lines of the file in which the keeper writes down a task's changes."""
    with open(bench.files(task).effects, encoding="utf-8") as file:
        return file.read().splitlines()


def watched(bench: Bench, text: str, *options: str) -> str:
    """Launch a task, let its command continue when the files are being watched, and return the task's id."""
    task = bench.launch(f"{until(str(bench.root / 'go'))}; {text}", "--observe", "watch", *options)
    wait_until(lambda: any("\twatch\t" in line for line in journal(bench, task)), "the watch")
    (bench.root / "go").touch()
    return task


def seen(bench: Bench, task: str) -> Any:
    """Return the effects of a task, once the keeper has compared the files before and after the task."""
    bench.run("wait", task)
    wait_until(lambda: os.path.exists(bench.files(task).compared), "the comparison")
    return bench.json("effects", task)


@pytest.mark.usefixtures("tree")
def test_watching_reports_the_window_of_a_stash(bench: Bench) -> None:
    """While files are stashed, the hand-off lists them as changed. Afterwards, the effects list them as restored.

    Neither names a process, because a watch does not show which process made a change.
    """
    begin(bench, "s-1")
    task = watched(bench, f"git stash push -q; {until('on')}; sleep 1; git stash pop -q", "--session", "s-1")
    window = window_on(bench, task, *NAMES)
    assert (window["paths"], window["by"]) == (list(NAMES), "somebody")
    handed = begin(bench, "s-1", "--source", "compact")["hand_off"]["text"]
    assert f"differ from what task {task} found, for " in handed
    assert "unknown who changed them" in handed
    (bench.project / "on").touch()
    found = seen(bench, task)
    assert (found["level"], found["restored"], found["changed"]) == ("watched", paths(bench, *NAMES), [])
    (window,) = found["windows"]
    assert window["restored"] is True
    assert window["duration_s"] >= 0.8
    assert {"index", "stash"} <= {each["what"] for each in found["git"]}
    assert "3 files changed and restored" in found["summary"]
    assert "watched only: nobody knows who did it; changes of less than 0.1 s may be missing" in found["summary"]
    assert [each["path"] for each in found["unattributed"]] == []


@pytest.mark.parametrize(
    ("text", "restored"),
    [
        ("git stash push -q; sleep 1; git stash pop -q", NAMES),
        ("mv other.py x; sleep 1; mv x other.py", ("other.py",)),
        ("sed -i s/old/new/ other.py; sleep 1; sed -i s/new/old/ other.py", ("other.py",)),
        ("echo x > made; sleep 1; rm made", ()),
        ("git sparse-checkout set --no-cone '/*' '!other.py'; sleep 1; git sparse-checkout disable", ("other.py",)),
    ],
)
@pytest.mark.usefixtures("tree")
def test_watching_begins_before_the_command(bench: Bench, text: str, restored: tuple[str, ...]) -> None:
    """Files are watched before the command begins. So a file that it removes first and restores later is reported."""
    found = seen(bench, bench.launch(text, "--observe", "watch"))
    assert (found["level"], found["gaps"], found["uncompared"]) == ("watched", [], [])
    assert (found["restored"], found["changed"], found["created"]) == (paths(bench, *restored), [], [])
    assert [window["paths"] for window in found["windows"]] == [list(restored)] * bool(restored)


@pytest.mark.parametrize(
    ("text", "restored", "changed", "created"),
    [
        ("echo more >> other.py", [], ["other.py"], []),
        ("echo more > made.py; mkdir new; echo x > new/x", [], [], ["made.py", "new"]),
        ("mv dir away; sleep 1; mv away dir", ["dir/c.py"], [], []),
        ("rm -r dir; sleep 1; mkdir dir; echo fixed > dir/c.py", ["dir/c.py"], [], []),
        ("rm other.py; sleep 1; git checkout -q other.py", ["other.py"], [], []),
        ("git commit -q -a -m second; sleep 1", [], [], []),
    ],
)
@pytest.mark.usefixtures("tree")
def test_watching_distinguishes_restored_changed_and_created_files(
    bench: Bench, text: str, restored: list[str], changed: list[str], created: list[str]
) -> None:
    """The effects list restored, changed and created files separately, even if their directory was moved."""
    found = seen(bench, watched(bench, text))
    assert (found["level"], found["gaps"]) == ("watched", [])
    names = {key: [path.removeprefix(f"{bench.project}/") for path in found[key]] for key in ("restored", "changed")}
    assert names == {"restored": restored, "changed": changed}
    assert sorted(found["created"]) == paths(bench, *created)


def test_watching_reports_windows_in_a_sha256_repository(bench: Bench) -> None:
    """In a SHA-256 repository, changed and restored files and the answers of `guard` are correct."""
    bench.env.update(ENVIRON)
    tree = Worktree(bench.project, "--object-format=sha256")
    tree.commit(a="old\n", b="old\n", left="old\n")
    tree.settle_index()
    tree.write("a", "fixed\n")
    text = f"git stash push -q; mv b c; {until('on')}; mv c b; git stash pop -q; rm left; {until('off')}; kill -9 $$"
    task = watched(bench, text)
    window_on(bench, task, "a", "b")
    (bench.project / "on").touch()
    window_on(bench, task, "left")
    assert bench.json("effects", task, "--open")["windows"][0]["paths"] == ["left"]
    (bench.project / "off").touch()
    found = seen(bench, task)
    assert (found["level"], found["restored"], found["changed"]) == (
        "watched", paths(bench, "a", "b"), paths(bench, "left"),
    )  # fmt: skip
    assert not bench.json("guard", "left")["clear"]
    tree.git("checkout", "left")
    assert bench.json("guard", "left")["clear"]


@pytest.mark.usefixtures("tree")
def test_watching_notices_a_change_in_a_directory_that_came_back_at_once(bench: Bench) -> None:
    """If a removed directory is made again, a restored file in it is recorded while the command still runs."""
    task = watched(bench, f"rm -r dir; sleep 1; mkdir dir; sleep 1; echo fixed > dir/c.py; {until('on')}")
    lines = wait_until(
        lambda: [line for line in journal(bench, task) if line.endswith("/dir/c.py")][1:], "the file to be back"
    )
    before, now = lines[0].split("\t")[3:6:2]
    assert before == now != "0"
    (bench.project / "on").touch()
    assert seen(bench, task)["windows"][0]["duration_s"] >= 1.5


@pytest.mark.usefixtures("tree")
def test_every_attempt_is_watched(bench: Bench) -> None:
    """Each attempt of a watched task has its own record of changes, its own first snapshot and its own changes."""
    text = "sleep 0.5; mv other.py x; sleep 1; mv x other.py; exit 3"
    task = bench.launch(text, "--observe", "watch", "--retries", "1")
    wait_until(lambda: bench.show(task)["state"] == "failed" and len(bench.show(task)["attempts"]) == 2, "two attempts")
    found = wait_until(
        lambda: os.path.exists(bench.files(task, 2).compared) and bench.json("effects", task), "the comparison"
    )
    assert (found["level"], found["restored"]) == ("watched", paths(bench, "other.py"))
    assert os.path.exists(bench.files(task, 1).compared)


def test_untracked_file_has_no_window_when_its_first_content_is_unknown(bench: Bench, tree: Worktree) -> None:
    """If an untracked file's first content is not known, it is reported as changed, and never as restored."""
    tree.write("notes", "mine\n")
    found = seen(bench, watched(bench, "echo x > notes; sleep 1; echo mine > notes"))
    assert (found["changed"], found["windows"], found["restored"]) == (paths(bench, "notes"), [], [])
    assert "written, perhaps with the same content" in found["summary"]


@pytest.mark.usefixtures("tree")
def test_observe_compare_does_not_watch(bench: Bench) -> None:
    """With `--observe compare`, no file is watched."""
    task = bench.launch("echo x >> other.py; sleep 0.3", "--observe", "compare")
    assert seen(bench, task)["level"] == "compared"
    assert not any("\twatch\t" in line for line in journal(bench, task))


@pytest.mark.usefixtures("tree")
def test_watched_command_keeps_its_exit_code_when_its_repository_is_deleted(bench: Bench) -> None:
    """If its repository is deleted, a watched command still ends with its own exit code.

    The effects name the deleted files.
    """
    task = watched(bench, f"rm -rf {bench.project}; sleep 0.3; exit 7")
    bench.run("wait", task, cwd=bench.root)
    shown = bench.json("show", task, cwd=bench.root)
    assert (shown["exit_code"], shown["effects"]["level"]) == (7, "watched")
    assert set(shown["effects"]["gone"]) >= set(paths(bench, *NAMES))
    assert (shown["effects"]["unattributed"], "repository: gone" in shown["effects"]["uncompared"]) == (None, True)


@pytest.mark.root
@pytest.mark.usefixtures("tree")
def test_command_is_compared_when_no_inotify_watches_are_left(bench: Bench) -> None:
    """If no inotify watches are left, the command ends as usual, and the effects say why it was not watched."""
    words = bench.command("run", "--observe", "watch", f"{until(str(bench.root / 'go'))}; echo x >> other.py; exit 6")
    script = 'echo 0 > /proc/sys/user/max_inotify_watches && exec "$@"'
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", script, "sh", *words],
        cwd=bench.project, env=bench.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        pytest.skip(f"a namespace with limits of its own cannot be had: {done.stderr[-80:]}")
    task = done.stdout.strip()
    wait_until(lambda: any("watching failed" in line for line in journal(bench, task)), "the watch to fail")
    (bench.root / "go").touch()
    bench.run("wait", task)
    wait_until(lambda: os.path.exists(bench.files(task).compared), "the comparison")
    shown = bench.show(task)
    assert (shown["exit_code"], shown["effects"]["level"]) == (6, "compared")
    assert "watching failed" in shown["effects"]["gaps"][0]


# --- users without privileges ---------------------------------------------------------------------


@pytest.fixture
def place(outsider: Outsider) -> Path:
    """Make a repository that belongs to a user without privileges."""
    made = Worktree(outsider.root / "state" / "mine")
    made.commit(a="a\n")
    for directory, names, files in os.walk(made.path):
        for name in (".", *names, *files):
            os.chown(os.path.join(directory, name), 65534, 65534)
    return made.path


@pytest.mark.root
def test_command_that_names_sudo_is_watched(outsider: Outsider, place: Path) -> None:
    """The files of a command that names `sudo` are watched, and the effects give the reason.

    Observing system calls would take away the privileges that `sudo` needs.
    """
    done = outsider.call("run", "--json", "--cwd", str(place), f"{until('go')}; mv a b; sleep 1; mv b a; : sudo")
    task = json.loads(done.stdout)["id"]
    wait_until(lambda: json.loads(outsider.call("effects", task, "--json").stdout)["level"] == "watched", "the watch")
    (place / "go").touch()
    outsider.call("wait", task)
    found = json.loads(outsider.call("effects", task, "--json").stdout)
    assert (found["level"], found["restored"]) == ("watched", [str(place / "a")])
    assert "privileges" in found["why_unseen"]


@pytest.mark.root
def test_command_is_compared_when_watchfiles_is_not_installed(outsider: Outsider, place: Path) -> None:
    """If watchfiles is not installed, the command's files are only compared. The effects name the extra to install."""
    shutil.rmtree(outsider.root / "packages" / "watchfiles")
    done = outsider.call("run", "--wait", "30s", "--json", "--cwd", str(place), "sleep 0.3; echo x >> a; : sudo")
    task = json.loads(done.stdout)["id"]
    found = wait_until(
        lambda: (now := json.loads(outsider.call("effects", task, "--json").stdout))["changed"] and now,
        "the comparison",
    )
    assert (found["level"], found["changed"]) == ("compared", [str(place / "a")])
    assert "pip install 'outlive[watch]'" in found["why_unseen"]


def test_changes_after_the_ending_are_not_effects_of_the_task(bench: Bench, tree: Worktree) -> None:
    """Changes by other processes shortly after the task's end are no effects of the task."""
    task = watched(bench, "echo more >> a.py")
    bench.run("wait", task)
    tree.write("b.py", "later\n")
    (bench.project / "other.py").unlink()
    tree.git("tag", "later")
    found = seen(bench, task)
    assert (found["level"], found["changed"]) == ("watched", paths(bench, "a.py"))
    assert (found["unattributed"], found["git"]) == ([], [])
