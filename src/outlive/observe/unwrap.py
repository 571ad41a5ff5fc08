"""Commands that run commands: what they run is read instead of them."""

from __future__ import annotations

import shlex
from functools import reduce

from outlive.domain.value import Value
from outlive.observe.options import take_apart
from outlive.observe.shell import ANY_WORD, VARIABLES_OF_GIT, Elsewhere, Scope, Word, join, one_line, program_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.domain.declared import TouchKind
    from outlive.observe.options import Call
    from outlive.observe.shell import Reader, Simple

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash"))


class Wrapper(Value):
    """How to find the command that a program runs: after its options, and so many operands."""

    takes: frozenset[str] = frozenset()
    operands: int = 0
    directory: frozenset[str] = frozenset()
    """Options by which it changes the directory."""
    supplies: bool = False
    """Whether it adds words of its own to the command."""
    elsewhere: TouchKind | None = None
    """The kind of place where the command runs; its name is the operand before it."""
    writes: frozenset[str] = frozenset()
    """Options that name files it writes."""
    reads: frozenset[str] = frozenset()
    """Options that name files it reads."""
    is_text: bool = False
    """Whether it joins its words and gives them to a shell."""
    is_below: bool = False
    """Whether the command runs in directories below, which the text does not name."""


def _wrapper(
    takes: str = "",
    *,
    operands: int = 0,
    directory: str = "",
    writes: str = "",
    reads: str = "",
    elsewhere: TouchKind | None = None,
    supplies: bool = False,
    is_text: bool = False,
    is_below: bool = False,
) -> Wrapper:
    return Wrapper(
        takes=frozenset(takes.split()),
        operands=operands,
        directory=frozenset(directory.split()),
        writes=frozenset(writes.split()),
        reads=frozenset(reads.split()),
        elsewhere=elsewhere,
        supplies=supplies,
        is_text=is_text,
        is_below=is_below,
    )


_SSH = "-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w"
_XARGS = "-I -n -P -d -L -s -a -E --max-args --max-procs --delimiter --replace --arg-file --max-lines"
_EXEC = "-e -u -w -c -n --env --user --workdir --container --namespace --index --detach-keys"
# By name, or by name and verb. What they do beside running the command is of no account here.
WRAPPERS: dict[str, Wrapper] = {
    "sudo": _wrapper("-u -g -h -p -C -D -R -r -t -T -U --user --group --host --prompt --chdir", directory="-D --chdir"),
    "doas": _wrapper("-u -C"),
    "pkexec": _wrapper("--user"),
    "env": _wrapper("-u -C --unset --chdir", directory="-C --chdir"),
    **dict.fromkeys(
        ("nohup", "setsid", "coproc", "builtin", "unbuffer", "caffeinate", "fakeroot", "busybox"), _wrapper()
    ),
    "command": _wrapper(),
    "exec": _wrapper("-a"),
    "nice": _wrapper("-n --adjustment"),
    "ionice": _wrapper("-c -n -p --class --classdata"),
    "chrt": _wrapper(operands=1),
    "taskset": _wrapper(operands=1),
    "timeout": _wrapper("-s -k --signal --kill-after", operands=1),
    "gtimeout": _wrapper("-s -k --signal --kill-after", operands=1),
    "time": _wrapper("-f -o --format --output", writes="-o --output"),
    "stdbuf": _wrapper("-i -o -e --input --output --error"),
    "strace": _wrapper("-e -o -p -s -E -u --output", writes="-o --output"),
    "watch": _wrapper("-n --interval", is_text=True),
    "chroot": _wrapper("--userspec --groups", operands=1),
    "systemd-run": _wrapper("-p -u -t --unit --property"),
    "xvfb-run": _wrapper("-n -s -e --server-num --server-args"),
    "xargs": _wrapper(_XARGS, reads="-a --arg-file", supplies=True),
    "parallel": _wrapper(
        "-j -S -a -C --jobs --joblog --results --arg-file", reads="-a --arg-file", writes="--joblog", supplies=True
    ),
    "flock": _wrapper("-w -E --timeout", operands=1),
    "ssh": _wrapper(_SSH, operands=1, elsewhere="remote", is_text=True),
    "npx": _wrapper("-p --package"),
    "bunx": _wrapper(),
    "uvx": _wrapper("--from --with -p --python"),
    "uv run": _wrapper("-p --python --with --extra --group --directory --project --env-file", directory="--directory"),
    **dict.fromkeys(("poetry run", "pipenv run", "pdm run", "pipx run", "bundle exec", "dotenv run"), _wrapper()),
    **dict.fromkeys(("pnpm exec", "pnpm dlx", "yarn dlx", "yarn exec", "npm exec"), _wrapper("-p --package")),
    **dict.fromkeys(
        ("conda run", "mamba run", "micromamba run"), _wrapper("-n -p --name --prefix --cwd", directory="--cwd")
    ),
    "direnv exec": _wrapper(operands=1),
    **dict.fromkeys(("python -m", "python3 -m"), _wrapper()),
    **dict.fromkeys(("docker exec", "podman exec"), _wrapper(_EXEC, operands=1, elsewhere="container")),
    **dict.fromkeys(
        ("docker compose exec", "podman compose exec", "docker-compose exec"),
        _wrapper(_EXEC, operands=1, elsewhere="container"),
    ),
    "runuser": _wrapper("-u -g -G --user --group --supp-group"),
    "git submodule foreach": _wrapper(is_text=True, is_below=True),
    "kubectl exec": _wrapper(_EXEC, operands=1, elsewhere="remote"),
}
_LOGS = ("-O", "-I", "-B", "-T", "--log-out", "--log-in", "--log-io", "--log-timing")
_WITH_TEXT = frozenset(("-c", "--command", "-g", "-G", "-s", "-w", "-E", "-o", "-m", *_LOGS))
_BEFORE_VERB_OF_GIT = frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace"))
# Options that may stand between a program and its verb.
_BEFORE_VERB = frozenset(("-n", "-f", "-p", "--namespace", "--context", "--file", "--project-name", "--directory"))


def unwrap(reader: Reader, command: Simple, scope: Scope, depth: int) -> bool:
    """Read what the command runs; False if it runs nothing, or nothing that its text tells."""
    words, name = command.words, program_name(command)
    if not name:
        return False
    if name in SHELLS:
        return _shell(reader, command, scope, depth)
    if name in {"eval", "trap"}:
        return _text_of_words(reader, command, words[1:] if name == "eval" else words[1:2], scope, depth)
    if name in {"su", "runuser", "script", "flock"} and _texted(reader, command, scope, depth):
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
    """The wrapper that the first words name, and where its own options begin."""
    name = "python" if name.startswith("python") and name[6:].replace(".", "").isdigit() else name
    if name in WRAPPERS:
        return WRAPPERS[name], 1
    if name == "python":
        at = 1
        while at < len(words) and words[at].text.startswith("-") and words[at].text not in {"-m", "-c"}:
            at += 2 if words[at].text in {"-X", "-W"} else 1
        name = words[at].text if at < len(words) else ""
        is_told = name == "-m" or name.endswith("manage.py")
        return (WRAPPERS["python -m"], at + (name == "-m")) if is_told else (None, 0)
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


def _texted(reader: Reader, command: Simple, scope: Scope, depth: int) -> bool:
    """A text that a program gives to a shell; `script` writes down what that shows."""
    call, _ = take_apart(command.words[1:], _WITH_TEXT)
    text = call.value_of(("-c", "--command"))
    if text is None or call.names & {"-u", "--user"}:
        return False
    if program_name(command) == "script":
        logs = call.values_of(_LOGS) or call.operands[:1] or (Word(text="typescript"),)
        command = command.but(writes=(*command.writes, *logs))
    return _text_of_words(reader, command, (text,), Scope(scope.directory, scope.elsewhere), depth)


def _split(words: Sequence[Word]) -> tuple[Word, ...]:
    """What `env -S` makes of its one word; nothing without that."""
    call, at = take_apart(words[1:], WRAPPERS["env"].takes | {"-S", "--split-string"}, leading=True)
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
    call, used = take_apart(words[at:], wrapper.takes, leading=True)
    at += used
    if "-v" in call.names and words[0].text == "command":
        return False
    while wrapper.operands == 0 and at < len(words) and "=" in words[at].text.partition("/")[0]:
        name, _, value = words[at].text.partition("=")
        if name in VARIABLES_OF_GIT:
            command = command.but(sets=(*command.sets, (name, words[at].but(text=value))))
        at += 1  # assignments, as `env` and `sudo` take them
    inner = list(words[at + wrapper.operands :])
    dashes = next((i for i, word in enumerate(inner) if word.text == "--"), None)
    if dashes is not None and (dashes == 0 or words[0].text == "kubectl"):
        inner = inner[dashes + 1 :]
    inside = _inside(wrapper, call, words[at : at + 1], command, scope)
    if inside.elsewhere is not command.elsewhere:
        command = command.but(sets=())
    if wrapper.is_text and (inner or command.stdin is not None):
        if not inner:
            return _text_of_input(reader, command, inside, depth)
        return _text_of_words(reader, command, inner, inside, depth)
    if not inner:
        return False
    if wrapper.supplies:
        one = call.value_of(("-n", "-L", "--max-args", "--max-lines"))
        inner = _supplied(inner, call.value_of(("-I", "--replace")), 1 if one is not None and one.text == "1" else 2)
    line = command.line if wrapper.elsewhere else one_line(" ".join(word.text for word in inner))
    writes = (*command.writes, *call.values_of(tuple(wrapper.writes)))
    reads = (*command.reads, *call.values_of(tuple(wrapper.reads)))
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
    """Where the command of a wrapper runs, and what it knows there."""
    if wrapper.elsewhere and named:
        return Scope("~", Elsewhere(kind=wrapper.elsewhere, name=named[0].text))
    target = call.value_of(tuple(wrapper.directory))
    directory = f"{scope.directory}/{ANY_WORD.text}" if wrapper.is_below else scope.directory
    inside = Scope(join(directory, target.text) if target else directory, command.elsewhere)
    inside.functions, inside.variables = scope.functions, scope.variables
    return inside


def _supplied(inner: list[Word], mark: Word | None, count: int) -> list[Word]:
    """The command of `xargs` with so many words for what it will be given."""
    stop = next((i for i, word in enumerate(inner) if word.text in {":::", "::::"}), len(inner))
    inner = inner[:stop]
    text = mark.text if mark else "{}"
    if any(text in word.text for word in inner):
        return [Word(text=word.text.replace(text, "…"), literal=False) if text in word.text else word for word in inner]
    return [*inner, *(ANY_WORD,) * count]


def _shell(reader: Reader, command: Simple, scope: Scope, depth: int) -> bool:
    """`sh -c text`, or a shell that reads its script from what the text feeds it."""
    call, at = take_apart(command.words[1:], frozenset(("-o", "-O", "--rcfile", "--init-file")), leading=True)
    if "-n" in call.names:
        return False
    inner = Scope(scope.directory, command.elsewhere)
    inner.variables.update(command.sets)
    rest = command.words[1 + at :]
    if "-c" in call.names:
        return bool(rest) and _text_of_words(reader, command, rest[:1], inner, depth)
    return (not rest or "-s" in call.names) and _text_of_input(reader, command, inner, depth)


def _text_of_input(reader: Reader, command: Simple, scope: Scope, depth: int) -> bool:
    """What the text itself feeds to a shell, which is then no longer there for what that runs."""
    text = (Word(text=command.stdin or ""),)
    return _text_of_words(reader, command.but(stdin=None, is_fed=False), text, scope, depth)


def _text_of_words(reader: Reader, command: Simple, words: Sequence[Word], scope: Scope, depth: int) -> bool:
    """Words that a shell will read as text: what is unknown in them may be anything."""
    if not words or not all(word.text for word in words):
        return False
    if not all(word.literal for word in words):
        reader.is_whole = False
    _rest(reader, command, scope, depth)
    reader.read_text(" ".join(word.text for word in words), scope, depth + 1, command)
    return True


def _find(reader: Reader, command: Simple, scope: Scope, depth: int) -> bool:
    """Each `-exec` of a `find`, with the places where it looks for `{}`; `find` itself remains to be judged."""
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
    """What `bisect run` and `rebase --exec` run at every commit; git itself remains to be judged."""
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
    """What remains of a command without its words: its redirections, which the outer shell does, here."""
    if command.writes or command.reads:
        reader.add(command.but(words=(), stdin=None), scope, depth + 1)
