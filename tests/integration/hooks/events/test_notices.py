"""Notices in the hooks' answers: each ending is presented and acknowledged once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outlive.hooks.event import Answer
from outlive.hooks.state.unchanged import stamp_of
from tests.hook_steps import MODULES, RESULTS, SESSION, STOPS, call, context, ended, launch, said, state
from tests.session_steps import until
from tests.support import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from tests.session_steps import Clients
    from tests.support import Bench


@pytest.mark.parametrize("client", ["claude", "codex", "gemini"])
def test_hook_presents_an_ending_with_results_and_acknowledges_it_at_the_end_of_the_turn(
    bench: Bench, client: str
) -> None:
    """A hook presents a notice with the next tool results, and acknowledges it at the end of the turn."""
    task = ended(bench, "echo out")
    assert task in context(said(call(bench, client, RESULTS[client])))
    assert state(bench, task) == "presented"
    assert said(call(bench, client, STOPS[client])) == {}
    assert state(bench, task) == "acked"


def test_claude_batch_acknowledges_the_notice_of_the_batch_before(bench: Bench) -> None:
    """The next batch of tool calls in Claude Code acknowledges the notice of the batch before.

    A single call does not.
    """
    task = ended(bench)
    assert task in context(said(call(bench, "claude", "PostToolBatch")))
    assert said(call(bench, "claude", "PostToolUse")) == {}
    assert state(bench, task) == "presented"
    assert said(call(bench, "claude", "PostToolBatch")) == {}
    assert state(bench, task) == "acked"


def test_sub_agents_receive_and_acknowledge_no_notices(bench: Bench) -> None:
    """Hooks of sub-agents present and acknowledge no notices, because the notices are for the main agent."""
    task = ended(bench)
    assert said(call(bench, "claude", "PostToolBatch", agent_id="a1")) == {}
    assert said(call(bench, "claude", "SubagentStop", agent_id="a1")) == {}
    assert state(bench, task) == "pending"
    assert task in context(said(call(bench, "claude", "PostToolBatch")))
    said(call(bench, "claude", "SubagentStop", agent_id="a1"))
    assert state(bench, task) == "presented"


def test_session_of_another_project_receives_no_notice(bench: Bench) -> None:
    """A session in another project gets no report of the ending, at its start or at a prompt."""
    ended(bench)
    other = bench.root / "other"
    other.mkdir()
    theirs: dict[str, Any] = {"session_id": "11111111-2222-3333-4444-555555555555", "cwd": str(other)}
    assert said(call(bench, "claude", "SessionStart", source="startup", **theirs)) == {}
    assert said(call(bench, "claude", "UserPromptSubmit", prompt="x", **theirs)) == {}
    theirs["session_id"] = "22222222-2222-3333-4444-555555555555"
    assert said(call(bench, "claude", "UserPromptSubmit", prompt="x", **theirs)) == {}


def test_resumed_session_is_not_notified_again_when_its_transcript_has_the_notice(
    bench: Bench, clients: Clients
) -> None:
    """If a resumed session's transcript has the notice, the model has received it.

    So the notice is not reported again.
    """
    env = {"CLAUDE_PID": clients.start()}
    transcript = bench.root / "transcript.jsonl"
    said(call(bench, "claude", "SessionStart", source="startup", env=env, transcript_path=str(transcript)))
    task = ended(bench)
    told = context(said(call(bench, "claude", "PostToolBatch", env=env)))
    transcript.write_text(json.dumps({"attachment": told}) + "\n")
    clients.kill(env["CLAUDE_PID"])
    env = {"CLAUDE_PID": clients.start()}
    done = call(bench, "claude", "SessionStart", source="resume", env=env, transcript_path=str(transcript))
    assert said(done) == {}
    assert state(bench, task) == "acked"


def test_resumed_session_is_notified_again_when_it_has_no_transcript(bench: Bench, clients: Clients) -> None:
    """If a resumed session has no transcript, the notice is reported again. The model may not have received it."""
    env = {"CLAUDE_PID": clients.start()}
    said(call(bench, "claude", "SessionStart", source="startup", env=env))
    task = ended(bench)
    said(call(bench, "claude", "PostToolBatch", env=env))
    clients.kill(env["CLAUDE_PID"])
    env = {"CLAUDE_PID": clients.start()}
    done = call(bench, "claude", "SessionStart", source="resume", env=env, transcript_path="/nowhere")
    assert task in context(said(done))


def test_hook_reports_a_lost_task_when_its_keeper_was_killed(bench: Bench) -> None:
    """If the keeper was killed, a hook itself finds that the task is lost, and reports this."""
    task = launch(bench, "sleep 600")
    assert said(call(bench, "claude", "PostToolBatch")) == {}
    bench.kill(task, "keeper", "witness", "command")
    told = context(said(call(bench, "claude", "PostToolBatch")))
    assert task in told
    assert "lost" in told


def test_hook_reports_an_ending_after_an_earlier_hook_found_none(bench: Bench) -> None:
    """A hook reports a new ending even if an earlier hook has recorded that there was nothing to report."""
    ended(bench)
    said(call(bench, "claude", "Stop"))
    said(call(bench, "claude", "Stop"))
    wait_until(lambda: stamp_of(bench.home), "the ledger's files to count as settled")
    assert said(call(bench, "claude", "PostToolBatch")) == {}
    marks = list((Path(bench.home.path) / "hooks").glob("*.quiet"))
    assert len(marks) == 1, "the hook did not record that no task has ended"
    task = ended(bench)
    wait_until(lambda: stamp_of(bench.home), "the ledger's files to count as settled")
    assert task in context(said(call(bench, "claude", "PostToolBatch")))


@pytest.mark.parametrize("client", ["claude", "codex", "gemini", "opencode"])
def test_stop_hook_does_not_block_an_interactive_session_while_a_task_runs(bench: Bench, client: str) -> None:
    """In an interactive session, the stop hook does not wait for a running task. The next stop reports its ending."""
    task = launch(bench, until("go"))
    # Gemini CLI without a terminal is interactive only if an editor controls it (--acp).
    runs = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[2:]))"
    assert said(call(bench, client, STOPS[client], through=(sys.executable, "-c", runs, "--acp"))) == {}
    (bench.project / "go").touch()
    wait_until(lambda: bench.row(task).current.settled_at, "the ending")
    told = said(call(bench, client, STOPS[client]))
    assert task in (context(told) if client in ("claude", "opencode") else told["reason"])
    assert said(call(bench, client, STOPS[client], stop_hook_active=True, has_read=True)) == {}


def test_stop_hook_blocks_no_more_often_than_the_client_accepts(bench: Bench) -> None:
    """The stop hook blocks a turn only as often as the client accepts.

    Further endings are reported at the next prompt.
    """
    env = {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "2"}
    told = []
    for turn in range(3):
        ended(bench)
        told.append(said(call(bench, "claude", "Stop", env=env, stop_hook_active=turn > 0)))
    assert [bool(each) for each in told] == [True, True, False]
    assert said(call(bench, "claude", "Stop", env=env, stop_hook_active=False))


@pytest.mark.parametrize("broken", ["2>/dev/full", "2>&-", ">&-", ">/dev/full", ">&- 2>/dev/full"])
@pytest.mark.parametrize("event", ["SessionStart", "PostToolBatch"])
def test_hook_leaves_an_ending_unreported_when_stdout_fails(bench: Bench, event: str, broken: str) -> None:
    """If a hook cannot write to stdout, it exits with code 0, and the next hook reports the ending."""
    task = ended(bench)
    payload = {"session_id": SESSION, "cwd": str(bench.project), "hook_event_name": event, "source": "startup"}
    for text in (json.dumps(payload), "{"):
        done = subprocess.run(
            ["sh", "-c", f'"$@" {broken}', "sh", *bench.command("hook", "claude", event)],
            input=text,
            env={**bench.env, "OUTLIVE_HOOK_DEADLINE_S": str(PATIENCE_S)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0
    if not broken.startswith("2"):
        assert task in context(said(call(bench, "claude", event, source="startup")))


@pytest.mark.parametrize("event", ["PostToolBatch", "Stop", "SessionStart"])
def test_hook_reports_endings_of_very_long_commands(bench: Bench, event: str) -> None:
    """A hook needs little CPU time for endings of very long commands, because it masks only the part that it shows."""
    tasks = [ended(bench, "true " + "token=Zx81kQ2vB7pq b " * 5_000) for _ in range(6)]
    before = os.times()
    told = context(said(call(bench, "claude", event, source="resume", env={"OUTLIVE_HOOK_DEADLINE_S": ""})))
    after = os.times()
    assert all(task in told for task in tasks)
    assert "Zx81" not in told
    assert after.children_user + after.children_system - before.children_user - before.children_system < 2


def test_hook_answer_is_short_enough_to_be_shown_whole(bench: Bench) -> None:
    """A hook's answer has at most ten thousand characters, because Claude Code shows its model no more."""
    for number in range(60):
        ended(bench, f"seq {number} 100000 | head -c 3000; exit 1")
    assert 2000 < len(context(said(call(bench, "claude", "PostToolBatch")))) < 10_000
    for client, module in MODULES.items():
        for name in ("SessionStart", STOPS[client]):
            written = json.dumps(module.write(name, Answer(context="x" * 50_000)))
            assert 9_000 < len(written) < 10_200


@pytest.mark.parametrize(
    ("event", "fields"), [("SessionStart", {"source": "clear"}), ("PreCompress", {"trigger": "manual"})]
)
def test_gemini_prompt_reports_endings_after_events_whose_answers_are_not_shown(
    bench: Bench, event: str, fields: dict[str, Any]
) -> None:
    """If Gemini CLI does not show the answer to an event, the notice stays pending until the next prompt."""
    said(call(bench, "gemini", "SessionStart", source="startup"))
    task = ended(bench, "exit 3")
    assert said(call(bench, "gemini", event, **fields)) == {}
    assert bench.show(task)["notices"][0]["state"] == "pending"
    told = context(said(call(bench, "gemini", "BeforeAgent", prompt="go on")))
    assert "Hand-off of background tasks" in told
    assert f"{task} failed (exit 3)" in told
    assert said(call(bench, "gemini", "BeforeAgent", prompt="go on")) == {}
