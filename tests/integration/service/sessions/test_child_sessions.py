"""Child sessions that a client no longer lists are first unknown and then lost, and the parent is told once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.sessions.ask_client import request_path
from outlive.service.sessions.note_client_tasks import child_sessions_of, untold_among
from tests.hook_steps import context
from tests.integration.hooks.clients.test_opencode import CHILD, MINE, Client
from tests.support import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support import Bench

GRACE_S = 0.5
LOST = f"{CHILD['id']} is lost (unobservable)"


class Parent:
    """A session in OpenCode that has a child session. The methods call its hooks and its gate."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        bench.env["OUTLIVE_GRACE_S"] = str(GRACE_S)
        self.client = Client(bench, GRACE_S)
        bench.launch("true")  # Without a ledger, hooks record nothing.
        self.client.call("chat.message", source="startup")
        self.sees("present")

    def sees(self, sight: str) -> Any:
        """Tell the hook what the client found when it checked the child session, and return the hook's answer."""
        child = {**CHILD, "agent": "general", "parent": MINE, "sight": sight}
        return self.client.call("session.created", agent_id=MINE, children=[child])

    def gate(self) -> tuple[bool, list[str]]:
        """Return whether the gate lets the parent stop, and the states of the child sessions."""
        found = self.bench.json("gate", "--session", MINE)
        return found["may_stop"], [one["state"] for one in found["children"]]

    def prompt(self) -> str:
        """Return the text that the hook adds to the parent's next prompt."""
        return context(self.client.call("chat.message", has_read=True))

    def lose(self) -> None:
        """Report again and again that the child session is missing, until it is lost."""
        wait_until(lambda: self.sees("absent") and self.gate() == (True, ["lost"]), "the grace period to end")


@pytest.fixture
def parent(bench: Bench) -> Iterator[Parent]:
    """Return a session with a running child session."""
    started = Parent(bench)
    yield started
    started.client.end()


def pass_grace(times: float = 1) -> None:
    """Wait for `times` grace periods."""
    over = time.monotonic() + GRACE_S * times
    wait_until(lambda: time.monotonic() > over, "the time to pass")


def test_gate_waits_for_a_running_child_session_until_it_ends(parent: Parent) -> None:
    """While a child session runs, the gate refuses a stop. When it has ended, the gate allows a stop.

    The gate and `list` name the child session. Its end causes no notice.
    """
    assert parent.gate() == (False, ["running"])
    assert f"child sessions at work in the client: {CHILD['id']} (look around" in parent.bench.ok(
        "gate", "--session", MINE
    )
    (one,) = parent.bench.json("list")["foreign"]
    assert (one["kind"], one["id"], one["agent"], one["parent"]) == ("session", CHILD["id"], "general", MINE)
    assert (one["state"], one["reason"]) == ("running", None)
    parent.client.call("session.created", agent_id=MINE, children=[])
    assert parent.gate() == (True, [])
    assert parent.prompt() == ""


def test_missing_child_session_is_lost_after_a_second_check_and_reported_once(parent: Parent) -> None:
    """A missing child session is unknown at first. After a second check, it is lost, and this is reported once.

    The gate refuses a stop while the child session is unknown, and allows it when the child session is lost.
    """
    parent.sees("absent")
    parent.sees("absent")
    assert parent.gate() == (False, ["unknown"])
    assert "that the client does not see now" in parent.bench.ok("gate", "--session", MINE)
    assert parent.prompt() == ""
    pass_grace()
    assert parent.gate() == (False, ["unknown"]), "lost without a second check"
    parent.sees("absent")
    assert parent.gate() == (True, ["lost"])
    assert [one["state"] for one in parent.bench.json("list")["foreign"]] == ["lost"]
    assert "lost child sessions, which will return no result" in parent.bench.ok("gate", "--session", MINE)
    assert LOST + ": the client no longer lists it" in parent.prompt()
    assert parent.prompt() == ""
    assert parent.gate() == (True, [])
    assert parent.sees("absent")["given_up"] == [CHILD["id"]], "the client is still asked to check"
    assert parent.gate() == (True, [])


def test_child_session_that_cannot_be_read_is_given_more_time(parent: Parent) -> None:
    """If checks of a child session fail, it is lost only after several grace periods.

    A failed check does not prove that the child session is gone.
    """
    parent.sees("unknown")
    pass_grace()
    parent.sees("unknown")
    assert parent.gate() == (False, ["unknown"])
    pass_grace(4)
    parent.sees("unknown")
    assert parent.gate() == (True, ["lost"])
    assert LOST + ": the client cannot read its state" in parent.prompt()
    assert parent.prompt() == ""


def test_child_session_that_comes_back_is_running_again(parent: Parent) -> None:
    """If the client finds a missing child session again, it is running, and its loss is not reported.

    It can be lost again later.
    """
    parent.sees("absent")
    parent.sees("present")
    pass_grace()
    parent.sees("absent")
    assert parent.gate() == (False, ["unknown"]), "a check from before the child session came back was counted"
    parent.lose()
    parent.sees("present")
    assert parent.gate() == (False, ["running"])
    assert parent.prompt() == ""
    for _ in range(2):
        parent.lose()
        assert LOST in parent.prompt()
        assert parent.prompt() == ""
        parent.sees("present")
        assert parent.gate() == (False, ["running"])


def test_loss_is_reported_when_the_client_forgets_the_child_session(parent: Parent) -> None:
    """A lost child session is reported even if the client's plugin no longer knows it.

    When a client reads its configuration again, it starts its plugin anew, without its child sessions.
    """
    parent.lose()
    parent.client.call("session.created", agent_id=MINE, children=[])
    assert LOST in parent.prompt()
    assert parent.prompt() == ""


def test_gate_allows_a_stop_when_the_client_of_a_child_session_was_killed(parent: Parent) -> None:
    """If a client was killed, its child session is lost after two calls of `gate`, which then allows a stop."""
    parent.client.end()
    assert parent.gate() == (False, ["unknown"])
    pass_grace()
    assert parent.gate() == (True, ["lost"])
    parent.client = Client(parent.bench, GRACE_S)
    told = context(parent.client.call("chat.message", source="resume"))
    assert LOST + ": its client has exited" in told
    assert parent.prompt() == ""
    assert parent.gate() == (True, [])


def test_loss_that_another_hook_reported_meanwhile_is_not_reported_again(parent: Parent) -> None:
    """If two hooks find the same lost child session, only one of them reports it.

    A client calls hooks of several tools at the same time, so the two hooks may read the record at once.
    """
    parent.lose()
    with SqliteLedger(parent.bench.home.ledger, utc_now()) as ledger:
        session = Sessions(ledger).find(MINE, str(parent.bench.project))
        assert session is not None
        lost = child_sessions_of(ledger, [session.seq])
        assert [one.seen.id for one in untold_among(ledger, lost)] == [CHILD["id"]]
        assert LOST in parent.prompt()
        assert untold_among(ledger, lost) == []


def test_only_the_gate_asks_the_client_to_check_its_child_sessions(parent: Parent) -> None:
    """While the gate waits, it asks the client to check its child sessions. Other commands do not ask.

    The gate asks by writing a small file, which the client watches.
    """
    file = Path(parent.sees("present")["look_file"])
    assert str(file) == request_path(parent.bench.home, MINE)
    parent.bench.json("list")
    assert file.read_text() == ""
    parent.gate()
    asked = file.read_text()
    assert asked
    assert parent.sees("absent")["look_file"] == str(file)
    assert file.read_text() == asked, "a report made the client check again"
    parent.lose()
    asked = file.read_text()
    parent.gate()
    assert file.read_text() == asked


def test_gate_that_waits_returns_when_the_child_session_ends(parent: Parent) -> None:
    """`gate --wait` blocks while a child session runs, and returns when it ends."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(parent.bench.json, "gate", "--session", MINE, "--wait", "--ceiling", "60s")
        file = Path(request_path(parent.bench.home, MINE))
        wait_until(file.read_text, "the gate to wait")
        parent.client.call("session.created", agent_id=MINE, children=[])
        assert waiting.result()["may_stop"] is True
