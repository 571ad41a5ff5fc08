"""The keeper's thread that answers the observed system calls of its command.

The thread answers the exec of the command at once. Before it answers any other call, it takes small snapshots of the
repositories and loads the code that records changes. So it sees every change that the command makes. An observed
process is a process of the command whose calls the kernel reports to this thread.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock, start_new_thread
from select import POLLIN, poll

from outlive.keeper.observation.eligibility import CANNOT
from outlive.linux.shared_listener import answer_all, let_continue_what_waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from outlive.keeper.observation.observation import JournalFile
    from outlive.keeper.observation.task_snapshots import TaskSnapshots
    from outlive.keeper.plan import Plan
    from outlive.linux.shared_listener import SharedListener
    from outlive.observe.seccomp.observer import Observer

_OTHER_NAMES = "the locale is not UTF-8: names that are not ASCII may be shown wrongly"


class ListenerThread:
    """The keeper's thread that answers the system calls of one attempt's command.

    The keeper calls the methods in the order in which they are defined here.
    """

    _snapshots: TaskSnapshots

    def __init__(self, plan: Plan, shared_listener: SharedListener, journal: JournalFile) -> None:
        """Start the thread. Raise RuntimeError if the limit of processes is reached.

        `journal` is the attempt's file of observed changes.
        """
        self._plan, self._shared_listener, self._journal = plan, shared_listener, journal
        self.observer: Observer | None = None
        self.unseen: str | None = None
        """Why no calls are observed. None if calls are observed."""
        self.is_shared = False
        """Whether the command runs in a repository. True if this is unknown."""
        self._page: Any = None
        self._command = 0
        self._listener: int | None = None
        self._is_out_of_reach = False
        self._has_begun, self._may_load, self._is_loaded, self._is_over = (allocate_lock() for _ in range(4))
        for lock in (self._has_begun, self._may_load, self._is_loaded, self._is_over):
            lock.acquire()
        start_new_thread(self._answer_calls, ())

    def take_listener(self, command: int, snapshots: TaskSnapshots) -> None:
        """Copy the descriptor that receives the command's system calls.

        The child process that will execute the command has this descriptor, and closes it when it begins. So the keeper
        must call this method before it lets the child process begin.
        """
        self._command, self._snapshots = command, snapshots
        try:
            self._listener = self._shared_listener.of_keeper(command)
        except OSError:
            self._is_out_of_reach = True

    def answer_exec(self) -> None:
        """Let the thread answer the command's exec, once the command may begin."""
        if self._is_out_of_reach:
            os._exit(1)  # this keeper cannot answer the command's calls, but its witness answers them after this exit
        self._has_begun.release()

    def observe(self) -> None:
        """Let the thread load the code that records changes, and answer all later calls."""
        self._may_load.release()

    def wait_until_loaded(self) -> None:
        """Wait until the attributes `observer`, `unseen` and `is_shared` are final."""
        self._is_loaded.acquire()

    @property
    def is_running(self) -> bool:
        """Whether a process whose calls this thread answers may still be alive."""
        return self._is_over.locked()

    def wait(self) -> None:
        """Wait until no observed process is alive. Then close the shared memory page.

        The kernel writes the observed calls into this page.
        """
        self._is_over.acquire()
        if self._page is not None:
            self._page.close()

    def _answer_calls(self) -> None:
        self._has_begun.acquire()
        listener = self._listener
        if listener is not None:
            self._page = self._shared_listener.page()
            self._answer_first(listener)
        self._may_load.acquire()
        try:
            if listener is None:
                self.unseen, self.is_shared = CANNOT, True
                self._journal.note("unseen", CANNOT)
                self._snapshots.take_before()
            else:
                self.observer = self._load_observer(listener)
        finally:
            self._is_loaded.release()
        try:
            if self.observer is not None:
                self.observer.run()
            elif listener is not None:
                answer_all(listener, self._page)
        except Exception as error:  # noqa: BLE001 - after any error the command still waits for an answer
            self._journal.append(self._journal.gap(f"the observer failed: {type(error).__name__}"))
            if listener is not None:
                let_continue_what_waits(listener, self._page)
        finally:
            self._is_over.release()

    def _answer_first(self, listener: int) -> None:
        """Answer the exec of the command, so that the command is executed."""
        from outlive.linux.seccomp import let_continue, receive, received  # noqa: PLC0415 - this import takes little time, because the module is already loaded

        waiting = poll()
        waiting.register(listener, POLLIN)
        waiting.poll()
        try:
            receive(listener, self._page)
        except OSError:
            return  # the child process is gone
        let_continue(listener, received(self._page))

    def _load_observer(self, listener: int) -> Observer | None:
        """Return the object that records the calls, or None if it cannot be loaded.

        `listener` is the descriptor from which the calls are read.
        """
        try:
            from outlive.linux.seccomp import prepare_filter  # noqa: PLC0415
            from outlive.observe.git.repository import find_repository  # noqa: PLC0415
            from outlive.observe.journal import Journal  # noqa: PLC0415
            from outlive.observe.seccomp.observer import Observer  # noqa: PLC0415
            from outlive.observe.seccomp.scope import Scope  # noqa: PLC0415

            prepare_filter()
            found = [find_repository(directory) for directory in self._snapshots.directories()]
            repositories = [each for each in found if each is not None]
            self.is_shared = bool(repositories)
            roots = (("", "", "") if each is None else each.roots for each in found)
            self._journal.note("begin", *(root for each in roots for root in each))
            if sys.getfilesystemencoding() != "utf-8":
                self._journal.note("gap", _OTHER_NAMES)
            self._snapshots.take_before()
            observer = Observer(
                listener,
                self._page,
                Journal(self._journal.fd, self._journal.wall, self._shared_listener.note_unwritten),
                Scope(repositories),
                loses_privileges=not self._shared_listener.keep_privileges,
                on_first_write=self._notify_of_overlap,
            )
            argv = self._plan.launch.argv
            observer.write_exec(self._journal.now(), self._command, " ".join(argv), argv[0])
        except Exception:  # noqa: BLE001 - the command must go on, even if the installation was deleted meanwhile
            self._journal.append(self._journal.gap("the observer could not be started"))
            return None
        return observer

    def _notify_of_overlap(self, top: str) -> None:
        """Start a thread that searches for other tasks that write in this worktree.

        `top` is the top directory of the worktree.
        """
        try:
            from outlive.keeper.observation.overlap_notice import notify_of_overlap  # noqa: PLC0415 - only tasks that write to existing files need this import
        except ImportError:
            return  # the installation was deleted while the task ran
        try:
            start_new_thread(notify_of_overlap, (self._plan, top))
        except RuntimeError:
            return  # the notices about the ends of the tasks will mention the overlap
