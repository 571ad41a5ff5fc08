"""The guard's answer if a task may have changed files without restoring them, or may later move files away."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import pytest

from outlive.linux.seccomp import is_known_machine
from tests.effects_steps import window_on
from tests.git_steps import ENVIRON, Worktree
from tests.hook_steps import SESSION, call, context, said
from tests.session_steps import begin, until
from tests.support import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench

pytestmark = pytest.mark.skipif(not is_known_machine(), reason="the calls of this machine are not known")


@pytest.fixture
def repo(bench: Bench) -> Path:
    """Make a repository with a committed file, and change the file."""
    bench.env.update({name: each for name, each in ENVIRON.items() if name.startswith("GIT_")})
    worktree = Worktree(bench.project)
    worktree.commit(**{"a.py": "one\n"})
    worktree.write("a.py", "two\n")
    return bench.project


def before_edit(bench: Bench, repo: Path) -> str:
    """Return the text of the hook that runs before a.py is edited."""
    given = {"file_path": str(repo / "a.py")}
    return context(said(call(bench, "claude", "PreToolUse", tool_name="Edit", tool_input=given)))


@pytest.mark.parametrize("how", ["off", "compare", "watch"])
def test_guard_answers_unknown_while_an_unobserved_task_may_hold_files(bench: Bench, repo: Path, how: str) -> None:
    """While a task with `git stash` in its command runs unobserved, `guard` answers `unknown`.

    Afterwards it answers `clear`.
    """
    task = bench.launch(f"git stash push -q; {until('go')}; git stash pop -q", "--observe", how)
    stashed = repo / ".git/refs/stash"
    wait_until(lambda: stashed.exists() and not (repo / ".git/index.lock").exists(), "the stash")
    answer: dict[str, Any] = {}
    for words in (["a.py"], ["."], ["--command", "git commit -am x"], ["--command", "cat a.py"]):
        answer = bench.json("guard", *words)
        assert (answer["clear"], [each["task"] for each in answer["unknown"]]) in ((False, [task]), (False, [])), words
        assert answer["unknown"] or answer["holders"], words
        assert bench.run("guard", *words, "--exit-code").returncode == 1, words
    if how != "watch":
        assert answer["unknown"][0] == {
            "task": task,
            "state": "running",
            "observe": how,
            "by": "git stash push -q",
            "restores": True,
            "client": None,
        }
        line = f"cannot tell whether a path is held: the command is not observed ({how}), and task {task} (running)"
        assert line in bench.run("guard", "a.py").stdout
        assert line in before_edit(bench, repo)
    assert bench.json("guard", "/usr/bin")["clear"]
    assert bench.json("guard", "--command", "ls /usr")["clear"]
    (repo / "go").touch()
    bench.run("wait", task)
    assert bench.json("guard", "a.py")["clear"]


@pytest.mark.parametrize("how", ["off", "compare"])
@pytest.mark.parametrize(
    ("away", "back"),
    [("mv src{,.bak}", "mv src{.bak,}"), ("tar cf x.tar src; rm -rf src", "tar xf x.tar"), ("rm -rf src", "true")],
)
def test_guard_answers_unknown_while_a_directory_may_be_away(
    bench: Bench, repo: Path, how: str, away: str, back: str
) -> None:
    """While an unobserved task may have moved or removed a directory, `guard` answers `unknown` for files in it.

    For other files it answers `clear`. The answer also says whether the command puts the directory back.
    """
    Worktree(repo, new=False).commit(**{"src/b.py": "one\n"})
    text = f"{away}; {until('go')}; {back}"
    task = bench.launch(f"bash -c {shlex.quote(text)}", "--observe", how)
    wait_until(lambda: not (repo / "src").exists(), "the directory to be away")
    for words in (["src/b.py"], ["src"], ["--command", "cat src/b.py"], ["--command", "make"]):
        answer = bench.json("guard", *words)
        assert (answer["clear"], [each["task"] for each in answer["unknown"]]) == (False, [task]), words
        assert answer["unknown"][0]["restores"] == (back != "true")
    assert bench.json("guard", "a.py")["clear"]
    (repo / "go").touch()
    bench.run("wait", task)


@pytest.mark.usefixtures("repo")
def test_guard_answers_clear_for_an_unobserved_task_that_takes_nothing_away(bench: Bench) -> None:
    """`guard` answers `clear` if an unobserved task's command removes no file, or only those of another directory."""
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    tasks = [
        bench.launch(f"make x; {until('go')}", "--observe", "off"),
        bench.launch(f"git stash; {until('go')}", "--observe", "off", cwd=elsewhere),
    ]
    assert bench.json("guard", "a.py") == {"clear": True, "holders": [], "unknown": [], "coming": []}
    for place in (bench.project, elsewhere):
        (place / "go").touch()
    bench.run("wait", *tasks)


def test_guard_announces_what_a_queued_task_will_take_away(bench: Bench, repo: Path) -> None:
    """`guard`, the hook and the hand-off name queued tasks whose commands move or remove files.

    The guard still answers `clear`. The hook names each queued task once.
    """
    begin(bench, SESSION)
    first = bench.launch(until("go"), "--lock", "x", "--session", SESSION)
    texts = {"git checkout -q main && make": False, "git stash && make; git stash pop": True}
    waiting = {bench.launch(text, "--lock", "x", "--session", SESSION): text for text in texts}
    answer = bench.json("guard", "a.py")
    assert (answer["clear"], answer["holders"], answer["unknown"]) == (True, [], [])
    assert {each["task"]: each["restores"] for each in answer["coming"]} == {
        task: texts[text] for task, text in waiting.items()
    }
    gone, back = waiting
    printed = bench.run("guard", "--command", "git status", "--exit-code")
    assert (printed.returncode, printed.stdout.splitlines()[0]) == (0, "clear")
    gone_line = "by its text takes files away and does not put them back (git checkout -q main)"
    back_line = "by its text takes files away for a while (git stash)"
    assert f"soon: task {gone} (queued) {gone_line}" in printed.stdout
    assert f"soon: task {back} (queued) {back_line}" in printed.stdout
    told = before_edit(bench, repo)
    assert gone_line in told
    assert back_line in told
    assert before_edit(bench, repo) == "", "the queued tasks are named a second time"
    handed = begin(bench, SESSION, "--source", "resume")["hand_off"]["text"]
    assert gone_line in handed
    assert back_line in handed
    bench.run("cancel", gone, back)
    (repo / "go").touch()
    bench.run("wait", first)


def test_guard_answers_for_unknown_programs_and_missing_directories(bench: Bench, repo: Path) -> None:
    """`guard` cannot tell whether an unknown program touches a file that a task has changed, and says so.

    For a command in a missing directory, `guard` answers `clear`.
    """
    task = bench.launch(f"git stash push -q; {until('go')}; git stash pop -q")
    window_on(bench, task, "a.py")
    for command in ("git -C nowhere status", "make -C nowhere", "ls nowhere", "rg word nowhere", "du -s nowhere/x"):
        assert bench.json("guard", "--command", command)["clear"], command
    for command, word in (
        ("./own-tool", "./own-tool"),
        ("frobnicate a b", "frobnicate"),
        ("cd nowhere; make", "nowhere"),
    ):
        (holder,) = bench.json("guard", "--command", command)["holders"]
        assert [each.rpartition("/")[2] for each in holder["unread"]] == [word.rpartition("/")[2]], command
        assert "cannot tell whether the command touches this" in bench.run("guard", "--command", command).stdout
    for command in ("make", "ls", "rg word", "ls a.py"):
        (holder,) = bench.json("guard", "--command", command)["holders"]
        assert holder["unread"] == [], command
    (repo / "go").touch()
    bench.run("wait", task)
