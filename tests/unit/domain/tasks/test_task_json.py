"""The JSON of tasks and of their changed files. Other programs depend on the names of its fields."""

from __future__ import annotations

import json

import pytest

from outlive.domain.effects.effects import Window
from outlive.domain.tasks.evidence import Evidence
from outlive.domain.tasks.sink_config import Delivery
from outlive.domain.tasks.task import Attempt, History, LeftRunning, NoticeRow, Task
from outlive.domain.tasks.task_json import OutputView, duration_s, history_json, task_json
from outlive.domain.text.sanitize import to_json
from outlive.service.effects.effects import window_document
from tests.unit.values import NOW, SECOND, attempt, launch

# The example in the interface description. Names may be added to it, and none may be renamed.
EXAMPLE = json.loads("""
{"id": "t7k2m9q4", "description": "Stash fix and run tests expecting red",
 "command": "git stash push -- src && pytest; git stash pop", "argv": ["sh", "-c", "..."], "cwd": "/home/u/repo",
 "state": "succeeded", "exit_code": 0, "signal": null, "reason": null, "condition": null,
 "session": "s-1", "lineage": "l-1", "project": "/home/u/repo", "group": null, "parent": null, "key": null,
 "mode": "background", "engine": "local", "host": "box", "attempt": 1,
 "attempts": [{"number": 1, "state": "succeeded", "exit_code": 0}],
 "created_at": "2026-06-21T13:58:02.113Z", "started_at": "...", "settled_at": "...", "duration_s": 41.2,
 "delete_after": "...",
 "output": {"path": "...", "bytes": 18233, "dropped_bytes": 0, "truncated": false, "tail": "..."},
 "git": {"repo": "/home/u/repo", "branch": "fix/x", "head_before": "...", "head_after": "..."},
 "effects": {"level": "observed", "shared": true, "summary": "3 tracked files changed and restored; window 39 s",
  "windows": [{"scope": "/home/u/repo", "duration_s": 39.2, "restored": true}], "paths_changed": 0,
  "paths_restored": 3},
 "left_running": [], "settled_by": "keeper"}
""")
WINDOW = json.loads("""
{"scope": "/home/u/repo", "paths": ["src/a.py"], "opened_at": "2026-06-21T13:58:02.113Z",
 "closed_at": "2026-06-21T13:58:41.313Z", "duration_s": 39.2, "restored": true, "by": "git stash push"}
""")
JOINED_SINCE = {"detail", "ended_at", "adopted", "kind", "agent"}
OUTPUT = OutputView(path="/state/output", size=18_233, dropped=4096, truncated=False, tail="ok\n")


def ended(**changes: object) -> Attempt:
    """Return an attempt that ran for 41.2 seconds."""
    return attempt(
        state="succeeded",
        started_at=NOW,
        ended_at=NOW + 41.2 * SECOND,
        settled_at=NOW + 42 * SECOND,
        exit_code=0,
        settled_by="keeper",
        delete_after=NOW + 99 * SECOND,
    ).but(**changes)


def shown(current: Attempt, *earlier: Attempt) -> dict[str, object]:
    """Return the JSON of a task as a reader parses it."""
    task = Task(launch=launch(session="s-1"), attempts=(*earlier, current))
    parsed: dict[str, object] = json.loads(to_json(task_json(task, OUTPUT, NOW + 100 * SECOND)))
    return parsed


def test_a_task_has_exactly_the_promised_fields() -> None:
    """The JSON of a task has the fields of the example in the interface description, and those added later."""
    assert set(shown(ended())) == set(EXAMPLE) | JOINED_SINCE


def test_the_output_has_exactly_the_promised_fields() -> None:
    """The field `output` has the names of the interface description and the values of the output."""
    output = shown(ended())["output"]
    assert output == {
        "path": "/state/output",
        "bytes": 18_233,
        "dropped_bytes": 4096,
        "truncated": False,
        "tail": "ok\n",
    }
    assert set(output) == set(EXAMPLE["output"])


def test_task_lists_every_attempt_and_takes_its_state_from_the_newest() -> None:
    """A task lists every attempt, and has the state of the newest one."""
    task = shown(ended(number=2), ended(state="failed", exit_code=3))
    attempts = task["attempts"]
    assert isinstance(attempts, list)
    assert [(each["number"], each["state"], each["exit_code"]) for each in attempts] == [
        (1, "failed", 3),
        (2, "succeeded", 0),
    ]
    assert set(EXAMPLE["attempts"][0]) <= set(attempts[0])
    assert (task["attempt"], task["state"], task["exit_code"]) == (2, "succeeded", 0)


def test_task_has_its_scalar_fields_under_the_promised_names() -> None:
    """The text, numbers and times of a task have the names and forms of the interface description."""
    task = shown(ended(left_running=(LeftRunning(pid=77, command="sleep 9"),)))
    assert task["id"] == "t7k2m9q4"
    assert task["argv"] == ["make", "test"]
    assert task["session"] == "s-1"
    assert task["created_at"] == task["started_at"] == "2026-06-21T13:58:02.113Z"
    assert task["settled_at"] == "2026-06-21T13:58:44.113Z"
    assert task["duration_s"] == 41.2
    assert task["left_running"] == [{"pid": 77, "command": "sleep 9"}]


def test_unknown_fields_of_a_task_are_null() -> None:
    """A field whose value is not known is null. An empty object would mean that it is known and empty."""
    task = shown(attempt())
    for name in ("git", "effects", "lineage", "exit_code", "signal", "started_at", "settled_at"):
        assert task[name] is None
    assert (task["duration_s"], task["delete_after"], task["settled_by"]) == (None, None, None)


@pytest.mark.parametrize(
    ("current", "seconds"),
    [
        (attempt(), None),
        (attempt(state="running", started_at=NOW), 100.0),
        (ended(), 41.2),
        (ended(state="lost", ended_at=None, exit_code=None), None),
        (ended(started_at=NOW + 42 * SECOND), 0.0),
        (ended(started_at=NOW + 60 * SECOND), None),
        (ended(started_at=None, ended_at=None, state="failed"), None),
    ],
)
def test_duration_of_a_task_is_null_when_it_is_not_known(current: Attempt, seconds: float | None) -> None:
    """The duration is null if the start is not known, if the end is not known, or if the clock was set back.

    While a task runs, its duration needs no end.
    """
    assert duration_s(current, NOW + 100 * SECOND) == seconds


def window(*paths: str, scope: str = "/home/u/repo") -> Window:
    """Return a group of files that a task changed and restored after 39.2 seconds."""
    return Window(scope=scope, paths=paths, opened_at=NOW, closed_at=NOW + 39.2 * SECOND, by="git stash push")


def test_window_has_exactly_the_promised_fields() -> None:
    """The JSON of files that a task changed for a time has the fields of the interface description.

    It also has the number of paths, and whether the task left them changed.
    """
    joined = {"paths_in_all": 1, "paths_uncompared": 0, "left": False}
    assert window_document(window("/home/u/repo/src/a.py"), NOW) == WINDOW | joined


@pytest.mark.parametrize(
    ("scope", "path", "told"),
    [
        ("/home/u/repo", "/home/u/repo/.git/HEAD", ".git/HEAD"),
        ("/home/u/repo", "/home/u/main/.git/worktrees/repo/HEAD", "/home/u/main/.git/worktrees/repo/HEAD"),
        ("/home/u/repo", "/home/u/repo", "/home/u/repo"),
        ("/home/u/repo", "/home/u", "/home/u"),
        ("/home/u/repo", "/home/u/repository/a.py", "/home/u/repository/a.py"),
        ("/", "/a.py", "a.py"),
    ],
)
def test_path_of_a_window_is_relative_to_its_scope(scope: str, path: str, told: str) -> None:
    """Paths in the project are shown relative to it. The project itself and other paths are absolute."""
    assert window_document(window(path, scope=scope), NOW)["paths"] == [told]


def test_folded_directories_of_a_window_are_relative_to_its_scope() -> None:
    """Directories that stand for many paths are shown relative to the project. The project itself is absolute."""
    many = [f"/home/u/repo/src/{number}" for number in range(40)]
    assert window_document(window(*many), NOW)["paths_below"] == {"src/": 40}
    flat = [f"/home/u/repo/{number}" for number in range(40)]
    assert window_document(window(*flat), NOW)["paths_below"] == {"/home/u/repo/": 40}


def test_history_has_state_changes_evidence_and_notices() -> None:
    """`show` has every recorded change of state, evidence, notice and delivery."""
    seen = Evidence(kind="exited", seen_by="witness", exit_code=0, at=NOW)
    told = NoticeRow(
        id="n1",
        task="t7k2m9q4",
        attempt=1,
        kind="ended",
        session="s-1",
        state="pending",
        created_at=NOW,
    )
    sent = Delivery(notice="n1", sink="desk", state="failed", tries=8, last_error="exit 3")
    history = History(
        moves=((1, None, "queued", NOW),), evidence=((1, NOW, seen),), notices=(told,), deliveries=(sent,)
    )
    moment = "2026-06-21T13:58:02.113Z"
    assert history_json(history) == {
        "moves": [{"attempt": 1, "from": None, "to": "queued", "at": moment}],
        "evidence": [
            {
                "attempt": 1,
                "seen_at": moment,
                "kind": "exited",
                "seen_by": "witness",
                "started": "yes",
                "exit_code": 0,
                "signal": None,
                "cause": None,
                "detail": None,
                "at": moment,
            }
        ],
        "notices": [
            {
                "id": "n1",
                "kind": "ended",
                "session": "s-1",
                "state": "pending",
                "tries": 0,
                "last_error": None,
                "sinks": [{"sink": "desk", "state": "failed", "tries": 8, "last_error": "exit 3"}],
            }
        ],
    }
