"""Drift is a sentence that says whether the files have changed since a task ended."""

from __future__ import annotations

from outlive.domain.effects.drift import STILL, STILL_OUTSIDE, Distance, Drift, drift
from outlive.domain.git.content_digest import contents_of, mark_of
from outlive.domain.git.snapshot import AS_INDEXED, GONE, HASHED, UNHASHED, UNSEEN, GitState, Snapshot, Tree
from tests.unit.values import OLD, git_state

NEW = "3c4d5e6f" * 5


def stamp(size: int = 1, inode: int = 1, at: int = 1) -> bytes:
    """Return the stat data of a regular file."""
    fields = (at, 0, at, 0, inode, 0o100644, 0, 0, size)
    return b"".join(each.to_bytes(4, "big") for each in fields)


def seen(git: GitState | None = None, files: dict[str, bytes] | None = None, *unknown: str) -> Snapshot:
    """Return a snapshot of an existing directory."""
    return Snapshot(directory="/r", is_present=True, git=git, files=files, unknown=unknown)


def test_drift_says_that_nothing_moved_when_both_snapshots_are_equal() -> None:
    """If two snapshots are equal, the sentence says that nothing has changed, and there are no details."""
    found = drift(seen(git_state()), seen(git_state()))
    assert (found.moved, found.summary, found.details) == (False, STILL, ())


def test_drift_claims_less_outside_of_a_repository() -> None:
    """Outside of a repository, the sentence claims less. It is not known which files the task may have read."""
    found = drift(seen(), seen())
    assert (found.moved, found.summary) == (False, STILL_OUTSIDE)


def test_drift_counts_the_commits_that_head_moved() -> None:
    """There is a sentence for a HEAD that is ahead, behind, diverged, or at an unknown distance."""
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


def test_drift_details_list_every_change_with_the_most_important_first() -> None:
    """The details list every change in a fixed order: HEAD, branch, remote branches, configuration and files."""
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


def test_drift_reports_a_missing_directory_and_a_replaced_repository() -> None:
    """A missing directory, and a removed, replaced or new repository, are reported as changes."""
    there = seen(git_state())
    gone = Snapshot(directory="/r", is_present=False)
    assert drift(there, gone).details == ("the directory it ran in is gone", "the repository it ran in is gone")
    assert drift(there, seen(git_state(identity="2"))).summary == "there is another repository where it ran"
    assert drift(seen(), there).moved


def test_drift_compares_files_by_content() -> None:
    """A file that was rewritten with the same content has not changed. If a file was not read, this is unknown."""
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
    """Return what is reported for a repository with these changed, unchanged and present files."""
    before = seen(git_state(staged="s")).but(dirty=dirty, contents=contents_of({**(clean or {}), **dirty}))
    after = seen(git_state(**{"staged": "s", **git})).but(tree=Tree(tracked=now, untracked={}))
    return drift(before, after, ended_ns=10 * 10**9)


def test_drift_names_tracked_files_that_changed_since() -> None:
    """A tracked file is named if it has changed since the task, whether it was changed before or not."""
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


def test_reset_index_is_no_change_of_a_file_with_the_same_content() -> None:
    """If the index was reset, a file that differs from the index but has its old content has not changed."""
    clean = {b"x": AS_INDEXED + stamp() + b"1"}
    for content, moved in ((b"1", False), (b"2", True)):
        assert tracked({}, {b"x": HASHED + stamp(at=15) + content}, clean=clean, staged="t").moved is moved


def test_file_has_changed_when_its_new_content_was_staged() -> None:
    """If a file's new content was staged, the file has changed, although it matches the index before and after.

    Staging a file without a change of its content is not reported.
    """
    one, other = AS_INDEXED + stamp() + b"1", AS_INDEXED + stamp(at=15) + b"2"
    found = tracked({}, {b"x": other, b"y": one}, clean={b"x": one, b"y": one}, staged="t")
    assert found.details == ("1 tracked file changed since it ran, read by it or not: x",)
    written_again = AS_INDEXED + stamp(at=15) + b"1"
    assert tracked({}, {b"x": written_again}, clean={b"x": one}, staged="t").moved is False
    assert tracked({b"x": HASHED + stamp() + b"1"}, {b"x": one}, staged="t").moved is False


def test_drift_gives_only_a_number_for_files_with_the_same_checksum() -> None:
    """If two files have the same checksum, only a number is reported, because it is unknown which one has changed."""
    names = iter(b"%d" % number for number in range(100_000))
    first = next(names)
    second = next(name for name in names if mark_of(name) == mark_of(first))
    one, other = AS_INDEXED + stamp() + b"1", AS_INDEXED + stamp(at=15) + b"2"
    found = tracked({}, {first: other, second: other, b"x": other}, clean={first: one, second: one}, staged="t")
    assert found.details == ("at least 2 tracked files changed since it ran, read by it or not: x",)


def test_drift_reports_files_of_a_new_commit_only_as_a_move_of_head() -> None:
    """Files that match the index of a new commit are not listed, because the move of HEAD is reported.

    Others are listed.
    """
    one, other = AS_INDEXED + stamp() + b"1", AS_INDEXED + stamp(at=15) + b"2"
    found = tracked({}, {b"x": other, b"y": HASHED + stamp(at=15) + b"2"}, clean={b"x": one}, staged="t", head=NEW)
    assert [each.split(" since ")[0] for each in found.details] == ["HEAD moved", "1 tracked file changed"]


def test_drift_notices_a_file_that_is_no_longer_tracked() -> None:
    """A file that `git rm` has made untracked is reported. Only the list of tracked files shows this."""
    one, two = {b"x": AS_INDEXED + stamp() + b"1"}, {b"y": AS_INDEXED + stamp() + b"1"}
    for clean, dirty, now, moved in (
        ({**one, **two}, {}, one, True),
        ({**one, **two}, {}, {**one, b"y": GONE}, True),
        (one, {}, {**one, **two}, True),
        (one, {}, one, False),
        (one, {b"y": GONE}, one, False),
    ):
        assert tracked(dirty, {**dict.fromkeys(dirty, GONE), **now}, clean=clean, staged="t").moved is moved


def test_drift_is_unknown_when_the_index_was_written_and_the_old_one_was_not_read() -> None:
    """If the index was written and the old one was not read, it is unknown whether files have changed.

    The old index is not read for a short command.
    """
    now = Tree(tracked={b"x": AS_INDEXED + stamp(at=1) + b"1"}, untracked={})
    for index, moved in (("i", False), ("j", None)):
        then = seen(git_state(index="i"))
        assert drift(then, seen(git_state(index=index, staged="s")).but(tree=now), ended_ns=10**10).moved is moved


def test_drift_is_unknown_when_a_submodule_is_at_another_commit() -> None:
    """If a submodule is at another commit, it is unknown whether it has changed.

    It may have been there before the task.
    """
    for kind, moved in ((AS_INDEXED, False), (HASHED, None)):
        now = Tree(tracked={b"sub": kind + bytes(36) + b"1"}, untracked={})
        assert drift(seen(git_state()), seen(git_state()).but(tree=now), ended_ns=10**10).moved is moved


def test_packed_ref_is_no_drift() -> None:
    """A ref that git has packed has not changed. Packing removes the file of the ref, but the ref keeps its value."""
    name = "refs/heads/topic"
    path = git_state().common_dir + "/" + name
    then = seen(git_state(refs={name: OLD}), {path: HASHED + stamp() + b"1"})
    for refs, moved in (({name: OLD}, False), ({name: NEW}, True), ({}, True), (None, None)):
        assert drift(then, seen(git_state(refs=refs), {path: GONE})).moved is moved


def test_drift_names_moved_refs_once_and_the_branch_of_head_as_head() -> None:
    """If a ref moved, the ref is named, and the file that contains it is not. The branch of HEAD is named as HEAD."""
    names = ("refs/heads/main", "refs/tags/v1")
    files = {f"{git_state().common_dir}/{name}": HASHED + stamp() + b"1" for name in names}
    then = seen(git_state(refs=dict.fromkeys(names, OLD)), files)
    now = seen(git_state(head=NEW, refs=dict.fromkeys(names, NEW)), dict.fromkeys(files, GONE))
    told = drift(then, now).details
    assert [each.partition(" (")[0] for each in told] == [
        "HEAD moved since it ran",
        "tag v1, which it moved, moved again since",
    ]


def test_drift_lists_a_touched_tracked_file_once() -> None:
    """A tracked file that the task touched is listed once, by its path."""
    was, is_now = HASHED + stamp() + b"1", HASHED + stamp() + b"2"
    before = seen(git_state(staged="s"), {"/r/x": was}).but(dirty={b"x": was}, contents=contents_of({}))
    after = seen(git_state(staged="s"), {"/r/x": is_now}).but(tree=Tree(tracked={b"x": is_now}, untracked={}))
    assert drift(before, after).details == ("1 file it touched changed since (/r/x)",)


def test_drift_gives_a_lower_bound_when_not_all_touched_files_are_followed() -> None:
    """If the task touched files that are neither compared nor tracked, it is unknown whether they have changed."""
    was = HASHED + stamp() + b"1"
    then, now = seen(git_state(), {"/r/x": was}), seen(git_state(), {"/r/x": HASHED + stamp() + b"2"})
    assert drift(then.but(touched=3), now).summary == "at least 1 file it touched changed since (/r/x)"
    for unfollowed, moved in ((0, False), (2, None)):
        assert drift(then.but(touched=3, unfollowed=unfollowed), then).moved is moved


def test_drift_is_unknown_when_tracked_files_were_not_read() -> None:
    """If tracked files were not read, or the index has ids of converted contents, later changes are unknown."""
    a = HASHED + stamp() + b"1"
    assert tracked({b"x": a}, {b"x": UNSEEN}).moved is None
    assert drift(seen(git_state()).but(dirty={}), seen(git_state())).moved is None
    before, after = seen(git_state()).but(dirty={b"x": a}, contents=contents_of({b"x": a})), seen(git_state())
    converted = Tree(tracked={b"x": AS_INDEXED + stamp(inode=2) + b"2"}, untracked={}, converts=True)
    assert drift(before, after.but(tree=converted)).moved is None


def test_file_written_after_the_end_has_changed_since() -> None:
    """A file that was written after the task's end has changed. If it matches the index, this is unknown."""
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


def test_drift_is_unknown_when_something_could_not_be_read() -> None:
    """If a part of git could not be read, the summary names the part and says that its changes are unknown."""
    found = drift(seen(git_state()), seen(git_state(head=None), None, "HEAD: stored in a reftable"))
    assert found.moved is None
    assert "stored in a reftable" in found.summary


def test_drift_escapes_names_of_branches_and_files() -> None:
    """A name with escape sequences and newlines is shown in one line, without control characters."""
    now = seen(git_state(branch="refs/heads/a\x1b[31m\nb"), {"x\ny\x1b[0m": GONE})
    found = drift(seen(git_state(), {"x\ny\x1b[0m": HASHED + stamp() + b"1"}), now)
    assert not any("\n" in each or "\x1b" in each for each in found.details)
