"""Hooks that cannot use the ledger or the state directory. They never delay or block their client."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from outlive.hooks.clients import cursor, openclaw
from outlive.ledger.completeness import Restoring
from tests.hook_steps import MODULES, SESSION, call, context, ended, launch, said
from tests.session_steps import until
from tests.support import wait_until

if TYPE_CHECKING:
    from tests.session_steps import Clients
    from tests.support import Bench


def _lose_ledger(bench: Bench) -> None:
    for path in Path(bench.home.path).glob("ledger*"):
        path.unlink()


@pytest.mark.parametrize("event", ["Stop", "PostToolBatch", "UserPromptSubmit", "SessionStart"])
def test_hook_restores_a_missing_ledger(bench: Bench, event: str) -> None:
    """If the ledger is missing, a hook restores it, reports the ending, and prints on stderr that it did."""
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
    """If the ledger is damaged or missing, the stop hook still reports the ending, which keeps the session going."""
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


EVERY = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolBatch", "Stop", "PreCompact", "SessionEnd")
ALL_MODULES: dict[str, Any] = {**MODULES, "openclaw": openclaw, "cursor": cursor}
# No client waits for the hook that wakes a session. So this hook may wait for a lock.
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
    """Lock the ledger against writers and readers. In WAL mode, two statements are needed to lock readers out."""
    holder = apsw.Connection(bench.home.ledger)
    holder.setbusytimeout(20_000)  # On a busy machine, the last writer may still have the ledger open.
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
    """If the ledger is locked at a session's end, a detached process waits for the lock and records the end."""
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


@pytest.mark.parametrize("client", ALL_MODULES)
def test_hook_prints_one_line_when_the_ledger_is_damaged(bench: Bench, client: str) -> None:
    """If the ledger is damaged, the hook prints one line on stderr and exits with code 0 at every event."""
    ended(bench)
    for event in (event for each, event in WAITED_FOR if each == client):
        remove_ledger(bench).write_bytes(b"not a ledger" * 1000)
        assert "damaged" in diagnosis(bench, client, event, source="startup")


def test_session_start_shows_a_damaged_ledger_to_the_user(bench: Bench) -> None:
    """At a session's start, the hook's answer tells the user that the ledger is damaged. Clients do not show stderr."""
    ended(bench)
    remove_ledger(bench).write_bytes(b"not a ledger" * 1000)
    done = call(bench, "claude", "SessionStart", source="startup")
    assert "damaged" in json.loads(done.stdout)["systemMessage"]


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_hook_prints_one_line_when_the_ledger_is_no_regular_file(bench: Bench, make: Any) -> None:
    """If the ledger's path is a directory or a pipe, the hook prints one line on stderr at every event."""
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


def test_hook_creates_no_state_directory_before_a_session_starts(bench: Bench) -> None:
    """Before a session's start, no hook creates the state directory, so a user without Outlive gets no files."""
    for event in EVERY[1:]:
        said(call(bench, "claude", event, tool_name="Bash", tool_input={"command": "ls"}))
    assert not bench.state.exists()
