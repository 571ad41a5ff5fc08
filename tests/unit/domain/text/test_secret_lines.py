"""The search in large texts for lines that may contain a secret, with the engines `re2` and `re`."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive.domain.text import redact as redaction
from outlive.domain.text import secret_patterns
from outlive.domain.text.redact import MASK, _mask_large, _mask_lines, finders, redact
from outlive.domain.text.secret_lines import Prefilter, _any_of, loosened
from tests.harmless_texts import HARMLESS
from tests.secret_texts import ASSIGNMENTS
from tests.unit.domain.text.key_samples import BASE64, BODY, FORMATS, HEADS
from tests.unit.domain.text.ordinary_texts import ORDINARY_TEXTS
from tests.unit.domain.text.test_redaction import SIGNED, SLOW

ENGINES = ("re", "re2")
PREFILTERS = {"re": Prefilter(finders(), wants_re2=False), "re2": Prefilter(finders())}
SECRETS = ("hunter2", "a1B2-c3D4_e5F6", "0123456789abcdef" * 2, "correct horse")
LINES = (
    *(text.format(secret, secret) for text in ASSIGNMENTS for secret in SECRETS),
    *(f"using {prefix}{body}" for prefix, body in FORMATS.items()),
    *(f"{before}{BODY}{after}" for before, after in SIGNED),
    *(f"{head}{BASE64[:64]}" for head in HEADS),
    *("The password is hunter2.", f"https://{BODY[:30]}@example.org", "Private-Lines: 1", "Private-MAC: 00"),
    *("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", BASE64[:64], BASE64[:20] + "=="),
    *(
        "machine h login u",
        "machine h",
        "login u",
        "password p",
        "account a password 'p q'",
        'password "p q"',
        "default",
    ),
    *(
        '"',
        "'",
        "",
        " ",
        "\\",
        "\\n",
        "\r",
        "\u00a0password\u00a0x",
        "\udcff",
        "\u0130token=x1y2z3",
        "K\u212aey=a1b2c3",
    ),
    *HARMLESS,
    *ORDINARY_TEXTS,
    *SLOW,
)
PIECES = st.one_of(
    st.sampled_from(LINES),
    st.tuples(st.sampled_from(LINES), st.sampled_from(LINES), st.integers(0, 60)).map(lambda p: p[0][: p[2]] + p[1]),
    st.text(max_size=20),
)
TEXTS = st.lists(st.tuples(PIECES, st.sampled_from(("\n", "\n", "\n", " ", "", "\\n", "\r\n", "\n\n")))).map(
    lambda pairs: "".join(piece + end for piece, end in pairs)
)


def directly(text: str) -> str:
    """Return a text that is masked as small texts are, with every rule applied to the whole text."""
    unbroken = redaction._unbroken(text)
    has_sign = any(sign in unbroken for sign in secret_patterns.KEY_SIGNS)
    return _mask_lines(redaction._without_keys(text, has_sign=has_sign))


def test_prefilter_uses_the_engine_it_was_made_for() -> None:
    """The search uses the engine that the test chooses. `re2` is optional, and `re` is part of Python."""
    assert {name: each.engine for name, each in PREFILTERS.items()} == {"re": "re", "re2": "re2"}


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=60, deadline=None)
@given(text=TEXTS)
def test_masking_only_found_lines_gives_the_same_text_as_masking_all(engine: str, text: str) -> None:
    """Masking only the lines that the search finds gives the same text as masking every line."""
    assert _mask_large(text, PREFILTERS[engine]) == directly(text)


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=60, deadline=None)
@given(text=TEXTS)
def test_the_prefilter_finds_every_line_that_a_pattern_changes(engine: str, text: str) -> None:
    """The search finds every line that a rule changes, by one of the words that are listed for the rule."""
    from re import finditer

    data = text.encode("utf-8", "surrogatepass")
    spans = PREFILTERS[engine].lines(data)
    for signs, pattern, replace in redaction._RULES:
        for match in finditer(pattern, text):
            if replace(match) == match[0]:
                continue
            start, end = (len(text[:at].encode("utf-8", "surrogatepass")) for at in match.span())
            assert any(first <= start and end <= last for first, last in spans), (pattern, match[0])
            seen = text[max(0, match.start() - 2) : match.end()]  # A pattern may look back two characters.
            assert any(sign in seen or sign in seen.lower() for sign in signs), (signs, seen)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_known_secret_is_masked_in_a_large_text(engine: str) -> None:
    """In a large text with all known secrets, one per line, every secret is masked."""
    text = "\n".join(LINES * 3)
    shown = _mask_large(text, PREFILTERS[engine])
    assert shown == directly(text)
    assert shown.count(MASK) > 1000


def test_a_large_text_goes_through_the_prefilter() -> None:
    """A large text without secrets is returned as the same object."""
    ordinary = "\n".join(HARMLESS) * 100
    assert len(ordinary) > redaction._LARGE
    assert redact(ordinary) is ordinary
    assert redaction._prefilter().engine == "re2"
    assert redact(f"{ordinary}\nTOKEN=abc\n{ordinary}") == f"{ordinary}\nTOKEN={MASK}\n{ordinary}"


@pytest.mark.parametrize("engine", ENGINES)
def test_prefilter_takes_time_in_proportion_to_the_length(engine: str) -> None:
    """The search takes time in proportion to the length: for eight times the text less than 32 times as long."""
    for piece in SLOW:
        took = []
        for size in (20_000, 160_000):
            text = (piece * size)[:size]
            began = time.process_time()
            PREFILTERS[engine].lines(text.encode())
            took.append(time.process_time() - began)
        assert took[1] < 32 * max(took[0], 0.004), piece


@pytest.mark.parametrize(("line", "count"), [("password=hunter2a", 400_000), ("machine password", 50_000)])
def test_redact_masks_very_many_equal_lines_in_a_moment(line: str, count: int) -> None:
    """`redact` masks very many equal lines quickly, because it masks equal lines once."""
    text = f"{line}\n" * count
    began = time.process_time()
    masked = redact(text)
    assert time.process_time() - began < 4
    assert masked == redact(f"{line}\n") * count


@pytest.mark.parametrize(
    ("exact", "loose"),
    [
        (r"(?a)(?<![\w.-])curl [^\n|;]*+", r"(?:curl [^\n|;]*+)"),
        (r"(?ai)(?:(?<=[?&])|(?<=%26))sig=(?P<word>[\w%]{16,})", r"(?i:sig=(?:[\w%]{16,}))"),
        (r"(ghp_)[A-Za-z0-9]{10,}\w*", r"(?:(?:ghp_)[A-Za-z0-9]{10})"),
        (r"(a[\]x]b)(?!c(d|e))\(?", r"(?:(?:a[\]x]b)\(?)"),
    ],
)
def test_loosened_removes_lookarounds_and_endless_repetitions(exact: str, loose: str) -> None:
    """`loosened` removes lookarounds and endless repetitions from a pattern. The result matches at least as much."""
    assert loosened(exact) == loose


def test_any_of_drops_words_that_begin_with_another_word() -> None:
    """`any_of` drops words that begin with another word of the list, which the search finds anyway."""
    assert _any_of(("sk-", "sk-ant-", "SK", "a.")) == r"(?:S(?:K)|a(?:\.)|s(?:k(?:\-)))"
