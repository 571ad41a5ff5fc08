"""`Value`, the base class of frozen records."""

from __future__ import annotations

import pytest

from outlive.domain.value import Value


class Point(Value):
    """A value with two fields, one of them optional."""

    x: int
    y: int = 0


class Named(Point):
    """A value with one more field than its parent."""

    name: str


class Other(Value):
    """A value with the fields of `Point` and another name."""

    x: int
    y: int = 0


def test_value_has_the_default_of_a_field_that_was_not_given() -> None:
    """A value is created with named fields, and each missing field gets its default."""
    point = Point(x=1)
    assert (point.x, point.y) == (1, 0)


def test_value_refuses_assignment() -> None:
    """No field of a value can be assigned, whether it exists or not."""
    point = Point(x=1)
    with pytest.raises(AttributeError, match="immutable: x"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError, match="immutable: z"):
        point.z = 2
    assert point == Point(x=1)


def test_value_raises_when_a_field_is_missing() -> None:
    """If a field without a default is missing, creating the value raises `TypeError`."""
    with pytest.raises(TypeError, match="Point needs x"):
        Point()  # type: ignore[call-arg]


def test_value_raises_for_an_unknown_field() -> None:
    """A field that does not exist raises `TypeError` when the value is created."""
    with pytest.raises(TypeError, match="Point has no z"):
        Point(x=1, z=2)  # type: ignore[call-arg]


def test_value_refuses_positional_arguments() -> None:
    """Positional arguments raise `TypeError`, because many of them would be easy to confuse."""
    with pytest.raises(TypeError):
        Point(1)  # type: ignore[call-arg]


def test_values_are_equal_when_type_and_fields_are_equal() -> None:
    """Two values are equal if their types and fields are equal. They then have equal hashes."""
    assert Point(x=1) == Point(x=1, y=0)
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Other(x=1)
    assert Point(x=1) != (1, 0)
    assert len({Point(x=1), Point(x=1, y=0), Point(x=2)}) == 2


def test_but_returns_a_copy_with_changed_fields() -> None:
    """`but` returns a copy with changed fields.

    The value itself stays the same, and an unknown field raises `TypeError`.
    """
    point = Point(x=1, y=2)
    assert point.but(y=3) == Point(x=1, y=3)
    assert point == Point(x=1, y=2)
    assert point.but() == point
    with pytest.raises(TypeError, match="has no z"):
        point.but(z=1)


def test_subclass_of_value_has_the_fields_of_its_parent() -> None:
    """A subclass has the fields of its parent first, in their order."""
    assert Named(x=1, name="a").y == 0
    with pytest.raises(TypeError, match="Named needs x"):
        Named(name="a")  # type: ignore[call-arg]
    assert repr(Named(x=1, name="a")) == "Named(x=1, y=0, name='a')"


def test_repr_of_a_value_names_every_field() -> None:
    """The repr of a value names every field, so that a developer can build the value again."""
    assert repr(Point(x=1)) == "Point(x=1, y=0)"
