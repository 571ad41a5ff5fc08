"""Damaged output of clients raises no exception and gives no false answer, however many bytes are read at a time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive.agents.find_adapter import reader_of
from outlive.agents.stream import LONGEST_LINE
from outlive.domain.agents.request import AgentRequest, AgentStart, Candidate
from outlive.domain.agents.result import result_json
from outlive.domain.text.sanitize import to_json
from tests.unit.agents.recorded import MODELS, names, new_reader, read, stream

if TYPE_CHECKING:
    from outlive.agents.stream import StreamReader
    from outlive.agents.stream_event import Event

_RECORDED = {name: stream(*name) for name in names()}
_ANSWERED = [
    name for name, printed in _RECORDED.items() if read(name[0], printed).result("X").agent_class == "answered"
]
_FIELDS = ("type", "subtype", "is_error", "status", "reason", "text", "item", "part", "message", "content", "usage")

_ODD: tuple[Any, ...] = (None, True, 5, -1, 10**30, 1e999, "", "\ud800", "\0", [], [5], [[]], {}, {"type": 5})

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("\ud800") | st.just("\0"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_FIELDS), inner, max_size=3),
    max_leaves=8,
)
changes = st.lists(
    st.tuples(
        st.sampled_from(
            ["cut", "drop", "swap", "repeat", "hole", "noise", "flip", "unknown", "deep", "field", "joined"]
        ),
        st.integers(0, 1 << 20),
        st.integers(0, 1 << 20),
        values,
    ),
    min_size=1,
    max_size=5,
)


def _damaged(printed: bytes, damage: list[tuple[str, int, int, Any]]) -> bytes:
    """Return the output of a client, damaged at random."""
    for kind, first, second, value in damage:
        printed = _in_bytes(printed, kind, first % (len(printed) + 1), second)
        lines = printed.split(b"\n")
        _in_lines(lines, kind, (first % len(lines), second % len(lines), second), value)
        printed = b"\n".join(lines)
    return printed


def _in_bytes(printed: bytes, kind: str, at: int, second: int) -> bytes:
    """Return an output in which random bytes are changed, removed or added."""
    if kind == "cut":
        return printed[:at]
    if kind == "hole":
        size = len(printed[at : at + second % 300])
        return printed[:at] + bytes(size) + printed[at + size :]
    if kind == "noise":
        return printed[:at] + b"\xff\xc3\xed\xa0\x80"[: second % 5 + 1] + printed[at:]
    return printed[:at] + bytes((second % 256,)) + printed[at + 1 :] if kind == "flip" else printed


def _in_lines(lines: list[bytes], kind: str, places: tuple[int, int, int], value: object) -> None:
    """Damage some of the lines."""
    at, other, depth = places
    if kind == "drop":
        del lines[at]
    elif kind == "swap":
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == "repeat":
        lines.insert(other, lines[at])
    elif kind == "unknown":
        lines.insert(at, json.dumps({"type": "news", "value": value}).encode())
    elif kind == "deep":
        lines.insert(at, b'{"type":"assistant","x":' + b"[" * (depth % 5000) + b"]" * (depth % 5000) + b"}")
    elif kind == "joined":
        lines[at : at + 2] = [b"".join(lines[at : at + 2])]
    elif kind == "field":
        lines[at] = _with_field(lines[at], depth, value)


def _with_field(line: bytes, choice: int, value: object) -> bytes:
    """Return a line in which one field, at any depth, has another value."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return line
    holders = _fields_of(document)
    if holders:
        holder, key = holders[choice % len(holders)]
        holder[key] = value
    return json.dumps(document).encode()


def _fields_of(document: object) -> list[tuple[Any, Any]]:
    """Return each object or list in a document with each of its keys."""
    holders: list[tuple[Any, Any]] = []

    def gather(holder: object) -> None:
        for key, inner in holder.items() if isinstance(holder, dict) else ():
            holders.append((holder, key))
            gather(inner)
        for index, inner in enumerate(holder) if isinstance(holder, list) else ():
            holders.append((holder, index))
            gather(inner)

    gather(document)
    return holders


def _says_answered(client: str, line: bytes) -> bool:
    """Return whether a complete, undamaged line says that the run has ended well.

    This function knows the final line of each client and uses no code of Outlive. No reader can notice a change in the
    text of an answer, so only the fields that make the line final are checked.
    """
    try:
        found = json.loads(line.decode())
    except (ValueError, RecursionError):
        return False
    if not isinstance(found, dict):
        return False
    if client == "claude":
        return (found.get("type"), found.get("subtype"), found.get("is_error")) == ("result", "success", False)
    if client == "codex":
        return bool(found.get("type") == "turn.completed")
    if client == "gemini":
        return (found.get("type"), found.get("status")) == ("result", "success")
    part = found.get("part")
    return found.get("type") == "step_finish" and isinstance(part, dict) and part.get("reason") == "stop"


def _state(reader: StreamReader, events: list[Event]) -> object:
    """Return everything that was found in an output, converted to JSON and back."""
    result = reader.result("exit code 0")
    stored = to_json(result_json(result))
    told = [to_json(event.__dict__) for event in events]
    reader.answer.encode()
    for count in (*reader.tokens, result.turns, result.calls):
        assert count is None or 0 <= count < 1 << 63
    return stored, told, reader.answer, reader.progress, reader.open_calls, reader.limit_reached(), reader.has_ended


@settings(deadline=None)
@given(st.sampled_from(sorted(_RECORDED)), changes)
def test_damaged_stream_is_answered_only_by_a_whole_final_line(
    name: tuple[str, str], damage: list[tuple[str, int, int, Any]]
) -> None:
    """Damaged output raises no exception, and gives an answer only if the client's final line is undamaged."""
    printed, events = _damaged(_RECORDED[name], damage), list[Any]()
    reader = read(name[0], printed, events)
    _state(reader, events)
    if reader.result("exit code 0").agent_class == "answered":
        assert any(_says_answered(name[0], line) for line in printed.split(b"\n"))
        assert reader.answer


@settings(deadline=None)
@given(st.sampled_from(sorted(_ANSWERED)), st.data())
def test_cut_stream_is_not_answered_before_its_final_line_is_whole(name: tuple[str, str], data: st.DataObject) -> None:
    """If the output is cut before the end of its first final line, there is no answer."""
    printed, end = _RECORDED[name], 0
    for line in printed.splitlines(keepends=True):
        end += len(line)
        if _says_answered(name[0], line):
            break
    cut = data.draw(st.integers(0, end - 2))
    assert read(name[0], printed[:cut]).result("exit code 0").agent_class != "answered"


@settings(deadline=None)
@given(st.sampled_from(sorted(_RECORDED)), changes, st.lists(st.integers(1, 4000), min_size=1, max_size=8))
def test_stream_reads_the_same_in_pieces_of_any_size(
    name: tuple[str, str], damage: list[tuple[str, int, int, Any]], sizes: list[int]
) -> None:
    """Reading an output in pieces of any size gives the same result and events as reading it at once."""
    printed = _damaged(_RECORDED[name], damage)
    at_once, in_pieces = list[Any](), list[Any]()
    whole = read(name[0], printed, at_once)
    reader, at, turn = new_reader(name[0], in_pieces), 0, 0
    while at < len(printed):
        size = sizes[turn % len(sizes)]
        reader.feed(printed[at : at + size])
        at, turn = at + size, turn + 1
    reader.finish()
    assert _state(reader, in_pieces) == _state(whole, at_once)


@pytest.mark.parametrize("client", sorted(MODELS))
@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(_FIELDS), values, max_size=6), st.data())
def test_adapter_accepts_any_object(client: str, line: dict[str, Any], data: st.DataObject) -> None:
    """An object with the type of a real line and arbitrary other fields raises no exception."""
    kinds = sorted({kind for name, each in _RECORDED.items() if name[0] == client for kind in _kinds(each)})
    line["type"] = data.draw(st.sampled_from(kinds))
    events: list[Any] = []
    _state(read(client, json.dumps(line).encode() + b"\n", events), events)


@pytest.mark.parametrize("client", sorted(MODELS))
def test_adapter_accepts_any_value_in_any_field(client: str) -> None:
    """No value of any field in any kind of line raises an exception."""
    for line in _distinct(client):
        for choice in range(len(_fields_of(json.loads(line)))):
            for value in _ODD:
                events: list[Any] = []
                _state(read(client, _with_field(line, choice, value), events), events)


@pytest.mark.parametrize("client", sorted(MODELS))
def test_cut_final_line_is_no_end(client: str) -> None:
    """A final line that is cut anywhere does not count as final."""
    *before, final = [line for line in stream(client, "answer").splitlines(keepends=True) if line.startswith(b"{")]
    assert _says_answered(client, final)
    for cut in range(len(final) - 1):
        assert read(client, b"".join(before) + final[:cut]).result("exit code 0").agent_class != "answered", cut


_TABLE: dict[str, Any] = {
    "session": "message.content",
    "lines": {
        name: {
            "when": {"type": name},
            **dict.fromkeys(("text", "name", "id"), "message.content"),
            "input": "usage",
            "output": "status",
            "cost": "text",
        }
        for name in ("answer", "text", "tool", "result", "usage", "error", "question")
    },
}


@settings(deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from(_FIELDS), values, max_size=6), max_size=4),
    st.lists(st.sampled_from(sorted(_TABLE["lines"])), min_size=4, max_size=4),
)
def test_described_program_may_print_any_object(lines: list[dict[str, Any]], kinds: list[str]) -> None:
    """A program that the user's settings describe may print any object. Only a line `answer` gives an answer."""
    printed = b"".join(
        json.dumps({**line, "type": kind}).encode() + b"\n" for line, kind in zip(lines, kinds, strict=False)
    )
    events: list[Any] = []
    request = AgentRequest(candidates=(Candidate(client="mine"),), tables={"mine": _TABLE})
    reader = reader_of(request, AgentStart(client="mine"), events.append)
    reader.feed(printed)
    _state(reader, events)
    if reader.result("X").agent_class == "answered":
        assert "answer" in kinds[: len(lines)]


@pytest.mark.parametrize("filling", ["text", "brackets", "zeros", "deep"])
@pytest.mark.parametrize("client", sorted(MODELS))
def test_line_of_ten_megabytes_changes_no_answer(client: str, filling: str) -> None:
    """A huge line of an unknown kind before the final line is ignored."""
    size = 10_000_000
    huge = {
        "text": b'{"type":"news","text":"' + b"x" * size + b'"}',
        "brackets": b'{"type":"news","text":"' + b'[{\\"' * (size // 4) + b'"}',
        "zeros": bytes(size),
        "deep": b'{"type":"news","x":' + b"[" * size + b"}",
    }[filling]
    lines = stream(client, "tool_call").split(b"\n")
    lines.insert(5, huge)
    reader = read(client, b"\n".join(lines))
    assert (reader.answer, reader.result("X").agent_class) == ("The answer is 42.", "answered")


def test_line_beyond_the_limit_is_dropped_and_later_lines_are_read() -> None:
    """A line above the size limit is dropped, and later lines are read, however many bytes are read at a time."""
    printed = b" " * LONGEST_LINE + stream("claude", "flood").splitlines(True)[2] + stream("claude", "answer")
    reader = new_reader("claude")
    for at in range(0, len(printed), 1 << 20):
        reader.feed(printed[at : at + (1 << 20)])
    reader.finish()
    assert reader.result("X") == read("claude", printed).result("X")
    assert (reader.answer, reader.runaway.calls) == ("The answer is 42.", 0)


@pytest.mark.parametrize("levels", [300, 100_000])
def test_line_that_is_nested_too_deeply_is_passed_over(levels: int) -> None:
    """A line that is nested too deeply to be written as JSON again is ignored."""
    events: list[Any] = []
    given = "[" * levels + "]" * levels
    line = f'{{"type":"tool_use","tool_name":"t","tool_id":"1","parameters":{given}}}\n'
    assert read("gemini", line.encode(), events).runaway.calls == 0
    assert events == []


def test_text_with_many_brackets_is_not_taken_for_deep_nesting() -> None:
    """Brackets, quotes and backslashes in strings do not count as nesting."""
    text = '[{"\\' * 2000
    line = {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": text}]}}
    assert read("claude", json.dumps(line).encode() + b"\n").answer == text


def _distinct(client: str) -> list[bytes]:
    """Return one line of each kind that a client has printed."""
    found: dict[object, bytes] = {}
    for name, printed in _RECORDED.items():
        for line in printed.split(b"\n") if name[0] == client else ():
            if line.startswith(b"{"):
                each = json.loads(line)
                kinds = [each.get(key) for key in ("type", "subtype", "role", "status")]
                parts = [part.get("type") for _, part in _inner(each) if isinstance(part, dict)]
                found.setdefault(repr((kinds, parts)), line)
    return list(found.values())


def _inner(document: object) -> list[tuple[Any, Any]]:
    return [(key, holder[key]) for holder, key in _fields_of(document)]


def _kinds(printed: bytes) -> set[str]:
    found = [json.loads(line) for line in printed.split(b"\n") if line.startswith(b"{")]
    return {str(each["type"]) for each in found if "type" in each}
