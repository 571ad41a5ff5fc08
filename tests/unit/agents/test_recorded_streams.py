"""Outlive's adapters read the recorded output of the real clients.

`tests/clients/record_streams.py` has recorded it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from outlive.agents.find_adapter import new_adapter
from outlive.domain.text.sanitize import to_json
from tests.unit.agents.recorded import MODELS, names, new_reader, read, stream

ANSWER = "The answer is 42."
QUESTION = "Which branch do you mean?"


@dataclass(frozen=True)
class Expected:
    """The facts that an adapter must find in a recorded output."""

    agent_class: str
    words: str = ""
    """The answer or the question of the agent, or a part of the error message."""
    turns: int = 0
    calls: int = 0
    tokens: tuple[int | None, int | None] = (None, None)
    denied: tuple[str, ...] = ()


OVERLOADED = "The model is overloaded. Please try again later."
TOO_LONG = "prompt is too long: 250000 tokens"
RATE = "Rate limit reached"
EXPECTED: dict[tuple[str, str], Expected] = {
    ("claude", "answer"): Expected("answered", ANSWER, 1, 0, (10, 5)),
    ("claude", "background"): Expected("answered", ANSWER, 3, 1, (30, 15)),
    ("claude", "context"): Expected("stopped", "Prompt is too long", tokens=(0, 0)),
    ("claude", "context_length"): Expected("stopped", "Prompt is too long", tokens=(0, 0)),
    ("claude", "denied"): Expected("answered", ANSWER, 2, 1, (20, 10), ("Bash",)),
    ("claude", "question"): Expected("asked", QUESTION, 2, 1, (20, 10)),
    ("claude", "question_then_work"): Expected("answered", ANSWER, 3, 2, (30, 15)),
    ("claude", "quota"): Expected("unavailable", "exceeded your current quota", tokens=(0, 0)),
    ("claude", "refused_connection"): Expected("unavailable", "ECONNREFUSED", tokens=(0, 0)),
    ("claude", "resume"): Expected("answered", ANSWER, 1, 0, (10, 5)),
    ("claude", "retry_after_3600"): Expected("unavailable", RATE, tokens=(0, 0)),
    ("claude", "status_400"): Expected("refused", "unknown parameter", tokens=(0, 0)),
    ("claude", "status_401"): Expected("refused", "the key is not valid", tokens=(0, 0)),
    ("claude", "status_403"): Expected("refused", "may not use the model", tokens=(0, 0)),
    ("claude", "status_404"): Expected("refused", "selected model (scripted)", tokens=(0, 0)),
    ("claude", "status_429"): Expected("unavailable", RATE, tokens=(0, 0)),
    ("claude", "status_500"): Expected("unavailable", "500 Internal server error", tokens=(0, 0)),
    ("claude", "status_503"): Expected("unavailable", OVERLOADED, tokens=(0, 0)),
    ("claude", "status_529"): Expected("unavailable", "529 Overloaded", tokens=(0, 0)),
    ("claude", "flood"): Expected("broken", "without a result (exit code 0)", 31, 31, (310, 155)),
    ("claude", "tool_call"): Expected("answered", ANSWER, 3, 2, (30, 15)),
    ("claude", "unknown_session"): Expected("refused", "No conversation found", tokens=(0, 0)),
    ("codex", "answer"): Expected("answered", ANSWER, 1, 0, (10, 5)),
    ("codex", "context"): Expected("stopped", TOO_LONG),
    ("codex", "context_length"): Expected("stopped", "ran out of room"),
    ("codex", "denied"): Expected("answered", ANSWER, 2, 1, (20, 10), ("command_execution",)),
    ("codex", "question"): Expected("asked", QUESTION, 2, 1, (20, 10)),
    ("codex", "question_then_work"): Expected("answered", ANSWER, 3, 2, (30, 15)),
    ("codex", "quota"): Expected("unavailable", "Quota exceeded"),
    ("codex", "refused_connection"): Expected("unavailable", "waiting for network"),
    ("codex", "resume"): Expected("answered", ANSWER, 1, 0, (20, 10)),
    ("codex", "retry_after_3600"): Expected("unavailable", "429 Too Many Requests"),
    ("codex", "status_400"): Expected("refused", "the request has an unknown parameter"),
    ("codex", "status_401"): Expected("refused", "401 Unauthorized: the key is not valid"),
    ("codex", "status_403"): Expected("refused", "403 Forbidden"),
    ("codex", "status_404"): Expected("refused", "404 Not Found: model: scripted"),
    ("codex", "status_429"): Expected("unavailable", "429 Too Many Requests"),
    ("codex", "status_500"): Expected("unavailable", "high demand"),
    ("codex", "status_503"): Expected("unavailable", "at capacity"),
    ("codex", "status_529"): Expected("unavailable", "Overloaded"),
    ("codex", "flood"): Expected("broken", "without a result (exit code 0)", 30, 30),
    ("codex", "tool_call"): Expected("answered", ANSWER, 3, 2, (30, 15)),
    ("codex", "unknown_session"): Expected("refused", "no rollout found"),
    ("gemini", "answer"): Expected("answered", ANSWER, 1, 0, (20_000, 5)),
    ("gemini", "context"): Expected("stopped", TOO_LONG, tokens=(0, 0)),
    ("gemini", "context_length"): Expected("stopped", "maximum context length", tokens=(0, 0)),
    ("gemini", "denied"): Expected("answered", ANSWER, 2, 1, (40_000, 10), ("run_shell_command",)),
    ("gemini", "flood"): Expected("stopped", "Loop detected", 4, 4, (80_000, 20)),
    ("gemini", "question"): Expected("asked", QUESTION, 2, 1, (40_000, 10)),
    ("gemini", "question_then_work"): Expected("answered", ANSWER, 3, 2, (60_000, 15)),
    ("gemini", "quota"): Expected("unavailable", "status 429"),
    ("gemini", "refused_connection"): Expected("unavailable", "fetch failed"),
    ("gemini", "resume"): Expected("answered", ANSWER, 1, 0, (20_000, 5)),
    ("gemini", "retry_after_3600"): Expected("unavailable", "status 429"),
    ("gemini", "status_400"): Expected("refused", "the request has an unknown parameter", tokens=(0, 0)),
    ("gemini", "status_401"): Expected("refused", "the key is not valid", tokens=(0, 0)),
    ("gemini", "status_403"): Expected("refused", "this key may not use the model", tokens=(0, 0)),
    ("gemini", "status_404"): Expected("refused", "model: scripted", tokens=(0, 0)),
    ("gemini", "status_429"): Expected("unavailable", "status 429"),
    ("gemini", "status_500"): Expected("unavailable", "status 500"),
    ("gemini", "status_503"): Expected("unavailable", "status 503"),
    ("gemini", "status_529"): Expected("unavailable", "status 529"),
    ("gemini", "tool_call"): Expected("answered", ANSWER, 3, 2, (60_000, 15)),
    ("gemini", "unknown_session"): Expected("refused", "No previous sessions found"),
    ("gemini", "untrusted"): Expected("refused", "not running in a trusted directory"),
    ("opencode", "answer"): Expected("answered", ANSWER, 1, 0, (10, 5)),
    ("opencode", "compaction"): Expected("broken", "without a result", 5, 3, (40, 20)),
    ("opencode", "context"): Expected("stopped", TOO_LONG, 2, 0, (20, 10)),
    ("opencode", "context_length"): Expected("stopped", "maximum context length", 2, 0, (20, 10)),
    ("opencode", "denied"): Expected("answered", ANSWER, 2, 1, (20, 10), ("bash",)),
    ("opencode", "flood"): Expected("broken", "without a result", 22, 21, (210, 105)),
    ("opencode", "question"): Expected("asked", QUESTION, 2, 1, (20, 10)),
    ("opencode", "question_then_work"): Expected("answered", ANSWER, 3, 2, (30, 15)),
    ("opencode", "quota"): Expected("unavailable", "exceeded your current quota"),
    ("opencode", "refused_connection"): Expected("unavailable", "Cannot connect to API"),
    ("opencode", "resume"): Expected("answered", ANSWER, 1, 0, (10, 5)),
    ("opencode", "retry_after_3600"): Expected("unavailable", RATE),
    ("opencode", "status_400"): Expected("refused", "the request has an unknown parameter"),
    ("opencode", "status_401"): Expected("refused", "the key is not valid"),
    ("opencode", "status_403"): Expected("refused", "this key may not use the model"),
    ("opencode", "status_404"): Expected("refused", "model: scripted"),
    ("opencode", "status_429"): Expected("unavailable", RATE),
    ("opencode", "status_500"): Expected("unavailable", "Internal server error"),
    ("opencode", "status_503"): Expected("unavailable", OVERLOADED),
    ("opencode", "status_529"): Expected("unavailable", "Overloaded"),
    ("opencode", "tool_call"): Expected("answered", ANSWER, 3, 2, (30, 15)),
    ("opencode", "unknown_session"): Expected("refused", "Session not found"),
}
# Cases in which the exit code says more than the output. In all other cases, a wrong exit code must change nothing.
ENDINGS = {("gemini", "untrusted"): "exit code 55", ("gemini", "unknown_session"): "exit code 42"}


@pytest.mark.parametrize("name", names(), ids="-".join)
def test_recorded_stream_is_read_as_expected(name: tuple[str, str]) -> None:
    """The class, answer, turns, calls, tokens and denials of each recorded run are found."""
    client, case = name
    expected, reader = EXPECTED[name], read(client, stream(client, case))
    result = reader.result(ENDINGS.get(name, "exit code 0"))
    assert (result.agent_class, result.turns, result.calls) == (expected.agent_class, expected.turns, expected.calls)
    assert (result.input_tokens, result.output_tokens) == expected.tokens
    assert result.denied == expected.denied
    if expected.agent_class == "answered":
        assert (reader.answer, result.error, result.question) == (expected.words, None, None)
    elif expected.agent_class == "asked":
        assert (result.question, result.error) == (expected.words, None)
    else:
        assert expected.words in (result.error or "")
        assert reader.answer == ""
    assert result.model == MODELS[client]


@pytest.mark.parametrize("client", MODELS)
def test_session_is_known_from_the_stream(client: str) -> None:
    """The id with which a session can be resumed is found, even in a run that failed."""
    for case in ("answer", "status_400", "status_429"):
        session = read(client, stream(client, case)).session
        assert session is not None, case
        assert len(session) > 20


@pytest.mark.parametrize("client", MODELS)
def test_calls_and_their_results_are_read_in_order(client: str) -> None:
    """Each tool call is found with its input and later its result, in order, and no call stays without a result."""
    events: list[Any] = []
    reader = read(client, stream(client, "tool_call"), events)
    told = [each for each in events if each.kind in ("tool_call", "tool_result")]
    assert [each.kind for each in told] == ["tool_call", "tool_result"] * 2
    assert [each.id for each in told[::2]] == [each.id for each in told[1::2]]
    assert "echo one" in to_json(told[0].given)
    assert told[1].text.strip() == "one"
    assert "two" in told[3].text
    assert reader.open_calls == {}


@pytest.mark.parametrize("client", MODELS)
def test_call_is_open_while_its_tool_runs(client: str) -> None:
    """While its tool runs, a call counts as open, except with OpenCode.

    OpenCode prints a call only with its result.
    """
    before = stream(client, "tool_call").split(b"\n")
    results = (b'"tool_result"', b'"item.completed","item":{"id":"item_1"', b'"part":{"type":"tool"')
    at = next(at for at, line in enumerate(before) if any(each in line for each in results))
    reader = new_reader(client)
    reader.feed(b"\n".join(before[:at]) + b"\n")
    assert len(reader.open_calls) == (0 if client == "opencode" else 1)


@pytest.mark.parametrize("client", MODELS)
def test_repeated_calls_are_taken_for_a_runaway(client: str) -> None:
    """If a tool call is repeated often, the run counts as a runaway, even if each call has its own id."""
    if client == "gemini":
        return  # The loop detector of Gemini CLI ends the run after four calls, see `flood` in `EXPECTED`.
    limit = read(client, stream(client, "flood")).limit_reached()
    assert limit is not None
    assert limit[0] == "runaway"


def test_repeated_error_without_a_call_is_taken_for_a_runaway() -> None:
    """If a client repeats a failing compaction often, the run counts as a runaway."""
    loop = b"".join(stream("opencode", "context").splitlines(keepends=True)[:7])
    assert read("opencode", loop * 19).limit_reached() is None
    limit = read("opencode", loop * 20).limit_reached()
    assert limit == ("runaway", "it was ended as a runaway: the same error 20 times in a row")


@pytest.mark.parametrize(
    ("client", "case"),
    [
        ("opencode", "status_500"),
        ("opencode", "retry_after_3600"),
        ("codex", "refused_connection"),
        ("codex", "retry_after_3600"),
        ("gemini", "status_503"),
    ],
)
def test_silent_retries_are_no_progress(client: str, case: str) -> None:
    """If a client waits for its model, this is no progress, and the model is known to be unavailable."""
    reader = new_reader(client)
    before = reader.progress
    for line in stream(client, case).splitlines(keepends=True):
        reader.feed(line)
    assert reader.progress - before <= 1
    assert reader.is_retrying
    assert reader.result("signal 15").agent_class == "unavailable"


@pytest.mark.parametrize(
    ("subtype", "limit"),
    [("error_max_turns", "turn_limit"), ("error_max_budget_usd", "cost_limit"), ("error_during_execution", None)],
)
def test_limit_at_which_claude_ended_itself_is_named(subtype: str, limit: str | None) -> None:
    """If Claude Code ends a run at its limit of turns or cost, the result names this limit."""
    line = {"type": "result", "subtype": subtype, "is_error": True, "errors": ["Reached it"]}
    result = read("claude", json.dumps(line).encode() + b"\n").result("exit code 1")
    assert (result.agent_class, result.limit) == ("stopped" if limit else "broken", limit)


def test_heartbeat_of_a_tool_is_no_progress() -> None:
    """A tool's heartbeat is no progress. Claude Code prints one every 30 s, even for a tool that hangs."""
    part = {"type": "tool_use", "id": "t", "name": "mcp__slow", "input": {}}
    call = {"type": "assistant", "message": {"id": "m", "content": [part]}, "parent_tool_use_id": None}
    reader = new_reader("claude")
    reader.feed(json.dumps(call).encode() + b"\n")
    before = reader.progress
    beat = {"type": "tool_progress", "tool_use_id": "t", "elapsed_time_seconds": 30, "heartbeat": True}
    reader.feed((json.dumps(beat).encode() + b"\n") * 3)
    assert (reader.progress, bool(reader.open_calls)) == (before, True)


def test_first_end_of_claude_is_not_the_last_while_a_command_runs() -> None:
    """While a background command runs, the first final event of Claude Code does not end the run.

    Claude Code waits for the command, and prints a second final event with the answer.
    """
    lines = stream("claude", "background").splitlines(keepends=True)
    first = next(at for at, line in enumerate(lines) if b'"type":"result"' in line) + 1
    reader = new_reader("claude")
    reader.feed(b"".join(lines[:first]))
    assert (reader.has_ended, bool(reader.open_calls)) == (False, True)
    assert (reader.result("exit code 0").agent_class, reader.answer) == ("answered", "It runs.")
    reader.feed(b"".join(lines[first:]))
    assert (reader.has_ended, reader.answer, reader.open_calls) == (True, ANSWER, {})


def test_summary_of_a_compaction_is_no_answer() -> None:
    """The summary of a compacted history is no answer, although OpenCode prints it like one.

    OpenCode continues the run after the summary.
    """
    lines = stream("opencode", "compaction").splitlines(keepends=True)
    after = next(at for at, line in enumerate(lines) if b"compaction_continue" in line) + 1
    reader = read("opencode", b"".join(lines[:after]))
    assert not reader.has_ended
    assert (reader.result("signal 9").agent_class, reader.answer) == ("broken", "")


def test_summary_after_an_overflow_is_no_answer() -> None:
    """After an overflow, OpenCode's next step is a summary and no answer, even before it is marked as one."""
    lines = stream("opencode", "context").splitlines(keepends=True)
    after = next(at for at, line in enumerate(lines) if b'"reason":"stop"' in line) + 1
    assert read("opencode", b"".join(lines[:after])).result("signal 9").agent_class == "broken"


@pytest.mark.parametrize(
    ("reason", "agent_class"),
    [("length", "stopped"), ("content-filter", "refused"), ("other", "broken"), ("tool-calls", "broken")],
)
def test_step_of_opencode_is_an_answer_only_if_the_model_stopped(reason: str, agent_class: str) -> None:
    """The text of a step of OpenCode is an answer only if the step ended because the model stopped."""
    printed = stream("opencode", "answer").replace(b'"reason":"stop"', f'"reason":"{reason}"'.encode())
    reader = read("opencode", printed)
    assert reader.result("exit code 0").agent_class == agent_class
    assert reader.has_ended == (reason != "tool-calls")


def test_turn_of_codex_without_a_message_is_no_answer() -> None:
    """If a turn of Codex ends after a tool call without a message, it has no answer."""
    printed = b"".join(line for line in stream("codex", "tool_call").splitlines(True) if b"agent_message" not in line)
    assert read("codex", printed).result("exit code 0").agent_class == "broken"


@pytest.mark.parametrize(
    ("body", "message", "agent_class"),
    [
        (
            {"error": {"message": "Unknown parameter: 'timeout'.", "type": "invalid_request_error"}},
            "Unknown parameter: 'timeout'.",
            "refused",
        ),
        (
            {"error": {"message": "The prompt is too long.", "type": "invalid_request_error"}},
            "The prompt is too long.",
            "stopped",
        ),
        (
            {"detail": "The 'x' model is not supported when using Codex with a ChatGPT account."},
            "The 'x' model is not supported when using Codex with a ChatGPT account.",
            "refused",
        ),
        (
            {"error": {"message": "The server timed out.", "type": "server_error"}},
            "The server timed out.",
            "unavailable",
        ),
    ],
)
def test_error_type_of_codex_decides_the_class_of_a_failure(body: object, message: str, agent_class: str) -> None:
    """The type of Codex's error, and not its message, decides how a failure is classified.

    An invalid request, for example, counts as refused.
    """
    line = {"type": "turn.failed", "error": {"message": json.dumps(body)}}
    result = read("codex", json.dumps(line).encode() + b"\n").result("exit code 1")
    assert (result.agent_class, result.error) == (agent_class, message)


def test_model_of_gemini_is_the_one_that_answered() -> None:
    """The recorded model of Gemini CLI is the one that answered.

    With `auto`, one model chooses another model, and the statistics name both.
    """
    models = '"models":{"chooser":{"output_tokens":3},"chosen":{"output_tokens":5}}'
    printed = stream("gemini", "answer").replace(b'"model":"gemini-2.5-pro"', b'"model":"auto"')
    at = printed.index(b'"models":')
    assert read("gemini", printed[:at] + models.encode() + b"}}\n").model == "chosen"


def test_delay_that_a_provider_requests_is_read() -> None:
    """The delay that a provider requests is read from its header `retry-after`, which OpenCode prints."""
    printed = stream("opencode", "status_429").replace(
        b'"responseHeaders":{', b'"responseHeaders":{"retry-after":"90",'
    )
    assert read("opencode", printed).result("exit code 1").retry_after_s == 90


def test_error_is_forgotten_when_the_run_goes_on() -> None:
    """If the client continues after an error, this error is not the cause of a later end."""
    retry = b'{"type":"system","subtype":"api_retry","attempt":1,"retry_delay_ms":900,"error":"rate_limit"}\n'
    reader = new_reader("claude")
    reader.feed(retry)
    assert reader.result("signal 9").agent_class == "unavailable"
    reader.feed(stream("claude", "tool_call").splitlines(keepends=True)[2])
    assert reader.result("signal 9").agent_class == "broken"


def test_error_before_a_reply_does_not_decide_the_class_of_the_end() -> None:
    """If Claude Code prints a reply after an error, the error does not decide how the end is classified."""
    error = b'{"type":"assistant","message":{"model":"<synthetic>","content":[]},"error":"rate_limit"}\n'
    end = b'{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["it broke"]}\n'
    reply = stream("claude", "tool_call").splitlines(keepends=True)[2]
    assert read("claude", error + end).result("X").agent_class == "unavailable"
    assert read("claude", error + reply + end).result("X").agent_class == "broken"


def test_session_that_looks_like_an_option_is_ignored() -> None:
    """A session id that looks like an option is ignored, because the id becomes an argument of the client."""
    for name in ("--yolo", "-s", "a b", "", "x" * 300, "ses\\n"):
        line = f'{{"type":"thread.started","thread_id":"{name}"}}\n'.encode()
        assert read("codex", line).session is None
        assert not list(new_adapter("mine", {"session": "thread_id"}).events({"thread_id": name}))


def test_final_line_with_invalid_bytes_is_no_end() -> None:
    """A final line with bytes that are not UTF-8 is damaged, so it does not count as an answer."""
    printed = stream("claude", "answer")
    assert read("claude", printed.replace(b'"result":"The', b'"result":"\xffThe')).result("X").agent_class == "broken"
