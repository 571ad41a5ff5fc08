"""The tool `inbox`: the notices of this session. Each notice is shown only once."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from outlive.mcp.answer import Answer
from outlive.mcp.tools.tool import Arguments, Call, Tool
from outlive.mcp.tools.visible_tasks import own_session
from outlive.sdk.outlive import adopt
from outlive.service.clock import utc_now
from outlive.service.maintenance.reconcile import reconcile
from outlive.service.notices.compose import notice_documents, text_of
from outlive.service.notices.inbox import claim
from outlive.service.notices.inbox import peek as look

_NOTHING = "No new notices."


class Inbox(Arguments):
    """The arguments of `inbox`."""

    peek: Annotated[bool, Field(description="return the notices, but do not count them as reported")] = False


def inbox(call: Call, given: Inbox) -> Answer:
    """Return the session's notices, and mark them as presented.

    First they are reserved for this call, so that no other call presents them, too.
    """
    session, project = own_session(call), call.caller.project
    reconcile(call.home, utc_now(), None, adopt)
    if given.peek:
        seen = look(call.home, session, project)
        return Answer(
            text=text_of(call.home, seen.tellings, seen.session, seen.more) or _NOTHING,
            document={"notices": notice_documents(call.home, seen.tellings, seen.session), "more": seen.more},
        )
    with claim(call.home, session, project, is_turn=True) as claimed:
        told_to = None if claimed.owed is None else claimed.owed.session
        answer = Answer(
            text=text_of(call.home, claimed.tellings, told_to, claimed.more) or _NOTHING,
            document={"notices": notice_documents(call.home, claimed.tellings, told_to), "more": claimed.more},
        )
        claimed.presented()
    return answer


TOOL = Tool(
    name="inbox",
    title="Read the endings of tasks",
    description="Return the endings of background tasks that were not reported to this session yet, each once.",
    takes=Inbox,
    act=inbox,
    reads_only=False,
)
