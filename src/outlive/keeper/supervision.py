"""Supervision: a running attempt under a keeper's eyes, from its beginning to its settlement.

The keeper sleeps in one poll() until something happens: the end, a poke, a deadline, a growing
output, the death of a foreground task's owner.
"""

from __future__ import annotations

import os
import time
from select import POLLIN, poll

from outlive.bundle import record
from outlive.bundle.kernel import signal
from outlive.bundle.processes import has_exited, open_verified
from outlive.domain.evidence import Evidence, Intent
from outlive.domain.settlement import plan_settlement, told_as_retrying
from outlive.domain.task import LeftRunning
from outlive.domain.when import UTC, datetime, from_micros, to_micros
from outlive.keeper import owner, tree
from outlive.keeper.cap import OutputWatch
from outlive.keeper.ending import end_tree
from outlive.keeper.settling import LedgerOfAnEnding
from outlive.keeper.sight import OwnCommand, Sight, read_identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive.bundle.attempt import Held
    from outlive.domain.evidence import IntentKind
    from outlive.domain.settlement import Settlement
    from outlive.keeper.again import Again
    from outlive.keeper.idleness import Idleness
    from outlive.keeper.plan import Plan

_REHEARSES_AFTER = 0.05
INTENTS: tuple[IntentKind, ...] = (
    "cancel",
    "timeout",
    "idle_timeout",
    "queue_timeout",
    "dependency",
    "output_limit",
    "session_ended",
)


class Supervision:
    """A running attempt under a keeper's eyes, its own or an adopted one."""

    def __init__(
        self, plan: Plan, held: Held, sight: Sight, role: str, on_settled: Callable[[], None] = lambda: None
    ) -> None:
        self._plan = plan
        self._held = held
        self.sight = sight
        """Whom we see the command through."""
        self._role = role
        self._output = OutputWatch(
            plan.files.path,
            held.output,
            held.record,
            plan.launch.max_output,
            can_punch=plan.home.can_punch,
        )
        self._intent = read_intent(held.record)
        found = read_identity(held.record)
        self._command: int | None = None
        self._pid = found[0].pid if found else 0
        self._deadline = self._find_deadline(int(found[1]["monotonic"]) if found else time.monotonic_ns())
        self._owner, self._is_abandoned = plan.surroundings.owner, False
        if self._owner is None:
            self._owner, self._is_abandoned = owner.find(held.record)
        self._idleness = self._watch_idleness() if plan.launch.idle_timeout is not None else None
        self._retrying = _retrying(plan) if role == "keeper" and plan.retries_left else None
        self._ledger = LedgerOfAnEnding(plan, held, on_settled)
        self._seen_exit = self._is_watching = self._is_stalled = False
        self._hiding: frozenset[int] = frozenset()
        self._rehearsal: float | None = time.monotonic() + _REHEARSES_AFTER
        self.on_rest: Callable[[], None] = lambda: None
        """Called once, when the command has run for a moment and there is nothing else to do."""
        self.on_end: Callable[[], None] = lambda: None
        """Called once, when the command has ended and nobody has been told yet."""

    def _find_deadline(self, started_ns: int) -> float | None:
        """On the monotonic clock, which stands still while the machine sleeps."""
        timeout = self._plan.launch.timeout
        return None if timeout is None else started_ns / 1e9 + timeout.total_seconds()

    def _watch_idleness(self) -> Idleness:
        from outlive.keeper.idleness import Idleness  # noqa: PLC0415 - most tasks may be idle

        limit = self._plan.launch.idle_timeout
        assert limit is not None  # noqa: S101 - for the type checker
        return Idleness(limit, self._held.output, self._pids)

    def see_through(self, seen: Evidence | Sight) -> Again | None:
        """Until the command has ended and its attempt is settled; the next attempt, if there is one."""
        self._resume()
        while not isinstance(seen, Evidence):
            self.sight = seen
            ready = self._wait()
            if self.sight.fd in ready:
                seen = self.sight.look()
                if isinstance(seen, OwnCommand):
                    signal.signal(signal.SIGCHLD, lambda *_: None)  # wakes us for each orphan that ends
                    seen.reap_others()
                continue
            if self._command in ready:
                self._seen_exit = True
                self._ledger.prepare()
            if self._output.wake in ready:
                self._output.notice_write()
                if isinstance(self.sight, OwnCommand):
                    self.sight.reap_others()
            elif self._output.next_look is not None and not ready:
                self._output.look()
            if self._held.control in ready:
                self._obey(os.read(self._held.control, 4096))
            if self._owner in ready:
                self._owner = None
                self._end("session_ended")
            self._check_limits()
        return self.settle(seen)

    def _watch(self) -> None:
        """Open what wakes us, once."""
        if not self._is_watching:
            self._is_watching = True
            found = read_identity(self._held.record)
            self._command = open_verified(found[0]) if found else None
            self._output.begin()

    def _check_limits(self) -> None:
        """End it if it has written, rested or run for too long."""
        if self._output.over_limit and self._intent is None:
            self._end("output_limit")
        if self._idleness is not None and self._idleness.is_over():
            self._idleness = None
            self._end("idle_timeout")
        elif self._idleness is not None and self._idleness.is_stalled != self._is_stalled:
            self._is_stalled = self._idleness.is_stalled
            self._ledger.say("stalled" if self._is_stalled else None)
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self._deadline = None
            self._end("timeout")

    def _resume(self) -> None:
        """Do what a keeper before us was killed at, or could not see any more."""
        if self._intent is not None:
            self._end(self._intent.kind)
        elif self._is_abandoned:
            self._end("session_ended")

    def _wait(self) -> set[int]:
        if not self._is_watching and has_exited(self.sight.fd):
            return {self.sight.fd}  # over before anything else could wake us: nothing else is needed
        self._watch()
        waiting = poll()
        command = None if self._seen_exit else self._command
        for fd in (self.sight.fd, self._held.control, self._output.wake, self._owner, command):
            if fd is not None:
                waiting.register(fd, POLLIN)
        spans = [] if self._output.next_look is None else [self._output.next_look]
        if self._rehearsal is not None:
            spans.append(max(0.0, self._rehearsal - time.monotonic()))
        if self._idleness is not None:
            spans.append(min(self._idleness.next_look, 86400.0))
        if self._deadline is not None:
            # poll() counts milliseconds in 32 bits: a month is waited for day by day.
            spans.append(min(max(0.0, self._deadline - time.monotonic()), 86400.0))
        ready = {fd for fd, _ in waiting.poll(min(spans) * 1000 if spans else None)}
        if not ready and self._rehearsal is not None and time.monotonic() >= self._rehearsal:
            self._rehearsal = None
            self.on_rest()
            self._ledger.rehearse()  # last, for a fork would close it again
        return ready

    def _obey(self, words: bytes) -> None:
        for word in words.decode("ascii", "replace").split():
            if word in ("cancel", "session_ended"):
                self._end("cancel" if word == "cancel" else "session_ended")

    def _end(self, kind: IntentKind) -> None:
        """End the whole tree, having written down why - unless the command was faster."""
        self._watch()
        if self._command is not None and has_exited(self._command):
            return
        is_new = self._intent is None
        if is_new:
            now = _now()
            write_intent(self._held.record, kind, now)
            if self._command is not None and has_exited(self._command):
                record.clear_slot(self._held.record, "intent")
                return
            self._intent = Intent(kind=kind, at=now)
        heirs = tuple(self._own_pids()) if self._role == "keeper" else ()
        ended = end_tree(self._members, self._is_foreign, self._output.look, heirs)
        self._hiding = ended.hiding
        if is_new and self._pid not in ended.told:
            # Not one signal reached the command: however it ends now, it is not our doing.
            self._intent = None
            record.clear_slot(self._held.record, "intent")

    def _members(self) -> list[tree.Member]:
        """Every living process of the task: below us, or found again if we adopted it."""
        ours = self._own_pids()
        if self._role == "keeper":
            found = tree.descendants(os.getpid(), ours, self._is_foreign)
        else:
            found = tree.remnants(self._plan.launch.id, self._held.record, self._is_foreign)
        return [member for member in found if member.pid not in ours]

    def _own_pids(self) -> frozenset[int]:
        """The keeper and its witness: they inherit the orphans of the tree."""
        witness = read_identity(self._held.record, "witness")
        return frozenset((os.getpid(), witness[0].pid if witness else os.getpid()))

    def _pids(self) -> list[int]:
        """Whose work counts: the members', and that of those whom the witness has waited for."""
        witness = read_identity(self._held.record, "witness")
        return [*(member.pid for member in self._members()), *((witness[0].pid,) if witness else ())]

    def _is_foreign(self, pid: int) -> bool:
        return tree.keeps_another_task(pid) or tree.runs_another_task(pid, self._plan.home, self._plan.launch.id)

    def settle(self, evidence: Evidence) -> Again | None:
        """Write the ending; the next attempt, if there is one."""
        if evidence.started != "no":
            self.on_end()
        settlement = plan_settlement(
            self._plan.launch,
            self._plan.files.number,
            evidence,
            self._intent,
            now=_now(),
            settled_by=self._role,
            left_running=() if evidence.started == "no" else self._left_running(),
            output=self._output.final(),
        )
        again = self._retrying(settlement) if self._retrying is not None else None
        if again is None:
            self._ledger.write(settlement, None)
            if settlement.left_running:
                self._care_for_output()
        elif not self._ledger.write(told_as_retrying(settlement, self._plan.launch), again.attempt):
            again.discard()
            return None
        return again

    def _left_running(self) -> tuple[LeftRunning, ...]:
        """Who outlived the command; and, after an intended end, whoever could not be caught."""
        found = tree.describe(self._members())
        return found or tuple(LeftRunning(pid=pid, command="[forks and exits in turn]") for pid in self._hiding)

    def _care_for_output(self) -> None:
        try:
            from outlive.keeper.aftercare import keep_cap  # noqa: PLC0415 - few tasks leave somebody behind
        except ImportError:
            return  # the installation is gone, and with it whoever could have looked after this
        keep_cap(self._output, self._plan.files.output, self._members)


def _retrying(plan: Plan) -> Callable[[Settlement], Again | None]:
    """How the next attempt is prepared; loaded now, because the installation may be gone by then."""
    from outlive.keeper import again, sleeping  # noqa: F401, PLC0415 - most tasks are tried once

    return lambda settlement: again.prepare_again(plan, settlement)


def read_intent(record_fd: int) -> Intent | None:
    """What somebody had decided about this attempt, if anything."""
    slot = record.read_slot(record_fd, "intent")
    kind = next((known for known in INTENTS if slot and slot["kind"] == known), None)
    return None if slot is None or kind is None else Intent(kind=kind, at=from_micros(int(slot["at"])))


def write_intent(record_fd: int, kind: IntentKind, now: datetime) -> None:
    """Write down why the tree is about to be ended, so that whoever settles it knows."""
    try:
        record.write_slot(record_fd, "intent", kind=kind, at=to_micros(now))
    except OSError:
        pass  # on a failing disk the ending goes on; it may then be told as a plain signal


def _now() -> datetime:
    return datetime.now(UTC)
