"""Cursor's hooks, tested with the payloads of its documentation.

No test has run Cursor itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outlive.hooks.clients import cursor
from outlive.hooks.event import Answer
from outlive.install.clients.cursor import LOOP_LIMIT, groups
from tests.hook_steps import SESSION, call, ended, launch, said, state
from tests.session_steps import until
from tests.support import wait_until

if TYPE_CHECKING:
    from tests.support import Bench

PAYLOADS = Path(__file__).parents[3] / "clients/payloads/cursor.json"


def documented() -> dict[str, Any]:
    """Return the payloads that Cursor's documentation shows, by event and variant."""
    found: dict[str, Any] = json.loads(PAYLOADS.read_text())
    return found


def tell(bench: Bench, name: str, *options: str, **fields: Any) -> Any:
    """Call a hook with a payload from the documentation, for the test's session and project."""
    payload = {**documented()[name]["payload"], "conversation_id": SESSION, "session_id": SESSION, **fields}
    payload["workspace_roots"] = [str(bench.project)]
    return said(call(bench, "cursor", name.partition(":")[0], *options, **payload))


def test_cursor_hook_answers_every_documented_payload(bench: Bench) -> None:
    """For every documented payload, the hook prints JSON or no output, exits with 0 and writes nothing to stderr."""
    for name in documented():
        tell(bench, name)
    assert {name.partition(":")[0] for name in documented()} == set(cursor.KINDS)


def test_installed_cursor_events_are_known_to_the_hook() -> None:
    """Every installed hook names an event that the hook command knows."""
    hooks = [hook for each in groups("advise").values() for hook in each]
    called = {str(hook["command"]).partition(" hook cursor ")[2].split()[0] for hook in hooks}
    assert called == set(cursor.KINDS)
    assert "advise" not in groups("advise")
    assert LOOP_LIMIT == cursor.MOST_BLOCKS


def test_cursor_hook_presents_an_ending_with_a_result_and_acknowledges_it_at_stop(bench: Bench) -> None:
    """The Cursor hook presents a notice with the next tool result, and acknowledges it at the end of the turn."""
    tell(bench, "sessionStart")
    task = ended(bench, "exit 3")
    assert task in tell(bench, "postToolUse")["additional_context"]
    assert state(bench, task) == "presented"
    assert tell(bench, "stop:completed") == {}
    assert state(bench, task) == "acked"


def test_cursor_stop_acknowledges_nothing_when_the_turn_was_aborted(bench: Bench) -> None:
    """If the user stopped the turn, the stop hook acknowledges no notice and sends no message.

    It is not known what the model has read.
    """
    tell(bench, "sessionStart")
    task = ended(bench, "exit 3")
    tell(bench, "postToolUse")
    assert tell(bench, "stop:aborted") == {}
    assert state(bench, task) == "presented"
    launch(bench, until("go"))
    assert tell(bench, "stop:aborted") == {}
    (bench.project / "go").touch()


def test_cursor_stop_sends_endings_within_the_limit_of_the_client(bench: Bench) -> None:
    """The stop hook sends one message for each ending, up to the client's limit of messages.

    It sends none for running tasks.
    """
    tell(bench, "sessionStart")
    running = launch(bench, until("go"))
    assert tell(bench, "stop:completed") == {}
    for loop in range(LOOP_LIMIT):
        assert ended(bench) in tell(bench, "stop:completed", loop_count=loop)["followup_message"]
    ended(bench)
    assert tell(bench, "stop:completed", loop_count=LOOP_LIMIT) == {}
    (bench.project / "go").touch()
    wait_until(lambda: bench.row(running).current.settled_at, "the ending")


def test_cursor_session_start_hands_over_tasks_of_its_own_conversation(bench: Bench) -> None:
    """At its start, a session receives only its own tasks, even if its process has other conversations."""
    tell(bench, "sessionStart")
    task = launch(bench, until("go"))
    tell(bench, "postToolUse")
    assert task in tell(bench, "sessionStart")["additional_context"]
    other = {"conversation_id": "another-conversation-there", "session_id": "another-conversation-there"}
    assert task not in tell(bench, "sessionStart", **other).get("additional_context", "")
    (bench.project / "go").touch()


def test_cursor_hook_exports_the_session_and_permits_nothing(bench: Bench) -> None:
    """The hook adds the session id to a command that launches a task, and leaves the permission to the user."""
    about = {"command": "outlive run -- make", "working_directory": str(bench.project)}
    found = tell(bench, "preToolUse", "--guard", "off", tool_input=about)
    assert found == {"updated_input": {**about, "command": f"export OUTLIVE_SESSION={SESSION}; outlive run -- make"}}
    assert tell(bench, "preToolUse", "--guard", "off") == {}


def test_cursor_advice_is_given_once_with_the_result_of_the_tool(bench: Bench) -> None:
    """Advice is given once, with the result of the tool. Cursor would not show its model a text before the call."""
    about = {"tool_input": {"command": "nohup make &"}}
    assert "detached by hand" in tell(bench, "advise", **about)["additional_context"]
    assert tell(bench, "advise", **about) == {}


def test_cursor_sub_agents_are_listed_until_the_turn_is_over(bench: Bench) -> None:
    """Sub-agents are listed until the end of the turn, which removes all of them.

    Cursor does not report which sub-agent has ended.
    """
    tell(bench, "sessionStart")
    tell(bench, "subagentStart")
    found = bench.json("hand-off", "--session", SESSION)["foreign"]
    assert [(one["id"], one["command"]) for one in found] == [("abc-123", "explore: Explore the authentication flow")]
    tell(bench, "stop:completed")
    assert bench.json("hand-off", "--session", SESSION)["foreign"] == []


@pytest.mark.parametrize("event", [*cursor.KINDS])
def test_cursor_answer_decides_no_permission(event: str) -> None:
    """No answer of the hook has a field `permission` or `continue`, so the hook decides no permission."""
    said = cursor.write(event, Answer(context="a", block="b", tool_input={"command": "c"}, note="d"))
    assert not {"permission", "continue"} & set(said)
