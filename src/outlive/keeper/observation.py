"""Observation as the keeper does it: in a thread of its own, from before the command begins to after its end."""

from __future__ import annotations

import os
import time
from _thread import allocate_lock, start_new_thread

from outlive.bundle.eyes import Eyes
from outlive.observe.content import state_of
from outlive.observe.journal import UNSEEN, Journal, escaped
from outlive.observe.observer import Observer, Scope
from outlive.observe.place import place_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.keeper.plan import Plan

_LOOKING_TAKES_AT_MOST = 2.0


class Observation:
    """The observation of one attempt."""

    def __init__(self, plan: Plan, *, keep_privileges: bool) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(plan.files.effects, flags, 0o600)
        self.eyes = Eyes(keep_privileges=keep_privileges)
        self._cwd = plan.launch.cwd
        self._journal = Journal(self._fd)
        self._observer: Observer | None = None
        self._done = allocate_lock()

    def begin(self) -> None:
        """Take up the listener; nothing may begin before we can answer."""
        listener = self.eyes.of_keeper()
        if listener is None:
            return
        place = place_of(self._cwd)
        where = (escaped(place.top or ""), escaped(place.git_directory or ""))
        self._journal.add(f"{self._journal.now()}\tbegin\t0\t{UNSEEN}\t{where[0]}\t{where[1]}\n")
        scope = Scope(place.top, place.git_directory)
        self._observer = Observer(listener, self.eyes.page, self._journal, scope)
        self._done.acquire()
        start_new_thread(self._run, (self._observer,))

    def _run(self, observer: Observer) -> None:
        try:
            observer.run()
        finally:
            self._done.release()

    def look_at_the_end(self) -> None:
        """Write down what the touched paths hold now; later changes are not the task's."""
        if self._observer is None:
            return
        until = time.monotonic() + _LOOKING_TAKES_AT_MOST
        lines = []
        for path in list(self._observer.touched):
            if time.monotonic() > until:
                break
            lines.append(f"{self._journal.now()}\tfinal\t0\t{state_of(path)}\t{escaped(path)}\n")
        try:
            os.write(self._fd, "".join(lines).encode("utf-8", "surrogateescape"))
        except OSError:
            pass  # they will be looked at when somebody asks

    def wait(self) -> None:
        """Go on until nobody that is filtered lives."""
        if self._observer is not None:
            self._done.acquire()

    def note_taking_over(self) -> None:
        """In the witness: from now on nobody looks any more."""
        line = f"{self._journal.now()}\tunobserved\t0\t-\tits keeper died: what it did afterwards was not seen\n"
        try:
            os.write(self._fd, line.encode("ascii"))
        except OSError:
            pass
