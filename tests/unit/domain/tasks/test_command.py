"""A command: its arguments, and the text that shows the command to a person."""

from __future__ import annotations

import shlex
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive.domain.errors import UserError
from outlive.domain.tasks.command import (
    check_environment,
    check_variables,
    from_argv,
    from_shell_text,
    quote,
)

some = settings(max_examples=20, deadline=None)
# A program can receive any byte but NUL. Python decodes other bytes than UTF-8 as surrogates.
words = st.binary(max_size=12).map(lambda raw: raw.replace(b"\0", b"").decode("utf-8", "surrogateescape"))


@some
@given(st.lists(words, max_size=4), words.filter(bool))
def test_text_of_a_command_is_read_by_a_shell_as_its_arguments(rest: list[str], first: str) -> None:
    """If a shell reads the quoted text of a command, it gets the same arguments, even with bytes that are not UTF-8."""
    command = from_argv([first, *rest])
    assert command.argv == (first, *rest)
    assert shlex.split(command.text) == [first, *rest]


@some
@given(words)
def test_quote_gives_the_same_result_as_shlex(word: str) -> None:
    """`quote` returns what `shlex.quote` returns.

    `shlex` itself is not imported, because every launch would pay for the import.
    """
    assert quote(word) == shlex.quote(word)


def test_quote_agrees_with_shlex_for_every_printable_character() -> None:
    """`quote` and `shlex.quote` agree for every printable character: alone, in a word and after a quote."""
    for letter in string.printable:
        for word in (letter, f"a{letter}b", f"'{letter}"):
            assert quote(word) == shlex.quote(word)


def test_shell_text_is_kept_as_it_was_typed() -> None:
    """A shell text is run and recorded as it was typed."""
    command = from_shell_text("  a && b | c > 'd e'\n")
    assert command.argv == ("/bin/sh", "-c", "  a && b | c > 'd e'\n")
    assert command.text == "  a && b | c > 'd e'\n"


@pytest.mark.parametrize("argv", [[], [""], ["", "x"]])
def test_from_argv_refuses_a_missing_program(argv: list[str]) -> None:
    """`from_argv` refuses arguments without a program, before anything is recorded."""
    with pytest.raises(UserError, match="no command"):
        from_argv(argv)


@pytest.mark.parametrize("text", ["", " ", "\n\t "])
def test_from_shell_text_refuses_a_blank_text(text: str) -> None:
    """`from_shell_text` refuses a blank text. A shell would do nothing and report success."""
    with pytest.raises(UserError, match="no command"):
        from_shell_text(text)


def test_a_nul_byte_is_refused() -> None:
    """An argument with a NUL byte is refused, because the kernel would end the argument there."""
    with pytest.raises(UserError, match="NUL"):
        from_argv(["echo", "a\0b"])
    with pytest.raises(UserError, match="NUL"):
        from_shell_text("echo a\0b")


@pytest.mark.parametrize("letter", ["a", "é", "\udcff"])
def test_an_argument_longer_than_the_kernel_takes_is_refused(letter: str) -> None:
    """An argument that is longer than the kernel accepts is refused. The limit is 131,072 bytes with the final NUL."""
    size = len(letter.encode("utf-8", "surrogateescape"))
    longest = letter * (131_071 // size)
    assert from_argv(["echo", longest]).argv[1] == longest
    with pytest.raises(UserError, match="131071"):
        from_argv(["echo", longest + letter])
    with pytest.raises(UserError, match="131071"):
        from_shell_text(longest + letter)


def test_empty_argument_is_kept() -> None:
    """An argument may be empty. Only the name of the program may not be empty."""
    assert from_argv(["printf", ""]).text == "printf ''"


def test_check_environment_splits_at_the_first_equals_sign() -> None:
    """In `--env NAME=VALUE`, the value begins after the first equals sign.

    If a name is set twice, the last value counts.
    """
    assert check_environment(["A=1", "B=x=y", "C=", "A=2"]) == {"A": "2", "B": "x=y", "C": ""}
    assert check_environment([]) == {}


@pytest.mark.parametrize("pair", ["A", "=1", "", "A=\0", "A\0=1"])
def test_a_bad_environment_setting_is_refused_without_its_value(pair: str) -> None:
    """An invalid `--env` is refused. The error names only the variable, because the value may be a secret."""
    with pytest.raises(UserError) as refusal:
        check_environment([pair])
    assert refusal.value.hint == "write it as NAME=VALUE"
    with pytest.raises(UserError) as refusal:
        check_environment(["TOKEN=hunter2\0"])
    assert "hunter2" not in refusal.value.message


@pytest.mark.parametrize(
    "wrong", [{"A=B": "hunter2"}, {"": "hunter2"}, {"A\0": "hunter2"}, {"A": "hunter2\0"}, {"A": "\ud800hunter2"}]
)
def test_check_variables_refuses_names_with_an_equals_sign_and_nul_bytes(wrong: dict[str, str]) -> None:
    """Names with an equals sign, and values with a NUL byte, are refused. The error does not show the value."""
    with pytest.raises(UserError) as refusal:
        check_variables(wrong)
    assert "hunter2" not in refusal.value.message
    assert check_variables({"A": "x=y", "B": ""}) == {"A": "x=y", "B": ""}


def test_check_variables_refuses_names_and_values_that_are_not_strings() -> None:
    """Names and values that are not strings are refused. `None`, for example, would become the text "None"."""
    for wrong in ({"A": None}, {"A": 1}, {1: "A"}):
        with pytest.raises(UserError):
            check_variables(wrong)  # type: ignore[arg-type]
