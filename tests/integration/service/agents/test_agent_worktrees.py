"""Agents in git worktrees of their own. An unchanged worktree is removed, and a changed one is kept and named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from outlive import Outlive, Unavailable
from outlive.linux.seccomp import is_known_machine
from tests.agent_steps import Agents
from tests.comparison_steps import begun, compared
from tests.git_steps import Worktree
from tests.mcp_steps import document_of, over_stdio, play, text_of
from tests.support import wait_until

if TYPE_CHECKING:
    from tests.support import Bench


@pytest.fixture
def agents(bench: Bench) -> Agents:
    """Create a user with two scripted clients."""
    return Agents(bench)


def test_unchanged_worktree_is_removed(agents: Agents) -> None:
    """If the agent has changed nothing, its worktree and its branch are removed."""
    tree = Worktree(agents.bench.project)
    tree.commit(a="1\n")
    shown = agents.ended("call cat a", "answer nothing to do", options=("--worktree",))
    assert shown["agent"]["worktree"] is None
    assert shown["cwd"].startswith(f"{agents.bench.home.worktrees}/{shown['id']}")
    assert shown["project"] == str(agents.bench.project)
    assert not Path(shown["cwd"]).exists()
    assert tree.git("branch", "--list", "outlive/*") == b""


@pytest.mark.parametrize("step", ["call echo 2 > a", "call echo new > b", "call git commit -qam x --allow-empty"])
def test_changed_worktree_is_kept_and_named(agents: Agents, step: str) -> None:
    """The notice and `result` name the directory and the branch of a changed worktree.

    The agent has not changed the project's own files.
    """
    tree = Worktree(agents.bench.project)
    tree.commit(a="1\n")
    tree.git("config", "user.name", "a")
    tree.git("config", "user.email", "a@example.org")
    shown = agents.ended(step, "answer done", options=("--worktree", "--session", "s-1"))
    place, branch = shown["agent"]["worktree"], shown["agent"]["branch"]
    assert (place, branch) == (f"{agents.bench.home.worktrees}/{shown['id']}", f"outlive/{shown['id']}")
    assert Path(place).is_dir()
    assert (agents.bench.project / "a").read_text() == "1\n"
    notice = agents.bench.json("inbox", "--session", "s-1", "--peek")["notices"][0]
    assert f"worktree: {place}, branch {branch}" in notice["text"]
    assert f"worktree: {place}" in agents.bench.ok("result", shown["id"])


def test_worktree_runs_no_hook_of_the_repository(agents: Agents) -> None:
    """Creating and removing the worktree executes no hook of the repository."""
    tree = Worktree(agents.bench.project)
    tree.commit(a="1\n")
    hook = agents.bench.project / ".git/hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {agents.bench.root}/ran\n")
    hook.chmod(0o755)
    agents.ended("answer ok", options=("--worktree",))
    assert not (agents.bench.root / "ran").exists()


def test_worktree_outside_of_a_repository_is_refused(agents: Agents) -> None:
    """Outside of a repository, an agent with a worktree is refused. The error names the directory."""
    done = agents.bench.run("agent", "--worktree", "--", "answer")
    assert done.returncode == 2
    assert "is in no git repository" in done.stderr
    assert agents.bench.json("list", "--all")["tasks"] == []


HIDDEN = {
    "an ignored file": "call echo kept > notes.ign",
    "a commit on no branch": "call git checkout -q --detach && git commit -q --allow-empty -m x && git checkout -q -",
    "a commit on another branch": "call git checkout -qb b && git commit -q --allow-empty -m x && git checkout -q -",
}


@pytest.mark.parametrize("step", HIDDEN.values(), ids=HIDDEN)
def test_worktree_with_work_that_git_does_not_report_is_kept(agents: Agents, step: str) -> None:
    """A worktree with ignored files or new commits is kept.

    `git status` does not show this work, and `git worktree remove` would delete it.
    """
    tree = Worktree(agents.bench.project)
    tree.write(".gitignore", "*.ign\n")
    tree.commit(a="1\n")
    tree.git("config", "user.name", "a")
    tree.git("config", "user.email", "a@example.org")
    shown = agents.ended(step, "answer done", options=("--worktree",))
    assert shown["agent"]["worktree"] is not None
    assert Path(shown["agent"]["worktree"]).is_dir()


def test_branch_of_a_worktree_that_the_agent_deleted_is_named(agents: Agents) -> None:
    """If an agent has deleted its worktree, its record names the branch, which still has the agent's commit."""
    tree = Worktree(agents.bench.project)
    tree.commit(a="1\n")
    commit = "call git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && rm -rf $PWD"
    shown = agents.ended(commit, "answer done", options=("--worktree",))
    assert shown["agent"]["branch"] == f"outlive/{shown['id']}"
    assert tree.git("branch", "--list", "outlive/*").split()[-1] == f"outlive/{shown['id']}".encode()


def test_worktree_of_an_agent_that_never_began_is_removed(agents: Agents) -> None:
    """If an agent never began, its worktree is removed.

    One agent is cancelled in the queue, and another one's dependency fails.
    """
    tree = Worktree(agents.bench.project)
    tree.commit(a="1\n")
    first = agents.launch("until go", "exit 1")
    queued = [
        agents.launch("answer ok", options=("--worktree", "--after", first)),
        agents.launch("answer ok", options=("--worktree", "--after", first)),
    ]
    agents.bench.ok("cancel", queued[0])
    (agents.bench.project / "go").touch()
    assert [agents.wait(task)["reason"] for task in queued] == ["requested", "dependency_failed"]
    assert os.listdir(agents.bench.home.worktrees) == []
    assert tree.git("branch", "--list", "outlive/*") == b""


def test_worktree_is_named_when_the_next_attempt_is_cancelled_before_it_begins(agents: Agents) -> None:
    """A worktree that the first attempt changed is kept and named, even if the next attempt never began."""
    tree = Worktree(agents.bench.project)
    tree.commit(a="1\n")
    agents.configure(more='[agents.models."bot:m2"]\nat_once = 1\n')
    holder = agents.launch("sleep 60", options=("--model", "m2"))
    options = ("--worktree", "--model", "m1", "--fallback", "m2")
    task = agents.launch("call echo 2 > a", "m1? error Overloaded (529)", "m1? exit 1", options=options)
    wait_until(lambda: len(agents.bench.show(task)["attempts"]) == 2, "the second attempt")
    agents.bench.ok("cancel", task, holder)
    assert agents.bench.show(task)["agent"]["worktree"] == f"{agents.bench.home.worktrees}/{task}"


def test_resumed_agent_works_in_the_removed_worktree_again(agents: Agents) -> None:
    """An agent that is resumed after its unchanged worktree was removed works in the same worktree, made again.

    The project's own files stay unchanged, the project's session is told of the ending, and the new worktree is not
    reported as a later change of the first task's files.
    """
    tree = Worktree(agents.bench.project)
    tree.commit(a="1\n", **{"inner/b": "1\n"})
    inner = agents.bench.project / "inner"
    first = agents.wait(agents.launch("ask which one?", options=("--worktree",), cwd=inner))
    assert (first["reason"], first["agent"]["worktree"]) == ("asked", None)
    again = agents.ended("call echo 2 > b", "answer done", options=("--resume", first["id"], "--session", "s-1"))
    place, branch = f"{agents.bench.home.worktrees}/{first['id']}", f"outlive/{first['id']}"
    assert again["cwd"] == first["cwd"] == f"{place}/inner"
    assert (again["agent"]["worktree"], again["agent"]["branch"]) == (place, branch)
    assert again["project"] == str(agents.bench.project)
    assert Path(place, "inner/b").read_text() == "2\n"
    assert agents.bench.show(first["id"])["drift"] is None
    assert (inner / "b").read_text() == "1\n"
    notice = agents.bench.json("inbox", "--session", "s-1", "--peek")["notices"][0]
    assert f"worktree: {place}, branch {branch}" in notice["text"]


def test_agent_resumed_in_a_kept_worktree_belongs_to_the_project(agents: Agents) -> None:
    """An agent that is resumed in a kept worktree belongs to the project, and gets the same worktree and branch.

    The session in the project is told of the ending, and `list` in the project names the task.
    """
    tree = Worktree(agents.bench.project)
    tree.commit(a="1\n")
    first = agents.ended("call echo 2 > a", "answer done", options=("--worktree",))
    again = agents.ended("call cat a", "answer done", options=("--resume", first["id"], "--session", "s-1"))
    assert again["project"] == first["project"] == str(agents.bench.project)
    assert (again["cwd"], again["agent"]["worktree"]) == (first["cwd"], first["agent"]["worktree"])
    assert again["agent"]["branch"] == f"outlive/{first['id']}"
    assert Path(again["cwd"], "a").read_text() == "2\n"
    assert len(agents.bench.json("inbox", "--session", "s-1", "--peek")["notices"]) == 1
    assert again["id"] in [each["id"] for each in agents.bench.json("list")["tasks"]]
    assert f"worktree: {again['cwd']}" in agents.bench.ok("result", again["id"])


def test_unchanged_worktree_of_a_resumed_agent_is_removed(agents: Agents) -> None:
    """A resumed agent that changes nothing leaves no worktree and no branch."""
    tree = Worktree(agents.bench.project)
    tree.commit(a="1\n")
    first = agents.ended("ask which one?", options=("--worktree",))
    again = agents.ended("answer none", options=("--resume", first["id"]))
    assert again["cwd"] == first["cwd"]
    assert again["agent"]["worktree"] is None
    assert os.listdir(agents.bench.home.worktrees) == []
    assert tree.git("branch", "--list", "outlive/*") == b""


def test_resumed_agent_has_the_commits_of_a_worktree_that_was_deleted(agents: Agents) -> None:
    """If only the directory was deleted, the resumed agent works on the branch with the commits of the ended task."""
    tree = Worktree(agents.bench.project)
    tree.commit(a="1\n")
    commit = "call echo 2 > a && git -c user.name=a -c user.email=a@b commit -qam x && rm -rf $PWD"
    first = agents.ended(commit, "answer done", options=("--worktree",))
    again = agents.ended("call cat a", "answer done", options=("--resume", first["id"]))
    assert Path(again["agent"]["worktree"], "a").read_text() == "2\n"


def test_worktree_in_which_another_task_works_is_kept(agents: Agents) -> None:
    """If an agent ends while a resumed agent works in the same worktree, the worktree is kept.

    The first task is tried again in a new session, because its first attempt had called no tool. A second resumed agent
    is refused, which does not remove the worktree either.
    """
    tree = Worktree(agents.bench.project)
    tree.commit(a="1\n")
    first = agents.ended("exit 1", options=("--worktree",))
    other = agents.launch("until go", "answer done", options=("--resume", first["id"]))
    wait_until(lambda: Path(first["cwd"]).is_dir(), "the worktree")
    assert agents.bench.run("agent", "--resume", first["id"], "--", "answer x").returncode == 2
    agents.bench.ok("retry", first["id"])
    assert agents.wait(first["id"])["agent"]["worktree"] == first["cwd"]
    assert Path(first["cwd"]).is_dir()
    Path(first["cwd"], "go").touch()
    assert agents.wait(other)["agent"]["worktree"] == first["cwd"]


def test_retried_agent_has_the_commits_of_a_worktree_that_was_deleted(agents: Agents) -> None:
    """If only the directory was deleted, `retry` checks the branch out again, with the commits of the last attempt."""
    tree = Worktree(agents.bench.project)
    tree.commit(a="1\n")
    step = (
        "call test -e b || { touch b && git add b && git -c user.name=a -c user.email=a@b commit -qm x && rm -r $PWD; }"
    )
    first = agents.ended(step, "exit 1", options=("--worktree",))
    assert not Path(first["cwd"]).exists()
    agents.bench.ok("retry", first["id"])
    agents.wait(first["id"])
    assert Path(first["cwd"], "b").exists()


@pytest.mark.skipif(not is_known_machine(), reason="the calls of this machine are not known")
def test_effects_of_an_agent_in_a_worktree_are_observed(agents: Agents) -> None:
    """The effects of an agent name the files that it changed and created in its worktree.

    While the agent has changed a file, the guard names the agent for this file, but not for the same file of the
    repository.
    """
    bench, go = agents.bench, agents.bench.root / "go"
    Worktree(bench.project).commit(a="1\n", c="1\n")
    steps = ("call echo new > b; echo 2 > a; echo 2 > c", f"until {go}", "call echo 1 > a", "answer ok")
    task = agents.launch(*steps, options=("--worktree",))
    place = f"{bench.home.worktrees}/{task}"

    def holders(path: str) -> list[str]:
        return [each["task"] for each in bench.json("guard", path)["holders"]]

    wait_until(lambda: holders(f"{place}/c") == [task], "the window on c")
    assert (holders(f"{place}/a"), holders(place), holders(str(bench.project / "a"))) == ([task], [task], [])
    go.touch()
    agents.wait(task)
    assert holders(f"{place}/a") == []
    effects = bench.json("effects", task)
    assert effects["level"] == "observed"
    assert (effects["created"], effects["changed"]) == ([f"{place}/b"], [f"{place}/c"])
    assert effects["restored"] == [f"{place}/a"]


def test_effects_of_a_compared_task_in_a_worktree_are_found(bench: Bench) -> None:
    """A comparison names the files that a task changed and created in the worktree of an agent."""
    tree, place = Worktree(bench.project), f"{bench.home.worktrees}/tq7bxkfm"
    tree.commit(a="1\n")
    tree.git("worktree", "add", "-q", "-b", "outlive/tq7bxkfm", place)
    found = compared(bench, begun(bench, "echo 2 > a; touch b", "--observe", "compare", "--cwd", place))
    assert (found["level"], found["changed"], found["created"]) == ("compared", [f"{place}/a"], [f"{place}/b"])


def test_client_gives_an_agent_its_worktree(agents: Agents, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that the SDK launches with a worktree works there, and its unchanged worktree is removed afterwards."""
    bench = agents.bench
    tree = Worktree(bench.project)
    tree.commit(a="1\n")
    monkeypatch.chdir(bench.project)
    monkeypatch.setenv("XDG_CONFIG_HOME", bench.env["XDG_CONFIG_HOME"])
    client = Outlive(home=str(bench.state))
    task = client.agent("call cat a\nanswer done", worktree=True).wait(60)
    assert (task.state, task.answer) == ("succeeded", "done")
    assert task.cwd == f"{bench.home.worktrees}/{task.id}"
    assert tree.git("branch", "--list", "outlive/*") == b""
    kept = client.agent("call echo 2 > a\nanswer done", worktree=True).wait(60)
    assert (Path(kept.cwd) / "a").read_text() == "2\n"


def test_agent_tool_gives_an_agent_its_worktree(agents: Agents) -> None:
    """An agent that the MCP tool `agent` launches with a worktree works there."""
    bench = agents.bench
    tree = Worktree(bench.project)
    tree.commit(a="1\n")

    async def steps() -> None:
        async with over_stdio(bench, "legacy") as client:
            answer = await client.call_tool("agent", {"prompt": "call echo 2 > a\nanswer done", "worktree": True})
            assert not answer.is_error, text_of(answer)
            shown = agents.wait(document_of(answer)["id"])
            assert (Path(shown["agent"]["worktree"]) / "a").read_text() == "2\n"

    play(steps)


def test_failed_launch_leaves_no_branch(agents: Agents, monkeypatch: pytest.MonkeyPatch) -> None:
    """If git cannot check out the files of a worktree, the launch fails and leaves no branch and no task."""
    bench = agents.bench
    tree = Worktree(bench.project)
    tree.commit(a="1\n", **{".gitattributes": "a filter=broken\n"})
    tree.git("config", "filter.broken.smudge", "false")
    tree.git("config", "filter.broken.required", "true")
    monkeypatch.chdir(bench.project)
    monkeypatch.setenv("XDG_CONFIG_HOME", bench.env["XDG_CONFIG_HOME"])
    with pytest.raises(Unavailable, match="could not add the worktree"):
        Outlive(home=str(bench.state)).agent("answer done", worktree=True)
    assert bench.run("agent", "--worktree", "--", "answer done").returncode != 0
    assert tree.git("branch", "--list", "outlive/*") == b""
    assert len(tree.git("worktree", "list").splitlines()) == 1
    assert bench.json("list", "--all")["tasks"] == []
