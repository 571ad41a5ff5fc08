"""Whether a session lives: a fact about its client's process, never a guess from silence."""

from __future__ import annotations

import os

from outlive.bundle.kernel import boot_id, pid_namespace
from outlive.bundle.processes import Identity, has_exited, identify, open_verified
from outlive.domain.errors import UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.domain.session import Session

_GRACE_S = 60.0


def grace_s() -> float:
    """How long something must have been out of sight, at two looks, before it is called lost."""
    try:
        return float(os.environ.get("OUTLIVE_GRACE_S", _GRACE_S))
    except ValueError:
        return _GRACE_S


def mark_of(pid: int) -> str:
    """A process as a session's record names it."""
    try:
        found = identify(pid)
    except (OSError, OverflowError) as error:
        raise UserError(f"there is no process {pid} to be seen", "give the client's own") from error
    return f"{found.pid} {found.inode} {found.start} {found.boot} {found.namespace}"


def is_over(session: Session) -> bool:
    """Whether a session has ended, or its process has.

    Of one that nothing is known of, or whose process is none that we could see, it is not said.
    """
    return session.ended_at is not None or (session.process is not None and is_gone(session.process))


def is_gone(process: str) -> bool:
    """Whether a process, as a session's record names it, has ended; not if it is none that we could see."""
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


def process_of(session: Session) -> int | None:
    """A pidfd of the session's process, while that lives."""
    return None if session.process is None else open_verified(_identity(session.process))


def is_judged(session: Session) -> bool:
    """Whether anything is known by which it could be seen to be over."""
    return session.process is not None or session.ended_at is not None


def _identity(process: str) -> Identity:
    pid, inode, start, boot, namespace = process.split()
    return Identity(pid=int(pid), inode=int(inode), start=int(start), boot=boot, namespace=int(namespace))
