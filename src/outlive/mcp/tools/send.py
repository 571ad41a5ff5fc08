"""The tool `send`: input for a running task."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from outlive.mcp.answer import Answer, task_answer
from outlive.mcp.tools.tool import Arguments, Call, Tool
from outlive.mcp.tools.visible_tasks import own_task
from outlive.sdk.outlive import adopt
from outlive.service.tasks import send as sending


class Send(Arguments):
    """The arguments of `send`."""

    id: Annotated[str, Field(description="the id of a task that was launched with stdin")]
    text: Annotated[str, Field(description="the text to send")] = ""
    eof: Annotated[bool, Field(description="close the input afterwards")] = False
    newline: Annotated[bool, Field(description="add a newline to the text")] = True


def send(call: Call, given: Send) -> Answer:
    """Send input to a task, and confirm that it was accepted."""
    task = own_task(call, given.id)
    ending = "\n" if given.newline and given.text else ""
    content = (given.text + ending).encode("utf-8", "surrogateescape")
    sent = sending.send(call.home, task.id, content, adopt, is_last=given.eof)
    more = ", and its input was closed" if given.eof else ""
    text = f"{len(content)} bytes were sent to task {sent.id}{more}. `output` shows its answer."
    return task_answer(call.home, sent, text)


TOOL = Tool(
    name="send",
    title="Send a task input",
    description="Send a line to a running task that was launched with `stdin`, such as the answer to its question.",
    takes=Send,
    act=send,
    is_patient=True,
    reads_only=False,
)
