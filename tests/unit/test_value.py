"""`Value`: a frozen record, whatever it is made of."""

from __future__ import annotations

import pytest

from outlive.domain.value import Value


class Point(Value):
    """Two fields, one of them optional."""

    x: int
    y: int = 0


class Named(Point):
    """A field more than its parent."""

    name: str


class Other(Value):
    """The same fields under another name."""

    x: int
    y: int = 0


def test_fields_are_taken_by_name_with_defaults() -> None:
    """A field that was not given has its default."""
    point = Point(x=1)
    assert (point.x, point.y) == (1, 0)


def test_fields_cannot_be_assigned() -> None:
    """Neither an existing field nor a new one; the value is what it was."""
    point = Point(x=1)
    with pytest.raises(AttributeError, match="immutable: x"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError, match="immutable: z"):
        point.z = 2
    assert point == Point(x=1)


def test_a_missing_field_is_an_error() -> None:
    """There is no value with a hole in it."""
    with pytest.raises(TypeError, match="Point needs x"):
        Point()  # type: ignore[call-arg]


def test_an_unknown_field_is_an_error() -> None:
    """A misspelt field is not swallowed."""
    with pytest.raises(TypeError, match="Point has no z"):
        Point(x=1, z=2)  # type: ignore[call-arg]


def test_positions_mean_nothing() -> None:
    """Eight fields in a row could be swapped; names cannot."""
    with pytest.raises(TypeError):
        Point(1)  # type: ignore[call-arg]


def test_equality_is_of_type_and_fields() -> None:
    """Same type and same fields, and only then; equal values hash alike."""
    assert Point(x=1) == Point(x=1, y=0)
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Other(x=1)
    assert Point(x=1) != (1, 0)
    assert len({Point(x=1), Point(x=1, y=0), Point(x=2)}) == 2


def test_but_changes_some_fields_of_a_copy() -> None:
    """The original stays as it was, and unknown fields are refused as ever."""
    point = Point(x=1, y=2)
    assert point.but(y=3) == Point(x=1, y=3)
    assert point == Point(x=1, y=2)
    assert point.but() == point
    with pytest.raises(TypeError, match="has no z"):
        point.but(z=1)


def test_a_subclass_has_its_parents_fields() -> None:
    """In their order, before its own."""
    assert Named(x=1, name="a").y == 0
    with pytest.raises(TypeError, match="Named needs x"):
        Named(name="a")  # type: ignore[call-arg]
    assert repr(Named(x=1, name="a")) == "Named(x=1, y=0, name='a')"


def test_the_repr_names_every_field() -> None:
    """What a failing test prints is enough to write the value down."""
    assert repr(Point(x=1)) == "Point(x=1, y=0)"
