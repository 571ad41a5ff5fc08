"""Which changes are attributed to the task, which to other processes, and which to neither."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlive.domain.effects.attribution import with_comparisons
from outlive.domain.effects.describe import summary_of
from outlive.domain.effects.drift import Drift, with_meanwhile
from outlive.domain.effects.effects import Effects, Unattributed
from outlive.domain.git.comparison import Comparison, Move, PathChange
from outlive.domain.git.comparison_json import from_json, to_json
from outlive.domain.git.snapshot import GitState, Snapshot
from tests.unit.values import NOW, git_state

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
    """Return a comparison that found changed files below /r."""
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
def test_comparison_is_the_same_after_it_was_stored(found: Comparison) -> None:
    """A comparison that is written as JSON and read back has not changed."""
    assert from_json(to_json(found)) == found


@given(st.integers(0, 200), COMPARISON)
def test_torn_comparison_is_read_as_none(cut: int, found: Comparison) -> None:
    """A stored comparison whose text was cut anywhere is read as None."""
    kept = to_json(found)
    assert from_json(kept[: max(0, len(kept) - 1 - cut)]) is None


def test_change_is_not_unattributed_when_the_task_was_seen_making_it() -> None:
    """A file that the task was observed to change is not listed as changed by other processes."""
    found = with_comparisons(Effects(level="observed", changed=("/r/a",)), [comparison("a", "b")], None)
    assert [each.path for each in found.unattributed or ()] == ["/r/b"]
    assert found.unattributed_in_all == 1


def test_unattributed_is_unknown_without_a_comparison() -> None:
    """Without a comparison, `unattributed` is None. If the comparison found no difference, it is empty."""
    assert with_comparisons(Effects(level="observed"), [], None).unattributed is None
    assert with_comparisons(Effects(level="observed"), [comparison()], None).unattributed == ()
    assert with_comparisons(Effects(), [], None).level == "unknown"
    for lost in (comparison(repository="gone", has_files=False), comparison(has_files=False, unknown=("files: no",))):
        found = with_comparisons(Effects(level="observed"), [lost], None)
        assert (found.unattributed, len(found.uncompared)) == (None, 1)


def test_summary_counts_all_files_of_a_list_that_was_cut() -> None:
    """Of 1,000 changed files, the summary names a few and says how many there are."""
    many = comparison("a", "b", "c", "d", "e", counts={"changed": 1000})
    words = summary_of(with_comparisons(Effects(level="observed"), [many], None), NOW)
    assert "1,000 files changed by somebody else, or unseen: /r/a, /r/b, /r/c and 997 more" in words
    words = summary_of(with_comparisons(Effects(), [many], None), NOW)
    assert "995 more files differ" in words


def test_unattributed_names_tracked_files_first() -> None:
    """The list names tracked files before untracked files, which are less important."""
    paths = (
        PathChange(path="a", how="appeared", was_tracked=False),
        PathChange(path="b\x1b[0m\n", how="changed"),
    )
    found = with_comparisons(Effects(level="observed"), [comparison(paths=paths, counts={"changed": 2})], None)
    assert [each.name for each in found.unattributed or ()] == ["/r/b\x1b[0m\n", "/r/a"]
    assert "\x1b" not in summary_of(found, NOW)


def test_summary_says_how_sure_it_is_when_a_comparison_found_nothing() -> None:
    """If a comparison found no change and the snapshot was in time, the summary says that files are as before."""
    assert summary_of(with_comparisons(Effects(), [comparison()], None), NOW).startswith(
        "the tracked files are as before"
    )
    late = summary_of(with_comparisons(Effects(), [comparison(late=True)], None), NOW)
    assert late.startswith("nothing is known to have changed")


def test_summary_says_how_sure_it_is_when_watching_found_nothing() -> None:
    """If a watch found no change and the snapshot was in time, the summary says that files are untouched."""
    watched = Effects(level="watched")
    assert summary_of(with_comparisons(watched, [comparison()], None), NOW).startswith("no tracked file was touched")
    late = summary_of(with_comparisons(watched, [comparison(late=True)], None), NOW)
    assert late.startswith("nothing is known to have changed")


def test_files_of_a_restored_directory_are_not_unattributed() -> None:
    """If the task moved a directory away and back, files in it are not attributed to other processes.

    The first snapshot was taken while the directory was away. A changed file in the directory is still listed.
    """
    names = {"d/x": "appeared", "d/in/x": "appeared", "d/y": "changed", "e/x": "appeared"}
    paths = tuple(PathChange(path=name, how=how) for name, how in names.items())  # type: ignore[arg-type]
    found = with_comparisons(
        Effects(level="observed", restored=("/r/d",)), [comparison(paths=paths, counts={"all": 4})], None
    )
    assert ([each.name for each in found.unattributed or ()], found.unattributed_in_all) == (["/r/d/y", "/r/e/x"], 2)


def quick(git: GitState | None, **fields: object) -> Snapshot:
    """Return a quick snapshot of /r/sub."""
    return Snapshot(directory="/r/sub", git=git, **({"is_present": True} | fields))  # type: ignore[arg-type]


def moved_unseen(seen: str, then: GitState, now: GitState) -> str | None:
    """Return the message about parts of git that moved.

    `seen` names, separated by commas, the parts that the task was observed to move.
    """
    parts = tuple((NOW, what, "git") for what in seen.split(", ") if what)
    return with_comparisons(Effects(level="observed", git=parts), [], (quick(then), quick(now))).moved


def test_observed_part_of_git_explains_only_its_own_change() -> None:
    """If the task only wrote the index, a new HEAD is not attributed to it.

    The same holds for a move of another branch.
    """
    main = git_state(branch="refs/heads/main", head="a" * 40, refs={"refs/heads/main": "a", "refs/remotes/o/x": "a"})
    later = main.but(head="b" * 40, refs={"refs/heads/main": "b", "refs/remotes/o/x": "b"}, config="new")
    head = "HEAD moved while it ran (aaaaaaa -> bbbbbbb)"
    remote = "1 remote-tracking ref moved while it ran (o/x)"
    config = "the repository's configuration changed while it ran"
    for seen, told in {
        "": f"{head}; {remote}; {config}",
        "index": f"{head}; {remote}; {config}",
        "index, HEAD": f"{head}; {remote}; {config}",
        "branch other, config": f"{head}; {remote}",
        "branch main": f"{remote}; {config}",
        "branch main, remote branch o/x": config,
        "branch main, remote branch o/x, config": None,
    }.items():
        assert moved_unseen(seen, main, later) == told, seen
    switched = main.but(branch="refs/heads/other", head="b" * 40)
    assert moved_unseen("HEAD", main, switched) is None
    assert moved_unseen("branch other", main, switched) == f"{head}; HEAD went from main to other while it ran"
    detached = main.but(branch="")
    assert moved_unseen("HEAD", detached, detached.but(head="b" * 40)) is None


def test_removed_ref_is_explained_when_packed_refs_was_written() -> None:
    """If the task wrote `packed-refs`, a removed ref is attributed to it, but not a ref with a new value.

    Git writes only `packed-refs` when it removes a packed ref, and it never packs a new value.
    """
    main = git_state(branch="refs/heads/main", head="a" * 40, refs={"refs/heads/main": "a", "refs/remotes/o/x": "a"})
    gone = main.but(refs={"refs/heads/main": "a"})
    remote = "1 remote-tracking ref moved while it ran (o/x)"
    assert moved_unseen("packed-refs", main, gone) is None
    assert moved_unseen("config, remote branch o/y", main, gone) == remote
    assert moved_unseen("packed-refs", main, main.but(refs={**(gone.refs or {}), "refs/remotes/o/x": "b"})) == remote
    assert moved_unseen("packed-refs", main, main.but(head="", refs={"refs/remotes/o/x": "a"})) is None
    assert moved_unseen("packed-refs", main, main.but(head="b" * 40)) == "HEAD moved while it ran (aaaaaaa -> bbbbbbb)"


def test_unreadable_refs_are_explained_by_any_observed_ref() -> None:
    """If refs cannot be read, their change is attributed to the task if the task was observed to move any ref."""
    unread = git_state(refs=None, refs_mark="1")
    assert (
        moved_unseen("index", unread, unread.but(refs_mark="2")) == "refs moved while it ran; which ones cannot be read"
    )
    assert moved_unseen("tag v1", unread, unread.but(refs_mark="2")) is None


def test_missing_repository_is_not_unattributed_when_the_task_removed_it() -> None:
    """A repository or directory that the task removed is not reported as moved by another process."""
    assert moved_unseen("HEAD", git_state(), git_state().but(identity="")) is None
    assert moved_unseen("", git_state(), git_state().but(identity="")) == "the repository it ran in is gone"
    looks = quick(git_state()), quick(git_state(), is_present=False)
    assert with_comparisons(Effects(level="observed"), [], looks).moved == "the directory it ran in is gone"
    assert with_comparisons(Effects(level="observed", gone=("/r",), changed=("/r",)), [], looks).moved is None


@pytest.mark.parametrize("now", [None, "", "another"], ids=["gone", "gone to pieces", "another"])
def test_replaced_repository_is_not_unattributed_when_the_task_moved_it_whole(now: str | None) -> None:
    """If a git directory was replaced, this is attributed to a task that moved it, a parent, or the `.git` file.

    The record of the task then names no single part of git.
    """
    looks = quick(git_state()), quick(None if now is None else git_state().but(identity=now))
    for moved in ("/r/.git", "/r", "/r/sub", "/r/.gitignore"):
        found = with_comparisons(Effects(level="observed", changed=(moved,)), [], looks).moved
        assert (found is None) == (moved in ("/r/.git", "/r")), moved
    committed = quick(git_state(head="a" * 40)), quick(git_state(head="b" * 40))
    assert with_comparisons(Effects(level="observed", changed=("/r/.git",)), [], committed).moved is None
    linked = git_state().but(git_dir="/main/.git/worktrees/r")
    looks = quick(linked), quick(None if now is None else linked.but(identity=now))
    assert with_comparisons(Effects(level="observed", changed=("/r/.git",)), [], looks).moved is None


def test_stash_depth_is_reported_unless_the_task_was_seen_stashing() -> None:
    """A changed number of stashes is reported, unless the task was observed to change the stash."""
    deeper = comparison(stash=Move(name="stash", before="", after="a"), stash_depth=(0, 1))
    in_none = with_comparisons(Effects(level="observed"), [deeper], None)
    assert in_none.moved == "the stash of /r went from 0 to 1", "the repository of the stash is not named"
    seen = Effects(level="observed", git=((NOW, "stash", "git stash"),))
    assert with_comparisons(seen, [deeper], None).moved is None
    looks = quick(git_state(stash=())), quick(git_state(stash=("a", "b")))
    both = comparison(stash=Move(name="stash", before="a", after="b"), stash_depth=(1, 2), top=git_state().top)
    told = with_comparisons(Effects(level="observed"), [both], looks).moved
    assert told == "the stash went from 0 to 2", "the depth does not come from the quick snapshots"
    assert with_comparisons(seen, [both], looks).moved is None
    there = deeper.but(top="/s")
    assert with_comparisons(seen, [there], looks).moved == "the stash of /s went from 0 to 1"
    elsewhere = Effects(level="observed", git=((NOW, "stash of /s", "git stash"),))
    assert with_comparisons(elsewhere, [there], looks).moved == "the stash went from 0 to 2"
    assert with_comparisons(elsewhere, [there], None).moved is None


def test_stash_of_a_submodule_is_not_reported_when_the_task_was_seen_stashing_there() -> None:
    """If the task stashed in a submodule, the new stash of this submodule is attributed to the task.

    The submodule's name differs from its path, and its git directory is inside that of the outer repository.
    """
    deeper = comparison(stash=Move(name="stash", before="a", after=""), stash_depth=(1, 0), top="/r/lib")
    looks = quick(git_state()), quick(git_state())
    seen = Effects(level="observed", git=((NOW, "stash of submodule another", "git stash"),))
    assert with_comparisons(seen, [deeper], looks).moved is None
    assert with_comparisons(seen, [deeper.but(top="/s")], looks).moved == "the stash of /s went from 1 to 0"


def test_moves_in_a_further_repository_are_reported_unless_they_were_seen() -> None:
    """Moves of HEAD, branches and tags in another repository are reported with its path, unless the task made them.

    Refs that worktrees share are reported once.
    """
    main, tag = Move(name="refs/heads/main", before="a", after="b"), Move(name="refs/tags/v1", before="", after="c")
    head, side = Move(name="HEAD", before="a", after="b"), Move(name="branch", before="refs/heads/main", after="")
    there = comparison(top="/s", head=head, refs=(main, tag), config_changed=True)
    looks = quick(git_state(refs={})), quick(git_state(refs={}))
    for seen, told in {
        "": "branch main, tag v1, config of /s moved while it ran",
        "branch main, tag v1, config": "branch main, tag v1, config of /s moved while it ran",
        "branch main of /s, config of /s": "tag v1 of /s moved while it ran",
        "branch main of /s, config of /s, tag v1 of /s": None,
    }.items():
        parts = tuple((NOW, what, "git") for what in seen.split(", ") if what)
        assert with_comparisons(Effects(level="observed", git=parts), [there], looks).moved == told, seen
    switched = comparison(top="/s", head=head, branch=side)
    assert with_comparisons(Effects(), [switched], looks).moved == "HEAD of /s moved while it ran"
    tagged = quick(git_state(refs={})), quick(git_state(refs={"refs/tags/v1": "c"}))
    shared = comparison(top="/s", refs=(tag,))
    assert with_comparisons(Effects(), [shared], tagged).moved == "tag v1 moved while it ran"


def test_branches_tags_and_worktrees_are_reported_unless_they_were_seen() -> None:
    """Branches, tags and worktrees that were added, moved or removed are reported, unless the task did it.

    The branch of HEAD is reported as HEAD.
    """
    refs = {"refs/heads/main": "a", "refs/heads/old": "a"}
    main = git_state(branch="refs/heads/main", head="a" * 40, refs=refs, worktrees=("one",))
    later = main.but(refs={"refs/heads/main": "a", "refs/heads/new": "a", "refs/tags/v1": "a"}, worktrees=("two",))
    for seen, told in {
        "": "branch new, branch old, tag v1, worktree one, worktree two moved while it ran",
        "branch new, tag v1, worktree one": "branch old, worktree two moved while it ran",
        "branch new, branch old, tag v1, worktree one, worktree two": None,
    }.items():
        assert moved_unseen(seen, main, later) == told, seen
    committed = main.but(head="b" * 40, refs={**refs, "refs/heads/main": "b"})
    assert moved_unseen("", main, committed) == "HEAD moved while it ran (aaaaaaa -> bbbbbbb)"
    many = main.but(refs={**refs, **{f"refs/tags/{number}": "a" for number in range(9)}})
    assert moved_unseen("", main, many) == "tag 0, tag 1, tag 2, tag 3, tag 4, tag 5 and 3 more moved while it ran"


def test_files_of_a_further_repository_are_named_with_their_whole_path() -> None:
    """A file of another repository is named with its whole path, so that it is not taken for one of the project."""
    looks = quick(git_state(top="/r")), quick(git_state(top="/r"))
    found = with_comparisons(Effects(level="observed"), [comparison("a"), comparison("a", top="/s")], looks)
    assert "2 files changed by somebody else, or unseen: a, /s/a" in summary_of(found, NOW)
    assert with_meanwhile(Drift(moved=False, summary=""), found).summary.endswith(": a, /s/a")
    alone = with_comparisons(Effects(level="observed"), [comparison("a", top="/s")], None)
    assert "unseen: /s/a" in summary_of(alone, NOW), "the repository of the file is not named"
    between = (Unattributed(path="/r/a", name="a", how="changed"), Unattributed(path="/s/a", name="a", how="changed"))
    seen = Effects(level="observed", unattributed=between, unattributed_in_all=2)
    assert "unseen: a, /s/a" in summary_of(with_comparisons(seen, [], looks), NOW)


def test_moves_in_a_further_repository_are_drift_as_in_the_first_one() -> None:
    """In another repository, too, a new commit, branch, remote branch or configuration is reported.

    A new tag is not.
    """
    looks = quick(git_state(refs={})), quick(git_state(refs={}))
    head, main = Move(name="HEAD", before="a", after="b"), Move(name="refs/heads/main", before="a", after="b")
    side, tag = Move(name="branch", before="refs/heads/main", after=""), Move(name="refs/tags/v1", before="", after="c")
    remote = Move(name="refs/remotes/o/x", before="a", after="c")
    for fields, told in (
        ({"head": head, "refs": (main, tag)}, "branch main, tag v1 of /s moved while it ran"),
        ({"branch": side}, "HEAD of /s moved while it ran"),
        ({"refs": (remote,)}, "remote branch o/x of /s moved while it ran"),
        ({"config_changed": True}, "config of /s moved while it ran"),
        ({"refs": (tag, main)}, None),
    ):
        found = with_comparisons(Effects(level="observed"), [comparison(top="/s", **fields)], looks)
        assert found.meanwhile == (() if told is None else (told,)), fields
        drifted = with_meanwhile(Drift(moved=False, summary="as it was"), found)
        assert (drifted.moved, drifted.later) == (told is not None, ()), fields
    seen = Effects(level="observed", git=((NOW, "branch main of /s", "git commit"),))
    assert with_comparisons(seen, [comparison(top="/s", head=head, refs=(main,))], looks).meanwhile == ()


def test_summary_separates_rewritten_files_from_changed_ones() -> None:
    """A file that was saved with the same content is counted as rewritten, and not as changed."""
    same, unsure = PathChange(path="b", how="rewritten"), PathChange(path="c", how="touched")
    a = PathChange(path="a", how="changed")
    for paths, counts, told in (
        ((same,), {"rewritten": 1}, "1 file written with the same content by somebody else, or unseen: /r/b"),
        ((unsure,), {"touched": 1}, "1 file written, perhaps changed, by somebody else, or unseen: /r/c"),
        (
            (a, same),
            {"changed": 1, "rewritten": 1},
            (
                "1 file changed by somebody else, or unseen: /r/a; "
                "1 file written with the same content by somebody else, or unseen: /r/b"
            ),
        ),
        (
            (a, same),
            {"changed": 1, "rewritten": 5},
            (
                "1 file changed by somebody else, or unseen: /r/a; "
                "1 file written with the same content by somebody else, or unseen: /r/b; 4 more files differ"
            ),
        ),
        (
            (same,),
            {"rewritten": 9},
            "9 files written with the same content by somebody else, or unseen: /r/b and 8 more",
        ),
    ):
        found = with_comparisons(Effects(level="observed"), [comparison(paths=paths, counts=counts)], None)
        assert summary_of(found, NOW) == f"no effects were observed; {told}"
