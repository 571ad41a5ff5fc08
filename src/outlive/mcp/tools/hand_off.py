"""The tool `hand_off`: what a session should know of background tasks before it acts."""

from __future__ import annotations

from outlive.client.sdk import adopt
from outlive.domain.errors import UserError
from outlive.mcp.tools.scope import own_session
from outlive.mcp.tools.tool import Arguments, Call, Tool
from outlive.mcp.words import Answer
from outlive.service import hand_off as handing_off
from outlive.service.clock import utc_now
from outlive.service.inbox import peek
from outlive.service.reconcile import reconcile


class HandOff(Arguments):
    """What `hand_off` takes: nothing."""


def hand_off(call: Call, _: HandOff) -> Answer:
    """The digest; nothing counts as told by this."""
    session = own_session(call)
    reconcile(call.home, utc_now(), None, adopt)
    owed, tellings = peek(call.home, session, call.caller.project)
    if owed is None:
        raise UserError(
            f"session {session} was never heard of in {call.caller.project}",
            "the tool `list` shows the tasks of this project; a session is recorded when it begins, or launches a task",
        )
    handed = handing_off.hand_off(call.home, owed, tellings)
    return Answer(
        text=handed.text or "Nothing runs, and nothing has ended unseen.",
        document=handing_off.hand_off_document(call.home, handed),
    )


TOOL = Tool(
    name="hand_off",
    title="What earlier work left behind",
    description=(
        "What runs, what ended unseen, what was lost, and which files a task holds away right now. Read it when a"
        " session begins, resumes or was compacted."
    ),
    takes=HandOff,
    act=hand_off,
)
