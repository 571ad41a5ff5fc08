"""The server's secret: who knows it may call over HTTP, and task ids are sealed with it."""

from __future__ import annotations

import hmac
import os
import secrets
from typing import TYPE_CHECKING

from outlive.domain.errors import Unavailable

if TYPE_CHECKING:
    from outlive.bundle.home import Home

_SHORTEST = 32
_SEAL = 32


def token_file(home: Home) -> str:
    """Where the secret lies, readable for its owner alone."""
    return f"{home.path}/mcp-token"


def read_secret(home: Home) -> str:
    """The secret of this state directory, made on first use; every server of it has the same."""
    path = token_file(home)
    try:
        return _read(path)
    except FileNotFoundError:
        pass
    fresh = f"{path}.{os.getpid()}"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, f"{secrets.token_urlsafe(32)}\n".encode("ascii"))
        os.fsync(fd)
    finally:
        os.close(fd)
    try:
        os.link(fresh, path)  # of two servers that begin at once, one is first, and both read what it wrote
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
        raise Unavailable(f"{path} is open to others, or is no token", "delete it: another one is made")
    return text


def sealed(secret: str, task: str) -> str:
    """A task's id that nobody can guess, the same for every server of this state directory."""
    return f"{task}.{_seal(secret, task)}"


def unsealed(secret: str, name: str) -> str | None:
    """The task of a sealed id; None if it was not sealed here."""
    task, _, seal = name.partition(".")
    is_ours = hmac.compare_digest(seal.encode("utf-8", "replace"), _seal(secret, task).encode("ascii"))
    return task if is_ours else None


def _seal(secret: str, task: str) -> str:
    return hmac.new(secret.encode("ascii"), f"task {task}".encode("utf-8", "replace"), "sha256").hexdigest()[:_SEAL]
