"""The former texts of changed configuration files, saved in the state directory."""

from __future__ import annotations

import os
from hashlib import sha256

from outlive.domain.text.sanitize import from_json, to_json
from outlive.domain.value import Value
from outlive.install.config import target_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from outlive.bundle.home import Home


PLUGIN = "plugin-"


class Before(Value):
    """The text of a file before an installation, and a hash of the text afterwards."""

    path: str
    text: str | None
    after: str
    made: tuple[str, ...] = ()
    """The directories that the installation created for the file."""


def mark_of(text: str | None) -> str:
    """Return the hash of a file's text, or `none` if there is no file."""
    return "none" if text is None else sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def recall(home: Home, client: str) -> dict[str, Before]:
    """Return the saved former texts of a client's files, by path.

    The result is empty if none are saved.
    """
    text = target_file.read(_path(home, client))
    kept = from_json(text) if text else []
    if not isinstance(kept, list):
        return {}
    return {
        each["path"]: Before(path=each["path"], text=each["text"], after=each["after"], made=tuple(each["made"]))
        for each in kept
    }


def keep(home: Home, client: str, paths: Iterable[str], files: Iterable[Before]) -> None:
    """Replace the saved former texts of some paths of a client.

    Texts of other paths stay. There are some if Outlive is also installed into another configuration directory of the
    client.
    """
    about = set(paths)
    files = [*(each for path, each in recall(home, client).items() if path not in about), *files]
    if not files:
        target_file.write(_path(home, client), None)
        return
    rows = [{"path": each.path, "text": each.text, "after": each.after, "made": list(each.made)} for each in files]
    target_file.write(_path(home, client), to_json(rows))


def is_anywhere(home: Home) -> bool:
    """Return whether the former text of any file of any client is saved."""
    return bool(_names(home))


def plugins(home: Home) -> list[str]:
    """Return the names under which the former texts of plugin folders are saved.

    A plugin folder may be anywhere, so its path is known only from these records.
    """
    return sorted(name.removesuffix(".json") for name in _names(home) if name.startswith(PLUGIN))


def _names(home: Home) -> list[str]:
    try:
        return os.listdir(os.path.join(home.path, "install"))
    except FileNotFoundError:
        return []


def _path(home: Home, client: str) -> str:
    return os.path.join(home.path, "install", f"{client}.json")
