"""A short digest of all tracked files: 1024 hashes, each for a group of files.

For a hundred thousand files, a list with an id for each file's content would take megabytes for each task. The hashes
of the groups take four kilobytes.
"""

from __future__ import annotations

from binascii import crc32

from outlive.domain.git.snapshot import GONE, UNSEEN, content_of, mode_of, stamp_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MARKS = 1024
_BYTES = 4
_SIZE = _MARKS * _BYTES


def mark_of(path: bytes) -> int:
    """Return the number of the group of files that a path belongs to."""
    return crc32(path) % _MARKS


def contents_of(tracked: Mapping[bytes, bytes]) -> bytes:
    """Return the hashes of the names, modes and contents of the existing files."""
    from _blake2 import blake2b  # noqa: PLC0415 - a launch loads this module, but computes no hash

    shares: dict[int, list[bytes]] = {}
    for path in sorted(path for path, seen in tracked.items() if seen not in (GONE, UNSEEN)):
        seen = tracked[path]
        stamp = stamp_of(seen)
        held = content_of(seen) or stamp
        shares.setdefault(mark_of(path), []).append(b"%b\0%o %d %b" % (path, mode_of(stamp), len(held), held))
    marks = bytearray(_SIZE)
    for mark, share in shares.items():
        marks[mark * _BYTES : (mark + 1) * _BYTES] = blake2b(b"".join(share), digest_size=_BYTES).digest()
    return bytes(marks)


def marks_that_differ(then: bytes, now: bytes) -> set[int]:
    """Return the groups in which at least one file was added, removed or changed."""
    places = range(0, max(len(then), len(now)), _BYTES)
    return {at // _BYTES for at in places if then[at : at + _BYTES] != now[at : at + _BYTES]}


def without_touched(
    tracked: Mapping[bytes, bytes], top: str | None, touched: Iterable[str] | None
) -> Mapping[bytes, bytes]:
    """Return the files, except those that the task was observed to touch."""
    below = (top or "").rstrip("/") + "/"
    names = {path[len(below) :].encode("utf-8", "surrogateescape") for path in touched or () if path.startswith(below)}
    return {path: seen for path, seen in tracked.items() if path not in names} if names else tracked
