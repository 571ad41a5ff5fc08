"""Record the output of the real clients for the tests in `tests/unit/agents`.

`python -m tests.clients.record_streams [CLIENT [CASE]...]` records all cases, or the named ones. Each case runs the
command line of the client's adapter against the scripted model. Standard output and standard error go into one file, as
for a task.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outlive.agents.find_adapter import new_adapter, without_session_variables
from outlive.domain.agents.request import AgentRequest, AgentStart, Candidate
from tests.clients.model import Asked, Fail, Model, Reply, Say, Use
from tests.clients.rig import CLIENTS, Rig, new_session
from tests.clients.rigs.claude import Claude
from tests.clients.rigs.codex import Codex
from tests.clients.rigs.gemini import Gemini
from tests.clients.rigs.opencode import OpenCode
from tests.support import Bench, kill_tree

if TYPE_CHECKING:
    from collections.abc import Callable

STREAMS = Path(__file__).parents[1] / "unit/agents/streams"
RIGS: dict[str, type[Rig]] = {"claude": Claude, "codex": Codex, "gemini": Gemini, "opencode": OpenCode}
MODELS = {"claude": "scripted", "codex": "scripted", "gemini": "gemini-2.5-pro", "opencode": "scripted/scripted"}
ANSWER = "The answer is 42."
QUESTION = "Which branch do you mean?"
_LONGEST_RUN_S, _LONGEST_TEXT, _LONGEST_LIST = 120, 1500, 4
_MOST_LINES = {"flood": 64, "context": 64, "context_length": 64, "compaction": 16}
_OPTION = {"label": "main", "description": "the main branch"}
_QUESTIONS = {
    "questions": [{"question": QUESTION, "header": "Branch", "options": [_OPTION, {**_OPTION, "label": "x"}]}]
}
_ASKING = {
    "claude": Use("AskUserQuestion", {"questions": [{**_QUESTIONS["questions"][0], "multiSelect": False}]}),
    "codex": Use("request_user_input", {"questions": [{**_QUESTIONS["questions"][0], "id": "branch"}]}),
    "gemini": Use("ask_user", {"questions": [{**_QUESTIONS["questions"][0], "type": "choice"}]}),
    "opencode": Use("question", _QUESTIONS),
}
_SHELL_ALLOWED = {
    "claude": ("--permission-mode", "bypassPermissions"),
    "codex": ("--sandbox", "workspace-write"),
    "gemini": ("--yolo",),
    "opencode": (),
}
_NARROW: dict[str, tuple[str, ...]] = {
    "claude": (),
    "codex": ("--sandbox", "read-only"),
    "gemini": (),
    "opencode": (),
}


def _status(status: int, kind: str, message: str, **headers: str) -> Callable[[Rig], Callable[[Asked], list[Reply]]]:
    return lambda _: lambda _: [Fail(status, message, kind, headers)]


def _once(*uses: Callable[[Rig], Use]) -> Callable[[Rig], Callable[[Asked], list[Reply]]]:
    """Return a model that calls the given tools one after the other, and then answers."""

    def of(rig: Rig) -> Callable[[Asked], list[Reply]]:
        return lambda asked: [uses[asked.results](rig)] if asked.results < len(uses) else [Say(ANSWER)]

    return of


def _background(_: Rig) -> Callable[[Asked], list[Reply]]:
    """Return a model that starts a background command and ends its turn.

    The model answers when the command has ended.
    """

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [Use("Bash", {"command": "sleep 2", "description": "a step", "run_in_background": True})]
        return [Say(ANSWER if "task-notification" in asked.all else "It runs.")]

    return answer


def _escalation(rig: Rig) -> Use:
    if rig.name == "codex":
        given = {"cmd": "touch made", "sandbox_permissions": "require_escalated", "justification": "it must be"}
        return Use("exec_command", given)
    return rig.shell("touch made")


CASES: dict[str, Callable[[Rig], Callable[[Asked], list[Reply]]]] = {
    "answer": _once(),
    "tool_call": _once(lambda rig: rig.shell("echo one"), lambda rig: rig.shell("sleep 1; echo two; exit 3")),
    "denied": _once(_escalation),
    "question": lambda rig: lambda asked: [Say(QUESTION) if asked.results else _ASKING[rig.name]],
    "question_then_work": _once(lambda rig: _ASKING[rig.name], lambda rig: rig.shell("echo one")),
    "status_400": _status(400, "invalid_request_error", "the request has an unknown parameter"),
    "status_401": _status(401, "authentication_error", "the key is not valid"),
    "status_403": _status(403, "permission_error", "this key may not use the model"),
    "status_404": _status(404, "not_found_error", "model: scripted"),
    "status_429": _status(429, "rate_limit_error", "Rate limit reached"),
    "retry_after_3600": _status(429, "rate_limit_error", "Rate limit reached", **{"retry-after": "3600"}),
    "quota": _status(429, "insufficient_quota", "You exceeded your current quota, please check your billing details."),
    "status_500": _status(500, "api_error", "Internal server error"),
    "status_503": _status(503, "server_is_overloaded", "The model is overloaded. Please try again later."),
    "status_529": _status(529, "overloaded_error", "Overloaded"),
    "context": _status(400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"),
    "context_length": _status(400, "context_length_exceeded", "This model's maximum context length is 100000 tokens."),
    "refused_connection": _once(),
    "resume": _once(),
    "unknown_session": _once(),
    "untrusted": _once(),
    "background": _background,
    "compaction": _once(lambda rig: rig.shell("echo one")),
    "flood": lambda rig: lambda _: [rig.shell("echo again")],
}
_FOR_ONE = {"untrusted": "gemini", "background": "claude", "compaction": "opencode"}


def record(name: str, case: str) -> None:
    """Run one case of a client, and write the client's output into a file for the unit tests."""
    with tempfile.TemporaryDirectory(prefix="streams-") as root, Model() as model:
        bench = Bench(Path(root))
        rig = RIGS[name](bench, model)
        rig.configure()
        if case == "untrusted":
            bench.env.pop("GEMINI_CLI_TRUST_WORKSPACE", None)
        model.answer = CASES[case](rig)
        start = AgentStart(client=name, model=MODELS[name], session=new_session() if assigns(name) else None)
        prompt = 'Say "the answer".\nNothing else.'
        if case in ("resume", "unknown_session"):
            first = "" if case == "unknown_session" else run(rig, start, prompt)[0]
            start = start.but(session=_session_of(name, first) or new_session(), is_resumed=True)
        if case == "refused_connection":
            model.close()
        printed, ending = run(rig, start, prompt, case)
        assert not model.asked or any(text.strip() == prompt for _, text in model.asked[-1].texts), model.asked[
            -1
        ].texts
        kept = printed.splitlines()[: _MOST_LINES.get(case)]
        lines = [shorten(line.replace(root, "/home/u").replace(str(CLIENTS), "/opt")) for line in kept]
        target = STREAMS / name / f"{case}.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(line + "\n" for line in lines if line.strip()))
        sys.stdout.write(f"{name} {case}: {ending}, {len(lines)} lines, {len(model.asked)} requests\n")
        sys.stdout.flush()


def assigns(name: str) -> bool:
    """Return whether Outlive can choose the id of a new session of this client."""
    return new_adapter(name).assigns_session


def run(rig: Rig, start: AgentStart, prompt: str, case: str = "") -> tuple[str, str]:
    """Run a client to its end, and return its output and how it ended."""
    is_narrow = case == "denied"
    if case == "compaction":  # each reply of the model is too long for this context
        file = rig.home / ".config/opencode/opencode.json"
        file.write_text(file.read_text().replace('"context": 100000', '"context": 8014'))
    words = (_NARROW if is_narrow else _SHELL_ALLOWED)[rig.name]
    if rig.name == "opencode" and is_narrow:
        settings = json.loads((rig.home / ".config/opencode/opencode.json").read_text().replace("// mine", ""))
        settings["permission"] = {"bash": "ask"}
        (rig.home / ".config/opencode/opencode.json").write_text(json.dumps(settings))
    adapter = new_adapter(rig.name, {"arguments": words})
    request = AgentRequest(candidates=(Candidate(client=start.client, model=start.model),))
    line = adapter.command(request, start, prompt, rig.bench.env)
    output = rig.bench.root / "output"
    output.write_bytes(b"")
    with output.open("ab") as printed:
        client = rig.start(
            *line.argv[1:],
            env={**without_session_variables(rig.bench.env), **line.environ, "PWD": str(rig.bench.project)},
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=subprocess.STDOUT,
        )
    assert client.stdin is not None
    client.stdin.write(prompt)
    client.stdin.close()
    try:
        client.wait(20 if case == "flood" else _LONGEST_RUN_S)
        ending = f"exit code {client.returncode}"
    except subprocess.TimeoutExpired:
        ending = "ended by us"
        kill_tree(client.pid)
        client.wait()
    rig.clean()
    return output.read_text("utf-8", "replace"), ending


def _session_of(name: str, printed: str) -> str | None:
    for line in filter(lambda line: line.startswith("{"), printed.splitlines()):
        for event in new_adapter(name).events(json.loads(line)):
            if event.session is not None:
                return event.session
    return None


def shorten(line: str) -> str:
    """Return a line of output. If the line is JSON, its long texts and lists are cut."""
    try:
        return json.dumps(_short(json.loads(line)), ensure_ascii=False, separators=(",", ":"))
    except ValueError:
        return line[: 2 * _LONGEST_TEXT]


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _short(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_short(each) for each in value[:_LONGEST_LIST]]
    return value[:_LONGEST_TEXT] if isinstance(value, str) else value


def main(words: list[str]) -> None:
    """Record the cases that the arguments name, or all cases."""
    for name in words[:1] or RIGS:
        for case in words[1:] or CASES:
            if _FOR_ONE.get(case, name) == name:
                record(name, case)


if __name__ == "__main__":
    os.umask(0o077)
    main(sys.argv[1:])
