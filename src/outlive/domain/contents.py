"""What all tracked files hold, kept short: a thousand marks, each of the few files that share it.

To keep the id of each of a hundred thousand files with every task would take megabytes. Marks take four kilobytes at
most, and two sets of them tell that nothing changed, or among which few files something did.
"""

from __future__ import annotations

from binascii import crc32

from outlive.domain.snapshot import GONE, UNSEEN, content_of, mode_of, stamp_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MARKS = 1024
_BYTES = 4
_SIZE = _MARKS * _BYTES


def mark_of(path: bytes) -> int:
    """Which mark a path has a share in."""
    return crc32(path) % _MARKS


def contents_of(tracked: Mapping[bytes, bytes]) -> bytes:
    """The marks: names, modes and contents of the files that are there."""
    from _blake2 import blake2b  # noqa: PLC0415 - a launch hashes nothing

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
    """The marks of which at least one file came, went, or holds something else."""
    places = range(0, max(len(then), len(now)), _BYTES)
    return {at // _BYTES for at in places if then[at : at + _BYTES] != now[at : at + _BYTES]}


def without_touched(
    tracked: Mapping[bytes, bytes], top: str | None, touched: Iterable[str] | None
) -> Mapping[bytes, bytes]:
    """The files but for those that the task was seen to touch, which are compared by name wherever they lie."""
    below = (top or "").rstrip("/") + "/"
    names = {path[len(below) :].encode("utf-8", "surrogateescape") for path in touched or () if path.startswith(below)}
    return {path: seen for path, seen in tracked.items() if path not in names} if names else tracked
