"""Drift: one sentence that says whether old news is still true."""

from __future__ import annotations

from outlive.domain.contents import contents_of, mark_of
from outlive.domain.drift import STILL, STILL_OUTSIDE, Distance, Drift, drift
from outlive.domain.snapshot import AS_INDEXED, GONE, HASHED, UNHASHED, UNSEEN, GitState, Snapshot, Tree
from tests.unit.values import OLD, git_state

NEW = "3c4d5e6f" * 5


def stamp(size: int = 1, inode: int = 1, at: int = 1) -> bytes:
    """A stamp of a regular file."""
    fields = (at, 0, at, 0, inode, 0o100644, 0, 0, size)
    return b"".join(each.to_bytes(4, "big") for each in fields)


def seen(git: GitState | None = None, files: dict[str, bytes] | None = None, *unknown: str) -> Snapshot:
    """A snapshot of a directory that is there."""
    return Snapshot(directory="/r", is_present=True, git=git, files=files, unknown=unknown)


def test_nothing_moved() -> None:
    """An unchanged world is said to be so."""
    found = drift(seen(git_state()), seen(git_state()))
    assert (found.moved, found.summary, found.details) == (False, STILL, ())


def test_outside_of_a_repository_less_is_claimed() -> None:
    """What it read there nobody knows, nor whether that has moved."""
    found = drift(seen(), seen())
    assert (found.moved, found.summary) == (False, STILL_OUTSIDE)


def test_head_moved_is_counted() -> None:
    """Later, earlier, elsewhere, or uncounted: each has its sentence."""
    then, now = seen(git_state()), seen(git_state(head=NEW))
    ids = "(1a2b3c4 -> 3c4d5e6)"
    for distance, sentence in (
        (Distance(ahead=2, behind=0), f"HEAD moved 2 commits since it ran {ids}"),
        (Distance(ahead=1, behind=0), f"HEAD moved 1 commit since it ran {ids}"),
        (Distance(ahead=0, behind=3), f"HEAD went back 3 commits since it ran {ids}"),
        (Distance(ahead=4, behind=1), f"HEAD lost 1 commit and gained 4 since it ran {ids}"),
        (None, f"HEAD moved since it ran {ids}"),
    ):
        found = drift(then, now, distance)
        assert (found.moved, found.summary) == (True, sentence)


def test_the_weightiest_comes_first_and_all_are_listed() -> None:
    """HEAD, branch, remote-tracking refs, configuration and files are all told."""
    then = seen(git_state(refs={"refs/remotes/origin/main": OLD}), {"/r/a": HASHED + stamp() + b"1"})
    now = seen(
        git_state(head=NEW, branch="", refs={"refs/remotes/origin/main": NEW}, config="d"),
        {"/r/a": HASHED + stamp() + b"2"},
    )
    assert drift(then, now).details == (
        "HEAD moved since it ran (1a2b3c4 -> 3c4d5e6)",
        "it ran on main; HEAD is now detached",
        "1 remote-tracking ref moved since it ran (origin/main)",
        "the repository's configuration changed since it ran",
        "1 file it touched changed since (/r/a)",
    )


def test_what_is_gone_is_said() -> None:
    """Directory gone, repository gone, another in its place, one where none was."""
    there = seen(git_state())
    gone = Snapshot(directory="/r", is_present=False)
    assert drift(there, gone).details == ("the directory it ran in is gone", "the repository it ran in is gone")
    assert drift(there, seen(git_state(identity="2"))).summary == "another repository lies where it ran"
    assert drift(seen(), there).moved


def test_files_are_compared_by_content() -> None:
    """Rewritten with the same content is no drift; what cannot be compared is unknown, not unchanged."""
    for was, is_now, moved in (
        (HASHED + stamp() + b"1", HASHED + stamp(inode=2) + b"1", False),
        (HASHED + stamp() + b"1", UNHASHED + stamp(size=2), True),
        (HASHED + stamp() + b"1", GONE, True),
        (GONE, GONE, False),
        (UNHASHED + stamp(), UNHASHED + stamp(), False),
        (UNHASHED + stamp(), UNHASHED + stamp(inode=2), None),
        (UNSEEN, UNSEEN, None),
    ):
        assert drift(seen(files={"a": was}), seen(files={"a": is_now})).moved is moved


def tracked(
    dirty: dict[bytes, bytes], now: dict[bytes, bytes], *, clean: dict[bytes, bytes] | None = None, **git: str
) -> Drift:
    """The drift of a repository in which these were dirty and these clean, and these are there now."""
    before = seen(git_state(staged="s")).but(dirty=dirty, contents=contents_of({**(clean or {}), **dirty}))
    after = seen(git_state(**{"staged": "s", **git})).but(tree=Tree(tracked=now, untracked={}))
    return drift(before, after, ended_ns=10 * 10**9)


def test_tracked_files_that_changed_since_are_named() -> None:
    """What was clean and is not, and what was dirty and is otherwise; what is as it was is not."""
    a, b = HASHED + stamp() + b"1", HASHED + stamp() + b"2"
    for then, now, names in (
        ({}, {b"x": a, b"y": AS_INDEXED + stamp() + b"2"}, "x"),
        ({b"x": a}, {b"x": b}, "x"),
        ({b"x": a}, {b"x": AS_INDEXED + stamp() + b"2"}, "x"),
        ({b"x": a}, {b"x": GONE}, "x"),
        ({b"x": GONE}, {b"x": a}, "x"),
        ({b"x": a}, {b"x": AS_INDEXED + stamp(inode=2) + b"1"}, ""),
        ({b"x": GONE}, {b"x": GONE}, ""),
    ):
        found = tracked(then, now)
        assert found.details == ((f"1 tracked file changed since it ran, read by it or not: {names}",) if names else ())
        assert found.moved is bool(names)


def test_an_index_that_moved_below_a_file_is_no_change_of_the_file() -> None:
    """After a reset the file is not as the index says, and holds what it did."""
    clean = {b"x": AS_INDEXED + stamp() + b"1"}
    for content, moved in ((b"1", False), (b"2", True)):
        assert tracked({}, {b"x": HASHED + stamp(at=15) + content}, clean=clean, staged="t").moved is moved


def test_a_file_that_was_changed_and_staged_has_changed() -> None:
    """It is as the index says, then and now; but not what it was. What was staged as it lay there is."""
    one, other = AS_INDEXED + stamp() + b"1", AS_INDEXED + stamp(at=15) + b"2"
    found = tracked({}, {b"x": other, b"y": one}, clean={b"x": one, b"y": one}, staged="t")
    assert found.details == ("1 tracked file changed since it ran, read by it or not: x",)
    written_again = AS_INDEXED + stamp(at=15) + b"1"
    assert tracked({}, {b"x": written_again}, clean={b"x": one}, staged="t").moved is False
    assert tracked({b"x": HASHED + stamp() + b"1"}, {b"x": one}, staged="t").moved is False


def test_of_files_that_cannot_be_told_apart_only_the_number_is_told() -> None:
    """They share a mark: one of them changed, or both."""
    names = iter(b"%d" % number for number in range(100_000))
    first = next(names)
    second = next(name for name in names if mark_of(name) == mark_of(first))
    one, other = AS_INDEXED + stamp() + b"1", AS_INDEXED + stamp(at=15) + b"2"
    found = tracked({}, {first: other, second: other, b"x": other}, clean={first: one, second: one}, staged="t")
    assert found.details == ("at least 2 tracked files changed since it ran, read by it or not: x",)


def test_what_a_commit_changed_is_told_as_the_commit() -> None:
    """Its files are as git says; those that are not have changed beside it."""
    one, other = AS_INDEXED + stamp() + b"1", AS_INDEXED + stamp(at=15) + b"2"
    found = tracked({}, {b"x": other, b"y": HASHED + stamp(at=15) + b"2"}, clean={b"x": one}, staged="t", head=NEW)
    assert [each.split(" since ")[0] for each in found.details] == ["HEAD moved", "1 tracked file changed"]


def test_a_file_that_is_tracked_no_longer_is_not_passed_over() -> None:
    """`git rm` leaves no trace among the files of now, only that others are tracked than then."""
    one, two = {b"x": AS_INDEXED + stamp() + b"1"}, {b"y": AS_INDEXED + stamp() + b"1"}
    for clean, dirty, now, moved in (
        ({**one, **two}, {}, one, True),
        ({**one, **two}, {}, {**one, b"y": GONE}, True),
        (one, {}, {**one, **two}, True),
        (one, {}, one, False),
        (one, {b"y": GONE}, one, False),
    ):
        assert tracked(dirty, {**dict.fromkeys(dirty, GONE), **now}, clean=clean, staged="t").moved is moved


def test_an_index_written_since_is_unknown_if_nobody_had_read_it() -> None:
    """After a command that took a moment nobody looked at all files: unmoved would be a guess."""
    now = Tree(tracked={b"x": AS_INDEXED + stamp(at=1) + b"1"}, untracked={})
    for index, moved in (("i", False), ("j", None)):
        then = seen(git_state(index="i"))
        assert drift(then, seen(git_state(index=index, staged="s")).but(tree=now), ended_ns=10**10).moved is moved


def test_a_submodule_at_another_commit_may_have_been_there_before() -> None:
    """It has no times of its own: after a command that took a moment that is unknown, and not unmoved."""
    for kind, moved in ((AS_INDEXED, False), (HASHED, None)):
        now = Tree(tracked={b"sub": kind + bytes(36) + b"1"}, untracked={})
        assert drift(seen(git_state()), seen(git_state()).but(tree=now), ended_ns=10**10).moved is moved


def test_packing_refs_moves_none() -> None:
    """The file of a ref goes away, the ref does not."""
    name = "refs/heads/topic"
    path = git_state().common_dir + "/" + name
    then = seen(git_state(refs={name: OLD}), {path: HASHED + stamp() + b"1"})
    for refs, moved in (({name: OLD}, False), ({name: NEW}, True), ({}, True), (None, None)):
        assert drift(then, seen(git_state(refs=refs), {path: GONE})).moved is moved


def test_a_branch_that_it_moved_is_told_by_its_name_and_the_one_of_head_as_head() -> None:
    """Not as a file of git's directory, beside the sentence that says the same."""
    names = ("refs/heads/main", "refs/tags/v1")
    files = {f"{git_state().common_dir}/{name}": HASHED + stamp() + b"1" for name in names}
    then = seen(git_state(refs=dict.fromkeys(names, OLD)), files)
    now = seen(git_state(head=NEW, refs=dict.fromkeys(names, NEW)), dict.fromkeys(files, GONE))
    told = drift(then, now).details
    assert [each.partition(" (")[0] for each in told] == [
        "HEAD moved since it ran",
        "tag v1, which it moved, moved again since",
    ]


def test_a_file_it_touched_is_told_once() -> None:
    """By its path, as one that it touched."""
    was, is_now = HASHED + stamp() + b"1", HASHED + stamp() + b"2"
    before = seen(git_state(staged="s"), {"/r/x": was}).but(dirty={b"x": was}, contents=contents_of({}))
    after = seen(git_state(staged="s"), {"/r/x": is_now}).but(tree=Tree(tracked={b"x": is_now}, untracked={}))
    assert drift(before, after).details == ("1 file it touched changed since (/r/x)",)


def test_of_more_files_than_are_followed_the_number_is_a_lower_bound() -> None:
    """The first ones stand for all of them; those that are not tracked either are unknown."""
    was = HASHED + stamp() + b"1"
    then, now = seen(git_state(), {"/r/x": was}), seen(git_state(), {"/r/x": HASHED + stamp() + b"2"})
    assert drift(then.but(touched=3), now).summary == "at least 1 file it touched changed since (/r/x)"
    for unfollowed, moved in ((0, False), (2, None)):
        assert drift(then.but(touched=3, unfollowed=unfollowed), then).moved is moved


def test_files_that_nobody_looked_at_are_unknown() -> None:
    """In time, or at all; ids that measure different things tell nothing."""
    a = HASHED + stamp() + b"1"
    assert tracked({b"x": a}, {b"x": UNSEEN}).moved is None
    assert drift(seen(git_state()).but(dirty={}), seen(git_state())).moved is None
    before, after = seen(git_state()).but(dirty={b"x": a}, contents=contents_of({b"x": a})), seen(git_state())
    converted = Tree(tracked={b"x": AS_INDEXED + stamp(inode=2) + b"2"}, untracked={}, converts=True)
    assert drift(before, after.but(tree=converted)).moved is None


def test_what_was_written_after_the_end_has_changed_since() -> None:
    """Also if it was before anybody looked, or nobody did; one that is as git has it may be what it was."""
    early, late = HASHED + stamp(at=5) + b"1", HASHED + stamp(at=15) + b"1"
    clean, put_back = AS_INDEXED + stamp(at=5) + b"2", AS_INDEXED + stamp(at=15) + b"2"
    for then, now, moved in (
        ({b"x": late}, late, True),
        ({b"x": late}, put_back, None),
        ({b"x": early}, early, False),
        (None, late, True),
        (None, put_back, None),
        (None, GONE, None),
        (None, early, False),
        (None, clean, False),
    ):
        after = seen(git_state(staged="s")).but(tree=Tree(tracked={b"x": now}, untracked={}))
        before = seen(git_state(staged="s")).but(dirty=then, contents=contents_of(then or {}))
        assert drift(before, after, ended_ns=10 * 10**9).moved is moved, (then, now)


def test_unknown_is_not_unmoved() -> None:
    """If something could not be read, nobody claims that nothing moved."""
    found = drift(seen(git_state()), seen(git_state(head=None), None, "HEAD: kept as a reftable"))
    assert found.moved is None
    assert "kept as a reftable" in found.summary


def test_names_from_a_repository_are_harmless() -> None:
    """A branch or a path with escapes and newlines in it stays one harmless line."""
    now = seen(git_state(branch="refs/heads/a\x1b[31m\nb"), {"x\ny\x1b[0m": GONE})
    found = drift(seen(git_state(), {"x\ny\x1b[0m": HASHED + stamp() + b"1"}), now)
    assert not any("\n" in each or "\x1b" in each for each in found.details)
