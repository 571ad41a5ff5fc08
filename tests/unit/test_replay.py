"""A journal replayed: windows follow from states, and never from what nobody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlive.domain.replay import Replay
from outlive.domain.when import from_micros, timedelta

if TYPE_CHECKING:
    from outlive.domain.effects import Effects, Window

A, B = "f" + "a" * 40, "f" + "b" * 40


def replay(*lines: str, now: str = A) -> Effects:
    """The effects of a journal whose fields are parted by blanks."""
    replayed = Replay("/home/outlive")
    replayed.read(line.split(" ") for line in ("1 watch 0 - /r /r/.git", *lines))
    return replayed.effects(lambda *_: now)


def lasted(window: Window) -> timedelta:
    """How long a window was open that is no more."""
    assert window.closed_at is not None
    return window.closed_at - window.opened_at


def test_a_watched_path_that_came_back_has_a_window() -> None:
    """From the look at which it differed to the look at which it did not."""
    found = replay(f"2000000 seen 0 {A} /r/x {B} /r/x", f"5000000 seen 0 {A} /r/x {A} /r/x")
    (window,) = found.windows
    assert lasted(window) == timedelta(seconds=3)
    assert (found.level, found.restored, window.by) == ("watched", ("/r/x",), "somebody")


def test_what_was_missed_under_watch_ends_when_it_was_looked_at() -> None:
    """The last look found it back: nobody knows since when, so it is told as of that look."""
    found = replay(f"2000000 seen 0 {A} /r/x {B} /r/x", f"9000000 final 0 {A} /r/x")
    (window,) = found.windows
    assert lasted(window) == timedelta(seconds=7)


def test_an_unknown_beginning_makes_no_window() -> None:
    """It changed; that is all."""
    found = replay(f"2000000 seen 0 ? /r/x {B} /r/x", f"5000000 seen 0 ? /r/x {A} /r/x")
    assert (found.changed, found.windows, found.restored) == (("/r/x",), (), ())


def observed(*lines: str) -> Effects:
    """The effects of a journal of calls, that tells of every path how it was left."""
    replayed = Replay("/home/outlive")
    replayed.read(line.split(" ") for line in ("1 begin 0 - /r /r/.git ", *lines))
    return replayed.effects(lambda *_: "")


def test_what_cannot_be_looked_at_for_a_moment_makes_no_window() -> None:
    """Nor does it close one: whether a path is as it was is known before and after."""
    found = observed(f"2 write 9 {A} /r/x", "3 write 9 ? /r/x", f"4 final 0 {A} /r/x")
    assert (found.level, found.windows, found.restored, found.rewritten) == ("observed", (), (), ("/r/x",))
    lines = (f"2 write 9 {A} /r/x", f"3 write 9 {B} /r/x", "4 write 9 ? /r/x", f"5 write 9 {B} /r/x")
    found = observed(*lines, f"6 final 0 {A} /r/x")
    assert [(each.opened_at, each.closed_at) for each in found.windows] == [(from_micros(2), from_micros(5))]
    found = observed(f"2 write 9 {A} /r/x", "3 write 9 ? /r/x", f"4 final 0 {B} /r/x")
    assert [each.opened_at for each in found.windows] == [from_micros(2)], "since then nobody knows it as it was"
    found = observed(*lines, "6 final 0 ? /r/x")
    assert (found.changed, found.restored, [each.closed_at for each in found.windows]) == (("/r/x",), (), [None])


def test_what_differs_from_what_was_put_back_is_somebody_elses_doing() -> None:
    """Only then: through a descriptor that a child has, a task goes on to write without a call."""
    found = observed(f"2 remove 9 {A} /r/x", "3 write 9 0 /r/x", f"4 look 0 {A} /r/x", f"9 final 0 {B} /r/x")
    assert (found.changed, found.restored, [each.name for each in found.unattributed or ()]) == ((), ("/r/x",), ["x"])
    assert [(each.opened_at, each.closed_at) for each in found.windows] == [(from_micros(2), from_micros(3))]
    for now in (A, B):
        found = observed(f"2 write 9 {A} /r/x", f"4 look 0 {now} /r/x", "9 final 0 fcc /r/x")
        assert (found.changed, found.restored, found.unattributed) == (("/r/x",), (), None)
    lines = (f"2 remove 9 {A} /r/x", "3 write 9 0 /r/x", f"4 look 0 {A} /r/x", f"5 write 9 {A} /r/x")
    found = observed(*lines, f"9 final 0 {B} /r/x")
    assert (found.changed, found.unattributed) == (("/r/x",), None), "it has changed it once more"


def test_a_change_that_cannot_be_looked_at_is_a_gap_and_not_nothing() -> None:
    """Nobody knows what it held, or what it holds: it changed, unless the kernel knows of no change."""
    for lines in (("2 write 9 ? /r/x", f"4 final 0 {A} /r/x"), (f"2 write 9 {A} /r/x", "4 final 0 ? /r/x")):
        found = observed(*lines)
        assert (found.level, found.changed, found.windows) == ("partial", ("/r/x",), ())
        assert (found.restored, found.rewritten) == ((), ())
        assert found.gaps == ("1 file that could not be looked at: changed, perhaps to the same content",)
    found = observed("9000000 write 9 ? /r/x", f"9000004 final 0 {A} /r/x 3 3")
    assert (found.level, found.changed) == ("observed", ())


def test_what_is_put_back_slowly_is_back_when_it_was_written_last() -> None:
    """The call that opened it tells only when that began: `slow > x` empties x at once."""
    away, opened = f"1000000 write 9 {A} /r/x", f"2000000 write 9 {B} /r/x"
    (window,) = observed(away, opened, f"9000000 final 0 {A} /r/x 6000000 6000000").windows
    assert lasted(window) == timedelta(seconds=5)
    (window,) = observed(away, opened, f"9000000 final 0 {A} /r/x 500000 6000000").windows
    assert lasted(window) == timedelta(seconds=1)  # its time was set, as by `cp -p`
    again = f"8000000 write 9 {A} /r/x", f"9000000 final 0 {A} /r/x 8000000 8000000"
    (window,) = observed(away, opened, f"7000000 look 0 {A} /r/x 6000000", *again).windows
    assert lasted(window) == timedelta(seconds=5)


def test_laying_refs_together_takes_no_stash_away() -> None:
    """Git moves it to `packed-refs`: whoever is about to use it finds it as it was."""
    replayed = Replay("/home/outlive")
    replayed.read(line.split("|") for line in ("1|begin|0|-|/r|/r/.git|", "2|exec|8|-|git pack-refs --all"))
    replayed.read([f"3 remove 8 {A} /r/.git/refs/stash".split(" ")])
    assert replayed.open_now(lambda *_: "0", with_stashes=True) == ()


def test_what_somebody_changes_after_the_end_is_not_held_by_the_task_any_more() -> None:
    """Put back, or put back and edited: either way it is not as the task left it."""
    c = "f" + "c" * 40
    for now, is_held in {A: False, B: True, c: False, "0": False, "?": True}.items():
        replayed = Replay("/home/outlive")
        lines = ("1 begin 0 - /r /r/.git ", f"2 write 9 {A} /r/x", f"4 final 0 {B} /r/x")
        replayed.read(line.split(" ") for line in lines)
        assert bool(replayed.open_now(lambda *_, now=now: now)) is is_held, now


def test_trees_have_windows_of_their_own() -> None:
    """Two repositories, one inside the other, at the same time."""
    replayed = Replay("/home/outlive")
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


def test_what_stays_open_does_not_hide_what_came_back_meanwhile() -> None:
    """Two files at the same time, and one of them is back."""
    lines = (f"2 seen 0 {A} /r/x {B} /r/x", f"5 seen 0 {A} /r/x {A} /r/x", f"5 seen 0 {A} /r/y {B} /r/y")
    back, still = replay(*lines, "9 final 0 " + A + " /r/x", "9 final 0 " + B + " /r/y").windows
    assert (back.paths, lasted(back)) == (("/r/x",), timedelta(microseconds=3))
    assert (still.paths, still.closed_at) == (("/r/y",), None)


def test_more_windows_than_are_kept_are_told_as_a_number() -> None:
    """The first ones and the last are kept: nobody is to think that it was over when room was."""
    lines = [f"{at} write 9 {B if at % 2 else A} /r/x" for at in range(2, 61)]
    replayed = Replay("/home/outlive")
    replayed.read(line.split(" ") for line in ("1 begin 0 - /r /r/.git ", *lines))
    found = replayed.effects(lambda *_: A)
    assert (len(found.windows), found.level) == (16, "partial")
    assert found.windows[-1].closed_at == from_micros(59)
    assert found.gaps == ("13 more windows, of files that were away and back very often",)


def test_what_is_made_and_removed_very_often_is_no_gap() -> None:
    """Nobody was misled about a file that was not there before: `configure` tries hundreds of programs so."""
    lines = (f"{at}0 write 9 0 /r/try.c|{at}5 remove 9 {A} /r/try.c".split("|") for at in range(1, 40))
    found = observed(*(line for pair in lines for line in pair), "9999 final 0 0 /r/try.c")
    assert (found.level, found.gaps, found.windows) == ("observed", (), ())


def test_a_directory_that_was_there_is_not_made() -> None:
    """Whoever runs git makes sure of its directories first: no worktree came or went by that."""
    replayed = Replay("/home/outlive")
    lines = ("1 begin 0 - /r /m/.git/worktrees/w /m/.git", "2 mkdir 9 d7 /m/.git/worktrees/w", "3 mkdir 9 d8 /r/x")
    replayed.read(line.split(" ") for line in lines)
    found = replayed.effects(lambda *_: "d8")
    assert (found.git, found.changed, found.rewritten) == ((), (), ())


def test_a_further_try_goes_on_where_the_last_one_ended() -> None:
    """What it left is what the next one found; a try that was not seen is a gap in all of it."""
    first = (
        "1 begin 0 - /r /r/.git ",
        f"2 write 9 {A} /r/x",
        f"3 write 9 {A} /r/y",
        f"4 final 0 {B} /r/x",
        f"4 final 0 {B} /r/y",
    )
    second = ("5 begin 0 - /r /r/.git ", f"6 write 9 {B} /r/x", f"7 final 0 {A} /r/x")
    replayed = Replay("/home/outlive")
    replayed.read(line.split(" ") for line in (*first, *second))
    found = replayed.effects(lambda *_: "?")
    assert (found.level, found.restored, found.changed) == ("observed", ("/r/x",), ("/r/y",))
    for lines in ((*first, "5 unseen 0 - why"), ("0 unseen 0 - why", *second)):
        replayed = Replay("/home/outlive")
        replayed.read(line.split(" ") for line in lines)
        found = replayed.effects(lambda *_: B)
        assert (found.level, len(found.gaps)) == ("partial", 1)


def test_who_was_left_behind_may_change_what_the_end_was_seen_to_be() -> None:
    """A look at the end tells nothing of a change that came after it."""
    replayed = Replay("/home/outlive")
    lines = ("1 begin 0 - /r /r/.git ", f"2 write 9 {A} /r/x", f"3 final 0 {B} /r/x", f"4 write 9 {B} /r/x")
    replayed.read(line.split(" ") for line in lines)
    found = replayed.effects(lambda *_: A)
    assert (found.restored, found.changed) == (("/r/x",), ())


def test_what_somebody_changed_before_it_was_looked_at_is_not_taken_for_what_the_task_left() -> None:
    """It was changed, or made: that is known. What the task itself took away, or whoever it left behind did, is its."""
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
        replayed = Replay("/home/outlive")
        replayed.read(line.split(" ") for line in ("1 begin 0 - /r /r/.git ", f"2 {call}"))
        replayed.end(3, lambda _: 4)
        assert replayed.effects(lambda *_, state=state: state).but(unattributed=None) == found, "asked before the look"
    found = observed("2 write 9 0 /r/x", f"4 remove 9 {A} /r/x", "6 final 0 0 /r/x 0 5 3")
    assert (found.level, found.created) == ("observed", ())
    found = observed(f"4 write 9 {A} /r/x", "6 final 0 0 /r/x 0 5 3")
    assert (found.level, found.gone) == ("observed", ("/r/x",)), "it went on after its end"
    found = observed("2 write 9 0 /o/x", "6 final 0 0 /o/x 0 5 3")
    assert (found.level, found.outside) == ("partial", ("/o/x",))


def moved(*lines: str, now: dict[str, str]) -> Effects:
    """The effects of a journal of calls, of which nobody looked at the end."""
    replayed = Replay("/home/outlive")
    replayed.read(line.split(" ") for line in ("1 begin 0 - /r /r/.git ", *lines))
    return replayed.effects(lambda path, _: now.get(path, "0"))


def test_a_file_is_followed_when_its_directory_is_moved() -> None:
    """Changed under another name: it is the file that it was before which is another one now."""
    away, back = "2 rename 9 d1 /r/d 0 /r/e", "4 rename 9 d1 /r/e 0 /r/d"
    found = moved(away, f"3 write 9 {A} /r/e/x", back, now={"/r/d": "d1", "/r/d/x": B})
    assert (found.changed, found.gone, found.created, found.restored) == (("/r/d/x",), (), (), ("/r/d",))
    found = moved(away, f"3 write 9 {A} /r/e/x", "4 rename 9 d1 /r/e 0 /r/f", now={"/r/f": "d1", "/r/f/x": B})
    assert (found.gone, found.created) == (("/r/d", "/r/d/x"), ("/r/f",))


def test_what_was_made_in_a_directory_is_told_by_its_name_now() -> None:
    """Many make a directory under another name, and move it when it is whole; once removed, nothing is told."""
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


def test_a_directory_inside_of_one_that_moves_is_followed() -> None:
    """Two moves there, and two back, in the order in which they came."""
    there = ("2 rename 9 d1 /r/d/x 0 /r/d/y", "3 rename 9 d2 /r/d 0 /r/e", f"4 write 9 {A} /r/e/y/f")
    back = ("5 rename 9 d2 /r/e 0 /r/d", "6 rename 9 d1 /r/d/y 0 /r/d/x")
    found = moved(*there, *back, now={"/r/d": "d2", "/r/d/x": "d1", "/r/d/x/f": B})
    assert (found.changed, found.restored, found.gone) == (("/r/d/x/f",), ("/r/d", "/r/d/x"), ())


def test_what_was_removed_is_away_until_a_directory_brings_it_back() -> None:
    """One call puts a whole directory in its place: the window of its files lasts until then."""
    copied, removed = ("2 mkdir 9 0 /r/e", "2 make 9 0 /r/e/x"), f"3 remove 9 {A} /r/d/x"
    found = moved(*copied, removed, "7 rename 9 d2 /r/e 0 /r/d", now={"/r/d": "d2", "/r/d/x": A})
    assert found.restored == ("/r/d/x",)
    assert [lasted(window) for window in found.windows if window.closed_at] == [timedelta(microseconds=4)]


def test_a_directory_that_was_away_with_all_that_is_in_it_has_a_window_whatever_was_removed_before() -> None:
    """What was missing before tells of itself, and not of what was still in the directory when it was moved."""
    removed = f"2 remove 9 {A} /r/d/x"
    found = moved(removed, "3 rename 9 d1 /r/d 0 /r/e", "7 rename 9 d1 /r/e 0 /r/d", now={"/r/d": "d1"})
    (closed,) = (window for window in found.windows if window.closed_at)
    assert (closed.paths, lasted(closed)) == (("/r/d",), timedelta(microseconds=4))
    assert (found.gone, found.restored) == (("/r/d/x",), ("/r/d",))


def test_what_was_changed_before_its_directory_was_moved_is_away_since_then() -> None:
    """Nobody looked in between: what is found when the directory is back tells whether it was another one already."""
    away, back = "5 rename 9 d1 /r/d 0 /r/e", "7 rename 9 d1 /r/e 0 /r/d"
    for first in (f"2 write 9 {A} /r/d/x", f"2 remove 9 {A} /r/d/x"):
        after = {"write": B, "remove": "0"}[first.split()[1]]
        found = moved("1 exec 8 - first", first.replace(" 9 ", " 8 "), away, back, now={"/r/d": "d1", "/r/d/x": after})
        (left,) = (window for window in found.windows if not window.closed_at)
        assert (left.paths, left.opened_at, left.by) == (("/r/d/x",), from_micros(2), "first")
    found = moved(f"2 write 9 {A} /r/d/x", away, back, now={"/r/d": "d1", "/r/d/x": A})
    assert {(window.opened_at, window.closed_at) for window in found.windows} == {(from_micros(5), from_micros(7))}


def test_a_directory_that_was_made_anew_is_as_before_only_if_all_that_was_in_it_was_named() -> None:
    """It has the number of the one that had left, and another birth; of a git directory not everything is named."""
    away, anew = "2 rename 9 d1:1 /r/d - /x", "3 mkdir 9 0 /r/d"
    assert moved(away, anew, now={"/r/d": "d1:2"}).changed == ("/r/d",)
    assert moved("2 remove 9 d1:1 /r/d", anew, now={"/r/d": "d1:2"}).restored == ("/r/d",)
    found = moved("2 remove 9 d1:1 /r/.git", "3 mkdir 9 0 /r/.git", now={"/r/.git": "d1:2"})
    assert (found.changed, found.restored) == (("/r/.git",), ())


def test_a_directory_that_branches_lie_in_is_no_branch() -> None:
    """Git makes it before the first of them and removes it after the last; that of a worktree is the worktree."""
    refs, trees = "/r/.git/refs/heads/feature", "/r/.git/worktrees/side"
    made = (f"2 mkdir 9 0 {refs}", f"3 rename 9 - {refs}/x.lock 0 {refs}/x", f"4 mkdir 9 - {trees}")
    gone = (f"5 remove 9 {A} {refs}/x", f"6 remove 9 d1 {refs}", f"7 remove 9 - {trees}")
    told = ["branch feature/x", "worktree side"]
    assert [what for _, what, _ in moved(*made, *gone, now={}).git] == [*told, *told]


def test_a_worktree_that_could_not_be_removed_is_where_it_was() -> None:
    """Git tries to remove the directory that the last of its refs lay in: in vain, as long as there is a worktree."""
    trees = "/r/.git/worktrees/side"
    tried = (f"2 remove 9 d1:1 {trees}", f"3 rename 9 - {trees}/HEAD.lock {A} {trees}/HEAD")
    there, gone = (f"9 final 0 {state} {trees}" for state in ("d1:1", "0"))
    assert [what for _, what, _ in moved(*tried, there, now={}).git] == ["HEAD of worktree side"]
    assert [what for _, what, _ in moved(*tried, now={trees: "d1:1"}).git] == ["HEAD of worktree side"]
    assert [what for _, what, _ in moved(*tried, gone, now={}).git] == ["worktree side"]


def test_git_of_further_repositories_is_told_with_where_it_is() -> None:
    """That of the first needs no name, nor what it shares with its worktrees."""

    def told(begin: str, *paths: str) -> list[str]:
        replayed = Replay("/home/outlive")
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


def test_what_happened_to_a_directory_outside_of_the_tree_is_a_gap_when_it_is_back() -> None:
    """It is the same directory; what is in it need not be. That goes for the whole tree as well."""
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
        assert moved(away, *renamed, now={name: "d2"}).gaps == (), "another one is told as that"


def test_very_many_moves_are_a_gap() -> None:
    """Each is looked for in all that was heard of, which takes its time."""
    found = moved(*(f"{at} rename 9 d{at} /r/{at} 0 /r/m{at}" for at in range(2, 210)), now={})
    assert (found.level, len(found.gaps)) == ("partial", 1)


def test_what_came_with_a_move_that_is_not_followed_is_not_taken_for_what_was_there() -> None:
    """Under that name nothing was before; a directory that gets its own name back holds what it held."""
    many = [f"{at} rename 9 d{at} /r/{at} 0 /r/m{at}" for at in range(2, 202)]
    made = ("300 mkdir 9 0 /r/t", "301 write 9 0 /r/t/f", "302 rename 9 d9 /r/t 0 /r/u", f"303 remove 9 {A} /r/u/f")
    found = moved(*many, *made, now={"/r/u": "d9"})
    assert [path for path in (*found.gone, *found.changed) if path.startswith("/r/u")] == []
    assert [window.paths for window in found.windows if "/r/u/f" in window.paths] == []
    there = ("300 rename 9 d9 /r/t 0 /r/u", "301 rename 9 d9 /r/u 0 /r/t", f"303 write 9 {A} /r/t/f")
    found = moved(*many, *there, now={"/r/t": "d9", "/r/t/f": B})
    assert (("/r/t/f" in found.changed), ("/r/t/f" in found.created)) == (True, False)
