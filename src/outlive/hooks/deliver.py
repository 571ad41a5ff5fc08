"""Between two requests to the model: what has ended is told, what was told before is confirmed."""

from __future__ import annotations

from outlive.hooks.event import Answer
from outlive.service.inbox import claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.hooks.event import Event, Put


def deliver(home: Home, event: Event, project: str, put: Put) -> None:
    """Tell what there is to tell, beside what the model reads next."""
    with claim(home, event.session, project, is_turn=event.is_turn) as claimed:
        if not claimed.tellings or claimed.owed is None:
            return
        from outlive.service.telling import text_of  # noqa: PLC0415 - mostly there is nothing to tell

        put(Answer(context=text_of(home, claimed.tellings, claimed.owed.session)))
        claimed.presented()
