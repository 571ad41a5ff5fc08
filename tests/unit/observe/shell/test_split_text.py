"""Splitting a shell text without a grammar into commands and redirections."""

from __future__ import annotations

import time

import pytest

from outlive.observe.shell.split_text import pieces, pieces_within, program


def test_pieces_splits_a_text_at_separators() -> None:
    """`pieces` splits a text at its separators, and recognises redirections and quotes."""
    found = pieces("a 'b c' >out 2>&1 >>log <in && d | e; f &\n(g; h) &")
    assert [(each.words, each.is_background) for each in found] == [
        (("a", "b c"), False),
        (("d",), False),
        (("e",), False),
        (("f",), True),
        (("g",), False),
        (("h",), True),
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a >b 2>c >>d <e", [("a", "b c d")]),
        ("a >|b; c &>d; e &>>f; g >&h; i <>j", [("a", "b"), ("c", "d"), ("e", "f"), ("g", "h"), ("i", "j")]),
        ("a 2>&1 >&- 3>&2- <&4", [("a", "2-")]),
        ("> 'a b'; c", [("", "a b"), ("c", "")]),
        ("(a; b) >c", [("a", ""), ("b", "c")]),
        ("(a) >b; >c", [("a", "b"), ("", "c")]),
        ("{ a; } >b", [("{ a", ""), ("}", "b")]),
        ("a <(b >c) >(d)", [("a", ""), ("b", "c"), ("d", "")]),
        ("a <<<b >c", [("a", "c")]),
        ("a >\nb", [("a", ""), ("b", "")]),
        ("a $((b & c)) $((1 + $(d)))", [("a $((b & c)) $", ""), ("1 + $", ""), ("d", "")]),
        ("a `b c`\r\nd", [("a `b c`", ""), ("d", "")]),
    ],
)
def test_piece_has_the_files_that_its_redirections_write(text: str, found: list[tuple[str, str]]) -> None:
    """A redirection belongs to the command before it. A redirection to a file descriptor names no file."""
    assert [(" ".join(each.words), " ".join(each.writes)) for each in pieces(text)] == found


def test_here_document_belongs_to_the_last_command_of_its_line() -> None:
    """The lines of a here-document are no commands. It belongs to the last command of its line, even without an end."""
    found = pieces("a <<E | b\nc &\nE\nd <<-'F' <<G\n\te\n\tF\nf\nG\ng <<H\nh")
    assert [(each.words, each.heredocs) for each in found] == [
        (("a",), ()),
        (("b",), ("c &\n",)),
        (("d",), ("\te\n", "f\n")),
        (("g",), ("h",)),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sudo -u bob A=b timeout -k 5 60 /bin/ls -l", "ls -l"),
        ("doas ionice -c 3 taskset 1 ls", "ls"),
        ("if ! A=b command ls", "ls"),
        ("nohup ls", "nohup ls"),
        ("sudo setsid -f ls", "setsid -f ls"),
        ("xargs ls", "xargs ls"),
        ("ssh host ls", "ssh host ls"),
        ("watch ls", "watch ls"),
        ("sudo", ""),
        ("}", ""),
        (">a", ""),
    ],
)
def test_program_skips_wrappers(text: str, words: str) -> None:
    """`program` skips wrapper programs, except those that detach the command, add words or run it elsewhere."""
    assert " ".join(program(pieces(text)[0])) == words


def test_pieces_within_splits_the_text_given_to_a_shell() -> None:
    """`pieces_within` splits the text after `-c`, for every shell and with any options."""
    found = pieces_within("fish -c 'a' | bash -euo pipefail -c \"sh -lc 'b; c'\"; dash +c d")
    assert [each.words[0] for each in found] == ["fish", "a", "bash", "sh", "b", "c", "dash"]


@pytest.mark.parametrize(
    "part", ["$((", "(a)>b;>c;", "a <<A ", "'", '"\\', "`", "\\b", "a", "<", "& ", "\n", "$(", "x=<<<"]
)
def test_pieces_takes_time_in_proportion_to_the_length(part: str) -> None:
    """`pieces` takes time in proportion to the length, because a hook has less than half a second."""
    before = time.process_time()
    pieces(part * (200_000 // len(part)))
    assert time.process_time() - before < 10
