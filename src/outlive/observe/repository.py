"""Which repository a directory lies in, and where its parts are; found as git finds it.

Only files are read, and no git runs, so that nothing a repository configures can be executed.
GIT_DIR and its like are ignored: what a task touched does not depend on who looks. A mount is not
crossed on the way up, as git does not either.
"""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISREG

from outlive.domain.value import Value
from outlive.observe.safe_read import Unknown, read_regular

_LINK_BYTES = 8192
_CONFIG_BYTES = 256 << 10
_MARK = b"gitdir: "


class Repository(Value):
    """A repository as it lies on disk."""

    top: str | None
    git_dir: str
    common_dir: str
    broken: str | None = None
    """Why it cannot be read, if it cannot."""

    @property
    def identity(self) -> str:
        """Of its git directory; empty if that is gone."""
        try:
            found = os.stat(self.git_dir)
        except (OSError, ValueError):
            return ""
        return f"{found.st_dev:x} {found.st_ino:x}"


def find_repository(directory: str) -> Repository | None:
    """The repository that a directory, or a path in it that need not exist, lies in; None if in none."""
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
            pass  # it need not be there
        if device is not None and at != device:
            return broken
        device = at
        found = repository_at(place)
        if found is not None and found.broken is None:
            return found
        # git walks past a damaged one, into whatever lies around it. So do we, if there is anything.
        broken = broken or found
        above = os.path.dirname(place)
        if above == place:
            return broken
        place = above


def repository_at(place: str) -> Repository | None:
    """The repository whose top, or bare self, is exactly there."""
    inside = place.rstrip("/") + "/.git"
    try:
        mode = os.stat(inside).st_mode
    except FileNotFoundError:
        return _with_parts(None, place) if _is_git_dir(place) else None
    except (OSError, ValueError):
        # A loop of symbolic links, or something that we may not look at.
        return _broken(place, inside, ".git cannot be read")
    if S_ISDIR(mode):
        return _with_parts(place, inside) if _is_git_dir(inside) else _broken(place, inside, "no git directory")
    if not S_ISREG(mode):
        return _broken(place, inside, ".git is neither file nor directory")
    try:
        content = read_regular(os.path.realpath(inside), _LINK_BYTES) or b""
    except Unknown as error:
        return _broken(place, inside, f".git: {error}")
    named = os.fsdecode(content.removeprefix(_MARK).rstrip(b"\r\n"))
    if not content.startswith(_MARK) or not named or "\0" in named:
        return _broken(place, inside, ".git names no directory")
    git_dir = os.path.realpath(os.path.join(place, named))
    if not _is_git_dir(git_dir):
        return _broken(place, git_dir, ".git leads nowhere")
    return _with_parts(place, git_dir)


def _with_parts(top: str | None, git_dir: str) -> Repository:
    try:
        return Repository(top=top, git_dir=git_dir, common_dir=_shared_dir(git_dir))
    except Unknown as error:
        return _broken(top, git_dir, f"commondir: {error}")


def _shared_dir(git_dir: str) -> str:
    """Where refs, objects and configuration are: for a linked worktree, not in its own git directory."""
    content = read_regular(git_dir + "/commondir", _LINK_BYTES)
    if content is None:
        return git_dir
    named = os.fsdecode(content.rstrip(b"\r\n"))
    if not named or "\0" in named:
        raise Unknown("names no directory")
    return os.path.realpath(os.path.join(git_dir, named))


def _is_git_dir(path: str) -> bool:
    """Whether git would take it for one: a HEAD, and objects and refs here or in the common directory."""
    try:
        if not os.path.lexists(path + "/HEAD"):
            return False
        common = _shared_dir(path)
    except (Unknown, ValueError):
        return False
    return os.path.isdir(common + "/objects") and os.path.lexists(common + "/refs")


def _broken(top: str | None, git_dir: str, reason: str) -> Repository:
    return Repository(top=top, git_dir=git_dir, common_dir=git_dir, broken=reason)


def read_config(repository: Repository) -> tuple[str, dict[str, str]]:
    """An id of the repository's own configuration, and what it sets; includes are not followed."""
    from _blake2 import blake2b  # noqa: PLC0415 - hashlib would cost four milliseconds

    contents = [
        read_regular(repository.common_dir + "/config", _CONFIG_BYTES) or b"",
        read_regular(repository.git_dir + "/config.worktree", _CONFIG_BYTES) or b"",
    ]
    settings = {name: text for content in contents for name, text in _settings(os.fsdecode(content)).items()}
    return blake2b(b"\0".join(contents), digest_size=16).hexdigest(), settings


def read_settings(path: str) -> dict[str, str]:
    """What one configuration file sets; nothing if it cannot be read."""
    try:
        return _settings(os.fsdecode(read_regular(path, _CONFIG_BYTES) or b""))
    except Unknown:
        return {}


def _settings(text: str) -> dict[str, str]:
    """`section.key` to text, in lower case but for the text. Good enough for settings without a subsection."""
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
