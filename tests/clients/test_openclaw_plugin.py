"""The plugin in OpenClaw, with the real hooks and a stand-in for the gateway: what a model sees of its failures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outlive.install import openclaw
from tests.clients.rig import NODE, new_session
from tests.support import PATIENCE_S, SCRIPT, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support import Bench

PLUGIN = Path(openclaw.__file__).parent / "openclaw_plugin/index.js"


class Host:
    """A gateway with one session."""

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
        """What the plugin returns."""
        ctx = {"sessionKey": "agent:main:one", "sessionId": self.session, "workspaceDir": str(self.bench.project)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([name, event, {**ctx, "runId": run, "trigger": "user"}]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def prompt(self, run: str, text: str = "hello") -> str:
        """What is said at a prompt."""
        said = self.call("before_prompt_build", run, prompt=text, messages=[])
        return "" if said is None else str(said["prependContext"])

    def ended(self) -> str:
        """A task of the session that has failed."""
        task = self.bench.launch("exit 3", "--session", self.session)
        wait_until(lambda: self.bench.row(task).current.settled_at, "the ending")
        return task

    def state(self, task: str) -> str:
        """What became of the notice of a task's ending."""
        return str(self.bench.show(task)["notices"][0]["state"])

    def claims(self) -> int:
        """How often somebody was about to tell the session something."""
        return sum(path.read_text().count('"claimed"') for path in self.bench.state.glob("*/traces/*"))

    def close(self) -> None:
        """It is gone."""
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def host(bench: Bench) -> Iterator[Host]:
    """A gateway with the plugin in it, and a session that has begun."""
    if not (NODE / "node").exists():
        pytest.skip("node is not installed: `make test-clients` does it")
    started = Host(bench, [sys.executable, "-I", str(SCRIPT)])
    started.prompt("first")
    yield started
    started.close()


def test_a_turn_that_failed_is_told_again_and_one_that_went_well_is_not(host: Host) -> None:
    """Nobody knows what a model read that did not answer."""
    task = host.ended()
    assert task in host.prompt("r1")
    host.call("agent_end", "r1", success=False)
    assert task in host.prompt("r2")
    host.call("agent_end", "r2", success=True)
    assert host.state(task) == "acked"
    assert host.prompt("r3") == ""


def test_a_prompt_that_is_built_again_says_the_same_again(host: Host) -> None:
    """OpenClaw does it when a request fails; another prompt of the same turn is another prompt."""
    task = host.ended()
    assert task in host.prompt("r1")
    assert task in host.prompt("r1")
    assert host.prompt("r1", "go on") == ""


def test_after_tools_nothing_is_told_at_the_end_of_the_turn(host: Host) -> None:
    """OpenClaw would end it without a word, and nobody would have heard; without tools it goes on."""
    host.prompt("r1")
    host.call("before_tool_call", "r1", toolName="exec", params={"command": "true"}, toolCallId="c1")
    task = host.ended()
    assert host.call("before_agent_finalize", "r1") is None
    assert host.state(task) == "pending"
    host.call("agent_end", "r1", success=True)
    host.prompt("r2", "hello again")
    second = host.ended()

    def told() -> Any:
        # The watcher that the end of the first turn has started may just be looking at it.
        return host.call("before_agent_finalize", "r2")

    assert second in wait_until(told, "a reason to go on")["reason"]


def test_nudges_that_lead_to_nothing_come_to_an_end(host: Host) -> None:
    """A turn costs its owner something. What is owed is told when somebody asks."""
    task = host.ended()

    def watched(times: int) -> bool:
        host.call("agent_end", "r1", success=True)  # it starts a watcher, unless one is there
        return host.claims() >= times

    wait_until(lambda: watched(6), "six watchers, one after the other")
    assert host.call("nudges") == 3
    assert task in host.prompt("r2")


def test_our_command_gone_openclaw_goes_on(bench: Bench) -> None:
    """No event fails, and none is held up."""
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
