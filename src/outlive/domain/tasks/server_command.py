"""The texts of servers and watchers, which run until they are ended.

A text that is not listed here says nothing. A task may also prove to be a server because it listens on a port.
"""

from __future__ import annotations

from outlive.domain.tasks.shells_and_wrappers import POSIX_SHELLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Programs that always run until they are ended.
_ALWAYS = _names(
    "air browser-sync cloudflared daphne entr fswatch gunicorn http-server hypercorn json-server live-server"
    " memcached mongod mysqld nginx ngrok nodemon postgres puma redis-server uvicorn waitress-serve watchexec watchman"
    " webpack-dev-server"
)
# Programs that run until they are ended, unless one of the words follows.
_UNLESS = {"vite": _names("build optimize"), "vitepress": _names("build init")}
# Programs that run until they are ended with one of these commands, which mean something else for other programs.
_ONLY_WITH = {"flask": _names("run"), "streamlit": _names("run"), "caddy": _names("run")}
# Programs that have several commands, of which some run until they are ended.
_PROGRAMS = _names(
    "artisan astro bun cargo deno django-admin docsify dotnet eleventy expo gatsby hugo jekyll just make"
    " manage.py mix mkdocs next ng npm nuxi nuxt nx php pnpm rails remix rollup rspack sails serverless storybook"
    " svelte-kit symfony task trunk turbo vue-cli-service webpack wrangler yarn"
)
_COMMANDS = _names("dev develop preview runserver s serve server start watch")
_COMMAND_ENDINGS = (":dev", ":serve", ":start", ":watch")
_MOST_WORDS_BEFORE_COMMAND = 3
_COMPOSE, _CONTAINERS = _names("docker-compose podman-compose"), _names("docker podman nerdctl")
_NOT_WITH_COMPOSE = _names("-d --detach --wait")
# Programs that run another program, which their words name.
_WRAPPERS = _names(
    "npx bunx pnpx dlx exec run env python python3 uv uvx poetry pipenv pdm pipx bundle sudo nice nohup time yarn npm"
    " pnpm bun deno"
)
_KNOWN = _ALWAYS | _PROGRAMS | _COMPOSE | _CONTAINERS | frozenset(_UNLESS) | frozenset(_ONLY_WITH)
# Words that mean the same for every program.
_EVERYWHERE = _names("--serve --watch --watchAll http.server port-forward runserver")
_NOT_WITH = _names("--help -h --version --once --no-watch --watch=false")
_SEPARATORS = str.maketrans(dict.fromkeys(";&|()\n`", "\n"))
_QUOTES = str.maketrans("", "", "'\"")


def runs_until_ended(argv: Sequence[str]) -> bool:
    """Return whether a command is known to be a server or a watcher.

    For a line of shell, one such command in the line is enough.
    """
    return any(map(_is_server, _simple_commands(argv)))


def _simple_commands(argv: Sequence[str]) -> Iterator[list[str]]:
    """Yield the words of each simple command, without quotes and variables."""
    is_shell = len(argv) >= 3 and argv[0].rpartition("/")[2] in POSIX_SHELLS and argv[-2] == "-c"
    lines = argv[-1].translate(_SEPARATORS).splitlines() if is_shell else None
    for words in [list(argv)] if lines is None else [line.translate(_QUOTES).split() for line in lines]:
        yield [word for at, word in enumerate(words) if at or "=" not in word]


def _is_server(words: list[str]) -> bool:
    """Return whether the words of a simple command are those of a server or a watcher."""
    if not _NOT_WITH.isdisjoint(words):
        return False
    names = [word.rpartition("/")[2] for word in words]
    at = _index_of_program(words, names)
    if at is None:
        return not _EVERYWHERE.isdisjoint(names)
    name, after = names[at], names[at + 1 :]
    if name in _UNLESS:
        return _UNLESS[name].isdisjoint(after)
    if name in _ONLY_WITH:
        return not _ONLY_WITH[name].isdisjoint(after)
    if name in _COMPOSE or (name in _CONTAINERS and after[:1] == ["compose"]):
        return "up" in after and _NOT_WITH_COMPOSE.isdisjoint(after)
    if name in _PROGRAMS and any(map(_is_command, after[:_MOST_WORDS_BEFORE_COMMAND])):
        return True
    return name in _ALWAYS or not _EVERYWHERE.isdisjoint(names)


def _is_command(word: str) -> bool:
    """Return whether a word is a command such as `dev`, or a script `test:watch`."""
    return word in _COMMANDS or word.endswith(_COMMAND_ENDINGS)


def _index_of_program(words: list[str], names: list[str]) -> int | None:
    """Return the index of the program that a simple command runs.

    The program may stand behind wrappers such as `npx`. Returns None if no known program stands there.
    """
    for at, name in enumerate(names):
        if name in _KNOWN and not (name in _WRAPPERS and _has_known_program(names[at + 1 : at + 3])):
            return at
        if name not in _WRAPPERS and not words[at].startswith("-") and "=" not in words[at]:
            return None
    return None


def _has_known_program(names: Sequence[str]) -> bool:
    return not _KNOWN.isdisjoint(names)
