"""Where nobody looks at system calls, files are watched: windows, roughly when, and never who."""

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
    """A repository with three files that have a fix in them, and one that has none."""
    bench.env.update(ENVIRON)
    made = Worktree(bench.project)
    for name in (*NAMES, "other.py"):
        made.write(name, "old\n")
    made.commit()
    for name in NAMES:
        made.write(name, "fixed\n")
    return made


def journal(bench: Bench, task: str) -> list[str]:
    """What has been written down of a task, line by line."""
    with open(bench.files(task).effects, encoding="utf-8") as file:
        return file.read().splitlines()


def watched(bench: Bench, text: str, *options: str) -> str:
    """A task that is being watched, and does its work once `go` lies beside the project."""
    task = bench.launch(f"{until(str(bench.root / 'go'))}; {text}", "--observe", "watch", *options)
    wait_until(lambda: any("\twatch\t" in line for line in journal(bench, task)), "the watch")
    (bench.root / "go").touch()
    return task


def seen(bench: Bench, task: str) -> Any:
    """What a task touched, once everything has been written down."""
    bench.run("wait", task)
    wait_until(lambda: os.path.exists(bench.files(task).compared), "the comparison")
    return bench.json("effects", task)


@pytest.mark.usefixtures("tree")
def test_the_stash_story_under_watch(bench: Bench) -> None:
    """Three files were away for a second: told while they were and afterwards, and that nobody knows who did it."""
    begin(bench, "s-1")
    task = watched(bench, f"git stash push -q; {until('on')}; sleep 1; git stash pop -q", "--session", "s-1")
    window = window_on(bench, task, *NAMES)
    assert (window["paths"], window["by"]) == (list(NAMES), "somebody")
    handed = begin(bench, "s-1", "--source", "compact")["hand_off"]["text"]
    assert f"not as task {task} found them" in handed
    assert "nobody knows who did it" in handed
    (bench.project / "on").touch()
    found = seen(bench, task)
    assert (found["level"], found["restored"], found["changed"]) == ("watched", paths(bench, *NAMES), [])
    (window,) = found["windows"]
    assert window["restored"] is True
    assert window["duration_s"] >= 0.8
    assert {"index", "stash"} <= {each["what"] for each in found["git"]}
    assert "3 files changed and restored" in found["summary"]
    assert "watched only: nobody knows who did it; what lasted less than 0.1 s may be missed" in found["summary"]
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
def test_what_a_command_does_first_of_all_is_watched(bench: Bench, text: str, restored: tuple[str, ...]) -> None:
    """It begins when all files have been looked at: what it takes away at once was there, and comes back."""
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
def test_windows_and_net_changes_are_told_apart(
    bench: Bench, text: str, restored: list[str], changed: list[str], created: list[str]
) -> None:
    """What came back, what did not, and what is new; a directory that went away is watched again."""
    found = seen(bench, watched(bench, text))
    assert (found["level"], found["gaps"]) == ("watched", [])
    names = {key: [path.removeprefix(f"{bench.project}/") for path in found[key]] for key in ("restored", "changed")}
    assert names == {"restored": restored, "changed": changed}
    assert sorted(found["created"]) == paths(bench, *created)


def test_the_longer_ids_of_a_repository_tell_windows_as_well(bench: Bench) -> None:
    """While it is open, at the end, and when somebody has put back what was left."""
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
def test_a_directory_that_comes_back_is_watched_again(bench: Bench) -> None:
    """What happens in it is noticed when it happens, and not only at the end."""
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
    """The next try has a journal, a first look and a window of its own."""
    text = "sleep 0.5; mv other.py x; sleep 1; mv x other.py; exit 3"
    task = bench.launch(text, "--observe", "watch", "--retries", "1")
    wait_until(lambda: bench.show(task)["state"] == "failed" and len(bench.show(task)["attempts"]) == 2, "both tries")
    found = wait_until(
        lambda: os.path.exists(bench.files(task, 2).compared) and bench.json("effects", task), "the comparison"
    )
    assert (found["level"], found["restored"]) == ("watched", paths(bench, "other.py"))
    assert os.path.exists(bench.files(task, 1).compared)


def test_what_nobody_knows_the_beginning_of_is_changed_and_no_more(bench: Bench, tree: Worktree) -> None:
    """A file beside the tracked ones was there; what it held was never looked at, so there is no window."""
    tree.write("notes", "mine\n")
    found = seen(bench, watched(bench, "echo x > notes; sleep 1; echo mine > notes"))
    assert (found["changed"], found["windows"], found["restored"]) == (paths(bench, "notes"), [], [])
    assert "changed, perhaps to the same content" in found["summary"]


@pytest.mark.usefixtures("tree")
def test_compare_does_not_watch(bench: Bench) -> None:
    """Asked for two looks, nobody looks in between."""
    task = bench.launch("echo x >> other.py; sleep 0.3", "--observe", "compare")
    assert seen(bench, task)["level"] == "compared"
    assert not any("\twatch\t" in line for line in journal(bench, task))


@pytest.mark.usefixtures("tree")
def test_a_repository_that_goes_away_takes_nothing_with_it(bench: Bench) -> None:
    """The command ends as it would have; what is left of it is told."""
    task = watched(bench, f"rm -rf {bench.project}; sleep 0.3; exit 7")
    bench.run("wait", task, cwd=bench.root)
    shown = bench.json("show", task, cwd=bench.root)
    assert (shown["exit_code"], shown["effects"]["level"]) == (7, "watched")
    assert set(shown["effects"]["gone"]) >= set(paths(bench, *NAMES))
    assert (shown["effects"]["unattributed"], "repository: gone" in shown["effects"]["uncompared"]) == (None, True)


@pytest.mark.root
@pytest.mark.usefixtures("tree")
def test_a_limit_of_watches_costs_the_watch_and_nothing_else(bench: Bench) -> None:
    """The command runs, and is compared; why it was not watched is said."""
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


# --- without privileges ---------------------------------------------------------------------------


@pytest.fixture
def place(outsider: Outsider) -> Path:
    """A repository of a user without rights."""
    made = Worktree(outsider.root / "state" / "mine")
    made.commit(a="a\n")
    for directory, names, files in os.walk(made.path):
        for name in (".", *names, *files):
            os.chown(os.path.join(directory, name), 65534, 65534)
    return made.path


@pytest.mark.root
def test_a_command_that_would_lose_its_privileges_is_watched(outsider: Outsider, place: Path) -> None:
    """Its text names sudo: its calls are left alone, its files are watched, and it says why."""
    done = outsider.call("run", "--json", "--cwd", str(place), f"{until('go')}; mv a b; sleep 1; mv b a; : sudo")
    task = json.loads(done.stdout)["id"]
    wait_until(lambda: json.loads(outsider.call("effects", task, "--json").stdout)["level"] == "watched", "the watch")
    (place / "go").touch()
    outsider.call("wait", task)
    found = json.loads(outsider.call("effects", task, "--json").stdout)
    assert (found["level"], found["restored"]) == ("watched", [str(place / "a")])
    assert "privileges" in found["why_unseen"]


@pytest.mark.root
def test_without_the_package_it_is_compared_and_told_how_to_get_it(outsider: Outsider, place: Path) -> None:
    """Nothing fails, and the words say what is missing."""
    shutil.rmtree(outsider.root / "packages" / "watchfiles")
    done = outsider.call("run", "--wait", "30s", "--json", "--cwd", str(place), "sleep 0.3; echo x >> a; : sudo")
    task = json.loads(done.stdout)["id"]
    found = wait_until(
        lambda: (now := json.loads(outsider.call("effects", task, "--json").stdout))["changed"] and now,
        "the comparison",
    )
    assert (found["level"], found["changed"]) == ("compared", [str(place / "a")])
    assert "pip install 'outlive[watch]'" in found["why_unseen"]


def test_what_is_changed_when_the_ending_was_told_is_not_the_tasks(bench: Bench, tree: Worktree) -> None:
    """The watch goes on for a moment: what the task did last is told in it, and what others do is not."""
    task = watched(bench, "echo more >> a.py")
    bench.run("wait", task)
    tree.write("b.py", "later\n")
    (bench.project / "other.py").unlink()
    tree.git("tag", "later")
    found = seen(bench, task)
    assert (found["level"], found["changed"]) == ("watched", paths(bench, "a.py"))
    assert (found["unattributed"], found["git"]) == ([], [])
