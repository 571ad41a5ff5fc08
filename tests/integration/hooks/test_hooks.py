"""The hooks' answers at each event. A hook must never delay or block its client."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from outlive.hooks.client_process import lacks_terminal
from outlive.hooks.clients import claude, codex, cursor, gemini, openclaw, opencode
from outlive.hooks.event import Answer
from outlive.hooks.state.unchanged import stamp_of
from outlive.install.clients.registry import CLIENTS
from outlive.ledger.completeness import Restoring
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from tests.session_steps import until
from tests.support import PATIENCE_S, kill, wait_until

if TYPE_CHECKING:
    from tests.session_steps import Clients
    from tests.support import Bench

PAYLOADS = Path(__file__).parents[2] / "clients/payloads"
SESSION = "0d413d96-f387-4132-a51a-c0d99b18c65d"
MODULES: dict[str, Any] = {"claude": claude, "codex": codex, "gemini": gemini, "opencode": opencode}
STOPS = {"claude": "Stop", "codex": "Stop", "gemini": "AfterAgent", "opencode": "session.idle"}
RESULTS = {"claude": "PostToolBatch", "codex": "PostToolUse", "gemini": "AfterTool"}


def recorded(client: str) -> dict[str, Any]:
    """Return the payloads that a real client has sent, by event and variant."""
    found: dict[str, Any] = json.loads((PAYLOADS / f"{client}.json").read_text())
    return found


def call(
    bench: Bench,
    client: str,
    event: str,
    *options: str,
    env: dict[str, str] | None = None,
    through: tuple[str, ...] = (),
    **fields: Any,
) -> subprocess.CompletedProcess[str]:
    """Call a hook as a client does.

    The hook's command is appended to the words in `through`, which start another program that runs it.
    """
    payload = {"session_id": SESSION, "cwd": str(bench.project), "hook_event_name": event, **fields}
    return subprocess.run(
        [*through, *bench.command("hook", client, event, *options)],
        input=json.dumps(payload),
        # The tests check the content of answers. A busy machine may need longer than the usual deadline.
        env={**bench.env, "OUTLIVE_HOOK_DEADLINE_S": str(PATIENCE_S), **(env or {})},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def said(done: subprocess.CompletedProcess[str]) -> Any:
    """Assert that a hook succeeded, and return the JSON that it printed, or an empty object."""
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout) if done.stdout else {}


def context(answer: Any) -> str:
    """Return the text that a hook's answer shows to the model."""
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


def launch(bench: Bench, text: str = "true", *options: str) -> str:
    """Launch a task of the test's session, and return its id."""
    return bench.launch(text, "--session", SESSION, *options)


def ended(bench: Bench, text: str = "true", *options: str) -> str:
    """Launch a task of the test's session, and wait until it has ended.

    The session has not been notified of the ending.
    """
    task = launch(bench, text, *options)
    wait_until(lambda: bench.row(task).current.settled_at, "the ending")
    return task


def state(bench: Bench, task: str) -> str:
    """Return the state of the notice of a task's ending."""
    return str(bench.show(task)["notices"][0]["state"])


# --- every client, every event --------------------------------------------------------------------


WRONG: tuple[Any, ...] = (None, 7, True, [], {}, [1], {"a": 1}, "")


@pytest.mark.parametrize("client", MODULES)
def test_payload_field_counts_as_missing_when_its_type_is_wrong(client: str) -> None:
    """A field of a payload counts as missing if its value has a wrong type."""
    tried = 0
    for name, each in recorded(client).items():
        event, given = name.partition(":")[0], each["payload"]
        for field in (*given, "source", "reason", "tool_name", "tool_input", "prompt", "transcript_path"):
            for wrong in WRONG if field != "session_id" and event in MODULES[client].KINDS else ():
                seen = MODULES[client].read(event, {**given, field: wrong}, {})
                texts = (seen.session, seen.cwd, seen.text, seen.tool, seen.reason or "", seen.transcript or "")
                assert [type(text) for text in texts] == [str] * 6, (event, field, wrong)
                tried += 1
    assert tried > 100


@pytest.mark.parametrize("wrong", [None, 7, {"a": 1}])
def test_hook_reports_an_ending_when_payload_fields_have_wrong_types(bench: Bench, wrong: Any) -> None:
    """A hook reports an ending even if the fields for the tool and the transcript have wrong types."""
    task = ended(bench, "exit 3")
    fields = {"transcript_path": wrong, "tool_name": wrong, "tool_calls": wrong, "permission_mode": wrong}
    assert task in context(said(call(bench, "claude", "PostToolBatch", **fields)))


@pytest.mark.parametrize("wrong", ["\0", "a\0b", "\ud800"])
def test_hook_reports_an_ending_when_paths_of_the_payload_are_invalid(bench: Bench, wrong: str) -> None:
    """A hook reports an ending even if the system refuses the payload's paths of directory and transcript."""
    task = ended(bench, "exit 3")
    assert task in context(said(call(bench, "claude", "PostToolBatch", cwd=wrong, transcript_path=wrong)))


@pytest.mark.parametrize("client", MODULES)
def test_hook_answers_every_recorded_payload(bench: Bench, client: str) -> None:
    """For every recorded payload, the hook prints JSON or no output, exits with 0 and writes nothing to stderr."""
    kinds = MODULES[client].KINDS
    seen = set()
    for name, each in recorded(client).items():
        event = name.partition(":")[0]
        if event not in kinds:
            continue
        payload = {**each["payload"], "cwd": str(bench.project)}
        env = {**each["env"], "CLAUDE_PROJECT_DIR": str(bench.project), "CLAUDE_PID": str(os.getpid())}
        said(call(bench, client, event, env=env, **payload))
        seen.add(event)
    assert len(seen) >= 6


@pytest.mark.parametrize("client", ["claude", "codex", "gemini"])
def test_installed_events_are_known_to_the_hook(client: str) -> None:
    """Every event that `install` writes into a configuration is known to the hook."""
    groups = [group for each in CLIENTS[client].groups("rewrite").values() for group in each]
    commands = [" ".join((hook["command"], *hook.get("args", ()))) for group in groups for hook in group["hooks"]]
    assert {each.partition(f" hook {client} ")[2].split()[0] for each in commands} <= set(MODULES[client].KINDS)


# --- reported once --------------------------------------------------------------------------------


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
    """The next batch of Claude Code acknowledges the notice of the batch before. A single call does not."""
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
    """The hooks of a session in another project do not report the ending, at the start or at a prompt."""
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
    """A resumed session is not notified again if its transcript proves that the model received the notice."""
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
    """A resumed session without a transcript is notified again, because the model may not have the notice."""
    env = {"CLAUDE_PID": clients.start()}
    said(call(bench, "claude", "SessionStart", source="startup", env=env))
    task = ended(bench)
    said(call(bench, "claude", "PostToolBatch", env=env))
    clients.kill(env["CLAUDE_PID"])
    env = {"CLAUDE_PID": clients.start()}
    done = call(bench, "claude", "SessionStart", source="resume", env=env, transcript_path="/nowhere")
    assert task in context(said(done))


def test_hook_reports_a_lost_task_when_its_keeper_was_killed(bench: Bench) -> None:
    """A hook finds and reports a lost task itself, because a killed keeper writes nothing to the ledger."""
    task = launch(bench, "sleep 600")
    assert said(call(bench, "claude", "PostToolBatch")) == {}
    bench.kill(task, "keeper", "witness", "command")
    told = context(said(call(bench, "claude", "PostToolBatch")))
    assert task in told
    assert "lost" in told


def test_hook_reports_an_ending_after_an_earlier_hook_found_none(bench: Bench) -> None:
    """A hook reports an ending even if an earlier hook recorded that there is none, once the ledger has changed."""
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


# --- boundaries -----------------------------------------------------------------------------------


def test_clear_hands_tasks_over_to_the_next_session_of_the_process(bench: Bench, clients: Clients) -> None:
    """After `/clear`, the client's next session gets the endings, although the client names no earlier session."""
    env = {"CLAUDE_PID": clients.start()}
    said(call(bench, "claude", "SessionStart", source="startup", env=env))
    task = ended(bench)
    said(call(bench, "claude", "SessionEnd", reason="clear", env=env))
    fresh = call(bench, "claude", "SessionStart", source="clear", env=env, session_id=f"9{SESSION[1:]}")
    assert task in context(said(fresh))


def test_session_begins_and_ends_when_its_client_process_cannot_be_seen(bench: Bench) -> None:
    """A session begins and ends even if its client's process id is invalid or from another PID namespace."""
    for pid in ("1073741824", "x", "-1", ""):
        said(call(bench, "claude", "SessionStart", source="startup", env={"CLAUDE_PID": pid}))
    assert [each["alive"] for each in bench.json("session", "list")["sessions"]] == [None]
    said(call(bench, "claude", "SessionEnd", reason="x", env={"CLAUDE_PID": "1073741824"}))
    wait_until(lambda: bench.json("session", "list")["sessions"][0]["ended_at"], "the session to end")


def test_session_begins_with_a_prompt_when_its_start_was_missed(bench: Bench, clients: Clients) -> None:
    """If a session's start was missed, the first prompt records it and reports endings of an earlier session."""
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
    """A boundary without a report is recorded, so that the new session receives later endings of the old session."""
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
    kill(keeper, signal.SIGSTOP)  # a hook that waited for the end of the task would never answer
    said(call(bench, "claude", "SessionEnd", reason="other", env=env))
    kill(keeper, signal.SIGCONT)
    wait_until(lambda: bench.row(stubborn).current.settled_at, "the end of the foreground")
    assert bench.row(mine).state == "running"
    bench.run("cancel", mine)


def test_session_end_of_an_old_process_does_not_end_a_resumed_session(bench: Bench, clients: Clients) -> None:
    """If a client process reports a session's end after another process has resumed it, the session does not end."""
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


# --- the gate -------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", ["claude", "codex", "gemini", "opencode"])
def test_stop_hook_does_not_block_an_interactive_session_while_a_task_runs(bench: Bench, client: str) -> None:
    """In an interactive session, the stop hook does not wait for a task, and reports its ending at the next stop."""
    task = launch(bench, until("go"))
    # A Gemini CLI without a terminal is interactive only if an editor talks to it (--acp).
    runs = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[2:]))"
    assert said(call(bench, client, STOPS[client], through=(sys.executable, "-c", runs, "--acp"))) == {}
    (bench.project / "go").touch()
    wait_until(lambda: bench.row(task).current.settled_at, "the ending")
    told = said(call(bench, client, STOPS[client]))
    assert task in (context(told) if client in ("claude", "opencode") else told["reason"])
    assert said(call(bench, client, STOPS[client], stop_hook_active=True, has_read=True)) == {}


def test_stop_hook_blocks_no_more_often_than_the_client_accepts(bench: Bench) -> None:
    """The stop hook blocks a turn as often as the client accepts. Further endings wait for the next boundary."""
    env = {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "2"}
    told = []
    for turn in range(3):
        ended(bench)
        told.append(said(call(bench, "claude", "Stop", env=env, stop_hook_active=turn > 0)))
    assert [bool(each) for each in told] == [True, True, False]
    assert said(call(bench, "claude", "Stop", env=env, stop_hook_active=False))


def _lose_ledger(bench: Bench) -> None:
    for path in Path(bench.home.path).glob("ledger*"):
        path.unlink()


@pytest.mark.parametrize("event", ["Stop", "PostToolBatch", "UserPromptSubmit", "SessionStart"])
def test_hook_restores_a_missing_ledger(bench: Bench, event: str) -> None:
    """If the ledger is missing, a hook restores it, reports the ending, and says so on stderr."""
    failed = ended(bench, "exit 3")
    running = launch(bench, until("go"))
    _lose_ledger(bench)
    done = call(bench, "claude", event, source="resume", prompt="and now?")
    assert (done.returncode, "2 tasks had to be restored" in done.stderr) == (0, True)
    assert failed in done.stdout
    (bench.project / "go").touch()
    bench.run("wait", running)


@pytest.mark.parametrize("how", ["without its fingerprint", "damaged"])
def test_stop_hook_blocks_the_session_when_the_ledger_is_lost(bench: Bench, how: str) -> None:
    """The stop hook reports an ending even if the ledger is damaged or missing."""
    task = ended(bench, "exit 3")
    _lose_ledger(bench)
    if how == "damaged":
        Path(bench.home.ledger).write_bytes(b"not a ledger" * 1000)
        assert json.loads(call(bench, "claude", "Stop").stdout)["decision"] == "block"
    else:
        Path(bench.home.path, "fingerprint").unlink()
    assert task in context(json.loads(call(bench, "claude", "Stop").stdout))


def test_stop_hook_blocks_once_while_another_process_restores_the_ledger(bench: Bench) -> None:
    """While another process restores the ledger, the stop hook blocks once, because the session may have tasks."""
    task = ended(bench, "exit 3")
    _lose_ledger(bench)
    with Restoring(bench.home.ledger):
        first, again = (call(bench, "claude", "Stop", stop_hook_active=is_again) for is_again in (False, True))
    assert json.loads(first.stdout)["decision"] == "block"
    assert (again.returncode, again.stdout) == (0, "")
    assert "lacks tasks" in again.stderr
    assert task in context(json.loads(call(bench, "claude", "Stop").stdout))


def test_tool_hook_does_not_wait_until_a_lost_ledger_is_restored(bench: Bench) -> None:
    """If the ledger is lost, a tool hook exits without waiting, and says on stderr that the ledger lacks tasks."""
    ended(bench, "exit 3")
    _lose_ledger(bench)
    done = call(bench, "claude", "PreToolUse", tool_name="Bash", tool_input={"command": "ls"})
    assert (done.returncode, done.stdout) == (0, "")
    assert "lacks tasks" in done.stderr


# --- failures that must not hold up a client ------------------------------------------------------

EVERY = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolBatch", "Stop", "PreCompact", "SessionEnd")


ALL_MODULES: dict[str, Any] = {**MODULES, "openclaw": openclaw, "cursor": cursor}
# No client waits for the hook that wakes a session, so that hook may wait for a lock.
WAITED_FOR = [
    (client, event) for client, each in ALL_MODULES.items() for event in each.KINDS if event.lower() != "wake"
]


def diagnosis(bench: Bench, client: str, event: str, *options: str, **fields: Any) -> str:
    """Call a hook while the ledger cannot be used, and return the one line that it prints on stderr."""
    given: dict[str, Any] = (
        {"workspace_roots": [str(bench.project)], "conversation_id": SESSION} if client == "cursor" else {}
    )
    before = getrusage(RUSAGE_CHILDREN).ru_nvcsw
    done = call(bench, client, event, *options, **given, **fields)
    pauses = getrusage(RUSAGE_CHILDREN).ru_nvcsw - before
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 1, (event, done.stderr)
    assert pauses < 150, "the hook waited for the lock as long as a command does"
    return done.stderr


def lock(bench: Bench) -> apsw.Connection:
    """Lock the ledger against writers and readers.

    In WAL mode, both statements are needed to keep readers out.
    """
    holder = apsw.Connection(bench.home.ledger)
    holder.setbusytimeout(20_000)  # on a busy machine, the last writer may still have the ledger open
    for statement in ("PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE"):
        holder.execute(statement)
    return holder


def remove_ledger(bench: Bench) -> Path:
    """Remove the ledger's files, and return the ledger's path."""
    for suffix in ("-wal", "-shm", ""):
        Path(bench.home.ledger + suffix).unlink(missing_ok=True)
    return Path(bench.home.ledger)


@pytest.mark.parametrize("client", ALL_MODULES)
def test_hook_does_not_wait_for_a_locked_ledger(bench: Bench, client: str) -> None:
    """If the ledger is locked, a hook soon exits with code 0 at every event, and prints one line on stderr."""
    ended(bench)
    holder = lock(bench)
    for event in (event for each, event in WAITED_FOR if each == client):
        assert "locked" in diagnosis(bench, client, event, source="startup"), event
    holder.close()


def test_session_end_is_recorded_when_a_locked_ledger_is_released(bench: Bench, clients: Clients) -> None:
    """If the ledger is locked, a detached process of the hook waits and records the session's end."""
    start: dict[str, Any] = {"source": "startup", "env": {"CLAUDE_PID": clients.start()}}
    said(call(bench, "claude", "SessionStart", **start))
    task = launch(bench, until("go"), "--foreground")
    holder = lock(bench)
    assert "locked" in diagnosis(bench, "claude", "SessionEnd", **start)
    holder.close()
    wait_until(lambda: bench.row(task).current.settled_at, "the end of the foreground")


@pytest.mark.parametrize("is_corrupt", [False, True])
def test_advice_is_given_when_the_ledger_is_locked_or_damaged(bench: Bench, is_corrupt: bool) -> None:
    """A hook gives advice even if the ledger is locked or damaged. One line on stderr reports the fault."""
    ended(bench)
    if is_corrupt:
        remove_ledger(bench).write_bytes(b"not a ledger" * 1000)
    holder = apsw.Connection(":memory:") if is_corrupt else lock(bench)
    shell: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "nohup ./server &"}}
    done = call(bench, "claude", "PreToolUse", **shell)
    holder.close()
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 1
    assert "outlive run" in context(json.loads(done.stdout))


@pytest.mark.parametrize("event", [*EVERY, "Wake"])
def test_hook_gives_up_at_its_deadline_when_the_payload_never_ends(bench: Bench, event: str) -> None:
    """If a client keeps the pipe of the payload open, the hook exits with code 0 at its deadline."""
    hook = subprocess.Popen(
        bench.command("hook", "claude", event),
        env={**bench.env, "OUTLIVE_HOOK_DEADLINE_S": "0.2"},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with hook:
        assert hook.stdin is not None
        assert hook.stderr is not None
        hook.stdin.write(b'{"session_id": ')
        hook.stdin.flush()
        try:
            assert hook.wait(PATIENCE_S) == 0
        finally:
            hook.kill()
        assert b"no answer in time" in hook.stderr.read()


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


@pytest.mark.parametrize("client", ALL_MODULES)
def test_hook_prints_one_line_when_the_ledger_is_damaged(bench: Bench, client: str) -> None:
    """If the ledger is damaged, the hook prints one line on stderr and exits with code 0 at every event."""
    ended(bench)
    for event in (event for each, event in WAITED_FOR if each == client):
        remove_ledger(bench).write_bytes(b"not a ledger" * 1000)
        assert "damaged" in diagnosis(bench, client, event, source="startup")


def test_session_start_shows_a_damaged_ledger_to_the_user(bench: Bench) -> None:
    """At a session's start, the answer tells the user of a damaged ledger, because clients do not show stderr."""
    ended(bench)
    remove_ledger(bench).write_bytes(b"not a ledger" * 1000)
    done = call(bench, "claude", "SessionStart", source="startup")
    assert "damaged" in json.loads(done.stdout)["systemMessage"]


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_hook_prints_one_line_when_the_ledger_is_no_regular_file(bench: Bench, make: Any) -> None:
    """If the ledger's path is a directory or a pipe, the hook prints one line at every event."""
    ended(bench)
    make(remove_ledger(bench))
    for client, event in WAITED_FOR:
        diagnosis(bench, client, event, source="startup")
    diagnosis(bench, "claude", "PreToolUse", "--guard", "off", tool_name="Bash", tool_input={"command": "ls"})
    edits = [{"tool_name": "Edit", "tool_input": {"file_path": "a"}}]
    diagnosis(bench, "claude", "PostToolBatch", tool_calls=edits)
    diagnosis(bench, "claude", "PostToolBatch", tool_calls=edits, agent_id="a")


@pytest.mark.root
def test_hook_prints_one_line_when_the_disk_is_full(bench: Bench) -> None:
    """If the disk is full, the hook prints one line and exits with code 0 at every event."""
    bench.state.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m,mode=700", "outlive-test", str(bench.state)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount here")
    try:
        ended(bench)
        with (bench.state / "hog").open("wb", buffering=0) as hog:
            for size in (1 << 20, 4096, 1):
                try:
                    while True:
                        hog.write(bytes(size))
                except OSError:
                    continue
        for client, event in WAITED_FOR:
            assert "full" in diagnosis(bench, client, event, source="startup"), event
    finally:
        subprocess.run(["umount", "-l", str(bench.state)], check=False)


def test_hook_exits_with_0_when_the_state_directory_cannot_be_created(bench: Bench) -> None:
    """If the state directory cannot be created, the hook exits with code 0 and prints at most one line."""
    for event in EVERY:
        done = call(bench, "claude", event, env={"OUTLIVE_HOME": "/proc/nowhere"}, source="startup")
        assert done.returncode == 0
        assert len(done.stderr.splitlines()) <= 1


def test_hook_reports_a_file_in_the_place_of_the_state_directory(bench: Bench) -> None:
    """If the path of the state directory is a file, a line on stderr says that it is not a directory."""
    plain = bench.root / "plain"
    plain.touch()
    for client, event in WAITED_FOR:
        assert "not a directory" in diagnosis(bench, client, event, env={"OUTLIVE_HOME": str(plain)}, source="startup")


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("claude",),
        ("claude", "Nonsense"),
        ("nobody", "Stop"),
        ("claude", "Stop", "--guard"),
        ("claude", "Stop", "--guard", "x"),
    ],
)
def test_hook_never_blocks_the_client_when_its_arguments_are_wrong(bench: Bench, words: tuple[str, ...]) -> None:
    """With wrong arguments, the hook exits with code 0, because exit code 2 would block the client."""
    done = bench.run("hook", *words)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("outlive: ")


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"session_id": 3}'])
def test_hook_prints_one_line_when_the_payload_is_malformed(bench: Bench, payload: bytes) -> None:
    """If the payload is malformed, the hook prints one line on stderr, and exits with code 0."""
    command = bench.command("hook", "claude", "Stop")
    done = subprocess.run(command, input=payload, env=bench.env, capture_output=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (0, b"")
    assert len(done.stderr.splitlines()) == 1


def test_hook_reads_a_payload_of_3_mb_and_refuses_one_of_17_mb(bench: Bench) -> None:
    """The hook reads a payload of 3 MB, so the client gets no broken pipe. It refuses a payload of 17 MB."""
    ended(bench)
    assert context(said(call(bench, "claude", "PostToolBatch", tool_calls=["x" * 3_000_000])))
    done = call(bench, "claude", "PostToolBatch", tool_calls=["x" * (17 << 20)])
    assert done.returncode == 0
    assert "longer than" in done.stderr


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ("Stop", {"background_tasks": [{"id": "b1", "command": "echo \ud83d"}]}),
        ("PostToolBatch", {"tool_calls": [{"tool_name": "Write", "tool_input": {"file_path": "/\ud83d"}}]}),
    ],
)
def test_hook_reports_endings_when_another_field_has_a_lone_surrogate(
    bench: Bench, event: str, fields: dict[str, Any]
) -> None:
    """If a field has a lone surrogate, which cannot be stored, the hook prints one line and reports the ending."""
    ended(bench)
    launch(bench, "sleep 60")
    done = call(bench, "claude", event, **fields)
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 1)
    assert json.loads(done.stdout)


MONSTERS: dict[str, dict[str, Any]] = {
    "a cwd without end": {"cwd": "/x" * 100_000},
    "a cwd that leads upwards without end": {"cwd": "../" * 66_000},
    "a name without end": {"session_id": "s" * 200_000},
    "more than it reads": {"tool_calls": [[]] * 2_900_000},
    "nothing but brackets": {"tool_calls": [[]] * 1_000_000},
    "nothing but names": {"tool_calls": {str(number): [] for number in range(250_000)}},
    "a command without end": {"tool_name": "Bash", "tool_input": {"command": "(sleep 9 & nohup $(a;" * 190_000}},
    "a shell for every byte": {"background_tasks": [{"id": str(number)} for number in range(200_000)]},
}


@pytest.mark.parametrize("monster", MONSTERS)
@pytest.mark.parametrize("event", EVERY)
def test_hook_needs_little_cpu_time_for_a_huge_payload(bench: Bench, event: str, monster: str) -> None:
    """For a huge payload, a hook needs less than 0.5 s of CPU time."""
    ended(bench)
    before = os.times()
    done = call(bench, "claude", event, env={"OUTLIVE_HOOK_DEADLINE_S": ""}, source="startup", **MONSTERS[monster])
    after = os.times()
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) <= 1
    assert after.children_user + after.children_system - before.children_user - before.children_system < 0.5


@pytest.mark.parametrize("event", ["PostToolBatch", "Stop", "SessionStart"])
def test_hook_reports_endings_of_very_long_commands(bench: Bench, event: str) -> None:
    """A hook reports very long commands with little CPU time, because it masks only the part that is shown."""
    tasks = [ended(bench, "true " + "token=Zx81kQ2vB7pq b " * 5_000) for _ in range(6)]
    before = os.times()
    told = context(said(call(bench, "claude", event, source="resume", env={"OUTLIVE_HOOK_DEADLINE_S": ""})))
    after = os.times()
    assert all(task in told for task in tasks)
    assert "Zx81" not in told
    assert after.children_user + after.children_system - before.children_user - before.children_system < 2


def test_hook_creates_no_state_directory_before_a_session_starts(bench: Bench) -> None:
    """Before a session's start, no hook creates the state directory, so a user without Outlive gets no files."""
    for event in EVERY[1:]:
        said(call(bench, "claude", event, tool_name="Bash", tool_input={"command": "ls"}))
    assert not bench.state.exists()


def test_hook_answer_is_short_enough_to_be_shown_whole(bench: Bench) -> None:
    """A hook's answer has at most ten thousand characters, because Claude Code shows its model no more."""
    for number in range(60):
        ended(bench, f"seq {number} 100000 | head -c 3000; exit 1")
    assert 2000 < len(context(said(call(bench, "claude", "PostToolBatch")))) < 10_000
    for client, module in MODULES.items():
        for name in ("SessionStart", STOPS[client]):
            written = json.dumps(module.write(name, Answer(context="x" * 50_000)))
            assert 9_000 < len(written) < 10_200


HEAVY = {"json", "re", "argparse", "typing", "dataclasses", "subprocess", "collections", "enum", "inspect", "ctypes"}


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolBatch", "UserPromptSubmit", "Stop", "SessionStart"])
def test_hook_imports_no_heavy_module(bench: Bench, event: str) -> None:
    """A hook imports no slow module. It runs at every use of a tool, and most of its time goes into imports."""
    ended(bench)
    said(call(bench, "claude", "PostToolBatch"))
    said(call(bench, "claude", "PostToolBatch"))
    wait_until(lambda: stamp_of(bench.home), "the ledger's files to count as settled")
    said(call(bench, "claude", "PreToolUse", tool_name="Bash", tool_input={"command": "ls"}))
    payload = {"session_id": SESSION, "cwd": str(bench.project), "tool_name": "Bash", "tool_input": {"command": "ls"}}
    words = bench.command("hook", "claude", event)
    done = subprocess.run(
        [words[0], "-I", "-X", "importtime", *words[1:]],
        input=json.dumps(payload),
        env=bench.env,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    bare = subprocess.run(
        [words[0], "-I", "-X", "importtime", "-c", "pass"], capture_output=True, text=True, check=True
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    anyway = {line.rpartition("|")[2].strip() for line in bare.stderr.splitlines()}
    assert "outlive.hooks.entry" in loaded
    assert not HEAVY.intersection(loaded - anyway)
    if event == "PreToolUse":
        assert "apsw" not in loaded


@pytest.mark.parametrize(
    ("event", "fields"), [("SessionStart", {"source": "clear"}), ("PreCompress", {"trigger": "manual"})]
)
def test_gemini_prompt_reports_endings_after_events_whose_answers_are_not_shown(
    bench: Bench, event: str, fields: dict[str, Any]
) -> None:
    """If Gemini CLI does not show an event's answer, the notice stays pending until the prompt's hand-off."""
    said(call(bench, "gemini", "SessionStart", source="startup"))
    task = ended(bench, "exit 3")
    assert said(call(bench, "gemini", event, **fields)) == {}
    assert bench.show(task)["notices"][0]["state"] == "pending"
    told = context(said(call(bench, "gemini", "BeforeAgent", prompt="go on")))
    assert "Hand-off of background tasks" in told
    assert f"{task} failed (exit 3)" in told
    assert said(call(bench, "gemini", "BeforeAgent", prompt="go on")) == {}


@pytest.mark.parametrize("event", ["AfterTool", "BeforeAgent"])
def test_gemini_hook_finds_a_summary_in_the_transcript(bench: Bench, tmp_path: Path, event: str) -> None:
    """After a summary, the model gets one hand-off. No event reports the summary, so the hook reads the transcript."""
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
    """The hand-off of a resumed session names the client's background command, even if no task runs."""
    said(call(bench, "claude", "SessionStart", source="startup"))
    shell = (
        "Command running in background with ID: b7. Output is being written to: /tmp/b7.output. You will be notified."
    )
    batch = {"tool_name": "Bash", "tool_input": {"command": "npm run dev"}, "tool_response": shell}
    said(call(bench, "claude", "PostToolBatch", tool_calls=[batch]))
    told = context(said(call(bench, "claude", "SessionStart", source="resume")))
    assert "run by the client itself, not by Outlive (1)" in told
    assert "npm run dev" in told


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_session_start_calls_no_fsync_when_there_is_nothing_to_report(bench: Bench, tmp_path: Path) -> None:
    """A start without a report calls no fsync. A power failure that loses the record also ends the session."""
    said(call(bench, "claude", "SessionStart", source="startup"))
    log = tmp_path / "calls"
    payload = {"session_id": SESSION, "cwd": str(bench.project), "hook_event_name": "SessionStart", "source": "resume"}
    subprocess.run(
        [
            "strace",
            "-f",
            "-o",
            str(log),
            "-e",
            "trace=fsync,fdatasync",
            *bench.command("hook", "claude", "SessionStart"),
        ],
        input=json.dumps(payload),
        env=bench.env,
        text=True,
        check=True,
    )
    assert "sync" not in log.read_text()
    assert bench.json("session", "list", "--all")["sessions"][0]["boundary"] == 2


def test_tool_hook_parses_no_command_while_running_tasks_changed_nothing(bench: Bench) -> None:
    """While running tasks changed no file, a tool hook imports neither the effects nor the command parser."""
    launch(bench, until("go"))
    loaded = subprocess.run(
        [sys.executable, "-X", "importtime", *bench.command("hook", "claude", "PreToolUse")[1:]],
        input=json.dumps(
            {
                "session_id": SESSION,
                "cwd": str(bench.project),
                "tool_name": "Bash",
                "tool_input": {"command": "git status"},
            }
        ),
        env={**bench.env, "OUTLIVE_HOOK_DEADLINE_S": str(PATIENCE_S)},
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    assert "outlive.hooks.guard.open_window_warning" in loaded
    assert "outlive.ledger.sqlite" in loaded
    assert "outlive.service.effects.effects" not in loaded
    assert "outlive.observe.shell.commands" not in loaded


# --- how a client was started ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("exec --json do", "exec"),
        ("-c model=x --json e", "e"),
        ("--profile review", ""),
        ("--profile review exec", "exec"),
        ("--profile=review fix exec", "fix"),
        ("-i one.png two.png -m gpt exec", "exec"),
        ("-i exec", ""),
        ("", ""),
    ],
)
def test_command_of_finds_the_subcommand_of_codex_by_its_place(words: str, command: str) -> None:
    """`command_of` takes neither the value of an option nor a later word for the subcommand of Codex."""
    assert codex.command_of(words.split()) == command


def test_client_lacks_a_terminal_unless_stdin_and_stdout_are_terminals() -> None:
    """`lacks_terminal` returns True if stdin or stdout is not a terminal, and False for an ended process."""
    main, side = os.openpty()
    found, gone = [], 0
    for stdin, stdout in ((side, side), (side, subprocess.DEVNULL), (subprocess.PIPE, side)):
        with subprocess.Popen(["sleep", "600"], stdin=stdin, stdout=stdout) as client:
            found.append(lacks_terminal(client.pid))
            client.kill()
        gone = client.pid
    os.close(main)
    os.close(side)
    assert found == [False, True, True]
    assert lacks_terminal(gone) is False
