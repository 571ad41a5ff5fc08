"""Notices and hand-offs stay short, and their cost does not grow with the number of unreported notices."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from outlive.domain.tasks.settlement import plan_settlement
from outlive.ledger.connection import LedgerFile
from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.syscalls import boot_id, pid_namespace
from outlive.service.clock import utc_now
from outlive.service.notices.compose import notice_documents, text_of
from outlive.service.notices.inbox import claim, peek
from outlive.service.sessions.gate import gate, gate_document
from outlive.service.sessions.hand_off import hand_off_again
from tests.session_steps import begin
from tests.unit.values import attempt, exited, launch, vanished

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Bench

SOME, MANY, TWICE_AS_MANY = 50, 420, 840


def owe(bench: Bench, count: int, **changes: Any) -> None:
    """Add ended tasks of the session s-1 to the ledger, until it has `count` tasks.

    Every tenth task is lost. The others end with the exit codes 0, 1 and 2.
    """
    # The tasks ended two days ago. If a task failed recently, its notice also needs a search for files left changed.
    now, project = utc_now() - timedelta(days=2), str(bench.project)
    with SqliteLedger(bench.home.ledger, now) as ledger, ledger.write():
        known = ledger.select("SELECT count(*) FROM task")[0][0]
        asked = [
            launch(id=f"t{number:07}", created_at=now, session="s-1", project=project, cwd=project, **changes)
            for number in range(known, count)
        ]
        for each in asked:
            begun = attempt(created_at=now, started_at=now, boot=boot_id(), pid_namespace=pid_namespace())
            ledger.enqueue(each, begun)
        for number, each in enumerate(asked):
            seen = vanished() if number % 10 == 0 else exited(number % 3, at=now)
            ledger.settle(plan_settlement(each, 1, seen, None, now=now, settled_by="keeper"))


def show_inbox(bench: Bench) -> str:
    """Return what `inbox --peek` prints, as text and as JSON."""
    seen = peek(bench.home, "s-1", str(bench.project))
    documents = json.dumps(notice_documents(bench.home, seen.tellings, seen.session))
    return text_of(bench.home, seen.tellings, seen.session, seen.more) + documents


def show_hand_off(bench: Bench) -> str:
    """Return what `hand-off` prints."""
    seen = peek(bench.home, "s-1", str(bench.project))
    assert seen.owed is not None
    return hand_off_again(bench.home, seen.owed, seen.tellings).text


def show_gate(bench: Bench) -> str:
    """Return what `gate --json` prints."""
    answer = gate(bench.home, "s-1", str(bench.project), None)
    assert not answer.may_stop
    return json.dumps(gate_document(bench.home, answer))


def claim_some(bench: Bench) -> str:
    """Claim notices as `inbox` does, release them again, and return their number."""
    with claim(bench.home, "s-1", str(bench.project)) as claimed:
        return str(len(claimed.tellings))


@pytest.mark.parametrize("show", [show_inbox, show_hand_off, show_gate, claim_some])
def test_answer_costs_the_same_however_many_notices_are_undelivered(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, show: Callable[[Bench], str]
) -> None:
    """If twice as many notices are unreported, `inbox`, `hand-off` and `gate` read and print no more."""
    begin(bench, "s-1")
    select, work = LedgerFile.select, [0]

    def count(self: LedgerFile, *words: Any) -> Any:
        found = select(self, *words)
        work[0] += 1 + len(found)
        return found

    monkeypatch.setattr(LedgerFile, "select", count)
    taken = []
    for owed in (MANY, TWICE_AS_MANY):
        owe(bench, owed)
        work[0] = 0
        size = len(show(bench))
        taken.append((work[0], size))
    (few, short), (many, long) = taken
    assert many <= few + 2
    assert long <= short * 1.1 + 50


def test_inbox_counts_the_notices_that_it_does_not_show(bench: Bench) -> None:
    """`inbox` shows forty notices and says how many more there are. The next call shows those."""
    begin(bench, "s-1")
    owe(bench, SOME)
    found = bench.json("inbox", "--session", "s-1", "--peek")
    assert (len(found["notices"]), found["more"]) == (40, 10)
    assert "and 10 more: outlive inbox" in bench.ok("inbox", "--session", "s-1", "--peek")
    assert "ended, and not yet reported to you (45)" in bench.ok("hand-off", "--session", "s-1")
    assert "notices not reported yet: 50" in bench.ok("gate", "--session", "s-1")
    told = bench.json("inbox", "--session", "s-1")["notices"] + bench.json("inbox", "--session", "s-1")["notices"]
    assert len({notice["id"] for notice in told}) == SOME


def test_large_group_ends_with_one_notice(bench: Bench) -> None:
    """A group has one final notice, even if it has more members than Outlive reads at a time."""
    begin(bench, "s-1")
    owe(bench, MANY, group="g")
    with claim(bench.home, "s-1", str(bench.project)) as claimed:
        (telling,) = claimed.tellings
    assert (telling.notice.kind, len(telling.covers)) == ("group_ended", MANY)


def test_audit_names_twenty_findings_of_a_kind_and_counts_the_rest(bench: Bench) -> None:
    """`audit` prints twenty findings of a kind, and `audit --all` prints every finding."""
    begin(bench, "s-1")
    owe(bench, SOME)
    short = bench.run("audit").stdout
    assert short.count("does not exist") == 20
    assert "30 more" in short
    found = bench.json("audit")
    assert (len(found["findings"]), found["counts"]) == (40, {"row_without_bundle": 50, "undelivered": 50})
    assert bench.run("audit", "--all").stdout.count("does not exist") == 50
