"""The check of a running agent for reached limits, repeated calls and silence.

The client writes its output directly into the output file. This module reads that file, as every later reader of the
output does.
"""

from __future__ import annotations

import os
import time

from outlive.agents.find_adapter import adapter_of, reader_of
from outlive.agents.read_attempt import CHUNK, ending_words
from outlive.bundle.agent_files import read_start, trace_decision, trace_ending, write_answer, write_progress
from outlive.domain.tasks.evidence import LINGERED
from outlive.linux.processes import stat_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from outlive.agents.adapter import Patience
    from outlive.agents.stream import StreamReader
    from outlive.domain.agents.result import AgentResult
    from outlive.domain.tasks.evidence import Evidence, IntentKind
    from outlive.domain.tasks.settlement import Settlement
    from outlive.keeper.plan import Plan

_CHECKS_PER_LIMIT = 8
_UNSTABLE_IDLE_S = 120.0
_PROGRESS_EVERY_S = 1.0
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_SESSION, _START = 3, 19  # indexes into the fields that follow the process name in /proc/PID/stat


class AgentWatch:
    """The checks that decide whether a running agent's attempt must be ended."""

    def __init__(self, plan: Plan, pids: Callable[[], Iterable[int]], command: int) -> None:
        """Open the output file, and begin to measure the agent's silence.

        `pids` returns the pids of the task's living processes. `command` is the pid of the client.
        """
        request, start = plan.launch.agent, read_start(plan.files)
        assert request is not None  # noqa: S101 - this class is used only for agent tasks, which have a request
        self._plan, self._request = plan, request
        self._reader: StreamReader | None = None if start is None else reader_of(request, start)
        self._patience = self._find_patience(plan)
        self._pids = pids
        self._command = command
        self._output = os.open(plan.files.output, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._offset = 0
        self._progress = 0
        self._progressed_at = self._checked_at = time.monotonic()
        self._progressed_tick = time.clock_gettime(time.CLOCK_BOOTTIME)
        self._recorded, self._recorded_at = 0, 0.0
        self.is_stalled = False
        """Whether, at the last check, the agent had been silent for at least half of the allowed time."""

    @staticmethod
    def _find_patience(plan: Plan) -> Patience:
        request, start = plan.launch.agent, read_start(plan.files)
        assert request is not None  # noqa: S101 - this class is used only for agent tasks, which have a request
        client = request.candidates[0].client if start is None else start.client
        patience = adapter_of(request, client).patience
        given = plan.launch.idle_timeout
        if given is not None:
            limit = given.total_seconds()
            return patience.but(first_s=limit, idle_s=limit, linger_s=min(limit, patience.linger_s))
        if start is not None and request.candidate(start.client, start.model).is_unstable:
            return patience.but(
                first_s=min(patience.first_s, _UNSTABLE_IDLE_S), idle_s=min(patience.idle_s, _UNSTABLE_IDLE_S)
            )
        return patience

    @property
    def next_look(self) -> float:
        """Seconds until the next check for silence, or until the next progress report."""
        now = time.monotonic()
        check = self._checked_at + self._limit_s() / _CHECKS_PER_LIMIT
        record = self._recorded_at + _PROGRESS_EVERY_S if self._recorded != self._progress else check
        return max(0.0, min(check, record) - now)

    def read(self) -> None:
        """Read the output that the client has printed since the last call."""
        if self._reader is None:
            return
        while piece := os.pread(self._output, CHUNK, self._offset):
            self._offset += len(piece)
            self._reader.feed(piece)
        if self._reader.progress != self._progress:
            self._progress = self._reader.progress
            self._progressed_at = time.monotonic()
            self._progressed_tick = time.clock_gettime(time.CLOCK_BOOTTIME)
            self.is_stalled = False
            self._record_progress()

    def _record_progress(self) -> None:
        """Write the present result into the attempt's file `progress`.

        Lists and hand-offs read this file, because reading the whole output would take too long.
        """
        now = time.monotonic()
        if self._reader is None or self._recorded == self._progress or now < self._recorded_at + _PROGRESS_EVERY_S:
            return
        self._recorded, self._recorded_at = self._progress, now
        write_progress(self._plan.files, self._reader.result())

    def reason_to_end(self) -> tuple[IntentKind, str] | None:
        """Return the kind of reason for ending the agent now, and an explanation.

        Returns None if the agent may go on.
        """
        if self._reader is None:
            return None
        self._record_progress()
        reached = None if self._reader.has_ended else self._reader.limit_reached()
        if reached is None:
            reached = self._silence()
        if reached is not None:
            trace_decision(self._plan.files.bundle, self._request, "end", reason=reached[0], why=reached[1])
        return reached

    def _silence(self) -> tuple[IntentKind, str] | None:
        """Return why the agent must be ended because of its silence, or None.

        The silence is checked only a few times before its limit is reached. Between two checks, this function returns
        None.
        """
        reader, now, limit = self._reader, time.monotonic(), self._limit_s()
        if reader is None or now < self._checked_at + limit / _CHECKS_PER_LIMIT:
            return None
        self.read()
        self._checked_at, limit = now, self._limit_s()
        silent_s = now - self._progressed_at
        if silent_s < limit / 2 or (not reader.has_ended and self._tool_runs()):
            return None
        self.is_stalled = not reader.has_ended
        if silent_s < limit:
            return None
        if reader.has_ended:
            return LINGERED, f"its client reported the end, but did not exit within {limit:.0f} s"
        what = "its client tried again and again" if reader.is_retrying else "it made no progress"
        return "idle_timeout", f"{what} for {limit:.0f} s"

    def _limit_s(self) -> float:
        """Return how many seconds the agent may be silent in its present state."""
        if self._reader is None:
            return self._patience.tool_s
        if self._reader.has_ended:
            return self._patience.linger_s
        if self._reader.open_calls:
            return self._patience.tool_s
        return self._patience.idle_s if self._progress else self._patience.first_s

    def _tool_runs(self) -> bool:
        """Return whether the client runs a tool without having reported this tool.

        Returns False if the agent has been silent for longer than the limit for tools. All clients start the shell tool
        in a new Unix session. So a process counts as a tool if it is in another Unix session than the client, and was
        started after the agent's last progress.
        """
        if time.monotonic() - self._progressed_at >= self._patience.tool_s:
            return False
        own = stat_fields(self._command)
        for pid in self._pids():
            fields = stat_fields(pid)
            if fields is None or own is None or fields[_SESSION] == own[_SESSION]:
                continue
            if int(fields[_START]) / _TICKS_PER_S >= self._progressed_tick - 1:
                return True
        return False

    def finish(self, evidence: Evidence) -> AgentResult | None:
        """Read the rest of the output, store the final answer, and return the result.

        The answer is written to its own file. The keeper calls this after the client has ended.
        """
        self.read()
        if self._reader is None:
            return None
        self._reader.finish()
        write_answer(self._plan.files, self._reader.answer)
        return self._reader.result(ending_words(evidence))

    def trace_ending(self, settlement: Settlement) -> None:
        """Write to the session's debugging log how the attempt ended."""
        trace_ending(self._plan.files.bundle, self._request, settlement)
