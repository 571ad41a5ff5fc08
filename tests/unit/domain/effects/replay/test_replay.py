"""Computing effects from the recorded changes of a task.

A time in which a path was changed is called a window, and is reported only between known states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlive.domain.effects.describe import none_open, summary_of
from outlive.domain.effects.replay.replay import Replay
from outlive.domain.timestamps import from_micros, timedelta

if TYPE_CHECKING:
    from outlive.domain.effects.effects import Effects, Window

A, B = "f" + "a" * 40, "f" + "b" * 40


def replay(*lines: str, now: str = A) -> Effects:
    """Return the effects of recorded changes, whose fields are separated by blanks."""
    replayed = Replay("/home/outlive", "/home/outlive/worktrees")
    replayed.read(line.split(" ") for line in ("1 watch 0 - /r /r/.git", *lines))
    return replayed.effects(lambda *_: now)


def lasted(window: Window) -> timedelta:
    """Return how long a path was changed before it was restored."""
    assert window.closed_at is not None
    return window.closed_at - window.opened_at


def test_watched_path_that_was_restored_has_a_window() -> None:
    """A watched path counts as changed from the first check that finds a difference to the first that finds none."""
    found = replay(f"2000000 seen 0 {A} /r/x {B} /r/x", f"5000000 seen 0 {A} /r/x {A} /r/x")
    (window,) = found.windows
    assert lasted(window) == timedelta(seconds=3)
    assert (found.level, found.restored, window.by) == ("watched", ("/r/x",), "somebody")


def test_summary_names_a_keeper_that_died_before_it_observed() -> None:
    """If the keeper died before it observed anything, the effects are unknown."""
    replayed = Replay("/home/outlive", "/home/outlive/worktrees")
    replayed.read([["1000000", "unobserved", "0", "-", "its keeper died"]])
    found = replayed.effects(lambda *_: A)
    assert found.level == "unknown"
    assert summary_of(found, from_micros(2000000)) == "its effects are not known: its keeper died"
    assert none_open(found) == "not known: its changes are not observed (its keeper died)"


def test_window_of_a_watched_path_ends_at_the_final_check() -> None:
    """If only the final check finds a watched path restored, the path counts as changed until this check."""
    found = replay(f"2000000 seen 0 {A} /r/x {B} /r/x", f"9000000 final 0 {A} /r/x")
    (window,) = found.windows
    assert lasted(window) == timedelta(seconds=7)


def test_path_with_an_unknown_first_state_has_no_window() -> None:
    """If the first state of a path is unknown, the path is reported as changed, without a time of restoration."""
    found = replay(f"2000000 seen 0 ? /r/x {B} /r/x", f"5000000 seen 0 ? /r/x {A} /r/x")
    assert (found.changed, found.windows, found.restored) == (("/r/x",), (), ())


def observed(*lines: str) -> Effects:
    """Return the effects of recorded calls, with the final states of their paths."""
    replayed = Replay("/home/outlive", "/home/outlive/worktrees")
    replayed.read(line.split(" ") for line in ("1 begin 0 - /r /r/.git ", *lines))
    return replayed.effects(lambda *_: "")


def test_unreadable_state_neither_opens_nor_closes_a_window() -> None:
    """If the state of a path cannot be read, this neither begins nor ends the time in which it counts as changed."""
    found = observed(f"2 write 9 {A} /r/x", "3 write 9 ? /r/x", f"4 final 0 {A} /r/x")
    assert (found.level, found.windows, found.restored, found.rewritten) == ("observed", (), (), ("/r/x",))
    lines = (f"2 write 9 {A} /r/x", f"3 write 9 {B} /r/x", "4 write 9 ? /r/x", f"5 write 9 {B} /r/x")
    found = observed(*lines, f"6 final 0 {A} /r/x")
    assert [(each.opened_at, each.closed_at) for each in found.windows] == [(from_micros(2), from_micros(5))]
    found = observed(f"2 write 9 {A} /r/x", "3 write 9 ? /r/x", f"4 final 0 {B} /r/x")
    assert [each.opened_at for each in found.windows] == [from_micros(2)], "the window begins too late"
    found = observed(*lines, "6 final 0 ? /r/x")
    assert (found.changed, found.restored, [each.closed_at for each in found.windows]) == (("/r/x",), (), [None])


def test_change_of_a_restored_path_is_attributed_to_another_process() -> None:
    """If a restored path changes after it was checked, without a call by the task, another process has changed it.

    This does not hold for a path that the task only wrote, because a child may write on through a descriptor.
    """
    found = observed(f"2 remove 9 {A} /r/x", "3 write 9 0 /r/x", f"4 look 0 {A} /r/x", f"9 final 0 {B} /r/x")
    assert (found.changed, found.restored, [each.name for each in found.unattributed or ()]) == ((), ("/r/x",), ["x"])
    assert [(each.opened_at, each.closed_at) for each in found.windows] == [(from_micros(2), from_micros(3))]
    for now in (A, B):
        found = observed(f"2 write 9 {A} /r/x", f"4 look 0 {now} /r/x", "9 final 0 fcc /r/x")
        assert (found.changed, found.restored, found.unattributed) == (("/r/x",), (), None)
    lines = (f"2 remove 9 {A} /r/x", "3 write 9 0 /r/x", f"4 look 0 {A} /r/x", f"5 write 9 {A} /r/x")
    found = observed(*lines, f"9 final 0 {B} /r/x")
    assert (found.changed, found.unattributed) == (("/r/x",), None), "the task changed the path again"


def test_changed_path_that_cannot_be_read_is_changed_and_a_gap() -> None:
    """If a changed path cannot be read at the end, it is reported as changed, and its final state as unknown.

    It is known if the file's times show that no process wrote it.
    """
    for lines in (("2 write 9 ? /r/x", f"4 final 0 {A} /r/x"), (f"2 write 9 {A} /r/x", "4 final 0 ? /r/x")):
        found = observed(*lines)
        assert (found.level, found.changed, found.windows) == ("partial", ("/r/x",), ())
        assert (found.restored, found.rewritten) == ((), ())
        assert found.gaps == ("1 file that could not be read: written, perhaps with the same content",)
    found = observed("9000000 write 9 ? /r/x", f"9000004 final 0 {A} /r/x 3 3")
    assert (found.level, found.changed) == ("observed", ())


def test_window_ends_when_a_restored_file_was_last_written() -> None:
    """A restored file counts as changed until it was last written, even if the command that restored it ended later.

    `slow > x`, for example, opens the file early and writes it late.
    """
    away, opened = f"1000000 write 9 {A} /r/x", f"2000000 write 9 {B} /r/x"
    (window,) = observed(away, opened, f"9000000 final 0 {A} /r/x 6000000 6000000").windows
    assert lasted(window) == timedelta(seconds=5)
    (window,) = observed(away, opened, f"9000000 final 0 {A} /r/x 500000 6000000").windows
    assert lasted(window) == timedelta(seconds=1)  # `cp -p`, for example, sets the time of a file to an earlier time.
    again = f"8000000 write 9 {A} /r/x", f"9000000 final 0 {A} /r/x 8000000 8000000"
    (window,) = observed(away, opened, f"7000000 look 0 {A} /r/x 6000000", *again).windows
    assert lasted(window) == timedelta(seconds=5)


def test_packing_refs_does_not_count_as_a_missing_stash() -> None:
    """When git packs refs, the file of the stash is removed. The stash does not count as missing then.

    Git moves the stash to `packed-refs`.
    """
    replayed = Replay("/home/outlive", "/home/outlive/worktrees")
    replayed.read(line.split("|") for line in ("1|begin|0|-|/r|/r/.git|", "2|exec|8|-|git pack-refs --all"))
    replayed.read([f"3 remove 8 {A} /r/.git/refs/stash".split(" ")])
    assert replayed.open_now(lambda *_: "0", with_stashes=True) == ()


def test_path_changed_by_others_after_the_end_is_not_left_open() -> None:
    """If another process changes a path after the task's end, the task has not left this path changed."""
    c = "f" + "c" * 40
    for now, is_held in {A: False, B: True, c: False, "0": False, "?": True}.items():
        replayed = Replay("/home/outlive", "/home/outlive/worktrees")
        lines = ("1 begin 0 - /r /r/.git ", f"2 write 9 {A} /r/x", f"4 final 0 {B} /r/x")
        replayed.read(line.split(" ") for line in lines)
        assert bool(replayed.open_now(lambda *_, now=now: now)) is is_held, now


def test_nested_repositories_have_separate_windows() -> None:
    """If a repository and one inside it are changed at once, each has its own list of changes."""
    replayed = Replay("/home/outlive", "/home/outlive/worktrees")
    lines = (
        "1 begin 0 - /r /r/.git  /r/in /r/in/.git ",
        f"2 write 9 {A} /r/x",
        f"3 write 9 {A} /r/in/x",
        "4 write 9 - /r/in/.git/HEAD",
    )
    replayed.read(line.split(" ") for line in lines)
    found = replayed.effects(lambda *_: B)
    assert [(window.scope, window.paths) for window in found.windows] == [("/r", ("/r/x",)), ("/r/in", ("/r/in/x",))]
    assert [what for _, what, _ in found.git] == ["HEAD of /r/in"]


def test_open_window_of_one_file_does_not_hide_the_closed_one_of_another() -> None:
    """If two files are changed at once and one is restored, one is listed as restored and the other as changed."""
    lines = (f"2 seen 0 {A} /r/x {B} /r/x", f"5 seen 0 {A} /r/x {A} /r/x", f"5 seen 0 {A} /r/y {B} /r/y")
    back, still = replay(*lines, "9 final 0 " + A + " /r/x", "9 final 0 " + B + " /r/y").windows
    assert (back.paths, lasted(back)) == (("/r/x",), timedelta(microseconds=3))
    assert (still.paths, still.closed_at) == (("/r/y",), None)


def test_effects_count_the_windows_that_are_not_kept() -> None:
    """Of very many changes that were restored, the first ones and the last are kept. The others are counted."""
    lines = [f"{at} write 9 {B if at % 2 else A} /r/x" for at in range(2, 61)]
    replayed = Replay("/home/outlive", "/home/outlive/worktrees")
    replayed.read(line.split(" ") for line in ("1 begin 0 - /r /r/.git ", *lines))
    found = replayed.effects(lambda *_: A)
    assert (len(found.windows), found.level) == (16, "partial")
    assert found.windows[-1].closed_at == from_micros(59)
    assert found.gaps == ("13 more windows of files that were changed and restored very often",)


def test_new_file_that_is_created_and_removed_often_is_no_gap() -> None:
    """New files that are created and removed by the hundred do not make the effects incomplete.

    `configure`, for example, makes such files.
    """
    lines = (f"{at}0 write 9 0 /r/try.c|{at}5 remove 9 {A} /r/try.c".split("|") for at in range(1, 40))
    found = observed(*(line for pair in lines for line in pair), "9999 final 0 0 /r/try.c")
    assert (found.level, found.gaps, found.windows) == ("observed", (), ())


def test_directory_that_existed_is_not_reported_as_created() -> None:
    """If git calls `mkdir` for a directory that exists, no worktree is reported as new."""
    replayed = Replay("/home/outlive", "/home/outlive/worktrees")
    lines = ("1 begin 0 - /r /m/.git/worktrees/w /m/.git", "2 mkdir 9 d7 /m/.git/worktrees/w", "3 mkdir 9 d8 /r/x")
    replayed.read(line.split(" ") for line in lines)
    found = replayed.effects(lambda *_: "d8")
    assert (found.git, found.changed, found.rewritten) == ((), (), ())


def test_replay_continues_the_states_of_the_attempt_before() -> None:
    """The effects of a second attempt continue those of the first. If an attempt was not observed, they say so."""
    first = (
        "1 begin 0 - /r /r/.git ",
        f"2 write 9 {A} /r/x",
        f"3 write 9 {A} /r/y",
        f"4 final 0 {B} /r/x",
        f"4 final 0 {B} /r/y",
    )
    second = ("5 begin 0 - /r /r/.git ", f"6 write 9 {B} /r/x", f"7 final 0 {A} /r/x")
    replayed = Replay("/home/outlive", "/home/outlive/worktrees")
    replayed.read(line.split(" ") for line in (*first, *second))
    found = replayed.effects(lambda *_: "?")
    assert (found.level, found.restored, found.changed) == ("observed", ("/r/x",), ("/r/y",))
    for lines in ((*first, "5 unseen 0 - why"), ("0 unseen 0 - why", *second)):
        replayed = Replay("/home/outlive", "/home/outlive/worktrees")
        replayed.read(line.split(" ") for line in lines)
        found = replayed.effects(lambda *_: B)
        assert (found.level, len(found.gaps)) == ("partial", 1)


def test_change_of_a_surviving_process_outdates_the_final_check() -> None:
    """If a surviving process changes a path after the final check, the later state counts."""
    replayed = Replay("/home/outlive", "/home/outlive/worktrees")
    lines = ("1 begin 0 - /r /r/.git ", f"2 write 9 {A} /r/x", f"3 final 0 {B} /r/x", f"4 write 9 {B} /r/x")
    replayed.read(line.split(" ") for line in lines)
    found = replayed.effects(lambda *_: A)
    assert (found.restored, found.changed) == (("/r/x",), ())


def test_change_by_others_before_the_final_check_is_not_attributed_to_the_task() -> None:
    """If a path was written after the task's end, it is reported as changed, and its state at the end as unknown.

    Removals by the task, and changes by processes that it left running, count as the task's own.
    """
    for call, state, told in (
        (f"write 9 {A} /r/x", "0", (("/r/x",), (), ())),
        (f"write 9 {A} /r/x", B, (("/r/x",), (), ())),
        ("write 9 0 /r/x", "0", ((), (), ("/r/x",))),
        (f"remove 9 {A} /r/x", "0", (("/r/x",), ("/r/x",), ())),
        (f"remove 9 {A} /r/x", B, (("/r/x",), ("/r/x",), ())),
    ):
        found = observed(f"2 {call}", f"5 final 0 {state} /r/x 0 4 3")
        assert (found.changed, found.gone, found.created) == told
        is_known = call.startswith("remove")
        assert (found.level, len(found.gaps)) == (("observed", 0) if is_known else ("partial", 1))
        replayed = Replay("/home/outlive", "/home/outlive/worktrees")
        replayed.read(line.split(" ") for line in ("1 begin 0 - /r /r/.git ", f"2 {call}"))
        replayed.end(3, lambda _: 4)
        assert replayed.effects(lambda *_, state=state: state).but(unattributed=None) == found, "no final check"
    found = observed("2 write 9 0 /r/x", f"4 remove 9 {A} /r/x", "6 final 0 0 /r/x 0 5 3")
    assert (found.level, found.created) == ("observed", ())
    found = observed(f"4 write 9 {A} /r/x", "6 final 0 0 /r/x 0 5 3")
    assert (found.level, found.gone) == ("observed", ("/r/x",)), "changed after the end"
    found = observed("2 write 9 0 /o/x", "6 final 0 0 /o/x 0 5 3")
    assert (found.level, found.outside) == ("partial", ("/o/x",))


def test_changes_in_the_state_directory_are_left_out_except_in_worktrees() -> None:
    """Changes in Outlive's state directory are left out, except in the worktrees of agents.

    Outlive itself writes there.
    """
    own, worktree = "/home/outlive/tasks/t/output", "/home/outlive/worktrees/t"
    for operation, top, form in (
        ("begin", worktree, "2 write 9 {0} {2}"),
        ("begin", "/home", "2 write 9 {0} {2}"),
        ("watch", worktree, "2 seen 0 {0} {2} {1} {2}"),
    ):
        replayed = Replay("/home/outlive", "/home/outlive/worktrees")
        lines = (f"1 {operation} 0 - {top} /r/.git ", *(form.format(A, B, path) for path in (own, f"{worktree}/x")))
        replayed.read(line.split(" ") for line in lines)
        assert replayed.effects(lambda *_: B).changed == (f"{worktree}/x",), (operation, top)
    found = replay(f"2 write 9 0 {worktree}/x", f"3 write 9 0 {own}", "4 write 9 0 /home/x")
    assert found.outside == ("/home/x",), "the files of a worktree that the task added for an agent"


def moved(*lines: str, now: dict[str, str]) -> Effects:
    """Return the effects of recorded calls without a final check."""
    replayed = Replay("/home/outlive", "/home/outlive/worktrees")
    replayed.read(line.split(" ") for line in ("1 begin 0 - /r /r/.git ", *lines))
    return replayed.effects(lambda path, _: now.get(path, "0"))


def test_file_is_followed_when_its_directory_is_moved() -> None:
    """If a directory was moved, a change of a file in it is reported under the file's first name."""
    away, back = "2 rename 9 d1 /r/d 0 /r/e", "4 rename 9 d1 /r/e 0 /r/d"
    found = moved(away, f"3 write 9 {A} /r/e/x", back, now={"/r/d": "d1", "/r/d/x": B})
    assert (found.changed, found.gone, found.created, found.restored) == (("/r/d/x",), (), (), ("/r/d",))
    found = moved(away, f"3 write 9 {A} /r/e/x", "4 rename 9 d1 /r/e 0 /r/f", now={"/r/f": "d1", "/r/f/x": B})
    assert (found.gone, found.created) == (("/r/d", "/r/d/x"), ("/r/f",))


def test_created_file_is_reported_by_its_present_name_when_its_directory_moved() -> None:
    """A created file in a directory that was moved later is reported by its new name, and not if it was removed again.

    Programs often fill a temporary directory, and rename it when it is complete.
    """
    made = (
        "2 mkdir 9 0 /r/t",
        "3 mkdir 9 0 /r/t/in",
        "4 write 9 0 /r/t/in/a",
        "4 write 9 0 /r/t/b",
        "4 write 9 0 /r/t/c",
    )
    gone, whole = f"5 remove 9 {A} /r/t/c", "6 rename 9 d1 /r/t 0 /r/u"
    now = {"/r/u": "d1", "/r/u/in": "d2", "/r/u/in/a": A, "/r/u/b": B}
    found = moved(*made, gone, whole, now=now)
    assert (found.created, found.gone, found.changed, found.windows) == (("/r/u/b", "/r/u/in/a"), (), (), ())
    again = "7 rename 9 d1 /r/u 0 /r/v"
    found = moved(*made, gone, whole, again, now={path.replace("/u", "/v"): state for path, state in now.items()})
    assert (found.created, found.gone) == (("/r/v/b", "/r/v/in/a"), ())
    found = moved(
        *made,
        gone,
        "6 rename 9 d3 /r/d 0 /r/old",
        "7 rename 9 d1 /r/t 0 /r/d",
        now={"/r/old": "d3", "/r/old/b": B, "/r/d": "d1", "/r/d/in": "d2", "/r/d/in/a": A, "/r/d/b": A},
    )
    assert (found.changed, found.created) == (("/r/d", "/r/d/b"), ("/r/d/in/a", "/r/old"))
    inside = (
        "2 rename 9 d3 /r/d 0 /r/e",
        "3 mkdir 9 0 /r/e/t",
        "4 write 9 0 /r/e/t/a",
        "5 rename 9 d1 /r/e/t 0 /r/e/u",
    )
    found = moved(*inside, "6 rename 9 d3 /r/e 0 /r/d", now={"/r/d": "d3", "/r/d/u": "d1", "/r/d/u/a": A})
    assert (found.restored, found.gone) == (("/r/d",), ())


def test_inner_directory_is_followed_when_the_outer_one_moves() -> None:
    """If an outer and an inner directory are moved away and back, a file in them is reported by its first name."""
    there = ("2 rename 9 d1 /r/d/x 0 /r/d/y", "3 rename 9 d2 /r/d 0 /r/e", f"4 write 9 {A} /r/e/y/f")
    back = ("5 rename 9 d2 /r/e 0 /r/d", "6 rename 9 d1 /r/d/y 0 /r/d/x")
    found = moved(*there, *back, now={"/r/d": "d2", "/r/d/x": "d1", "/r/d/x/f": B})
    assert (found.changed, found.restored, found.gone) == (("/r/d/x/f",), ("/r/d", "/r/d/x"), ())


def test_removed_file_has_a_window_until_a_copied_directory_replaces_it() -> None:
    """If one rename puts a complete directory in place, a removed file in it counts as restored from then on."""
    copied, removed = ("2 mkdir 9 0 /r/e", "2 make 9 0 /r/e/x"), f"3 remove 9 {A} /r/d/x"
    found = moved(*copied, removed, "7 rename 9 d2 /r/e 0 /r/d", now={"/r/d": "d2", "/r/d/x": A})
    assert found.restored == ("/r/d/x",)
    assert [lasted(window) for window in found.windows if window.closed_at] == [timedelta(microseconds=4)]


def test_moved_directory_has_a_window_when_a_file_in_it_was_removed_before() -> None:
    """If a file is removed from a directory that is then moved, the directory and the file are reported separately."""
    removed = f"2 remove 9 {A} /r/d/x"
    found = moved(removed, "3 rename 9 d1 /r/d 0 /r/e", "7 rename 9 d1 /r/e 0 /r/d", now={"/r/d": "d1"})
    (closed,) = (window for window in found.windows if window.closed_at)
    assert (closed.paths, lasted(closed)) == (("/r/d",), timedelta(microseconds=4))
    assert (found.gone, found.restored) == (("/r/d/x",), ("/r/d",))


def test_window_of_a_changed_file_begins_before_its_directory_moved() -> None:
    """If a file differs when its directory is moved back, it counts as changed since before the first move."""
    away, back = "5 rename 9 d1 /r/d 0 /r/e", "7 rename 9 d1 /r/e 0 /r/d"
    for first in (f"2 write 9 {A} /r/d/x", f"2 remove 9 {A} /r/d/x"):
        after = {"write": B, "remove": "0"}[first.split()[1]]
        found = moved("1 exec 8 - first", first.replace(" 9 ", " 8 "), away, back, now={"/r/d": "d1", "/r/d/x": after})
        (left,) = (window for window in found.windows if not window.closed_at)
        assert (left.paths, left.opened_at, left.by) == (("/r/d/x",), from_micros(2), "first")
    found = moved(f"2 write 9 {A} /r/d/x", away, back, now={"/r/d": "d1", "/r/d/x": A})
    assert {(window.opened_at, window.closed_at) for window in found.windows} == {(from_micros(5), from_micros(7))}


def test_recreated_directory_is_restored_only_when_all_its_entries_are_known() -> None:
    """A directory that was removed and made again counts as restored only if all its entries are known.

    A new directory may have the old inode number, but has another time of creation. Not every file in a git directory
    is recorded.
    """
    away, anew = "2 rename 9 d1:1 /r/d - /x", "3 mkdir 9 0 /r/d"
    assert moved(away, anew, now={"/r/d": "d1:2"}).changed == ("/r/d",)
    assert moved("2 remove 9 d1:1 /r/d", anew, now={"/r/d": "d1:2"}).restored == ("/r/d",)
    found = moved("2 remove 9 d1:1 /r/.git", "3 mkdir 9 0 /r/.git", now={"/r/.git": "d1:2"})
    assert (found.changed, found.restored) == (("/r/.git",), ())


def test_directory_of_refs_is_not_reported_as_a_branch() -> None:
    """A directory of refs is not reported as a branch. Git creates and removes it together with the refs in it."""
    refs, trees = "/r/.git/refs/heads/feature", "/r/.git/worktrees/side"
    made = (f"2 mkdir 9 0 {refs}", f"3 rename 9 - {refs}/x.lock 0 {refs}/x", f"4 mkdir 9 - {trees}")
    gone = (f"5 remove 9 {A} {refs}/x", f"6 remove 9 d1 {refs}", f"7 remove 9 - {trees}")
    told = ["branch feature/x", "worktree side"]
    assert [what for _, what, _ in moved(*made, *gone, now={}).git] == [*told, *told]


def test_worktree_is_not_reported_as_removed_when_its_directory_still_exists() -> None:
    """If its directory still exists, a worktree is not reported as removed.

    Git may have tried in vain to remove the directory of its last ref.
    """
    trees = "/r/.git/worktrees/side"
    tried = (f"2 remove 9 d1:1 {trees}", f"3 rename 9 - {trees}/HEAD.lock {A} {trees}/HEAD")
    there, gone = (f"9 final 0 {state} {trees}" for state in ("d1:1", "0"))
    assert [what for _, what, _ in moved(*tried, there, now={}).git] == ["HEAD of worktree side"]
    assert [what for _, what, _ in moved(*tried, now={trees: "d1:1"}).git] == ["HEAD of worktree side"]
    assert [what for _, what, _ in moved(*tried, gone, now={}).git] == ["worktree side"]


def test_git_changes_of_a_further_repository_are_named_with_its_path() -> None:
    """Changes in another repository are reported with its path. Those in the first repository are reported without."""

    def told(begin: str, *paths: str) -> list[str]:
        replayed = Replay("/home/outlive", "/home/outlive/worktrees")
        lines = (f"1 begin 0 - {begin}", *(f"{at} write 9 - {path}" for at, path in enumerate(paths, 2)))
        replayed.read(line.split(" ") for line in lines)
        return [what for _, what, _ in replayed.effects(lambda *_: A).git]

    side, heads = "/r/.git/worktrees/w", "refs/heads/x"
    two = told("/r /r/.git  /s /s/.git  ", "/r/.git/HEAD", "/s/.git/HEAD", f"/s/.git/{heads}")
    assert two == ["HEAD", "HEAD of /s", "branch x of /s"]
    assert told("   /s /s/.git ", "/s/.git/HEAD") == ["HEAD of /s"]
    assert told("/r /r/.git   /b.git ", "/b.git/HEAD") == ["HEAD of /b.git"]
    inside = told(f"/r /r/.git  /w {side} /r/.git", f"{side}/HEAD", f"/r/.git/{heads}")
    assert inside == ["HEAD of worktree w", "branch x"]
    around = told(f"/w {side} /r/.git /r /r/.git ", f"{side}/HEAD", "/r/.git/HEAD", f"/r/.git/{heads}")
    assert around == ["HEAD", "HEAD of the main worktree", "branch x"]


def test_directory_that_was_changed_outside_of_the_tree_is_a_gap_when_it_is_back() -> None:
    """If a directory was changed outside of the project and is moved back, its files are marked as unknown."""
    for name in ("/r/d", "/r"):
        away, back = f"2 rename 9 d1 {name} - /x/e", f"5 rename 9 - /x/e 0 {name}"
        touched, renamed = "3 write 9 - /x/e/in/f", ("3 rename 9 - /x/e - /x/f", f"5 rename 9 - /x/f 0 {name}")
        now = {name: "d1"}
        assert moved(away, back, now=now).gaps == ()
        assert moved(away, "3 write 9 - /x/other", back, now=now).gaps == ()
        for lines in ((away, touched, back), (away, *renamed)):
            found = moved(*lines, now=now)
            assert (found.level, len(found.gaps), found.restored) == ("partial", 1, (name,))
        refused = (away, "3 make 9 - /x/e/f", f"4 remove 9 {A} {name}/f", f"4 remove 9 d1 {name}", back)
        assert moved(*refused, f"6 mkdir 9 0 {name}", now={name: "d2", f"{name}/f": A}).gaps == ()
        assert moved(away, *renamed, now={name: "d2"}).gaps == (), "a new directory is a gap"


def test_moves_above_the_limit_are_a_gap() -> None:
    """If there are too many moves, the effects say that they are incomplete.

    The number is limited, because each move is compared with every path.
    """
    found = moved(*(f"{at} rename 9 d{at} /r/{at} 0 /r/m{at}" for at in range(2, 210)), now={})
    assert (found.level, len(found.gaps)) == ("partial", 1)


def test_replay_reports_nothing_for_files_that_came_with_a_move_above_the_limit() -> None:
    """A file in a directory that was moved too late to be followed is not reported as missing.

    If the directory is moved back to its own name, it has its old files again.
    """
    many = [f"{at} rename 9 d{at} /r/{at} 0 /r/m{at}" for at in range(2, 202)]
    made = ("300 mkdir 9 0 /r/t", "301 write 9 0 /r/t/f", "302 rename 9 d9 /r/t 0 /r/u", f"303 remove 9 {A} /r/u/f")
    found = moved(*many, *made, now={"/r/u": "d9"})
    assert [path for path in (*found.gone, *found.changed) if path.startswith("/r/u")] == []
    assert [window.paths for window in found.windows if "/r/u/f" in window.paths] == []
    there = ("300 rename 9 d9 /r/t 0 /r/u", "301 rename 9 d9 /r/u 0 /r/t", f"303 write 9 {A} /r/t/f")
    found = moved(*many, *there, now={"/r/t": "d9", "/r/t/f": B})
    assert (("/r/t/f" in found.changed), ("/r/t/f" in found.created)) == (True, False)
