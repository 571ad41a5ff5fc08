"""What was there before us: kept in the state directory, so that it can be given back to the byte."""

from __future__ import annotations

import os
from hashlib import sha256

from outlive.domain.text import from_json, to_json
from outlive.domain.value import Value
from outlive.install import target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from outlive.bundle.home import Home


PLUGIN = "plugin-"


class Before(Value):
    """One file as it was, and the mark of what we made of it."""

    path: str
    text: str | None
    after: str
    made: tuple[str, ...] = ()
    """Directories that were made for it."""


def mark_of(text: str | None) -> str:
    """A text by which it is known whether anybody has changed it."""
    return "none" if text is None else sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def recall(home: Home, client: str) -> dict[str, Before]:
    """What is kept of a client's files, by path; empty if we were never installed there."""
    text = target.read(_path(home, client))
    kept = from_json(text) if text else []
    if not isinstance(kept, list):
        return {}
    return {
        each["path"]: Before(path=each["path"], text=each["text"], after=each["after"], made=tuple(each["made"]))
        for each in kept
    }


def keep(home: Home, client: str, paths: Iterable[str], files: Iterable[Before]) -> None:
    """Keep these, and nothing else, of some paths; what is kept of others, in another directory of it, stays."""
    about = set(paths)
    files = [*(each for path, each in recall(home, client).items() if path not in about), *files]
    if not files:
        target.write(_path(home, client), None)
        return
    rows = [{"path": each.path, "text": each.text, "after": each.after, "made": list(each.made)} for each in files]
    target.write(_path(home, client), to_json(rows))


def is_anywhere(home: Home) -> bool:
    """Whether anything is kept of any client."""
    return bool(_names(home))


def plugins(home: Home) -> list[str]:
    """Under which names plugin folders are kept, which could be anywhere."""
    return sorted(name.removesuffix(".json") for name in _names(home) if name.startswith(PLUGIN))


def _names(home: Home) -> list[str]:
    try:
        return os.listdir(os.path.join(home.path, "install"))
    except FileNotFoundError:
        return []


def _path(home: Home, client: str) -> str:
    return os.path.join(home.path, "install", f"{client}.json")
