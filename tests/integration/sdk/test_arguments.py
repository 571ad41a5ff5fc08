"""Arguments of the SDK: wrong types, and the project of a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from outlive import Outlive, Task, UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Bench


@pytest.fixture
def client(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Outlive:
    """Return a client for the test's own state directory and project."""
    monkeypatch.chdir(bench.project)
    monkeypatch.delenv("OUTLIVE_SESSION", raising=False)
    return Outlive(home=str(bench.state))


@pytest.mark.parametrize(
    "launch",
    [
        lambda client: client.run(None),
        lambda client: client.run(5),
        lambda client: client.run(b"true"),
        lambda client: client.run("true", after=5),
        lambda client: client.run("true", after=[None]),
        lambda client: client.run("true", locks=5),
        lambda client: client.run("true", slots="gpu"),
        lambda client: client.run("true", touches=[None]),
        lambda client: client.run("true", cwd=5),
        lambda client: client.agent("hello", fallback=5),
        lambda client: client.agent("hello", fallback=[None]),
        lambda client: client.agent("hello", resume=5),
        lambda client: client.agent("hello", model=5),
    ],
)
def test_argument_of_a_wrong_type_is_a_user_error(client: Outlive, launch: Callable[[Any], Task]) -> None:
    """A launch with an argument of a wrong type raises `UserError`, and starts nothing."""
    with pytest.raises(UserError):
        launch(client)
    assert client.tasks() == []


def test_calls_use_the_project_of_their_client(client: Outlive, bench: Bench) -> None:
    """Tasks of a client with a project run there, and `tasks` and `session` use this project.

    An argument of the call takes precedence. A client without a project uses the current directory.
    """
    other = bench.root / "other"
    other.mkdir()
    there = Outlive(home=str(bench.state), project=other)
    task, here = there.run("pwd").wait(), client.run("true").wait()
    assert task.output() == f"{other}\n".encode()
    assert task.as_dict()["project"] == str(other)
    assert [found.id for found in there.tasks()] == [task.id]
    assert [found.id for found in client.tasks()] == [here.id]
    assert [found.id for found in there.tasks(project=bench.project)] == [here.id]
    assert there.session("s-1").project == str(other)
    assert there.session("s-1", project=bench.project).project == str(bench.project)
    assert there.run("pwd", cwd=bench.project).wait().output() == f"{bench.project}\n".encode()
