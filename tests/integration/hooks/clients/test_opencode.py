"""OpenCode's hooks, called as its plugin calls them, by one process with many sessions."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from threading import Timer
from typing import TYPE_CHECKING, Any

import pytest

from outlive.hooks.clients.opencode import KINDS
from outlive.install.clients.opencode import plugin_text
from tests.hook_steps import context, state
from tests.session_steps import is_watched, until
from tests.support import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support import Bench

MINE, OTHER = "ses_e1ec439b9ffej0ojA8KPd8Zo6A", "ses_e1ec40c15ffeuCrFSYq704A5QQ"
CHILD = {"id": "ses_e1ec42871ffewyPm9PEw4iauZe", "title": "look around (@general subagent)"}
# A client that runs each line of its input as a command, and prints the command's exit code, stdout and stderr.
CLIENT = """
import json, subprocess, sys
for line in sys.stdin:
    words, given = json.loads(line)
    done = subprocess.run(words, input=json.dumps(given), capture_output=True, text=True, timeout=60)
    print(json.dumps([done.returncode, done.stdout, done.stderr]), flush=True)
"""


class Client:
    """A process that calls hooks as OpenCode does, until it is killed."""

    def __init__(self, bench: Bench, grace_s: float = 1) -> None:
        self._bench = bench
        self.process = subprocess.Popen(
            [sys.executable, "-c", CLIENT],
            env={**bench.env, "OUTLIVE_HOOK_DEADLINE_S": str(PATIENCE_S), "OUTLIVE_GRACE_S": str(grace_s)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, event: str, session: str = MINE, **fields: Any) -> tuple[int, str, str]:
        """Call a hook, and return its exit code, stdout and stderr."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        given = {"session_id": session, "cwd": str(self._bench.project), **fields}
        self.process.stdin.write(json.dumps([self._bench.command("hook", "opencode", event), given]) + "\n")
        self.process.stdin.flush()
        code, out, err = json.loads(self.process.stdout.readline())
        return code, out, err

    def call(self, event: str, session: str = MINE, **fields: Any) -> Any:
        """Assert that a hook succeeds, and return its answer."""
        code, out, err = self.ask(event, session, **fields)
        assert (code, err) == (0, "")
        return json.loads(out) if out else {}

    def end(self) -> None:
        """Kill the client."""
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def client(bench: Bench) -> Iterator[Client]:
    """Yield a client in which a session has begun."""
    started = Client(bench)
    started.call("chat.message", source="startup")
    yield started
    started.end()


def ended(bench: Bench, session: str = MINE) -> str:
    """Launch a task of a session, and wait until it has ended. The ending has not been reported to the session."""
    task = bench.launch("exit 3", "--session", session)
    wait_until(lambda: bench.row(task).current.settled_at, "the ending")
    return task


def sessions(bench: Bench) -> dict[str, Any]:
    """Return the recorded sessions, by id."""
    return {each["id"]: each for each in bench.json("session", "list")["sessions"]}


def test_opencode_plugin_calls_exactly_the_events_that_the_hook_knows() -> None:
    """The plugin calls exactly the events in `KINDS`, which are those that the hook knows."""
    told = re.findall(r'\b(?:call\(|ask\(|news\(it, )"([\w.]+)"', plugin_text("advise"))
    assert set(told) == set(KINDS)


def test_opencode_hook_acknowledges_only_what_the_model_has_read(bench: Bench, client: Client) -> None:
    """The next request to the model acknowledges a presented notice. Tool calls of the same model reply do not."""
    task = ended(bench)
    assert f"notice n{task}01ended" in context(client.call("tool.execute.after", has_read=True))
    assert client.call("tool.execute.after", has_read=False) == {}
    assert state(bench, task) == "presented"
    assert client.call("tool.execute.after", has_read=True) == {}
    assert state(bench, task) == "acked"


def test_opencode_session_is_handed_over_when_another_process_resumes_it(bench: Bench, client: Client) -> None:
    """A session gets a hand-off when another process resumes it, and again after a summary."""
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


def test_opencode_session_is_not_notified_again_when_its_history_has_the_notice(bench: Bench, client: Client) -> None:
    """An ending that the history of a resumed session contains is not reported again.

    The history proves that the model received the notice before its client died.
    """
    task = ended(bench)
    client.call("tool.execute.after", has_read=True)
    client.end()
    later = Client(bench)
    assert later.call("chat.message", source="resume", kept=f"notice n{task}01ended") == {}
    assert state(bench, task) == "acked"
    later.end()


def test_opencode_sessions_of_one_process_do_not_continue_each_other(bench: Bench, client: Client) -> None:
    """If a session is resumed or summarized, other sessions of the process do not end, and keep their notices."""
    task = ended(bench)
    assert task not in context(client.call("chat.message", OTHER, source="resume"))
    client.call("chat.message", OTHER, source="compact")
    found = sessions(bench)
    assert [found[name]["ended_at"] for name in (MINE, OTHER)] == [None, None]
    assert found[MINE]["lineage"] != found[OTHER]["lineage"]
    assert task in context(client.call("chat.message", has_read=True))


def test_opencode_idle_hook_of_a_single_turn_sleeps_until_the_task_has_ended(bench: Bench, client: Client) -> None:
    """With `opencode run`, the idle hook waits until the task has ended, and reports the ending."""
    task = bench.launch(until("go"), "--session", MINE)
    Timer(0.3, (bench.project / "go").touch).start()
    assert task in context(client.call("session.idle", is_one_turn=True, has_read=True))
    assert client.call("session.idle", is_one_turn=True, has_read=True, stop_hook_active=True) == {}
    assert state(bench, task) == "acked"


def test_opencode_hook_wakes_a_session_that_stays_when_a_task_ends(bench: Bench, client: Client) -> None:
    """When a task ends, the hook wakes a session that stays open: it exits with 2 and prints the notice on stderr.

    It does not wake a session that answers a single prompt.
    """
    task = bench.launch(f"{until('go')}; exit 3", "--session", MINE)
    assert client.ask("Wake", is_one_turn=True) == (0, "", "")
    (bench.project / "go").touch()
    code, out, err = client.ask("Wake")
    assert (code, out) == (2, "")
    assert f"notice n{task}01ended" in err
    assert not is_watched(bench.home, MINE)
    assert client.call("chat.message", has_read=False) == {}
    assert state(bench, task) == "presented"


def test_opencode_sub_agents_are_listed_and_receive_no_notice(bench: Bench, client: Client) -> None:
    """A sub-agent is listed until the client reports that no sub-agent runs any more.

    A sub-agent receives no notice.
    """
    task = ended(bench)
    assert context(client.call("session.created", agent_id=CHILD["id"], children=[CHILD])) == ""
    assert client.call("tool.execute.after", agent_id=CHILD["id"], has_read=True) == {}
    assert state(bench, task) == "pending"
    (found,) = bench.json("hand-off", "--session", MINE)["foreign"]
    assert (found["client"], found["id"], found["command"]) == ("opencode", CHILD["id"], CHILD["title"])
    assert found["state"] == "running"
    client.call("session.idle", has_read=True, is_one_turn=True, children=[])
    assert bench.json("hand-off", "--session", MINE)["foreign"] == []


def test_opencode_sub_agent_is_unknown_and_then_lost_when_its_client_died(bench: Bench, client: Client) -> None:
    """If the client died, its sub-agent is unknown, and later lost.

    The hand-off of the resumed session names the sub-agent.
    """
    client.call("session.created", agent_id=CHILD["id"], children=[CHILD])
    client.end()
    later = Client(bench)
    told = context(later.call("chat.message", source="resume"))
    assert f"{CHILD['id']} may run, or have ended"[:40] in told
    assert CHILD["title"] in told

    def states() -> list[str]:
        grace = {"OUTLIVE_GRACE_S": "1"}
        return [one["state"] for one in bench.json("hand-off", "--session", MINE, env=grace)["foreign"]]

    wait_until(lambda: states() == ["lost"], "the end of the grace period")
    assert states() == []
    later.end()


def test_opencode_dispose_ends_a_session_only_when_the_process_ends(bench: Bench, client: Client) -> None:
    """If OpenCode disposes of a session, the session ends only if the process ends too.

    OpenCode also disposes of its sessions when it reloads its configuration.
    """
    foreground = bench.launch("sleep 600", "--session", MINE, "--foreground")
    client.call("dispose", reason="dispose")
    ended(bench)  # This task takes longer than the end of a session would take.
    assert bench.row(foreground).state == "running"
    assert sessions(bench)[MINE]["ended_at"] is None
    client.end()
    wait_until(lambda: sessions(bench)[MINE]["end_reason"] == "dispose", "the end of the session")
    wait_until(lambda: bench.row(foreground).current.settled_at, "the end of the foreground")


def test_opencode_session_ends_at_once_when_it_is_deleted(bench: Bench, client: Client) -> None:
    """A deleted session ends at once. Other sessions of the process do not end."""
    client.call("chat.message", OTHER, source="startup")
    client.call("session.deleted", OTHER, reason="deleted")
    wait_until(lambda: sessions(bench)[OTHER]["end_reason"] == "deleted", "the end of the session")
    assert sessions(bench)[MINE]["ended_at"] is None


def test_opencode_guard_rewrites_only_when_no_permission_rule_applies(bench: Bench, client: Client) -> None:
    """The guard rewrites a command only if the plugin reports that the client asks no person for permission."""
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
