"""A reader of wrappers, which are commands that run other commands.

For example, `env`, `sudo` and `sh -c` are wrappers. The commands that a wrapper runs are read, too.
"""

from __future__ import annotations

import shlex
from functools import reduce

from outlive.domain.tasks.shells_and_wrappers import POSIX_SHELLS, WRAPPERS
from outlive.observe.shell.commands import (
    ANY_WORD,
    VARIABLES_OF_GIT,
    Elsewhere,
    Scope,
    Word,
    join,
    one_line,
    program_name,
)
from outlive.observe.shell.split_options import take_apart
from outlive.observe.shell.split_text import shell_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from outlive.domain.tasks.shells_and_wrappers import Wrapper
    from outlive.observe.shell.commands import Reader, Simple
    from outlive.observe.shell.split_options import Call

_LOGS = ("-O", "-I", "-B", "-T", "--log-out", "--log-in", "--log-io", "--log-timing")
_WITH_TEXT = frozenset(("-c", "--command", "-g", "-G", "-s", "-w", "-E", "-o", "-m", *_LOGS))
_BEFORE_VERB_OF_GIT = frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace"))
# Options that may stand between a program and its subcommand.
_BEFORE_VERB = frozenset(("-n", "-f", "-p", "--namespace", "--context", "--file", "--project-name", "--directory"))


def unwrap(reader: Reader, command: Simple, scope: Scope, depth: int) -> bool:
    """Read the commands that `command` runs, if it is a wrapper such as `env`.

    Returns whether these commands take the place of `command`. If not, the reader also lists `command` itself.
    """
    words, name = command.words, program_name(command)
    if not name:
        return False
    if name in POSIX_SHELLS:
        return _shell(reader, command, scope, depth)
    if name in {"eval", "trap"}:
        return _text_of_words(reader, command, words[1:] if name == "eval" else words[1:2], scope, depth)
    if name in {"su", "runuser", "script", "flock"} and _read_given_text(reader, command, scope, depth):
        return True
    if name == "env" and (split := _split(words)):
        reader.add(command.but(words=split), scope, depth + 1)
        return True
    if name == "find":
        return _find(reader, command, scope, depth)
    if name == "git":
        _run_by_git(reader, command, scope, depth)
    if name in {"fd", "fdfind"}:
        found = next((i for i, word in enumerate(words) if word.text in {"-x", "-X", "--exec", "--exec-batch"}), 0)
        return found > 0 and _wrapped(reader, command, (WRAPPERS["xargs"], found + 1), scope, depth)
    wrapper, at = _wrapper_of(name, words)
    return wrapper is not None and _wrapped(reader, command, (wrapper, at), scope, depth)


def _wrapper_of(name: str, words: Sequence[Word]) -> tuple[Wrapper | None, int]:
    """Return the wrapper that the first words name, and where its options begin.

    A wrapper is a program that runs another command, such as `env`.
    """
    name = "python" if name.startswith("python") and name[6:].replace(".", "").isdigit() else name
    if name in WRAPPERS:
        return WRAPPERS[name], 1
    if name == "python":
        at = 1
        while at < len(words) and words[at].text.startswith("-") and words[at].text not in {"-m", "-c"}:
            at += 2 if words[at].text in {"-X", "-W"} else 1
        name = words[at].text if at < len(words) else ""
        is_wrapper = name == "-m" or name.endswith("manage.py")
        return (WRAPPERS["python -m"], at + (name == "-m")) if is_wrapper else (None, 0)
    at = 1
    for _ in range(2):
        at += take_apart(words[at:], _BEFORE_VERB, leading=True)[1]
        if at >= len(words):
            break
        name = f"{name} {words[at].text}"
        at += 1
        if name in WRAPPERS:
            return WRAPPERS[name], at
    return None, 0


def _read_given_text(reader: Reader, command: Simple, scope: Scope, depth: int) -> bool:
    """Read the text that a program such as `su -c` passes to a shell.

    For the program `script`, the log file is added to the files that the command writes.
    """
    call, _ = take_apart(command.words[1:], _WITH_TEXT)
    text = call.value_of(("-c", "--command"))
    if text is None or call.names & {"-u", "--user"}:
        return False
    if program_name(command) == "script":
        logs = call.values_of(_LOGS) or call.operands[:1] or (Word(text="typescript"),)
        command = command.but(writes=(*command.writes, *logs))
    return _text_of_words(reader, command, (text,), Scope(scope.directory, scope.elsewhere), depth)


def _split(words: Sequence[Word]) -> tuple[Word, ...]:
    """Return the words of an `env` command after `-S` has split its argument.

    The result is empty without `-S`.
    """
    call, at = take_apart(words[1:], _options(WRAPPERS["env"], "takes") | {"-S", "--split-string"}, leading=True)
    text = call.value_of(("-S", "--split-string"))
    if text is None:
        return ()
    try:
        parts = [text.but(text=part) for part in shlex.split(text.text)]
    except ValueError:
        parts = [ANY_WORD]
    places = (word.but(text="--chdir=" + word.text) for word in call.values_of(("-C", "--chdir")))
    return (words[0], *places, *parts, *words[1 + at :])


def _wrapped(reader: Reader, command: Simple, found: tuple[Wrapper, int], scope: Scope, depth: int) -> bool:
    wrapper, at = found
    words = command.words
    call, used = take_apart(words[at:], _options(wrapper, "takes"), leading=True)
    operands = wrapper.get("operands", 0)
    at += used
    if "-v" in call.names and words[0].text == "command":
        return False
    while operands == 0 and at < len(words) and "=" in words[at].text.partition("/")[0]:
        name, _, value = words[at].text.partition("=")
        if name in VARIABLES_OF_GIT:
            command = command.but(sets=(*command.sets, (name, words[at].but(text=value))))
        at += 1  # an assignment, as `env` and `sudo` accept it
    inner = list(words[at + operands :])
    dashes = next((i for i, word in enumerate(inner) if word.text == "--"), None)
    if dashes is not None and (dashes == 0 or words[0].text == "kubectl"):
        inner = inner[dashes + 1 :]
    inside = _inside(wrapper, call, words[at : at + 1], command, scope)
    if inside.elsewhere is not command.elsewhere:
        command = command.but(sets=())
    if wrapper.get("is_text") and (inner or command.stdin is not None):
        if not inner:
            return _text_of_input(reader, command, inside, depth)
        return _text_of_words(reader, command, inner, inside, depth)
    if not inner:
        return False
    if wrapper.get("supplies"):
        one = call.value_of(("-n", "-L", "--max-args", "--max-lines"))
        inner = _supplied(inner, call.value_of(("-I", "--replace")), 1 if one is not None and one.text == "1" else 2)
    line = command.line if "elsewhere" in wrapper else one_line(" ".join(word.text for word in inner))
    writes = (*command.writes, *call.values_of(_options(wrapper, "writes")))
    reads = (*command.reads, *call.values_of(_options(wrapper, "reads")))
    _rest(reader, command.but(writes=writes, reads=reads), scope, depth)
    reader.add(
        command.but(
            words=tuple(inner), writes=(), reads=(), line=line, directory=inside.directory, elsewhere=inside.elsewhere
        ),
        inside,
        depth + 1,
    )
    return True


def _inside(wrapper: Wrapper, call: Call, named: Sequence[Word], command: Simple, scope: Scope) -> Scope:
    """Return the directory, variables and functions for a wrapper's command.

    A wrapper is a program that runs another command, such as `env`. `call` has its options. If the command runs in
    another place, such as a container, `named` is the word that names this place.
    """
    if "elsewhere" in wrapper and named:
        return Scope("~", Elsewhere(kind=wrapper["elsewhere"], name=named[0].text))
    target = call.value_of(_options(wrapper, "directory"))
    directory = f"{scope.directory}/{ANY_WORD.text}" if wrapper.get("is_below") else scope.directory
    inside = Scope(join(directory, target.text) if target else directory, command.elsewhere)
    inside.functions, inside.variables = scope.functions, scope.variables
    return inside


def _options(wrapper: Wrapper, kind: Literal["takes", "directory", "writes", "reads"]) -> frozenset[str]:
    """Return the options of one kind that a wrapper such as `env` has.

    `kind` says what the value of such an option is: any value, a directory, or a file that is written or read.
    """
    return frozenset(wrapper.get(kind, "").split())


def _supplied(inner: list[Word], mark: Word | None, count: int) -> list[Word]:
    """Return the command that `xargs` runs. The words from its input are unknown.

    `inner` are the words of the command. `mark` is the word that `xargs -I` replaces. Without it, `count` unknown words
    are added.
    """
    stop = next((i for i, word in enumerate(inner) if word.text in {":::", "::::"}), len(inner))
    inner = inner[:stop]
    text = mark.text if mark else "{}"
    if any(text in word.text for word in inner):
        return [Word(text=word.text.replace(text, "…"), literal=False) if text in word.text else word for word in inner]
    return [*inner, *(ANY_WORD,) * count]


def _shell(reader: Reader, command: Simple, scope: Scope, depth: int) -> bool:
    """Read the text in `sh -c text`, or the known text that is a shell's input."""
    letters, at = shell_options([word.text for word in command.words])
    if "n" in letters:
        return False
    inner = Scope(scope.directory, command.elsewhere)
    inner.variables.update(command.sets)
    rest = command.words[at:]
    if "c" in letters:
        return bool(rest) and _text_of_words(reader, command, rest[:1], inner, depth)
    return (not rest or "s" in letters) and _text_of_input(reader, command, inner, depth)


def _text_of_input(reader: Reader, command: Simple, scope: Scope, depth: int) -> bool:
    """Read the input of a shell as a text. The shell consumes the whole input."""
    text = (Word(text=command.stdin or ""),)
    return _text_of_words(reader, command.but(stdin=None, is_fed=False), text, scope, depth)


def _text_of_words(reader: Reader, command: Simple, words: Sequence[Word], scope: Scope, depth: int) -> bool:
    """Read the commands in words that a shell will run as a command text.

    If a word is unknown, `is_whole` of the reader becomes False.
    """
    if not words or not all(word.text for word in words):
        return False
    if not all(word.literal for word in words):
        reader.is_whole = False
    _rest(reader, command, scope, depth)
    reader.read_text(" ".join(word.text for word in words), scope, depth + 1, command)
    return True


def _find(reader: Reader, command: Simple, scope: Scope, depth: int) -> bool:
    """Read the commands after `-exec` and similar options of `find`.

    Returns False, so that the reader also lists the `find` command itself.
    """
    words = command.words
    stop = next((i for i, word in enumerate(words) if i and word.text[:1] in {"-", "(", "!"}), len(words))
    starts = words[1:stop] or (Word(text="."),)
    at = stop
    while at < len(words):
        if words[at].text in {"-exec", "-execdir", "-ok", "-okdir"}:
            end = next((i for i in range(at + 1, len(words)) if words[i].text in {";", "+"}), len(words))
            inner: list[Word] = []
            for word in words[at + 1 : end]:
                inner += starts if word.text == "{}" else [word.but(text=word.text.replace("{}", "…"))]
            line = one_line(" ".join(word.text for word in words[at + 1 : end]))
            if words[at + 1 : end] and words[at + 1].text == "{}":
                inner = [ANY_WORD]
            reader.add(command.but(words=tuple(inner), writes=(), line=line), scope.copy(), depth + 1)
            at = end
        at += 1
    return False


def _run_by_git(reader: Reader, command: Simple, scope: Scope, depth: int) -> None:
    """Read the commands that a `git` command runs at each commit that it visits.

    These are the commands of `bisect run` and `rebase --exec`.
    """
    call, at = take_apart(command.words[1:], _BEFORE_VERB_OF_GIT, leading=True)
    verb, *rest = (*command.words[at + 1 :], Word(text=""))
    place = reduce(join, (value.text for value in call.values_of(("-C",))), scope.directory)
    inside = scope.copy()
    inside.directory = place
    own = command.but(writes=(), reads=(), directory=place)
    if verb.text == "bisect" and rest[0].text == "run":
        line = one_line(" ".join(word.text for word in rest[1:-1]))
        reader.add(own.but(words=tuple(rest[1:-1]), line=line), inside, depth + 1)
    elif verb.text == "rebase":
        options, _ = take_apart(rest, frozenset(("-x", "--exec", "--onto", "-s", "-X", "-C")))
        for text in options.values_of(("-x", "--exec")):
            _text_of_words(reader, own, (text,), inside, depth)


def _rest(reader: Reader, command: Simple, scope: Scope, depth: int) -> None:
    """Add the redirections of a command without its words.

    The shell opens the files of these redirections before it runs the command.
    """
    if command.writes or command.reads:
        reader.add(command.but(words=(), stdin=None), scope, depth + 1)
