"""Whose doing it was: never the task's if it was not seen, never nobody's if nobody looked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from outlive.domain.attribution import with_comparisons
from outlive.domain.comparison import Comparison, Move, PathChange
from outlive.domain.comparison_json import from_json, to_json
from outlive.domain.effects import Effects
from outlive.domain.effects_words import summary_of
from tests.unit.values import NOW

MOVE = st.builds(Move, name=st.text(), before=st.text(), after=st.text())
COMPARISON = st.builds(
    Comparison,
    directory_gone=st.booleans(),
    repository=st.just("same"),
    top=st.none() | st.text(),
    head=st.none() | MOVE,
    refs=st.lists(MOVE, max_size=3).map(tuple),
    stash_depth=st.none() | st.tuples(st.integers(0), st.integers(0)),
    paths=st.lists(st.builds(PathChange, path=st.text(), how=st.just("gone")), max_size=3).map(tuple),
    counts=st.dictionaries(st.text(), st.integers(0)),
    late=st.booleans(),
    unknown=st.lists(st.text()).map(tuple),
)


def comparison(*names: str, **fields: object) -> Comparison:
    """Changed files below /r."""
    given_fields: dict[str, object] = {
        "directory_gone": False,
        "repository": "same",
        "top": "/r",
        "has_files": True,
        "paths": tuple(PathChange(path=name, how="changed") for name in names),
        "counts": {"changed": len(names)},
    }
    return Comparison(**(given_fields | fields))  # type: ignore[arg-type]


@given(COMPARISON)
def test_what_is_kept_is_what_was_compared(found: Comparison) -> None:
    """JSON and back changes nothing."""
    assert from_json(to_json(found)) == found


@given(st.integers(0, 200), COMPARISON)
def test_a_damaged_comparison_is_none(cut: int, found: Comparison) -> None:
    """What was torn is no comparison."""
    kept = to_json(found)
    assert from_json(kept[: max(0, len(kept) - 1 - cut)]) is None


def test_what_the_task_was_seen_doing_is_its_own() -> None:
    """Also if it was seen only after the comparison had begun."""
    found = with_comparisons(Effects(level="observed", changed=("/r/a",)), [comparison("a", "b")], None)
    assert [each.path for each in found.unattributed or ()] == ["/r/b"]
    assert found.unattributed_in_all == 1


def test_without_a_comparison_nobody_is_cleared() -> None:
    """None is not the same as none."""
    assert with_comparisons(Effects(level="observed"), [], None).unattributed is None
    assert with_comparisons(Effects(level="observed"), [comparison()], None).unattributed == ()
    assert with_comparisons(Effects(), [], None).level == "unknown"
    for lost in (comparison(repository="gone", has_files=False), comparison(has_files=False, unknown=("files: no",))):
        found = with_comparisons(Effects(level="observed"), [lost], None)
        assert (found.unattributed, len(found.uncompared)) == (None, 1)


def test_a_list_that_was_cut_is_counted_whole() -> None:
    """Five are named of a thousand, and a thousand are told."""
    many = comparison("a", "b", "c", "d", "e", counts={"changed": 1000})
    words = summary_of(with_comparisons(Effects(level="observed"), [many], None), NOW)
    assert "1,000 files changed by somebody else, or unseen: a, b, c and 997 more" in words
    words = summary_of(with_comparisons(Effects(), [many], None), NOW)
    assert "995 files more not as before" in words


def test_tracked_files_are_named_first() -> None:
    """What lies beside them is more often nobody's concern."""
    paths = (
        PathChange(path="a", how="appeared", was_tracked=False),
        PathChange(path="b\x1b[0m\n", how="changed"),
    )
    found = with_comparisons(Effects(level="observed"), [comparison(paths=paths, counts={"changed": 2})], None)
    assert [each.name for each in found.unattributed or ()] == ["b\x1b[0m\n", "a"]
    assert "\x1b" not in summary_of(found, NOW)


def test_compared_without_a_difference_says_how_sure_it_is() -> None:
    """All is as before only if everything was compared."""
    assert summary_of(with_comparisons(Effects(), [comparison()], None), NOW).startswith("all is as before")
    late = summary_of(with_comparisons(Effects(), [comparison(late=True)], None), NOW)
    assert late.startswith("nothing is known to have changed")


def test_what_comes_back_with_its_directory_is_nobody_elses_doing() -> None:
    """The first look was taken while the task had it away; a file in it that changed is told all the same."""
    names = {"d/x": "appeared", "d/in/x": "appeared", "d/y": "changed", "e/x": "appeared"}
    paths = tuple(PathChange(path=name, how=how) for name, how in names.items())  # type: ignore[arg-type]
    found = with_comparisons(
        Effects(level="observed", restored=("/r/d",)), [comparison(paths=paths, counts={"all": 4})], None
    )
    assert ([each.name for each in found.unattributed or ()], found.unattributed_in_all) == (["d/y", "e/x"], 2)
