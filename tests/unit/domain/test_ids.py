"""Task ids are safe in a path and easy to type. Callers may give a prefix of an id."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive.domain.errors import UserError
from outlive.domain.ids import check_prefix, is_id, task_id

ID = re.compile(r"\A[a-z0-9]{6,40}\Z")


@settings(max_examples=30, deadline=None)
@given(st.binary(min_size=8, max_size=8))
def test_an_id_is_safe_in_a_path(given_bytes: bytes) -> None:
    """An id has only lower-case letters and digits, from whatever random bytes it is made."""
    name = task_id(given_bytes)
    assert ID.match(name)
    assert is_id(name)
    assert check_prefix(name) == name
    assert name == task_id(given_bytes)


def test_ids_do_not_collide() -> None:
    """Ten thousand random ids are all different."""
    source = random.Random(1)
    assert len({task_id(source.randbytes(8)) for _ in range(10_000)}) == 10_000


def test_id_has_no_vowels_and_no_digits_that_look_like_letters() -> None:
    """An id has no vowels and no digits that look like letters, so that it can be copied by hand without a mistake."""
    source = random.Random(2)
    used = set("".join(task_id(source.randbytes(8)) for _ in range(1000)))
    assert not used & set("01laeiou")


@pytest.mark.parametrize("prefix", ["t", "t7k2", "t7k2m9q4", "0", "a" * 40])
def test_check_prefix_accepts_any_prefix_of_an_id(prefix: str) -> None:
    """`check_prefix` returns any prefix of an id unchanged."""
    assert check_prefix(prefix) == prefix


@pytest.mark.parametrize(
    "text",
    [
        "",
        "../t7k2m9",
        "..",
        "t7k2/m9",
        "t7k2m9q4\n",
        "t7k2\nm9",
        "t7k2\0m9",
        "t7k2 m9",
        "T7K2M9",
        "t7k2-m9",
        "t7k2%",
        "t7k2_",
        "t7k2*",
        "a" * 41,
        "\uff547k2m9",
        "t7k2\u0663",
        "t7k2\udcff",
    ],
)
def test_check_prefix_refuses_text_that_is_no_id(text: str) -> None:
    """`check_prefix` refuses other characters than lower-case letters and digits.

    A prefix is used in paths and in SQL.
    """
    with pytest.raises(UserError) as refusal:
        check_prefix(text)
    assert "is not a task id" in refusal.value.message
    assert "\n" not in refusal.value.message
    assert not is_id(text)


@pytest.mark.parametrize(("text", "named"), [("t7k2m", False), ("t7k2m9", True), ("a" * 40, True), ("a" * 41, False)])
def test_is_id_accepts_only_six_to_forty_characters(text: str, *, named: bool) -> None:
    """`is_id` accepts six to forty characters. A shorter text is only a prefix, and cannot name a bundle."""
    assert is_id(text) is named
