"""Untrusted bytes made harmless, and values made writable."""

from __future__ import annotations

import json
import random
import unicodedata
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive.domain.text import from_json, one_line, plain, to_json

some = settings(max_examples=20, deadline=None)

REORDERING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
HIDING = {0xAD, 0x61C, *range(0x200B, 0x2010), 0x2028, 0x2029, *range(0x2060, 0x2065), 0xFEFF}
HIDING |= {*range(0xE0000, 0xE0080)}
# Bytes that mean something to a terminal, more often than chance would have them.
NASTY = b"\x1b\x1b\x1b[]PX^_\\\x07\n\t\r\0\x9b\xc2\x9d\xe2\x80\xae\x8b\xf3\xa0\x81m;0aZ~@ "


def is_harmful(character: str) -> bool:
    """Whether a terminal or a reader could be deceived by it."""
    code = ord(character)
    return (
        (code < 0x20 and character not in "\n\t")
        or 0x7F <= code <= 0x9F
        or 0xD800 <= code <= 0xDFFF
        or code in HIDING
        or unicodedata.bidirectional(character) in REORDERING
    )


# Every plane where anything deceives.
EVERYTHING = "".join(map(chr, (*range(0x11000), *range(0xE0000, 0xE0200))))
# Letters and marks by name that show nothing: fillers, joiners, variation selectors.
FILLERS = frozenset(
    map(
        chr,
        (
            0x34F,
            0x115F,
            0x1160,
            0x17B4,
            0x17B5,
            0x180E,
            0x3164,
            0xFFA0,
            *range(0xFE00, 0xFE10),
            *range(0xE0100, 0xE01F0),
        ),
    )
)
HARMFUL = frozenset(filter(is_harmful, EVERYTHING))


@cache
def random_texts(count: int) -> list[str]:
    """Texts as outputs are decoded, from random bytes with a taste for trouble."""
    source = random.Random(20260621)
    nasty = (NASTY * 256)[:256]
    texts = []
    for _ in range(count):
        raw = source.randbytes(source.randrange(40))
        if source.random() < 0.7:
            raw = raw.translate(nasty)
        texts.append(raw.decode("utf-8", source.choice(["surrogateescape", "replace"])))
    return texts


def test_nothing_harmful_passes_whatever_the_bytes() -> None:
    """Ten thousand random outputs: no control, no escape, nothing that hides or reorders."""
    for text in random_texts(10_000):
        clean = plain(text)
        assert HARMFUL.isdisjoint(clean), (text, clean)


def test_plain_text_is_plain_already() -> None:
    """Cleaning twice is cleaning once."""
    for text in random_texts(10_000)[:2_000]:
        assert plain(plain(text)) == plain(text)


def test_every_character_is_kept_or_stripped_for_a_reason() -> None:
    """All of them at once: visible characters stay, and only those."""
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
def test_escape_sequences_go_and_the_text_between_them_stays(text: str, clean: str) -> None:
    """Colours, titles, links, device strings and single escapes."""
    assert plain(text) == clean


@pytest.mark.parametrize("opening", ["\x1b]0;", "\x1bP", "\x1b_", "\x1b^", "\x1bX"])
def test_an_unterminated_string_does_not_swallow_the_next_line(opening: str) -> None:
    """Otherwise one stray byte would hide the failure printed after it."""
    assert plain(f"before{opening}never closed\nFAILED test_x\n") == "before\nFAILED test_x\n"


@some
@given(st.text(max_size=40), st.integers(1, 20))
def test_one_line_is_one_line_of_at_most_its_width(text: str, width: int) -> None:
    """No line break of any kind, never wider than asked."""
    line = one_line(text, width)
    assert len(line) <= width
    assert len(line.splitlines()) <= 1
    assert HARMFUL.isdisjoint(line)


def test_one_line_says_that_it_was_cut() -> None:
    """With an ellipsis inside the width; a text that fits is not touched."""
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
def test_json_is_read_back_as_it_was(value: object) -> None:
    """By any reader, lone surrogates included; and in pure ASCII."""
    text = to_json(value)
    assert json.loads(text) == value
    assert from_json(text) == value
    assert text.isascii()


@some
@given(documents)
def test_json_is_what_the_standard_library_writes(value: object) -> None:
    """Character for character, so that nobody has to know two dialects."""
    assert to_json(value) == json.dumps(value)


def test_a_tuple_is_an_array() -> None:
    """Values hold tuples; JSON has arrays."""
    assert to_json(("a", (1, 2.5), [])) == '["a", [1, 2.5], []]'


@pytest.mark.parametrize("value", [b"x", {1, 2}, object()])
def test_what_json_cannot_say_is_an_error(value: object) -> None:
    """Rather than its repr."""
    with pytest.raises(TypeError, match="not a JSON value"):
        to_json({"deep": [value]})


@pytest.mark.parametrize("opening", ["\x1b[", "\x9b", "\x1b[31;", "\x1b", "\x1b]0;title"])
def test_a_broken_sequence_does_not_swallow_the_next_line(opening: str) -> None:
    """Whatever is not well formed ends with its line."""
    assert plain(f"a{opening}\n42 failed\n") == "a\n42 failed\n"


def test_both_terminators_end_a_string() -> None:
    """The seven-bit and the eight-bit one."""
    assert plain("\x1b]0;t\x9cshown") == plain("\x1b]0;t\x1b\\shown") == "shown"


@pytest.mark.parametrize(
    "text", ['{"a": [1, -0.0, 1e3, "\\u00e9\\ud83d\\ude00"], "b": null}', " \n[true]\t", "NaN", '"x"']
)
def test_json_is_read_as_json_reads_it(text: str) -> None:
    """By half of the module, and so without what the other half loads."""
    assert repr(from_json(text)) == repr(json.loads(text))


@pytest.mark.parametrize("text", ["", "{", "[1,]", '{"a" 1}', '"abc', "1 2", '"\n"', "nul"])
def test_what_is_no_json_is_refused_as_json_refuses_it(text: str) -> None:
    """With the same words."""
    with pytest.raises(json.JSONDecodeError) as known:
        json.loads(text)
    with pytest.raises(json.JSONDecodeError) as ours:
        from_json(text)
    assert str(ours.value) == str(known.value)
