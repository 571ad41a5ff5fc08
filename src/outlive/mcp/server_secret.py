"""The secret of the MCP server: the token for HTTP, and the key for signatures.

Clients get each task's id together with its signature. So a client cannot guess the ids of other tasks.
"""

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
    """Return the path of the file with the secret, which only its owner can read."""
    return f"{home.path}/mcp-token"


def read_secret(home: Home) -> str:
    """Return the secret that all servers of this state directory share.

    If there is no secret yet, it is created.
    """
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
        os.link(fresh, path)  # if two servers start at once, only one link succeeds, and both then read that file
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
        raise Unavailable(
            f"{path} can be read by other users, or is too short", "delete the file; the server then makes a new one"
        )
    return text


def sealed(secret: str, task: str) -> str:
    """Return a task's id together with its signature, which a client cannot guess.

    All servers of a state directory give a task the same signature.
    """
    return f"{task}.{_seal(secret, task)}"


def unsealed(secret: str, name: str) -> str | None:
    """Return the task's id from a signed id, or None if the signature is wrong.

    The signature is wrong if it was made with another secret.
    """
    task, _, seal = name.partition(".")
    is_ours = hmac.compare_digest(seal.encode("utf-8", "replace"), _seal(secret, task).encode("ascii"))
    return task if is_ours else None


def _seal(secret: str, task: str) -> str:
    return hmac.new(secret.encode("ascii"), f"task {task}".encode("utf-8", "replace"), "sha256").hexdigest()[:_SEAL]
