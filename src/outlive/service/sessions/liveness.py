"""The check whether a session is alive.

A session is over if the ledger has its end, or if its client's process has exited. The time of the session's last
activity does not matter.
"""

from __future__ import annotations

import os

from outlive.domain.errors import UserError
from outlive.linux.processes import Identity, has_exited, identify, open_verified
from outlive.linux.syscalls import boot_id, pid_namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.domain.sessions.session import Session

_GRACE_S = 60.0


def grace_s() -> float:
    """Return the number of seconds after which a command that was not found is lost.

    This is a background command that a client runs itself.
    """
    try:
        return float(os.environ.get("OUTLIVE_GRACE_S", _GRACE_S))
    except ValueError:
        return _GRACE_S


def mark_of(pid: int) -> str:
    """Return the string by which a session's record identifies a process.

    Raises `UserError` if there is no such process.
    """
    try:
        found = identify(pid)
    except (OSError, OverflowError) as error:
        raise UserError(f"there is no process {pid}", "give the process id of the client") from error
    return f"{found.pid} {found.inode} {found.start} {found.boot} {found.namespace}"


def is_over(session: Session) -> bool:
    """Return whether a session is known to have ended.

    It has also ended if its client's process is known to have ended.
    """
    return session.ended_at is not None or (session.process is not None and is_gone(session.process))


def is_gone(process: str) -> bool:
    """Return whether a recorded process has ended.

    Returns False if this process cannot see the recorded process.
    """
    identity = _identity(process)
    if identity.boot != boot_id():
        return True
    if identity.namespace != pid_namespace():
        return False
    pidfd = open_verified(identity)
    if pidfd is None:
        return True
    try:
        return has_exited(pidfd)
    finally:
        os.close(pidfd)


def is_of_another_boot(process: str) -> bool:
    """Return whether a recorded process was started before the machine last booted."""
    return _identity(process).boot != boot_id()


def process_of(session: Session) -> int | None:
    """Return a pidfd of the session's process.

    Returns None if the process has ended or is unknown.
    """
    return None if session.process is None else open_verified(_identity(session.process))


def is_judged(session: Session) -> bool:
    """Return whether Outlive can find out that a session has ended.

    This is possible if the ledger contains the session's end or the session's process. Outlive can check whether the
    process still runs.
    """
    return session.process is not None or session.ended_at is not None


def _identity(process: str) -> Identity:
    pid, inode, start, boot, namespace = process.split()
    return Identity(pid=int(pid), inode=int(inode), start=int(start), boot=boot, namespace=int(namespace))
