"""The command: what is executed, and the text a person recognises it by."""

from __future__ import annotations

import shlex
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive.domain.command import (
    check_environment,
    check_variables,
    from_argv,
    from_shell_text,
    quote,
)
from outlive.domain.errors import UserError

some = settings(max_examples=20, deadline=None)
# What a program can receive: any bytes but NUL, as Python decodes arguments.
words = st.binary(max_size=12).map(lambda raw: raw.replace(b"\0", b"").decode("utf-8", "surrogateescape"))


@some
@given(st.lists(words, max_size=4), words.filter(bool))
def test_the_shown_text_means_the_same_words_to_a_shell(rest: list[str], first: str) -> None:
    """Quoting loses nothing, not even bytes that are no UTF-8."""
    command = from_argv([first, *rest])
    assert command.argv == (first, *rest)
    assert shlex.split(command.text) == [first, *rest]


@some
@given(words)
def test_quoting_is_the_usual_one(word: str) -> None:
    """As the standard library would, whose import every launch would pay for."""
    assert quote(word) == shlex.quote(word)


def test_every_letter_survives_a_shell() -> None:
    """Alone, in a word, and beside a quote."""
    for letter in string.printable:
        for word in (letter, f"a{letter}b", f"'{letter}"):
            assert quote(word) == shlex.quote(word)


def test_shell_text_is_kept_as_it_was_typed() -> None:
    """A shell sees it whole, and so does whoever reads the record."""
    command = from_shell_text("  a && b | c > 'd e'\n")
    assert command.argv == ("/bin/sh", "-c", "  a && b | c > 'd e'\n")
    assert command.text == "  a && b | c > 'd e'\n"


@pytest.mark.parametrize("argv", [[], [""], ["", "x"]])
def test_no_words_are_no_command(argv: list[str]) -> None:
    """Nothing to execute is said so before anything is recorded."""
    with pytest.raises(UserError, match="no command"):
        from_argv(argv)


@pytest.mark.parametrize("text", ["", " ", "\n\t "])
def test_blank_text_is_no_command(text: str) -> None:
    """A shell would succeed at doing nothing."""
    with pytest.raises(UserError, match="no command"):
        from_shell_text(text)


def test_a_nul_byte_is_refused() -> None:
    """No program can receive one."""
    with pytest.raises(UserError, match="NUL"):
        from_argv(["echo", "a\0b"])
    with pytest.raises(UserError, match="NUL"):
        from_shell_text("echo a\0b")


@pytest.mark.parametrize("letter", ["a", "é", "\udcff"])
def test_an_argument_longer_than_the_kernel_takes_is_refused(letter: str) -> None:
    """Counted in bytes: the kernel's limit is on one argument, NUL included."""
    size = len(letter.encode("utf-8", "surrogateescape"))
    longest = letter * (131_071 // size)
    assert from_argv(["echo", longest]).argv[1] == longest
    with pytest.raises(UserError, match="131071"):
        from_argv(["echo", longest + letter])
    with pytest.raises(UserError, match="131071"):
        from_shell_text(longest + letter)


def test_an_empty_argument_is_an_argument() -> None:
    """Only the program's own name may not be empty."""
    assert from_argv(["printf", ""]).text == "printf ''"


def test_environment_settings_are_pairs() -> None:
    """Everything behind the first equals sign is the value; the last of two settings counts."""
    assert check_environment(["A=1", "B=x=y", "C=", "A=2"]) == {"A": "2", "B": "x=y", "C": ""}
    assert check_environment([]) == {}


@pytest.mark.parametrize("pair", ["A", "=1", "", "A=\0", "A\0=1"])
def test_a_bad_environment_setting_is_refused_without_its_value(pair: str) -> None:
    """The value may be a secret, so the refusal names only the variable."""
    with pytest.raises(UserError) as refusal:
        check_environment([pair])
    assert refusal.value.hint == "write it as NAME=VALUE"
    with pytest.raises(UserError) as refusal:
        check_environment(["TOKEN=hunter2\0"])
    assert "hunter2" not in refusal.value.message


@pytest.mark.parametrize(
    "wrong", [{"A=B": "hunter2"}, {"": "hunter2"}, {"A\0": "hunter2"}, {"A": "hunter2\0"}, {"A": "\ud800hunter2"}]
)
def test_a_variable_is_what_it_is_called(wrong: dict[str, str]) -> None:
    """A name with an equals sign would set another variable; the value may be a secret and is not in the refusal."""
    with pytest.raises(UserError) as refusal:
        check_variables(wrong)
    assert "hunter2" not in refusal.value.message
    assert check_variables({"A": "x=y", "B": ""}) == {"A": "x=y", "B": ""}


def test_what_is_no_text_is_no_variable() -> None:
    """`None` would be the text None, which nobody means."""
    for wrong in ({"A": None}, {"A": 1}, {1: "A"}):
        with pytest.raises(UserError):
            check_variables(wrong)  # type: ignore[arg-type]
