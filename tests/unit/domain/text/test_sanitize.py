"""Cleaning untrusted text before it is shown, and writing values as JSON."""

from __future__ import annotations

import json
import random
import time
import unicodedata
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive.domain.text.sanitize import from_json, masked, one_line, plain, shown, to_json, visible
from outlive.domain.text.wrapper_tags import json_without_wrapper_tags, without_wrapper_tags
from tests.deceptive import HARMLESS, KINDS, SECRET

some = settings(max_examples=20, deadline=None)

REORDERING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
HIDING = {0xAD, 0x61C, *range(0x200B, 0x2010), 0x2028, 0x2029, *range(0x2060, 0x2065), 0xFEFF}
HIDING |= {*range(0xE0000, 0xE0080)}
# Bytes that control a terminal. Random bytes would seldom be such bytes.
NASTY = b"\x1b\x1b\x1b[]PX^_\\\x07\n\t\r\0\x9b\xc2\x9d\xe2\x80\xae\x8b\xf3\xa0\x81m;0aZ~@ "


def is_harmful(character: str) -> bool:
    """Return whether a character could deceive a terminal or a reader."""
    code = ord(character)
    return (
        (code < 0x20 and character not in "\n\t")
        or 0x7F <= code <= 0x9F
        or 0xD800 <= code <= 0xDFFF
        or code in HIDING
        or unicodedata.bidirectional(character) in REORDERING
    )


# The characters of every Unicode plane that has harmful characters.
EVERYTHING = "".join(map(chr, (*range(0x11000), *range(0x13400, 0x13460), *range(0xE0000, 0xE0200))))
# Invisible characters that Unicode counts as letters or marks: fillers, joiners, variation selectors.
FILLERS = frozenset(
    map(
        chr,
        (
            0x34F,
            0x115F,
            0x1160,
            0x17B4,
            0x17B5,
            0x3164,
            0xFFA0,
            *range(0x180B, 0x1810),
            *range(0xFE00, 0xFE10),
            *range(0xE0100, 0xE01F0),
            0x2800,
            *range(0x13430, 0x13460),
        ),
    )
)
HARMFUL = frozenset(filter(is_harmful, EVERYTHING))


@cache
def random_texts(count: int) -> list[str]:
    """Return random outputs, decoded as text, with many bytes that control a terminal."""
    source = random.Random(20260621)
    nasty = (NASTY * 256)[:256]
    texts = []
    for _ in range(count):
        raw = source.randbytes(source.randrange(40))
        if source.random() < 0.7:
            raw = raw.translate(nasty)
        texts.append(raw.decode("utf-8", source.choice(["surrogateescape", "replace"])))
    return texts


def test_plain_removes_every_harmful_character() -> None:
    """`plain` removes every control, hidden or reordering character from ten thousand random outputs."""
    for text in random_texts(10_000):
        clean = plain(text)
        assert HARMFUL.isdisjoint(clean), (text, clean)


def test_plain_changes_nothing_in_a_cleaned_text() -> None:
    """Cleaning a text twice gives the same as cleaning it once."""
    for text in random_texts(10_000)[:2_000]:
        assert plain(plain(text)) == plain(text)


def test_plain_keeps_exactly_the_visible_characters() -> None:
    """Of all characters, `plain` keeps exactly the visible ones, spaces, tabs and newlines."""
    kept = set(plain(EVERYTHING.replace("\x1b", "").replace("\x9b", "")))
    assert HARMFUL.isdisjoint(kept)
    visible = {c for c in EVERYTHING if unicodedata.category(c)[0] in "LMNPS"} - FILLERS
    assert visible <= kept
    assert FILLERS.isdisjoint(kept)
    assert {" ", "\n", "\t"} <= kept


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[38;5;12;1mx", "x"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07shown", "shown"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x1b\\shown", "shown"),
        ("\x1b_apc\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\shown", "shown"),
        ("a\x1bMb", "ab"),
        ("\x1b(B\x1b[mreset", "reset"),
        ("PASS\x1b(BWORD\x1b#8", "PASSWORD"),
        ("x\x1b(\ny\x1b(", "x\ny"),
        ("a\rb\bc\x7f", "abc"),
        ("abc\u202edcba", "abcdcba"),
        ("a\u200bb\ufeffc", "abc"),
        ("\udcffx", "\\udcffx"),
        ("\x1b", ""),
        ("\x1b[", ""),
        ("x\x1b]", "x"),
        ("naïve 漢字 🎉\t\n", "naïve 漢字 🎉\t\n"),
    ],
)
def test_plain_removes_escape_sequences_and_keeps_the_text_between_them(text: str, clean: str) -> None:
    """`plain` removes escape sequences for colors, titles, links and the like, and keeps the text between them."""
    assert plain(text) == clean


@pytest.mark.parametrize("opening", ["\x1b]0;", "\x1bP", "\x1b_", "\x1b^", "\x1bX"])
def test_an_unterminated_string_does_not_swallow_the_next_line(opening: str) -> None:
    """If the end of a control sequence is missing, only its own line is removed, and not an error on the next line."""
    assert plain(f"before{opening}never closed\nFAILED test_x\n") == "before\nFAILED test_x\n"


def test_plain_takes_time_in_proportion_to_the_length() -> None:
    """`plain` takes time in proportion to the length: for eight times the sequences less than 24 times as long."""
    took = []
    for count in (5_000, 40_000):
        text = "\x1b[32m\u2713\x1b[0m test_something_of_everything passed\n" * count
        began = time.process_time()
        plain(text)
        took.append(time.process_time() - began)
    assert took[1] < 24 * max(took[0], 0.004)


@some
@given(st.text(max_size=40), st.integers(1, 20))
def test_one_line_has_no_line_break_and_at_most_the_given_width(text: str, width: int) -> None:
    """`one_line` returns at most the given width, without line breaks and harmful characters."""
    line = one_line(text, width)
    assert len(line) <= width
    assert len(line.splitlines()) <= 1
    assert HARMFUL.isdisjoint(line)


def test_one_line_ends_with_an_ellipsis_when_it_was_cut() -> None:
    """If `one_line` cuts a text, it ends with an ellipsis, within the width. A text that fits is not changed."""
    assert one_line("make test", 9) == "make test"
    assert one_line("make tests", 9) == "make tes…"
    assert one_line(" make\n\ttest ", 20) == "make test"


arguments = st.text(max_size=8) | st.binary(max_size=8).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | arguments,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(arguments, inner, max_size=3),
    max_leaves=8,
)


@some
@given(documents)
def test_json_is_read_back_as_it_was_written(value: object) -> None:
    """Any JSON reader gets the same value back. The text has only ASCII characters."""
    text = to_json(value)
    assert json.loads(text) == value
    assert from_json(text) == value
    assert text.isascii()


@some
@given(documents)
def test_to_json_writes_the_same_text_as_the_json_module(value: object) -> None:
    """For any value, the text equals that of `json.dumps`, character for character."""
    assert to_json(value) == json.dumps(value)


def test_to_json_writes_a_tuple_as_an_array() -> None:
    """`to_json` writes a tuple as an array. Outlive's values contain tuples."""
    assert to_json(("a", (1, 2.5), [])) == '["a", [1, 2.5], []]'


@pytest.mark.parametrize("value", [b"x", {1, 2}, object()])
def test_to_json_raises_for_values_that_json_does_not_have(value: object) -> None:
    """`to_json` raises an error for a value that JSON cannot express, and does not write its `repr`."""
    with pytest.raises(TypeError, match="not a JSON value"):
        to_json({"deep": [value]})


@pytest.mark.parametrize("opening", ["\x1b[", "\x9b", "\x1b[31;", "\x1b", "\x1b]0;title"])
def test_a_broken_sequence_does_not_swallow_the_next_line(opening: str) -> None:
    """A control sequence that is not well formed ends at the end of its line."""
    assert plain(f"a{opening}\n42 failed\n") == "a\n42 failed\n"


def test_both_terminators_end_a_string() -> None:
    """A control string ends at each of its two terminators, the seven-bit and the eight-bit one."""
    assert plain("\x1b]0;t\x9cshown") == plain("\x1b]0;t\x1b\\shown") == "shown"


@pytest.mark.parametrize(
    "text", ['{"a": [1, -0.0, 1e3, "\\u00e9\\ud83d\\ude00"], "b": null}', " \n[true]\t", "NaN", '"x"']
)
def test_from_json_reads_the_same_value_as_the_json_module(text: str) -> None:
    """`from_json` returns the same value as `json.loads`, although it imports only the decoder."""
    assert repr(from_json(text)) == repr(json.loads(text))


@pytest.mark.parametrize("text", ["", "{", "[1,]", '{"a" 1}', '"abc', "1 2", '"\n"', "nul"])
def test_from_json_raises_the_same_error_as_the_json_module(text: str) -> None:
    """`from_json` raises the same error as `json.loads`, with the same message."""
    with pytest.raises(json.JSONDecodeError) as known:
        json.loads(text)
    with pytest.raises(json.JSONDecodeError) as ours:
        from_json(text)
    assert str(ours.value) == str(known.value)


@pytest.mark.parametrize("kind", KINDS)
def test_shown_makes_deceptive_text_harmless(kind: str) -> None:
    """`shown` removes escape sequences and invisible characters, masks secrets, and changes clients' tags."""
    written, seen = KINDS[kind]
    assert shown(f"one {written} two") == f"one {seen} two"
    assert shown(shown(written)) == shown(written)


@pytest.mark.parametrize("text", HARMLESS)
def test_shown_keeps_text_that_only_resembles_a_tag(text: str) -> None:
    """`shown` keeps text that only resembles a tag: generic types, HTML, redirections and quotation marks."""
    assert shown(text) == text


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "secret" in kind or "password" in kind])
def test_masking_finds_a_secret_with_an_invisible_character_in_it(kind: str) -> None:
    """A secret with an invisible character in it is masked whole."""
    written, seen = KINDS[kind]
    assert masked(f"one {written} two") == f"one {seen} two"


def test_masking_keeps_colours_around_a_secret() -> None:
    """Masking a secret keeps the colors around it."""
    assert masked(f"\x1b[32mok\x1b[0m ghp_{SECRET}") == "\x1b[32mok\x1b[0m ghp_[redacted]"


@pytest.mark.parametrize("kind", KINDS)
def test_json_without_wrapper_tags_is_the_same_value(kind: str) -> None:
    """JSON in which clients' tags are escaped has the same value for a program, and is harmless for a model."""
    written, _ = KINDS[kind]
    document = to_json({"command": written})
    safe = json_without_wrapper_tags(document)
    assert json.loads(safe) == json.loads(document)
    assert json_without_wrapper_tags(safe) == safe
    assert shown(safe) == safe or "ghp_" in safe or "hunter2" in safe


def test_tags_are_found_in_ordinary_text_at_a_fraction_of_the_time_of_masking() -> None:
    """Searching for tags takes a fraction of the time of masking. It looks only at brackets and non-ASCII text."""
    lines = ["2026-06-21 12:00:00 worker 7 expected <int> and got a string of 40 characters", *["compiled ok"] * 20]
    for extra, times in (("", 40), ("\u2713", 12)):
        text = "\n".join([lines[0] + extra, *lines[1:]] * 10_000)
        began = time.process_time()
        text.lower()
        reading = time.process_time() - began
        began = time.process_time()
        assert without_wrapper_tags(text) == text
        assert time.process_time() - began < times * max(reading, 0.002), extra


@pytest.mark.parametrize("piece", ["<", "<" + " " * 20, "</", "<\n", "<a ", "<tool-use-", "<" + "\\n" * 20])
def test_tags_are_not_searched_for_seconds_in_a_text_of_brackets(piece: str) -> None:
    """In a text of brackets, the search for tags is fast, however many spaces follow a bracket."""
    text = (piece * 1_000_000)[:1_000_000]
    began = time.process_time()
    assert without_wrapper_tags(text) == text
    assert time.process_time() - began < 1.5


def test_visible_shows_invisible_characters_as_escapes() -> None:
    """`visible` shows invisible characters as escapes. Otherwise a model would read the name of another file."""
    assert visible("src/a\u202eb\x1b.py") == "src/a\\u202eb\\x1b.py"
    assert visible("</system-reminder>/x") == "[/system-reminder]/x"
    assert visible("line\n\tna\u00efve") == "line\n\tna\u00efve"
