"""What is known about an agent now, such as its model, cost and answer."""

from __future__ import annotations

from outlive.agents.read_attempt import read_attempt
from outlive.bundle.agent_files import read_answer, read_progress
from outlive.bundle.attempt import AttemptFiles
from outlive.domain.text.sanitize import masked, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.domain.agents.result import AgentResult
    from outlive.domain.tasks.task import Task


def known_of(home: Home, task: Task, number: int | None = None) -> AgentResult | None:
    """Return what is known about an attempt of an agent, such as its model and cost.

    By default, the attempt is the newest one. While the attempt runs, the values are those that its keeper recorded
    about a second ago. Returns None if the task is a command and not an agent.
    """
    attempt = task.attempts[(number or task.current.number) - 1]
    if task.launch.agent is None:
        return None
    if attempt.settled_at is not None:
        return attempt.agent
    return read_progress(AttemptFiles(home.bundle(task.id), attempt.number)) or attempt.agent


def answer_of(home: Home, task: Task, number: int | None = None) -> str:
    """Return the final answer of an agent's attempt, or else the agent's last message.

    Returns an empty string if the agent has written no message. Secrets are masked, and characters that hide or reorder
    text are removed.
    """
    files = AttemptFiles(home.bundle(task.id), number or task.current.number)
    answer = read_answer(files)
    if answer is None and task.launch.agent is not None:
        # The agent still runs, or the keeper died before it wrote the answer to a file.
        reader = read_attempt(files, task.launch.agent)
        answer = "" if reader is None else reader.answer
    return shown(answer or "").strip("\n")


def last_words(home: Home, task: Task) -> str:
    """Return an agent's last tool call or last message, in one line.

    Returns an empty string if the agent has made no tool call and written no message yet.
    """
    known = known_of(home, task)
    return "" if known is None or known.last is None else shown(known.last)


def agent_tail(home: Home, task: Task, limit: int, number: int | None = None) -> str:
    """Return the last `limit` characters of an agent's answer.

    While the agent runs, they are the last characters of its latest tool call or message.
    """
    attempt = task.attempts[(number or task.current.number) - 1]
    text = last_words(home, task) if attempt.settled_at is None else answer_of(home, task, attempt.number)
    return text[-limit:]


def agent_document(home: Home, task: Task) -> dict[str, object] | None:
    """Return what is known about an agent's newest attempt as JSON, with its answer.

    Returns None if the task is a command and not an agent.
    """
    known, request = known_of(home, task), task.launch.agent
    if known is None or request is None:
        return None
    return {
        "client": known.client,
        "model": known.model,
        "session": known.session,
        "class": known.agent_class,
        "turns": known.turns,
        "calls": known.calls,
        "tokens": {"input": known.input_tokens, "output": known.output_tokens},
        "cost_usd": known.cost_usd,
        "denied": list(known.denied),
        "answer": answer_of(home, task) if task.current.settled_at is not None else None,
        "question": None if known.question is None else shown(known.question),
        "error": None if known.error is None else masked(known.error),
        "progress": None if known.last is None else shown(known.last),
        "category": request.category,
        "unstable": known.is_unstable,
        "worktree": known.worktree,
        "branch": known.branch,
    }
