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
from outlive.bundle.kernel import drain, watch_modifications
from outlive.domain.notice import COALESCE_S, DEFERRAL_CEILING_S, may_wait
from outlive.ledger.inbox import Inbox
from outlive.ledger.resting import RestingLedger
from outlive.ledger.sessions import Sessions
from outlive.service.clock import utc_now
from outlive.service.inbox import claim, owed_to, running_for
from outlive.service.liveness import is_over, process_of
from outlive.service.reconcile import reconcile
from outlive.service.wait import DAY_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from outlive.bundle.home import Home
    from outlive.domain.notice import Telling
    from outlive.domain.session import Session
    from outlive.ledger.sqlite import SqliteLedger
    from outlive.service.inbox import Claim
    from outlive.service.reconcile import Adopter

# Only where the user has no inotify instance left: then we look instead of being told.
_LOOK_MS = 1000
_MOST_DOORS = 256


def follow_inbox(
    home: Home,
    session: str,
    project: str,
    adopter: Adopter | None,
    *,
    reader: int | None = None,
    life: int | None = None,
) -> Iterator[Claim]:
    """Claims of what the session is owed, as it comes; whoever gets one says what became of it.

    Ends when the reader of a pipe that we were given has left. Given a pidfd, `life`, it ends with the process behind
    it, and as soon as nothing is left to come: all was told by somebody else, or another session is told it.
    """
    with _Watch(home, session, project, reader, life) as watch:
        while True:
            reconcile(home, utc_now(), None, adopter)
            watch.listen()
            watch.look()
            claimed = claim(home, session, project, wanted=watch.is_due)
            with claimed:
                if claimed.tellings:
                    yield claimed
                    continue
            if (life is not None and watch.is_vain) or not watch.sleep():
                return


class _Watch:
    """What wakes a follower, and what it has put off."""

    def __init__(self, home: Home, session: str, project: str, reader: int | None, life: int | None = None) -> None:
        self._home = home
        self._reader = reader
        self._life = life
        self._others_tell = False
        self.is_vain = False
        """Whether nothing ran for the session at the last look, and nothing waited to be told."""
        self._session, self._project = session, project
        self._doors: dict[str, int] = {}
        self._kin: list[int] = []
        self._put_off: dict[str, float] = {}
        self._before: dict[str, float] = {}
        self._ledger = RestingLedger(home.ledger)
        self._changes = watch_modifications(home.path)

    def look(self) -> None:
        """Before each look: what was put off counts only if it is put off again, and not since the last one told it."""
        self._before, self._put_off = self._put_off, {}

    def is_due(self, ledger: SqliteLedger, telling: Telling) -> bool:
        """Whether it is told now; a success while others of its group go on waits for them, but not for ever."""
        notice = telling.notice
        task = ledger.task(notice.task)
        attempt = None if task is None else task.attempts[notice.attempt - 1]
        if attempt is None or not may_wait(notice.kind, attempt.state, Inbox(ledger).remaining(notice.task)):
            return True
        since = self._before.get(notice.id, time.monotonic())
        if time.monotonic() - since >= DEFERRAL_CEILING_S:
            return True
        self._put_off[notice.id] = since
        return False

    def listen(self) -> None:
        """Before we look: forget what has been written, so that whatever comes later is heard."""
        if self._changes is not None:
            drain(self._changes)
        self._open_doors()

    def sleep(self) -> bool:
        """Until something may have changed, and a little longer, so that what comes together is told together.

        False if nobody reads any more.
        """
        waiting = poll()
        if self._reader is not None:
            waiting.register(self._reader, 0)
        if self._life is not None:
            waiting.register(self._life, POLLIN)
        for fd in (*self._doors.values(), *self._kin):
            waiting.register(fd, POLLIN)
        if self._changes is not None:
            waiting.register(self._changes, POLLIN)
        ready = waiting.poll(self._patience_ms())
        if any(fd in (self._reader, self._life) for fd, _ in ready):
            return False
        if ready:
            time.sleep(COALESCE_S)
        return True

    def _patience_ms(self) -> float:
        # Whoever else is telling something now may be killed at it, and nobody would write that down.
        spans: list[float] = [_LOOK_MS if self._changes is None or self._others_tell else DAY_MS]
        now = time.monotonic()
        spans += [max(0.0, since + DEFERRAL_CEILING_S - now) * 1000 for since in self._put_off.values()]
        return min(spans)

    def _open_doors(self) -> None:
        """The done FIFOs of what runs for this session; those of tasks that are over are closed."""
        with self._ledger.use(utc_now()) as ledger:
            owed = owed_to(ledger, self._session, self._project)
            live = [] if owed is None else running_for(ledger, owed)
            kin = [] if owed is None else _living_kin(ledger, owed.session)
            told = [] if owed is None else Inbox(ledger).owed(owed.origins)
            self._others_tell = any(notice.state == "claimed" for notice in told)
            self.is_vain = not live and all(notice.state == "presented" for notice in told)
        wanted = {f"{task.id} {task.current.number}": task for task in live[:_MOST_DOORS]}
        self._watch_kin(kin)
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

    def _watch_kin(self, kin: list[Session]) -> None:
        for pidfd in self._kin:
            os.close(pidfd)
        opened = [process_of(each) for each in kin[:_MOST_DOORS]]
        self._kin = [pidfd for pidfd in opened if pidfd is not None]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for door in (*self._doors.values(), *self._kin):
            os.close(door)
        if self._changes is not None:
            os.close(self._changes)
        self._ledger.close()


def _living_kin(ledger: SqliteLedger, me: Session) -> list[Session]:
    """Other sessions of the lineage whose process lives: its end may make us their heir."""
    kin = Sessions(ledger).lineage(me.lineage).sessions.values()
    return [each for each in kin if each.seq != me.seq and each.process is not None and not is_over(each)]
