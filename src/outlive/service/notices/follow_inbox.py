"""Following the inbox: a process sleeps until the ledger changes or a keeper dies.

Every commit writes to the ledger's log, and inotify then wakes the processes that follow an inbox. So a process that
writes to the ledger does not need to know these processes. A keeper that was killed commits nothing. But it had a FIFO
(the done FIFO) open, and poll() reports that this FIFO was closed.
"""

from __future__ import annotations

import os
import time
from select import POLLIN, poll

from outlive.bundle.attempt import AttemptFiles, has_writer, open_done
from outlive.code_copy import carry_in_own_process
from outlive.domain.notices.notice import COALESCE_S, DEFERRAL_CEILING_S, may_wait
from outlive.ledger.kept_open import KeptOpenLedger
from outlive.ledger.notices import Notices
from outlive.linux.syscalls import drain, watch_modifications
from outlive.service.clock import utc_now
from outlive.service.maintenance.reconcile import reconcile
from outlive.service.notices.inbox import awaited_by, claim, owed_to, running_for
from outlive.service.sessions.liveness import process_of
from outlive.service.tasks.wait import DAY_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from outlive.bundle.home import Home
    from outlive.domain.notices.notice import Telling
    from outlive.domain.sessions.session import Session
    from outlive.domain.tasks.task import Task
    from outlive.ledger.sqlite import SqliteLedger
    from outlive.service.maintenance.reconcile import Adopter
    from outlive.service.notices.inbox import Claim

# The interval in milliseconds between two checks if the user has no inotify instance left.
_LOOK_MS = 1000
_MOST_WATCHED = 256


def follow_inbox(
    home: Home,
    session: str,
    project: str,
    adopter: Adopter | None,
    *,
    departures: int | None = None,
    while_owed: bool = False,
) -> Iterator[Claim]:
    """Yield a session's notices, reserved for this caller, each time they are due.

    The caller presents, acknowledges or releases them. This function returns when the descriptor `departures` becomes
    readable, because the reader has gone away. With `while_owed`, it also returns when no further notice can come.
    """
    with Watch(home, session, project, departures) as watch:
        yield from follow(watch, adopter, while_owed=while_owed)


def follow(watch: Watch, adopter: Adopter | None, *, while_owed: bool) -> Iterator[Claim]:
    """Yield reserved notices for which `watch.is_due` is true, and sleep in between."""
    carry_in_own_process(watch.home.path)
    while True:
        reconcile(watch.home, utc_now(), None, adopter)
        watch.listen()
        watch.look()
        with claim(watch.home, watch.session, watch.project, wanted=watch.is_due) as claimed:
            if claimed.tellings:
                yield claimed
                continue
        if (while_owed and watch.is_vain) or not watch.sleep():
            return


class Watch:
    """The events that wake a process that follows an inbox.

    It also has the notices whose presentation is postponed.
    """

    def __init__(self, home: Home, session: str, project: str, departures: int | None) -> None:
        self.home, self.session, self.project = home, session, project
        self.launched: list[Task] = []
        """The session's running tasks, as they were at the last check."""
        self.is_vain = False
        """Whether no further notice can come.

        This is true if three conditions are met: no task runs for the session, no open notice may wake the session,
        and the session cannot get the notices of another session.
        """
        self._departures = departures
        self._others_tell = False
        self._fifos: dict[str, int] = {}
        self._ahead: list[int] = []
        self._put_off: dict[str, float] = {}
        self._before: dict[str, float] = {}
        # Keep the ledger open during the sleep. If no other process has it open, opening it truncates the index of its
        # log. This counts as a change, so each check of this process would wake it again.
        self._ledger = KeptOpenLedger(home.ledger)
        self._changes = watch_modifications(home.path)

    def look(self) -> None:
        """Start a check, and remember which notices the last check postponed."""
        self._before, self._put_off = self._put_off, {}

    def is_due(self, ledger: SqliteLedger, telling: Telling) -> bool:
        """Return whether a notice should be presented now.

        The notice of a success waits until the group of its task has ended, but at most for `DEFERRAL_CEILING_S`
        seconds. A notice that must not wake the session waits until another notice is presented.
        """
        if telling.is_quiet:
            return False
        notice = telling.notice
        task = ledger.task(notice.task)
        attempt = None if task is None else task.attempts[notice.attempt - 1]
        if attempt is None or not may_wait(notice.kind, attempt.state, Notices(ledger).remaining(notice.task)):
            return True
        since = self._before.get(notice.id, time.monotonic())
        if time.monotonic() - since >= DEFERRAL_CEILING_S:
            return True
        self._put_off[notice.id] = since
        return False

    def listen(self) -> None:
        """Ignore earlier writes to the ledger, and watch the keepers of running tasks.

        This method is called before each check of the ledger. So every write after the start of the check wakes the
        process.
        """
        if self._changes is not None:
            drain(self._changes)
        self._open_fifos()

    def sleep(self) -> bool:
        """Sleep until there may be new notices.

        Returns False if the descriptor `departures` has become readable, because the reader has gone away. After an
        event, the sleep lasts `COALESCE_S` seconds longer. So tasks that end at almost the same time are presented
        together.
        """
        waiting = poll()
        if self._departures is not None:
            waiting.register(self._departures, POLLIN)
        for fd in (*self._fifos.values(), *self._ahead):
            waiting.register(fd, POLLIN)
        if self._changes is not None:
            waiting.register(self._changes, POLLIN)
        ready = waiting.poll(self.patience_ms())
        if any(fd == self._departures for fd, _ in ready):
            return False
        if ready:
            time.sleep(COALESCE_S)
        return True

    def patience_ms(self) -> float:
        """Return how long to sleep at most, in milliseconds."""
        # Another process may have reserved a notice, and may be killed before it presents the notice. No write would
        # wake this process then, so it checks at intervals.
        spans: list[float] = [_LOOK_MS if self._changes is None or self._others_tell else DAY_MS]
        now = time.monotonic()
        spans += [max(0.0, since + DEFERRAL_CEILING_S - now) * 1000 for since in self._put_off.values()]
        return min(spans)

    def _open_fifos(self) -> None:
        """Open the FIFO of each running task's keeper, and close the FIFOs of other tasks.

        When a keeper exits, poll() reports that its FIFO was closed. The list of running tasks is updated too.
        """
        with self._ledger.use(utc_now()) as ledger:
            owed = owed_to(ledger, self.session, self.project)
            self.launched = [] if owed is None else running_for(ledger, owed)
            live = [] if owed is None else awaited_by(ledger, owed)
            ahead = [] if owed is None else [each for each in owed.ahead if each.process is not None]
            untold = set() if owed is None else Notices(ledger).open_states(owed.origins, owed.tasks, "wake")
            self._others_tell = "claimed" in untold
            is_over = owed is not None and owed.session.ended_at is not None
            may_inherit = owed is not None and owed.may_inherit
            self.is_vain = is_over or not (live or untold or may_inherit)
        wanted = {f"{task.id} {task.current.number}": task for task in live[:_MOST_WATCHED]}
        self._watch_ahead(ahead)
        for name in [name for name in self._fifos if name not in wanted]:
            os.close(self._fifos.pop(name))
        for name, task in wanted.items():
            if name not in self._fifos:
                try:
                    fifo = open_done(AttemptFiles(self.home.bundle(task.id), task.current.number))
                except OSError:
                    continue  # the task has ended, and a write to the ledger reports its end
                if has_writer(fifo):
                    self._fifos[name] = fifo
                else:
                    # The attempt has no keeper. Another process will adopt or settle it, which writes to the ledger.
                    os.close(fifo)

    def _watch_ahead(self, ahead: list[Session]) -> None:
        """Watch the processes of the sessions in `ahead`.

        When such a session ends, its notices may go to this session.
        """
        for pidfd in self._ahead:
            os.close(pidfd)
        opened = [process_of(each) for each in ahead[:_MOST_WATCHED]]
        self._ahead = [pidfd for pidfd in opened if pidfd is not None]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in (*self._fifos.values(), *self._ahead):
            os.close(fd)
        if self._changes is not None:
            os.close(self._changes)
        self._ledger.close()
