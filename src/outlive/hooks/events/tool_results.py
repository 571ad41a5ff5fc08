"""The event between two model requests: notices are confirmed and presented.

If a client process has exited, the ends of its background commands are also reported here. The loss of a child session
that the client cannot find any more is reported too.
"""

from __future__ import annotations

from outlive.hooks.event import Answer
from outlive.hooks.state.pending import abandoned_for
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.notices.inbox import claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.domain.sessions.client_task import ClientTask
    from outlive.hooks.event import Event, Put
    from outlive.service.notices.find_recipients import OwedBy


def deliver(home: Home, event: Event, project: str, put: Put) -> None:
    """Deliver the session's notices as context for the model's next input."""
    with claim(home, event.session, project, is_turn=event.is_turn) as claimed:
        if claimed.owed is None:
            return
        lost = _lost_of(home, claimed.owed)
        if not claimed.tellings and not lost:
            return
        from outlive.service.notices.compose import text_of  # noqa: PLC0415 - imported here, because usually there are no notices

        texts = [text_of(home, claimed.tellings, claimed.owed.session)] if claimed.tellings else []
        if lost:
            _put_with_lost(home, texts, lost, put)
        else:
            put(Answer(context="\n".join(texts)))
        claimed.presented()


def _put_with_lost(home: Home, texts: list[str], lost: list[ClientTask], put: Put) -> None:
    """Answer with texts and with a report of lost client tasks.

    A client may call two hooks at once, for two tools. So the answer is given while no other process can write to the
    ledger, and names only the lost tasks that no other hook has reported.
    """
    from outlive.service.notices.compose import lost_text_of  # noqa: PLC0415 - imported here, because few clients run tasks of their own
    from outlive.service.sessions.note_client_tasks import tell_lost, untold_among  # noqa: PLC0415

    with SqliteLedger(home.ledger, utc_now()) as ledger, ledger.write():
        untold = untold_among(ledger, lost)
        if found := [*texts, *([lost_text_of(untold)] if untold else [])]:
            put(Answer(context="\n".join(found)))
        tell_lost(ledger, untold)


def _lost_of(home: Home, owed: OwedBy) -> list[ClientTask]:
    """Return the ended client commands whose end no client has reported."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        return [one for one in abandoned_for(ledger, owed) if one.state == "lost"]
