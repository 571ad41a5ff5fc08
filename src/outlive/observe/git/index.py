"""The git index, which lists every tracked file, read without running git.

Versions 2 to 4 are read, for SHA-1 and SHA-256. Any other index raises `Unknown`.
"""

from __future__ import annotations

import time
from struct import Struct

from outlive.domain.value import Value
from outlive.observe.git.object_ids import sha1_of, sha256_of
from outlive.observe.git.safe_read import Unknown, read_regular

MOST_ENTRIES = 250_000
_MOST_BYTES = 128 << 20
_HEADER = 12
_STAT = 40
_LONG_NAME = 0xFFF
_SHORTEST_ENTRY = 62
_CHECK_EVERY = 1024

ASSUME_UNCHANGED, EXTENDED, STAGE = 0x8000, 0x4000, 0x3000
SKIP_WORKTREE, INTENT_TO_ADD = 0x4000 << 16, 0x2000 << 16

_numbers = Struct(">3I").unpack_from
_flags_at = Struct(">H").unpack_from


class Entry(Value):
    """The fields of one entry of a git index."""

    mode: int
    content: bytes
    changed_at_ns: int
    written_at_ns: int
    inode: int
    size: int
    stage: int
    assume_unchanged: bool
    skip_worktree: bool
    intent_to_add: bool


class Index(Value):
    """The content of a git index: the stat fields, content id and flags of each path.

    The stat fields are in the form of `object_ids.stamp_from`.
    """

    version: int
    id_bytes: int
    entries: dict[bytes, tuple[bytes, bytes, int]]

    def entry(self, path: bytes) -> Entry:
        """Return the fields of the entry for one path."""
        stamp, content, flags = self.entries[path]
        ctime, ctime_ns, mtime, mtime_ns, inode, mode, _, _, size = Struct(">9I").unpack(stamp)
        return Entry(
            mode=mode,
            content=content,
            changed_at_ns=ctime * 10**9 + ctime_ns,
            written_at_ns=mtime * 10**9 + mtime_ns,
            inode=inode,
            size=size,
            stage=(flags & STAGE) >> 12,
            assume_unchanged=bool(flags & ASSUME_UNCHANGED),
            skip_worktree=bool(flags & SKIP_WORKTREE),
            intent_to_add=bool(flags & INTENT_TO_ADD),
        )


def read_index(path: str, id_bytes: int = 20, until: float | None = None) -> Index:
    """Return the index in a file. If there is no file, return an empty index.

    Reading stops with an error at the time `until`. `id_bytes` is the length of an object id.
    """
    content = read_regular(path, _MOST_BYTES)
    if content is None:
        return Index(version=2, id_bytes=id_bytes, entries={})
    return parse_index(content, id_bytes, until)


def parse_index(content: bytes, id_bytes: int = 20, until: float | None = None) -> Index:
    """Return the index that these bytes encode.

    `id_bytes`, the length of an object id, is used only if the index has no checksum.
    """
    if len(content) < _HEADER + 20 or content[:4] != b"DIRC":
        raise Unknown("the index has no valid header")
    _, version, count = _numbers(content)
    if version not in (2, 3, 4):
        raise Unknown(f"the index has the unknown version {version}")
    id_bytes = _checked_id_bytes(content, id_bytes)
    end = len(content) - id_bytes
    if count > MOST_ENTRIES:
        raise Unknown(f"the index has more than {MOST_ENTRIES} entries")
    if count * (_SHORTEST_ENTRY - 20 + id_bytes) > end:
        raise Unknown("the index is damaged")
    entries, at = _read_entries(content, count, end, id_bytes, until, is_compressed=version == 4)
    _check_extensions(content, at, end)
    if b"" in entries:  # only an index that git has split into two files has empty paths
        raise Unknown("the index is damaged")
    return Index(version=version, id_bytes=id_bytes, entries=entries)


def _checked_id_bytes(content: bytes, told: int) -> int:
    """Return the length of the object ids in a git index.

    An index without a checksum does not show this length. Then the result is `told`, the length that the caller
    expects. Raises Unknown if the checksum is wrong.
    """
    if content[-20:] == bytes(20):  # git wrote no checksum because of the setting `index.skipHash`
        return told
    for length, digest in ((20, sha1_of), (32, sha256_of)):
        if digest(content[:-length]) == content[-length:]:
            return length
    raise Unknown("the checksum of the index is wrong")


def _read_entries(
    content: bytes, count: int, end: int, id_bytes: int, until: float | None, *, is_compressed: bool
) -> tuple[dict[bytes, tuple[bytes, bytes, int]], int]:
    """Return the entries of a git index, and the offset at which they end.

    Versions 2 and 3 store whole paths, and pad each entry with one to eight zero bytes. Version 4 is compressed: it
    stores each path as a difference from the path before.
    """
    entries: dict[bytes, tuple[bytes, bytes, int]] = {}
    at, fixed, least, path = _HEADER, _STAT + id_bytes, 4 if is_compressed else 2, b""
    for number in range(count):
        if not number % _CHECK_EVERY:
            _check_time(until)
        start, flags_at = at, at + fixed
        if flags_at + least > end:
            raise Unknown("the index is damaged")
        flags, name_at = _read_flags(content, flags_at)
        if is_compressed:
            dropped, name_at = _varint(content, name_at, end)
            name_end = content.find(b"\0", name_at, end)
            if dropped > len(path) or name_end < 0:
                raise Unknown("the index is damaged")
            path = path[: len(path) - dropped] + content[name_at:name_end]
            at = name_end + 1
        else:
            length = flags & _LONG_NAME
            name_end = name_at + length if length < _LONG_NAME else content.find(b"\0", name_at, end)
            if not name_at <= name_end < end:
                raise Unknown("the index is damaged")
            path = content[name_at:name_end]
            at = name_end + 8 - (name_end - start) % 8
        entries[path] = (
            content[start : start + 16] + content[start + 20 : start + _STAT],
            content[start + _STAT : flags_at],
            flags,
        )
    return entries, at


def _read_flags(content: bytes, at: int) -> tuple[int, int]:
    """Return the flags of a git index entry, and the offset at which its path begins."""
    flags = _flags_at(content, at)[0]
    if flags & EXTENDED:
        return flags | _flags_at(content, at + 2)[0] << 16, at + 4
    return flags, at + 2


def _varint(content: bytes, at: int, end: int) -> tuple[int, int]:
    """Return a number that is encoded like an offset in a git pack, and where it ends."""
    byte = content[at]
    number = byte & 0x7F
    while byte & 0x80:
        at += 1
        if at >= end or number > 1 << 32:
            raise Unknown("the index is damaged")
        byte = content[at]
        number = ((number + 1) << 7) | (byte & 0x7F)
    return number, at + 1


def _check_extensions(content: bytes, at: int, end: int) -> None:
    """Raise Unknown for an extension that changes what the index entries mean."""
    while at + 8 <= end:
        name = content[at : at + 4]
        if name == b"link":
            raise Unknown("the index is split")
        # `sdir` is harmless: an entry may be a directory outside a sparse checkout, and such entries are skipped.
        if not b"A" <= name[:1] <= b"Z" and name != b"sdir":
            raise Unknown("the index has an unknown extension")
        at += 8 + int.from_bytes(content[at + 4 : at + 8], "big")
    if at != end:
        raise Unknown("the index is damaged")


def _check_time(until: float | None) -> None:
    if until is not None and time.monotonic() > until:
        raise Unknown("time was up while the index was read")
