"""The reservation of a task's end for one MCP client that follows the task.

Only this client then reports the end to its session. For each followed task, the client's MCP server has a lock
(lease), and the notice of the task's end is reserved under the name of this lock. If no process has the lock any more,
the notice is presented like every other notice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlive.bundle.lease import is_held
from outlive.domain.notices.notice import Telling, may_be_claimed
from outlive.domain.notices.notice_text import summary_line, tell
from outlive.domain.value import Value
from outlive.ledger.notices import Notices
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.notices.compose import gather, new_mark
from outlive.service.notices.inbox import owed_to

if TYPE_CHECKING:
    from outlive.bundle.home import Home

_TOLD = ("presented", "acked")


class Ending(Value):
    """The end of a task, as a session reads it."""

    text: str
    """The full text of the notice that the task has ended."""
    line: str
    """The summary of the end in one line."""
    was_told: bool
    """Whether the notice was already presented or acknowledged."""


def reserve_ending(home: Home, task: str, lease: str) -> bool:
    """Reserve a task's end, so that only the process with the lock `lease` reports it.

    Returns False if another living process has reserved it.
    """

    def is_taken(name: str) -> bool:
        return name != lease and is_held(home, name)

    with SqliteLedger(home.ledger, utc_now()) as ledger, ledger.write():
        inbox = Notices(ledger)
        before = inbox.reserved_by(task)
        if before is not None and is_taken(before):
            return False
        inbox.reserve(task, lease)
        untold = [each for each in inbox.ending_of(task) if each.state not in _TOLD]
        inbox.claim([each for each in untold if may_be_claimed(each, at_boundary=False, is_held=is_taken)], lease)
    return True


def read_ending(home: Home, task: str, session: str | None, project: str) -> Ending:
    """Return how a task has ended, without changing the state of its notice."""
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        owed = None if session is None else owed_to(ledger, session, project)
        notice = Notices(ledger).ending_of(task)[0]
    told = gather(home, [Telling(notice=notice)], None if owed is None else owed.session)[0]
    now = utc_now()
    return Ending(
        text=tell([told], new_mark(), now),
        line=summary_line(told, now).removeprefix("- "),
        was_told=notice.state in _TOLD,
    )
