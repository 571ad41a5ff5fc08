"""OpenClaw's hooks, as its plugin calls them: one gateway, many sessions, and nudges that tell nothing themselves."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from outlive.hooks import openclaw
from outlive.hooks.event import Answer
from outlive.hooks.marks import is_watched
from outlive.install.openclaw import EVENTS
from tests.integration.test_hooks import SESSION, call, ended, launch, said, state
from tests.session_steps import until
from tests.support import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.session_steps import Clients
    from tests.support import Bench

PEER = "6f2d3c1e-0d5b-4f0e-9a55-1c2f3a4b5c6d"


class Gateway:
    """A process that stands for the gateway, and the calls of the plugin in it."""

    def __init__(self, bench: Bench, pid: str) -> None:
        self.bench = bench
        self.pid = int(pid)
        self._started: list[subprocess.Popen[str]] = []

    def call(self, event: str, session: str = SESSION, **fields: Any) -> Any:
        """What the plugin is answered."""
        return said(call(self.bench, "openclaw", event, session_id=session, pid=self.pid, **fields))

    def watch(self) -> subprocess.Popen[str]:
        """A watcher beside the idle session, once it watches."""
        watcher = self._start()
        wait_until(lambda: is_watched(self.bench.home, SESSION), "the watcher")
        return watcher

    def watch_once(self) -> int:
        """One that has nothing to wait for, or need not; its exit code."""
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
        """No watcher is left."""
        for each in self._started:
            if each.poll() is None:
                each.kill()
            each.communicate()


@pytest.fixture
def gateway(bench: Bench, clients: Clients) -> Iterator[Gateway]:
    """A gateway in which a session has begun."""
    found = Gateway(bench, clients.start())
    found.call("session_start", source="startup")
    yield found
    found.clean()


def test_every_event_that_the_plugin_calls_is_understood(bench: Bench) -> None:
    """The plugin's file names no event that the hook does not know, and the doctor knows them all."""
    assert set(EVENTS) == set(openclaw.KINDS)
    source = os.path.join(os.path.dirname(__file__), "../../src/outlive/install/openclaw_plugin/index.js")
    with open(source, encoding="utf-8") as file:
        text = file.read()
    assert [event for event in EVENTS if f'"{event}"' not in text] == []
    for event in EVENTS:
        said(call(bench, "openclaw", event, pid=os.getpid()))


def test_an_ending_is_told_at_the_next_prompt_and_confirmed_at_the_end_of_the_turn(gateway: Gateway) -> None:
    """Once; also where the end of the turn cannot be held, and nothing may be said at it."""
    task = ended(gateway.bench, "exit 3")
    assert task in gateway.call("before_prompt_build")["context"]
    assert gateway.call("after_tool_call", tool_name="exec") == {}
    assert state(gateway.bench, task) == "presented"
    second = ended(gateway.bench, "exit 4")
    assert gateway.call("agent_end") == {}
    assert (state(gateway.bench, task), state(gateway.bench, second)) == ("acked", "pending")


def test_the_gate_holds_three_times_and_never_who_is_watched(gateway: Gateway) -> None:
    """OpenClaw would go on only so often; a session that is woken need not be held."""
    task = launch(gateway.bench, until("go"))
    for turn in range(3):
        assert task in gateway.call("before_agent_finalize", is_again=turn > 0)["block"]
    assert gateway.call("before_agent_finalize", is_again=True) == {}
    gateway.watch()
    assert gateway.call("before_agent_finalize", can_be_woken=True) == {}
    (gateway.bench.project / "go").touch()


def test_a_nudge_tells_nothing_and_the_turn_after_it_everything(gateway: Gateway) -> None:
    """However often it is nudged, and whether or not a turn comes of it."""
    task = launch(gateway.bench, f"{until('go')}; exit 3")
    watcher = gateway.watch()
    (gateway.bench.project / "go").touch()
    assert watcher.wait(PATIENCE_S) == 2
    assert state(gateway.bench, task) == "pending"
    assert gateway.watch_once() == 2
    assert task in gateway.call("before_prompt_build")["context"]
    assert gateway.call("before_prompt_build") == {}
    assert gateway.watch_once() == 0


def test_sessions_of_one_gateway_do_not_continue_each_other(gateway: Gateway) -> None:
    """Its process says nothing of who goes on where: each keeps its id, or the gateway names whom it follows."""
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


def test_sub_agents_are_foreign_until_they_end(gateway: Gateway, clients: Clients) -> None:
    """Killed with the gateway they are unknown, and lost at a second look."""
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
    wait_until(lambda: foreign(env=grace) == [(child, "look into it", "lost")], "the grace to be over")
    assert foreign(env=grace) == []


def test_sub_agents_are_told_nothing(gateway: Gateway) -> None:
    """Their events carry the session that they work for."""
    task = ended(gateway.bench)
    for event in ("before_prompt_build", "after_tool_call", "before_agent_finalize"):
        assert gateway.call(event, is_sub_agent=True) == {}
    assert state(gateway.bench, task) == "pending"


def test_advice_is_said_once_and_nothing_is_rewritten(gateway: Gateway) -> None:
    """The command stays the one that the person's rules are about."""
    about: dict[str, Any] = {"tool_name": "exec", "tool_input": {"command": "npm test &", "background": True}}
    first = gateway.call("before_tool_call", **about)
    assert "background" in first["context"]
    assert set(first) == {"context"}
    assert gateway.call("before_tool_call", **about) == {}


def test_what_is_answered_is_never_longer_than_a_client_takes() -> None:
    """Nor does it say what there is not."""
    assert openclaw.write("before_prompt_build", Answer()) == {}
    assert len(str(openclaw.write("session_start", Answer(context="x" * 20_000))["context"])) < 10_000
