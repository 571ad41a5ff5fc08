"""The tool `send`: input for a running task."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from outlive.mcp.answer import Answer
from outlive.mcp.tools.tool import Arguments, Call, Tool
from outlive.mcp.tools.visible_tasks import own_task
from outlive.sdk.outlive import adopt
from outlive.service.clock import utc_now
from outlive.service.tasks import send as sending
from outlive.service.tasks.task_document import task_document


class Send(Arguments):
    """The arguments of `send`."""

    id: Annotated[str, Field(description="the task, launched with stdin")]
    text: Annotated[str, Field(description="what it is to read; a newline is added")] = ""
    eof: Annotated[bool, Field(description="and let it see the end of its input")] = False
    newline: bool = True


def send(call: Call, given: Send) -> Answer:
    """Send input to a task, and confirm that it was accepted."""
    task = own_task(call, given.id)
    ending = "\n" if given.newline and given.text else ""
    content = (given.text + ending).encode("utf-8", "surrogateescape")
    sent = sending.send(call.home, task.id, content, adopt, is_last=given.eof)
    more = " and the end of its input" if given.eof else ""
    text = f"Task {sent.id} was sent {len(content)} bytes{more}. `output` shows what it makes of them."
    return Answer(text=text, document=task_document(call.home, sent, utc_now()))


TOOL = Tool(
    name="send",
    title="Send a task input",
    description="Send a line to a running task that was launched with `stdin`, such as the answer to its question.",
    takes=Send,
    act=send,
    is_patient=True,
    reads_only=False,
)
