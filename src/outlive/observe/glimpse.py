"""A shell text read without a grammar: split at operators, and never believed to be all there is."""

from __future__ import annotations

import re
from shlex import shlex

from outlive.observe.shell import Simple, Word, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from outlive.observe.shell import Reader, Scope

# shlex looks at every letter.
_LONGEST = 32 * 1024
_HEREDOC = re.compile(r"<<-?\s*([\"']?)(\w+)\1")
_KEYWORDS = frozenset(
    ("if", "then", "elif", "else", "fi", "do", "done", "while", "until", "!", "{", "}", "time", "case", "esac")
)


def glimpse(reader: Reader, text: str, scope: Scope, depth: int) -> None:
    """Take in every simple command that can be seen."""
    words: list[Word] = []
    writes: list[Word] = []
    target = ""
    for token in (*_tokens(_without_heredocs(text[:_LONGEST])), "\n"):
        if set(token) <= {"<", ">", "&", "|"} and set(token) & {"<", ">"}:
            if words and words[-1].text.isdigit():
                words.pop()
            target = token
        elif set(token) <= set(";&|()\n"):
            if words or writes:
                line = one_line(" ".join(word.text for word in words))
                command = Simple(
                    words=tuple(words),
                    directory=scope.directory,
                    line=line,
                    writes=tuple(writes),
                    elsewhere=scope.elsewhere,
                )
                reader.add(command, scope, depth + 1)
            words, writes, target = [], [], ""
        else:
            word = Word(text=token, literal="$" not in token and "`" not in token)
            if target:
                if ">" in target and not (target.endswith("&") and token.isdigit()):
                    writes.append(word)
                target = ""
            elif words or not (token in _KEYWORDS or re.match(r"\w+=", token)):
                words.append(word)


def _tokens(text: str) -> Iterator[str]:
    """Words without their quotes, and operators; up to a quote that does not end."""
    lexer = shlex(text, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        yield from lexer
    except ValueError:
        return


def _without_heredocs(text: str) -> str:
    """The text without the bodies of its here-documents, which are no commands of this shell."""
    kept, end = [], ""
    for line in text.split("\n"):
        if end:
            end = "" if line.strip() == end else end
            continue
        kept.append(line)
        if (found := _HEREDOC.search(line)) and "<<<" not in line:
            end = found[2]
    return "\n".join(kept)
