"""The derivation of a task's effects from its observed system calls (the journal).

The journal has the state of a path before each change. So the state after a change is the state before the next
change, or the state at the task's end. A window is a span in which a path differs from the state in which the task
found it. A change that makes the path differ opens the window. A change that restores the path closes the window.
"""

from __future__ import annotations

from outlive.domain.effects.effects import SOMEBODY, Effects
from outlive.domain.effects.left_open import LeftPath, can_be_left, windows_left
from outlive.domain.effects.path_summary import told_as, without_filled
from outlive.domain.effects.replay.directory_moves import MOST_MOVES, DirectoryMoves, below
from outlive.domain.effects.replay.final_states import FinalStates
from outlive.domain.effects.replay.foreign_changes import ForeignChanges
from outlive.domain.effects.replay.gaps import doubts_of
from outlive.domain.effects.replay.git_changes import GitChanges
from outlive.domain.effects.replay.path_history import ABSENT, STAT, UNREADABLE, DisplacedPathHistory, PathHistory
from outlive.domain.effects.replay.process_names import NOBODY, ProcessNames
from outlive.domain.effects.replay.repositories import Repositories
from outlive.domain.effects.replay.windows import by_whole, moved_whole, spans_of, tree_around, windows_of
from outlive.domain.effects.temporary_paths import TEMPORARY
from outlive.domain.timestamps import from_micros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from outlive.domain.effects.effects import Level, Window
    from outlive.domain.effects.replay.path_history import Look, Span

UNSEEN = "-"
_TOUCHED_OUTSIDE = "a directory was changed outside of the tree and moved back into it: its content is not known"


class Replay:
    """The reader of a journal, and the effects that follow from it.

    A journal is the record of a task's observed system calls.
    """

    def __init__(self, ignored: str, worktrees: str) -> None:
        """Prepare to read the record of a task's system calls.

        `ignored` is a directory to which Outlive itself writes. Changes in this directory are left out. Agents work in
        `worktrees`, which may lie in `ignored`, so changes in these worktrees are reported.
        """
        self._ignored = ignored.rstrip("/") + "/"
        self._worktrees = worktrees.rstrip("/") + "/"
        self._in = Repositories()
        self._histories: dict[str, PathHistory] = {}
        self._processes = ProcessNames()
        self._moves = DirectoryMoves()
        self._removed: dict[str, str] = {}
        """The names of directories that a system call removed or tried to remove.

        The key is the directory's state before the call.
        """
        self._touched_outside: set[str] = set()
        """Directories that were moved out of the task's worktrees and back.

        A directory is listed only if system calls named paths in it while it was outside.
        """
        self._gaps: dict[str, None] = {}
        self._outside: dict[str, str] = {}
        self._remotes: dict[str, None] = {}
        self._git = GitChanges()
        self._finals = FinalStates()
        self._between = ForeignChanges()
        self._unobserved: int | None = None
        self._is_observed = self._is_watched = False
        self._why_unseen: str | None = None

    @property
    def is_observed(self) -> bool:
        """Whether system calls were observed."""
        return self._is_observed

    @property
    def trees(self) -> tuple[str, ...]:
        """The worktrees in which the task has worked or may have worked."""
        return self._in.tops

    def read(self, lines: Iterable[list[str]]) -> None:
        """Read further lines of the journal, the record of the task's system calls.

        A line has a time, an operation, a thread number, and then states and paths in turn.
        """
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
            self._processes.begin(thread, fields[1], parent)
        elif operation == "fork":
            command = fields[2] if len(fields) > 2 else None
            self._processes.begin(thread, command, int(fields[1]) if fields[1].isdigit() else NOBODY)
        elif operation == "seen":
            self._seen(at, *fields)
        elif operation == "look":
            self._look_between(at, *fields)
        elif operation == "final":
            self._finals.add(at, *fields)
        else:
            self._operation(at, operation, self._processes.with_number(thread), fields)

    def _look_between(self, at: int, state: str, path: str, written: str = "") -> None:
        """Record that a path was found restored while no process was writing to it.

        A state that equals the state before the last system call is ignored, because the last call may not have taken
        effect yet.
        """
        history = self._histories.get(path)
        if history is not None and history.state != state == history.baseline:
            history.found(state, int(written) if written.isdecimal() and int(written) <= at else 0)
            self._between.look(at, state, path)

    def _begin_again(self, *, is_observed: bool) -> None:
        """Begin another attempt of the task.

        The new attempt finds the paths as the earlier attempt left them.
        """
        for path, (_, state) in self._finals.held.items():
            if path in self._histories:
                history = self._histories[path]
                history.found(self._between.as_left(path, history.last_at, state)[0])
        if is_observed and self._why_unseen is not None:
            self._gaps[f"an earlier attempt was not observed: {self._why_unseen}"] = None

    def _operation(self, at: int, operation: str, by: int, fields: list[str]) -> None:
        if operation == "make":
            del fields[:-2]  # a link creates only the new name, and does not change the file itself
        if operation == "mkdir" and fields[0][:1] == "d":
            return  # the directory exists already, so the call changes nothing
        for state, path in zip(fields[::2], fields[1::2], strict=False):
            # For the rename of a directory, `is_directory` is False, because the rename also moves the refs in the
            # directory.
            is_directory = operation == "mkdir" or (operation == "remove" and state[:1] == "d")
            self._change(at, by, state, path, is_directory=is_directory)
            self._finals.taken.discard(path)
            if path in self._histories:
                self._histories[path].must_be_same |= operation == "rename"
                self._histories[path].was_written |= operation == "write"
        if operation in ("rename", "remove"):
            self._finals.taken.add(fields[1])
        if operation == "rename" and len(fields) > 3:
            self._move(at, by, fields)
        if operation == "remove" and fields[0][:1] == "d":
            self._removed[fields[0]] = fields[1]

    def _move(self, at: int, by: int, fields: list[str]) -> None:
        """Record that a directory was moved with its content to a name that was free."""
        was, source, is_there, target = fields[:4]
        leaves, stays = self._in.is_told(source), self._in.is_told(target)
        # If the target is outside of the worktrees, the state of the target may not have been read.
        is_move = was[:1] == "d" and is_there in (ABSENT, ABSENT if stays else UNSEEN) if leaves else stays
        if not is_move:
            return
        if self._moves.count == MOST_MOVES:
            self._gaps[f"more than {MOST_MOVES} directories were moved: the files in the others are not followed"] = (
                None
            )
            if stays and self._histories[target].baseline == ABSENT:
                self._moves.add_unfollowed(at, by, target)
        elif not stays:
            self._moves.add_outside(at, by, source, target)
        elif not leaves:
            is_back = self._moves.is_back_from_outside(target)
            # The kernel may have refused the move out of the worktrees. Then the program copied the directory: the
            # program created and removed each file by its name.
            if is_back and self._moves.was_touched_outside(source) and not self._is_removed_from(target):
                self._touched_outside.add(target)
            self._arrive(at, by, target, is_back=is_back, is_whole=False)
        else:
            taken, home = below(source, self._histories), self._histories.get(self._moves.home_of(source))
            # If the task made the directory, there are recorded calls about all paths in it. Then each path gets a
            # history under its new name. For any other directory, the history of the directory also stands for the
            # paths in it.
            for path in taken if home is None or home.baseline == ABSENT else ():
                name = target + path[len(source) :]
                self._histories[name] = self._histories.get(name) or self._begin(name, ABSENT, at)
            self._arrive(at, by, target, is_back=self._moves.add(at, by, source, target))
            for path in taken:
                if path in self._finals.taken:
                    self._histories[path].found(ABSENT)  # the path was gone before its directory was moved
                self._histories[path].leave(at, by)
            self._finals.taken.update(taken)

    def _arrive(self, at: int, by: int, directory: str, *, is_back: bool, is_whole: bool = True) -> None:
        """Record that a directory got a name by a move.

        With `is_whole`, no known path existed below this name until now. With `is_back`, the directory has the name
        that it had when the task began. Then a path in it may have existed when the task began, even if the first
        state of the path is not known.
        """
        for path in below(directory, self._histories) if is_back or is_whole else ():
            history = self._histories[path]
            self._finals.taken.discard(path)
            if is_back and isinstance(history, DisplacedPathHistory):
                history.come_back(at, by)
            elif is_whole:
                history.change(at, by, ABSENT)

    def _word(self, at: int, operation: str, word: str) -> None:
        if operation == "connect":
            self._remotes[word] = None
        elif operation == "unseen":
            self._why_unseen = word
            if self._is_observed:
                self._gaps[f"a later attempt was not observed: {word}"] = None
        else:
            self._gaps[word] = None
            if operation == "unobserved":
                self._unobserved = at

    def _change(self, at: int, by: int, state: str, path: str, *, is_directory: bool = False) -> None:
        if self._is_ignored(path):
            return
        if path.startswith(self._in.gits):
            is_tidying = self._processes.tidies_git(by)
            self._git.add(at, by, path, state, is_directory=is_directory, is_tidying=is_tidying)
            # `git pack-refs` moves the stash to another file, but does not change the stash.
            if path not in self._in.kept or state == UNSEEN or is_tidying:
                return
        elif not self._in.is_told(path):
            self._moves.touch_outside(path)
            # If a task launches an agent, the task calls git to make the agent's worktree. The files of this worktree
            # are not effects of the task.
            if not path.startswith(TEMPORARY) and not path.startswith(self._ignored):
                self._outside.setdefault(path, state)
            return
        if state == UNSEEN:
            state = UNREADABLE
        history = self._histories.get(path)
        if history is None:
            history = self._histories[path] = self._begin(path, state, at)
            history.must_be_same = self._in.is_git(path)  # most changes in a git directory are not recorded
        history.change(at, by, state)

    def _is_ignored(self, path: str) -> bool:
        return path.startswith(self._ignored) and not f"{path}/".startswith(self._worktrees)

    def _begin(self, path: str, state: str, now: int) -> PathHistory:
        """Return a new history for a path.

        If a directory around the path was moved, the path's earlier name gets a history too.
        """
        if state == ABSENT:
            left = self._moves.left_from_above(path)
            if left is None or self._is_as_found(left[0]):
                return PathHistory(ABSENT, now)
            return DisplacedPathHistory(*left, now)
        origin = self._moves.origin_of(path)
        if origin is None:
            return PathHistory(state, now)
        before, at, by = origin
        known = self._histories.get(before)
        if isinstance(known, DisplacedPathHistory):
            self._histories[before] = known.told_with(state)
        elif known is None and before:
            was = self._histories[before] = PathHistory(state)
            was.leave(at, by)
        return PathHistory.of_arrival(at, by)

    def _is_as_found(self, directory: str) -> bool:
        history = self._histories.get(directory)
        return history is None or history.state == history.baseline

    def _seen(self, at: int, before: str, path: str, state: str = UNSEEN, _: str = "") -> None:
        """Record the state of a watched path.

        `before` is the state when the task began, or `?` if that state is not known.
        """
        if self._is_ignored(path) or path.startswith(self._in.gits):
            self._change(at, NOBODY, UNSEEN, path)
            return
        history = self._histories.setdefault(path, PathHistory(before))
        history.last_at = at
        history.found(state)

    def end(self, at: int | None, changed_at: Callable[[str], int]) -> None:
        """Set the time of the task's end, or None while the task runs.

        Changes after this time were made by other processes.
        """
        self._finals.end(at, changed_at)

    def left_open(self, look: Look) -> list[LeftPath]:
        """Return the paths that the task has changed and not restored.

        For an ended task, these are the paths that it left changed. A path is returned even if it has changed again
        since the task's end.
        """
        self._find_ends(look)
        still = [
            (path, history.windows[-1])
            for path, history in sorted(self._histories.items())
            if history.is_open and self._can_be_left(path, history) and path not in self._finals.late
        ]
        whole = moved_whole(self._histories, self._is_removed)
        return [self._left(path, span, whole) for path, span in still]

    def _left(self, path: str, span: Span, whole: frozenset[str]) -> LeftPath:
        history = self._histories[path]
        is_stash = path in self._in.stashes
        return LeftPath(
            path=path,
            name=told_as(path, whole) if whole and not is_stash else path,
            scope=tree_around(path, self._in.tops, self._in.kept).rstrip("/") or "/",
            is_stash=is_stash,
            opened_at=span[0],
            by=self._command(span[2]),
            found=history.baseline,
            left=history.state,
            must_be_same=history.must_be_same,
            written=self._finals.written_when_left(path, history.last_at),
        )

    def open_now(
        self, look: Look, written_at: Callable[[str], int] = lambda _: 0, *, with_stashes: bool = False
    ) -> tuple[Window, ...]:
        """Return the changes that the task has not restored up to now, as windows.

        A window is a span in which paths stay changed. Paths that another process has changed or restored since the
        task's end are left out. Such a path may have the same state as at the task's end. Then only the time of its
        last write (`written_at`) shows that it was changed.

        Stashes are left out by default. A caller sets `with_stashes` for a session that is about to use the stash.
        """
        return windows_left(
            each
            for each in self.left_open(look)
            if (with_stashes or not each.is_stash) and each.is_left(look, written_at)
        )

    def _can_be_left(self, path: str, history: PathHistory) -> bool:
        if path in self._in.stashes:
            return history.baseline != UNREADABLE
        return can_be_left(history.baseline)

    def _find_ends(self, look: Look) -> None:
        """Find the state in which the task left each path.

        Paths that were not checked at the task's end are checked now.
        """
        for path, history in self._histories.items():
            at, final = self._finals.held.get(path, (history.last_at, ""))
            if not final or at < history.last_at:
                # The path was not checked, or a process that the task left running changed it afterwards.
                final = look(path, history.baseline)
            final = self._finals.as_left(path, history, final)
            if self._unobserved is not None:
                self._finals.find_unseen_end(path, history, final)
            final, is_anothers = self._between.as_left(path, history.last_at, final)
            if is_anothers:
                self._finals.forget_write(path)
            if self._is_watched and final != history.state:
                history.last_at = at  # file events may miss the last change
            history.found(final, self._finals.written_at(path))
        self._find_displaced(look)
        for path, history in self._histories.items():
            is_another = history.must_be_same and history.is_open and history.state[:1] == "d"
            if is_another and self._is_removed(history.baseline) and not self._in.is_git(path):
                # System calls about all paths in the removed directory were recorded. So the histories of these paths
                # show whether the content of the directory is restored.
                history.must_be_same = False
                history.found(history.state)

    def _find_displaced(self, look: Look) -> None:
        """Find the first states of paths that lie under the old name of a moved directory."""
        for path, history in list(self._histories.items()):
            if isinstance(history, DisplacedPathHistory):
                held = self._held_at_first(path, history, look)
                if held == UNREADABLE:
                    del self._histories[path]  # the moved directory itself is reported as changed
                else:
                    self._histories[path] = history.told_with(held)

    def _held_at_first(self, path: str, history: DisplacedPathHistory, look: Look) -> str:
        """Return the first state of a path in a moved directory.

        Returns `UNREADABLE` if this state cannot be found.
        """
        home = self._histories[history.home]
        if history.held_when_back is not None and home.state == home.baseline:
            return history.held_when_back
        if self._is_removed(home.baseline):
            # A directory must be emptied before it is removed. So calls about all paths in it were recorded.
            return ABSENT
        now = self._moves.name_now(history.home)
        if now and look(now, home.baseline) == home.baseline:
            return look(now + path[len(history.home) :], "")
        return UNREADABLE

    def _is_removed(self, directory: str) -> bool:
        """Return whether the directory with this state was removed.

        The state is the one in which the task found the directory.
        """
        history = self._histories.get(self._removed.get(directory, ""))
        return history is not None and history.state != directory

    def _is_removed_from(self, path: str) -> bool:
        """Return whether the directory that first had this name was removed.

        A removal under a later name of the directory does not count.
        """
        history = self._histories.get(path)
        return history is not None and self._removed.get(history.baseline) == path

    def effects(self, look: Look) -> Effects:
        """Return all effects of the task, with the paths as the task left them."""
        self._find_ends(look)
        outside = sorted(path for path in self._outside if not self._is_as_before(path, look))
        doubtful = {path for path, history in self._histories.items() if self._finals.is_doubtful(path, history)}
        doubts = doubts_of(self._histories.values(), len(doubtful - self._finals.late), len(self._finals.late))
        self._gaps |= dict.fromkeys(doubts)
        if any(path in self._touched_outside and not history.is_open for path, history in self._histories.items()):
            self._gaps[_TOUCHED_OUTSIDE] = None  # a changed directory is reported as changed, so its changes are known
        histories = sorted((path, history) for path, history in self._histories.items() if path not in self._in.kept)
        known = [(path, history) for path, history in histories if history.baseline not in (UNREADABLE, "s")]
        there = [(path, history) for path, history in known if history.baseline != ABSENT]
        whole = moved_whole(self._histories, self._is_removed)
        git = self._git.told(lambda path, state: (self._finals.state_of(path) or look(path, state)) == state)
        others = tuple(each for each in self._between.changed(self._in.tops) if each.path not in self._in.kept)
        return Effects(
            level=self._level(),
            gaps=tuple(self._gaps),
            windows=self._windows(spans_of([each for each in there if not self._finals.is_unsure(*each)])),
            possible=self._windows(self._finals.possible(there)),
            changed=tuple(path for path, history in histories if self._finals.is_changed(path, history)),
            gone=tuple(path for path, history in there if history.state == ABSENT),
            created=without_filled(
                (path for path, history in known if history.baseline == ABSENT != history.state), whole
            ),
            whole=whole,
            restored=tuple(
                path for path, history in there if history.closed and not self._finals.is_changed(path, history)
            ),
            rewritten=tuple(path for path, history in there if self._finals.is_rewritten(path, history)),
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
        """Return whether a path outside of the project is unchanged.

        Then the system call that would have changed the path has failed, or its change was undone.
        """
        before = self._outside[path]
        found = self._finals.state_of(path) or look(path, STAT)
        return before != UNSEEN and found == before and not self._finals.is_removed_late(path, found)

    def _windows(self, spans: Iterable[tuple[str, Span]]) -> tuple[Window, ...]:
        whole = moved_whole(self._histories, self._is_removed)
        return windows_of(by_whole(spans, whole), self._in.tops, self._in.kept, self._command)

    def _command(self, who: int) -> str:
        return self._processes.command_of(who, "?" if self._is_observed else SOMEBODY)
