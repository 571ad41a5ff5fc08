"""Application of rules to a simple command, to predict what the command changes."""

from __future__ import annotations

import itertools
import os
import posixpath
import re
from functools import reduce

from outlive.domain.effects.predicted import Touch
from outlive.observe.predict.rule import READS, find_program
from outlive.observe.shell.commands import PLACES_OF_GIT, join, program_name
from outlive.observe.shell.split_options import take_apart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from outlive.domain.effects.predicted import TouchKind
    from outlive.observe.predict.rule import Program, Rule
    from outlive.observe.shell.commands import Simple, Word
    from outlive.observe.shell.split_options import Call

_TEMPORARY = ("/tmp/", "/var/tmp/", "/dev/shm/", "/private/tmp/", "/var/folders/")  # noqa: S108 - paths are compared with these, and no file is created
# With one of these options, the first operand is a file. Without them, it is a script.
_SCRIPT = frozenset(("-e", "-f", "--regexp", "--expression", "--file", "--from-file"))
# A brace expression with `..` in a part: `/tmp/{a,../b}` names files in two directories.
_LEADS_OUT = re.compile(r"\{[^}]*[{,/]\.\.(?=[/,}])|\{\.\.[/,]")
_SOCKET = re.compile(r"/dev/(?:tcp|udp)/([^/]+)/")  # for bash, this path is an address to connect to, and not a file
_DEVICES = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/fd/", "/proc/self/fd/")


def touches_of(command: Simple, cwd: str) -> Iterator[Touch]:
    """Yield the kinds and names of what a command will change.

    Yields `unknown` if the text does not show what changes. `cwd` is the directory of the command.
    """
    found = [*_redirections(command), *_by_rules(command)]
    place = command.elsewhere
    for kind, what in found:
        if place is not None and kind != "unknown":
            yield Touch(kind=place.kind, what=_host(place.name), by=command.line)
        # If the command runs in another place, such as a container, a change of a file there is reported as a change of
        # that place. A database or another machine is reported by its own name.
        if not is_passing(what, cwd) if place is None else kind in {"database", "remote", "unknown"}:
            yield Touch(kind=kind, what=what, by=command.line)


def names_no_file(command: Simple) -> bool:
    """Return whether no argument of a command names a file. Redirections do not count."""
    known = find_program(program_name(command))
    return not command.words or (known is not None and "each" in known.says)


def words_for_files(command: Simple) -> list[Word]:
    """Return the arguments that may name a file.

    Patterns, scripts and numbers are left out.
    """
    if names_no_file(command):
        return []
    words, known = list(command.words[1:]), find_program(program_name(command))
    if program_name(command) == "git":
        words += [value for name, value in command.sets if name in PLACES_OF_GIT]
    if known is None or not known.says:
        return words
    call, _ = take_apart(words, known.takes, clusters=known.clusters)
    excluded = [value for option, value in call.values if option in known.says]
    if "first" in known.says and not _SCRIPT & call.names:
        excluded += call.operands[:1]
    for each in excluded:
        # Remove only the first equal word: in `grep $a $a`, the first `$a` is a pattern, and the second one is a file.
        words.remove(next(word for word in words if word == each or _gives(word.text, each.text)))
    return words


def operands_for_files(command: Simple) -> list[Word]:
    """Return the operands that may name a file: no options, and no values of options."""
    known = find_program(program_name(command))
    if known is None or names_no_file(command):
        return []
    call, _ = take_apart(command.words[1:], known.takes, clusters=known.clusters)
    return list(call.operands["first" in known.says and not _SCRIPT & call.names :])


def names_files_for_sure(command: Simple) -> bool:
    """Return whether an operand is certainly the name of a file.

    The file need not exist. For a search program with options, the result is False: a word that looks like an operand
    may be the value of an option.
    """
    known = find_program(program_name(command))
    if known is None or known.topic != "files" or any(each.verbs for each in known.rules):
        return False
    has_options = any(word.text.startswith("-") for word in command.words)
    operands = [word for word in operands_for_files(command) if word.literal and not word.text.isdecimal()]
    return bool(operands) and not (known.says and has_options)


def places_of(command: Simple) -> tuple[str, ...]:
    """Return the directories in which a command works.

    For git, these are the directories of the repository and the worktree.
    """
    known = find_program(program_name(command))
    if known is None:
        return (command.directory,)
    here, given = _directory_of(command, known), dict(command.sets)
    if program_name(command) == "git":
        call, _ = take_apart(command.words[1:], known.takes, leading=True)
        options = zip(PLACES_OF_GIT, ("--git-dir", "--work-tree"), strict=True)
        given |= {name: value for name, option in options if (value := call.value_of((option,)))}
    own, files = (join(here, given[name].text) if name in given else here for name in PLACES_OF_GIT)
    own = own.removesuffix("/.git")
    return (own,) if own == files else (own, files)


def _directory_of(command: Simple, known: Program) -> str:
    """Return the directory in which a command runs, after options such as `-C`.

    `known` has what the rules say about the program.
    """
    call, _ = take_apart(command.words[1:], known.takes, clusters=known.clusters, leading=known.leads)
    return reduce(join, (value.text for value in call.values_of(tuple(known.directory))), command.directory)


def verb_of(command: Simple) -> str:
    """Return the first argument that is neither an option nor an option's value."""
    known = find_program(program_name(command))
    _, at = take_apart(command.words[1:], known.takes if known else frozenset(), leading=True)
    return "".join(word.text for word in command.words[at + 1 : at + 2])


def tree_of(command: Simple) -> str:
    """Return the field `tree` of the first rule that fits the command and has it.

    `rules/README.md` explains the field.
    """
    known = find_program(program_name(command))
    deciding = None if known is None else _deciding(command, known)
    return next((each.tree for each, _ in deciding or () if each.tree), "")


def files_in_text(command: Simple) -> list[str]:
    """Return the files that a database may read because a command's text names them."""
    known = find_program(program_name(command))
    if known is None or known.topic != "databases":
        return []
    from outlive.observe.predict.embedded_languages import files_in_sql  # noqa: PLC0415 - only commands for a database need this import

    texts = (*(word.text for word in command.words[1:]), command.stdin or "")
    return [name for text in texts for name in files_in_sql(text)]


def _gives(option: str, value: str) -> bool:
    """Return whether a value is in the same word as its option: `--include=x`, `-m9`."""
    return option.startswith("-") and option.endswith(value)


def is_passing(path: str, cwd: str) -> bool:
    """Return whether a path is a device or temporary file that need not be reported."""
    if path.startswith(_DEVICES):
        return True
    if _LEADS_OUT.search(path):
        return False
    own = os.environ.get("TMPDIR", "").rstrip("/")
    temporary = (*_TEMPORARY, own + "/") if own.startswith("/") else _TEMPORARY
    return (path + "/").startswith(temporary) and not (path + "/").startswith(cwd.rstrip("/") + "/")


def _redirections(command: Simple) -> Iterator[tuple[TouchKind, str]]:
    # `ssh host a > b` writes `b` on this machine. In `ssh host 'a > b'`, the redirection belongs to the inner command.
    for word in command.writes:
        socket = _SOCKET.match(word.text)
        yield ("remote", socket[1]) if socket else ("path", join(command.directory, word.text))


def _by_rules(command: Simple) -> Iterator[tuple[TouchKind, str]]:
    if not command.words:
        return
    name = program_name(command)
    known = find_program(name)
    if known is None:
        yield "unknown", name or command.words[0].text
        return
    deciding = _deciding(command, known)
    for each, call in deciding or ():
        yield from _touched(each, call, command, known)
    if deciding == [] and known.otherwise != READS:
        yield "unknown", name


def _taking(words: Sequence[Word], known: Program) -> frozenset[str]:
    """Return the options that take a value, for a call with the given words.

    The words show the subcommand, such as `commit` in `git commit`. `known` has what the rules say about the program.
    """
    if not known.bare:
        return known.takes
    _, at = take_apart(words, known.takes, leading=True)
    verb = [word.text for word in words[at : at + 2]]
    is_bare = bool(known.bare & {"_".join(verb[:1]), "_".join(verb)})
    return frozenset(option for option in known.takes if len(option) > 2) if is_bare else known.takes


def _deciding(command: Simple, known: Program) -> list[tuple[Rule, Call]] | None:
    """Return the rules that fit a call, up to the first rule not marked `also`.

    `known` has the rules of the program. Each rule comes with the call, from which the rule's subcommand is removed.
    Returns None if the call asks for help or a version.
    """
    words = command.words[1:]
    if known.dashless and words and not words[0].text.startswith("-"):
        words = (words[0].but(text="-" + words[0].text), *words[1:])
    call, _ = take_apart(words, _taking(words, known), clusters=known.clusters)
    # A program that does more than read may pass `--help` on to another program that it runs. So only the first word
    # after the name of such a program is checked.
    if {word.text for word in (words if known.otherwise == READS else words[:1])} & {"--help", "--version"}:
        return None
    found = []
    for each in known.rules:
        inner = _fitting(each, call, command)
        if inner is None:
            continue
        if each.verbs and not inner.operands and inner.names & {"--help", "-h"}:
            return None  # the call asks for help about the subcommand
        found.append((each, inner))
        if not each.also:
            break
    return found


def _fitting(rule: Rule, call: Call, command: Simple) -> Call | None:
    """Return the call without the rule's subcommand, such as `commit`.

    Returns None if the rule does not fit the call.
    """
    if rule.verbs:
        words = [word.text for word in call.operands]
        verb = next((verb for verb in rule.verbs if tuple(words[: len(verb)]) == verb), None)
        if verb is None:
            return None
        call = call.but(operands=call.operands[len(verb) :])
    if (rule.when and not rule.when & call.names) or rule.unless & call.names:
        return None
    return call if rule.asks is None or rule.asks(call, command) else None


def _touched(rule: Rule, call: Call, command: Simple, known: Program) -> Iterator[tuple[TouchKind, str]]:
    repository, *_ = places_of(command)
    for kind, wheres in rule.touches:
        here = repository if kind == "git" else _directory_of(command, known)
        for where in wheres:
            if what := list(_what(kind, where, call, here, command)):
                yield from ((kind, each) for each in what)  # type: ignore[misc]
                break
        else:
            if kind != "path":  # a call without operands writes no file, but it may use a default remote
                yield kind, program_name(command)  # type: ignore[misc]


def _what(kind: str, where: str, call: Call, here: str, command: Simple) -> Iterator[str]:
    """Yield the names or paths of a call for which a rule uses the text `where`.

    `kind` is the kind of changed thing, such as `path`. `here` is the directory in which the command runs.
    """
    if where == "here":
        yield here
    elif where == "tool":
        yield program_name(command)
    elif where.startswith("="):
        text = posixpath.expanduser(where[1:])
        yield join(here, text) if kind == "path" else text
    elif where in _FIND:
        yield from (join(here, path) for path in _FIND[where](call))
    elif where.endswith("="):
        yield from (join(here, w.text.removeprefix(where)) for w in call.operands if w.text.startswith(where))
    else:
        words = _values(call, where.split(",")) if where.startswith("-") else _SELECT[where](call.operands)
        for word in words:
            if kind == "path":
                yield join(here, word.text) if word.text != "-" else "/dev/stdout"
            elif kind in {"remote", "database"}:
                yield _host(word.text)
            else:
                yield word.text


def _starts(call: Call) -> Iterator[str]:
    """Return the directories that a call of `find` searches.

    These are the operands before the first option.
    """
    starts = itertools.takewhile(lambda word: word.text[:1] not in {"-", "(", "!"}, call.words)
    return (word.text for word in starts)


def _mounted(call: Call) -> Iterator[str]:
    """Yield the directories, but not the volumes, that a container may write to."""
    for name, value in call.values:
        if name in {"-v", "--volume"}:
            source, _, rest = value.text.partition(":")
            modes = rest.partition(":")[2].split(",")
        elif name == "--mount":
            fields = dict(part.partition("=")[::2] for part in value.text.split(","))
            source, modes = fields.get("source") or fields.get("src", ""), [*fields]
        else:
            continue
        if source.startswith(("/", ".", "~", "$")) and not {"ro", "readonly"}.intersection(modes):
            yield source


def _values(call: Call, options: list[str]) -> Sequence[Word]:
    """Return the values of some options of a call.

    For other subcommands of the program, the same option may be a flag without a value. Then the word after the option
    counts as the value.
    """
    return call.values_of(options) or [
        following for option, following in itertools.pairwise(call.words) if option.text in options
    ]


def _host(text: str) -> str:
    """Return the host in a URL or in `user@host:path`.

    Any other text is returned unchanged.
    """
    _, mark, rest = text.partition("://")
    if mark:
        return rest.partition("?")[0].rpartition("@")[2].partition("/")[0]
    host, colon, _ = text.partition(":")
    return host.rpartition("@")[2] if colon or "@" in text else text


_FIND: dict[str, Callable[[Call], Iterable[str]]] = {
    "file": lambda call: [word.text for word in call.operands[:1]],
    "starts": _starts,
    "mounts": _mounted,
}
_SELECT: dict[str, Callable[[Sequence[Word]], Sequence[Word]]] = {
    "each": lambda words: words,
    "first": lambda words: words[:1],
    "last": lambda words: words[-1:],
    "rest": lambda words: words[1:],
    "beyond": lambda words: words[2:],
    "most": lambda words: words[:-1],
}
