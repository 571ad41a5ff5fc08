"""The search for the git repository that a directory lies in, by git's own rules.

Git is not run, so that no program that a repository configures is executed. GIT_DIR and similar variables are ignored,
because a task's effects do not depend on the environment of the process that reads the repository. For a task's
project, see `service.tasks.launch_context.project_of`.
"""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISREG

from outlive.domain.value import Value
from outlive.observe.git.safe_read import Unknown, read_regular

_LINK_BYTES = 8192
_CONFIG_BYTES = 256 << 10
_MARK = b"gitdir: "


class Repository(Value):
    """A repository on disk."""

    top: str | None
    """The top of the worktree, or None for a bare repository."""
    git_dir: str
    common_dir: str
    """The directory of refs, objects and configuration, which linked worktrees share with the main worktree."""
    broken: str | None = None
    """Why the repository cannot be read, or None if it can be read."""

    @property
    def identity(self) -> str:
        """Device and inode of the git directory, or empty if the directory is gone."""
        try:
            found = os.stat(self.git_dir)
        except (OSError, ValueError):
            return ""
        return f"{found.st_dev:x} {found.st_ino:x}"

    @property
    def is_linked(self) -> bool:
        """Whether this is a linked worktree, and not the main worktree."""
        return self.common_dir != self.git_dir

    @property
    def roots(self) -> tuple[str, str, str]:
        """The top, the git directory and the shared git directory, in resolved form.

        A path is an empty string if the repository has no such directory of its own. Symbolic links are resolved, so
        that these paths can be compared with the recorded paths of a task's changes.
        """
        return self.top or "", os.path.realpath(self.git_dir), self.common_dir if self.is_linked else ""


def find_repository(directory: str) -> Repository | None:
    """Return the repository that a path lies in, or None. The path need not exist.

    Like git, the search skips a damaged repository. A damaged repository is returned only if no other repository is
    found.
    """
    try:
        place = os.path.realpath(directory)
    except (OSError, ValueError):
        return None
    device: int | None = None
    broken: Repository | None = None
    while True:
        at = device
        try:
            at = os.stat(place).st_dev
        except (OSError, ValueError):
            pass  # the path need not exist
        if device is not None and at != device:
            return broken
        device = at
        found = repository_at(place)
        if found is not None and found.broken is None:
            return found
        broken = broken or found
        above = os.path.dirname(place)
        if above == place:
            return broken
        place = above


def repository_at(place: str) -> Repository | None:
    """Return the repository whose top, or bare git directory, is `place`."""
    inside = place.rstrip("/") + "/.git"
    try:
        mode = os.stat(inside).st_mode
    except (FileNotFoundError, NotADirectoryError):
        shared = _shared_dir(place)
        return None if shared is None else Repository(top=None, git_dir=place, common_dir=shared)
    except (OSError, ValueError):
        # The path has a loop of symbolic links, or this process may not search the directory.
        return _broken(place, inside, ".git cannot be read")
    if S_ISDIR(mode):
        git_dir, missing = inside, "no git directory"
    elif S_ISREG(mode):
        try:
            content = read_regular(os.path.realpath(inside), _LINK_BYTES) or b""
        except Unknown as error:
            return _broken(place, inside, f".git: {error}")
        named = os.fsdecode(content.removeprefix(_MARK).rstrip(b"\r\n"))
        if not content.startswith(_MARK) or not named or "\0" in named:
            return _broken(place, inside, ".git names no directory")
        git_dir, missing = os.path.realpath(os.path.join(place, named)), ".git names a directory without a repository"
    else:
        return _broken(place, inside, ".git is neither file nor directory")
    shared = _shared_dir(git_dir)
    if shared is None:
        return _broken(place, git_dir, missing)
    return Repository(top=place, git_dir=git_dir, common_dir=shared)


def _shared_dir(path: str) -> str | None:
    """Return the directory with the objects and refs of a git directory.

    Returns None if git would not accept `path` as a git directory.
    """
    if not os.path.lexists(path + "/HEAD"):
        return None
    try:
        content = read_regular(path + "/commondir", _LINK_BYTES)
    except Unknown:
        return None
    shared = path
    if content is not None:
        named = os.fsdecode(content.rstrip(b"\r\n"))
        if not named or "\0" in named:
            return None
        shared = os.path.realpath(os.path.join(path, named))
    return shared if os.path.isdir(shared + "/objects") and os.path.lexists(shared + "/refs") else None


def _broken(top: str, git_dir: str, reason: str) -> Repository:
    return Repository(top=top, git_dir=git_dir, common_dir=git_dir, broken=reason)


def read_config(repository: Repository) -> tuple[str, dict[str, str]]:
    """Return an id of the repository's own configuration, and its settings."""
    from _blake2 import blake2b  # noqa: PLC0415 - importing hashlib would take four milliseconds

    contents = [
        read_regular(repository.common_dir + "/config", _CONFIG_BYTES) or b"",
        read_regular(repository.git_dir + "/config.worktree", _CONFIG_BYTES) or b"",
    ]
    settings = {name: text for content in contents for name, text in _settings(os.fsdecode(content)).items()}
    return blake2b(b"\0".join(contents), digest_size=16).hexdigest(), settings


def read_settings(path: str) -> dict[str, str]:
    """Return the settings of one configuration file, or none if it is unreadable."""
    try:
        return _settings(os.fsdecode(read_regular(path, _CONFIG_BYTES) or b""))
    except Unknown:
        return {}


def _settings(text: str) -> dict[str, str]:
    """Return the settings in the content of a configuration file, by `section.key`.

    Settings in subsections may be wrong, for example because the names of subsections are lowercased.
    """
    settings: dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        bare = line.strip()
        if bare.startswith("["):
            section = bare[1:].partition("]")[0].strip().lower()
            bare = bare.partition("]")[2].strip()
        if bare and bare[0] not in "#;":
            key, _, given = bare.partition("=")
            settings[f"{section}.{key.strip().lower()}"] = given.strip().strip('"')
    return settings
