"""Hooks that warn about files which a task has changed and not restored, and hooks that record edits and shells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from outlive.hooks.state.left_paths import read_left_paths
from outlive.hooks.state.unchanged import stamp_of
from tests.effects_steps import window_on
from tests.git_steps import ENVIRON, Worktree
from tests.hook_steps import SESSION, call, context, launch, said
from tests.session_steps import until
from tests.support import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench

# The event of each client at which the hook asks the guard.
BEFORE = {
    "claude": "PreToolUse",
    "gemini": "advise",
    "opencode": "tool.execute.before",
    "openclaw": "before_tool_call",
}

pytestmark = pytest.mark.usefixtures("repo")


@pytest.fixture
def repo(bench: Bench) -> Path:
    """Return a repository with one committed file that has an uncommitted change."""
    bench.env.update({name: each for name, each in ENVIRON.items() if name.startswith("GIT_")})
    worktree = Worktree(bench.project)
    worktree.commit(**{"a.py": "one\n"})
    worktree.write("a.py", "two\n")
    return bench.project


def stashed(bench: Bench) -> str:
    """Launch a task that stashes a.py and restores it when the file `go` exists."""
    task = launch(bench, f"git stash push -q; {until('go')}; git stash pop -q")
    window_on(bench, task, "a.py")
    return task


def about_to(bench: Bench, tool: str, **tool_input: Any) -> str:
    """Call the hook that runs before a tool, and return its text for the model."""
    return context(said(call(bench, "claude", "PreToolUse", tool_name=tool, tool_input=tool_input)))


def test_hook_warns_before_a_tool_touches_a_held_file(bench: Bench, repo: Path) -> None:
    """While a task has changed a.py, the hook warns before an edit of a.py, a git command and a test run.

    For tools that do not touch a.py, the hook prints no warning.
    """
    assert about_to(bench, "Edit", file_path=str(repo / "a.py")) == ""
    task = stashed(bench)
    for tool, given in (
        ("Edit", {"file_path": str(repo / "a.py")}),
        ("Write", {"file_path": "a.py"}),
        ("Bash", {"command": "git commit -am done"}),
        ("Bash", {"command": "pytest -q"}),
    ):
        assert f"task {task} has changed a.py and not restored it," in about_to(bench, tool, **given), given
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
def test_hook_warns_before_a_tool_reads_a_held_file(
    bench: Bench, repo: Path, client: str, tool: str, given: dict[str, str]
) -> None:
    """The hook warns before a tool reads a file that a task has changed and not restored, or searches its directory.

    Sub-agents are warned, too.
    """
    (repo / "docs").mkdir()
    elsewhere = dict.fromkeys(("file_path", "filePath", "path", "dir_path"), "docs")

    def told(given: dict[str, str], **fields: Any) -> str:
        answer = said(call(bench, client, BEFORE[client], tool_name=tool, tool_input=given, **fields))
        return context(answer) or str(answer.get("context", ""))

    assert told(given) == ""
    task = stashed(bench)
    for fields in ({}, {"agent_id": "sub"}, {"is_sub_agent": True}):
        assert f"task {task} has changed a.py and not restored it," in told(given, **fields)
    assert told(elsewhere) == ""
    assert said(call(bench, client, BEFORE[client], "--guard", "off", tool_name=tool, tool_input=given)) == {}
    (repo / "go").touch()
    bench.run("wait", task, "--no-ack")
    assert told(given) == ""


def test_hook_resolves_a_search_in_the_present_directory_of_the_client(bench: Bench, repo: Path) -> None:
    """The hook looks for the searched files in the directory that the payload names.

    The client may have been started in another directory.
    """
    (repo / "docs").mkdir()
    task = stashed(bench)
    started = {"CLAUDE_PROJECT_DIR": str(repo / "docs")}
    about: dict[str, Any] = {"tool_name": "Grep", "tool_input": {"pattern": "one"}}
    assert f"task {task} has changed a.py" in context(said(call(bench, "claude", "PreToolUse", env=started, **about)))
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
def test_hook_records_no_edit_when_a_tool_only_reads(
    bench: Bench, repo: Path, client: str, event: str, fields: dict[str, Any]
) -> None:
    """If a tool only reads a file, the notice of a task does not name this as an edit by the session."""
    task = launch(bench, f"echo three > a.py; {until('go')}")
    wait_until(lambda: bench.json("effects", task)["changed"], "the write of the task")
    assert call(bench, client, event, **fields).returncode == 0
    (repo / "go").touch()
    bench.run("wait", task, "--no-ack")
    (notice,) = bench.json("inbox", "--session", SESSION)["notices"]
    assert notice["overlap"] == []


def test_hook_warns_when_a_file_in_the_command_cannot_be_determined(bench: Bench, repo: Path) -> None:
    """The hook warns before a command with `$FILE`, because this may be a file that a task has changed.

    For a search pattern such as `$P`, the hook prints no warning.
    """
    task = stashed(bench)
    told = about_to(bench, "Bash", command="cat $FILE")
    assert f"touches this, because $FILE cannot be interpreted: task {task} has changed a.py" in told
    assert about_to(bench, "Bash", command='grep "$P" /etc/hostname') == ""
    (repo / "go").touch()
    bench.run("wait", task, "--no-ack")
    assert about_to(bench, "Bash", command="cat $FILE") == ""


def test_hook_warns_of_a_file_that_an_ended_task_left_changed_until_it_is_restored(bench: Bench, repo: Path) -> None:
    """The hook warns of a file that an ended task left changed, until the file is restored.

    The warning says that no process is going to restore the file.
    """
    task = launch(bench, "git stash push -q; kill -9 $$")
    bench.run("wait", task, "--no-ack")
    told = about_to(bench, "Edit", file_path=str(repo / "a.py"))
    assert f"task {task} has ended and left a.py changed" in told
    assert "The task will not restore the files" in told
    (repo / "a.py").write_text("two\n")
    assert about_to(bench, "Edit", file_path=str(repo / "a.py")) == ""


def test_hook_gives_advice_and_warning_in_one_answer(bench: Bench) -> None:
    """The hook prints advice and a warning in one JSON document, because a client reads only one document per hook."""
    task = stashed(bench)
    told = about_to(bench, "Bash", command="nohup git commit -am done &")
    assert f"task {task} has changed a.py" in told
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
def test_notice_names_files_that_the_session_edited_while_the_task_ran(
    bench: Bench, repo: Path, client: str, event: str, fields: dict[str, Any]
) -> None:
    """A task's notice names a file that the session, or its sub-agent, edited with a tool while the task ran."""
    task = launch(bench, f"echo three > a.py; {until('go')}")
    wait_until(lambda: bench.json("effects", task)["changed"], "the write of the task")
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
def test_notice_names_no_edit_that_the_client_refused(bench: Bench, repo: Path, response: Any) -> None:
    """If the client refused an edit, the notice of a task does not name it. The file was not changed."""
    task = launch(bench, f"echo three > a.py; {until('go')}")
    wait_until(lambda: bench.json("effects", task)["changed"], "the write of the task")
    edit: dict[str, Any] = {"tool_input": {"file_path": "a.py"}, "tool_response": response}
    if isinstance(response, dict):
        call(bench, "gemini", "AfterTool", tool_name="replace", **edit)
    else:
        call(bench, "claude", "PostToolBatch", tool_calls=[{"tool_name": "Edit", **edit}])
    (repo / "go").touch()
    bench.run("wait", task, "--no-ack")
    (notice,) = bench.json("inbox", "--session", SESSION)["notices"]
    assert notice["overlap"] == []


def test_notice_dates_a_late_reported_edit_by_the_time_of_its_file(bench: Bench, repo: Path) -> None:
    """A notice dates an edit by the time of the edited file.

    Clients report an edit too late, after a whole batch of tools.
    """
    task = launch(bench, f"echo three > a.py; {until('go')}")
    wait_until(lambda: bench.json("effects", task)["changed"], "the write of the task")
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


def test_notice_of_a_task_in_a_submodule_names_an_edit_from_the_outer_repository(bench: Bench, repo: Path) -> None:
    """If a task in a submodule and a session in the outer repository change one file, the notice names the edit.

    The task and the session belong to two projects.
    """
    inner = Worktree(repo / "inner")
    inner.commit(x="1\n")
    task = launch(bench, f"echo three > x; {until('go')}", "--cwd", str(inner.path))
    wait_until(lambda: bench.json("effects", task)["changed"], "the write of the task")
    call(bench, "claude", "PostToolBatch", tool_calls=[{"tool_name": "Edit", "tool_input": {"file_path": "inner/x"}}])
    (inner.path / "go").touch()
    bench.run("wait", task, "--no-ack")
    (notice,) = bench.json("inbox", "--session", SESSION, cwd=inner.path)["notices"]
    assert [(each["session"], each["paths"]) for each in notice["overlap"]] == [(SESSION, [str(inner.path / "x")])]


def test_hook_records_no_edit_when_no_task_runs(bench: Bench) -> None:
    """If an edit was made while no task ran, the notice of a task that begins later does not name it."""
    launch(bench, "true")
    call(bench, "claude", "PostToolBatch", tool_calls=[{"tool_name": "Edit", "tool_input": {"file_path": "a.py"}}])
    task = launch(bench, "echo three > a.py")
    bench.run("wait", task, "--no-ack")
    notices = bench.json("inbox", "--session", SESSION)["notices"]
    assert all(notice["overlap"] == [] for notice in notices)


def test_hand_off_names_a_client_shell_from_its_start_to_its_end(bench: Bench, repo: Path) -> None:
    """The hand-off names a shell that the client itself runs in the background, until it ends.

    The hook finds its start in the result of the client's tool, and its end when the client stops it.
    """
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


def test_hook_warns_while_a_client_shell_may_hold_a_file(bench: Bench, repo: Path) -> None:
    """While a client itself runs a shell in the background, the hook warns of files that this shell may have changed.

    The shell is not observed, so the hook cannot know. For a harmless or an ended shell, the hook does not open the
    ledger.
    """

    def start(command: str) -> None:
        response = "Command running in background with ID: b1. Output is being written to: /nowhere/b1.output."
        given = {"command": command, "run_in_background": True}
        calls = [{"tool_name": "Bash", "tool_input": given, "tool_response": response}]
        call(bench, "claude", "PostToolBatch", tool_calls=calls)

    def is_answered_by_index() -> bool:
        assert about_to(bench, "Edit", file_path=str(repo / "a.py")) == ""
        home = bench.home
        return read_left_paths(home, stamp_of(home)) is not None

    call(bench, "claude", "SessionStart", source="startup")
    start("npm run dev")
    wait_until(is_answered_by_index, "the index to be written beside a harmless shell")
    start("git stash && npm test; git stash pop")
    for tool, given in (("Edit", {"file_path": str(repo / "a.py")}), ("Bash", {"command": "git commit -am done"})):
        told = about_to(bench, tool, **given)
        assert told.startswith("[outlive] cannot tell whether a path is held"), tool
        assert "b1, kept by claude itself, (running) by its text takes files away for a while" in told
        assert "outlive wait" not in told, "the client's shell is called a task"
    assert about_to(bench, "Edit", file_path="/elsewhere/a.py") == ""
    call(bench, "claude", "Stop", background_tasks=[])
    wait_until(is_answered_by_index, "the index to be written when the shell has ended")
