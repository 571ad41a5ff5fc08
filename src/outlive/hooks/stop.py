"""The turn is over: the session may stop, or it is told why not.

What has ended is told, and the turn goes on with it. While it waits for its tasks it is held, unless
somebody wakes it when they end; and never more often in a row than its client puts up with.
"""

from __future__ import annotations

import time

from outlive.domain.telling import frame
from outlive.hooks import marks
from outlive.hooks.event import Answer
from outlive.hooks.watch import start_watcher
from outlive.keeper.launching import launch_adopter
from outlive.service.clock import utc_now
from outlive.service.gate import gate
from outlive.service.inbox import claim
from outlive.service.reconcile import reconcile
from outlive.service.telling import new_mark, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.hooks.event import Event, Put
    from outlive.service.gate import Answer as GateAnswer

_A_WATCHER_TAKES_AT_MOST = 1.5
_HEAD = "This session waits for background tasks that it launched."


def stop(home: Home, event: Event, project: str, put: Put) -> None:
    """Let it stop by saying nothing."""
    blocks = marks.count(home, event.session, "blocks") if event.is_again else 0
    may_block = blocks < event.most_blocks
    if _tell(home, event, project, put, may_block=may_block):
        marks.set_count(home, event.session, "blocks", blocks + 1)
        return
    if event.woken_by == "queue":
        start_watcher(home, event, project)
    answer = gate(home, event.session, project, launch_adopter)
    if answer.may_stop or not answer.running or not may_block:
        return
    if event.woken_by != "nobody" and _is_watched(home, event.session):
        return
    put(Answer(block=_why(answer)))
    marks.set_count(home, event.session, "blocks", blocks + 1)


def _tell(home: Home, event: Event, project: str, put: Put, *, may_block: bool) -> bool:
    """Confirm what was told before, and tell what has ended; whether there was anything."""
    reconcile(home, utc_now(), None, launch_adopter)
    wanted = None if may_block else lambda *_: False
    with claim(home, event.session, project, is_turn=event.is_turn, wanted=wanted) as claimed:
        if not claimed.tellings or claimed.owed is None:
            return False
        put(Answer(context=text_of(home, claimed.tellings, claimed.owed.session)))
        claimed.presented()
    return True


def _is_watched(home: Home, session: str) -> bool:
    """Whether somebody wakes it. The watcher has been started together with us, so it may need a moment."""
    until = time.monotonic() + _A_WATCHER_TAKES_AT_MOST
    while not marks.is_watched(home, session):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def _why(answer: GateAnswer) -> str:
    ids = " ".join(task.id for task in answer.running[:5])
    lines = (
        answer.reason,
        f"do other useful work, or wait without polling: outlive wait {ids}",
        "if their endings do not matter any more: outlive cancel ID, or say so and stop again",
    )
    return frame(new_mark(), _HEAD, lines)
