"""Words with braces in a shell text."""

from __future__ import annotations

import pytest

from outlive.observe.predict.predict import declare


def touched(text: str) -> list[str]:
    """Return the paths that a shell text touches when it runs in /w."""
    return [touch.what for touch in declare(("/bin/bash", "-c", text), "/w").touches]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("rm src{,.bak}", ["/w/src", "/w/src.bak"]),
        ("rm {a,b}/{c,d}", ["/w/a/c", "/w/a/d", "/w/b/c", "/w/b/d"]),
        ("rm a{b,c{d,e}}f", ["/w/abf", "/w/acdf", "/w/acef"]),
        ("D=x; rm $D{,.bak}", ["/w/x", "/w/x.bak"]),
        ("rm ~/{a,b}", ["/home/dev/a", "/home/dev/b"]),
        ("""rm "a b"{,'{c,d}'}""", ["/w/a b", "/w/a b{c,d}"]),
        ("""rm 'a{b,c}' "a{b,d}" a\\{b,e\\}""", ["/w/a{b,c}", "/w/a{b,d}", "/w/a{b,e}"]),
        ("rm a{b} {} {,} x{1..3}", ["/w/a{b}", "/w/{}", "/w/x{1..3}"]),
        ("for f in {a,b}; do rm $f; done", ["/w/a", "/w/b"]),
    ],
)
def test_braces_stand_for_several_words(monkeypatch: pytest.MonkeyPatch, text: str, paths: list[str]) -> None:
    """Braces with a comma stand for several words.

    Quoted braces, braces without a comma and ranges are not expanded.
    """
    monkeypatch.setenv("HOME", "/home/dev")
    assert touched(text) == paths


def test_braces_that_stand_for_very_many_words_are_one_unknown_word() -> None:
    """Forty pairs of braces are not expanded, and count as one unknown word.

    Each pair would double the number of words.
    """
    assert touched("rm " + "{a,b}" * 40) == ["/w/" + "{a,b}" * 40 + "…"]
