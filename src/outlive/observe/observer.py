"""The observer: answers every call that is asked about, and writes down what it was about to do.

Whatever goes wrong in understanding a call, the call goes on. What a path held before is found out
first, where it matters: in the repository. Names that only go away are pinned and read afterwards,
so that nobody waits for us to read a file. Whoever asks waits for as little as possible: the rest is
done when it has been answered.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from errno import EINTR, ENOENT
from select import POLLIN, poll
from stat import S_ISREG

from outlive.bundle.eyes import answer_all
from outlive.bundle.kernel import read_small, take_short_turns
from outlive.bundle.seccomp import CALL, OPENAT, let_continue, receive, wake_on_same_processor
from outlive.domain.moving import MOST_MOVES, below
from outlive.observe.calls import FRESH, HERE, KINDS, OPENATS, Calls
from outlive.observe.content import ABSENT, glance, is_directory, look, moments_of, pin, read_pinned, state_of
from outlive.observe.journal import UNSEEN, escaped, is_of_something
from outlive.observe.looking_back import LookingBack
from outlive.observe.privileges import gains_privileges
from outlive.observe.scope import MOST_REPOSITORIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from mmap import mmap

    from outlive.observe.calls import Kind, Paths
    from outlive.observe.content import Look
    from outlive.observe.journal import Journal
    from outlive.observe.place import Place
    from outlive.observe.scope import Scope

    Seen = tuple[str, str, int | None]
    """A path, what it held, and by which descriptor that is still to be read."""

_NOWHERE = ("/dev/", "/proc/")
_SERVING = "/dev/fuse"
_ANYBODY_MAY_EXECUTE = 0o111
_EXCHANGE = 2
_BEFORE_WE_WRITE_MS = 20
_MOST_TOUCHED = 200_000


class Observer:
    """One task's observer, for as long as anything filtered lives."""

    def __init__(
        self,
        listener: int,
        page: mmap,
        journal: Journal,
        scope: Scope,
        *,
        loses_privileges: bool = False,
        on_first_write: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`on_first_write`: called once for each worktree, when the journal has a write to a file that was there."""
        self._listener = listener
        self._page = page
        self._journal = journal
        self._scope = scope
        self._known: set[int] = set()
        self._calls = Calls(on_stranger=self._known.discard)
        self._namespace = _namespace("self")
        self.touched: dict[str, None] = {}
        self.elsewhere: dict[str, None] = {}
        self._back = LookingBack()
        self._made: set[str] = set()
        """Directories that were not there before the task made them."""
        self._touched_more = self._wrote_to_linked = False
        self._moved = 0
        self.met_gaining: set[str] = set()
        self.met_supervising: set[str] = set()
        """The paths of programs that lost something because they are observed."""
        self._loses_privileges = loses_privileges
        self._on_first_write = on_first_write
        self._unwritten = set(scope.trees)
        scope.on_further = self._come_to
        self._turn = allocate_lock()
        wake_on_same_processor(listener)

    def write_down(self, patience: float) -> None:
        """Bring what was seen to the journal now; for another thread, which waits until a call is dealt with."""
        if self._turn.acquire(timeout=patience):
            try:
                self._journal.flush()
            finally:
                self._turn.release()

    def run(self) -> None:
        """Until nobody is left who could ask."""
        take_short_turns()
        waiting = poll()
        waiting.register(self._listener, POLLIN)
        while True:
            # Not in `receive`: that would keep the interpreter from everybody else while it blocks.
            ready = waiting.poll(None if self._journal.is_empty else _BEFORE_WE_WRITE_MS)
            if not ready:
                with self._turn:
                    self._journal.flush()
                continue
            if not ready[0][1] & POLLIN:
                break
            try:
                receive(self._listener, self._page)
            except OSError as error:
                if error.errno not in (ENOENT, EINTR):
                    break
                continue  # whoever asked was killed meanwhile
            with self._turn:
                if not self._answer_fresh():
                    self._answer()
        with self._turn:
            self._journal.flush()
        self._calls.memory.close()

    def _answer_fresh(self) -> bool:
        """Answer a call that makes a file beside others; False if it is none, or takes more to tell.

        The same as below in one step: whoever unpacks or checks out hardly makes any other call.
        """
        call, thread, number, machine, where, address, flags = OPENAT.unpack_from(self._page)
        if flags & FRESH != FRESH or where & 0xFFFFFFFF != HERE or (machine, number) not in OPENATS:
            return False
        at = self._journal.now()
        try:
            path = self._calls.beside(at, thread, address)
            if path is None or path.startswith(_NOWHERE):
                return False
            is_held = self._scope.concerns(path)
            if is_held is None:
                before = UNSEEN
            elif self._is_new(path):
                before = ABSENT
            else:
                before = state_of(path, look(path)) if is_held else glance(look(path))
        except Exception:  # noqa: BLE001 - the long way tells what cannot be understood, and lets it go on
            return False
        if not let_continue(self._listener, call):
            return True
        if is_held is not None and path not in self.touched and path not in self.elsewhere:
            self._touch(at, thread, path, is_held=is_held)
        if thread not in self._known:
            self._introduce(at, thread)
        self._journal.add(at, f"write\t{thread}\t{before}\t{escaped(path)}")
        self._back.changed(path, before, thread)
        if self._unwritten:
            self._notice_writes(((path, before, None),))
        return True

    def _answer(self) -> None:
        call, thread, _, number, machine, _, *arguments = CALL.unpack_from(self._page)
        at = self._journal.now()
        kind = KINDS[machine, number]
        seen: list[Seen] = []
        if kind.turns:
            self._made.clear()
        try:
            words, named = self._calls.understand(at, kind, thread, machine, arguments)
            if not words:
                for path, there in named:
                    seen.append(self._look(kind, path, there))
            elif kind.operation == "exec":
                is_in_vain = kind.name == "execve" and self._is_in_vain(thread, named[0][0])
                words, thread = ("", thread) if is_in_vain else (words, self._will_be(at, thread))
        except Exception as error:  # noqa: BLE001 - whatever it is, the command must go on
            let_continue(self._listener, call)
            _let_go(seen)
            self._note(at, "gap", thread, f"a call could not be understood: {kind.name}, {type(error).__name__}")
            return
        # Answered, it was this very call all along: what we have read belongs to it.
        if not let_continue(self._listener, call):
            _let_go(seen)
        elif words:
            self._write_words(at, thread, kind, words, named)
        elif seen:
            self._write_paths(at, thread, kind, seen)
            for words in self._gaps_of(kind, arguments, seen, named):
                self._note(at, "gap", thread, words)

    def _gaps_of(self, kind: Kind, arguments: Sequence[int], seen: Sequence[Seen], named: Paths) -> Iterator[str]:
        """What a call does that is not followed."""
        if kind.operation == "write" and not self._wrote_to_linked and _has_other_names(named[0][1]):
            self._wrote_to_linked = True
            yield "it wrote to a file with several names (hard links): the others changed with it"
        if kind.name == "renameat2" and arguments[4] & _EXCHANGE and any(state[:1] == "d" for _, state, _ in seen):
            yield "two names were exchanged, one of a directory: what is in it may be told by the other name"

    def _is_in_vain(self, thread: int, path: str) -> bool:
        """Whether nothing can come of an exec: who looks for a program in several places, stays who it is."""
        try:
            mode = os.stat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return _namespace(thread) == self._namespace
        except OSError:
            return False  # it may see what we do not
        return not S_ISREG(mode) or not mode & _ANYBODY_MAY_EXECUTE

    def _will_be(self, at: int, thread: int) -> int:
        """The number of a thread once it has become another program: that of its process, whose only one it is then."""
        leader = int(_parents(thread)[0])
        if leader in (0, thread):
            return thread
        self._calls.replace(at, leader)
        return leader

    def _look(self, kind: Kind, path: str, there: Look | None) -> Seen:
        """What a path holds now; or a descriptor by which that is pinned, to be read when the call was answered."""
        is_held = self._scope.concerns(path)
        if is_held is None:
            return path, UNSEEN, None
        if there is None:
            there = ABSENT if kind.operation != "remove" and self._is_new(path) else look(path)
        if kind.operation == "mkdir" and there == ABSENT:
            self._made.add(path)
        if not is_held or (kind.operation == "mkdir" and is_directory(there)):
            return path, glance(there), None  # whoever makes sure of its directories changes nothing
        return (path, *pin(path, there)) if kind.is_of_names else (path, state_of(path, there), None)

    def _is_new(self, path: str) -> bool:
        """Whether its directory is one that the task made, in which it has not touched this name yet.

        What it removes there all the same, somebody else has put there.
        """
        if path.rpartition("/")[0] not in self._made or self._touched_more:
            return False
        return path not in self.touched and path not in self.elsewhere

    def _write_words(self, at: int, thread: int, kind: Kind, words: str, named: Paths) -> None:
        if kind.operation == "exec":
            self.write_exec(at, thread, words, named[0][0])
            for path, state in self._back.look():
                self._journal.add(at, f"look\t0\t{state}\t{escaped(path)}\t{moments_of(path)[0]}")
            return
        if kind.supervises:
            if named[0][0] in self.met_supervising:
                return  # told already, and once for all that it starts
            self.met_supervising.add(named[0][0])
        self._introduce(at, thread)
        if kind.decides:
            self._look_no_more(at, thread, words)
        else:
            self._note(at, kind.told_as, thread, words)

    def write_exec(self, at: int, thread: int, words: str, path: str) -> None:
        """A thread has become another program."""
        self._known.add(thread)
        self._note(at, "exec", thread, words, path, _parents(thread)[1])
        if self._loses_privileges and gains_privileges(path):
            self.met_gaining.add(path)
            self._note(at, "gap", thread, f"{path} ran without its privileges; --observe compare keeps them")
        if _namespace(thread) not in ("", self._namespace):
            self._note(at, "gap", thread, "it saw another file system than we do")

    def _write_paths(self, at: int, thread: int, kind: Kind, seen: Sequence[Seen]) -> None:
        fields, is_anywhere = "", False
        for path, state, fd in seen:
            before = state if fd is None else read_pinned(state, fd)
            fields += f"\t{before}\t{escaped(path)}"
            if before != UNSEEN:
                is_anywhere = True
                if path not in self.touched and path not in self.elsewhere:
                    self._touch(at, thread, path, is_held=bool(self._scope.concerns(path)))
                self._back.changed(path, before, thread)
            elif not path.startswith(_NOWHERE):
                is_anywhere = True
            elif path == _SERVING and look(path) != ABSENT:
                self._look_no_more(at, thread, "it serves a file system itself (FUSE)")
        if not is_anywhere:
            return
        if thread not in self._known:
            self._introduce(at, thread)
        self._journal.add(at, f"{kind.operation}\t{thread}{fields}")
        if kind.operation == "rename" and seen[0][1][:1] in ("d", UNSEEN):
            self._take_along(at, thread, seen[0], seen[1][0])
        if self._unwritten:
            self._notice_writes(seen)

    def _take_along(self, at: int, thread: int, source: Seen, target: str) -> None:
        """What lies in a directory that is moved is looked at by its new name when the task ends."""
        self._scope.leave_out(target)
        before, state, _ = source
        if state == UNSEEN or self._moved == MOST_MOVES:
            return
        self._moved += 1
        for path in below(before, self.touched):
            self._touch(at, thread, target + path[len(before) :], is_held=True)

    def _look_no_more(self, at: int, thread: int, why: str) -> None:
        """Answer without looking: a look at what the task answers for would wait for it, while it waits for us."""
        self._note(at, "unobserved", thread, f"{why}: what it did afterwards was not seen")
        self._journal.flush()
        answer_all(self._listener, self._page)

    def _come_to(self, place: Place | None) -> None:
        """The task is about to change something in a repository that nobody knew of; None: there is no room for it."""
        at = self._journal.now()
        if place is None:
            words = f"it came to more than {MOST_REPOSITORIES} repositories: what it did in others has no windows"
            self._note(at, "gap", 0, words)
            return
        self._note(at, "further", 0, *place.roots)
        if place.top is not None:
            self._unwritten.add(place.top.rstrip("/") + "/")

    def _touch(self, at: int, thread: int, path: str, *, is_held: bool) -> None:
        """Look at a path again when the task ends; not at more of them than there is memory for."""
        if len(self.touched) + len(self.elsewhere) < _MOST_TOUCHED:
            (self.touched if is_held else self.elsewhere)[path] = None
        elif not self._touched_more:
            self._touched_more = True
            self._note(at, "gap", thread, f"of more than {_MOST_TOUCHED:,} paths it is not known how it left them")

    def _notice_writes(self, seen: Sequence[Seen]) -> None:
        for path, state, _ in seen:
            top = self._scope.tree_of(path) if is_of_something(state) else None
            if top in self._unwritten:
                self._unwritten.discard(top)
                self._journal.flush()
                self._on_first_write(top)

    def _introduce(self, at: int, thread: int) -> None:
        """Somebody who was forked and has not executed anything: whose child or thread it is.

        If that is nobody we know, its parent has ended, and left it to somebody else: then its own words tell.
        """
        if thread in self._known:
            return
        self._known.add(thread)
        leader, parent = _parents(thread)
        above = parent if leader == str(thread) else leader
        words = () if int(above) in self._known else _words_of(thread)
        self._note(at, "fork", thread, above, *words)

    def _note(self, at: int, operation: str, thread: int, *words: str) -> None:
        fields = "".join(f"\t{escaped(word)}" for word in words)
        self._journal.add(at, f"{operation}\t{thread}\t{UNSEEN}{fields}")


def _let_go(seen: Sequence[Seen]) -> None:
    """Nobody will read what was pinned."""
    for _, _, fd in seen:
        if fd is not None:
            os.close(fd)


def _has_other_names(found: Look | None) -> bool:
    """Whether a file is to be found under other names as well, of which nobody knows."""
    return found is not None and not isinstance(found, str) and found.st_nlink > 1 and S_ISREG(found.st_mode)


def _parents(thread: int) -> tuple[str, str]:
    """The process of a thread, and that one's parent; `0` if it is gone."""
    try:
        content = read_small(f"/proc/{thread}/status").decode("utf-8", "replace")
        fields = dict(line.split(":\t", 1) for line in content.splitlines() if line.startswith(("Tgid", "PPid")))
    except (OSError, ValueError):
        fields = {}
    return fields.get("Tgid", "0").strip(), fields.get("PPid", "0").strip()


def _words_of(thread: int) -> tuple[str, ...]:
    """The command line of a thread, as far as it fits; nothing, if it is gone."""
    try:
        words = os.fsdecode(read_small(f"/proc/{thread}/cmdline")).rstrip("\0").replace("\0", " ")
    except OSError:
        words = ""
    return (words,) if words else ()


def _namespace(thread: int | str) -> str:
    try:
        return os.readlink(f"/proc/{thread}/ns/mnt") + os.readlink(f"/proc/{thread}/root")
    except OSError:
        return ""
