"""The processes of a task: found by descent, and told from those of other tasks."""

from __future__ import annotations

import os

from outlive.bundle.kernel import read_proc
from outlive.bundle.processes import (
    KEEPER_NAME,
    WITNESS_NAME,
    command_line,
    has_badge,
    name_of,
    open_verified,
    opened_by,
    stat_fields,
)
from outlive.bundle.record import open_record
from outlive.domain.task import LeftRunning
from outlive.domain.value import Value
from outlive.keeper.sight import read_identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from outlive.bundle.home import Home

_MOST_LOOKS = 8
_DEAD = (b"Z", b"X")


class Member(Value):
    """One process of a tree, told apart from whoever gets its number next."""

    pid: int
    start: int
    inode: int


def descendants(
    root: int, own: frozenset[int] = frozenset(), is_foreign: Callable[[int], bool] | None = None
) -> list[Member]:
    """Living descendants of a process, nearest first; zombies have nothing left to end.

    Another task that was launched from inside this one has a life of its own: its keeper and
    witness are only our descendants because our witness, as subreaper, inherited them. `own` are
    the processes of that kind which are ours; `is_foreign` may know of further ones that are not.
    """
    is_foreign = is_foreign or keeps_another_task
    found: dict[int, None] = {}
    # Whoever loses its parent while we look below that moves up, to `root` or to one of `own`: they
    # inherit orphans. So it is looked again until what is directly below them stays the same.
    heirs = frozenset((root, *own))
    nearest = {heir: children(heir) for heir in heirs}
    for _ in range(_MOST_LOOKS):
        layer = nearest[root]
        while layer:
            layer = [child for child in layer if child not in found and _is_ours(child, own, is_foreign)]
            found.update(dict.fromkeys(layer))
            layer = [child for parent in layer for child in (nearest.get(parent) or children(parent))]
        before, nearest = nearest, {heir: children(heir) for heir in heirs}
        if nearest == before:
            break
        for pid in own:
            found.pop(pid, None)  # below them things have changed
    return [member for pid in found if (member := look(pid))]


def _is_ours(pid: int, own: frozenset[int], is_foreign: Callable[[int], bool]) -> bool:
    """Whether to look at a process and below it: not if it is another task's, or dead with all its threads."""
    if pid in own:
        return True
    fields = stat_fields(pid)
    if fields is not None and fields[0] in _DEAD and fields[17] == b"1":
        return False
    return not is_foreign(pid)


def heirs_children(heirs: Iterable[int], is_foreign: Callable[[int], bool]) -> frozenset[int]:
    """Whoever is directly below those that inherit orphans, dead or alive, at this very moment."""
    return frozenset(child for heir in heirs for child in children(heir) if not is_foreign(child))


def keeps_another_task(pid: int) -> bool:
    """Whether this is a keeper or a witness, or makes some. The name is cheap to forge, the open record is not.

    A keeper that falls asleep or wakes has another name for a moment, and the record all the time. One that
    waits for its next task has no record, and a badge instead, as has the spawner that it waits for.
    """
    is_named_so = name_of(pid) in (KEEPER_NAME, WITNESS_NAME)
    try:
        opened = opened_by(pid)
    except OSError:
        return is_named_so
    # With nothing open it is on its way out, and will be gone before anybody could mind.
    if not opened:
        return is_named_so
    return has_badge(opened) or any(
        "/tasks/" in path and "/attempts/" in path and path.endswith("/record") for path in opened
    )


def runs_another_task(pid: int, home: Home, task: str) -> bool:
    """Whether this is the command of another task, whose keeper and witness were both killed.

    Its environment says whose it is, and that task's record must name it: the first alone is
    cheap to forge.
    """
    for word in _environment(pid):
        other = word.removeprefix(b"OUTLIVE_TASK=").decode("ascii", "replace")
        if word.startswith(b"OUTLIVE_TASK=") and other.isalnum() and other != task:
            return _is_named_by_record(pid, home.bundle(other))
    return False


def _is_named_by_record(pid: int, bundle: str) -> bool:
    try:
        newest = max(int(name) for name in os.listdir(bundle + "/attempts") if name.isdigit())
        record_fd = open_record(f"{bundle}/attempts/{newest}/record")
    except (OSError, ValueError):
        return False
    try:
        named = read_identity(record_fd)
        pidfd = open_verified(named[0]) if named and named[0].pid == pid else None
    finally:
        os.close(record_fd)
    if pidfd is None:
        return False
    os.close(pidfd)
    return True


def _environment(pid: int) -> list[bytes]:
    """What a process was started with; empty if we may not know."""
    try:
        return read_proc(f"/proc/{pid}/environ").split(b"\0")
    except OSError:
        return []


def with_cookie(cookie: bytes) -> list[Member]:
    """Living processes that carry a setting in their environment.

    The way to find a task's orphans once its keeper and witness, whose descendants they were,
    are both gone. A program that cleared its environment is not found this way.
    """
    found = []
    for pid in _all_pids():
        member = None if name_of(pid) in (KEEPER_NAME, WITNESS_NAME) else look(pid)
        if member and cookie in _environment(pid):
            found.append(member)
    return found


def remnants(task: str, record_fd: int | None, is_foreign: Callable[[int], bool] | None = None) -> list[Member]:
    """What can still be found of a task by somebody who is not its ancestor."""
    found: dict[int, Member] = {}
    for who in ("witness", ""):
        identity = None if record_fd is None else read_identity(record_fd, who)
        pidfd = open_verified(identity[0]) if identity else None
        if identity is None or pidfd is None:
            continue
        os.close(pidfd)
        own = frozenset((identity[0].pid,))
        found.update((member.pid, member) for member in descendants(identity[0].pid, own, is_foreign))
        if not who and (command := look(identity[0].pid)):
            found[command.pid] = command
    found.update((member.pid, member) for member in with_cookie(f"OUTLIVE_TASK={task}".encode("ascii")))
    return list(found.values())


def describe(members: Iterable[Member]) -> tuple[LeftRunning, ...]:
    """The processes by number and name, for a person to recognise; who has ended meanwhile is left out."""
    named = [(member, command_line(member.pid)[:200]) for member in members]
    return tuple(LeftRunning(pid=member.pid, command=name) for member, name in named if look(member.pid) == member)


def children(pid: int) -> list[int]:
    """The children of a process, dead or alive."""
    for _ in range(_MOST_LOOKS):
        try:
            return [
                int(child)
                for thread in os.listdir(f"/proc/{pid}/task")
                for child in read_proc(f"/proc/{pid}/task/{thread}/children").split()
            ]
        except FileNotFoundError:
            if not os.path.exists("/proc/thread-self/children"):
                break
            # A thread is gone, and its children are another one's now; or the process is.
            if not os.path.exists(f"/proc/{pid}"):
                return []
        except OSError:
            return []
    # A kernel without this file, or threads that come and go too fast: then ask every process for its parent.
    return [child for child in _all_pids() if (stat_fields(child) or [b"", b""])[1] == b"%d" % pid]


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def look(pid: int) -> Member | None:
    """A living process as a member; None if it is dead or dying."""
    fields = stat_fields(pid)
    if fields is None or fields[0] in _DEAD:
        return None
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return None
    try:
        return Member(pid=pid, start=int(fields[19]), inode=os.fstat(pidfd).st_ino)
    finally:
        os.close(pidfd)
