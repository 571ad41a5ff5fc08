"""What hooks tell and learn beside the endings: windows that tasks hold open, edits, the client's own shells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.effects_steps import window_on
from tests.git_steps import ENVIRON, Worktree
from tests.integration.test_hooks import SESSION, call, context, launch, said
from tests.session_steps import until
from tests.support import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench

# Where each client asks the guard.
BEFORE = {
    "claude": "PreToolUse",
    "gemini": "advise",
    "opencode": "tool.execute.before",
    "openclaw": "before_tool_call",
}

pytestmark = pytest.mark.usefixtures("repo")


@pytest.fixture
def repo(bench: Bench) -> Path:
    """A repository with one committed file, and a change to it."""
    bench.env.update({name: each for name, each in ENVIRON.items() if name.startswith("GIT_")})
    worktree = Worktree(bench.project)
    worktree.commit(**{"a.py": "one\n"})
    worktree.write("a.py", "two\n")
    return bench.project


def stashed(bench: Bench) -> str:
    """A task that holds a.py away until `go` is there."""
    task = launch(bench, f"git stash push -q; {until('go')}; git stash pop -q")
    window_on(bench, task, "a.py")
    return task


def about_to(bench: Bench, tool: str, **tool_input: Any) -> str:
    """What the model is told before a tool is used."""
    return context(said(call(bench, "claude", "PreToolUse", tool_name=tool, tool_input=tool_input)))


def test_who_is_about_to_touch_what_a_task_holds_is_told(bench: Bench, repo: Path) -> None:
    """An edit of the file, a git command, the tests; not what has nothing to do with it, and not afterwards."""
    assert about_to(bench, "Edit", file_path=str(repo / "a.py")) == ""
    task = stashed(bench)
    for tool, given in (
        ("Edit", {"file_path": str(repo / "a.py")}),
        ("Write", {"file_path": "a.py"}),
        ("Bash", {"command": "git commit -am done"}),
        ("Bash", {"command": "pytest -q"}),
    ):
        assert f"task {task} holds a.py away from how it found it," in about_to(bench, tool, **given), given
    assert about_to(bench, "Edit", file_path=str(repo / "new.py")) == ""
    assert about_to(bench, "Bash", command="cat /etc/hostname") == ""
    (repo / "go").touch()
    bench.run("wait", task, "--no-ack")
    assert about_to(bench, "Edit", file_path=str(repo / "a.py")) == ""


@pytest.mark.parametrize(
    ("client", "tool", "given"),
    [
        ("claude", "Read", {"file_path": "a.py"}),
        ("claude", "Grep", {"pattern": "one"}),
        ("claude", "Glob", {"pattern": "*.py", "path": "."}),
        ("gemini", "read_file", {"file_path": "a.py"}),
        ("gemini", "grep_search", {"pattern": "one"}),
        ("gemini", "list_directory", {"dir_path": "."}),
        ("opencode", "read", {"filePath": "a.py"}),
        ("opencode", "glob", {}),
        ("openclaw", "read", {"path": "a.py"}),
        ("openclaw", "ls", {}),
    ],
)
def test_who_is_about_to_look_at_what_a_task_holds_is_told(
    bench: Bench, repo: Path, client: str, tool: str, given: dict[str, str]
) -> None:
    """At the file, or at a directory with it, which for a search may be the one that it runs in; sub-agents as well."""
    (repo / "docs").mkdir()
    elsewhere = dict.fromkeys(("file_path", "filePath", "path", "dir_path"), "docs")

    def told(given: dict[str, str], **fields: Any) -> str:
        answer = said(call(bench, client, BEFORE[client], tool_name=tool, tool_input=given, **fields))
        return context(answer) or str(answer.get("context", ""))

    assert told(given) == ""
    task = stashed(bench)
    for fields in ({}, {"agent_id": "sub"}, {"is_sub_agent": True}):
        assert f"task {task} holds a.py away from how it found it," in told(given, **fields)
    assert told(elsewhere) == ""
    assert said(call(bench, client, BEFORE[client], "--guard", "off", tool_name=tool, tool_input=given)) == {}
    (repo / "go").touch()
    bench.run("wait", task, "--no-ack")
    assert told(given) == ""


def test_a_search_looks_where_the_shell_of_its_client_has_gone_to(bench: Bench, repo: Path) -> None:
    """Not where the client was started, if it has gone elsewhere since."""
    (repo / "docs").mkdir()
    task = stashed(bench)
    started = {"CLAUDE_PROJECT_DIR": str(repo / "docs")}
    about: dict[str, Any] = {"tool_name": "Grep", "tool_input": {"pattern": "one"}}
    assert f"task {task} holds a.py" in context(said(call(bench, "claude", "PreToolUse", env=started, **about)))
    gone: dict[str, Any] = {**about, "cwd": str(repo / "docs")}
    assert said(call(bench, "claude", "PreToolUse", env={"CLAUDE_PROJECT_DIR": str(repo)}, **gone)) == {}


@pytest.mark.parametrize(
    ("client", "event", "fields"),
    [
        ("claude", "PostToolBatch", {"tool_calls": [{"tool_name": "Read", "tool_input": {"file_path": "a.py"}}]}),
        ("gemini", "AfterTool", {"tool_name": "read_file", "tool_input": {"file_path": "a.py"}}),
        ("opencode", "tool.execute.after", {"tool_name": "read", "tool_input": {"filePath": "a.py"}}),
        ("openclaw", "after_tool_call", {"tool_name": "read", "tool_input": {"path": "a.py"}}),
    ],
)
def test_a_look_is_no_edit(bench: Bench, repo: Path, client: str, event: str, fields: dict[str, Any]) -> None:
    """Nobody is told that the session changed what it has only read."""
    task = launch(bench, f"echo three > a.py; {until('go')}")
    wait_until(lambda: bench.json("effects", task)["changed"], "its write")
    assert call(bench, client, event, **fields).returncode == 0
    (repo / "go").touch()
    bench.run("wait", task, "--no-ack")
    (notice,) = bench.json("inbox", "--session", SESSION)["notices"]
    assert notice["overlap"] == []


def test_who_is_about_to_touch_what_nobody_can_read_is_told_that(bench: Bench, repo: Path) -> None:
    """Neither clear nor held for sure; a pattern that cannot be read names no file."""
    task = stashed(bench)
    told = about_to(bench, "Bash", command="cat $FILE")
    assert f"cannot tell whether it is touched, $FILE cannot be read: task {task} holds a.py" in told
    assert about_to(bench, "Bash", command='grep "$P" /etc/hostname') == ""
    (repo / "go").touch()
    bench.run("wait", task, "--no-ack")
    assert about_to(bench, "Bash", command="cat $FILE") == ""


def test_what_a_dead_task_left_away_is_told_until_somebody_puts_it_back(bench: Bench, repo: Path) -> None:
    """Nobody is advised to wait for it."""
    task = launch(bench, "git stash push -q; kill -9 $$")
    bench.run("wait", task, "--no-ack")
    told = about_to(bench, "Edit", file_path=str(repo / "a.py"))
    assert f"task {task} has ended and left a.py away" in told
    assert "Nobody is going to put that back" in told
    (repo / "a.py").write_text("two\n")
    assert about_to(bench, "Edit", file_path=str(repo / "a.py")) == ""


def test_advice_and_warning_are_one_answer(bench: Bench) -> None:
    """A client takes one document."""
    task = stashed(bench)
    told = about_to(bench, "Bash", command="nohup git commit -am done &")
    assert f"task {task} holds a.py" in told
    assert "has no record" in told


@pytest.mark.parametrize(
    ("client", "event", "fields"),
    [
        ("claude", "PostToolBatch", {"tool_calls": [{"tool_name": "Edit", "tool_input": {"file_path": "a.py"}}]}),
        ("gemini", "AfterTool", {"tool_name": "replace", "tool_input": {"file_path": "a.py"}}),
        (
            "codex",
            "PostToolUse",
            {"tool_name": "apply_patch", "tool_input": {"command": "*** Begin Patch\n*** Update File: a.py\n@@"}},
        ),
    ],
)
def test_what_the_session_edits_beside_a_task_is_named_at_its_ending(
    bench: Bench, repo: Path, client: str, event: str, fields: dict[str, Any]
) -> None:
    """By the client's own tools, also those of its sub-agents."""
    task = launch(bench, f"echo three > a.py; {until('go')}")
    wait_until(lambda: bench.json("effects", task)["changed"], "its write")
    assert call(bench, client, event, agent_id="sub", **fields).returncode == 0
    (repo / "go").touch()
    bench.run("wait", task, "--no-ack")
    (notice,) = bench.json("inbox", "--session", SESSION)["notices"]
    assert [(each["session"], each["paths"]) for each in notice["overlap"]] == [(SESSION, [str(repo / "a.py")])]


@pytest.mark.parametrize(
    "response",
    [
        "<tool_use_error>File has been modified since read, either by the user or by a linter.</tool_use_error>",
        [{"type": "text", "text": "<tool_use_error>String to replace not found in file.</tool_use_error>"}],
        {"llmContent": "0 occurrences", "returnDisplay": "failed", "error": {"message": "0 occurrences found"}},
    ],
)
def test_an_edit_that_was_refused_is_none(bench: Bench, repo: Path, response: Any) -> None:
    """As it is most likely where a task has just changed the file: nobody is told that the session did."""
    task = launch(bench, f"echo three > a.py; {until('go')}")
    wait_until(lambda: bench.json("effects", task)["changed"], "its write")
    edit: dict[str, Any] = {"tool_input": {"file_path": "a.py"}, "tool_response": response}
    if isinstance(response, dict):
        call(bench, "gemini", "AfterTool", tool_name="replace", **edit)
    else:
        call(bench, "claude", "PostToolBatch", tool_calls=[{"tool_name": "Edit", **edit}])
    (repo / "go").touch()
    bench.run("wait", task, "--no-ack")
    (notice,) = bench.json("inbox", "--session", SESSION)["notices"]
    assert notice["overlap"] == []


def test_an_edit_that_is_told_of_late_is_as_old_as_its_file(bench: Bench, repo: Path) -> None:
    """Other calls of its batch may wait for a task, or launch one, before the client tells of any of them."""
    task = launch(bench, f"echo three > a.py; {until('go')}")
    wait_until(lambda: bench.json("effects", task)["changed"], "its write")
    (repo / "a.py").write_text("mine\n")
    (repo / "go").touch()
    bench.run("wait", task, "--no-ack")
    edits = [{"tool_name": "Edit", "tool_input": {"file_path": "a.py"}}]
    assert f"session {SESSION} edited a.py itself" in context(
        said(call(bench, "claude", "PostToolBatch", tool_calls=edits))
    )
    (repo / "b.py").write_text("mine\n")
    later = launch(bench, f"{until('gone')}; echo four > b.py")
    edits = [{"tool_name": "Write", "tool_input": {"file_path": "b.py"}}]
    call(bench, "claude", "PostToolBatch", tool_calls=edits)
    (repo / "gone").touch()
    bench.run("wait", later, "--no-ack")
    (notice,) = bench.json("inbox", "--session", SESSION)["notices"]
    assert (notice["task"]["effects"]["changed"], notice["overlap"]) == ([str(repo / "b.py")], [])


def test_an_edit_from_around_a_submodule_is_named_by_the_task_that_runs_in_it(bench: Bench, repo: Path) -> None:
    """It is another project by its name, and the same file."""
    inner = Worktree(repo / "inner")
    inner.commit(x="1\n")
    task = launch(bench, f"echo three > x; {until('go')}", "--cwd", str(inner.path))
    wait_until(lambda: bench.json("effects", task)["changed"], "its write")
    call(bench, "claude", "PostToolBatch", tool_calls=[{"tool_name": "Edit", "tool_input": {"file_path": "inner/x"}}])
    (inner.path / "go").touch()
    bench.run("wait", task, "--no-ack")
    (notice,) = bench.json("inbox", "--session", SESSION, cwd=inner.path)["notices"]
    assert [(each["session"], each["paths"]) for each in notice["overlap"]] == [(SESSION, [str(inner.path / "x")])]


def test_edits_without_a_running_task_are_nobodys_concern(bench: Bench) -> None:
    """They cost no write."""
    launch(bench, "true")
    call(bench, "claude", "PostToolBatch", tool_calls=[{"tool_name": "Edit", "tool_input": {"file_path": "a.py"}}])
    task = launch(bench, "echo three > a.py")
    bench.run("wait", task, "--no-ack")
    notices = bench.json("inbox", "--session", SESSION)["notices"]
    assert all(notice["overlap"] == [] for notice in notices)


def test_the_clients_own_shells_are_handed_over(bench: Bench, repo: Path) -> None:
    """Known when they are started, with where they write; gone when the client says that they are."""
    launch(bench, "true")
    output = repo / "b1.output"
    response = (
        f"Command running in background with ID: b1. Output is being written to: {output}. You will be notified when"
        " it completes."
    )
    given = {"command": "npm run dev", "run_in_background": True}
    calls = [{"tool_name": "Bash", "tool_input": given, "tool_response": response}]
    call(bench, "claude", "PostToolBatch", tool_calls=calls)
    (found,) = bench.json("hand-off", "--session", SESSION)["foreign"]
    assert (found["id"], found["command"], found["output"]) == ("b1", "npm run dev", str(output))
    still = [{"id": "b1", "type": "shell", "status": "running", "description": "dev", "command": "npm run dev"}]
    call(bench, "claude", "Stop", background_tasks=still)
    assert [each["output"] for each in bench.json("hand-off", "--session", SESSION)["foreign"]] == [str(output)]
    call(bench, "claude", "Stop", background_tasks=[])
    assert bench.json("hand-off", "--session", SESSION)["foreign"] == []
