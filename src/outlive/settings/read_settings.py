"""The reader of the user's settings file, `$XDG_CONFIG_HOME/outlive/config.toml`.

A file in a repository must not configure Outlive. So the settings file must belong to the user or to root, and no other
user may be able to change it. It must not be in the worktree in which the task works.
"""

from __future__ import annotations

import os
import stat

from outlive.domain.agents.agent_settings import (
    AgentLimits,
    AgentSettings,
    ClientSettings,
    ModelSettings,
    Preset,
    is_within,
)
from outlive.domain.errors import UserError
from outlive.settings.check_names import check_names
from outlive.settings.check_values import BadKey, checked, dotted
from outlive.settings.schema import ROOT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_MOST_BYTES = 1 << 20
_MOST_LINKS = 40
_LIMITS = ("budget_usd", "max_tokens", "max_turns")


def settings_path(environ: Mapping[str, str]) -> str | None:
    """Return the path of the settings file, whether or not the file exists.

    Returns None if the home directory is unknown.
    """
    # The XDG specification demands that a relative path is ignored.
    if (given := environ.get("XDG_CONFIG_HOME", "")).startswith("/"):
        return os.path.abspath(given) + "/outlive/config.toml"
    if (given := environ.get("HOME", "")).startswith("/"):
        return os.path.abspath(given) + "/.config/outlive/config.toml"
    return None


def read_agent_settings(environ: Mapping[str, str], project: str | None) -> AgentSettings:
    """Return the user's settings for agents. Without a settings file, return defaults.

    `project` is the path of the task's project without symbolic links. Raises `UserError` if the file cannot be read,
    is not safe from other users or contains an error.
    """
    path = settings_path(environ)
    content = None if path is None else _content(path, project)
    if path is None or content is None:
        return AgentSettings()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}, line {line}: this is not UTF-8", "save the file in UTF-8") from error
    return parse_agent_settings(text, path)


def parse_agent_settings(text: str, path: str) -> AgentSettings:
    """Return the settings in a TOML text. Errors name the file `path`."""
    import tomllib  # noqa: PLC0415 - only users with a settings file need this import

    try:
        document = tomllib.loads(text)
    except RecursionError as error:
        raise UserError(f"{path} is nested too deeply", "use at most five levels; no key needs more") from error
    except ValueError as error:
        raise _not_toml(text, path, str(error)) from error
    try:
        return _settings(checked(ROOT, document).get("agents", {}), path)
    except BadKey as error:
        from outlive.settings.key_line import line_of  # noqa: PLC0415 - only an error needs this import

        line = line_of(text, error.where)
        place = path if line is None else f"{path}, line {line}"
        raise UserError(f"{place}: {error.fact}", error.hint) from error


def _not_toml(text: str, path: str, why: str) -> UserError:
    """Return the error for a text that is not valid TOML.

    The number of the line is taken from the message of the parser `tomllib`.
    """
    fact, has_place, place = why.rpartition(" (at ")
    number = place.removeprefix("line ").partition(",")[0]
    if not has_place:
        return UserError(f"{path} is not TOML: {why[:200]}", "correct the file")
    if not number.isdecimal():
        number = str(text.rstrip("\n").count("\n") + 1)
    return UserError(f"{path}, line {number}: this is not TOML: {fact[:200]}", "correct this line or the line before")


def _content(path: str, project: str | None) -> bytes | None:
    """Return the content of the file, or None if there is no file."""
    try:
        # Without O_NONBLOCK, this call would wait forever if the path is a FIFO.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError) as error:
        if os.path.islink(path):
            raise UserError(f"{path} is a link to nothing", "correct the link or remove it") from error
        return None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    try:
        found = os.fstat(fd)
        _check_kind(path, found)
        _check_trust(path, found, project)
        content = b""
        while len(content) <= _MOST_BYTES and (piece := os.read(fd, _MOST_BYTES + 1 - len(content))):
            content += piece
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(fd)
    if len(content) > _MOST_BYTES:
        raise _too_large(path)
    return content


def _unreadable(path: str, error: OSError | ValueError) -> UserError:
    why = error.strerror if isinstance(error, OSError) else str(error)
    return UserError(f"the settings file {path} cannot be read: {why}", "make the file readable for you, or remove it")


def _too_large(path: str) -> UserError:
    return UserError(f"the settings file {path} is larger than {_MOST_BYTES >> 20} MiB", "shorten the file")


def _check_kind(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        what = "a directory" if stat.S_ISDIR(found.st_mode) else "not a regular file"
        raise UserError(f"the settings file {path} is {what}", "replace it with a file, or remove it")
    if found.st_size > _MOST_BYTES:
        raise _too_large(path)


def _check_trust(path: str, found: os.stat_result, project: str | None) -> None:
    """Raise `UserError` if another user or a repository may have written the file."""
    directory = os.path.dirname(os.path.realpath(path))
    for name, one in ((path, found), (directory, os.stat(directory))):
        if one.st_uid not in (os.geteuid(), 0):
            raise UserError(
                f"{name} belongs to user {one.st_uid}, not to you ({os.geteuid()}), so the settings are not read",
                f"make it yours: chown {os.geteuid()} {name}",
            )
        # In a directory such as /tmp, the sticky bit prevents other users from replacing the file.
        if one.st_mode & 0o022 and not (stat.S_ISDIR(one.st_mode) and one.st_mode & stat.S_ISVTX):
            raise UserError(
                f"{name} can be written by others (mode {one.st_mode & 0o777:o}), so the settings are not read",
                f"chmod go-w {name}",
            )
    if project is None or not os.path.lexists(project + "/.git"):
        return
    if any(is_within(place, project) for place in _places(path)):
        raise UserError(
            f"the settings file {path} lies in {project}, the repository that the task works in, so it is not read",
            "point XDG_CONFIG_HOME to a directory outside of the repository, which must not configure Outlive",
        )


def _places(path: str) -> Iterator[str]:
    """Yield a path, and the paths to which its symbolic links lead."""
    for _ in range(_MOST_LINKS):
        yield path
        path = os.path.realpath(os.path.dirname(path)) + "/" + os.path.basename(path)
        yield path
        try:
            path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
        except OSError:
            return


def _settings(found: Mapping[str, Any], path: str) -> AgentSettings:
    """Return the settings made from checked values. Raise `BadKey` for a wrong name."""
    names = ("client", "depth", "at_once", "at_once_per_provider", "most_calls", "idle_timeout")
    settings = AgentSettings(
        path=path,
        **{name: found[name] for name in names if name in found},
        limits=_limits(found),
        fallback=tuple(found.get("fallback", ())),
        clients={name: _client(each) for name, each in found.get("clients", {}).items()},
        models={name: _model(each) for name, each in found.get("models", {}).items()},
        categories={name: _preset(each) for name, each in found.get("categories", {}).items()},
        projects=_projects(found.get("projects", {})),
    )
    check_names(settings)
    return settings


def _limits(found: Mapping[str, Any]) -> AgentLimits:
    return AgentLimits(**{name: found[name] for name in _LIMITS if name in found})


def _client(found: Mapping[str, Any]) -> ClientSettings:
    own = {name: found[name] for name in ("model", "provider", "at_once") if name in found}
    return ClientSettings(**own, table={name: value for name, value in found.items() if name not in own})


def _model(found: Mapping[str, Any]) -> ModelSettings:
    return ModelSettings(is_unstable=found.get("unstable"), at_once=found.get("at_once"))


def _preset(found: Mapping[str, Any]) -> Preset:
    return Preset(
        client=found.get("client"),
        model=found.get("model"),
        is_unstable=found.get("unstable", False),
        fallback=None if "fallback" not in found else tuple(found["fallback"]),
        limits=_limits(found),
    )


def _projects(found: Mapping[str, Any]) -> dict[str, Preset]:
    """Return the settings of projects, by the project's path without symbolic links.

    The path of a task's project has no symbolic links either, so the two can be compared.
    """
    presets: dict[str, Preset] = {}
    for name, each in found.items():
        where = ("agents", "projects", name)
        if not name.startswith("/"):
            raise BadKey(where, f"{dotted(where)} is not an absolute path", "begin the path with /")
        path = os.path.realpath(name)
        if path in presets:
            raise BadKey(where, f"{dotted(where)} is the same directory as an earlier table", "join the two tables")
        presets[path] = _preset(each)
    return presets
