"""How hooks record that sessions begin, end, are cleared and are summarized."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from tests.hook_steps import SESSION, call, context, ended, launch, said
from tests.session_steps import until
from tests.support import kill, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.session_steps import Clients
    from tests.support import Bench


def test_clear_hands_tasks_over_to_the_next_session_of_the_process(bench: Bench, clients: Clients) -> None:
    """After `/clear`, the next session of the client's process gets the endings of the earlier session.

    The client does not name the earlier session.
    """
    env = {"CLAUDE_PID": clients.start()}
    said(call(bench, "claude", "SessionStart", source="startup", env=env))
    task = ended(bench)
    said(call(bench, "claude", "SessionEnd", reason="clear", env=env))
    fresh = call(bench, "claude", "SessionStart", source="clear", env=env, session_id=f"9{SESSION[1:]}")
    assert task in context(said(fresh))


def test_session_begins_and_ends_when_its_client_process_cannot_be_seen(bench: Bench) -> None:
    """A session begins and ends even if Outlive cannot see the client's process.

    The process id is invalid, or comes from another PID namespace.
    """
    for pid in ("1073741824", "x", "-1", ""):
        said(call(bench, "claude", "SessionStart", source="startup", env={"CLAUDE_PID": pid}))
    assert [each["alive"] for each in bench.json("session", "list")["sessions"]] == [None]
    said(call(bench, "claude", "SessionEnd", reason="x", env={"CLAUDE_PID": "1073741824"}))
    wait_until(lambda: bench.json("session", "list")["sessions"][0]["ended_at"], "the session to end")


def test_session_begins_with_a_prompt_when_its_start_was_missed(bench: Bench, clients: Clients) -> None:
    """If Outlive missed a session's start, the first prompt records it and reports endings of an earlier session."""
    env = {"CLAUDE_PID": clients.start()}
    earlier: dict[str, Any] = {"session_id": "99999999-2222-3333-4444-555555555555"}
    said(call(bench, "claude", "SessionStart", source="startup", env=env, **earlier))
    task = bench.launch("exit 3", "--session", earlier["session_id"])
    wait_until(lambda: bench.row(task).current.settled_at, "the ending")
    clients.kill(env["CLAUDE_PID"])
    env = {"CLAUDE_PID": clients.start()}
    assert task in context(said(call(bench, "claude", "UserPromptSubmit", prompt="x", env=env)))
    assert SESSION in [each["id"] for each in bench.json("session", "list")["sessions"] if each["alive"]]
    assert said(call(bench, "claude", "UserPromptSubmit", prompt="y", env=env)) == {}


def test_boundary_is_recorded_when_there_is_nothing_to_report(bench: Bench, clients: Clients) -> None:
    """A session's start is recorded even if there is nothing to report.

    So the session gets later endings of the old session.
    """
    env = {"CLAUDE_PID": clients.start()}
    said(call(bench, "claude", "SessionStart", source="startup", env=env))
    fresh: dict[str, Any] = {"session_id": "99999999-2222-3333-4444-555555555555"}
    assert said(call(bench, "claude", "SessionStart", source="clear", env=env, **fresh)) == {}
    sessions = bench.json("session", "list")["sessions"]
    assert len(sessions) == 2
    assert len({each["lineage"] for each in sessions}) == 1
    assert [each["ended_at"] is None for each in sessions] == [True, False]
    task = ended(bench)
    assert task in context(said(call(bench, "claude", "PostToolBatch", env=env, **fresh))), "not reported"


def test_session_end_cancels_foreground_tasks_without_holding_up_the_client(bench: Bench, clients: Clients) -> None:
    """At a session's end, the hook cancels foreground tasks without waiting for them. Background tasks continue."""
    env = {"CLAUDE_PID": clients.start()}
    said(call(bench, "claude", "SessionStart", source="startup", env=env))
    stubborn = launch(bench, "trap '' INT TERM; echo ready; while :; do sleep 1; done", "--foreground")
    mine = launch(bench, "sleep 600")
    bench.ok("wait", stubborn, "--until", "ready")
    keeper = bench.keeper(stubborn)
    kill(keeper, signal.SIGSTOP)  # A hook that waited for the end of this task would never answer.
    said(call(bench, "claude", "SessionEnd", reason="other", env=env))
    kill(keeper, signal.SIGCONT)
    wait_until(lambda: bench.row(stubborn).current.settled_at, "the end of the foreground")
    assert bench.row(mine).state == "running"
    bench.run("cancel", mine)


def test_session_end_of_an_old_process_does_not_end_a_resumed_session(bench: Bench, clients: Clients) -> None:
    """If the old process reports the end of a session that another process has resumed, the session does not end."""
    old, new = clients.start(), clients.start()
    said(call(bench, "claude", "SessionStart", source="startup", env={"CLAUDE_PID": old}))
    said(call(bench, "claude", "SessionStart", source="resume", env={"CLAUDE_PID": new}))
    foreground = launch(bench, "sleep 600", "--foreground")
    said(call(bench, "claude", "SessionEnd", reason="other", env={"CLAUDE_PID": old}))
    said(call(bench, "claude", "SessionEnd", reason="x", env={"CLAUDE_PID": new}))
    wait_until(lambda: bench.row(foreground).current.settled_at, "the end of the foreground")
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger:
        session = Sessions(ledger).find(SESSION, str(bench.project))
    assert session is not None
    assert session.end_reason in (None, "x")


@pytest.mark.parametrize("event", ["AfterTool", "BeforeAgent"])
def test_gemini_hook_finds_a_summary_in_the_transcript(bench: Bench, tmp_path: Path, event: str) -> None:
    """The hook finds a summary of Gemini CLI in the transcript, and gives one hand-off.

    No event reports the summary.
    """
    task, transcript = launch(bench, until("go"), "--notify", "failure"), tmp_path / "transcript.jsonl"
    goes_on = f'{{"$set":{{"sessionId":"{SESSION}"}}}}\n'
    transcript.write_text(f'{{"sessionId":"{SESSION}"}}\n{goes_on}')

    def told(event: str) -> int:
        return context(said(call(bench, "gemini", event, transcript_path=str(transcript)))).count(f"{task} running")

    said(call(bench, "gemini", "SessionStart", source="resume", transcript_path=str(transcript)))
    assert told("BeforeAgent") == 0, "the hand-off was repeated after the resume"
    assert told("AfterTool") == 0
    with transcript.open("a") as file:
        file.write(json.dumps({"content": "\n" + goes_on}) + "\n")
    assert told(event) == 0, "a quoted line counts as a summary"
    with transcript.open("a") as file:
        file.write(goes_on)
    assert (told(event), told(event)) == (1, 0)
    (bench.project / "go").touch()


def test_resumed_session_gets_client_commands_in_its_hand_off(bench: Bench) -> None:
    """The hand-off of a resumed session names a command that the client itself runs in the background.

    This holds even if no task runs.
    """
    said(call(bench, "claude", "SessionStart", source="startup"))
    shell = (
        "Command running in background with ID: b7. Output is being written to: /tmp/b7.output. You will be notified."
    )
    batch = {"tool_name": "Bash", "tool_input": {"command": "npm run dev"}, "tool_response": shell}
    said(call(bench, "claude", "PostToolBatch", tool_calls=[batch]))
    told = context(said(call(bench, "claude", "SessionStart", source="resume")))
    assert "run by the client itself, not by Outlive (1)" in told
    assert "npm run dev" in told
