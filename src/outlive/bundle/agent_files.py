"""The files of an agent task, such as its prompt and the answers of its attempts.

prompt                the prompt as the user gave it
attempts/N/prompt     the text that the client of this attempt reads as its standard input
attempts/N/agent      client, model and session of this attempt
attempts/N/answer     the final answer, for readers that need not read the whole output
attempts/N/progress   the present result of the running attempt, written at most once per second
decisions.jsonl       a log for debugging: why a model was chosen and why an attempt ended, if the log is on
"""

from __future__ import annotations

import os
import time

from outlive.bundle.atomic_file import write_whole
from outlive.domain.agents.request import AgentStart
from outlive.domain.agents.result import result_from, result_json
from outlive.domain.text.sanitize import from_json, to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.attempt import AttemptFiles
    from outlive.domain.agents.request import AgentRequest
    from outlive.domain.agents.result import AgentResult
    from outlive.domain.tasks.settlement import Settlement

_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


def write_prompt(bundle: str, prompt: str) -> None:
    """Write the prompt of a new task."""
    _write(bundle + "/prompt", prompt.encode("utf-8", "surrogateescape"))


def read_prompt(bundle: str) -> str:
    """Return the prompt of a task, or raise OSError."""
    with open(bundle + "/prompt", "rb") as file:
        return file.read().decode("utf-8", "surrogateescape")


def write_start(files: AttemptFiles, start: AgentStart, prompt: str) -> None:
    """Write the prompt, client, model and session of an attempt before it begins."""
    _write(files.path + "/prompt", prompt.encode("utf-8", "surrogateescape"))
    _write(files.path + "/agent", to_json(start.__dict__).encode("ascii"))


def read_start(files: AttemptFiles) -> AgentStart | None:
    """Return the client, model and session with which an attempt begins.

    Returns None if the attempt's file `agent` is missing or invalid.
    """
    try:
        with open(files.path + "/agent", "rb") as file:
            found = from_json(file.read().decode("ascii"))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or "client" not in found:
        return None
    known = {name: value for name, value in found.items() if name in AgentStart._fields}
    if known.get("tokens_before") is not None:
        known["tokens_before"] = tuple(known["tokens_before"])
    return AgentStart(**known)


def prompt_file(files: AttemptFiles) -> str:
    """Return the path of the file that the client reads as its standard input."""
    return files.path + "/prompt"


def write_answer(files: AttemptFiles, answer: str) -> None:
    """Write the final answer of an agent's attempt to a file.

    A failed write is ignored, because the output also contains the answer.
    """
    try:
        write_whole(files.path + "/answer", answer.encode("utf-8", "surrogateescape"))
    except OSError:
        pass


def read_answer(files: AttemptFiles) -> str | None:
    """Return the final answer of an agent's attempt, or None if none was written."""
    try:
        with open(files.path + "/answer", "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return None


def write_progress(files: AttemptFiles, result: AgentResult) -> None:
    """Write the present result of a running attempt. A failed write is ignored."""
    try:
        write_whole(files.path + "/progress", to_json(result_json(result)).encode("ascii"))
    except OSError:
        pass


def read_progress(files: AttemptFiles) -> AgentResult | None:
    """Return the last result that was written while an attempt ran, or None."""
    try:
        with open(files.path + "/progress", "rb") as file:
            found = from_json(file.read().decode("ascii"))
        return result_from(found) if isinstance(found, dict) and "client" in found else None
    except (OSError, ValueError):
        return None


def decisions_file(bundle: str) -> str:
    """Return the path of the debugging log of an agent task."""
    return bundle + "/decisions.jsonl"


def trace_decision(bundle: str, request: AgentRequest, decision: str, **why: object) -> None:
    """Write one decision about an agent task to its debugging log, if the log is on.

    `why` are the reasons. A failed write is ignored.
    """
    if not request.is_traced:
        return
    line = to_json({"at": round(time.time(), 6), "pid": os.getpid(), "decision": decision, **why}) + "\n"
    try:
        fd = os.open(decisions_file(bundle), _APPEND, 0o600)
        try:
            os.write(fd, line.encode("ascii"))
        finally:
            os.close(fd)
    except OSError:
        pass


def trace_ending(bundle: str, request: AgentRequest, settlement: Settlement) -> None:
    """Write to the debugging log how an attempt ended, and the class of its result."""
    known, verdict = settlement.agent, settlement.verdict
    trace_decision(
        bundle,
        request,
        "attempt_ended",
        attempt=settlement.attempt,
        state=verdict.state,
        reason=verdict.reason,
        detail=verdict.detail,
        client=known and known.client,
        model=known and known.model,
        error=known and known.error,
        question=known and known.question,
        settled_by=settlement.settled_by,
        **{"class": known and known.agent_class},
    )


def _write(path: str, content: bytes) -> None:
    fd = os.open(path, _CREATE, 0o600)
    try:
        while content:
            content = content[os.write(fd, content) :]
    finally:
        os.close(fd)
