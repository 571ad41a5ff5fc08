"""Object ids of file contents, computed from the bytes on disk without git.

Git is not used, because it would run the programs that the repository configures as filters. So filters and conversions
of line endings are not applied here.
"""

from __future__ import annotations

import os
from stat import S_IFDIR, S_IFMT, S_IFREG, S_ISLNK, S_ISREG
from struct import Struct

from outlive.domain.git.snapshot import GITLINK, GONE, HASHED, UNHASHED, UNSEEN
from outlive.observe.git.safe_read import Unknown, read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha1 as built_in_sha1
else:
    from _sha1 import sha1 as built_in_sha1

MOST_HASHED = 4 << 20
# Python's own SHA-1 hashes this many bytes in less time than `hashlib` needs to load OpenSSL.
_SHORT = 256 << 10
_pack = Struct(">9I").pack
_MASK = 0xFFFFFFFF


def stamp_from(found: os.stat_result) -> bytes:
    """Return the fields of a stat result in the form that the git index uses.

    The git index keeps 32 bits of each number.
    """
    seconds, nanoseconds = divmod(found.st_ctime_ns, 10**9)
    written, written_ns = divmod(found.st_mtime_ns, 10**9)
    return _pack(
        seconds & _MASK,
        nanoseconds,
        written & _MASK,
        written_ns,
        found.st_ino & _MASK,
        _mode(found.st_mode),
        found.st_uid & _MASK,
        found.st_gid & _MASK,
        0 if S_IFMT(found.st_mode) == S_IFDIR else found.st_size & _MASK,
    )


def _mode(mode: int) -> int:
    kind = S_IFMT(mode)
    if kind == S_IFREG:
        return S_IFREG | (0o755 if mode & 0o100 else 0o644)
    return GITLINK if kind == S_IFDIR else kind


def content_id(name: bytes, mode: int, id_bytes: int, dir_fd: int | None = None) -> bytes | None:
    """Return git's blob id of a file or symbolic link, or None if reading fails.

    `id_bytes` is the length of the id. `name` is relative to the directory `dir_fd`.
    """
    try:
        if S_ISREG(mode):
            content = read_regular(name, MOST_HASHED, dir_fd)
        elif S_ISLNK(mode):
            content = os.readlink(name, dir_fd=dir_fd)
        else:
            return None
    except (OSError, Unknown):
        return None
    if content is None:
        return None
    blob = b"blob %d\0" % len(content) + content
    return sha1_of(blob) if id_bytes == 20 else sha256_of(blob)


def sha1_of(content: bytes) -> bytes:
    """Return the SHA-1 digest of some bytes."""
    if len(content) < _SHORT:
        return built_in_sha1(content).digest()
    from hashlib import sha1  # noqa: PLC0415 - this import loads OpenSSL, which saves time only for many bytes

    return sha1(content, usedforsecurity=False).digest()


def sha256_of(content: bytes) -> bytes:
    """Return the SHA-256 digest of some bytes."""
    from hashlib import sha256  # noqa: PLC0415 - few repositories use SHA-256

    return sha256(content).digest()


def look_at(path: str) -> bytes:
    """Return the state of a path, in the form that snapshots use."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return GONE
    except (OSError, ValueError):
        return UNSEEN
    content = content_id(os.fsencode(path), found.st_mode, 20)
    return (HASHED if content else UNHASHED) + stamp_from(found) + (content or b"")
