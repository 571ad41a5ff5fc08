"""Which session a process works for, according to its environment variables."""

from __future__ import annotations

import pytest

from outlive.service.tasks.launch_context import environ_of_task, own_session_of, session_of

CLAUDE, CODEX, PLUGIN = "CLAUDE_CODE_SESSION_ID", "CODEX_SESSION_ID", "OUTLIVE_SESSION"
INSIDE = [
    ("nothing else", {}, {}, "P"),
    ("the launcher's own variable", {CLAUDE: "P"}, {}, "P"),
    ("a variable of another launcher's client", {CLAUDE: "X"}, {}, "P"),
    ("Claude Code in it", {}, {CLAUDE: "C"}, "C"),
    ("Claude Code in a task of Claude Code", {CLAUDE: "P"}, {CLAUDE: "C"}, "C"),
    ("Claude Code that resumes the launcher", {CLAUDE: "P"}, {CLAUDE: "P"}, "P"),
    ("Codex in it", {}, {CODEX: "C"}, "C"),
    ("Codex in a task of Claude Code", {CLAUDE: "P"}, {CODEX: "C"}, "C"),
    ("Codex in a task of another Codex", {CODEX: "X"}, {CODEX: "C"}, "C"),
    ("a plugin in it", {CLAUDE: "P"}, {PLUGIN: "C"}, "C"),
    ("a person inside a client in it", {CLAUDE: "P"}, {CLAUDE: "D", PLUGIN: "C"}, "C"),
]


@pytest.mark.parametrize(("outer", "inner", "expected"), [row[1:] for row in INSIDE], ids=[row[0] for row in INSIDE])
def test_session_of_a_process_in_a_task_is_the_one_named_inside(
    outer: dict[str, str], inner: dict[str, str], expected: str
) -> None:
    """If a session is named inside a task, it has precedence over the session that launched the task."""
    task = environ_of_task(outer, "t1", "P")
    assert session_of({**task, **inner}) == expected


def test_session_of_a_task_in_a_task_is_the_one_named_inside() -> None:
    """A task inside a task belongs to the session that is named in either task, the inner one first."""
    outer = {**environ_of_task({CLAUDE: "P"}, "t1", "P"), CLAUDE: "C"}
    inner = environ_of_task(outer, "t2", session_of(outer))
    assert session_of(inner) == "C"
    assert session_of({**inner, CODEX: "D"}) == "D"
    assert session_of({**inner, PLUGIN: "P"}) == "P"


def test_session_of_a_process_outside_a_task_is_the_first_one_named() -> None:
    """Outside of a task, OUTLIVE_SESSION comes before the variables of clients.

    The variable with the sessions around a task is ignored there.
    """
    found = {PLUGIN: "P", CLAUDE: "C", "OUTLIVE_INHERITED_SESSIONS": "P"}
    assert session_of(found) == "P"
    assert session_of({CLAUDE: "C", CODEX: "D"}) == "C"
    assert session_of({}) is None


def test_session_name_with_spaces_is_inherited_whole() -> None:
    """Inside the task, the inherited session name still has its spaces."""
    task = environ_of_task({}, "t1", "my first session")
    assert session_of({**task, CLAUDE: "C"}) == "C"
    assert session_of(task) == "my first session"


def test_session_of_a_message_comes_before_that_of_the_task() -> None:
    """A session in a client's message comes before the task's session, but not before one named inside the task."""
    task = environ_of_task({}, "t1", "P")
    assert own_session_of(task) is None
    assert own_session_of(task, "C") == "C"
    assert own_session_of({**task, PLUGIN: "D"}, "C") == "D"
