"""The observer, which records what each trapped call will do, and then allows it.

A trapped call is a system call of the task that waits until the observer allows it. The observer allows every call,
even a call that it fails to understand. For a path in a repository, the observer first records the state of the path.
If a call only renames or removes a file, the observer keeps the file open, allows the call, and reads the file later.
So the task does not wait while the file is read.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from errno import EINTR, ENOENT
from select import POLLIN, poll
from stat import S_ISREG

from outlive.domain.effects.replay.directory_moves import MOST_MOVES, below
from outlive.linux.seccomp import CALL, OPENAT, let_continue, receive, wake_on_same_processor
from outlive.linux.shared_listener import answer_all
from outlive.linux.syscalls import read_small, take_short_turns
from outlive.observe.journal import UNSEEN, escaped, is_of_something
from outlive.observe.path_state import ABSENT, glance, is_directory, look, moments_of, pin, read_pinned, state_of
from outlive.observe.seccomp.calls import FRESH, HERE, KINDS, OPENATS, Calls
from outlive.observe.seccomp.privilege_loss import gains_privileges
from outlive.observe.seccomp.recheck import Recheck
from outlive.observe.seccomp.scope import MOST_REPOSITORIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from mmap import mmap

    from outlive.observe.git.repository import Repository
    from outlive.observe.journal import Journal
    from outlive.observe.path_state import Look
    from outlive.observe.seccomp.calls import Kind, Paths
    from outlive.observe.seccomp.scope import Scope

    Seen = tuple[str, str, int | None]
    """A path, its state before the call, and the descriptor of a pinned file that is still to be read."""

_NOWHERE = ("/dev/", "/proc/")
_SERVING = "/dev/fuse"
_ANYBODY_MAY_EXECUTE = 0o111
_EXCHANGE = 2
_FLUSH_AFTER_MS = 20
_MOST_TOUCHED = 200_000


class Observer:
    """The recorder of one task's system calls. It also allows each call.

    It runs until the last observed process has ended.
    """

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
        """Store what is needed to observe the calls of one task.

        `listener` is the descriptor from which the calls are read. Changes are written to `journal`. `scope` knows the
        paths whose content is recorded. `on_first_write` is called once for each worktree, at the first write to an
        existing file in it.
        """
        self._listener = listener
        self._page = page
        self._journal = journal
        self._scope = scope
        self._known: set[int] = set()
        self._calls = Calls(on_stranger=self._known.discard)
        self._namespace = _namespace("self")
        self.touched: dict[str, None] = {}
        self.elsewhere: dict[str, None] = {}
        self._recheck = Recheck()
        self._made: set[str] = set()
        """Directories that the task has created."""
        self._touched_more = self._wrote_to_linked = False
        self._moved = 0
        self.met_gaining: set[str] = set()
        self.met_supervising: set[str] = set()
        """The paths of programs that supervise system calls, which fails if observed."""
        self._loses_privileges = loses_privileges
        self._on_first_write = on_first_write
        self._unwritten = set(scope.trees)
        scope.on_further = self._record_repository
        self._turn = allocate_lock()
        wake_on_same_processor(listener)

    def write_down(self, patience: float) -> None:
        """Write the collected lines to the file of observed changes now.

        Any thread may call this method. If the observer is handling a call, this method waits up to `patience` seconds
        until the call is handled.
        """
        if self._turn.acquire(timeout=patience):
            try:
                self._journal.flush()
            finally:
                self._turn.release()

    def run(self) -> None:
        """Record and allow system calls until no observed process is left."""
        take_short_turns()
        waiting = poll()
        waiting.register(self._listener, POLLIN)
        while True:
            # Wait here and not in `receive`: waiting in `receive` would block all other threads of the interpreter.
            ready = waiting.poll(None if self._journal.is_empty else _FLUSH_AFTER_MS)
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
                continue  # the calling thread was killed meanwhile
            with self._turn:
                if not self._answer_creation():
                    self._answer()
        with self._turn:
            self._journal.flush()
        self._calls.memory.close()

    def _answer_creation(self) -> bool:
        """Allow a call that creates a file in a cached directory, and record it.

        Returns False, without allowing the call, for any other call. This method does the same as `_answer` in fewer
        steps. When a program unpacks an archive or checks out a commit, almost all of its trapped calls create files.
        """
        call, thread, number, machine, where, address, flags = OPENAT.unpack_from(self._page)
        if flags & FRESH != FRESH or where & 0xFFFFFFFF != HERE or (machine, number) not in OPENATS:
            return False
        at = self._journal.now()
        try:
            path = self._calls.beside(at, thread, address)
            if path is None or path.startswith(_NOWHERE):
                return False
            is_in_scope = self._scope.concerns(path)
            if is_in_scope is None:
                before = UNSEEN
            elif self._is_new(path):
                before = ABSENT
            else:
                before = state_of(path, look(path)) if is_in_scope else glance(look(path))
        except Exception:  # noqa: BLE001 - `_answer` handles the call next, and also records errors
            return False
        if not let_continue(self._listener, call):
            return True
        if is_in_scope is not None and path not in self.touched and path not in self.elsewhere:
            self._touch(at, thread, path, is_in_scope=is_in_scope)
        if thread not in self._known:
            self._record_fork(at, thread)
        self._journal.add(at, f"write\t{thread}\t{before}\t{escaped(path)}")
        self._recheck.changed(path, before, thread)
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
                    seen.append(self._state_before(kind, path, there))
            elif kind.operation == "exec":
                fails = kind.name == "execve" and self._exec_fails(thread, named[0][0])
                words, thread = ("", thread) if fails else (words, self._number_after_exec(at, thread))
        except Exception as error:  # noqa: BLE001 - the command must continue after any error
            let_continue(self._listener, call)
            _close_pinned(seen)
            self._note(at, "gap", thread, f"a call could not be understood: {kind.name}, {type(error).__name__}")
            return
        # If the kernel accepts the answer, the thread has waited in this call until now. Otherwise the thread is gone,
        # and the observer may have read the memory of another process with the same number. So the result is dropped.
        if not let_continue(self._listener, call):
            _close_pinned(seen)
        elif words:
            self._write_words(at, thread, kind, words, named)
        elif seen:
            self._write_paths(at, thread, kind, seen)
            for words in self._gaps_of(kind, arguments, seen, named):
                self._note(at, "gap", thread, words)

    def _gaps_of(self, kind: Kind, arguments: Sequence[int], seen: Sequence[Seen], named: Paths) -> Iterator[str]:
        """Yield a message for each effect of a call that cannot be recorded."""
        if kind.operation == "write" and not self._wrote_to_linked and _has_other_names(named[0][1]):
            self._wrote_to_linked = True
            yield "it wrote to a file with several names (hard links): the file changed under all its names"
        if kind.name == "renameat2" and arguments[4] & _EXCHANGE and any(state[:1] == "d" for _, state, _ in seen):
            yield "it exchanged two names, one of a directory: files in the directory may be shown under the other name"

    def _exec_fails(self, thread: int, path: str) -> bool:
        """Return whether an exec will fail.

        A program that searches PATH tries one directory after the other, so most of its execs fail.
        """
        try:
            mode = os.stat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return _namespace(thread) == self._namespace
        except OSError:
            return False  # the observer may not read the path, but the task perhaps may
        return not S_ISREG(mode) or not mode & _ANYBODY_MAY_EXECUTE

    def _number_after_exec(self, at: int, thread: int) -> int:
        """Return a thread's number after its exec.

        An exec ends the other threads of the process, and the thread gets the number of the process.
        """
        leader = int(_parents(thread)[0])
        if leader in (0, thread):
            return thread
        self._calls.replace(at, leader)
        return leader

    def _state_before(self, kind: Kind, path: str, there: Look | None) -> Seen:
        """Return a path, its state before a call, and a descriptor or None.

        If there is a descriptor, the file is read through it after the call was allowed. `there` is what `lstat` found
        at the path.
        """
        is_in_scope = self._scope.concerns(path)
        if is_in_scope is None:
            return path, UNSEEN, None
        if there is None:
            there = ABSENT if kind.operation != "remove" and self._is_new(path) else look(path)
        if kind.operation == "mkdir" and there == ABSENT:
            self._made.add(path)
        if not is_in_scope or (kind.operation == "mkdir" and is_directory(there)):
            return path, glance(there), None  # `mkdir -p` of an existing directory changes nothing
        return (path, *pin(path, there)) if kind.is_of_names else (path, state_of(path, there), None)

    def _is_new(self, path: str) -> bool:
        """Return whether a path cannot exist yet, because the task made its directory.

        Do not use this function for a removal: another process may have created the file.
        """
        if path.rpartition("/")[0] not in self._made or self._touched_more:
            return False
        return path not in self.touched and path not in self.elsewhere

    def _write_words(self, at: int, thread: int, kind: Kind, words: str, named: Paths) -> None:
        if kind.operation == "exec":
            self.write_exec(at, thread, words, named[0][0])
            for path, state in self._recheck.look():
                self._journal.add(at, f"look\t0\t{state}\t{escaped(path)}\t{moments_of(path)[0]}")
            return
        if kind.supervises:
            if named[0][0] in self.met_supervising:
                return  # each program is recorded only once
            self.met_supervising.add(named[0][0])
        self._record_fork(at, thread)
        if kind.decides:
            self._stop_inspecting(at, thread, words)
        else:
            self._note(at, kind.told_as, thread, words)

    def write_exec(self, at: int, thread: int, words: str, path: str) -> None:
        """Record that a thread executes a program.

        `words` is the command line, and `path` the file of the program.
        """
        self._known.add(thread)
        self._note(at, "exec", thread, words, path, _parents(thread)[1])
        if self._loses_privileges and gains_privileges(path):
            self.met_gaining.add(path)
            words = f"{path} ran without its privileges; use --observe compare to keep the privileges"
            self._note(at, "gap", thread, words)
        if _namespace(thread) not in ("", self._namespace):
            self._note(at, "gap", thread, "it saw a file system that Outlive does not see")

    def _write_paths(self, at: int, thread: int, kind: Kind, seen: Sequence[Seen]) -> None:
        fields, is_anywhere = "", False
        for path, state, fd in seen:
            before = state if fd is None else read_pinned(state, fd)
            fields += f"\t{before}\t{escaped(path)}"
            if before != UNSEEN:
                is_anywhere = True
                if path not in self.touched and path not in self.elsewhere:
                    self._touch(at, thread, path, is_in_scope=bool(self._scope.concerns(path)))
                self._recheck.changed(path, before, thread)
            elif not path.startswith(_NOWHERE):
                is_anywhere = True
            elif path == _SERVING and look(path) != ABSENT:
                self._stop_inspecting(at, thread, "it serves a file system itself (FUSE)")
        if not is_anywhere:
            return
        if thread not in self._known:
            self._record_fork(at, thread)
        self._journal.add(at, f"{kind.operation}\t{thread}{fields}")
        if kind.operation == "rename" and seen[0][1][:1] in ("d", UNSEEN):
            self._follow_move(at, thread, seen[0], seen[1][0])
        if self._unwritten:
            self._notice_writes(seen)

    def _follow_move(self, at: int, thread: int, source: Seen, target: str) -> None:
        """Remember the new names of changed paths after a move of their directory."""
        self._scope.leave_out(target)
        before, state, _ = source
        if state == UNSEEN or self._moved == MOST_MOVES:
            return
        self._moved += 1
        for path in below(before, self.touched):
            self._touch(at, thread, target + path[len(before) :], is_in_scope=True)

    def _stop_inspecting(self, at: int, thread: int, why: str) -> None:
        """Allow all further calls without inspecting their paths.

        From now on, the task decides when other processes may open files. If the observer opened a file, the observer
        and the task could wait for each other. `why` is the reason to record.
        """
        self._note(at, "unobserved", thread, f"{why}: later changes were not observed")
        self._journal.flush()
        answer_all(self._listener, self._page)

    def _record_repository(self, repository: Repository | None) -> None:
        """Record a repository that the task enters while it runs.

        `repository` is None if the task has entered more repositories than are recorded.
        """
        at = self._journal.now()
        if repository is None:
            words = f"it entered more than {MOST_REPOSITORIES} repositories: the others have no recorded windows"
            self._note(at, "gap", 0, words)
            return
        self._note(at, "further", 0, *repository.roots)
        if repository.top is not None:
            self._unwritten.add(repository.top.rstrip("/") + "/")

    def _touch(self, at: int, thread: int, path: str, *, is_in_scope: bool) -> None:
        """Remember a path to check when the task ends.

        If there are too many paths, a line records that one is missing. `is_in_scope` means that the path's content is
        recorded.
        """
        if len(self.touched) + len(self.elsewhere) < _MOST_TOUCHED:
            (self.touched if is_in_scope else self.elsewhere)[path] = None
        elif not self._touched_more:
            self._touched_more = True
            self._note(
                at, "gap", thread, f"it changed more than {_MOST_TOUCHED:,} paths: the end state of the rest is unknown"
            )

    def _notice_writes(self, seen: Sequence[Seen]) -> None:
        for path, state, _ in seen:
            top = self._scope.tree_of(path) if is_of_something(state) else None
            if top in self._unwritten:
                self._unwritten.discard(top)
                self._journal.flush()
                self._on_first_write(top)

    def _record_fork(self, at: int, thread: int) -> None:
        """Record a forked thread that has not executed a program, and its parent.

        If the parent is not recorded yet, the thread's command line is recorded, too.
        """
        if thread in self._known:
            return
        self._known.add(thread)
        leader, parent = _parents(thread)
        above = parent if leader == str(thread) else leader
        words = () if int(above) in self._known else _command_line(thread)
        self._note(at, "fork", thread, above, *words)

    def _note(self, at: int, operation: str, thread: int, *words: str) -> None:
        fields = "".join(f"\t{escaped(word)}" for word in words)
        self._journal.add(at, f"{operation}\t{thread}\t{UNSEEN}{fields}")


def _close_pinned(seen: Sequence[Seen]) -> None:
    """Close the descriptors of files that were kept open and will not be read."""
    for _, _, fd in seen:
        if fd is not None:
            os.close(fd)


def _has_other_names(found: Look | None) -> bool:
    """Return whether a file has more than one hard link."""
    return found is not None and not isinstance(found, str) and found.st_nlink > 1 and S_ISREG(found.st_mode)


def _parents(thread: int) -> tuple[str, str]:
    """Return the ids of a thread's process and of the parent process.

    Both ids are `0` if the thread is gone.
    """
    try:
        content = read_small(f"/proc/{thread}/status").decode("utf-8", "replace")
        fields = dict(line.split(":\t", 1) for line in content.splitlines() if line.startswith(("Tgid", "PPid")))
    except (OSError, ValueError):
        fields = {}
    return fields.get("Tgid", "0").strip(), fields.get("PPid", "0").strip()


def _command_line(thread: int) -> tuple[str, ...]:
    """Return the command line of a thread, cut to a limit.

    The result is empty if the thread is gone or has no command line.
    """
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
