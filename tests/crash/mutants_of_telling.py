"""Planted bugs in processes that report endings, and in processes that end a session."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from outlive.bundle.home import Home
from outlive.domain.notices.notice import Notice
from outlive.domain.sessions.session import Session
from outlive.domain.tasks.task import Task
from outlive.ledger.notices import Notices
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.notices import inbox
from outlive.service.sessions import lineage
from tests.crash.deliverer import HAND_OFF, Delivery
from tests.crash.farewell import Farewell
from tests.crash.mutants import Mutant, replace

if TYPE_CHECKING:
    from outlive.service.maintenance.reconcile import Adopter


def present_before_printing() -> None:
    """Plant a bug: a notice is recorded as presented before it is printed."""

    def enter(claimed: inbox.Claim) -> inbox.Claim:
        claimed.presented()
        return claimed

    replace(inbox.Claim, "__enter__", enter)


def believe_a_dead_claim() -> None:
    """Plant a bug: a notice that a dead process has claimed is never claimed by another process."""
    replace(inbox, "is_held", lambda *_: True)


def acknowledge_at_the_claim() -> None:
    """Plant a bug: a notice is acknowledged when it is claimed."""
    claim = Notices.claim

    def claim_and_close(self: Notices, notices: Sequence[Notice], claimer: str) -> None:
        claim(self, notices, claimer)
        self.acknowledge(notices, utc_now())

    replace(Notices, "claim", claim_and_close)


def rename_when_told_again() -> None:
    """Plant a bug: a notice gets a new id if it was claimed before."""
    owed = Notices.owed

    def owed_anew(self: Notices, *which: Any, **limits: Any) -> list[Notice]:
        for notice in owed(self, *which, **limits):
            if notice.claimer is not None:
                self._ledger.db.execute("UPDATE notice SET id = id || '2' WHERE id = ?", (notice.id,))
        return owed(self, *which, **limits)

    replace(Notices, "owed", owed_anew)


def forget_what_was_printed() -> None:
    """Plant a bug: a notice is printed, but not recorded as presented."""
    replace(inbox.Claim, "presented", lambda *_, **__: None)


def end_the_session_first() -> None:
    """Plant a bug: a session is recorded as ended before its tasks are ended.

    Tasks of an ended session are then skipped.
    """
    end_foreground = lineage._end_foreground

    def end_then_ask(home: Home, session: Session, adopter: "Adopter | None") -> list[Task]:
        with SqliteLedger(home.ledger, utc_now()) as ledger:
            is_news = Sessions(ledger).end(session.seq, None, utc_now())
        return end_foreground(home, session, adopter) if is_news else []

    replace(lineage, "_end_foreground", end_then_ask)


MUTANTS: Final[dict[str, Mutant]] = {
    "present before printing": Mutant(present_before_printing, Delivery(), "lost: nobody told", ("write", 0)),
    "present before the hand-off": Mutant(
        present_before_printing, Delivery(script=HAND_OFF), "told again although", ("write", 0)
    ),
    "believe a dead claim": Mutant(believe_a_dead_claim, Delivery(), "lost: nobody told", ("write", 0)),
    "acknowledge at the claim": Mutant(acknowledge_at_the_claim, Delivery(), "lost: nobody told", ("write", 0)),
    "rename when told again": Mutant(rename_when_told_again, Delivery(), "told what it is not owed", ("write", 0)),
    "forget what was printed": Mutant(forget_what_was_printed, Delivery(), "told again although", ("write", 0)),
    "end the session first": Mutant(end_the_session_first, Farewell(), "not 'tree gone'", ("write", 0)),
}
