"""Planted bugs of those who tell, and of those who end a session."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from outlive.bundle.home import Home
from outlive.domain.notice import Notice
from outlive.domain.session import Session
from outlive.domain.task import Task
from outlive.ledger.inbox import Inbox
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.service import inbox, sessions
from outlive.service.clock import utc_now
from tests.crash.deliverer import HAND_OFF, Delivery
from tests.crash.farewell import Farewell
from tests.crash.mutants import Mutant, replace

if TYPE_CHECKING:
    from outlive.service.reconcile import Adopter


def present_before_printing() -> None:
    """What is about to be printed counts as told."""

    def enter(claimed: inbox.Claim) -> inbox.Claim:
        claimed.presented()
        return claimed

    replace(inbox.Claim, "__enter__", enter)


def believe_a_dead_claim() -> None:
    """Whoever claimed it is taken to live, and to tell it some day."""
    replace(inbox, "is_held", lambda *_: True)


def acknowledge_at_the_claim() -> None:
    """To be told and to have been told are one state."""
    claim = Inbox.claim

    def claim_and_close(self: Inbox, notices: Sequence[Notice], claimer: str) -> None:
        claim(self, notices, claimer)
        self.acknowledge(notices, utc_now())

    replace(Inbox, "claim", claim_and_close)


def rename_when_told_again() -> None:
    """What somebody has claimed before is told under another id."""
    owed = Inbox.owed

    def owed_anew(self: Inbox, origins: Sequence[int]) -> list[Notice]:
        for notice in owed(self, origins):
            if notice.claimer is not None:
                self._ledger.db.execute("UPDATE notice SET id = id || '2' WHERE id = ?", (notice.id,))
        return owed(self, origins)

    replace(Inbox, "owed", owed_anew)


def forget_what_was_printed() -> None:
    """It is printed, and not put on record."""
    replace(inbox.Claim, "presented", lambda *_, **__: None)


def end_the_session_first() -> None:
    """A session that is over is taken to have ended its tasks."""
    end_foreground = sessions._end_foreground

    def end_then_ask(home: Home, session: Session, adopter: "Adopter | None") -> list[Task]:
        with SqliteLedger(home.ledger, utc_now()) as ledger:
            is_news = Sessions(ledger).end(session.seq, None, utc_now())
        return end_foreground(home, session, adopter) if is_news else []

    replace(sessions, "_end_foreground", end_then_ask)


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
