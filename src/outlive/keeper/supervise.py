"""The supervision of a running attempt: one poll() loop until its settlement."""

from __future__ import annotations

import os
import time
from select import POLLIN, poll

from outlive.bundle import record
from outlive.domain.tasks.evidence import Evidence, Intent, refused
from outlive.domain.tasks.settlement import plan_settlement, told_as_retrying
from outlive.domain.tasks.task import LeftRunning
from outlive.domain.timestamps import UTC, datetime
from outlive.keeper import foreground_owner, process_tree
from outlive.keeper.exit_watch import ExitWatch, OrphanedCommand, ReparentedCommand, read_identity
from outlive.keeper.intent import read_intent, write_intent
from outlive.keeper.kill_tree import end_tree
from outlive.keeper.output.cap import OutputCap
from outlive.keeper.settle import SettlementWriter
from outlive.linux.processes import has_exited, open_verified
from outlive.linux.syscalls import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive.bundle.attempt import HeldFiles
    from outlive.domain.tasks.evidence import IntentKind
    from outlive.domain.tasks.settlement import Settlement
    from outlive.keeper.agents.watch import AgentWatch
    from outlive.keeper.idle_timeout import IdleTimeout
    from outlive.keeper.next_attempt import NextAttempt
    from outlive.keeper.output.copy import OutputCopy
    from outlive.keeper.plan import Plan

_REHEARSES_AFTER = 0.05


class Supervision:
    """A running attempt, supervised by its own keeper or by one that took it over."""

    def __init__(
        self, plan: Plan, held: HeldFiles, sight: ExitWatch, role: str, on_settled: Callable[[], None] = lambda: None
    ) -> None:
        self._plan = plan
        self._held = held
        self.sight = sight
        """The object with which the keeper waits for the command's end at present."""
        self._role = role
        self._output = OutputCap(
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
            self._owner, self._is_abandoned = foreground_owner.find(held.record)
        self._agent = self._watch_agent() if plan.launch.agent is not None else None
        has_idle_timeout = plan.launch.idle_timeout is not None and self._agent is None
        self._idleness = self._watch_idleness() if has_idle_timeout else None
        may_retry = plan.retries_left > 0 or (self._agent is not None and plan.files.number > 1)
        self._retrying = _retrying(plan, held) if role == "keeper" and may_retry else None
        self._ledger = SettlementWriter(plan, held, on_settled)
        self._is_unkept = False
        self._detail: str | None = None
        self._seen_exit = self._is_watching = self._is_stalled = False
        self.has_failed = False
        """Whether the attempt was settled without success, and is not tried again."""
        self._hiding: frozenset[int] = frozenset()
        self._rehearsal: float | None = time.monotonic() + _REHEARSES_AFTER
        self.copying: OutputCopy | None = None
        """The copy of the output of a process that Outlive did not start."""
        self.on_rest: Callable[[], None] = lambda: None
        """Called once, when the command has run for a short time and the keeper is idle."""
        self.on_end: Callable[[], None] = lambda: None
        """Called once, when the command has ended, before any waiter is notified."""

    def _find_deadline(self, started_ns: int) -> float | None:
        """Return when the task's timeout expires, or None if the task has no timeout.

        The time is measured with a clock that stops while the machine sleeps. `started_ns` is the start of the command.
        """
        timeout = self._plan.launch.timeout
        return None if timeout is None else started_ns / 1e9 + timeout.total_seconds()

    def _watch_idleness(self) -> IdleTimeout:
        from outlive.keeper.idle_timeout import IdleTimeout  # noqa: PLC0415 - only tasks with an idle timeout need this import

        limit = self._plan.launch.idle_timeout
        assert limit is not None  # noqa: S101 - tells the type checker that there is a limit
        return IdleTimeout(limit, self._held.output, self._pids)

    def _watch_agent(self) -> AgentWatch:
        from outlive.keeper.agents import end_worktree  # noqa: F401, PLC0415 - `settle` imports this again, perhaps after the installation was deleted
        from outlive.keeper.agents.watch import AgentWatch  # noqa: PLC0415 - only agent tasks need this import

        return AgentWatch(self._plan, lambda: [member.pid for member in self._members()], self._pid)

    def see_through(self, seen: Evidence | ExitWatch) -> NextAttempt | None:
        """Supervise and settle the attempt. Return the next attempt, if there is one.

        `seen` is the evidence of the command's end, or the object with which to wait for the end.
        """
        self._resume()
        while not isinstance(seen, Evidence):
            self.switch_to(seen)
            ready = self._wait()
            if self.sight.fd in ready:
                seen = self.sight.look()
                if isinstance(seen, OrphanedCommand):
                    signal.signal(signal.SIGCHLD, lambda *_: None)  # so that each orphan that ends wakes poll()
                    seen.reap_others()
                continue
            if self._command in ready:
                self._seen_exit = True
                self._ledger.prepare()
            self._notice_output(ready)
            if self._held.control in ready:
                self._handle_messages(os.read(self._held.control, 4096))
            if self._owner in ready:
                self._owner = None
                self._end("session_ended")
            self._check_limits()
        return self.settle(seen)

    def switch_to(self, sight: ExitWatch) -> None:
        """Wait for the command's end with `sight` from now on.

        If the command is no longer a child of its witness or keeper, no process answers its observed calls. So the
        record of the end then mentions that the calls may have failed.
        """
        self.sight = sight
        if isinstance(sight, ReparentedCommand) and not self._is_unkept:
            from outlive.keeper.observation.unanswered_calls import note_unanswered  # noqa: PLC0415 - a keeper that took over the task has already loaded the imported module

            self._is_unkept, self._detail = True, note_unanswered(self._plan.files)

    def _notice_output(self, ready: set[int]) -> None:
        """Copy new output, and check the size limit of the output.

        `ready` are the descriptors that have woken the keeper.
        """
        if self.copying is not None and self.copying.wake in ready:
            self.copying.copy()
        if self._output.wake in ready:
            self._output.notice_write()
            if isinstance(self.sight, OrphanedCommand):
                self.sight.reap_others()
        elif self._output.next_look is not None and not ready:
            self._output.look()
            if self._agent is not None:
                self._agent.read()

    def _watch(self) -> None:
        """Open the descriptors that wake the keeper, if they are not open yet."""
        if not self._is_watching:
            self._is_watching = True
            found = read_identity(self._held.record)
            self._command = open_verified(found[0]) if found else None
            self._output.begin()

    def _check_limits(self) -> None:
        """End the task if it has written too much, or was idle or running for too long."""
        if self._output.over_limit and self._intent is None:
            self._end("output_limit")
        if self._idleness is not None and self._idleness.is_over():
            self._idleness = None
            self._end("idle_timeout")
        elif self._idleness is not None and self._idleness.is_stalled != self._is_stalled:
            self._is_stalled = self._idleness.is_stalled
            self._ledger.say("stalled" if self._is_stalled else None)
        if self._agent is not None:
            self._check_agent(self._agent)
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self._deadline = None
            self._end("timeout")

    def _check_agent(self, agent: AgentWatch) -> None:
        """End an agent that has reached a limit, repeats itself or is silent."""
        reached = agent.reason_to_end() if self._intent is None else None
        if reached is not None:
            self._end(reached[0])
            if self._intent is not None:
                self._detail = reached[1]
        elif agent.is_stalled != self._is_stalled:
            self._is_stalled = agent.is_stalled
            self._ledger.say("stalled" if self._is_stalled else None)

    def _resume(self) -> None:
        """End an adopted task if its end had begun, or if its owner has exited.

        The owner is the process for which a foreground task runs.
        """
        if self._intent is not None:
            self._end(self._intent.kind)
        elif self._is_abandoned:
            self._end("session_ended")

    def _wait(self) -> set[int]:
        if not self._is_watching and has_exited(self.sight.fd):
            return {self.sight.fd}  # the command has ended already, so no other descriptor is needed
        self._watch()
        waiting = poll()
        command = None if self._seen_exit else self._command
        copying = None if self.copying is None else self.copying.wake
        for fd in (self.sight.fd, self._held.control, self._output.wake, self._owner, command, copying):
            if fd is not None:
                waiting.register(fd, POLLIN)
        spans = [] if self._output.next_look is None else [self._output.next_look]
        if self._rehearsal is not None:
            spans.append(max(0.0, self._rehearsal - time.monotonic()))
        if self._idleness is not None:
            spans.append(min(self._idleness.next_look, 86400.0))
        if self._agent is not None and self._intent is None:
            spans.append(min(self._agent.next_look, 86400.0))
        if self._deadline is not None:
            # poll() counts milliseconds in 32 bits, which is less than a month. So wait for at most one day at a time.
            spans.append(min(max(0.0, self._deadline - time.monotonic()), 86400.0))
        ready = {fd for fd, _ in waiting.poll(min(spans) * 1000 if spans else None)}
        if not ready and self._rehearsal is not None and time.monotonic() >= self._rehearsal:
            self._rehearsal = None
            self.on_rest()
            self._ledger.rehearse()  # after `on_rest`, because a fork in `on_rest` would close the ledger
        return ready

    def _handle_messages(self, words: bytes) -> None:
        for word in words.decode("ascii", "replace").split():
            if word in ("cancel", "session_ended"):
                self._end("cancel" if word == "cancel" else "session_ended")

    def _end(self, kind: IntentKind) -> None:
        """Record the reason, then end all processes of the task.

        Does nothing if the command has already ended.
        """
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
            # No signal reached the command, so Outlive has not ended it.
            self._intent = None
            record.clear_slot(self._held.record, "intent")

    def _members(self) -> list[process_tree.Member]:
        """Return the task's living processes.

        A keeper that took over the task is not an ancestor of these processes, so it must search for them.
        """
        ours = self._own_pids()
        if self._role == "keeper":
            found = process_tree.descendants(os.getpid(), ours, self._is_foreign)
        else:
            found = process_tree.remnants(self._plan.launch.id, self._held.record, self._is_foreign)
        return [member for member in found if member.pid not in ours]

    def _own_pids(self) -> frozenset[int]:
        """Return the pids of the keeper and its witness, which inherit the task's orphans."""
        witness = read_identity(self._held.record, "witness")
        return frozenset((os.getpid(), witness[0].pid if witness else os.getpid()))

    def _pids(self) -> list[int]:
        """Return the pids of the task's processes and of the witness.

        The processor time of the witness includes that of the processes that it has reaped.
        """
        witness = read_identity(self._held.record, "witness")
        return [*(member.pid for member in self._members()), *((witness[0].pid,) if witness else ())]

    def _is_foreign(self, pid: int) -> bool:
        return process_tree.keeps_another_task(pid) or process_tree.runs_another_task(
            pid, self._plan.home, self._plan.launch.id
        )

    def settle(self, evidence: Evidence) -> NextAttempt | None:
        """Settle the attempt. Return the next attempt, or None if there is none."""
        if evidence.started != "no":
            self.on_end()
            evidence = evidence.but(detail=evidence.detail or self._detail)
        elif self._intent is not None:
            evidence = refused(self._intent, evidence.seen_by)  # Outlive killed the child process before its exec
        if self.copying is not None:
            self.copying.copy()
        settlement = plan_settlement(
            self._plan.launch,
            self._plan.files.number,
            evidence,
            self._intent,
            now=_now(),
            settled_by=self._role,
            left_running=() if evidence.started == "no" else self._left_running(),
            output=self._output.final(),
            agent=None if self._agent is None or evidence.started == "no" else self._agent.finish(evidence),
        )
        if self._agent is not None:
            self._agent.trace_ending(settlement)
        again = self._retrying(settlement) if self._retrying is not None else None
        if again is None and self._agent is not None:
            from outlive.keeper.agents.end_worktree import end_worktree  # noqa: PLC0415 - only agent tasks need this import

            settlement = end_worktree(self._plan, settlement)
        if again is None:
            self._ledger.write(settlement, None)
            self.has_failed = settlement.verdict.state != "succeeded"
            if settlement.left_running:
                self._care_for_output()
            return None
        if self._agent is not None and settlement.left_running:
            # Processes that an agent's client left running may still work in the session that the next attempt
            # continues.
            end_tree(self._members, self._is_foreign, self._output.look)
            settlement = settlement.but(left_running=self._left_running())
        if not self._ledger.write(told_as_retrying(settlement, self._plan.launch), again.attempt):
            again.discard()
            return None
        return again

    def _left_running(self) -> tuple[LeftRunning, ...]:
        """Return the processes of the task that are still alive after its command.

        Processes that evaded the signals are included.
        """
        found = process_tree.describe(self._members())
        return found or tuple(LeftRunning(pid=pid, command="[forks and exits in turn]") for pid in self._hiding)

    def _care_for_output(self) -> None:
        try:
            from outlive.keeper.output.leftover import keep_cap  # noqa: PLC0415 - only tasks that leave processes behind need this import
        except ImportError:
            return  # the installation was deleted, so the size limit of the output cannot be enforced any more
        keep_cap(self._output, self._plan.files.output, self._members)


def _retrying(plan: Plan, held: HeldFiles) -> Callable[[Settlement], NextAttempt | None]:
    """Copy Outlive's code for a retry. Return the function that prepares the retry.

    The copy is needed because the installation may be deleted before the retry.
    """
    from outlive.code_copy import carry  # noqa: PLC0415 - only retried tasks need this import
    from outlive.keeper import hibernate  # noqa: F401, PLC0415
    from outlive.keeper import next_attempt as again  # noqa: PLC0415

    carry(plan.home.path)
    return lambda settlement: again.prepare_next_attempt(plan, held, settlement)


def _now() -> datetime:
    return datetime.now(UTC)
