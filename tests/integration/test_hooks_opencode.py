"""OpenCode's hooks, as our plugin calls them from a process that has several sessions."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from outlive.hooks.marks import is_watched
from outlive.hooks.opencode import KINDS
from outlive.install.opencode import plugin_text
from tests.integration.test_hooks import context, state
from tests.session_steps import until
from tests.support import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support import Bench

MINE, OTHER = "ses_e1ec439b9ffej0ojA8KPd8Zo6A", "ses_e1ec40c15ffeuCrFSYq704A5QQ"
CHILD = {"id": "ses_e1ec42871ffewyPm9PEw4iauZe", "title": "look around (@general subagent)"}
# A client: calls what it is told to, one line each, and answers with what that said.
CLIENT = """
import json, subprocess, sys
for line in sys.stdin:
    words, given = json.loads(line)
    done = subprocess.run(words, input=json.dumps(given), capture_output=True, text=True, timeout=60)
    print(json.dumps([done.returncode, done.stdout, done.stderr]), flush=True)
"""


class Client:
    """A process that calls hooks, as OpenCode's does, until it is killed."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.process = subprocess.Popen(
            [sys.executable, "-c", CLIENT],
            env={**bench.env, "OUTLIVE_HOOK_DEADLINE_S": str(PATIENCE_S), "OUTLIVE_GRACE_S": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, event: str, session: str = MINE, **fields: Any) -> tuple[int, str, str]:
        """Begin to call a hook."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        given = {"session_id": session, "cwd": str(self._bench.project), **fields}
        self.process.stdin.write(json.dumps([self._bench.command("hook", "opencode", event), given]) + "\n")
        self.process.stdin.flush()
        code, out, err = json.loads(self.process.stdout.readline())
        return code, out, err

    def call(self, event: str, session: str = MINE, **fields: Any) -> Any:
        """What a hook answers; nothing may have gone wrong."""
        code, out, err = self.ask(event, session, **fields)
        assert (code, err) == (0, "")
        return json.loads(out) if out else {}

    def end(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def client(bench: Bench) -> Iterator[Client]:
    """A client with a session that has begun."""
    started = Client(bench)
    started.call("chat.message", source="startup")
    yield started
    started.end()


def ended(bench: Bench, session: str = MINE) -> str:
    """A task of a session that has ended, and that nobody was told of."""
    task = bench.launch("exit 3", "--session", session)
    wait_until(lambda: bench.row(task).current.settled_at, "the ending")
    return task


def sessions(bench: Bench) -> dict[str, Any]:
    """The sessions that are known, by name."""
    return {each["id"]: each for each in bench.json("session", "list")["sessions"]}


def test_every_event_that_the_plugin_tells_of_is_known() -> None:
    """And none is known that it does not tell of."""
    told = re.findall(r'\b(?:call\(|ask\(|news\(it, )"([\w.]+)"', plugin_text("advise"))
    assert set(told) == set(KINDS)


def test_only_what_was_read_is_confirmed(bench: Bench, client: Client) -> None:
    """Calls of one batch do not confirm each other; the next request does, and no end of a turn is needed."""
    task = ended(bench)
    assert f"notice n{task}01ended" in context(client.call("tool.execute.after", has_read=True))
    assert client.call("tool.execute.after", has_read=False) == {}
    assert state(bench, task) == "presented"
    assert client.call("tool.execute.after", has_read=True) == {}
    assert state(bench, task) == "acked"


def test_a_session_goes_on_under_its_own_name_in_another_process(bench: Bench, client: Client) -> None:
    """Resumed: what ended is handed over; and once more, when a summary has taken the place of its history."""
    server = bench.launch("sleep 600", "--session", MINE, "--notify", "failure")
    task = ended(bench)
    client.end()
    later = Client(bench)
    told = context(later.call("chat.message", source="resume"))
    assert f"{task} failed (exit 3)" in told
    assert f"{server} running" in told
    again = context(later.call("tool.execute.after", source="compact", has_read=True))
    assert f"{server} running" in again
    later.end()
    bench.run("cancel", server)


def test_what_its_history_shows_is_not_told_again(bench: Bench, client: Client) -> None:
    """Killed before anything could confirm it: its own record of what it was told does."""
    task = ended(bench)
    client.call("tool.execute.after", has_read=True)
    client.end()
    later = Client(bench)
    assert later.call("chat.message", source="resume", kept=f"notice n{task}01ended") == {}
    assert state(bench, task) == "acked"
    later.end()


def test_sessions_of_one_process_do_not_take_each_others_place(bench: Bench, client: Client) -> None:
    """One is summarised, one is resumed there: neither ends the other, nor is told what that is owed."""
    task = ended(bench)
    assert task not in context(client.call("chat.message", OTHER, source="resume"))
    client.call("chat.message", OTHER, source="compact")
    found = sessions(bench)
    assert [found[name]["ended_at"] for name in (MINE, OTHER)] == [None, None]
    assert found[MINE]["lineage"] != found[OTHER]["lineage"]
    assert task in context(client.call("chat.message", has_read=True))


def test_the_gate_holds_a_session_of_one_turn_until_all_is_told(bench: Bench, client: Client) -> None:
    """With the reason; then with what ended."""
    task = bench.launch(until("go"), "--session", MINE)
    assert task in client.call("session.idle", is_one_turn=True, has_read=True)["reason"]
    (bench.project / "go").touch()
    wait_until(lambda: bench.row(task).current.settled_at, "the ending")
    assert task in context(client.call("session.idle", is_one_turn=True, has_read=True, stop_hook_active=True))
    assert client.call("session.idle", is_one_turn=True, has_read=True, stop_hook_active=True) == {}
    assert state(bench, task) == "acked"


def test_an_ending_wakes_a_session_that_stays(bench: Bench, client: Client) -> None:
    """By the exit code and the text, claimed before it is said; nobody wakes one of a single turn."""
    task = bench.launch(f"{until('go')}; exit 3", "--session", MINE)
    assert client.ask("Wake", is_one_turn=True) == (0, "", "")
    (bench.project / "go").touch()
    code, out, err = client.ask("Wake")
    assert (code, out) == (2, "")
    assert f"notice n{task}01ended" in err
    assert not is_watched(bench.home, MINE)
    assert client.call("chat.message", has_read=False) == {}
    assert state(bench, task) == "presented"


def test_sub_agents_are_noted_and_told_nothing(bench: Bench, client: Client) -> None:
    """They run while the client says so; with its process they are gone, and lost when nobody has seen how."""
    task = ended(bench)
    assert client.call("session.created", agent_id=CHILD["id"], children=[CHILD]) == {}
    assert client.call("tool.execute.after", agent_id=CHILD["id"], has_read=True) == {}
    assert state(bench, task) == "pending"
    (found,) = bench.json("hand-off", "--session", MINE)["foreign"]
    assert (found["client"], found["id"], found["command"]) == ("opencode", CHILD["id"], CHILD["title"])
    assert found["state"] == "running"
    client.call("session.idle", has_read=True, is_one_turn=True, children=[])
    assert bench.json("hand-off", "--session", MINE)["foreign"] == []


def test_a_sub_agent_ends_with_its_client(bench: Bench, client: Client) -> None:
    """Unknown at the first look, lost at one after the grace; its session is told of it though nothing else runs."""
    client.call("session.created", agent_id=CHILD["id"], children=[CHILD])
    client.end()
    later = Client(bench)
    told = context(later.call("chat.message", source="resume"))
    assert f"{CHILD['id']} may run, or have ended"[:40] in told
    assert CHILD["title"] in told

    def states() -> list[str]:
        grace = {"OUTLIVE_GRACE_S": "1"}
        return [one["state"] for one in bench.json("hand-off", "--session", MINE, env=grace)["foreign"]]

    wait_until(lambda: states() == ["lost"], "the grace to be over")
    assert states() == []
    later.end()


def test_a_client_that_begins_anew_ends_no_session(bench: Bench, client: Client) -> None:
    """It lets go of its sessions when its process ends, and when it only reads its configuration again."""
    foreground = bench.launch("sleep 600", "--session", MINE, "--foreground")
    client.call("dispose", reason="dispose")
    ended(bench)  # which takes longer than an end would
    assert bench.row(foreground).state == "running"
    assert sessions(bench)[MINE]["ended_at"] is None
    client.end()
    wait_until(lambda: sessions(bench)[MINE]["end_reason"] == "dispose", "the end")
    wait_until(lambda: bench.row(foreground).current.settled_at, "the end of the foreground")


def test_a_deleted_session_is_over_and_its_neighbour_is_not(bench: Bench, client: Client) -> None:
    """At once: there is nothing to resume."""
    client.call("chat.message", OTHER, source="startup")
    client.call("session.deleted", OTHER, reason="deleted")
    wait_until(lambda: sessions(bench)[OTHER]["end_reason"] == "deleted", "the end")
    assert sessions(bench)[MINE]["ended_at"] is None


def test_the_guard_rewrites_only_where_no_rule_is(bench: Bench, client: Client) -> None:
    """The plugin knows the rules of its client; the advice is beside the result."""
    given: dict[str, Any] = {"tool_name": "bash", "tool_input": {"command": "nohup make &", "description": "x"}}
    assert "has no record" in context(client.call("tool.execute.before", asks_nobody=True, **given))
    words = [*bench.command("hook", "opencode", "tool.execute.before"), "--guard", "rewrite"]
    for is_open in (False, True):
        payload = {"session_id": OTHER, "cwd": str(bench.project), "asks_nobody": is_open, **given}
        done = subprocess.run(
            words, input=json.dumps(payload), env=bench.env, capture_output=True, text=True, check=True
        )
        better = json.loads(done.stdout)["hookSpecificOutput"].get("updatedInput")
        assert better == (
            {"command": "outlive run --description x -- bash -c make", "description": "x"} if is_open else None
        )
