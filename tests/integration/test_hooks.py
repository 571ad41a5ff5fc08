"""Hooks: what clients are answered at each event, and that they are never stood in the way of."""

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

from outlive.hooks import claude, codex, cursor, gemini, openclaw, opencode
from outlive.hooks.event import Answer
from outlive.hooks.quiet import stamp_of
from outlive.install.clients import CLIENTS
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from tests.session_steps import until
from tests.support import PATIENCE_S, kill, wait_until

if TYPE_CHECKING:
    from tests.session_steps import Clients
    from tests.support import Bench

PAYLOADS = Path(__file__).parents[1] / "clients/payloads"
SESSION = "0d413d96-f387-4132-a51a-c0d99b18c65d"
MODULES: dict[str, Any] = {"claude": claude, "codex": codex, "gemini": gemini, "opencode": opencode}
STOPS = {"claude": "Stop", "codex": "Stop", "gemini": "AfterAgent", "opencode": "session.idle"}
RESULTS = {"claude": "PostToolBatch", "codex": "PostToolUse", "gemini": "AfterTool"}


def recorded(client: str) -> dict[str, Any]:
    """The payloads of a client as it really sent them, by event and variant."""
    found: dict[str, Any] = json.loads((PAYLOADS / f"{client}.json").read_text())
    return found


def call(
    bench: Bench, client: str, event: str, *options: str, env: dict[str, str] | None = None, **fields: Any
) -> subprocess.CompletedProcess[str]:
    """Call a hook as a client does."""
    payload = {"session_id": SESSION, "cwd": str(bench.project), "hook_event_name": event, **fields}
    return subprocess.run(
        bench.command("hook", client, event, *options),
        input=json.dumps(payload),
        # What is asked here is what is said; a busy machine may take its time for it.
        env={**bench.env, "OUTLIVE_HOOK_DEADLINE_S": str(PATIENCE_S), **(env or {})},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def said(done: subprocess.CompletedProcess[str]) -> Any:
    """The JSON of an answer; empty if nothing was said. Nothing may have gone wrong."""
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout) if done.stdout else {}


def context(answer: Any) -> str:
    """What the model is told by an answer."""
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


def launch(bench: Bench, text: str = "true", *options: str) -> str:
    """A task of the session."""
    return bench.launch(text, "--session", SESSION, *options)


def ended(bench: Bench, text: str = "true", *options: str) -> str:
    """A task of the session that has ended, and that nobody was told of."""
    task = launch(bench, text, *options)
    wait_until(lambda: bench.row(task).current.settled_at, "the ending")
    return task


def state(bench: Bench, task: str) -> str:
    """What became of the notice of a task's ending."""
    return str(bench.show(task)["notices"][0]["state"])


# --- every client, every event --------------------------------------------------------------------


@pytest.mark.parametrize("client", MODULES)
def test_every_recorded_payload_is_understood(bench: Bench, client: str) -> None:
    """Whatever the client sends is answered with JSON or nothing, exit code 0, not a word on stderr."""
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
def test_what_is_installed_is_understood(client: str) -> None:
    """No event is written into a client's configuration that its hook does not know."""
    groups = [group for each in CLIENTS[client].groups("rewrite").values() for group in each]
    commands = [" ".join((hook["command"], *hook.get("args", ()))) for group in groups for hook in group["hooks"]]
    assert {each.partition(f" hook {client} ")[2].split()[0] for each in commands} <= set(MODULES[client].KINDS)


# --- told once ------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", ["claude", "codex", "gemini"])
def test_an_ending_is_told_beside_the_next_results_and_confirmed_at_the_end_of_the_turn(
    bench: Bench, client: str
) -> None:
    """Presented once, acknowledged when the model has shown that it read on."""
    task = ended(bench, "echo out")
    assert task in context(said(call(bench, client, RESULTS[client])))
    assert state(bench, task) == "presented"
    assert said(call(bench, client, STOPS[client])) == {}
    assert state(bench, task) == "acked"


def test_a_batch_confirms_what_the_batch_before_was_told(bench: Bench) -> None:
    """Between two batches the model has read; between two calls of one batch it has not."""
    task = ended(bench)
    assert task in context(said(call(bench, "claude", "PostToolBatch")))
    assert said(call(bench, "claude", "PostToolUse")) == {}
    assert state(bench, task) == "presented"
    assert said(call(bench, "claude", "PostToolBatch")) == {}
    assert state(bench, task) == "acked"


def test_sub_agents_are_told_nothing_and_confirm_nothing(bench: Bench) -> None:
    """They have the session's name, and are not its main agent."""
    task = ended(bench)
    assert said(call(bench, "claude", "PostToolBatch", agent_id="a1")) == {}
    assert said(call(bench, "claude", "SubagentStop", agent_id="a1")) == {}
    assert state(bench, task) == "pending"
    assert task in context(said(call(bench, "claude", "PostToolBatch")))
    said(call(bench, "claude", "SubagentStop", agent_id="a1"))
    assert state(bench, task) == "presented"


def test_another_project_hears_nothing(bench: Bench) -> None:
    """Neither at its beginning nor later."""
    ended(bench)
    other = bench.root / "other"
    other.mkdir()
    theirs: dict[str, Any] = {"session_id": "11111111-2222-3333-4444-555555555555", "cwd": str(other)}
    assert said(call(bench, "claude", "SessionStart", source="startup", **theirs)) == {}
    assert said(call(bench, "claude", "UserPromptSubmit", prompt="x", **theirs)) == {}
    theirs["session_id"] = "22222222-2222-3333-4444-555555555555"
    assert said(call(bench, "claude", "UserPromptSubmit", prompt="x", **theirs)) == {}


def test_a_resumed_session_is_not_told_what_its_transcript_shows(bench: Bench, clients: Clients) -> None:
    """Killed before anything could confirm it: the client's own record does."""
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


def test_one_killed_before_its_client_wrote_anything_down_is_told_again(bench: Bench, clients: Clients) -> None:
    """The other half: without evidence it is told once more."""
    env = {"CLAUDE_PID": clients.start()}
    said(call(bench, "claude", "SessionStart", source="startup", env=env))
    task = ended(bench)
    said(call(bench, "claude", "PostToolBatch", env=env))
    clients.kill(env["CLAUDE_PID"])
    env = {"CLAUDE_PID": clients.start()}
    done = call(bench, "claude", "SessionStart", source="resume", env=env, transcript_path="/nowhere")
    assert task in context(said(done))


def test_a_killed_keeper_is_noticed_between_two_requests(bench: Bench) -> None:
    """It commits nothing, so the look must see for itself."""
    task = launch(bench, "sleep 600")
    assert said(call(bench, "claude", "PostToolBatch")) == {}
    bench.kill(task, "keeper", "witness", "command")
    told = context(said(call(bench, "claude", "PostToolBatch")))
    assert task in told
    assert "lost" in told


def test_what_ends_after_a_quiet_look_is_told_at_the_next(bench: Bench) -> None:
    """A session that was found with nothing is looked at again as soon as anything was committed."""
    ended(bench)
    said(call(bench, "claude", "Stop"))
    said(call(bench, "claude", "Stop"))
    wait_until(lambda: stamp_of(bench.home), "the ledger's files to count as settled")
    assert said(call(bench, "claude", "PostToolBatch")) == {}
    marks = list((Path(bench.home.path) / "hooks").glob("*.quiet"))
    assert len(marks) == 1, "nothing was remembered, so this test shows nothing"
    task = ended(bench)
    wait_until(lambda: stamp_of(bench.home), "the ledger's files to count as settled")
    assert task in context(said(call(bench, "claude", "PostToolBatch")))


# --- boundaries -----------------------------------------------------------------------------------


def test_clearing_hands_over_by_the_process(bench: Bench, clients: Clients) -> None:
    """`/clear` ends one session and begins another without a word about whose place it takes."""
    env = {"CLAUDE_PID": clients.start()}
    said(call(bench, "claude", "SessionStart", source="startup", env=env))
    task = ended(bench)
    said(call(bench, "claude", "SessionEnd", reason="clear", env=env))
    fresh = {"session_id": "99999999-2222-3333-4444-555555555555"}
    assert task in context(said(call(bench, "claude", "SessionStart", source="clear", env=env, **fresh)))


def test_a_client_that_cannot_be_seen_begins_all_the_same(bench: Bench) -> None:
    """Its process is in another namespace, or its variable is nonsense."""
    for pid in ("1073741824", "x", "-1", ""):
        said(call(bench, "claude", "SessionStart", source="startup", env={"CLAUDE_PID": pid}))
    assert [each["alive"] for each in bench.json("session", "list")["sessions"]] == [None]
    said(call(bench, "claude", "SessionEnd", reason="x", env={"CLAUDE_PID": "1073741824"}))
    wait_until(lambda: bench.json("session", "list")["sessions"][0]["ended_at"], "the end")


def test_a_session_whose_beginning_was_missed_begins_with_its_next_prompt(bench: Bench, clients: Clients) -> None:
    """Installed in the middle of it, or locked out at its start: it is handed over then."""
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


def test_a_boundary_with_nothing_to_say_is_recorded_all_the_same(bench: Bench, clients: Clients) -> None:
    """What is launched and owed afterwards finds its way along it."""
    env = {"CLAUDE_PID": clients.start()}
    said(call(bench, "claude", "SessionStart", source="startup", env=env))
    fresh: dict[str, Any] = {"session_id": "99999999-2222-3333-4444-555555555555"}
    assert said(call(bench, "claude", "SessionStart", source="clear", env=env, **fresh)) == {}
    sessions = bench.json("session", "list")["sessions"]
    assert len(sessions) == 2
    assert len({each["lineage"] for each in sessions}) == 1
    assert [each["ended_at"] is None for each in sessions] == [True, False]
    task = ended(bench)
    assert task in context(said(call(bench, "claude", "PostToolBatch", env=env, **fresh))), "the heir is told"


def test_an_end_ends_the_foreground_and_nothing_else_and_nobody_waits_for_it(bench: Bench, clients: Clients) -> None:
    """A process tree that takes its time to die must not cost the client its second."""
    env = {"CLAUDE_PID": clients.start()}
    said(call(bench, "claude", "SessionStart", source="startup", env=env))
    stubborn = launch(bench, "trap '' INT TERM; echo ready; while :; do sleep 1; done", "--foreground")
    mine = launch(bench, "sleep 600")
    bench.ok("wait", stubborn, "--until", "ready")
    keeper = bench.keeper(stubborn)
    kill(keeper, signal.SIGSTOP)  # so nothing of it ends: whoever waited for that would not answer at all
    said(call(bench, "claude", "SessionEnd", reason="other", env=env))
    kill(keeper, signal.SIGCONT)
    wait_until(lambda: bench.row(stubborn).current.settled_at, "the end of the foreground")
    assert bench.row(mine).state == "running"
    bench.run("cancel", mine)


def test_a_late_end_does_not_end_a_session_that_was_resumed_elsewhere(bench: Bench, clients: Clients) -> None:
    """The old process's farewell comes after the new one's beginning."""
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


@pytest.mark.parametrize("client", ["claude", "codex", "gemini"])
def test_a_stop_is_blocked_while_the_session_waits(bench: Bench, client: str) -> None:
    """With the reason, until the last ending has been told."""
    task = launch(bench, until("go"))
    answer = said(call(bench, client, STOPS[client]))
    assert answer["decision"] == "block"
    assert task in answer["reason"]
    (bench.project / "go").touch()
    wait_until(lambda: bench.row(task).current.settled_at, "the ending")
    told = said(call(bench, client, STOPS[client], stop_hook_active=True))
    assert task in (context(told) if client == "claude" else told["reason"])
    assert said(call(bench, client, STOPS[client], stop_hook_active=True)) == {}


def test_a_stop_is_blocked_no_more_often_than_the_client_puts_up_with(bench: Bench) -> None:
    """Then it may stop, and what ends later is told at its next boundary."""
    task = launch(bench, "sleep 600")
    env = {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "3"}
    blocks = [said(call(bench, "claude", "Stop", env=env, stop_hook_active=n > 0)) for n in range(5)]
    assert [bool(block) for block in blocks] == [True, True, True, False, False]
    assert said(call(bench, "claude", "Stop", env=env, stop_hook_active=False)), "a new turn counts anew"
    bench.run("cancel", task)


def test_servers_do_not_hold_a_session(bench: Bench) -> None:
    """What is only told of when it fails is not waited for."""
    task = launch(bench, "sleep 600", "--notify", "failure")
    assert said(call(bench, "claude", "Stop")) == {}
    bench.run("cancel", task)


# --- never in the way -----------------------------------------------------------------------------

EVERY = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolBatch", "Stop", "PreCompact", "SessionEnd")


ALL_MODULES: dict[str, Any] = {**MODULES, "openclaw": openclaw, "cursor": cursor}
# Whoever wakes a session is not waited for, and is patient.
WAITED_FOR = [
    (client, event) for client, each in ALL_MODULES.items() for event in each.KINDS if event.lower() != "wake"
]


def diagnosis(bench: Bench, client: str, event: str, *options: str, **fields: Any) -> str:
    """The one line that a hook says when the ledger cannot be used."""
    given: dict[str, Any] = (
        {"workspace_roots": [str(bench.project)], "conversation_id": SESSION} if client == "cursor" else {}
    )
    before = getrusage(RUSAGE_CHILDREN).ru_nvcsw
    done = call(bench, client, event, *options, **given, **fields)
    pauses = getrusage(RUSAGE_CHILDREN).ru_nvcsw - before
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 1, (event, done.stderr)
    assert pauses < 150, "somebody waited for the lock as a command does, which looks five hundred times"
    return done.stderr


def lock(bench: Bench) -> apsw.Connection:
    """Somebody who has the ledger for himself; in WAL mode both are needed: readers wait, too."""
    holder = apsw.Connection(bench.home.ledger)
    holder.setbusytimeout(20_000)  # whoever wrote last may still have it open, on a machine that is busy
    for statement in ("PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE"):
        holder.execute(statement)
    return holder


def remove_ledger(bench: Bench) -> Path:
    """The place where it was."""
    for suffix in ("-wal", "-shm", ""):
        Path(bench.home.ledger + suffix).unlink(missing_ok=True)
    return Path(bench.home.ledger)


@pytest.mark.parametrize("client", ALL_MODULES)
def test_a_locked_ledger_is_not_waited_for(bench: Bench, client: str) -> None:
    """Exit code 0, soon, and one line of diagnosis, whichever the event."""
    ended(bench)
    holder = lock(bench)
    for event in (event for each, event in WAITED_FOR if each == client):
        assert "locked" in diagnosis(bench, client, event, source="startup"), event
    holder.close()


def test_what_a_session_leaves_behind_waits_for_the_lock(bench: Bench, clients: Clients) -> None:
    """Its end is recorded when whoever has the ledger lets go of it: only the client does not wait for that."""
    start: dict[str, Any] = {"source": "startup", "env": {"CLAUDE_PID": clients.start()}}
    said(call(bench, "claude", "SessionStart", **start))
    task = launch(bench, until("go"), "--foreground")
    holder = lock(bench)
    assert "locked" in diagnosis(bench, "claude", "SessionEnd", **start)
    holder.close()
    wait_until(lambda: bench.row(task).current.settled_at, "the end of the foreground")


@pytest.mark.parametrize("is_corrupt", [False, True])
def test_advice_needs_no_ledger(bench: Bench, is_corrupt: bool) -> None:
    """Whether a task holds what the command touches is not known then; what the command loses is."""
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
def test_a_payload_that_never_ends_is_not_waited_for(bench: Bench, event: str) -> None:
    """The client holds the other end open, and goes on all the same."""
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
def test_what_nobody_could_read_was_not_told(bench: Bench, event: str, broken: str) -> None:
    """Exit code 0 whatever is broken; without a stdout the ending is told to the next that asks."""
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
def test_a_corrupt_ledger_stands_in_nobodys_way(bench: Bench, client: str) -> None:
    """The client goes on, and one line says what is wrong, at whichever event it is found."""
    ended(bench)
    for event in (event for each, event in WAITED_FOR if each == client):
        remove_ledger(bench).write_bytes(b"not a ledger" * 1000)
        assert "damaged" in diagnosis(bench, client, event, source="startup")


def test_a_corrupt_ledger_is_told_to_the_person_at_a_beginning(bench: Bench) -> None:
    """Clients hide stderr from people."""
    ended(bench)
    remove_ledger(bench).write_bytes(b"not a ledger" * 1000)
    done = call(bench, "claude", "SessionStart", source="startup")
    assert "damaged" in json.loads(done.stdout)["systemMessage"]


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_ledger_stands_in_nobodys_way(bench: Bench, make: Any) -> None:
    """A directory or a pipe in its place; also if the hook has more than one reason to open it."""
    ended(bench)
    make(remove_ledger(bench))
    for client, event in WAITED_FOR:
        diagnosis(bench, client, event, source="startup")
    diagnosis(bench, "claude", "PreToolUse", "--guard", "off", tool_name="Bash", tool_input={"command": "ls"})
    edits = [{"tool_name": "Edit", "tool_input": {"file_path": "a"}}]
    diagnosis(bench, "claude", "PostToolBatch", tool_calls=edits)
    diagnosis(bench, "claude", "PostToolBatch", tool_calls=edits, agent_id="a")


@pytest.mark.root
def test_a_full_disk_stands_in_nobodys_way(bench: Bench) -> None:
    """Not one block is free, and nothing can be written down."""
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


def test_an_unusable_home_stands_in_nobodys_way(bench: Bench) -> None:
    """None that could be made: exit code 0."""
    for event in EVERY:
        done = call(bench, "claude", event, env={"OUTLIVE_HOME": "/proc/nowhere"}, source="startup")
        assert done.returncode == 0
        assert len(done.stderr.splitlines()) <= 1


def test_a_file_in_the_place_of_the_home_is_told_of(bench: Bench) -> None:
    """Nobody can have launched anything there, and nobody ever could."""
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
def test_wrong_words_never_block_a_client(bench: Bench, words: tuple[str, ...]) -> None:
    """An exit code of 2 would mean to block: a configuration of another version must not do that."""
    done = bench.run("hook", *words)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("outlive: ")


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"session_id": 3}'])
def test_garbage_is_answered_with_one_line(bench: Bench, payload: bytes) -> None:
    """Whatever is sent."""
    command = bench.command("hook", "claude", "Stop")
    done = subprocess.run(command, input=payload, env=bench.env, capture_output=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (0, b"")
    assert len(done.stderr.splitlines()) == 1


def test_a_large_result_of_a_tool_is_read_and_a_boundless_one_is_not(bench: Bench) -> None:
    """A client that writes must not be left with a broken pipe at a megabyte."""
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
def test_half_a_character_in_what_is_told_in_passing_costs_no_notice(
    bench: Bench, event: str, fields: dict[str, Any]
) -> None:
    """It cannot be written down; what the hook was called for is done."""
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
def test_whatever_a_hook_is_fed_it_is_quick(bench: Bench, event: str, monster: str) -> None:
    """As quick as a client can bear. Not counted is what it waits for on a busy machine, nor its start."""
    ended(bench)
    before = os.times()
    done = call(bench, "claude", event, env={"OUTLIVE_HOOK_DEADLINE_S": ""}, source="startup", **MONSTERS[monster])
    after = os.times()
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) <= 1
    assert after.children_user + after.children_system - before.children_user - before.children_system < 0.5


@pytest.mark.parametrize("event", ["PostToolBatch", "Stop", "SessionStart"])
def test_however_long_a_command_is_its_ending_is_told(bench: Bench, event: str) -> None:
    """Of a text that may be full of secrets, what is shown is masked, and no more: a client does not wait for that."""
    tasks = [ended(bench, "true " + "token=Zx81kQ2vB7pq b " * 5_000) for _ in range(6)]
    before = os.times()
    told = context(said(call(bench, "claude", event, source="resume", env={"OUTLIVE_HOOK_DEADLINE_S": ""})))
    after = os.times()
    assert all(task in told for task in tasks)
    assert "Zx81" not in told
    assert after.children_user + after.children_system - before.children_user - before.children_system < 2


def test_without_a_ledger_none_is_made_but_at_a_beginning(bench: Bench) -> None:
    """Where nobody uses Outlive, hooks leave nothing behind."""
    for event in EVERY[1:]:
        said(call(bench, "claude", event, tool_name="Bash", tool_input={"command": "ls"}))
    assert not bench.state.exists()


def test_no_more_is_said_than_a_client_takes_whole(bench: Bench) -> None:
    """Above ten thousand characters Claude puts the text into a file."""
    for number in range(60):
        ended(bench, f"seq {number} 100000 | head -c 3000; exit 1")
    assert 2000 < len(context(said(call(bench, "claude", "PostToolBatch")))) < 10_000
    for client, module in MODULES.items():
        for name in ("SessionStart", STOPS[client]):
            written = json.dumps(module.write(name, Answer(context="x" * 50_000)))
            assert 9_000 < len(written) < 10_200


HEAVY = {"json", "re", "argparse", "typing", "dataclasses", "subprocess", "collections", "enum", "inspect", "ctypes"}


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolBatch", "UserPromptSubmit", "Stop", "SessionStart"])
def test_nothing_heavy_is_loaded(bench: Bench, event: str) -> None:
    """A hook runs at every use of a tool: what it imports is what it costs."""
    ended(bench)
    said(call(bench, "claude", "PostToolBatch"))
    said(call(bench, "claude", "PostToolBatch"))
    wait_until(lambda: stamp_of(bench.home), "the ledger to have rested")
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
def test_what_a_client_keeps_from_its_model_is_told_with_the_next_prompt(
    bench: Bench, event: str, fields: dict[str, Any]
) -> None:
    """Gemini CLI shows its model no answer then: nothing may count as told, and the hand-off comes with the prompt."""
    said(call(bench, "gemini", "SessionStart", source="startup"))
    task = ended(bench, "exit 3")
    assert said(call(bench, "gemini", event, **fields)) == {}
    assert bench.show(task)["notices"][0]["state"] == "pending"
    told = context(said(call(bench, "gemini", "BeforeAgent", prompt="go on")))
    assert "Hand-off of background tasks" in told
    assert f"{task} failed (exit 3)" in told
    assert said(call(bench, "gemini", "BeforeAgent", prompt="go on")) == {}


@pytest.mark.parametrize("event", ["AfterTool", "BeforeAgent"])
def test_a_summary_that_nobody_told_of_is_seen_in_the_transcript(bench: Bench, tmp_path: Path, event: str) -> None:
    """Gemini CLI goes on with it as with a session that is resumed; there is one hand-off."""
    task, transcript = launch(bench, until("go"), "--notify", "failure"), tmp_path / "transcript.jsonl"
    goes_on = f'{{"$set":{{"sessionId":"{SESSION}"}}}}\n'
    transcript.write_text(f'{{"sessionId":"{SESSION}"}}\n{goes_on}')

    def told(event: str) -> int:
        return context(said(call(bench, "gemini", event, transcript_path=str(transcript)))).count(f"{task} running")

    said(call(bench, "gemini", "SessionStart", source="resume", transcript_path=str(transcript)))
    assert told("BeforeAgent") == 0, "it was told when it was resumed"
    assert told("AfterTool") == 0
    with transcript.open("a") as file:
        file.write(json.dumps({"content": "\n" + goes_on}) + "\n")
    assert told(event) == 0, "somebody only said it"
    with transcript.open("a") as file:
        file.write(goes_on)
    assert (told(event), told(event)) == (1, 0)
    (bench.project / "go").touch()


def test_a_beginning_session_is_told_what_its_client_runs_itself(bench: Bench) -> None:
    """Also if nothing of ours runs."""
    said(call(bench, "claude", "SessionStart", source="startup"))
    shell = (
        "Command running in background with ID: b7. Output is being written to: /tmp/b7.output. You will be notified."
    )
    batch = {"tool_name": "Bash", "tool_input": {"command": "npm run dev"}, "tool_response": shell}
    said(call(bench, "claude", "PostToolBatch", tool_calls=[batch]))
    told = context(said(call(bench, "claude", "SessionStart", source="resume")))
    assert "not kept by Outlive, but by the client itself (1)" in told
    assert "npm run dev" in told


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_a_beginning_with_nothing_to_tell_waits_for_no_disk(bench: Bench, tmp_path: Path) -> None:
    """A power failure ends the session as well; only what was told, or launched, must be there afterwards."""
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


def test_a_running_task_that_changed_nothing_costs_a_tool_nothing(bench: Bench) -> None:
    """What tasks hold is looked for only if one of them has changed something; then a command is read for it."""
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
    assert "outlive.hooks.held" in loaded
    assert "outlive.ledger.sqlite" in loaded
    assert "outlive.service.effects" not in loaded
    assert "outlive.observe.shell" not in loaded
