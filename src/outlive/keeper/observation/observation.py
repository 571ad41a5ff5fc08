"""The observation of an attempt by its keeper, from before the start to the end.

A later step needs an object that only an earlier step returns, so no step can be taken too early. The journal is the
attempt's file `effects`, with a line for each observed change. The listener is the descriptor from which the keeper
reads the command's system calls.

| step | thread | what happens |
|---|---|---|
| `PreparedObservation(...)` | keeper | opens the journal and the channel for the listener; the witness is forked next |
| `.prepare` | keeper | starts the listener thread, and tells the child process whether its calls will be answered |
| `.start` | keeper | takes the listener, lets the command begin, and returns a `RunningObservation` |
| | listener | answers the exec of the command |
| `.observe_calls` | keeper | lets the listener thread go on, after the launcher was notified of the start |
| | listener | takes small snapshots, loads the code that records changes, and answers every other call |
| `.compare_files` | keeper | takes the first snapshot of all files, in a fork, if the command runs for long enough |
| | watch | watches the files, if no calls are observed |
| `.record_end` | keeper | records how the command left the main paths, before any waiter is notified of the end |
| `.finish` | keeper | records the other paths after the end is reported, and returns a `FinishedObservation` |
| `.wait` | keeper | waits until no process is left whose calls the listener thread must answer |
"""

from __future__ import annotations

import os
import sys
import time
from errno import EMFILE

from outlive.keeper.observation.eligibility import reason_not_to_observe
from outlive.keeper.observation.listener_thread import ListenerThread
from outlive.linux.shared_listener import NOT_PROMISED, PROMISED, SharedListener
from outlive.linux.syscalls import SYS_ADMIN, has_capability

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from outlive.keeper.observation.file_watch import Watch
    from outlive.keeper.observation.task_snapshots import TaskSnapshots
    from outlive.keeper.plan import Plan
    from outlive.observe.seccomp.observer import Observer

_FINISHING_TAKES_AT_MOST = 2.0
_BEGINS_UNSEEN_AFTER = 0.5
_OBSERVER_WRITES_WITHIN = 0.05
_MOST_BEFORE_IT_IS_TOLD = 200
_FEWEST_DESCRIPTORS = 64
_SHORT_TURN = 0.0005
_NO_THREAD = "the limit of processes (ulimit -u) left no thread to observe its system calls"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def load() -> None:
    """Import the modules that an observation needs.

    A process that starts many keepers does this once for all of them.
    """
    from outlive.linux.seccomp import prepare_filter  # noqa: PLC0415

    prepare_filter()


class JournalFile:
    """The file of an attempt's observed changes. Every line is written immediately."""

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, _CREATE | os.O_APPEND, 0o600)
        self.wall = time.time_ns() - time.monotonic_ns()

    def now(self) -> int:
        """Return the time in microseconds since 1970.

        Setting the clock while the task runs has no effect on the returned times.
        """
        return (self.wall + time.monotonic_ns()) // 1000

    def gap(self, words: str) -> str:
        """Return the line that states what was not observed, such as some of the calls.

        `words` is the sentence for this line.
        """
        return f"{self.now()}\tgap\t0\t-\t{words}\n"

    def note(self, operation: str, *words: str) -> None:
        """Write one line with an operation and its fields.

        `words` are the fields, which are escaped.
        """
        from outlive.observe.journal import escaped  # noqa: PLC0415 - this import takes little time, because the module is already loaded

        fields = "".join(f"\t{escaped(word)}" for word in words)
        self.append(f"{self.now()}\t{operation}\t0\t-{fields}\n")

    def append(self, lines: str) -> None:
        """Write whole lines. Lines for which the disk has no space are lost."""
        try:
            os.write(self.fd, lines.encode("utf-8", "surrogateescape"))
        except OSError:
            pass  # the line is lost, but readers of the recorded changes also inspect the paths


class PreparedObservation:
    """The observation of a command that has not begun.

    The keeper creates this object before it forks the witness.
    """

    _snapshots: TaskSnapshots

    def __init__(self, plan: Plan, record: int) -> None:
        """Open the file for observed changes. Raise OSError if nothing can be observed.

        `record` is the descriptor of the attempt's exit record.
        """
        if os.sysconf("SC_OPEN_MAX") < _FEWEST_DESCRIPTORS:
            raise OSError(EMFILE, "too few descriptors to observe anything")
        self._plan, self._record = plan, record
        keeps_privileges = has_capability(SYS_ADMIN)
        self._unseen = reason_not_to_observe(plan, keeps_privileges=keeps_privileges)
        self._journal = JournalFile(plan.files.effects)
        self._calls: ListenerThread | None = None
        self.shared_listener: SharedListener | None = None
        """The channel for the descriptor that receives the command's system calls.

        None if no calls are to be observed.
        """
        if self._unseen is None:
            self.shared_listener = SharedListener(
                self._journal.fd, self._journal.wall, keep_privileges=keeps_privileges
            )

    def prepare(self, send: Callable[[bytes], None]) -> None:
        """Start the thread that answers calls, and tell the child process whether it runs.

        `send` sends a message to the child process that will execute the command.
        """
        if self.shared_listener is not None:
            try:
                self._calls = ListenerThread(self._plan, self.shared_listener, self._journal)
            except RuntimeError:
                self._unseen = _NO_THREAD
            send(NOT_PROMISED if self._calls is None else PROMISED)
        import mmap  # noqa: F401, PLC0415 - imported while the witness works, so that the import causes no wait later

        import outlive.linux.seccomp  # noqa: F401, PLC0415
        from outlive.keeper.observation.task_snapshots import TaskSnapshots  # noqa: PLC0415

        self._snapshots = TaskSnapshots(self._plan, self._record)

    def start(self, command: int, let_begin: Callable[[], None]) -> RunningObservation:
        """Let the command begin under observation. `command` is the pid of the command.

        The function `let_begin` sends the message that lets the command begin.
        """
        self._snapshots.note_begin()
        running = RunningObservation(self._plan, self._journal, self._snapshots, self._calls, self._unseen)
        if self._calls is None:
            if self.shared_listener is not None:
                self.shared_listener.of_keeper(command)  # the command is not observed, but this call closes the channel
            running.snapshot_before_begin()
            let_begin()
        else:
            sys.setswitchinterval(_SHORT_TURN)  # otherwise the keeper's two threads could delay each other
            self._calls.take_listener(command, self._snapshots)
            let_begin()
            self._calls.answer_exec()
        return running


class RunningObservation:
    """The observation of a running command, made by `PreparedObservation.start`."""

    def __init__(
        self,
        plan: Plan,
        journal: JournalFile,
        snapshots: TaskSnapshots,
        calls: ListenerThread | None,
        unseen: str | None,
    ) -> None:
        self._plan, self._journal, self._snapshots, self._calls = plan, journal, snapshots, calls
        self._reason = unseen
        self._watch: Watch | None = None
        self._recorded: set[str] = set()
        self._ended_at = 0
        self._may_observe = False

    @property
    def _observer(self) -> Observer | None:
        return None if self._calls is None else self._calls.observer

    @property
    def _unseen(self) -> str | None:
        """Why no calls are observed. None if calls are observed."""
        return self._reason if self._calls is None else self._calls.unseen

    def snapshot_before_begin(self) -> None:
        """Take the snapshots before the command begins.

        This method is needed only if no calls are observed.
        """
        self._journal.note("unseen", self._reason or "")
        self._snapshots.take_before()
        until = time.monotonic() + _BEGINS_UNSEEN_AFTER
        self._take_all(is_late=False)
        self._snapshots.wait_for_all(_BEGINS_UNSEEN_AFTER)
        if self._watch is not None:
            self._watch.wait_for_begin(max(0.0, until - time.monotonic()))

    def observe_calls(self) -> None:
        """Let the thread that answers the command's system calls answer all of them.

        The keeper calls this method after it has reported the start to the launcher.
        """
        self._may_observe = True
        if self._calls is not None:
            self._calls.observe()

    def compare_files(self) -> None:
        """Take a snapshot of all files, after the command has run for a short time."""
        if self._watch is None:
            self._take_all()

    def _take_all(self, *, is_late: bool = True) -> None:
        """Take a snapshot of all files. Watch the files if no calls are observed."""
        unseen = self._unseen
        wants_watch = unseen is not None and self._plan.launch.observe in ("auto", "watch")
        is_taken = self._snapshots.take_all(is_all=unseen is not None, for_watching=wants_watch, is_late=is_late)
        if not is_taken or not wants_watch:
            return
        try:
            from outlive.keeper.observation.file_watch import WITHOUT, Watch  # noqa: PLC0415 - only tasks whose files are watched need this import
            from outlive.observe.journal import Journal  # noqa: PLC0415
            from outlive.observe.watch.watcher import is_installed  # noqa: PLC0415

            if is_installed():
                gathered = Journal(self._journal.fd, self._journal.wall)
                self._watch = Watch(self._snapshots, gathered, self._journal.note)
            else:
                self._journal.note("unseen", f"{unseen}; {WITHOUT}")
        except (ImportError, OSError, RuntimeError):
            return

    def record_end(self) -> None:
        """Record in which state the command left its paths and the repository.

        This step comes before waiting processes are notified of the end, because they may change the paths. If the
        command touched very many paths, `finish` records the rest. Outside of repositories, `finish` records every
        path.
        """
        self._snapshots.note_end()
        self._ended_at = self._journal.now()
        try:
            self._remember_conflicts()
            until = time.monotonic() + _OBSERVER_WRITES_WITHIN
            if self._observer is not None:  # a process that reads the recorded changes at once must find these changes
                self._observer.write_down(_OBSERVER_WRITES_WITHIN)
            own = [] if self._observer is None else list(self._observer.touched)
            followed = self._followed()
            if not followed and self._calls is not None and not self._calls.is_shared:
                return
            lines = []
            for path in own[:_MOST_BEFORE_IT_IS_TOLD]:
                if time.monotonic() > until:
                    break
                lines.append(self._final(path))
                self._recorded.add(path)
            self._journal.append("".join(lines))
            if len(followed) <= _MOST_BEFORE_IT_IS_TOLD:
                self._snapshots.take_after(followed)
        except Exception:  # noqa: BLE001 - after any error the attempt must still be settled
            return

    def _followed(self) -> list[str]:
        """Return the touched paths that are in a repository.

        If the command began outside of repositories, return all touched paths.
        """
        if self._observer is None:
            return []
        elsewhere = self._observer.elsewhere if self._snapshots.is_outside else ()
        return [*self._observer.touched, *elsewhere]

    def _final(self, path: str, before: str = "", *, is_outside: bool = False, until_ns: int | None = None) -> str:
        """Return the line that records in which state the task left a path.

        `before` is the recorded state before the task. If the path changed after `until_ns`, the line ends with the
        time at which the command ended.
        """
        from outlive.observe.journal import escaped  # noqa: PLC0415
        from outlive.observe.path_state import STAT, changed_at_ns, moments_of, state_like  # noqa: PLC0415 - this import takes little time, because the module is already loaded

        state = state_like(path, STAT if is_outside else before)
        written, touched = moments_of(path)
        line = f"{self._journal.now()}\tfinal\t0\t{state}\t{escaped(path)}\t{written}\t{touched}"
        is_late = until_ns is not None and state[:1] != "d" and changed_at_ns(path) > until_ns
        return f"{line}\t{self._ended_at}\n" if is_late else f"{line}\n"

    def finish(self) -> FinishedObservation:
        """Record the final states of the remaining paths, and compare all files.

        The files are compared with the first snapshot.
        """
        assert self._may_observe, "observe_calls() comes before finish()"  # noqa: S101 - without this check, a wrong order of the calls would block forever
        if self._calls is not None:
            self._calls.wait_until_loaded()
        own = [] if self._observer is None else list(self._observer.touched)
        touched = dict.fromkeys(own, "") if self._watch is None else self._watch.stop()
        elsewhere = [] if self._observer is None else list(self._observer.elsewhere)
        until, ended_ns = time.monotonic() + _FINISHING_TAKES_AT_MOST, self._snapshots.ended_ns
        lines = []
        for done, path in enumerate((*touched, *elsewhere)):
            if path in self._recorded:
                continue
            if time.monotonic() > until:
                late = len(touched) + len(elsewhere) - done
                words = f"{late} paths are shown as they were when effects were read, not as the task left them"
                lines.append(self._journal.gap(words))
                break
            is_outside = done >= len(touched)
            lines.append(self._final(path, touched.get(path, ""), is_outside=is_outside, until_ns=ended_ns))
        if own and self._calls is not None and self._calls.is_running:
            lines += self._still_open(own)
        self._journal.append("".join(lines))
        self._snapshots.compare(touched, self._followed())
        self._remember_conflicts()
        return FinishedObservation(self._calls)

    def _remember_conflicts(self) -> None:
        """Store which programs failed because they were observed.

        The next launch of these programs is not observed.
        """
        if self._observer is not None and (self._observer.met_gaining or self._observer.met_supervising):
            from outlive.keeper.observation.known_conflicts import remember  # noqa: PLC0415 - only commands that failed under observation need this import

            remember(self._plan, gaining=self._observer.met_gaining, supervising=self._observer.met_supervising)

    def _still_open(self, paths: Sequence[str]) -> Iterator[str]:
        """Yield a line about those paths that remaining processes can still write."""
        from outlive.observe.seccomp.recheck import open_for_writing  # noqa: PLC0415 - this import takes little time, because the module is already loaded

        still = open_for_writing(frozenset(paths), time.monotonic() + _OBSERVER_WRITES_WITHIN)
        if still is None:
            words = "it is not known which files are still open for writing; later writes to them are not recorded"
        elif still:
            files, it = ("1 file is", "it") if len(still) == 1 else (f"{len(still):,} files are", "them")
            words = f"{files} still open for writing: later writes to {it} are not recorded"
        else:
            return
        yield self._journal.gap(words)


class FinishedObservation:
    """The observation of a settled attempt whose processes may still run."""

    def __init__(self, calls: ListenerThread | None) -> None:
        self._calls = calls

    def wait(self) -> None:
        """Wait until no process is left whose system calls the keeper must answer."""
        if self._calls is not None:
            self._calls.wait()
