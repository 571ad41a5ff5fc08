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
    if session.ended_at is not None:
        return True
    identity = _identity(session)
    if identity is None:
        return False
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
    identity = _identity(session)
    return None if identity is None else open_verified(identity)


def is_judged(session: Session) -> bool:
    """Whether anything is known by which it could be seen to be over."""
    return session.process is not None or session.ended_at is not None


def _identity(session: Session) -> Identity | None:
    if session.process is None:
        return None
    pid, inode, start, boot, namespace = session.process.split()
    return Identity(pid=int(pid), inode=int(inode), start=int(start), boot=boot, namespace=int(namespace))
