"""The JSON of snapshots. A bundle stores a snapshot in this form.

All files are packed into one compressed string. If a path has the same first directories as the path before it, only
the rest is stored. If the files of a worktree take more than two megabytes, they are left out, and `unknown` names the
reason.
"""

from __future__ import annotations

from binascii import Error as NotBase64
from binascii import a2b_base64, b2a_base64
from zlib import compress, decompressobj
from zlib import error as NotDeflated  # noqa: N812 - the name `error` would not show which error is meant

from outlive.domain.git.snapshot import GitState, Snapshot, Tree
from outlive.domain.text.sanitize import from_json as parse_json
from outlive.domain.text.sanitize import to_json as write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MOST_KEPT = 2 << 20
_MOST_UNPACKED = 256 << 20
_MOST_FILES_KEPT = MOST_KEPT // 50  # more files would not fit, and packing them would take long
_UNKEPT = "files: too many to be stored"


def to_json(snapshot: Snapshot) -> str:
    """Return the snapshot as one line of ASCII."""
    git, tree = snapshot.git, snapshot.tree
    kept = None if tree is None else _tree_json(tree)
    unknown = snapshot.unknown if tree is None or kept is not None else (*snapshot.unknown, _UNKEPT)
    return write_json(
        {
            "directory": snapshot.directory,
            "is_present": snapshot.is_present,
            "late": snapshot.late,
            "unknown": unknown,
            "git": None if git is None else {name: _plain(each) for name, each in vars(git).items()},
            "tree": kept,
            "dirty": None if snapshot.dirty is None else _pack(snapshot.dirty),
            "contents": None if snapshot.contents is None else _deflated(snapshot.contents),
            "files": _named_json(snapshot.files),
            "touched": snapshot.touched,
            "unfollowed": snapshot.unfollowed,
            "compares": snapshot.compares,
            "settings": _named_json(snapshot.settings),
        }
    )


def from_json(text: str) -> Snapshot | None:
    """Return the snapshot from its JSON text, or None if the text is damaged."""
    try:
        kept: Any = parse_json(text)
        git, tree, files, dirty = kept["git"], kept["tree"], kept["files"], kept.get("dirty")
        contents = kept.get("contents")
        return Snapshot(
            directory=str(kept["directory"]),
            is_present=bool(kept["is_present"]),
            late=bool(kept["late"]),
            unknown=tuple(map(str, kept["unknown"])),
            git=None if git is None else _git(git),
            tree=None if tree is None else _tree(tree),
            dirty=None if dirty is None else _unpack(dirty),
            contents=None if contents is None else _inflated(contents),
            files=_named(files),
            touched=int(kept.get("touched", 0)),
            unfollowed=int(kept.get("unfollowed", 0)),
            compares=bool(kept.get("compares")),
            settings=_named(kept.get("settings")),
        )
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, NotBase64, NotDeflated, RecursionError):
        return None


def _named_json(files: Mapping[str, bytes] | None) -> dict[str, str] | None:
    if files is None:
        return None
    return {path: b2a_base64(seen, newline=False).decode("ascii") for path, seen in files.items()}


def _named(kept: dict[str, str] | None) -> dict[str, bytes] | None:
    return None if kept is None else {path: a2b_base64(seen) for path, seen in kept.items()}


def _plain(field: object) -> object:
    return list(field) if isinstance(field, tuple) else field


def _git(kept: dict[str, Any]) -> GitState:
    for name in ("stash", "worktrees"):
        kept[name] = None if kept[name] is None else tuple(kept[name])
    return GitState(**kept)


def _tree_json(tree: Tree) -> dict[str, object] | None:
    if len(tree.tracked) > _MOST_FILES_KEPT:
        return None
    tracked, untracked = _pack(tree.tracked), _pack(tree.untracked)
    if len(tracked) + len(untracked) > MOST_KEPT:
        return None
    return {
        "tracked": tracked,
        "untracked": untracked,
        "all_untracked": tree.all_untracked,
        "stopped": tree.stopped,
        "converts": tree.converts,
    }


def _tree(kept: dict[str, Any]) -> Tree:
    return Tree(
        tracked=_unpack(kept["tracked"]),
        untracked=_unpack(kept["untracked"]),
        all_untracked=bool(kept["all_untracked"]),
        stopped=kept["stopped"],
        converts=bool(kept["converts"]),
    )


def _pack(files: Mapping[bytes, bytes]) -> str:
    parts: list[bytes] = []
    last = b""
    for path in sorted(files):
        shared = _shared(last, path)
        seen = files[path]
        parts.append(b"%d %d %d " % (shared, len(path) - shared, len(seen)) + path[shared:] + seen)
        last = path
    return _deflated(b"".join(parts))


def _unpack(packed: str) -> dict[bytes, bytes]:
    content = _inflated(packed)
    files: dict[bytes, bytes] = {}
    last, at = b"", 0
    while at < len(content):
        shared, at = _count(content, at)
        own, at = _count(content, at)
        length, at = _count(content, at)
        last = last[:shared] + content[at : at + own]
        files[last] = content[at + own : at + own + length]
        at += own + length
    return files


def _deflated(content: bytes) -> str:
    return b2a_base64(compress(content, 1), newline=False).decode("ascii")


def _inflated(text: str) -> bytes:
    opened = decompressobj()
    content = opened.decompress(a2b_base64(text), _MOST_UNPACKED)
    if not opened.eof:
        raise ValueError("cut off, or larger than anything that was packed")
    return content


def _count(content: bytes, at: int) -> tuple[int, int]:
    end = content.index(b" ", at)
    return int(content[at:end]), end + 1


def _shared(left: bytes, right: bytes) -> int:
    """Return the length in bytes of the directories that two paths have in common."""
    end = left.rfind(b"/") + 1
    while end and not right.startswith(left[:end]):
        end = left.rfind(b"/", 0, end - 1) + 1
    return end
