"""The ways in which a keeper sees the end of its command.

The classes are in order: the first class learns the most about the end, and the last class learns the least.

- `OwnWitness`: the witness that this keeper forked reports the end.
- `OrphanedCommand`: the keeper's own witness was killed, and the kernel made the command a child of the keeper.
- `SurvivingWitness`: the keeper took over the task, and the witness of the dead keeper reports the end.
- `ReparentedCommand`: the command is a child of a process that is neither its keeper nor its witness.

An object of these classes is called an exit watch. When its descriptor is ready, its method `look` returns the evidence
of the command's end, or the exit watch to use next.
"""

from __future__ import annotations

import os
import time

from outlive.bundle import record
from outlive.domain.tasks.evidence import EXIT_UNKNOWN, INSTALLATION_GONE, KILLED_AT_START, Evidence
from outlive.domain.timestamps import from_micros
from outlive.keeper.witness import write_exit, write_unbegun
from outlive.linux.processes import Identity, has_executed, has_exited, open_verified
from outlive.linux.syscalls import exit_status_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from outlive.domain.tasks.evidence import Started
else:
    Protocol = object

_KERNEL_TELLS_WITHIN, _A_MOMENT = 5.0, 0.001
_STEPS = {
    "chdir": "the directory cannot be entered",
    "fork": "no process can be created",
    "exec": "the command cannot be executed",
}


class ExitWatch(Protocol):
    """A way to see a command's end: a descriptor to poll, and a method that reads it."""

    fd: int

    def look(self) -> Evidence | ExitWatch:
        """Return the evidence of the command's end, or the object to wait with next.

        This object itself may be the one to wait with next.
        """


class OwnWitness:
    """The witness that this keeper forked, and the pipe through which it reports."""

    def __init__(self, voice: int, record_fd: int) -> None:
        self.fd = voice
        self._record = record_fd

    def look(self) -> Evidence | ExitWatch:
        word = os.read(self.fd, 64)
        seen = read_evidence(self._record, "witness")
        if seen is not None:
            return seen
        if word:
            return self
        return _without_witness(self._record)


class OrphanedCommand:
    """A command whose witness was killed. The command is now a child of the keeper."""

    def __init__(self, pidfd: int, pid: int, record_fd: int) -> None:
        self.fd = pidfd
        self._pid = pid
        self._record = record_fd
        self._not_ours_since = 0.0

    def wait_for_begin(self) -> bool:
        """Wait for the process to execute the command. Return False if it exits first."""
        while has_executed(self._pid) is False:
            if has_exited(self.fd):
                return has_executed(self._pid) is not False
            time.sleep(_A_MOMENT)
        confirm_begin(self._record)
        return True

    def reap_others(self) -> None:
        """Remove the ended processes that the keeper has inherited, except the command.

        An ended child process remains as a zombie until its parent waits for it.
        """
        try:
            while seen := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if seen.si_pid == self._pid:
                    return  # the command's own descriptor is ready too, and the method `look` reaps the command
                os.waitpid(seen.si_pid, os.WNOHANG)
        except ChildProcessError:
            pass

    def look(self) -> Evidence | ExitWatch:
        try:
            seen = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:
            seen = None  # the kernel closes a dying witness's pipe before it makes the command our child
            self._not_ours_since = self._not_ours_since or time.monotonic()
            if has_exited(self.fd) and time.monotonic() - self._not_ours_since > _KERNEL_TELLS_WITHIN:
                return ReparentedCommand(self.fd, self._record).look()  # another process has reaped the command
            time.sleep(0.001)
        if seen is None:
            return self
        began = _started(self._record, self._pid)
        # A child process that could not execute the command has already written the reason into the record.
        if read_evidence(self._record, "keeper") is None and began != "unknown":
            (write_exit if began == "yes" else write_unbegun)(self._record, seen.si_code, seen.si_status)
        os.waitpid(self._pid, 0)
        found = read_evidence(self._record, "keeper")
        return _vanished("keeper", began, "witness_killed") if found is None else found


class SurvivingWitness:
    """A witness that outlived its keeper. It writes the exit record before it exits."""

    def __init__(self, witness: int, command: int | None, record_fd: int) -> None:
        self.fd = witness
        self._command = command
        self._record = record_fd

    def look(self) -> Evidence | ExitWatch:
        seen = read_evidence(self._record, "witness")
        if seen is not None:
            return seen
        if self._command is None:
            return _vanished("adopter", _started(self._record), "keeper_killed")
        return ReparentedCommand(self._command, self._record)


class ReparentedCommand:
    """A command whose parent is neither its keeper nor its witness.

    The parent reaps the command. Newer kernels report the command's exit status to the keeper nevertheless.
    """

    def __init__(self, pidfd: int, record_fd: int) -> None:
        self.fd = pidfd
        self._record = record_fd
        self._was_adopted = read_identity(record_fd, "witness") is None

    def look(self) -> Evidence | ExitWatch:
        own = read_evidence(self._record, "adopter")
        if own is not None:
            return own  # a child process that could not execute the command has written this evidence
        began = _started(self._record, None if self._was_adopted else _unreaped(self._record))
        if began == "no":
            return never_begun("adopter")
        # The kernel reports the status only after the parent has reaped the process. So wait for the status.
        # If the command may not have been executed, the status of the process is not the command's, so do not wait.
        is_wanted = self._was_adopted or began == "yes"
        ended, until = time.time_ns() // 1000, time.monotonic() + (_KERNEL_TELLS_WITHIN if is_wanted else 0)
        while (status := exit_status_of(self.fd)) is None and time.monotonic() < until:
            time.sleep(0.01)
        if status is None and self._was_adopted:
            detail = "only the parent of the process knows its exit code: read the output to see how it ended"
            return Evidence(kind="exited", seen_by="adopter", cause=EXIT_UNKNOWN, detail=detail, at=from_micros(ended))
        if status is None or began != "yes":
            return _vanished("adopter", began, "keeper_killed")
        at = time.time_ns() // 1000
        if os.WIFSIGNALED(status):
            record.write_slot(self._record, "exit", signal=os.WTERMSIG(status), began="yes", at=at)
        else:
            record.write_slot(self._record, "exit", code=os.WEXITSTATUS(status), at=at)
        return read_evidence(self._record, "adopter") or _vanished("adopter", "yes", "keeper_killed")


def read_evidence(record_fd: int, seen_by: str) -> Evidence | None:
    """Return how the command ended, read from the exit record of the attempt.

    Returns None while the record is empty. `seen_by` names the process that saw the end.
    """
    slot = record.read_slot(record_fd, "exit")
    if slot is None:
        return None
    if slot.get("what") == "wake":
        return Evidence(
            kind="not_started",
            seen_by="keeper",
            started="no",
            cause=INSTALLATION_GONE,
            detail="Outlive was removed or replaced while the task waited, so it never ran; `outlive retry` starts it",
        )
    at = from_micros(int(slot["at"]))
    if slot.get("what") == "go":
        # The keeper or the child process was killed before the command began. So the command itself did not fail.
        return never_begun(seen_by)
    if "error" in slot:
        detail = f"{_STEPS[slot['what']]}: {os.strerror(int(slot['error']))}"
        return Evidence(
            kind="not_started",
            seen_by=seen_by,
            started="no",
            cause=slot["what"],
            detail=detail,
            at=at,
        )
    if slot.get("began") == "unknown":
        return _vanished(seen_by, "unknown", "keeper_killed")  # an earlier version of Outlive wrote this record
    if "signal" in slot:
        return Evidence(kind="signalled", seen_by=seen_by, signal=int(slot["signal"]), at=at)
    return Evidence(kind="exited", seen_by=seen_by, exit_code=int(slot["code"]), at=at)


def read_identity(record_fd: int, who: str = "") -> tuple[Identity, dict[str, str]] | None:
    """Return the identity of a recorded process, and all that is recorded about it.

    `who` is "witness" for the witness, and empty for the command. Returns None if the process is not recorded. If
    Outlive did not start the command, no witness is recorded.
    """
    slot = record.read_slot(record_fd, "process")
    if slot is None or (who and who not in slot):
        return None
    identity = Identity(
        pid=int(slot[who or "pid"]),
        inode=int(slot[f"{who}_inode" if who else "inode"]),
        start=int(slot[f"{who}_start" if who else "start"]),
        boot=slot["boot"],
        namespace=int(slot["namespace"]),
    )
    return identity, slot


def command_of(record_fd: int) -> int:
    """Return the pid of the command's process, or 0 if the pid is unknown."""
    found = read_identity(record_fd)
    return found[0].pid if found else 0


def confirm_begin(record_fd: int) -> None:
    """Record that the command was executed, if its witness died before recording this.

    Records nothing unless the kernel shows that the command was executed.
    """
    found = read_identity(record_fd)
    if found is None or found[1]["started"] == "yes":
        return
    pidfd = open_verified(found[0])
    if pidfd is None:
        return
    try:
        if has_executed(found[0].pid) is True:
            record.write_slot(record_fd, "process", durable=False, **{**found[1], "started": "yes"})
    finally:
        os.close(pidfd)


def _started(record_fd: int, child: int | None = None) -> Started:
    """Return whether the command was executed: `yes`, `no` or `unknown`.

    `child` is the pid of the command's process. This process must not be reaped yet.
    """
    found = read_identity(record_fd)
    if found is not None and found[1]["started"] == "yes":
        return "yes"
    told = None if child is None else has_executed(child)
    return "unknown" if told is None else "yes" if told else "no"


def _unreaped(record_fd: int) -> int | None:
    """Return the pid of the command's process, alive or a zombie.

    Returns None if the process was reaped.
    """
    found = read_identity(record_fd)
    pidfd = None if found is None else open_verified(found[0])
    if found is None or pidfd is None:
        return None
    os.close(pidfd)
    return found[0].pid


def _without_witness(record_fd: int) -> Evidence | ExitWatch:
    """Return how to go on after the keeper's witness was killed.

    Returns the evidence of the command's end, or the object with which the keeper waits for the end from now on.
    """
    found = read_identity(record_fd)
    if found is None:
        return never_begun()
    identity = found[0]
    pidfd = open_verified(identity)
    if pidfd is None:
        return _vanished("keeper", "unknown", "witness_killed")
    return OrphanedCommand(pidfd, identity.pid, record_fd)


def never_begun(seen_by: str = "keeper", cause: str = KILLED_AT_START) -> Evidence:
    """Return the evidence that a command was never executed and never will be."""
    return _vanished(seen_by, "no", cause)


def _vanished(seen_by: str, started: Started, cause: str) -> Evidence:
    return Evidence(kind="vanished", seen_by=seen_by, started=started, cause=cause)
