"""The JSON of comparisons. A bundle stores one line for each repository."""

from __future__ import annotations

from outlive.domain.git.comparison import Comparison, Move, PathChange
from outlive.domain.text.sanitize import from_json as parse_json
from outlive.domain.text.sanitize import to_json as write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOVES = ("refs", "worktrees")
_ONE_MOVE = ("head", "branch", "stash")


def to_json(comparison: Comparison) -> str:
    """Return the comparison as one line of ASCII."""
    kept: dict[str, object] = dict(vars(comparison))
    kept.update({name: [vars(move) for move in getattr(comparison, name)] for name in (*_MOVES, "paths")})
    for name in _ONE_MOVE:
        move = getattr(comparison, name)
        kept[name] = None if move is None else vars(move)
    kept["counts"] = dict(comparison.counts)
    return write_json(kept)


def from_json(text: str) -> Comparison | None:
    """Return the comparison from its JSON text, or None if the text is damaged."""
    try:
        kept: Any = parse_json(text)
        kept.update({name: tuple(Move(**move) for move in kept[name]) for name in _MOVES})
        kept.update({name: None if kept[name] is None else Move(**kept[name]) for name in _ONE_MOVE})
        depth = kept["stash_depth"]
        return Comparison(
            **{
                **{name: each for name, each in kept.items() if name in Comparison._fields},
                "paths": tuple(PathChange(**change) for change in kept["paths"]),
                "counts": {str(how): int(count) for how, count in kept["counts"].items()},
                "stash_depth": None if depth is None else (int(depth[0]), int(depth[1])),
                "unknown": tuple(map(str, kept["unknown"])),
            }
        )
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return None
