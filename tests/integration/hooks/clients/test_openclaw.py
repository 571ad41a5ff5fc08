"""OpenClaw's hooks, called as its plugin calls them, by one gateway with many sessions."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outlive.hooks.clients import openclaw
from outlive.hooks.event import Answer
from outlive.install.clients.openclaw import EVENTS
from tests.hook_steps import SESSION, call, ended, launch, said, state
from tests.session_steps import is_watched, until
from tests.support import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.session_steps import Clients
    from tests.support import Bench

PEER = "6f2d3c1e-0d5b-4f0e-9a55-1c2f3a4b5c6d"


class Gateway:
    """A process that plays the gateway. Its methods call hooks as the plugin does."""

    def __init__(self, bench: Bench, pid: str) -> None:
        self.bench = bench
        self.pid = int(pid)
        self._started: list[subprocess.Popen[str]] = []

    def call(self, event: str, session: str = SESSION, **fields: Any) -> Any:
        """Call a hook, and return the answer that the plugin receives."""
        return said(call(self.bench, "openclaw", event, session_id=session, pid=self.pid, **fields))

    def watch(self) -> subprocess.Popen[str]:
        """Start a watcher process for the idle session, and wait until it watches the session."""
        watcher = self._start()
        wait_until(lambda: is_watched(self.bench.home, SESSION), "the watcher")
        return watcher

    def watch_once(self) -> int:
        """Start a watcher process that exits at once, and return its exit code."""
        return self._start().wait(PATIENCE_S)

    def _start(self) -> subprocess.Popen[str]:
        watcher = subprocess.Popen(
            self.bench.command("hook", "openclaw", "wake"),
            env=self.bench.env,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(watcher)
        assert watcher.stdin is not None
        payload = {"session_id": SESSION, "cwd": str(self.bench.project), "pid": self.pid, "can_be_woken": True}
        watcher.stdin.write(json.dumps(payload))
        watcher.stdin.close()
        watcher.stdin = None
        return watcher

    def clean(self) -> None:
        """Kill the watchers."""
        for each in self._started:
            if each.poll() is None:
                each.kill()
            each.communicate()


@pytest.fixture
def gateway(bench: Bench, clients: Clients) -> Iterator[Gateway]:
    """Yield a gateway in which a session has begun."""
    found = Gateway(bench, clients.start())
    found.call("session_start", source="startup")
    yield found
    found.clean()


def test_openclaw_plugin_names_exactly_the_events_that_the_hook_knows(bench: Bench) -> None:
    """The plugin and the doctor name exactly the events that the hook answers."""
    assert set(EVENTS) == set(openclaw.KINDS)
    source = Path(__file__).parents[4] / "src/outlive/install/clients/openclaw_plugin/index.js"
    text = source.read_text(encoding="utf-8")
    assert [event for event in EVENTS if f'"{event}"' not in text] == []
    for event in EVENTS:
        said(call(bench, "openclaw", event, pid=os.getpid()))


def test_openclaw_hook_presents_an_ending_at_a_prompt_and_acknowledges_it_at_turn_end(gateway: Gateway) -> None:
    """The hook presents a notice at a prompt. The event `agent_end` acknowledges it and presents no other notice."""
    task = ended(gateway.bench, "exit 3")
    assert task in gateway.call("before_prompt_build")["context"]
    assert gateway.call("after_tool_call", tool_name="exec") == {}
    assert state(gateway.bench, task) == "presented"
    second = ended(gateway.bench, "exit 4")
    assert gateway.call("agent_end") == {}
    assert (state(gateway.bench, task), state(gateway.bench, second)) == ("acked", "pending")


def test_openclaw_turn_is_continued_for_endings_three_times(gateway: Gateway) -> None:
    """The hook continues a turn for endings at most three times, because OpenClaw limits this number.

    It does not continue a turn for a running task.
    """
    launch(gateway.bench, until("go"))
    assert gateway.call("before_agent_finalize") == {}
    for turn in range(3):
        assert ended(gateway.bench) in gateway.call("before_agent_finalize", is_again=turn > 0)["context"]
    ended(gateway.bench)
    assert gateway.call("before_agent_finalize", is_again=True) == {}
    (gateway.bench.project / "go").touch()


def test_openclaw_watcher_presents_no_notice_and_the_next_turn_does(gateway: Gateway) -> None:
    """The watcher requests a turn and presents no notice. The notice stays pending until this turn presents it."""
    task = launch(gateway.bench, f"{until('go')}; exit 3")
    watcher = gateway.watch()
    (gateway.bench.project / "go").touch()
    assert watcher.wait(PATIENCE_S) == 2
    assert state(gateway.bench, task) == "pending"
    assert gateway.watch_once() == 2
    assert task in gateway.call("before_prompt_build")["context"]
    assert gateway.call("before_prompt_build") == {}
    assert gateway.watch_once() == 0


def test_openclaw_sessions_of_one_gateway_do_not_continue_each_other(gateway: Gateway) -> None:
    """A session continues another session of the same gateway only if the gateway names that session."""
    task = launch(gateway.bench, until("go"))
    gateway.call("session_start", session=PEER, source="startup")
    gateway.call("session_start", source="resume")
    handed = gateway.call("session_start", session=PEER, source="resume")
    assert task not in handed.get("context", "")
    found = {each["id"]: each for each in gateway.bench.json("session", "list", "--all")["sessions"]}
    assert found[SESSION]["lineage"] != found[PEER]["lineage"]
    assert [each["ended_at"] for each in found.values()] == [None, None]
    named = gateway.call("session_start", session="a-session-that-follows-it", source="clear", continues=SESSION)
    assert task in named["context"]
    (gateway.bench.project / "go").touch()


def test_openclaw_sub_agents_are_listed_until_they_end(gateway: Gateway, clients: Clients) -> None:
    """Sub-agents are listed until they end. If the gateway dies, they are unknown, and lost after the grace period."""
    child = "agent:main:subagent:1"
    gateway.call("subagent_spawned", children=[[child, "look into it"]])

    def foreign(**more: Any) -> list[tuple[str, str, str]]:
        found = gateway.bench.json("hand-off", "--session", SESSION, **more)["foreign"]
        return [(one["id"], one["command"], one["state"]) for one in found]

    assert foreign() == [(child, "look into it", "running")]
    gateway.call("subagent_ended", children=[])
    assert foreign() == []
    gateway.call("subagent_spawned", children=[[child, "look into it"]])
    clients.kill(str(gateway.pid))
    grace = {"OUTLIVE_GRACE_S": "0.5"}
    assert foreign(env=grace) == [(child, "look into it", "unknown")]
    wait_until(lambda: foreign(env=grace) == [(child, "look into it", "lost")], "the end of the grace period")
    assert foreign(env=grace) == []


def test_openclaw_sub_agents_receive_no_notice(gateway: Gateway) -> None:
    """Sub-agents do not receive the session's notices, although their events have the session's id."""
    task = ended(gateway.bench)
    for event in ("before_prompt_build", "after_tool_call", "before_agent_finalize"):
        assert gateway.call(event, is_sub_agent=True) == {}
    assert state(gateway.bench, task) == "pending"


def test_openclaw_advice_is_given_once_and_nothing_is_rewritten(gateway: Gateway) -> None:
    """Advice is given once, and the command is not rewritten, so that the user's permission rules match it."""
    about: dict[str, Any] = {"tool_name": "exec", "tool_input": {"command": "npm test &", "background": True}}
    first = gateway.call("before_tool_call", **about)
    assert "background" in first["context"]
    assert set(first) == {"context"}
    assert gateway.call("before_tool_call", **about) == {}


def test_openclaw_answer_is_shortened_and_empty_without_content() -> None:
    """An answer of 20,000 characters is shortened to less than 10,000.

    If there is nothing to report, the answer is empty.
    """
    assert openclaw.write("before_prompt_build", Answer()) == {}
    assert len(str(openclaw.write("session_start", Answer(context="x" * 20_000))["context"])) < 10_000
