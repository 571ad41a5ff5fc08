"""The plugin for OpenClaw with the real hooks and a simulated gateway.

The tests check what a model sees when turns, prompts or the plugin itself fail.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outlive.install.clients import openclaw
from tests.clients.rig import NODE, new_session
from tests.support import PATIENCE_S, SCRIPT, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support import Bench

PLUGIN = Path(openclaw.__file__).parent / "openclaw_plugin/index.js"


class Host:
    """A simulated gateway with one session."""

    def __init__(self, bench: Bench, command: list[str]) -> None:
        self.bench = bench
        self.session = new_session()
        words = [NODE / "node", Path(__file__).parent / "openclaw_host.mjs", PLUGIN, json.dumps(command), "gateway"]
        self._process = subprocess.Popen(
            list(map(str, words)),
            env={**bench.env, "OUTLIVE_HOOK_DEADLINE_S": str(PATIENCE_S), "OUTLIVE_TRACE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(self, name: str, run: str = "", **event: Any) -> Any:
        """Send an event to the plugin, and return the plugin's answer."""
        ctx = {"sessionKey": "agent:main:one", "sessionId": self.session, "workspaceDir": str(self.bench.project)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([name, event, {**ctx, "runId": run, "trigger": "user"}]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def prompt(self, run: str, text: str = "hello") -> str:
        """Let the gateway build a prompt, and return the text that the plugin adds to it."""
        said = self.call("before_prompt_build", run, prompt=text, messages=[])
        return "" if said is None else str(said["prependContext"])

    def ended(self) -> str:
        """Launch a task of the session that fails, and return its id after it has ended."""
        task = self.bench.launch("exit 3", "--session", self.session)
        wait_until(lambda: self.bench.row(task).current.settled_at, "the ending")
        return task

    def state(self, task: str) -> str:
        """Return the state of the notice of a task's ending."""
        return str(self.bench.show(task)["notices"][0]["state"])

    def claims(self) -> int:
        """Count how often a process has claimed a notice in order to report it to the session."""
        return sum(path.read_text().count('"claimed"') for path in self.bench.state.glob("*/traces/*"))

    def close(self) -> None:
        """Kill the gateway."""
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def host(bench: Bench) -> Iterator[Host]:
    """Start a gateway with the plugin, and begin a session in it."""
    if not (NODE / "node").exists():
        pytest.skip("node is not installed: `make test-clients` does it")
    started = Host(bench, [sys.executable, "-I", str(SCRIPT)])
    started.prompt("first")
    yield started
    started.close()


def test_ending_is_repeated_after_a_failed_turn_and_not_after_a_successful_one(host: Host) -> None:
    """An ending is reported again after a failed turn, because the model may not have read it.

    After a successful turn, the ending is not reported again.
    """
    task = host.ended()
    assert task in host.prompt("r1")
    host.call("agent_end", "r1", success=False)
    assert task in host.prompt("r2")
    host.call("agent_end", "r2", success=True)
    assert host.state(task) == "acked"
    assert host.prompt("r3") == ""


def test_ending_is_repeated_when_the_same_prompt_is_built_again(host: Host) -> None:
    """If OpenClaw builds the same prompt again, as it does after a failed request, the prompt has the ending again.

    Another prompt of the same turn does not have the ending.
    """
    task = host.ended()
    assert task in host.prompt("r1")
    assert task in host.prompt("r1")
    assert host.prompt("r1", "go on") == ""


def test_ending_is_not_reported_at_the_end_of_a_turn_that_used_tools(host: Host) -> None:
    """An ending is not reported at the end of a turn that used tools, because OpenClaw would not show it to the model.

    A turn without tools is continued with the report.
    """
    host.prompt("r1")
    host.call("before_tool_call", "r1", toolName="exec", params={"command": "true"}, toolCallId="c1")
    task = host.ended()
    assert host.call("before_agent_finalize", "r1") is None
    assert host.state(task) == "pending"
    host.call("agent_end", "r1", success=True)
    host.prompt("r2", "hello again")
    second = host.ended()

    def told() -> Any:
        # The end of the first turn has started a watcher, which may have claimed the notice for a short time.
        return host.call("before_agent_finalize", "r2")

    assert second in wait_until(told, "a reason to go on")["reason"]


def test_plugin_stops_requesting_turns_that_do_not_happen(host: Host) -> None:
    """The plugin requests a turn three times.

    If no turn takes place, the plugin reports the ending at the next prompt.
    """
    task = host.ended()

    def watched(times: int) -> bool:
        host.call("agent_end", "r1", success=True)  # this call starts a watcher, unless a watcher is running
        return host.claims() >= times

    wait_until(lambda: watched(6), "six watchers, one after the other")
    assert len(host.call("nudges")) == 3
    assert task in host.prompt("r2")


def test_woken_session_answers_in_the_chat_where_it_was_last_used(host: Host) -> None:
    """The plugin requests a turn whose answer goes to the chat where the session was last used.

    Without this request, the answer would go to the owner's chat, or to no chat.
    """
    host.call("agent_end", "r1", success=True)
    host.ended()
    host.call("agent_end", "r1", success=True)
    (nudge, *_) = wait_until(lambda: host.call("nudges"), "the request for a turn")
    assert (nudge["sessionKey"], nudge["heartbeat"]) == ("agent:main:one", {"target": "last"})


def test_openclaw_works_when_the_outlive_command_is_missing(bench: Bench) -> None:
    """If the `outlive` command is missing, no event of OpenClaw fails or is delayed."""
    if not (NODE / "node").exists():
        pytest.skip("node is not installed: `make test-clients` does it")
    broken = Host(bench, ["/nonexistent/python", "-I", "outlive"])
    try:
        assert broken.prompt("r1") == ""
        for name in ("before_tool_call", "before_agent_finalize", "agent_end", "session_end", "before_compaction"):
            assert broken.call(name, "r1", toolName="exec", params={}, success=True) is None
        assert broken.call("result", toolCallId="c1", toolName="exec", args={}, result={"content": []}) is None
    finally:
        broken.close()
