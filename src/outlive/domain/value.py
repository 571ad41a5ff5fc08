"""Immutable values without the cost of `dataclasses`.

Importing `dataclasses` takes longer than starting a second interpreter, because `dataclasses` imports `inspect`. A
`Value` is made with keyword arguments, has a repr, and does not allow assignment. Two objects of one class with equal
fields are equal. Type checkers treat a `Value` as a frozen dataclass.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Self, dataclass_transform
else:

    def dataclass_transform(**_: object) -> object:
        """Return a decorator without effect. Only type checkers use `dataclass_transform`."""
        return lambda cls: cls


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Value:
    """An immutable object. Its fields are the annotations of its class, in order."""

    _fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls._fields = (*cls._fields, *cls.__dict__.get("__annotations__", ()))  # noqa: RUF063 - `inspect.get_annotations` would need the slow import of `inspect`

    def __init__(self, **given: Any) -> None:
        own = self.__dict__
        for name in self._fields:
            if name in given:
                own[name] = given.pop(name)
            elif hasattr(type(self), name):
                own[name] = getattr(type(self), name)
            else:
                raise TypeError(f"{type(self).__name__} needs {name}")
        if given:
            raise TypeError(f"{type(self).__name__} has no {', '.join(given)}")

    def __setattr__(self, name: str, _: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {name}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    def __repr__(self) -> str:
        fields = ", ".join(f"{k}={v!r}" for k, v in self.__dict__.items())
        return f"{type(self).__name__}({fields})"

    def but(self, **changes: Any) -> Self:
        """Return a copy of this value with some fields changed."""
        return type(self)(**{**self.__dict__, **changes})
