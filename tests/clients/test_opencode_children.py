"""Child sessions in the store of the real OpenCode, offline.

Two servers share the store, as two clients of one user do. One server runs the child session, and the other server
deletes it.
"""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from tests.clients.model import Asked, Hang, Reply, Say, Use
from tests.clients.test_opencode import until_asked
from tests.support import wait_until

if TYPE_CHECKING:
    from tests.clients.rigs.opencode import OpenCode, Server

GRACE_S = 1.5


class Delegation:
    """An idle session whose child session runs in the background of OpenCode."""

    def __init__(self, opencode: OpenCode) -> None:
        self.opencode = opencode
        opencode.bench.env |= {"OPENCODE_EXPERIMENTAL_BACKGROUND_SUBAGENTS": "true", "OUTLIVE_GRACE_S": str(GRACE_S)}
        opencode.bench.env["OUTLIVE_TRACE"] = "1"
        opencode.configure()
        opencode.install()
        opencode.bench.launch("true")  # without a ledger, hooks record nothing
        opencode.model.answer = self.answer
        self.server = opencode.serve()
        self.session = self.server.begin()
        self.server.say(self.session, "delegate it")
        until_asked(opencode, 3)
        wait_until(lambda: set(self.server.get("/session/status")) == {self.child}, "the parent to be idle")

    @staticmethod
    def answer(asked: Asked) -> list[Reply]:
        """Reply at once to requests of the parent session, and never reply to requests of the child session."""
        if "look below" in asked.all and "delegate it" not in asked.all:
            return [Hang(600)]
        prompt = {"description": "look around", "prompt": "look below", "subagent_type": "general", "background": True}
        return [Say("fine")] if asked.results else [Use("task", prompt)]

    @property
    def child(self) -> str:
        """The id of the child session."""
        (found,) = self.server.get(f"/session/{self.session}/children")
        return str(found["id"])

    def gate(self) -> Any:
        """Return the JSON document of `outlive gate` for the parent session."""
        return self.opencode.bench.json("gate", "--session", self.session)

    def states(self) -> list[str]:
        """Return the states of the child sessions, as `outlive gate` shows them for the parent session."""
        return [one["state"] for one in self.gate()["children"]]

    def sights(self) -> set[str]:
        """Return, from the trace, the outcome of each check that did not find the child session."""
        lines = "".join(path.read_text() for path in Path(self.opencode.bench.home.traces).iterdir()).splitlines()
        return {each["sight"] for each in map(json.loads, lines) if each["decision"] == "child session not seen"}

    def prompt(self, text: str) -> str:
        """Send a prompt to the parent session, and return the whole text of the model's request."""
        self.server.say(self.session, text)
        wait_until(lambda: any(text in each.all for each in self.opencode.model.asked), "the prompt's request")
        wait_until(lambda: self.server.is_idle(self.session), "the end of the turn")
        return next(each for each in reversed(self.opencode.model.asked) if text in each.all).all


@pytest.fixture
def delegation(opencode: OpenCode) -> Delegation:
    """Return a session that has a running child session."""
    return Delegation(opencode)


def other_window(delegation: Delegation) -> Server:
    """Start a second server of the same user."""
    return delegation.opencode.serve()


def test_gate_allows_a_stop_when_another_process_deleted_the_child_session(delegation: Delegation) -> None:
    """If another process deletes a child session, the child session is unknown, and lost after the grace period.

    The loss is reported once, and then the gate allows the parent session to stop. The process that runs the child
    session is not told of the deletion, so only checks of the store can find it.
    """
    child = delegation.child
    answer = delegation.gate()
    assert answer["may_stop"] is False
    (one,) = answer["children"]
    assert (one["kind"], one["id"], one["agent"]) == ("session", child, "general")
    assert (one["parent"], one["state"], one["reason"]) == (delegation.session, "running", None)
    assert "look around" in one["command"]
    other_window(delegation).delete(f"/session/{child}")
    assert delegation.server.get(f"/session/{delegation.session}/children") == []
    wait_until(lambda: delegation.states() == ["unknown"], "a check that does not find the child session")
    assert delegation.gate()["may_stop"] is False
    answer = wait_until(lambda: (found := delegation.gate())["may_stop"] and found, "the end of the grace period")
    assert [(one["state"], one["reason"]) for one in answer["children"]] == [("lost", "unobservable")]
    assert delegation.sights() == {"absent"}
    told = delegation.prompt("and now?")
    assert told.count(f"{child[:40]} is lost (unobservable): the client no longer lists it") == 1
    assert delegation.gate()["children"] == []
    assert delegation.prompt("and then?").count("is lost (unobservable)") == 1


def test_gate_allows_a_stop_when_the_store_of_a_child_session_is_unreadable(delegation: Delegation) -> None:
    """If the store of child sessions cannot be read, the gate waits longer than usual and then allows a stop.

    Failed checks do not prove that the child session is gone. When the store can be read again, the child session
    counts as running again.
    """
    child = delegation.child
    store = delegation.opencode.home / ".local/share/opencode/opencode.db"

    def rename(before: str, after: str) -> None:
        with closing(apsw.Connection(str(store))) as database:
            database.set_busy_timeout(10_000)
            database.execute(f"ALTER TABLE {before} RENAME TO {after}")

    assert delegation.states() == ["running"]
    rename("session", "unreadable")
    wait_until(lambda: delegation.states() == ["unknown"], "a check that fails")
    answer = wait_until(lambda: (found := delegation.gate())["may_stop"] and found, "the end of the longer period")
    assert [(one["state"], one["reason"]) for one in answer["children"]] == [("lost", "unobservable")]
    assert delegation.sights() == {"unknown"}
    rename("unreadable", "session")
    told = delegation.prompt("and now?")
    assert "is lost (unobservable)" not in told, "the loss was reported although the child session was found again"
    assert [(one["id"], one["state"]) for one in delegation.gate()["children"]] == [(child, "running")]


def test_child_session_that_its_own_server_deletes_has_ended(delegation: Delegation) -> None:
    """If the server that runs a child session deletes it, the child session counts as ended, and not as lost.

    OpenCode ends the turn of the child session before the deletion, and informs the parent session itself.
    """
    delegation.server.delete(f"/session/{delegation.child}")
    wait_until(lambda: delegation.gate()["children"] == [], "the end of the child session")
    assert "is lost" not in delegation.prompt("and now?")


def test_child_session_of_a_killed_server_is_lost_and_reported_once(delegation: Delegation) -> None:
    """If the server of a child session was killed, the child session is lost, and the loss is reported once.

    The store still has the child session, but its turn ended with the server.
    """
    child = delegation.child
    delegation.opencode.kill(delegation.server.client)
    assert delegation.states() == ["unknown"]
    wait_until(lambda: delegation.gate()["may_stop"], "the end of the grace period")
    delegation.server = delegation.opencode.serve()
    told = delegation.prompt("and now?")
    assert told.count(f"{child[:40]} is lost (unobservable): its client has exited") == 1
    assert delegation.prompt("and then?").count("is lost (unobservable)") == 1
    assert delegation.gate()["children"] == []
