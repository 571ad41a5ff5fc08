"""The handler of a turn's end, which delivers notices and so continues the turn.

A headless session, which has no user, ends with its turn. Only for such a session, the handler waits until the tasks
have ended. A hook can continue a turn only as many times in a row as the client accepts.
"""

from __future__ import annotations

from outlive.hooks.event import Answer
from outlive.hooks.state import session_files
from outlive.hooks.wake.codex_queue import start_watcher
from outlive.keeper.spawn import launch_adopter
from outlive.service.clock import utc_now
from outlive.service.maintenance.reconcile import reconcile
from outlive.service.notices.compose import text_of
from outlive.service.notices.inbox import claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.domain.notices.notice import Telling
    from outlive.hooks.event import Event, Put
    from outlive.ledger.sqlite import SqliteLedger


def stop(home: Home, event: Event, project: str, put: Put) -> None:
    """Deliver the session's notices. Print nothing if the session may stop."""
    blocks = session_files.count(home, event.session, "blocks") if event.is_again else 0
    may_block = blocks < event.most_blocks
    is_asleep = may_block and event.is_headless and not event.waits_itself
    if _deliver(home, event, project, put, may_present=may_block and not is_asleep) or (
        is_asleep and _sleep(home, event, project, put)
    ):
        session_files.set_count(home, event.session, "blocks", blocks + 1)
    elif event.woken_by == "queue":
        start_watcher(home, event, project)


def _sleep(home: Home, event: Event, project: str, put: Put) -> bool:
    from outlive.hooks.wake.headless import sleep_and_tell  # noqa: PLC0415 - imported here, because only headless sessions need it

    return sleep_and_tell(home, event, project, put)


def _deliver(home: Home, event: Event, project: str, put: Put, *, may_present: bool) -> bool:
    """Confirm the notices that were presented before, and present the new ones.

    Returns whether new notices were presented.
    """
    reconcile(home, utc_now(), None, launch_adopter)

    def is_wanted(_: SqliteLedger, telling: Telling) -> bool:
        return may_present and not telling.is_quiet

    with claim(home, event.session, project, is_turn=event.is_turn, wanted=is_wanted) as claimed:
        if not claimed.tellings or claimed.owed is None:
            return False
        put(Answer(context=text_of(home, claimed.tellings, claimed.owed.session)))
        claimed.presented()
    return True
