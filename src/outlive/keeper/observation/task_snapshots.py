"""Snapshots of the repository before, during and after a command.

The snapshot before the command has only a few small files, because a launch waits for it. A fork reads all files while
the command runs, and again after the settlement. If no calls are observed, only the first snapshot of all files shows
the files as the command found them. So the command waits a short time for this snapshot. If the snapshot takes longer,
it may contain changes by the command. Then it is called late.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from outlive.domain.git.snapshot import Snapshot
    from outlive.keeper.background_fork import BackgroundFork
    from outlive.keeper.plan import Plan

_CREATE = os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_FOLLOWED = 500


class TaskSnapshots:
    """All snapshots of one attempt."""

    def __init__(self, plan: Plan, record: int) -> None:
        self._plan = plan
        self._files = plan.files
        self._record = record
        self._began_ns = 0
        self.ended_ns: int | None = None
        """The time of the command's end, in nanoseconds. The command made no later change."""
        self._known: list[str] | None = None
        self._first: int | None = None
        self._baseline: int | None = None
        self._is_all = False
        self.is_late = True
        """Whether the first snapshot may contain changes by the command."""
        self._work: BackgroundFork | None = None
        self._quick: list[Snapshot] | None = None
        self._outside: frozenset[str] = frozenset()
        """Directories that were not in a repository when the command began."""

    def directories(self) -> list[str]:
        """Return the command's directory, and the repositories that it may touch."""
        if self._known is None:
            from outlive.observe.shell.cd_targets import goes_to  # noqa: PLC0415 - only observed commands need this import

            launch = self._plan.launch
            self._known = [launch.cwd]
            if named := (*launch.touches, *goes_to(launch.argv, launch.cwd)):
                from outlive.observe.git.repository import find_repository  # noqa: PLC0415 - only commands that name another directory need this import
                from outlive.observe.seccomp.scope import MOST_REPOSITORIES  # noqa: PLC0415

                own = find_repository(launch.cwd)
                found = {} if own is None else {own.git_dir: launch.cwd}
                for path in named:
                    repository = find_repository(path)
                    if repository is not None and len(found) < MOST_REPOSITORIES:
                        found.setdefault(repository.git_dir, repository.top or repository.git_dir)
                self._known += [each for each in found.values() if each != launch.cwd]
        return self._known

    def note_begin(self) -> None:
        """Record the time from which the command may write."""
        self._began_ns = time.time_ns()

    def note_end(self) -> None:
        """Record the time at which the command ended.

        The keeper calls this method before it notifies any waiter of the end.
        """
        self.ended_ns = time.time_ns()

    def take_before(self) -> None:
        """Take a small snapshot before the command can have changed anything.

        It has HEAD, the refs and the identity of the index. Outside of repositories, the snapshot is not stored,
        because no reader needs it.
        """
        quick = self._keep_quick(self._files.before, only_of_repositories=True)
        self._outside = frozenset(each.directory for each in quick or () if each.git is None)

    @property
    def is_outside(self) -> bool:
        """Whether the command began outside of all repositories."""
        return self._plan.launch.cwd in self._outside

    def take_all(self, *, is_all: bool = False, for_watching: bool = False, is_late: bool = True) -> bool:
        """Take a snapshot of all files in a fork. Return whether the fork was started.

        Outside of repositories, no snapshot is taken. `is_all` means that no calls are observed. Then the snapshot is
        completed even if the command ends first. `for_watching` prepares the snapshot for the watch of the files.
        `is_late` means that the snapshot may contain changes by the command.
        """
        if self._first is not None:
            return True
        try:
            from outlive.observe.git.repository import find_repository  # noqa: PLC0415 - only commands that run for a while need this import

            directories, outside = self.directories(), self._outside
            if all(each in outside or find_repository(each) is None for each in directories):
                return False
            from outlive.keeper.background_fork import BackgroundFork  # noqa: PLC0415

            first, since_ns = self._open_nameless(), self._began_ns
            self._baseline = baseline = self._open_nameless() if for_watching else None
            keep = (self._record, first) if baseline is None else (self._record, first, baseline)

            def work() -> None:
                from outlive.observe.git.compare import keep_first  # noqa: PLC0415 - only the fork imports this, to save memory of the keeper

                keep_first(first, directories, outside, baseline, since_ns)

            self._work = BackgroundFork(work, keep, is_idle=not is_all)
            self._first, self._is_all, self.is_late = first, is_all, is_late
        except (ImportError, OSError, RuntimeError):
            return False
        return True

    def wait_for_all(self, seconds: float) -> None:
        """Wait at most `seconds` for the snapshot of all files.

        If the snapshot takes longer, it counts as late, which means that it may contain changes by the command.
        """
        if self._work is not None and not self._work.is_done_within(seconds):
            self.is_late = True

    def baseline(self) -> int | None:
        """Return a descriptor of the complete first snapshot, or None if there is none.

        The caller closes the descriptor.
        """
        if self._work is None or self._baseline is None:
            return None
        self._work.wait()
        return self._baseline

    def take_after(self, own: Sequence[str]) -> None:
        """Take a small snapshot, with the states of the paths that the task changed.

        It has HEAD, the refs and the identity of the index. `own` are the paths that the task changed.
        """
        self._quick = self._keep_quick(self._files.after, own, is_end=True)

    def compare(self, seen: Collection[str], own: Sequence[str]) -> None:
        """Compare all files with the first snapshot.

        The paths in `seen` are left out, because their changes were observed. `own` are the paths that the task
        changed.
        """
        if self._quick is None:
            self.take_after(own)
        quick = self._quick
        if self._first is None or self._work is None or quick is None:
            return
        if not self._can_compare:
            self._work.give_up()
            os.close(self._first)
            return
        self._work.wait()
        try:
            self._compare_in_fork(self._first, quick, seen)
        except (ImportError, OSError):
            pass
        os.close(self._first)
        self._first = None

    @property
    def _can_compare(self) -> bool:
        """Whether there is, or will be, a first snapshot of all files."""
        return self._work is not None and (self._work.is_done or self._is_all)

    def _compare_in_fork(self, first: int, quick: list[Snapshot], seen: Collection[str]) -> None:
        from outlive.keeper.background_fork import BackgroundFork  # noqa: PLC0415 - this import takes little time, because the module is already loaded

        def work() -> None:
            from outlive.observe.git.compare import compare_with_first  # noqa: PLC0415

            compared, after = compare_with_first(
                first,
                quick,
                since_ns=self._began_ns if self.is_late else None,
                until_ns=self.ended_ns or time.time_ns(),
                seen=seen,
                ignored=self._plan.home.path,
                worktrees=self._plan.home.worktrees,
            )
            _write(self._files.after, after)
            _write(self._files.compared, compared)

        BackgroundFork(work, (self._record, first)).wait()

    def _keep_quick(
        self, path: str, paths: Sequence[str] = (), *, only_of_repositories: bool = False, is_end: bool = False
    ) -> list[Snapshot] | None:
        try:
            from outlive.domain.git.snapshot_json import to_json  # noqa: PLC0415
            from outlive.observe.git.take_snapshot import as_left, take_quick, with_settings  # noqa: PLC0415

            first, *others = self.directories()
            quick = [take_quick(first, paths[:_MOST_FOLLOWED]), *map(take_quick, others)]
            if is_end:
                left = as_left(with_settings(quick[0]), self.ended_ns or time.time_ns())
                unfollowed = max(0, len(paths) - _MOST_FOLLOWED)
                quick[0] = left.but(touched=len(paths), unfollowed=unfollowed, compares=self._can_compare)
            if not only_of_repositories or any(each.git is not None for each in quick):
                _write(path, "".join(to_json(each) + "\n" for each in quick))
        except (ImportError, OSError):
            return None
        return quick

    def _open_nameless(self) -> int:
        """Create a file without a name, which the kernel deletes when it is closed."""
        path = self._files.path + "/first"
        fd = os.open(path, os.O_RDWR | os.O_EXCL | _CREATE, 0o600)
        os.unlink(path)
        return fd


def _write(path: str, text: str) -> None:
    """Write a temporary file and rename it, so that no reader sees a part of it."""
    part = path + ".part"
    fd = os.open(part, os.O_WRONLY | os.O_TRUNC | _CREATE, 0o600)
    try:
        content = text.encode("utf-8", "surrogateescape")
        while content:
            content = content[os.write(fd, content) :]
    finally:
        os.close(fd)
    os.rename(part, path)
