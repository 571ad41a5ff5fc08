"""How a keeper sees the end of its command.

There are four sights, from the best to the poorest: our own witness, which tells us; the command
itself, once our witness was killed and the kernel gave its child to us; somebody else's witness,
when we adopted the task; a stranger, when nobody related to it is left. Each has a descriptor to
poll, and says what it saw when that becomes ready.
"""

from __future__ import annotations

import os
import time

from outlive.bundle import record
from outlive.bundle.kernel import exit_status_of
from outlive.bundle.processes import Identity, has_exited, open_verified
from outlive.domain.evidence import Evidence
from outlive.domain.when import from_micros
from outlive.keeper.witness import write_exit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from outlive.domain.evidence import Started
else:
    Protocol = object

_KERNEL_TELLS_WITHIN = 5.0
_STEPS = {
    "chdir": "the directory cannot be entered",
    "fork": "no process can be made",
    "exec": "the command cannot be executed",
}


class Sight(Protocol):
    """Something to poll, and what it means when it is ready."""

    fd: int

    def look(self) -> Evidence | Sight:
        """What is to be seen now: the end, or a further sight (possibly this one) to go on with."""


class OwnWitness:
    """The witness that we forked, through the pipe it speaks into."""

    def __init__(self, voice: int, record_fd: int) -> None:
        self.fd = voice
        self._record = record_fd

    def look(self) -> Evidence | Sight:
        word = os.read(self.fd, 64)
        seen = read_evidence(self._record, "witness")
        if seen is not None:
            return seen
        if word:
            return self
        return _without_witness(self._record)


class OwnCommand:
    """The command as our own child: its witness died, and we are the subreaper above it."""

    def __init__(self, pidfd: int, pid: int, record_fd: int) -> None:
        self.fd = pidfd
        self._pid = pid
        self._record = record_fd
        self._not_ours_since = 0.0

    def reap_others(self) -> None:
        """Orphans come to us now, too; without a parent that waits for them they would stay as zombies."""
        try:
            while seen := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if seen.si_pid == self._pid:
                    return  # it is looked at through its own descriptor
                os.waitpid(seen.si_pid, os.WNOHANG)
        except ChildProcessError:
            pass

    def look(self) -> Evidence | Sight:
        try:
            seen = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:
            seen = None  # a dying witness is heard of before its children are given to us
            self._not_ours_since = self._not_ours_since or time.monotonic()
            if has_exited(self.fd) and time.monotonic() - self._not_ours_since > _KERNEL_TELLS_WITHIN:
                return Stranger(self.fd, self._record).look()  # somebody else has waited for it
            time.sleep(0.001)
        if seen is None:
            return self
        # A fork that could not become the command has already said so.
        if read_evidence(self._record, "keeper") is None:
            write_exit(self._record, self._pid, seen.si_code, seen.si_status)
        os.waitpid(self._pid, 0)
        return read_evidence(self._record, "keeper") or _vanished("keeper", "yes", "witness_killed")


class OtherWitness:
    """A witness that outlived its keeper: it will write the record, and then it is gone."""

    def __init__(self, witness: int, command: int | None, record_fd: int) -> None:
        self.fd = witness
        self._command = command
        self._record = record_fd

    def look(self) -> Evidence | Sight:
        seen = read_evidence(self._record, "witness")
        if seen is not None:
            return seen
        if self._command is None:
            return _vanished("adopter", "yes", "keeper_killed")
        return Stranger(self._command, self._record)


class Stranger:
    """A command whose keeper and witness were both killed: init reaps it, the kernel may tell."""

    def __init__(self, pidfd: int, record_fd: int) -> None:
        self.fd = pidfd
        self._record = record_fd

    def look(self) -> Evidence | Sight:
        # The kernel has the status once init has reaped the process, which takes a moment.
        until = time.monotonic() + _KERNEL_TELLS_WITHIN
        while (status := exit_status_of(self.fd)) is None and time.monotonic() < until:
            time.sleep(0.01)
        if status is None:
            return _vanished("adopter", "yes", "keeper_killed")
        if os.WIFSIGNALED(status):
            began = (record.read_slot(self._record, "process") or {}).get("started", "unknown")
            record.write_slot(self._record, "exit", signal=os.WTERMSIG(status), began=began, at=time.time_ns() // 1000)
        else:
            write_exit(self._record, 0, os.CLD_EXITED, os.WEXITSTATUS(status))
        return read_evidence(self._record, "adopter") or _vanished("adopter", "yes", "keeper_killed")


def read_evidence(record_fd: int, seen_by: str) -> Evidence | None:
    """The end as the exit record tells it; None while there is none."""
    slot = record.read_slot(record_fd, "exit")
    if slot is None:
        return None
    at = from_micros(int(slot["at"]))
    if slot.get("what") == "go":
        # Nobody was left to let it begin: that is no failure of the command's.
        return never_begun("keeper_killed")
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
    if "signal" in slot:
        started: Started = "unknown" if slot["began"] == "unknown" else "yes"
        return Evidence(kind="signalled", seen_by=seen_by, signal=int(slot["signal"]), started=started, at=at)
    return Evidence(kind="exited", seen_by=seen_by, exit_code=int(slot["code"]), at=at)


def read_identity(record_fd: int, who: str = "") -> tuple[Identity, dict[str, str]] | None:
    """The command (or, with `witness`, its witness) as the process record names it."""
    slot = record.read_slot(record_fd, "process")
    if slot is None:
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
    """The process that is, or is to become, the command; 0 if nobody has written that down."""
    found = read_identity(record_fd)
    return found[0].pid if found else 0


def _without_witness(record_fd: int) -> Evidence | Sight:
    """Our witness is dead without a word: its child, if there was one, is now ours."""
    found = read_identity(record_fd)
    if found is None:
        return never_begun()
    identity = found[0]
    pidfd = open_verified(identity)
    if pidfd is None:
        return _vanished("keeper", "unknown", "witness_killed")
    return OwnCommand(pidfd, identity.pid, record_fd)


def never_begun(cause: str = "witness_killed") -> Evidence:
    """Its witness or its keeper was killed before the command could begin; now it never will."""
    return _vanished("keeper", "no", cause)


def _vanished(seen_by: str, started: Started, cause: str) -> Evidence:
    return Evidence(kind="vanished", seen_by=seen_by, started=started, cause=cause)
