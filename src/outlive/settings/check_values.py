"""The check that a settings file has only known keys and valid values."""

from __future__ import annotations

from outlive.domain.errors import UserError
from outlive.domain.text.nearest import did_you_mean
from outlive.domain.text.sanitize import to_json
from outlive.domain.text.units import parse_duration
from outlive.settings.schema import KIND_TEXTS, MOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from outlive.settings.schema import Key, Table

    Where = tuple[str, ...]

_LONGEST = 60


class BadKey(Exception):
    """The error for a wrong key or value: where it is, what is wrong, and a hint."""

    def __init__(self, where: Where, fact: str, hint: str) -> None:
        super().__init__(fact)
        self.where = where
        self.fact = fact
        self.hint = hint


def checked(table: Table, found: Mapping[str, Any], where: Where = ()) -> dict[str, Any]:
    """Return the values of a table in the settings after a check, by key.

    Raises `BadKey` for a wrong key or value.
    """
    keys = {key.name: key for key in table.keys}
    tables = {each.name: each for each in table.tables}
    values: dict[str, Any] = {}
    for name, value in found.items():
        here = (*where, name)
        if name in keys:
            values[name] = _value(keys[name], value, here)
        elif name not in tables:
            raise _unknown(here, (*keys, *tables))
        elif tables[name].entry is None:
            values[name] = checked(tables[name], _table(value, here), here)
        else:
            values[name] = _entries(tables[name], _table(value, here), here)
    return values


def _entries(table: Table, found: Mapping[str, Any], where: Where) -> dict[str, Any]:
    """Return the checked tables whose names the user chooses, by name."""
    values = {}
    for name, each in found.items():
        here = (*where, name)
        if table.names and name not in table.names:
            raise _unknown(here, table.names)
        if not name or not name.isprintable() or name != name.strip():
            raise BadKey(
                here, f"{dotted(here)} has no usable name", "use printable characters, and no blank at either end"
            )
        values[name] = checked(table, _table(each, here), here)
    return values


def dotted(where: Where) -> str:
    """Return a key as TOML writes it, such as `agents.models."claude:opus".unstable`."""
    parts = [
        part if part and part.isascii() and part.replace("-", "").replace("_", "").isalnum() else to_json(part)
        for part in where
    ]
    return ".".join(part if len(part) <= 2 * _LONGEST else part[: 2 * _LONGEST] + "..." for part in parts)


def _unknown(where: Where, known: Iterable[str]) -> BadKey:
    names = tuple(known)
    return BadKey(
        where,
        f"there is no key {dotted(where)}",
        did_you_mean(where[-1], names, f"the allowed names are {', '.join(names)}"),
    )


def _table(value: object, where: Where) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise BadKey(
            where, f"{dotted(where)} must be a table, not {_shown(value)}", f"write [{dotted(where)}] above its keys"
        )
    return value


def _value(key: Key, value: object, where: Where) -> Any:
    """Return the value of a key in the form that Outlive uses, such as a duration.

    Raises `BadKey` if the value is not valid.
    """
    try:
        found = _CHECKS[key.kind](key, value)
    except UserError as error:
        raise BadKey(where, f"{dotted(where)}: {error.message}", error.hint) from error
    except (TypeError, ValueError) as error:
        wanted = str(error) or KIND_TEXTS[key.kind]
        raise BadKey(where, f"{dotted(where)} must be a {wanted}, not {_shown(value)}", key.help) from error
    return found


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def _text(_: Key, value: object) -> str:
    if not isinstance(value, str) or not value or not value.isprintable() or value != value.strip():
        raise ValueError("text of printable characters, without a blank at either end")
    return value


def _texts(_: Key, value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) and "\0" not in each for each in value):
        raise TypeError
    return value


def _program(key: Key, value: object) -> list[str]:
    words = _texts(key, value)
    # A relative path could name a file in the repository in which the agent works.
    if not words or not words[0] or ("/" in words[0] and not words[0].startswith("/")):
        raise ValueError
    return words


def _template(key: Key, value: object) -> list[str]:
    words = _texts(key, value)
    for needed in key.choices:
        if not any(needed in word for word in words):
            raise ValueError(f"list of texts with {needed} in one of them")
    return words


def _whole(_: Key, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST:
        raise ValueError
    return value


def _money(_: Key, value: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value <= MOST:
        raise ValueError
    return float(value)


def _yes_no(_: Key, value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _duration(_: Key, value: object) -> Any:
    if not isinstance(value, str):
        raise TypeError
    if not (found := parse_duration(value)):
        raise ValueError("duration above zero")
    return found


def _choice(key: Key, value: object) -> object:
    if value not in key.choices:
        raise ValueError("text: " + " or ".join(key.choices))
    return value


def _conditions(_: Key, value: object) -> dict[str, Any]:
    """Return the conditions by which a line of a client's output is recognized.

    Raises TypeError for a value that is never equal to a JSON value, such as a date or `nan`.
    """
    if not isinstance(value, dict) or not value:
        raise TypeError
    for each in value.values():
        if not isinstance(each, (str, int, float)) or (not isinstance(each, str) and not -MOST <= each <= MOST):
            raise TypeError
    return value


_CHECKS = {
    "text": _text,
    "texts": _texts,
    "whole": _whole,
    "money": _money,
    "yes_no": _yes_no,
    "duration": _duration,
    "choice": _choice,
    "program": _program,
    "template": _template,
    "conditions": _conditions,
}
