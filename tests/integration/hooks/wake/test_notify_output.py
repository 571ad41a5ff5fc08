"""`--notify output`: a task that succeeds without output does not wake its session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hook_steps import SESSION, call, context, ended, launch, said, state
from tests.integration.hooks.wake.test_headless import Session, session
from tests.integration.hooks.wake.test_waking import Watchers, watchers
from tests.session_steps import begin, until
from tests.support import wait_until

if TYPE_CHECKING:
    from tests.support import Bench

__all__ = ["session", "watchers"]
POLICY = ("--notify", "output")


@pytest.fixture(autouse=True)
def begun(bench: Bench) -> None:
    """Begin the session that the tests use."""
    begin(bench, SESSION)


def test_silent_success_is_reported_at_the_next_prompt(bench: Bench, watchers: Watchers) -> None:
    """If a task succeeds without output, the turn is not continued, and the gate allows a stop.

    The success is reported at the next prompt.
    """
    task = ended(bench, "true", *POLICY)
    assert said(call(bench, "claude", "Stop", env=watchers.env)) == {}
    gate = bench.json("gate", "--session", SESSION)
    assert (gate["may_stop"], gate["untold"], gate["reason"]) == (True, [], "nothing is waited for")
    assert state(bench, task) == "pending"
    told = context(said(call(bench, "claude", "UserPromptSubmit", prompt="go on", env=watchers.env)))
    assert f"n{task}01ended" in told


@pytest.mark.parametrize("command", ["echo a word", "exit 3"])
def test_end_of_turn_reports_silent_successes_with_other_endings(
    bench: Bench, watchers: Watchers, command: str
) -> None:
    """At the end of a turn, an ending with output or a failure continues the turn.

    Its text also names the silent success.
    """
    quiet, other = ended(bench, "true", *POLICY), ended(bench, command, *POLICY)
    assert bench.json("gate", "--session", SESSION)["may_stop"] is False
    told = context(said(call(bench, "claude", "Stop", env=watchers.env)))
    assert [told.count(f"n{task}01ended") for task in (quiet, other)] == [1, 1]


def test_silent_success_does_not_wake_an_idle_session(bench: Bench, watchers: Watchers) -> None:
    """If only silent successes are left to report, the waking hook of an idle session exits without output."""
    task = launch(bench, until("go"), *POLICY)
    watcher = watchers.start()
    watchers.until_there()
    (bench.project / "go").touch()
    assert watchers.end(watcher) == (0, "", "")
    assert state(bench, task) == "pending"
    assert watchers.end(watchers.start()) == (0, "", "")
    loud = launch(bench, f"{until('on')}; echo a word", *POLICY)
    watcher = watchers.start()
    watchers.until_there()
    (bench.project / "on").touch()
    code, _, told = watchers.end(watcher)
    assert (code, [told.count(f"n{each}01ended") for each in (task, loud)]) == (2, [1, 1])


def test_headless_session_waits_for_silent_successes(bench: Bench, session: Session) -> None:
    """In a headless session, the hook reports all endings together, even silent successes.

    The session has no next turn.
    """
    tasks = [launch(bench, until("go"), *POLICY), ended(bench, "true", *POLICY)]
    hook = session.sleeper()
    (bench.project / "go").touch()
    wait_until(lambda: bench.row(tasks[0]).current.settled_at, "the ending")
    told = session.answer(hook)
    assert [told.count(f"n{task}01ended") for task in tasks] == [1, 1]


@pytest.mark.parametrize(("last", "may_stop"), [("true", True), ("echo a word", False)])
def test_gate_refuses_a_stop_after_a_group_when_a_member_has_output(bench: Bench, last: str, may_stop: bool) -> None:
    """The gate refuses a stop while the notice of an ended group is pending, unless all members succeeded silently."""
    for command in ("true", last):
        ended(bench, command, *POLICY, "--group", "g")
    assert bench.json("gate", "--session", SESSION)["may_stop"] is may_stop
    (notice,) = bench.json("inbox", "--session", SESSION)["notices"]
    assert notice["kind"] == "group_ended"
