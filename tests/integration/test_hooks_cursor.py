"""Cursor's hooks, by the payloads of its documentation: no Cursor has ever been run with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outlive.hooks import cursor
from outlive.hooks.event import Answer
from outlive.install.cursor import LOOP_LIMIT, groups
from tests.integration.test_hooks import SESSION, call, ended, launch, said, state
from tests.session_steps import until

if TYPE_CHECKING:
    from tests.support import Bench

PAYLOADS = Path(__file__).parents[1] / "clients/payloads/cursor.json"


def documented() -> dict[str, Any]:
    """The payloads as they are documented, by event and variant."""
    found: dict[str, Any] = json.loads(PAYLOADS.read_text())
    return found


def tell(bench: Bench, name: str, *options: str, **fields: Any) -> Any:
    """Call a hook with a documented payload of the session, in the test's project."""
    payload = {**documented()[name]["payload"], "conversation_id": SESSION, "session_id": SESSION, **fields}
    payload["workspace_roots"] = [str(bench.project)]
    return said(call(bench, "cursor", name.partition(":")[0], *options, **payload))


def test_every_documented_payload_is_understood(bench: Bench) -> None:
    """Answered with JSON or nothing, exit code 0, not a word on stderr."""
    for name in documented():
        tell(bench, name)
    assert {name.partition(":")[0] for name in documented()} == set(cursor.KINDS)


def test_what_is_installed_is_understood() -> None:
    """Every hook that is written into its file is one that ours knows, under a name that Cursor knows."""
    hooks = [hook for each in groups("advise").values() for hook in each]
    called = {str(hook["command"]).partition(" hook cursor ")[2].split()[0] for hook in hooks}
    assert called == set(cursor.KINDS)
    assert "advise" not in groups("advise")
    assert LOOP_LIMIT == cursor.MOST_BLOCKS


def test_an_ending_is_told_beside_the_next_result_and_confirmed_at_the_end_of_the_turn(bench: Bench) -> None:
    """Presented once, acknowledged when the turn is over."""
    tell(bench, "sessionStart")
    task = ended(bench, "exit 3")
    assert task in tell(bench, "postToolUse")["additional_context"]
    assert state(bench, task) == "presented"
    assert tell(bench, "stop:completed") == {}
    assert state(bench, task) == "acked"


def test_a_turn_that_was_broken_off_confirms_nothing_and_is_not_followed(bench: Bench) -> None:
    """The person has stopped it, and nobody knows what the model has read."""
    tell(bench, "sessionStart")
    task = ended(bench, "exit 3")
    tell(bench, "postToolUse")
    assert tell(bench, "stop:aborted") == {}
    assert state(bench, task) == "presented"
    launch(bench, until("go"))
    assert tell(bench, "stop:aborted") == {}
    (bench.project / "go").touch()


def test_the_gate_is_a_message_that_follows_within_the_limit(bench: Bench) -> None:
    """While a task runs that it waits for; as often as Cursor lets it."""
    tell(bench, "sessionStart")
    task = launch(bench, until("go"))
    for loop in range(LOOP_LIMIT):
        assert task in tell(bench, "stop:completed", loop_count=loop)["followup_message"]
    assert tell(bench, "stop:completed", loop_count=LOOP_LIMIT) == {}
    (bench.project / "go").touch()


def test_a_conversation_that_begins_is_handed_over(bench: Bench) -> None:
    """Another one of the same process goes on for itself."""
    tell(bench, "sessionStart")
    task = launch(bench, until("go"))
    tell(bench, "postToolUse")
    assert task in tell(bench, "sessionStart")["additional_context"]
    other = {"conversation_id": "another-conversation-there", "session_id": "another-conversation-there"}
    assert task not in tell(bench, "sessionStart", **other).get("additional_context", "")
    (bench.project / "go").touch()


def test_a_command_that_launches_knows_its_session_and_nothing_is_permitted(bench: Bench) -> None:
    """Whether it may run is for the person to say."""
    about = {"command": "outlive run -- make", "working_directory": str(bench.project)}
    found = tell(bench, "preToolUse", "--guard", "off", tool_input=about)
    assert found == {"updated_input": {**about, "command": f"export OUTLIVE_SESSION={SESSION}; outlive run -- make"}}
    assert tell(bench, "preToolUse", "--guard", "off") == {}


def test_advice_stands_beside_the_result(bench: Bench) -> None:
    """Said before the tool it would reach nobody."""
    about = {"tool_input": {"command": "nohup make &"}}
    assert "detached by hand" in tell(bench, "advise", **about)["additional_context"]
    assert tell(bench, "advise", **about) == {}


def test_sub_agents_are_foreign_until_the_turn_is_over(bench: Bench) -> None:
    """Cursor says that one ended, and not which."""
    tell(bench, "sessionStart")
    tell(bench, "subagentStart")
    found = bench.json("hand-off", "--session", SESSION)["foreign"]
    assert [(one["id"], one["command"]) for one in found] == [("abc-123", "explore: Explore the authentication flow")]
    tell(bench, "stop:completed")
    assert bench.json("hand-off", "--session", SESSION)["foreign"] == []


@pytest.mark.parametrize("event", [*cursor.KINDS])
def test_no_answer_decides_about_a_permission(event: str) -> None:
    """Nor does it continue or end anything that is Cursor's."""
    said = cursor.write(event, Answer(context="a", block="b", tool_input={"command": "c"}, note="d"))
    assert not {"permission", "continue"} & set(said)
