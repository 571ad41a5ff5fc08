"""The server's secret: the token for HTTP, and the key that seals task ids."""

from __future__ import annotations

import hmac
import os
import secrets
from typing import TYPE_CHECKING

from outlive.bundle.atomic_file import temporary_name
from outlive.domain.errors import Unavailable

if TYPE_CHECKING:
    from outlive.bundle.home import Home

_SHORTEST = 32
_SEAL = 32


def token_file(home: Home) -> str:
    """Return the path of the secret, which only its owner can read."""
    return f"{home.path}/mcp-token"


def read_secret(home: Home) -> str:
    """Return the secret that all servers of this state directory share, made once."""
    path = token_file(home)
    try:
        return _read(path)
    except FileNotFoundError:
        pass
    fresh = temporary_name(path)
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, f"{secrets.token_urlsafe(32)}\n".encode("ascii"))
        os.fsync(fd)
    finally:
        os.close(fd)
    try:
        os.link(fresh, path)  # if two servers begin at once, one link succeeds, and both read that file
    except FileExistsError:
        pass
    finally:
        os.unlink(fresh)
    return _read(path)


def _read(path: str) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mode, text = os.fstat(fd).st_mode, os.read(fd, 4096).decode("ascii", "replace").strip()
    finally:
        os.close(fd)
    if mode & 0o077 or len(text) < _SHORTEST:
        raise Unavailable(f"{path} can be read by other users, or is too short", "delete the file: a new one is made")
    return text


def sealed(secret: str, task: str) -> str:
    """Return a task's id with a seal: unguessable, and the same from every server."""
    return f"{task}.{_seal(secret, task)}"


def unsealed(secret: str, name: str) -> str | None:
    """Return the task of a sealed id; None if another secret made the seal."""
    task, _, seal = name.partition(".")
    is_ours = hmac.compare_digest(seal.encode("utf-8", "replace"), _seal(secret, task).encode("ascii"))
    return task if is_ours else None


def _seal(secret: str, task: str) -> str:
    return hmac.new(secret.encode("ascii"), f"task {task}".encode("utf-8", "replace"), "sha256").hexdigest()[:_SEAL]
