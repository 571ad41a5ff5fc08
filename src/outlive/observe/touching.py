"""What one simple command touches: the first rule that fits, applied to its words."""

from __future__ import annotations

import itertools
import os
import posixpath
import re
from functools import reduce

from outlive.domain.declared import Touch
from outlive.observe.dialects import files_in_sql
from outlive.observe.options import take_apart
from outlive.observe.rules import READS, Program
from outlive.observe.rules_builds import BUILDS
from outlive.observe.rules_containers import CONTAINERS
from outlive.observe.rules_databases import DATABASES
from outlive.observe.rules_files import FILES
from outlive.observe.rules_packages import PACKAGES
from outlive.observe.rules_remote import REMOTES
from outlive.observe.rules_services import SERVICES
from outlive.observe.rules_text import TEXTS
from outlive.observe.rules_versions import VERSIONS
from outlive.observe.shell import PLACES_OF_GIT, join, program_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from outlive.domain.declared import TouchKind
    from outlive.observe.options import Call
    from outlive.observe.rules import Rule
    from outlive.observe.shell import Simple, Word

PROGRAMS: tuple[Program, ...] = (
    *(*FILES, *TEXTS, *VERSIONS, *PACKAGES, *BUILDS),
    *(*CONTAINERS, *REMOTES, *DATABASES, *SERVICES),
)
_BY_NAME = {name: each for each in PROGRAMS for name in each.names}
_TEMPORARY = ("/tmp/", "/var/tmp/", "/dev/shm/", "/private/tmp/", "/var/folders/")  # noqa: S108 - named, not used
# With one of them, the first operand is a file and no script.
_SCRIPT = frozenset(("-e", "-f", "--regexp", "--expression", "--file", "--from-file"))
# A brace of which a part leads up: `/tmp/{a,../b}` lies in two directories.
_LEADS_OUT = re.compile(r"\{[^}]*[{,/]\.\.(?=[/,}])|\{\.\.[/,]")
_SOCKET = re.compile(r"/dev/(?:tcp|udp)/([^/]+)/")  # bash connects to it; there is no such file
_DEVICES = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/fd/", "/proc/self/fd/")


def touches_of(command: Simple, cwd: str) -> Iterator[Touch]:
    """Everything that a simple command says it is going to change, and `unknown` if it does not say."""
    found = [*_redirections(command), *_by_rules(command)]
    place = command.elsewhere
    for kind, what in found:
        if place is not None and kind != "unknown":
            yield Touch(kind=place.kind, what=_host(place.name), by=command.line)
        # A file of another place is part of that place; a database or a third machine is not.
        if not is_passing(what, cwd) if place is None else kind in {"database", "remote", "unknown"}:
            yield Touch(kind=kind, what=what, by=command.line)


def program_of(name: str) -> Program | None:
    """The program of this name, also if a version is part of it: `python3.12`, or `prettier@3` as `npx` has it."""
    known = _BY_NAME.get(name) or _BY_NAME.get(name.partition("@")[0])
    if known is None and name[-1:].isdigit():
        known = _BY_NAME.get(name.rstrip("0123456789.").removesuffix("-"))
    return known


def names_no_file(command: Simple) -> bool:
    """Whether nothing that the command is given is a file's name; what its redirections open is one all the same."""
    known = program_of(program_name(command))
    return not command.words or (known is not None and "each" in known.says)


def words_for_files(command: Simple) -> list[Word]:
    """The words that may name a file: a pattern, a script or a number does not."""
    if names_no_file(command):
        return []
    words, known = list(command.words[1:]), program_of(program_name(command))
    if program_name(command) == "git":
        words += [value for name, value in command.sets if name in PLACES_OF_GIT]
    if known is None or not known.says:
        return words
    call, _ = take_apart(words, known.takes, clusters=known.clusters)
    said = [value for option, value in call.values if option in known.says]
    if "first" in known.says and not _SCRIPT & call.names:
        said += call.operands[:1]
    for each in said:
        # One by one: the same unknown word may stand for a pattern first and for files then.
        words.remove(next(word for word in words if word == each or _gives(word.text, each.text)))
    return words


def operands_for_files(command: Simple) -> list[Word]:
    """Those of them that are neither an option nor the value of one: what it is to work on."""
    known = program_of(program_name(command))
    if known is None or names_no_file(command):
        return []
    call, _ = take_apart(command.words[1:], known.takes, clusters=known.clusters)
    return list(call.operands["first" in known.says and not _SCRIPT & call.names :])


def places_of(command: Simple) -> tuple[str, ...]:
    """Where a command works: in the repository that git is told, and at the files that go with it, if not there."""
    known = program_of(program_name(command))
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
    """Where a command runs, or where its options lead it."""
    call, _ = take_apart(command.words[1:], known.takes, clusters=known.clusters, leading=known.leads)
    return reduce(join, (value.text for value in call.values_of(tuple(known.directory))), command.directory)


def verb_of(command: Simple) -> str:
    """The first word that is neither an option nor the value of one."""
    known = program_of(program_name(command))
    _, at = take_apart(command.words[1:], known.takes if known else frozenset(), leading=True)
    return "".join(word.text for word in command.words[at + 1 : at + 2])


def tree_of(command: Simple) -> str:
    """What of its rules says that it reads where it runs, beside what its words name."""
    known = program_of(program_name(command))
    deciding = None if known is None else _deciding(command, known)
    return next((each.tree for each, _ in deciding or () if each.tree), "")


def files_in_text(command: Simple) -> list[str]:
    """The files that the text for a database names to be read."""
    if program_of(program_name(command)) not in DATABASES:
        return []
    texts = (*(word.text for word in command.words[1:]), command.stdin or "")
    return [name for text in texts for name in files_in_sql(text)]


def _gives(option: str, value: str) -> bool:
    """Whether the value stands in the same word as its option: `--include=x`, `-m9`."""
    return option.startswith("-") and option.endswith(value)


def is_passing(path: str, cwd: str) -> bool:
    """Whether a path is of no account: a device that keeps nothing, or temporary and not of the task's own tree."""
    if path.startswith(_DEVICES):
        return True
    if _LEADS_OUT.search(path):
        return False
    own = os.environ.get("TMPDIR", "").rstrip("/")
    temporary = (*_TEMPORARY, own + "/") if own.startswith("/") else _TEMPORARY
    return (path + "/").startswith(temporary) and not (path + "/").startswith(cwd.rstrip("/") + "/")


def _redirections(command: Simple) -> Iterator[tuple[TouchKind, str]]:
    # `ssh host a > b` writes here; what stands inside the quotes writes there, and is a command of its own.
    for word in command.writes:
        socket = _SOCKET.match(word.text)
        yield ("remote", socket[1]) if socket else ("path", join(command.directory, word.text))


def _by_rules(command: Simple) -> Iterator[tuple[TouchKind, str]]:
    if not command.words:
        return
    name = program_name(command)
    known = program_of(name)
    if known is None:
        yield "unknown", name or command.words[0].text
        return
    deciding = _deciding(command, known)
    for each, call in deciding or ():
        yield from _touched(each, call, command, known)
    if deciding == [] and known.otherwise != READS:
        yield "unknown", name


def _taking(words: Sequence[Word], known: Program) -> frozenset[str]:
    """The options that take a value behind the verb that is given."""
    if not known.bare:
        return known.takes
    _, at = take_apart(words, known.takes, leading=True)
    verb = [word.text for word in words[at : at + 2]]
    is_bare = bool(known.bare & {"_".join(verb[:1]), "_".join(verb)})
    return frozenset(option for option in known.takes if len(option) > 2) if is_bare else known.takes


def _deciding(command: Simple, known: Program) -> list[tuple[Rule, Call]] | None:
    """The rules that fit a call, up to the first that decides; None if it only asks how it is called."""
    words = command.words[1:]
    if known.dashless and words and not words[0].text.startswith("-"):
        words = (words[0].but(text="-" + words[0].text), *words[1:])
    call, _ = take_apart(words, _taking(words, known), clusters=known.clusters)
    # What runs the programs of others may hand the question on to them.
    if {word.text for word in (words if known.otherwise == READS else words[:1])} & {"--help", "--version"}:
        return None
    found = []
    for each in known.rules:
        inner = _fitting(each, call, command)
        if inner is None:
            continue
        if each.verbs and not inner.operands and inner.names & {"--help", "-h"}:
            return None  # what the verb does is asked, and it is given nothing to do it with
        found.append((each, inner))
        if not each.also:
            break
    return found


def _fitting(rule: Rule, call: Call, command: Simple) -> Call | None:
    """The call without the rule's verb, if the rule fits it."""
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
            if kind != "path":  # without an operand nothing is written; but a default remote is there
                yield kind, program_name(command)  # type: ignore[misc]


def _what(kind: str, where: str, call: Call, here: str, command: Simple) -> Iterator[str]:
    """What a rule's `where` means for this call; nothing if it is not given."""
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
    """The operands before the first option, as `find` has them."""
    starts = itertools.takewhile(lambda word: word.text[:1] not in {"-", "(", "!"}, call.words)
    return (word.text for word in starts)


def _mounted(call: Call) -> Iterator[str]:
    """The directories of this machine that a container may write: a name without a slash is a volume of its own."""
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
    """The values of options; also of one that is a flag for other verbs, and so was not known to take any."""
    return call.values_of(options) or [
        following for option, following in itertools.pairwise(call.words) if option.text in options
    ]


def _host(text: str) -> str:
    """The host of an address, without the password that may be in it; any other name as it is."""
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
