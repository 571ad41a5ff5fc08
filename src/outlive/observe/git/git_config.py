"""Git's configuration files outside of a repository.

An include whose condition cannot be checked without git is assumed to apply. While a keeper uses this module, other
processes wait for the end of its task. So this module does not import `re`, which would take time.
"""

from __future__ import annotations

import os

from outlive.observe.git.safe_read import Unknown, read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from outlive.domain.git.snapshot import GitState

_MOST_FILES = 32
_MOST_BYTES = 256 << 10


def configuration_around(git: GitState, environ: Mapping[str, str]) -> list[str]:
    """Return the paths of all git configuration files outside a repository.

    `git` is the recorded state of the repository. The files need not exist.
    """
    home = environ.get("HOME", "")
    xdg = environ.get("XDG_CONFIG_HOME") or home + "/.config"
    usual = (
        [environ["GIT_CONFIG_GLOBAL"]]
        if "GIT_CONFIG_GLOBAL" in environ
        else [xdg + "/git/config", home + "/.gitconfig"]
    )
    if not environ.get("GIT_CONFIG_NOSYSTEM"):
        usual.append(environ.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig"))
    repository = (git.common_dir + "/config", git.git_dir + "/config.worktree")
    # Many users have a symbolic link at such a path. An edit changes the link's target, so return the target's path.
    waiting = [os.path.realpath(path) for path in (*repository, *usual) if path.startswith("/") and path != os.devnull]
    found: dict[str, None] = {}
    while waiting and len(found) < _MOST_FILES:
        path = waiting.pop(0)
        if path not in found:
            found[path] = None
            waiting += _included(path, git.git_dir, home)
    own_files = {os.path.realpath(path) for path in repository}
    return [path for path in found if path not in own_files]


def _included(path: str, git_dir: str, home: str) -> Iterator[str]:
    try:
        lines = os.fsdecode(read_regular(path, _MOST_BYTES) or b"").splitlines()
    except Unknown:
        return
    is_including = False
    for line in lines:
        bare = line.strip()
        if bare.startswith("["):
            section, _, bare = bare[1:].partition("]")
            kind, _, condition = section.partition('"')
            is_including = kind.strip().lower() in {"include", "includeif"} and _holds(
                condition.partition('"')[0], git_dir, os.path.dirname(path), home
            )
        key, equals, value = bare.partition("=")
        if is_including and equals and key.strip().lower() == "path" and "\0" not in value:
            yield os.path.realpath(os.path.join(os.path.dirname(path), _from_home(_plain(value.strip()), home)))


def _plain(value: str) -> str:
    """Return a setting's value without quotes and without the comment after it."""
    if value.startswith('"'):
        return value[1:].partition('"')[0]
    return value.partition("#")[0].partition(";")[0].strip()


def _holds(condition: str, git_dir: str, directory: str, home: str) -> bool:
    """Return whether the condition of an include in git's configuration is met."""
    kind, _, pattern = condition.partition(":")
    if kind not in {"gitdir", "gitdir/i"}:
        return True
    from fnmatch import fnmatchcase  # noqa: PLC0415 - only includes with a condition need this import

    pattern = _from_home(pattern, home)
    if pattern.startswith("./"):
        pattern = directory + pattern[1:]
    elif not pattern.startswith("/"):
        pattern = "*/" + pattern
    pattern += "*" if pattern.endswith("/") else ""
    both = (git_dir, pattern) if kind == "gitdir" else (git_dir.lower(), pattern.lower())
    return fnmatchcase(*both)


def _from_home(path: str, home: str) -> str:
    return home + path[1:] if path.startswith("~/") else path
