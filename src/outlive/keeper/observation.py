"""Observation as the keeper does it: in a thread of its own, from before the command begins to after its end.

Before and after, a quick snapshot of the repository is taken, whether or not calls can be seen.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock, start_new_thread
from errno import EMFILE
from resource import RLIMIT_NOFILE, getrlimit

from outlive.bundle.eyes import Eyes
from outlive.bundle.kernel import SYS_ADMIN, has_capability
from outlive.observe.content import state_of
from outlive.observe.journal import UNSEEN, Journal, escaped
from outlive.observe.observer import Observer, Scope
from outlive.observe.place import place_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.keeper.plan import Plan

_LOOKING_TAKES_AT_MOST = 2.0
_MOST_FOLLOWED = 500
_FEWEST_DESCRIPTORS = 64
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Observation:
    """The observation of one attempt."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        if getrlimit(RLIMIT_NOFILE)[0] < _FEWEST_DESCRIPTORS:
            raise OSError(EMFILE, "too few descriptors to observe anything")
        self._fd = os.open(plan.files.effects, _CREATE | os.O_APPEND, 0o600)
        self._journal = Journal(self._fd)
        self._observer: Observer | None = None
        self._done = allocate_lock()
        self.eyes: Eyes | None = None
        keeps_privileges = has_capability(SYS_ADMIN)
        reason = self._reason_not_to(keeps_privileges)
        if reason is None:
            self.eyes = Eyes(keep_privileges=keeps_privileges)
        else:
            self._note("unseen", reason)
        self._take("before")

    def _reason_not_to(self, keeps_privileges: bool) -> str | None:
        """Why calls are not looked at; None if they are."""
        how, launch = self._plan.launch.observe, self._plan.launch
        if how in ("watch", "compare"):
            return "it was asked not to look at its system calls"
        if not keeps_privileges and how == "auto":
            from outlive.observe.privileges import would_miss_privileges  # noqa: PLC0415 - root loses nothing

            if would_miss_privileges(launch.argv, launch.cwd, self._met_before()):
                return "it may need privileges that observing would take away (--observe syscalls insists)"
        from outlive.observe.self_test import can_observe  # noqa: PLC0415

        if not can_observe(self._plan.home, keep_privileges=keeps_privileges):
            return "system calls cannot be observed here"
        return None

    def begin(self) -> None:
        """Take up the listener; nothing may begin before we can answer."""
        listener = None if self.eyes is None else self.eyes.of_keeper()
        if self.eyes is None or listener is None:
            if self.eyes is not None:
                self._note("unseen", "system calls cannot be observed here, or are observed by somebody else")
            self._journal.flush()
            return
        place = place_of(self._plan.launch.cwd)
        self._note("begin", place.top or "", place.git_directory or "")
        scope = Scope(place.top, place.git_directory)
        loses = not self.eyes.keep_privileges
        self._observer = Observer(listener, self.eyes.page, self._journal, scope, loses_privileges=loses)
        self._done.acquire()
        start_new_thread(self._run, (self._observer,))

    def _run(self, observer: Observer) -> None:
        try:
            observer.run()
        finally:
            self._done.release()

    def look_at_the_end(self) -> None:
        """Write down what the touched paths hold now; later changes are not the task's."""
        touched = [] if self._observer is None else list(self._observer.touched)
        until = time.monotonic() + _LOOKING_TAKES_AT_MOST
        lines = []
        for path in touched:
            if time.monotonic() > until:
                break
            lines.append(f"{self._journal.now()}\tfinal\t0\t{state_of(path)}\t{escaped(path)}\n")
        self._append("".join(lines))
        self._take("after", touched[:_MOST_FOLLOWED])
        if self._observer is not None and self._observer.met_gaining:
            self._remember(self._observer.met_gaining)

    def wait(self) -> None:
        """Go on until nobody that is filtered lives."""
        if self._observer is not None:
            self._done.acquire()

    def note_taking_over(self) -> None:
        """In the witness: from now on nobody looks any more."""
        words = "its keeper died: what it did afterwards was not seen"
        self._append(f"{self._journal.now()}\tunobserved\t0\t{UNSEEN}\t{words}\n")

    def _note(self, operation: str, *words: str) -> None:
        fields = "".join(f"\t{escaped(word)}" for word in words)
        self._journal.add(f"{self._journal.now()}\t{operation}\t0\t{UNSEEN}{fields}\n")

    def _append(self, lines: str) -> None:
        try:
            os.write(self._fd, lines.encode("utf-8", "surrogateescape"))
        except OSError:
            pass  # it will be looked at when somebody asks

    def _take(self, when: str, paths: list[str] | tuple[()] = ()) -> None:
        """Keep a quick snapshot of the repository; one that cannot be taken is not there."""
        try:
            from outlive.domain.snapshot_json import to_json  # noqa: PLC0415
            from outlive.observe.snapshot import take_quick  # noqa: PLC0415

            kept = to_json(take_quick(self._plan.launch.cwd, paths)).encode("utf-8", "surrogateescape")
            fd = os.open(f"{self._plan.files.path}/{when}", _CREATE | os.O_TRUNC, 0o600)
        except (ImportError, OSError):
            return
        try:
            os.write(fd, kept)
        except OSError:
            pass
        finally:
            os.close(fd)

    def _met_before(self) -> list[str]:
        """The names of programs that were met without the privileges that they should have had."""
        try:
            with open(self._plan.home.path + "/gaining", encoding="utf-8", errors="replace") as file:
                return file.read(1 << 16).split("\n")
        except OSError:
            return []

    def _remember(self, names: set[str]) -> None:
        fresh = names - set(self._met_before())
        if not fresh:
            return
        try:
            fd = os.open(self._plan.home.path + "/gaining", _CREATE | os.O_APPEND, 0o600)
            try:
                os.write(fd, "".join(f"{name}\n" for name in sorted(fresh)).encode("utf-8", "replace"))
            finally:
                os.close(fd)
        except OSError:
            pass
