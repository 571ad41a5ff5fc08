"""A journal replayed: what a task touched, derived from what was written down while it ran.

The journal tells what a path held before each change. So what it held after a change is what it
held before the next one, or what it holds at the end: a window opens with the change after which a
path is not as the task found it, and closes with the one after which it is again.
"""

from __future__ import annotations

from outlive.domain.between import Between
from outlive.domain.doers import NOBODY, Doers
from outlive.domain.doubts import doubts_of
from outlive.domain.effects import SOMEBODY, Effects
from outlive.domain.finals import Finals
from outlive.domain.folding import without_filled
from outlive.domain.git_moves import GitMoves
from outlive.domain.moving import MOST_MOVES, Moves, below
from outlive.domain.places import TEMPORARY
from outlive.domain.repositories import Repositories
from outlive.domain.story import ABSENT, STAT, UNREADABLE, Displaced, Story
from outlive.domain.when import from_micros
from outlive.domain.windows import by_whole, moved_whole, spans_of, windows_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from outlive.domain.effects import Level, Window
    from outlive.domain.story import Look, Span

UNSEEN = "-"
_TOUCHED_OUTSIDE = "a directory came back that was changed outside of the tree: what is in it is not known"


class Replay:
    """A journal, read line by line."""

    def __init__(self, ignored: str) -> None:
        """`ignored` is a directory whose files are not worth telling: where Outlive itself writes."""
        self._ignored = ignored.rstrip("/") + "/"
        self._in = Repositories()
        self._stories: dict[str, Story] = {}
        self._doers = Doers()
        self._moves = Moves()
        self._removed: dict[str, str] = {}
        """By what it was, under which name a directory was removed; or that was tried."""
        self._touched_outside: set[str] = set()
        """Directories that came from outside of the tree, where something had happened to them."""
        self._gaps: dict[str, None] = {}
        self._outside: dict[str, str] = {}
        self._remotes: dict[str, None] = {}
        self._git = GitMoves()
        self._finals = Finals()
        self._between = Between()
        self._unobserved: int | None = None
        self._is_observed = self._is_watched = False
        self._why_unseen: str | None = None

    @property
    def is_observed(self) -> bool:
        """Whether system calls were looked at."""
        return self._is_observed

    @property
    def trees(self) -> tuple[str, ...]:
        """The worktrees that it worked in, or may have."""
        return self._in.tops

    def read(self, lines: Iterable[list[str]]) -> None:
        """Further lines: time, operation, thread, then states and paths in turn."""
        for at, operation, thread, *fields in lines:
            self._line(int(at), operation, int(thread), fields)

    def _line(self, at: int, operation: str, thread: int, fields: list[str]) -> None:
        if operation in ("gap", "unobserved", "connect", "unseen"):
            self._word(at, operation, fields[1])
        elif operation in ("begin", "watch"):
            self._begin_again(is_observed=operation == "begin")
            self._is_observed, self._is_watched = operation == "begin", operation == "watch"
            self._finals.is_watched = self._is_watched
            self._git.begin(self._in.begin(fields[1:]))
        elif operation == "further":
            self._git.begin(self._in.come_to(fields[1:4]))
        elif operation == "exec":
            parent = int(fields[3]) if len(fields) > 3 and fields[3].isdigit() else None
            self._doers.begin(thread, fields[1], parent)
        elif operation == "fork":
            command = fields[2] if len(fields) > 2 else None
            self._doers.begin(thread, command, int(fields[1]) if fields[1].isdigit() else NOBODY)
        elif operation == "seen":
            self._seen(at, *fields)
        elif operation == "look":
            self._look_between(at, *fields)
        elif operation == "final":
            self._finals.add(at, *fields)
        else:
            self._operation(at, operation, self._doers.with_number(thread), fields)

    def _look_between(self, at: int, state: str, path: str, written: str = "") -> None:
        """It has been put back; if it is as it was before the last call, nothing may have come of that yet."""
        story = self._stories.get(path)
        if story is not None and story.state != state == story.baseline:
            story.found(state, int(written) if written.isdecimal() and int(written) <= at else 0)
            self._between.look(at, state, path)

    def _begin_again(self, *, is_observed: bool) -> None:
        """A further attempt: how the one before left things is what they are now."""
        for path, (_, state) in self._finals.held.items():
            if path in self._stories:
                story = self._stories[path]
                story.found(self._between.as_left(path, story.last_at, state)[0])
        if is_observed and self._why_unseen is not None:
            self._gaps[f"an earlier attempt was not seen: {self._why_unseen}"] = None

    def _operation(self, at: int, operation: str, by: int, fields: list[str]) -> None:
        if operation == "make":
            del fields[:-2]  # what a new name is a name of stays as it is
        if operation == "mkdir" and fields[0][:1] == "d":
            return  # it is there: whoever makes sure of its directories changes nothing
        for state, path in zip(fields[::2], fields[1::2], strict=False):
            # One that is moved takes along what lies in it.
            is_directory = operation == "mkdir" or (operation == "remove" and state[:1] == "d")
            self._change(at, by, state, path, is_directory=is_directory)
            self._finals.taken.discard(path)
            if path in self._stories:
                self._stories[path].must_be_same |= operation == "rename"
                self._stories[path].was_written |= operation == "write"
        if operation in ("rename", "remove"):
            self._finals.taken.add(fields[1])
        if operation == "rename" and len(fields) > 3:
            self._move(at, by, fields)
        if operation == "remove" and fields[0][:1] == "d":
            self._removed[fields[0]] = fields[1]

    def _move(self, at: int, by: int, fields: list[str]) -> None:
        """A directory takes along all that is in it, to where nothing was. Each move is looked for in all stories."""
        was, source, is_there, target = fields[:4]
        leaves, stays = self._in.is_told(source), self._in.is_told(target)
        # Outside of the tree nobody may have looked.
        is_move = was[:1] == "d" and is_there in (ABSENT, ABSENT if stays else UNSEEN) if leaves else stays
        if not is_move:
            return
        if self._moves.count == MOST_MOVES:
            self._gaps[f"more than {MOST_MOVES} directories were moved: what was in the others is not followed"] = None
            if stays and self._stories[target].baseline == ABSENT:
                self._moves.add_unfollowed(at, by, target)
        elif not stays:
            self._moves.add_outside(at, by, source, target)
        elif not leaves:
            is_back = self._moves.is_back_from_outside(target)
            # Refused, the move was made by hand: then all that was in it has been removed by its name, and made again.
            if is_back and self._moves.was_touched_outside(source) and not self._is_removed_from(target):
                self._touched_outside.add(target)
            self._arrive(at, by, target, is_back=is_back, is_whole=False)
        else:
            taken, home = below(source, self._stories), self._stories.get(self._moves.home_of(source))
            # Of one that the task made, all has been named; any other has a story, and stands for what is in it.
            for path in taken if home is None or home.baseline == ABSENT else ():
                name = target + path[len(source) :]
                self._stories[name] = self._stories.get(name) or self._begin(name, ABSENT, at)
            self._arrive(at, by, target, is_back=self._moves.add(at, by, source, target))
            for path in taken:
                if path in self._finals.taken:
                    self._stories[path].found(ABSENT)  # before its directory was moved
                self._stories[path].leave(at, by)
            self._finals.taken.update(taken)

    def _arrive(self, at: int, by: int, directory: str, *, is_back: bool, is_whole: bool = True) -> None:
        """A directory has come; what was heard of it is there only now, unless it is not known whether it was away."""
        for path in below(directory, self._stories) if is_back or is_whole else ():
            story = self._stories[path]
            self._finals.taken.discard(path)
            if is_back and isinstance(story, Displaced):
                story.come_back(at, by)
            elif is_whole:
                story.change(at, by, ABSENT)

    def _word(self, at: int, operation: str, word: str) -> None:
        if operation == "connect":
            self._remotes[word] = None
        elif operation == "unseen":
            self._why_unseen = word
            if self._is_observed:
                self._gaps[f"a later attempt was not seen: {word}"] = None
        else:
            self._gaps[word] = None
            if operation == "unobserved":
                self._unobserved = at

    def _change(self, at: int, by: int, state: str, path: str, *, is_directory: bool = False) -> None:
        if path.startswith(self._ignored):
            return
        if path.startswith(self._in.gits):
            is_tidying = self._doers.tidies_git(by)
            self._git.add(at, by, path, state, is_directory=is_directory, is_tidying=is_tidying)
            # A stash that is laid together with other refs is the one that it was.
            if path not in self._in.kept or state == UNSEEN or is_tidying:
                return
        elif not self._in.is_told(path):
            self._moves.touch_outside(path)
            if not path.startswith(TEMPORARY):
                self._outside.setdefault(path, state)
            return
        if state == UNSEEN:
            state = UNREADABLE
        story = self._stories.get(path)
        if story is None:
            story = self._stories[path] = self._begin(path, state, at)
            story.must_be_same = self._in.is_git(path)  # of what is in it, most is not told
        story.change(at, by, state)

    def _begin(self, path: str, state: str, now: int) -> Story:
        """What is heard first of a path; of one that came with its directory, that it was another one before."""
        if state == ABSENT:
            left = self._moves.left_from_above(path)
            if left is None or self._is_as_found(left[0]):
                return Story(ABSENT, now)
            return Displaced(*left, now)
        origin = self._moves.origin_of(path)
        if origin is None:
            return Story(state, now)
        before, at, by = origin
        known = self._stories.get(before)
        if isinstance(known, Displaced):
            self._stories[before] = known.told_with(state)
        elif known is None and before:
            was = self._stories[before] = Story(state)
            was.leave(at, by)
        return Story.of_arrival(at, by)

    def _is_as_found(self, directory: str) -> bool:
        story = self._stories.get(directory)
        return story is None or story.state == story.baseline

    def _seen(self, at: int, before: str, path: str, state: str = UNSEEN, _: str = "") -> None:
        """A path that was watched holds something now; what it held before the task is known, or `?`."""
        if path.startswith((self._ignored, *self._in.gits)):
            self._change(at, NOBODY, UNSEEN, path)
            return
        story = self._stories.setdefault(path, Story(before))
        story.last_at = at
        story.found(state)

    def end(self, at: int | None, changed_at: Callable[[str], int]) -> None:
        """The task ended then, if it has; what changes later is of others, and `changed_at` tells when a path did."""
        self._finals.end(at, changed_at)

    def open_now(
        self, look: Look, written_at: Callable[[str], int] = lambda _: 0, *, with_stashes: bool = False
    ) -> tuple[Window, ...]:
        """The windows that are open at this moment; of what a task left away, somebody may have put some back since.

        And taken away again: then it is as the task left it, but was written later. A stash counts also if the task
        began it, but only for whoever is about to use it.
        """
        self._find_ends(look)
        still = [
            (path, story.windows[-1])
            for path, story in sorted(self._stories.items())
            if story.is_open and self._can_be_held(path, story, with_stashes=with_stashes)
            if path not in self._finals.late
            if story.is_left_so(path, look)
            if not self._finals.is_written_since(path, story.last_at, written_at(path))
        ]
        stashes = [each for each in still if each[0] in self._in.stashes]
        return self._windows(each for each in still if each not in stashes) + self._windows(stashes)

    def _can_be_held(self, path: str, story: Story, *, with_stashes: bool) -> bool:
        if path in self._in.stashes:
            return with_stashes and story.baseline != UNREADABLE
        return story.baseline not in (UNREADABLE, "s", ABSENT)

    def _find_ends(self, look: Look) -> None:
        """How each path was left; one that was not looked at when the task ended is looked at now."""
        for path, story in self._stories.items():
            at, final = self._finals.held.get(path, (story.last_at, ""))
            if not final or at < story.last_at:
                final = look(path, story.baseline)  # nobody looked, or whoever was left behind has gone on since
            final = self._finals.as_left(path, story, final)
            if self._unobserved is not None:
                self._finals.find_unseen_end(path, story, final)
            final, is_anothers = self._between.as_left(path, story.last_at, final)
            if is_anothers:
                self._finals.forget_write(path)
            if self._is_watched and final != story.state:
                story.last_at = at  # of calls the last one is known; of what was watched, it may have been missed
            story.found(final, self._finals.written_at(path))
        self._find_displaced(look)
        for path, story in self._stories.items():
            is_another = story.must_be_same and story.is_open and story.state[:1] == "d"
            if is_another and self._is_removed(story.baseline) and not self._in.is_git(path):
                story.must_be_same = False  # all that was in the first one has been named, and tells of it
                story.found(story.state)

    def _find_displaced(self, look: Look) -> None:
        """What was there at first, under the names of directories that had left."""
        for path, story in list(self._stories.items()):
            if isinstance(story, Displaced):
                held = self._held_at_first(path, story, look)
                if held == UNREADABLE:
                    del self._stories[path]  # that its directory is another one is told
                else:
                    self._stories[path] = story.told_with(held)

    def _held_at_first(self, path: str, story: Displaced, look: Look) -> str:
        """What a directory held that had left; `?` if it is where nobody looks."""
        home = self._stories[story.home]
        if story.held_when_back is not None and home.state == home.baseline:
            return story.held_when_back
        if self._is_removed(home.baseline):
            return ABSENT  # all that was in it has been named before it could be removed
        now = self._moves.name_now(story.home)
        if now and look(now, home.baseline) == home.baseline:
            return look(now + path[len(story.home) :], "")
        return UNREADABLE

    def _is_removed(self, directory: str) -> bool:
        """Whether a directory, known by what it was, has been removed."""
        story = self._stories.get(self._removed.get(directory, ""))
        return story is not None and story.state != directory

    def _is_removed_from(self, path: str) -> bool:
        """Whether the directory that had this name at first was removed under it."""
        story = self._stories.get(path)
        return story is not None and self._removed.get(story.baseline) == path

    def effects(self, look: Look) -> Effects:
        """All of it together, as the task left it."""
        self._find_ends(look)
        outside = sorted(path for path in self._outside if not self._is_as_before(path, look))
        doubtful = {path for path, story in self._stories.items() if self._finals.is_doubtful(path, story)}
        doubts = doubts_of(self._stories.values(), len(doubtful - self._finals.late), len(self._finals.late))
        self._gaps |= dict.fromkeys(doubts)
        if any(path in self._touched_outside and not story.is_open for path, story in self._stories.items()):
            self._gaps[_TOUCHED_OUTSIDE] = None  # of one that is another now, that is told
        stories = sorted((path, story) for path, story in self._stories.items() if path not in self._in.kept)
        known = [(path, story) for path, story in stories if story.baseline not in (UNREADABLE, "s")]
        there = [(path, story) for path, story in known if story.baseline != ABSENT]
        whole = moved_whole(self._stories, self._is_removed)
        git = self._git.told(lambda path, state: (self._finals.state_of(path) or look(path, state)) == state)
        others = tuple(each for each in self._between.changed(self._in.tops) if each.path not in self._in.kept)
        return Effects(
            level=self._level(),
            gaps=tuple(self._gaps),
            windows=self._windows(spans_of([each for each in there if not self._finals.is_unsure(*each)])),
            possible=self._windows(self._finals.possible(there)),
            changed=tuple(path for path, story in stories if self._finals.is_changed(path, story)),
            gone=tuple(path for path, story in there if story.state == ABSENT),
            created=without_filled((path for path, story in known if story.baseline == ABSENT != story.state), whole),
            whole=whole,
            restored=tuple(path for path, story in there if story.closed and not self._finals.is_changed(path, story)),
            rewritten=tuple(path for path, story in there if self._finals.is_rewritten(path, story)),
            git=tuple((from_micros(at), what, self._command(by)) for at, what, by in git),
            outside=without_filled(outside),
            remotes=tuple(self._remotes),
            unobserved_since=None if self._unobserved is None else from_micros(self._unobserved),
            why_unseen=self._why_unseen,
            unattributed=others or None,
            unattributed_in_all=len(others),
        )

    def _level(self) -> Level:
        if self._is_watched:
            return "watched"
        return "unknown" if not self._is_observed else "partial" if self._gaps else "observed"

    def _is_as_before(self, path: str, look: Look) -> bool:
        """Whether stat says of a path outside what it said before: it was tried in vain, or made and removed again."""
        before = self._outside[path]
        found = self._finals.state_of(path) or look(path, STAT)
        return before != UNSEEN and found == before and not self._finals.is_removed_late(path, found)

    def _windows(self, spans: Iterable[tuple[str, Span]]) -> tuple[Window, ...]:
        whole = moved_whole(self._stories, self._is_removed)
        return windows_of(by_whole(spans, whole), self._in.tops, self._in.kept, self._command)

    def _command(self, who: int) -> str:
        return self._doers.command_of(who, "?" if self._is_observed else SOMEBODY)
