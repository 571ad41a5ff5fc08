"""Following the inbox: blocked until something is written to the ledger or a keeper is gone.

The log of the ledger is what wakes us: whoever commits an ending writes to it, so nobody has to
remember to ring, and nobody can forget to. A keeper that was killed commits nothing; its done FIFO
hangs up instead. In between, not one system call is made.
"""

from __future__ import annotations

import os
import time
from select import POLLIN, poll

from outlive.bundle.attempt import AttemptFiles, has_writer, open_done
from outlive.bundle.kernel import watch_modifications
from outlive.domain.notice import COALESCE_S, DEFERRAL_CEILING_S, may_wait
from outlive.ledger.inbox import Inbox
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.inbox import claim, owed_to, running_for
from outlive.service.reconcile import reconcile
from outlive.service.wait import DAY_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from outlive.bundle.home import Home
    from outlive.domain.notice import Telling
    from outlive.service.inbox import Claim
    from outlive.service.reconcile import Adopter

# Only where the user has no inotify instance left: then we look instead of being told.
_LOOK_MS = 1000
_MOST_DOORS = 256


def follow_inbox(home: Home, session: str, project: str, adopter: Adopter | None) -> Iterator[Claim]:
    """Claims of what the session is owed, as it comes; whoever gets one says what became of it."""
    with _Watch(home, session, project) as watch:
        while True:
            reconcile(home, utc_now(), None, adopter)
            watch.listen()
            claimed = claim(home, session, project, wanted=watch.is_due)
            with claimed:
                if claimed.tellings:
                    yield claimed
                    continue
            watch.sleep()


class _Watch:
    """What wakes a follower, and what it has put off."""

    def __init__(self, home: Home, session: str, project: str) -> None:
        self._home = home
        self._session, self._project = session, project
        self._doors: dict[str, int] = {}
        self._put_off: dict[str, float] = {}
        self._ledger = SqliteLedger(home.ledger, utc_now())
        self._ledger.rest()
        self._changes: int | None = None
        try:
            self._changes = watch_modifications(home.path)
        except OSError:
            pass

    def is_due(self, ledger: SqliteLedger, telling: Telling) -> bool:
        """Whether it is told now; a success while others of its group go on waits for them, but not for ever."""
        notice = telling.notice
        task = ledger.task(notice.task)
        attempt = None if task is None else task.attempts[notice.attempt - 1]
        if attempt is None or not may_wait(notice.kind, attempt.state, Inbox(ledger).remaining(notice.task)):
            self._put_off.pop(notice.id, None)
            return True
        since = self._put_off.setdefault(notice.id, time.monotonic())
        return time.monotonic() - since >= DEFERRAL_CEILING_S

    def listen(self) -> None:
        """Before we look: forget what has been written, so that whatever comes later is heard."""
        if self._changes is not None:
            _drain(self._changes)
        self._open_doors()

    def sleep(self) -> None:
        """Until something may have changed, and a little longer, so that what comes together is told together."""
        waiting = poll()
        for fd in self._doors.values():
            waiting.register(fd, POLLIN)
        if self._changes is not None:
            waiting.register(self._changes, POLLIN)
        if waiting.poll(self._patience_ms()):
            time.sleep(COALESCE_S)

    def _patience_ms(self) -> float:
        spans: list[float] = [DAY_MS if self._changes is not None else _LOOK_MS]
        now = time.monotonic()
        spans += [max(0.0, since + DEFERRAL_CEILING_S - now) * 1000 for since in self._put_off.values()]
        return min(spans)

    def _open_doors(self) -> None:
        """The done FIFOs of what runs for this session; those of tasks that are over are closed."""
        if not self._ledger.resume():
            self._ledger = SqliteLedger(self._home.ledger, utc_now())
        try:
            owed = owed_to(self._ledger, self._session, self._project)
            live = [] if owed is None else running_for(self._ledger, owed)
        finally:
            self._ledger.rest()
        wanted = {f"{task.id} {task.current.number}": task for task in live[:_MOST_DOORS]}
        for name in [name for name in self._doors if name not in wanted]:
            os.close(self._doors.pop(name))
        for name, task in wanted.items():
            if name not in self._doors:
                try:
                    door = open_done(AttemptFiles(self._home.bundle(task.id), task.current.number))
                except OSError:
                    continue  # its ending will be written down by somebody
                if has_writer(door):
                    self._doors[name] = door
                else:
                    os.close(door)  # nobody keeps it now; whoever does next, or settles it, writes that down

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for door in self._doors.values():
            os.close(door)
        if self._changes is not None:
            os.close(self._changes)
        if self._ledger.resume():
            self._ledger.close()


def _drain(fd: int) -> None:
    try:
        while os.read(fd, 65536):
            pass
    except BlockingIOError:
        pass
