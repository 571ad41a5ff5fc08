"""The tool `inbox`: what this session is owed, told once."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from outlive.client.sdk import adopt
from outlive.mcp.tools.scope import own_session
from outlive.mcp.tools.tool import Arguments, Call, Tool
from outlive.mcp.words import Answer
from outlive.service.clock import utc_now
from outlive.service.inbox import claim
from outlive.service.inbox import peek as look
from outlive.service.reconcile import reconcile
from outlive.service.telling import notice_documents, text_of

_NOTHING = "Nothing to tell."


class Inbox(Arguments):
    """What `inbox` takes."""

    peek: Annotated[bool, Field(description="only look: nothing counts as told")] = False


def inbox(call: Call, given: Inbox) -> Answer:
    """Claim, answer, and only then call it presented."""
    session, project = own_session(call), call.caller.project
    reconcile(call.home, utc_now(), None, adopt)
    if given.peek:
        owed, tellings = look(call.home, session, project)
        told_to = None if owed is None else owed.session
        return Answer(
            text=text_of(call.home, tellings, told_to) or _NOTHING,
            document={"notices": notice_documents(call.home, tellings, told_to)},
        )
    with claim(call.home, session, project, is_turn=True) as claimed:
        told_to = None if claimed.owed is None else claimed.owed.session
        answer = Answer(
            text=text_of(call.home, claimed.tellings, told_to) or _NOTHING,
            document={"notices": notice_documents(call.home, claimed.tellings, told_to)},
        )
        claimed.presented()
    return answer


TOOL = Tool(
    name="inbox",
    title="Read what has ended",
    description="The endings of background tasks that this session has not been told yet, each once.",
    takes=Inbox,
    act=inbox,
    reads_only=False,
)
