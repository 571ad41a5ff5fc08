"""The handler of the event between two requests to the model.

It confirms the notices that the model has read, and presents new ones. It also reports background commands whose client
has exited, and child sessions that the client cannot find any more.
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
    """Deliver the session's notices together with the model's next input."""
    with claim(home, event.session, project, is_turn=event.is_turn) as claimed:
        if claimed.owed is None:
            return
        lost = _lost_of(home, claimed.owed)
        if not claimed.tellings and not lost:
            return
        from outlive.service.notices.compose import text_of  # noqa: PLC0415 - imported here, because it is rarely needed: usually there are no notices

        texts = [text_of(home, claimed.tellings, claimed.owed.session)] if claimed.tellings else []
        if lost:
            _put_with_lost(home, texts, lost, put)
        else:
            put(Answer(context="\n".join(texts)))
        claimed.presented()


def _put_with_lost(home: Home, texts: list[str], lost: list[ClientTask], put: Put) -> None:
    """Reply with notices, and with a report of the client's lost background commands.

    `texts` are the notices. A client may call two hooks at once, for two tools. So this hook locks the ledger for
    writing while it replies. The report names only the commands that no other hook has reported.
    """
    from outlive.service.notices.compose import lost_text_of  # noqa: PLC0415 - imported here, because it is rarely needed: few clients run tasks of their own
    from outlive.service.sessions.note_client_tasks import tell_lost, untold_among  # noqa: PLC0415

    with SqliteLedger(home.ledger, utc_now()) as ledger, ledger.write():
        untold = untold_among(ledger, lost)
        if found := [*texts, *([lost_text_of(untold)] if untold else [])]:
            put(Answer(context="\n".join(found)))
        tell_lost(ledger, untold)


def _lost_of(home: Home, owed: OwedBy) -> list[ClientTask]:
    """Return the background commands and child sessions of clients that are lost.

    The client will not report their end any more.
    """
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        return [one for one in abandoned_for(ledger, owed) if one.state == "lost"]
