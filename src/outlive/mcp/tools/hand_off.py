"""The tool `hand_off`: a summary of background tasks for a session."""

from __future__ import annotations

from outlive.domain.errors import UserError
from outlive.mcp.answer import Answer
from outlive.mcp.tools.tool import Arguments, Call, Tool
from outlive.mcp.tools.visible_tasks import own_session
from outlive.sdk.outlive import adopt
from outlive.service.clock import utc_now
from outlive.service.maintenance.reconcile import reconcile
from outlive.service.notices.inbox import peek
from outlive.service.sessions import hand_off as handing_off


def hand_off(call: Call, _: Arguments) -> Answer:
    """Return the hand-off. The notices in it do not count as presented."""
    session = own_session(call)
    reconcile(call.home, utc_now(), None, adopt)
    seen = peek(call.home, session, call.caller.project)
    if seen.owed is None:
        raise UserError(
            f"session {session} is not known in {call.caller.project}",
            "the tool `list` shows the tasks of this project; a session is recorded when it begins or launches a task",
        )
    handed = handing_off.hand_off_again(call.home, seen.owed, seen.tellings)
    return Answer(
        text=handed.text or "No task runs, and every ending was reported.",
        document=handing_off.hand_off_document(call.home, handed),
    )


TOOL = Tool(
    name="hand_off",
    title="What earlier work left behind",
    description=(
        "Return the tasks that run, that ended without being reported, and that were lost, and the files that tasks "
        "have changed and not restored. Call this when a session begins, resumes or was compacted."
    ),
    act=hand_off,
)
