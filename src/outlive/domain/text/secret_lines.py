"""The search for the lines of a large text that may contain a secret.

The exact patterns of `secret_patterns` are slow. So a prefilter first finds the lines that the exact patterns must
check. The prefilter has simpler patterns, which match in every line in which the exact patterns match. So the prefilter
does not change the result.

There are two engines to find the lines. The standard library's `re` searches for words that every secret of a kind
contains, and then for the simpler patterns in the lines with these words. RE2 searches for all patterns at once. RE2
is used if it is installed (`pip install outlive[fast]`).
"""

from __future__ import annotations

from outlive.domain.text import secret_patterns as patterns
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from re import Pattern
    from types import ModuleType

    Span = tuple[int, int]

_LOOKAROUNDS = ("(?=", "(?!", "(?<=", "(?<!")
_NETRC_NAMES = (b"machine", b"login", b"account", b"default")
_NETRC_NEAR = 4096
"""How many bytes before the word `password` are searched for its netrc entry."""
_NETRC_CLOSE = 128
"""The number of bytes that are searched first for the words of a netrc entry.

These bytes nearly always have all words of the entry.
"""
_NETRC_WORDS = 8
"""The largest number of words before the password of a netrc entry.

There are seven words, and one more that may be incomplete.
"""
_BLANK = b" \t\n\r\v\f"
_RE2_MEMORY = 64 << 20


class Finder(Value):
    """The patterns that find the lines of one kind of secret."""

    signs: tuple[str, ...]
    """Strings, called signs: each match of a pattern contains at least one of them."""
    found: tuple[str, ...]
    """The exact patterns."""
    is_exact: bool = False
    """Whether the signs are case-sensitive."""


class Prefilter:
    """A filter for the lines in which one of the patterns may match."""

    def __init__(self, finders: Sequence[Finder], *, wants_re2: bool = True) -> None:
        re2 = _re2() if wants_re2 else None
        self.engine = "re" if re2 is None else "re2"
        self._search = _search_with_re(finders) if re2 is None else _search_with_re2(finders, re2)
        self._has_key_sign = _key_sign_with_re() if re2 is None else _key_sign_with_re2(re2)

    def lines(self, data: bytes) -> list[Span]:
        """Return the spans of the lines that may have a secret.

        A netrc entry is one span, even if the entry has several lines.
        """
        merged: list[Span] = []
        for start, end in sorted((*self._search(data), *_netrc_entries(data))):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged

    def has_key_sign(self, data: bytes) -> bool:
        """Return whether a text contains a string that only private keys contain.

        The string (called a sign) is found even if a line break divides it.
        """
        return self._has_key_sign(data.replace(b"\\r", b"").replace(b"\\n", b"").translate(None, _BLANK))


def loosened(pattern: str, *, is_possessive: bool = True) -> str:
    """Return a looser pattern, which matches wherever the exact pattern matches.

    The looser pattern lacks the lookarounds, the group names, the value, and everything after an unbounded repetition.
    With `is_possessive`, possessive repetitions are kept. RE2 does not support possessive repetitions.
    """
    from re import sub  # noqa: PLC0415 - a launch must not load `re`, which is slow to import

    flags = "(?i:" if pattern.startswith("(?ai)") else "(?:"
    text = sub(r"^\(\?[ai]+\)", "", pattern).replace(patterns.VALUE, "").replace(patterns.LEAD, "")
    if not is_possessive:
        text = text.replace("{0,60}?", "*?")  # RE2 would need a state for each possible length, from 0 to 60
    return flags + _loose(text, is_possessive=is_possessive, may_end=True) + ")"


def _loose(text: str, *, is_possessive: bool, may_end: bool) -> str:
    """Return a form of a part of a pattern that matches more texts than the part.

    With `may_end`, the result ends at the first unbounded repetition.
    """
    from re import compile as compiled  # noqa: PLC0415 - a launch must not load `re`, which is slow to import
    from re import sub  # noqa: PLC0415

    repeat = compiled(r"(?P<how>[*+?]|\{(?P<least>\d+)(?P<open>,)?\d*\})(?P<kind>[+?]?)")
    kept, at = "", 0
    while at < len(text):
        end = _end_of_atom(text, at)
        atom = text[at:end]
        if atom.startswith(_LOOKAROUNDS):
            at = end
            continue
        if atom.startswith("("):
            inner = sub(r"^\((?:\?:|\?P<\w+>)?", "", atom)[:-1]
            inner = _loose(inner, is_possessive=is_possessive, may_end=False)
            atom = f"(?:{inner})" if inner.strip("|") else ""  # the group is left out if it had only lookarounds
        found = repeat.match(text, end)
        at = end if found is None else found.end()
        if found is None or not atom:
            kept += atom
        elif may_end and found["open"] and found["how"].endswith(",}"):
            return f"{kept}{atom}{{{found['least']}}}"
        else:
            kept += atom + found["how"] + (found["kind"] if is_possessive or found["kind"] == "?" else "")
    return kept


def _end_of_atom(text: str, at: int) -> int:
    """Return the end of the part of a pattern that begins at `at`.

    The part is one character, a character class or a group.
    """
    if text[at] == "\\":
        return at + 2
    if text[at] == "[":
        end = at + 2 if text[at + 1] != "^" else at + 3  # a bracket at the beginning of a class does not end the class
        while text[end] != "]":
            end += 2 if text[end] == "\\" else 1
        return end + 1
    if text[at] != "(":
        return at + 1
    end = at + 1
    while text[end] != ")":
        end = _end_of_atom(text, end)
    return end + 1


def _search_with_re(finders: Sequence[Finder]) -> Callable[[bytes], Iterator[Span]]:
    """Return a function that searches for lines with `re`, which is always available."""
    from re import compile as compiled  # noqa: PLC0415 - a launch must not load `re`, which is slow to import

    def in_case(text: str, *, is_exact: bool) -> Pattern[bytes]:
        # Pattern and text are both converted to lower case, because a pattern that ignores case would be much slower:
        # `re` could not search for its first characters.
        return compiled((text if is_exact else text.replace("(?i:", "(?:").lower()).encode())

    # Two searches, each for half of the possible first characters, are faster than one search for all of them.
    kinds = [
        (
            each.is_exact,
            in_case(_any_of(signs), is_exact=True),
            [in_case(loosened(one), is_exact=each.is_exact) for one in each.found],
        )
        for each in finders
        for signs in (
            [sign for sign in each.signs if sign[0].islower()],
            [sign for sign in each.signs if not sign[0].islower()],
        )
        if signs
    ]

    def search(data: bytes) -> Iterator[Span]:
        lower = data.lower()
        for is_exact, sign, found in kinds:
            text = data if is_exact else lower
            at = 0
            while (match := sign.search(text, at)) is not None:
                start, at = _line_at(text, match.start())
                if any(pattern.search(text, start, at) for pattern in found):
                    yield start, at
                at += 1

    return search


def _search_with_re2(finders: Sequence[Finder], re2: ModuleType) -> Callable[[bytes], Iterator[Span]]:
    """Return a function that searches for lines with RE2, for all patterns at once."""
    pattern = _with_re2("|".join(loosened(one, is_possessive=False) for each in finders for one in each.found), re2)

    def search(data: bytes) -> Iterator[Span]:
        at = 0
        while at <= len(data) and (match := pattern.search(data, at)) is not None:
            start, at = _line_at(data, match.start())
            yield start, at
            at += 1

    return search


def _with_re2(pattern: str, re2: ModuleType) -> Pattern[bytes]:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _RE2_MEMORY
    options.never_capture = True
    compiled: Pattern[bytes] = re2.compile(pattern.encode(), options)
    return compiled


def _key_sign_with_re() -> Callable[[bytes], bool]:
    signs = [sign.encode() for sign in patterns.KEY_SIGNS]
    return lambda unbroken: any(sign in unbroken for sign in signs)


def _key_sign_with_re2(re2: ModuleType) -> Callable[[bytes], bool]:
    sign = _with_re2("|".join(patterns.KEY_SIGNS), re2)
    return lambda unbroken: sign.search(unbroken) is not None


def _re2() -> ModuleType | None:
    """Return the module `re2`, or None if it is not installed or not complete."""
    try:
        import re2  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415 - RE2 is optional and slow to import
    except ImportError:
        return None
    module: ModuleType = re2
    return module if hasattr(module, "Options") else None


def _line_at(data: bytes, at: int) -> Span:
    """Return the span of the line that contains a byte."""
    end = data.find(b"\n", at)
    return data.rfind(b"\n", 0, at) + 1, len(data) if end < 0 else end


def _netrc_entries(data: bytes) -> Iterator[Span]:
    """Yield the spans of netrc entries, from the first line to the password's line."""
    from re import compile as compiled  # noqa: PLC0415 - a launch must not load `re`, which is slow to import

    word, gap = compiled(rb"(?:[^\s\\]|\\(?![nrt]))+"), compiled(rb"(?:\s|\\[nrt])+")
    at = -1
    while (at := data.find(b"password", at + 1)) >= 0:
        following = gap.match(data, at + len(b"password"))
        if following is None or not (data[at - 1 : at].isspace() or data[at - 2 : at] in (b"\\n", b"\\r", b"\\t")):
            continue
        begin = max(0, at - _NETRC_NEAR)
        near = data[begin:at]
        last = near.rsplit(None, 2)[-2:]
        is_cut = begin > 0 and len(near.rsplit(None, _NETRC_WORDS)) < _NETRC_WORDS
        if is_cut or b"\\" in b"".join(last) or any(each.endswith(_NETRC_NAMES) for each in last):
            close = max(0, len(near) - _NETRC_CLOSE)
            words = [each.start() for each in word.finditer(near, close)]
            if len(words) <= _NETRC_WORDS:  # the first of these words may be incomplete
                words = [each.start() for each in word.finditer(near)]
            first = 0 if is_cut else words[-_NETRC_WORDS:][0]
            yield _line_at(data, begin + first)[0], _line_at(data, following.end())[1]


def _any_of(texts: Sequence[str]) -> str:
    """Return a pattern that matches any of the strings in `texts`.

    The pattern contains the common beginning of several strings only once. So the beginning is tried only once.
    """
    from re import escape  # noqa: PLC0415 - a launch must not load `re`, which is slow to import

    tails: dict[str, list[str]] = {}
    for text in texts:
        tails.setdefault(text[:1], []).append(text[1:])
    if "" in tails:
        return ""
    return "(?:" + "|".join(escape(first) + _any_of(rest) for first, rest in sorted(tails.items())) + ")"
