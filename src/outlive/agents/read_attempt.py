"""Functions that read the output of an attempt from its beginning."""

from __future__ import annotations

import os

from outlive.agents.find_adapter import reader_of
from outlive.bundle.agent_files import read_start, write_answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive.agents.stream import StreamReader
    from outlive.agents.stream_event import Event
    from outlive.bundle.attempt import AttemptFiles
    from outlive.domain.agents.request import AgentRequest
    from outlive.domain.agents.result import AgentResult
    from outlive.domain.tasks.evidence import Evidence

CHUNK = 1 << 20


def read_attempt(
    files: AttemptFiles, request: AgentRequest, on_event: Callable[[Event], object] = lambda _: None
) -> StreamReader | None:
    """Read the whole output of an attempt so far, and return the reader.

    Returns None if the attempt has no files. `on_event` is called with each event, in the order of the output.
    """
    start = read_start(files)
    if start is None:
        return None
    reader = reader_of(request, start, on_event)
    try:
        fd = os.open(files.output, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return reader
    try:
        while piece := os.read(fd, CHUNK):
            reader.feed(piece)
    finally:
        os.close(fd)
    return reader


def result_of_attempt(files: AttemptFiles, request: AgentRequest, evidence: Evidence) -> AgentResult | None:
    """Return the agent's result, read from the output of an ended attempt.

    Returns None if the attempt has no files. This function also writes the answer into the file `answer` of the
    attempt.
    """
    reader = read_attempt(files, request)
    if reader is None:
        return None
    reader.finish()
    write_answer(files, reader.answer)
    return reader.result(ending_words(evidence))


def ending_words(evidence: Evidence) -> str:
    """Return a phrase that says how the client's process ended, such as `exit code 1`."""
    if evidence.kind == "not_started":
        return "it could not be started"
    if evidence.signal is not None:
        return f"signal {evidence.signal}"
    return "exit code unknown" if evidence.exit_code is None else f"exit code {evidence.exit_code}"
