"""The processes of a task, without the processes of other tasks."""

from __future__ import annotations

import os

from outlive.bundle.record import open_record
from outlive.domain.tasks.task import LeftRunning
from outlive.domain.value import Value
from outlive.keeper.exit_watch import read_identity
from outlive.linux.processes import (
    KEEPER_NAME,
    WITNESS_NAME,
    command_line,
    has_marker,
    name_of,
    open_verified,
    opened_by,
    setting_of,
    stat_fields,
)
from outlive.linux.syscalls import read_proc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from outlive.bundle.home import Home

_MOST_LOOKS = 8
_DEAD = (b"Z", b"X")


class Member(Value):
    """One process of a tree. A later process with the same pid is not equal to it."""

    pid: int
    start: int
    inode: int


def descendants(
    root: int, own: frozenset[int] = frozenset(), is_foreign: Callable[[int], bool] | None = None
) -> list[Member]:
    """Return the living descendants of a process, nearest first, without zombies.

    Processes of other tasks, for which `is_foreign` returns True, are left out. They can be descendants, because the
    witness inherits all orphans below it. `own` has the pids of this task's keeper and witness.
    """
    is_foreign = is_foreign or keeps_another_task
    found: dict[int, None] = {}
    # If a process's parent dies during the walk, the process becomes a child of `root` or of one of `own`, because they
    # inherit orphans. So the walk is repeated until the direct children of these processes stay the same.
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
            found.pop(pid, None)  # visit keeper and witness again, because their children may have changed
    return [member for pid in found if (member := look(pid))]


def _is_ours(pid: int, own: frozenset[int], is_foreign: Callable[[int], bool]) -> bool:
    """Return whether a process belongs to the task and has a living thread.

    `own` has the pids of the task's keeper and witness. `is_foreign` finds processes of other tasks.
    """
    if pid in own:
        return True
    fields = stat_fields(pid)
    if fields is not None and fields[0] in _DEAD and fields[17] == b"1":
        return False
    return not is_foreign(pid)


def heirs_children(heirs: Iterable[int], is_foreign: Callable[[int], bool]) -> frozenset[int]:
    """Return the children, dead or alive, of the processes that inherit orphans.

    `heirs` are the pids of these processes. Children that belong to other tasks are left out.
    """
    return frozenset(child for heir in heirs for child in children(heir) if not is_foreign(child))


def keeps_another_task(pid: int) -> bool:
    """Return whether a process is a keeper, a witness, or a parent of keepers.

    The name of a process is easy to forge, and a keeper that begins or ends hibernation briefly has another name. So
    this function checks for an open exit record. A process without an attempt has a marker file open instead.
    """
    is_named_so = name_of(pid) in (KEEPER_NAME, WITNESS_NAME)
    try:
        opened = opened_by(pid)
    except OSError:
        return is_named_so
    # A process without open files is about to exit, so a wrong result does no harm.
    if not opened:
        return is_named_so
    return has_marker(opened) or any(
        "/tasks/" in path and "/attempts/" in path and path.endswith("/record") for path in opened
    )


def runs_another_task(pid: int, home: Home, task: str) -> bool:
    """Return whether a process is the command of a task other than `task`.

    The keeper of the other task may be dead. The environment of the process must name that task, and the exit record of
    that task must name the process. The environment alone would not be enough, because it is easy to forge.
    """
    other = setting_of(pid, "OUTLIVE_TASK")
    return other.isalnum() and other != task and is_named_by_record(pid, home.bundle(other))


def is_named_by_record(pid: int, bundle: str) -> bool:
    """Return whether the exit record of a task's newest attempt names a process.

    `bundle` is the directory of the task's files.
    """
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


def with_setting(name: str, value: str) -> list[Member]:
    """Return the living processes whose variable `name` has the given value.

    This function finds the orphans of a task whose keeper and witness are gone, unless a program cleared its
    environment.
    """
    found = []
    for pid in _all_pids():
        member = None if name_of(pid) in (KEEPER_NAME, WITNESS_NAME) else look(pid)
        if member and setting_of(pid, name) == value:
            found.append(member)
    return found


def remnants(task: str, record_fd: int | None, is_foreign: Callable[[int], bool] | None = None) -> list[Member]:
    """Return the processes of a task, for a caller that is not their ancestor.

    `record_fd` is the descriptor of the exit record, which names the command. `is_foreign` finds processes of other
    tasks.
    """
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
    found.update((member.pid, member) for member in with_setting("OUTLIVE_TASK", task))
    return list(found.values())


def describe(members: Iterable[Member]) -> tuple[LeftRunning, ...]:
    """Return the pids and command lines of those processes that are still alive."""
    named = [(member, command_line(member.pid)[:200]) for member in members]
    return tuple(
        LeftRunning(pid=member.pid, command=name, start=member.start, inode=member.inode)
        for member, name in named
        if look(member.pid) == member
    )


def children(pid: int) -> list[int]:
    """Return the children of a process, dead or alive."""
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
            # The thread has exited. Either another thread has its children now, or the whole process has exited.
            if not os.path.exists(f"/proc/{pid}"):
                return []
        except OSError:
            return []
    # The kernel has no `children` file, or threads come and go too fast. So check the parent of every process.
    return [child for child in _all_pids() if (stat_fields(child) or [b"", b""])[1] == b"%d" % pid]


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def look(pid: int) -> Member | None:
    """Return a living process as a member, or None if the process is dead or dying."""
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
